package billing_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// TestItem_RoundTrip: every attribute that is written is read again. One out of byte order would
// not be found.
func TestItem_RoundTrip(t *testing.T) {
	eur, err := money.ParseCurrency("EUR")
	if err != nil {
		t.Fatal(err)
	}
	amount, name := money.New(1299, eur), billing.Name{Account: "1", ID: "2", SKU: "3"}
	at := func(second int64) time.Time { return time.Unix(1_700_000_000+second, 0).UTC() }
	first, err := civil.New(2023, time.November, 1)
	if err != nil {
		t.Fatal(err)
	}
	day := func(n int) civil.Date { return first.AddDays(n) }
	attempts := []billing.Attempt{{Number: 1, Code: "lost_card", Method: "pm_1", At: at(1)}}
	payer := processor.Payer{At: "acct_1", Customer: "cus_1", Fee: 250}

	terms := price.Terms{Quantity: 3, Discount: price.Discount{Percent: 105_000, From: 1, Periods: 4},
		Tax: price.Tax{Mode: price.Inclusive, Rate: 190_000, Country: "DE", Note: "included"}}
	cost, err := price.Of(amount, terms, 2)
	if err != nil {
		t.Fatal(err)
	}
	subscription := &billing.Subscription{Name: name, SKU: "new",
		Pending: &billing.Plan{SKU: "4", Amount: amount, Quantity: 2, From: day(9)},
		Email:   "ada@example.com", PaymentDay: 2, Amount: amount, Terms: terms,
		Method: "pm_2", Collection: billing.ByWire, Told: day(11),
		Address: "here", Interval: civil.Interval{N: 2, Unit: civil.Month}, Anchor: day(1), AnchorPeriod: 1,
		DueBefore: day(9), TrialEnds: day(10),
		TimeZone: "Europe/Berlin", ReminderDays: 3, Created: at(2), LastPayment: at(3), LastReminder: at(4),
		NextPayment: day(2), AlteredTo: day(13),
		NextReminder: day(3), Status: billing.PastDue, Period: 2, Installments: 12, Paid: 1, Kept: "0:6", LastCharge: "pi_1",
		Requested: billing.RequestManual, RequestedAt: at(7),
		Manual: &billing.ManualRequest{Period: 2, Amount: amount, Note: "wire", Processed: at(6)}, CancelAtEnd: true, CancelDate: day(11), Collect: 2, CardTold: "2026-12", Mailed: []string{"failed/2/"}, PausedOn: day(4), Parked: "why", Version: 7,
		Takeover: &billing.Takeover{From: "sub_1", Boundary: at(8), Stage: billing.TakeoverEnding, Waits: day(12)},
		Upgrade:  &billing.Upgrade{Period: 2, Generation: 1, SKU: "new", Amount: amount, Day: day(5), Reason: "declined"},
		Open: &billing.OpenPeriod{Period: 2, Generation: 1, Ref: "pi_2", Retired: []string{"pi_0", "pi_1"}, Amount: amount, Price: &cost,
			Method: "pm_3", Payer: payer, Due: day(5), Attempt: 2, Base: "ch_1", First: day(6), Retry: day(7), Asked: day(8), PayBy: day(12),
			State: processor.RequiresAction, Opened: at(5), Attempts: attempts, SKU: "old", Overtaken: true, Debit: true, FallbackFor: "pm_2",
			FallbackCard: "Visa ending in 4242", Declined: "declined 12.99 USD 2026-11-23T09:15"}}
	read, err := billing.DecodeSubscription(subscription.Item())
	same(t, subscription, read, err, "Raw", "Shards", "Moved", "Redone", "Adds", "SkipUntil")
	subscription.Requested, subscription.SkipUntil, subscription.Manual = billing.RequestSkip, day(11), nil
	read, err = billing.DecodeSubscription(subscription.Item())
	same(t, subscription, read, err, "Raw", "Shards", "Moved", "Redone", "Adds", "Manual")

	account := &billing.Account{ID: "1", Email: "ada@example.com", TimeZone: "Europe/Berlin", Method: "pm_1", Fallback: "pm_2", Given: at(1),
		Payer: payer, Created: at(2), Copying: true, Version: 3, Name: "Ada Lovelace", Locale: "pt-BR",
		Bounced: billing.Bounce{Email: "ada@example.com", Code: "550 5.1.1", At: at(3)}}
	for i, f := range account.Details.Fields() {
		*f = party.Names[i]
	}
	readAccount, err := billing.DecodeAccount(account.Item())
	same(t, account, readAccount, err, "Raw", "Mixed")
	account.Copying, account.Mixed = false, true
	readAccount, err = billing.DecodeAccount(account.Item())
	same(t, account, readAccount, err, "Raw", "Copying")

	receipt := &billing.Receipt{Name: name, SKU: "new", Email: "ada@example.com", Kind: billing.External, Period: 3, Due: day(1),
		Processed: at(1), Amount: amount, Price: &cost, Charge: "note", Expires: at(2), InSeries: "R-2026-000123",
		Recovered: billing.RecoveredDecline, Declined: "declined 12.99 USD 2026-11-23T09:15"}
	decoded, err := billing.DecodeReceipt(receipt.Item())
	same(t, receipt, decoded, err, "Raw")

	ended := &billing.EndedPeriod{Name: name, SKU: "new", Period: 4, Ending: billing.EndFailed, Due: day(1), Ended: at(1),
		Reason: "declined",
		Amount: amount, Price: &cost, Ref: "pi_1", Attempts: attempts, Generation: 1, CollectUntil: day(2), Declined: "declined 12.99 USD 2026-11-23T09:15"}
	period, err := billing.DecodePeriod(ended.Write("t").Item)
	same(t, ended, period, err)

	keyed := &billing.KeyedRequest{Name: name, Kind: billing.KeyedReceipt, Period: 3, Attempt: 2, Amount: amount, Note: "bank",
		Taken: day(1), Created: at(1)}
	asked := new(call.Call)
	keyed.Fix(call.With(t.Context(), asked))
	request, err := billing.DecodeKeyed(asked.Extra)
	same(t, keyed, request, err)

	record := &billing.ReversalRecord{Name: name, ReversalID: billing.RefundIDPrefix + "0123456789abcdef0123456789abcdef",
		Kind: processor.Refunded, Period: 5, Generation: 1, Charge: "pi_1", Amount: amount, State: processor.ReversalFailed,
		Reason: "duplicate", Refusal: "no", Ref: "re_1", InSeries: "R-2026-000124", Evidence: at(4), Created: at(1), Processed: at(2), Ended: at(3)}
	reversal, err := billing.DecodeReversal(record.Writes("t", nil, nil)[1].Item)
	same(t, record, reversal, err)
}

