package settings_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

func TestSettings_SetTakesWhatTextGives(t *testing.T) {
	s := settings.Default()
	for name, text := range map[string]string{"receipt-months": "0", "retry-days": "1,2,60", "debit-retry-days": "10,20", "catch-up": "24",
		"action-days": "0", "after-failure": "collect", "after-reversal": "park", "collect-days": "7", "pay-days": "21", "pay-to": "Ada's Gym, DE89 3704 0044 0532 0130 00", "merchant-name": "Ada's Gym", "postal-address": "12 Bridge Street, Birmingham",
		"sender": "Ada's Gym <ada@example.com>", "reply-to": "help@example.com", "daily": "06:10,18:10",
		"time-zone": "Europe/Berlin", "alarm-at": "12:00", "operator": "ops@example.com", "delivery-days": "7", "history-months": "36", "receipt-prefix": "INV2", "tax": "on", "tax-mode": "exclusive", "tax-rates": "DE:19,US:0", "ended-by": "past_due,unpaid",
		"seller": "Ada Fitness GmbH", "seller-address": "Brückenstr. 12, Berlin", "seller-country": "DE", "seller-tax-id": "DE123456789",
		"document": "invoice", "public-url": "https://pay.example.com:8443", "receipt-links": "2", "portal": "on", "portal-cancel": "on", "portal-mail": "on", "link-days": "14"} {
		if err := s.Set(name, text); err != nil || s.Text(name) != text {
			t.Errorf("%s: %q, %v; want %q", name, s.Text(name), err, text)
		}
	}
	want := settings.Settings{RetryDays: []int{1, 2, 60}, DebitRetries: []int{10, 20}, CatchUp: 24, AfterFailure: settings.Collect, AfterReversal: settings.Park, CollectDays: 7, PayDays: 21,
		PayTo: "Ada's Gym, DE89 3704 0044 0532 0130 00", MerchantName: "Ada's Gym",
		PostalAddress: "12 Bridge Street, Birmingham", Sender: "Ada's Gym <ada@example.com>",
		ReplyTo: "help@example.com", Daily: []string{"06:10", "18:10"}, TimeZone: "Europe/Berlin", AlarmAt: "12:00",
		Operator: "ops@example.com", DeliveryDays: 7, HistoryMonths: 36, ReceiptPrefix: "INV2", Tax: settings.On, TaxMode: settings.Exclusive, TaxRates: []string{"DE:19", "US:0"}, EndedBy: []string{"past_due", "unpaid"},
		Seller: "Ada Fitness GmbH", SellerAddress: "Brückenstr. 12, Berlin", SellerCountry: "DE", SellerTaxID: "DE123456789",
		Document: settings.Invoice, PublicURL: "https://pay.example.com:8443", ReceiptLinks: 2, Portal: settings.On, PortalCancel: settings.On, PortalMail: settings.On, LinkDays: 14}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
	for _, name := range settings.Names() {
		if err := s.Set(name, ""); err != nil {
			t.Errorf("%s to its default: %v", name, err)
		}
	}
	if usual := settings.Default(); !reflect.DeepEqual(s, usual) {
		t.Errorf("got %+v, want the defaults %+v", s, usual)
	}
	if err := s.Set("retry-days", "none"); err != nil || s.RetryDays == nil || len(s.RetryDays) != 0 {
		t.Errorf("none: %#v, %v; want no days, and not nil", s.RetryDays, err)
	}
}

func TestSettings_Refuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"receipt-months", "-1", `receipt-months: must be 0 (kept for ever) to 1200`},
		{"receipt-months", "six", "must be 0"},
		{"receipt-prefix", "R-", "must be 1 to 10 capital letters and digits"},
		{"receipt-prefix", "ABCDEFGHIJK", "must be 1 to 10 capital letters and digits"},
		{"retry-days", "1,3,3", "must be at most 8 ascending days from 1 to 60 such as 1,3,5,7, or none"},
		{"retry-days", "1,2,3,4,5,6,7,8,9", "must be at most 8"}, {"retry-days", "61", "must be"}, {"retry-days", "0,1", "must be"},
		{"debit-retry-days", "7,7", "must be at most 8 ascending days"}, {"catch-up", "0", "must be 1 to 24"}, {"action-days", "366", "must be 0 (for ever) to 365"},
		{"after-failure", "forget", "must be forgive or collect"}, {"collect-days", "0", "must be 1 to 365"}, {"after-reversal", "charge", "must be nothing or park"},
		{"daily", "6:10", "must be at most 24 ascending times such as 06:10,18:10"}, {"daily", "18:10,06:10", "must be"},
		{"daily", "06:10,06:10", "must be"}, {"daily", "24:00", "must be"}, {"daily", "06:10,", "must be"},
		{"time-zone", "Local", "must be an IANA name"}, {"time-zone", "CET", "not an abbreviation"}, {"time-zone", "CET+1", "must be an IANA name"},
		{"alarm-at", "noon", "must be a time such as 12:00"}, {"ended-by", "canceled", "must be some of past_due,paused,unpaid"},
		{"ended-by", "unpaid,unpaid", "must be some of"},
		{"tax", "yes", "must be on or off"}, {"tax-mode", "gross", "must be inclusive or exclusive"},
		{"tax-rates", "DE:19%", "must be countries with a rate each such as DE:19"}, {"tax-rates", "DE:19,DE:7", "must be countries"},
		{"sender", "Ada", "must be an address"}, {"operator", "Ops <ops@example.com>", "must be an address such as ops@"},
		{"reply-to", "a@b, c@d", "must be an address"}, {"merchant-name", "a\nb", "control characters"},
		{"merchant-name", strings.Repeat("a", 401), "at most 400 bytes"},
		{"merchant-name", "sk_live_1234567890abcdefghij", "secret"},
		{"postal-address", "4242 4242 4242 4242", "card number"},
		{"seller-country", "Germany", "must be an ISO 3166-1 code in upper case such as DE"}, {"document", "bill", "must be receipt or invoice"},
		{"public-url", "pay.example.com", "must be https:// and a host"}, {"public-url", "http://pay.example.com", "must be https://"},
		{"public-url", "https://pay.example.com/x", "must be"}, {"public-url", "https://a@pay.example.com", "must be"},
		{"public-url", "https://pay.example.com?x", "must be"}, {"public-url", "https://:443", "must be"}, {"public-url", "https://", "must be"},
		{"public-url", "https://pay.example.com:", "must be"},
		{"receipt-links", "0", "must be 1 to 999999"},
		{"retry", "1", "is not a setting; the settings are receipt-months, retry-days"},
	} {
		s := settings.Default()
		err := s.Set(c.name, c.text)
		if _, field := errors.AsType[*billing.FieldError](err); !field || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.name, c.text, err, c.want)
		}
		if strings.Contains(err.Error(), "4242 4242") || strings.Contains(err.Error(), "sk_live_12") {
			t.Errorf("the error shows the secret: %v", err)
		}
		if usual := settings.Default(); !reflect.DeepEqual(s, usual) {
			t.Errorf("%s %q: changed to %+v", c.name, c.text, s)
		}
	}
}

// settingsStore returns a store with a META item, and its records.
func settingsStore(t *testing.T) (*storetest.Faulty, *billing.Records) {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 3, 15, 10, 30, 0, 0, time.UTC) }
	tables := schema.Named(schema.DefaultPrefix, "")
	s, err := memstore.Open(tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	f := storetest.NewFaulty(s)
	e := billing.NewRecords(f, tables, now, nil)
	if err := s.Commit(t.Context(), store.Put(e.Table, billing.ItemAt(billing.MetaKey))); err != nil {
		t.Fatal(err)
	}
	return f, e
}

func change(ctx context.Context, e *billing.Records, name, text string) (settings.Settings, error) {
	return settings.Change(ctx, e, func(s *settings.Settings) error { return s.Set(name, text) })
}

func history(t *testing.T, e *billing.Records) (list []settings.Changed) {
	t.Helper()
	for c, err := range settings.History(t.Context(), e) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func TestSettings_ChangeLeavesARow(t *testing.T) {
	_, e := settingsStore(t)
	if s, err := settings.Read(t.Context(), e); err != nil || !reflect.DeepEqual(s, settings.Default()) {
		t.Fatalf("none: %+v, %v; want the defaults", s, err)
	}
	if s, err := change(t.Context(), e, "catch-up", "3"); err != nil || s.Version != 1 || len(history(t, e)) != 0 {
		t.Fatalf("the default: version %d, %v, %v; want 1, and no row", s.Version, err, history(t, e))
	}
	for _, days := range []string{"2", "2", "1,9"} {
		if _, err := change(t.Context(), e, "retry-days", days); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := change(t.Context(), e, "catch-up", "25"); err == nil {
		t.Error("25 missed periods at once are taken")
	}
	s, err := settings.Read(t.Context(), e)
	if err != nil || s.Version != 3 || s.Text("retry-days") != "1,9" {
		t.Errorf("got %+v, %v; want version 3 with 1,9", s, err)
	}
	want := []settings.Changed{{e.Now(), 2, "retry-days", "1,3,5,7", "2", ""}, {e.Now(), 3, "retry-days", "2", "1,9", ""}}
	if got := history(t, e); !reflect.DeepEqual(got, want) {
		t.Errorf("history %+v, want %+v", got, want)
	}
}

// TestSettings_ALostReply checks that a change is made only once, even if another person's change
// follows at once. The repeated change must not undo that one.
func TestSettings_ALostReply(t *testing.T) {
	for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
		f, e := settingsStore(t)
		f.Hook = storetest.LoseReply(1, phase)
		if s, err := change(t.Context(), e, "catch-up", "7"); err != nil || s.CatchUp != 7 || len(history(t, e)) != 1 {
			t.Errorf("phase %v: %+v, %v, history %+v; want 7, once", phase, s, err, history(t, e))
		}
	}
	f, e := settingsStore(t)
	lost := false
	f.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if op.Kind != storetest.Commit || phase != storetest.After || lost {
			return nil
		}
		lost = true
		if _, err := change(t.Context(), e, "catch-up", "9"); err != nil {
			t.Error(err)
		}
		return store.ErrUnknown
	}
	if s, err := change(t.Context(), e, "catch-up", "7"); err != nil || s.CatchUp != 9 || len(history(t, e)) != 2 {
		t.Errorf("overtaken: %+v, %v, history %+v; want 9, of two changes", s, err, history(t, e))
	}
}