// same compares a record with its item's, without the fields that are not of the item. Every other
// field must have a value, so that none is forgotten here.
func same[T any](t *testing.T, want, got *T, err error, without ...string) {
	t.Helper()
	if err != nil {
		t.Errorf("%T: %v", want, err)
		return
	}
	a, b := reflect.ValueOf(want).Elem(), reflect.ValueOf(got).Elem()
	for _, name := range without {
		a.FieldByName(name).SetZero()
		b.FieldByName(name).SetZero()
	}
	for i := range a.NumField() {
		field := a.Type().Field(i).Name
		if !a.Type().Field(i).IsExported() {
			continue
		}
		if a.Field(i).IsZero() && !slices.Contains(without, field) {
			t.Errorf("%T.%s has no value here", want, field)
		}
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			t.Errorf("%T.%s: got %v, want %v", want, field, b.Field(i), a.Field(i))
		}
	}
}

// TestStamp compares the form with package time's layout, also beyond the years of four digits.
func TestStamp(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for _, at := range []time.Time{{}, time.Unix(0, 999_999_999), time.Date(2024, 2, 29, 23, 59, 59, 7_000_000, berlin),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-1, 6, 1, 0, 0, 0, 120_000_000, time.UTC), time.UnixMilli(1_700_000_000_045)} {
		if got, want := billing.Stamp(at), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("Stamp = %q, want %q", got, want)
		}
	}
}