func TestSettings_OfAMovedStore(t *testing.T) {
	f, e := settingsStore(t)
	moved := store.NewItem(store.Attribute{Name: schema.Moved, Value: store.S("elsewhere")})
	f.Hook = func(op storetest.Operation, phase storetest.Phase) error { // between the read and the commit
		if op.Commit == 1 && phase == storetest.Before {
			return f.Commit(t.Context(), store.Update(e.Table, billing.MetaKey, moved, nil))
		}
		return nil
	}
	if _, err := change(t.Context(), e, "catch-up", "7"); !errors.Is(err, billing.ErrMoved) {
		t.Errorf("%v, want ErrMoved", err)
	}
}

func TestSettings_WrongInTheStore(t *testing.T) {
	f, e := settingsStore(t)
	text := func(name, value string) store.Attribute { return store.Attribute{Name: name, Value: store.S(value)} }
	data := store.NewItem(text("catch-up", "many"), text("retry-days", "2"), text("later", "x"))
	it := billing.ItemAt(settings.Key, store.Attribute{Name: schema.Data, Value: store.M(data)}, text("Later", "x"))
	if err := f.Commit(t.Context(), store.Put(e.Table, it)); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Read(t.Context(), e)
	if _, illegible := errors.AsType[*billing.IllegibleError](err); !illegible || s.CatchUp != 3 || s.Text("retry-days") != "2" ||
		!strings.Contains(err.Error(), `catch-up: must be 1 to 24 (got "many")`) {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err := change(t.Context(), e, "catch-up", ""); err != nil || s.CatchUp != 3 {
		t.Errorf("mended: %+v, %v", s, err)
	}
	if got := history(t, e); len(got) != 1 || got[0].Before != "many" || got[0].After != "3" {
		t.Errorf("history %+v", got)
	}
	it, err = f.Get(t.Context(), e.Table, settings.Key)
	if err != nil || it.Str("Later") != "x" || it.Get(schema.Data).Map().Str("later") != "x" {
		t.Errorf("%v, %v: a setting of a later version is gone", it, err)
	}
}

// TestSettings_TaxNeedsReceipts checks that receipts with tax cannot expire within ten years, whichever setting is changed.
func TestSettings_TaxNeedsReceipts(t *testing.T) {
	_, e := settingsStore(t)
	both := func(pairs ...string) error {
		_, err := settings.Change(t.Context(), e, func(s *settings.Settings) (err error) {
			for i := 0; i < len(pairs); i += 2 {
				err = errors.Join(err, s.Set(pairs[i], pairs[i+1]))
			}
			return err
		})
		return err
	}
	const refusal = "receipt-months: must be 0 (kept for ever) or at least 120 with tax=on (got "
	if err := both("tax", "on"); err == nil || !strings.HasPrefix(err.Error(), refusal+"6)") {
		t.Errorf("tax=on with receipts of 6 months: %v", err)
	}
	if err := both("tax", "on", "receipt-months", "120"); err != nil {
		t.Errorf("both at once: %v", err)
	}
	if err := both("receipt-months", "119"); err == nil || !strings.HasPrefix(err.Error(), refusal+"119)") {
		t.Errorf("119 months with tax=on: %v", err)
	}
	if err := both("receipt-months", "0"); err != nil {
		t.Errorf("for ever: %v", err)
	}
	if err := both("receipt-months", "6", "tax", "off"); err != nil {
		t.Errorf("tax=off: %v", err)
	}
	if list := history(t, e); len(list) != 5 {
		t.Errorf("history %+v, want five changes", list)
	}
}

// TestSettings_TaxNeedsFormat checks that tax is not turned on beside an older build, which would charge without a rate.
func TestSettings_TaxNeedsFormat(t *testing.T) {
	s, e := settingsStore(t)
	on := func(now *settings.Settings) error {
		return errors.Join(now.Set("tax", "on"), now.Set("receipt-months", "120"))
	}
	e.Shared, e.Opened.Format = true, billing.TermsFormat-1
	if _, err := settings.Change(t.Context(), e, on); !errors.Is(err, billing.ErrState) || !strings.Contains(err.Error(), "duesday store migrate") {
		t.Errorf("with older builds: %v", err)
	}
	meta := billing.ItemAt(billing.MetaKey)
	meta.Set(schema.Format, store.Int(billing.TermsFormat))
	if err := s.Commit(t.Context(), store.Put(e.Table, meta)); err != nil {
		t.Fatal(err)
	}
	if _, err := settings.Change(t.Context(), e, on); err != nil {
		t.Errorf("after the migration: %v", err)
	}
}
