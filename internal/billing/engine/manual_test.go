package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestManual_PastPeriod: a manual payment of a period that ended failed, void or skipped settles that one,
// and the next one stays.
func TestManual_PastPeriod(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard")))
	w.daily("2024-03-05") // 0 has failed; 1 was due while past_due
	_, err := w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	if s := w.sub(n); s.Status != billing.Active || s.Period != 2 || s.Paid != 0 {
		t.Fatalf("the world is not as expected: %s", w.describe(n))
	}
	for i, period := range []int{1, 0} {
		r, err := w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: &period, Note: "wire", Amount: usd(1299),
			Date: date("2024-03-01")})
		mustNot(t, err)
		if x := r.Receipt; x.Period != period || x.Amount != usd(1299) || x.Processed.Format("2006-01-02") != "2024-03-01" {
			t.Errorf("receipt %+v", x)
		}
		if s := w.sub(n); s.Period != 2 || s.Paid != i+1 || s.Status != billing.Active || s.NextPayment != date("2024-03-31") {
			t.Errorf("after the payment of period %d: %s", period, w.describe(n))
		}
		_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: &period})
		wantErr(t, err, billing.ErrState)
		wantText(t, err, fmt.Sprintf("period %d is paid (receipt 2024", period))
	}
	equal(t, w.endings(n), nil)
	for period, text := range map[int]string{2: "no period is due before 2024-03-31", 7: "the next period, 2, is due on 2024-03-31"} {
		_, err := w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: &period})
		wantErr(t, err, billing.ErrState)
		wantText(t, err, text)
	}
	w.daily("2024-05-01")
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"})
	w.report(t)
}

// TestManual_LatestFailed: a manual payment of the latest failed period makes a past_due subscription
// active, as a charge does, unless a due date has passed. That of an older period does not.
func TestManual_LatestFailed(t *testing.T) {
	for _, test := range []struct {
		on     string
		period int
		want   billing.Status
	}{
		{"2024-03-02", 1, billing.Active}, {"2024-03-31", 1, billing.Active}, {"2024-04-01", 1, billing.PastDue},
		{"2024-03-02", 0, billing.PastDue},
	} {
		w, n := failed(t)
		_, err := w.start().Resume(context.Background(), n)
		mustNot(t, err)
		w.goTo(date("2024-02-29")) // 1 fails too
		w.start().run(civil.Date{})
		w.goTo(date(test.on))
		_, err = w.start().CreateReceipt(context.Background(), n, engine.ManualPayment{Period: &test.period})
		mustNot(t, err)
		s := w.sub(n)
		if s.Status != test.want || s.Period != 2 || s.Paid != 1 || test.want == billing.Active && s.NextPayment != date("2024-03-31") {
			t.Errorf("period %d on %s: %s", test.period, test.on, w.describe(n))
		}
		w.report(t)
	}
}

// TestManual_LastInstallment: the payment of a past period may be the last one, and none follows it.
func TestManual_LastInstallment(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard"),
		func(s *billing.NewSubscription) { s.Installments = 2 }))
	w.daily("2024-01-31")
	_, err := w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.daily("2024-02-29")
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(int)})
	mustNot(t, err)
	w.daily("2024-04-30")
	if s := w.sub(n); s.Status != billing.Completed || s.Paid != 2 {
		t.Errorf("is not completed: %s", w.describe(n))
	}
	w.report(t)

	w = newWorld("2024-01-31T09:00", planted{})
	n = w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard"),
		func(s *billing.NewSubscription) { s.Installments = 2 }))
	w.daily("2024-01-31")
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.daily("2024-02-29")
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa_chargeDeclined")})
	mustNot(t, err)
	w.daily("2024-03-31") // the last one is being charged
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(int)})
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "the last one is being charged")
	w.report(t)

	w = newWorld("2024-01-31T09:00", planted{})
	n = w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard"),
		func(s *billing.NewSubscription) { s.Installments = 1 }))
	w.daily("2024-01-31")
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.alter(t, "SUB#s1#SKU#gold", "NextPaymentDate", "2024-03-05")
	w.daily("2024-03-05") // the next one is parked
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(int)})
	mustNot(t, err)
	if s := w.sub(n); s.Status != billing.Completed || s.Paid != 1 || w.ending(n, 1).Ending != "" {
		t.Errorf("parked, and paid off: %s", w.describe(n))
	}
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(1)})
	wantErr(t, err, billing.ErrState)
	w.report(t)
}

// TestManual_Key: the same key again is the same request, also when another period is due by then; another
// request under it is refused with the difference.
func TestManual_Key(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.goTo(date("2024-03-05")) // two are due, and no run has met them
	const key = "wire 4711"
	m := engine.ManualPayment{Amount: usd(2000), Overpaid: true, Note: "bank"}
	r, err := w.start().CreateReceipt(w.keyed(ctx, key), n, m)
	mustNot(t, err)
	for _, same := range []engine.ManualPayment{m, {}, {Period: new(int)}, {Date: w.today()}} {
		again, err := w.start().CreateReceipt(w.keyed(ctx, key), n, same)
		mustNot(t, err)
		if !again.Repeated || again.Receipt.Period != 0 || r.Receipt.Period != 0 || r.Repeated {
			t.Errorf("first %+v, again %+v", r, again)
		}
	}
	equal(t, w.dues(n), []string{"2024-01-31"})
	for _, other := range []struct {
		engine.ManualPayment
		text string
	}{
		{engine.ManualPayment{Amount: usd(1299)}, "with amount 20.00 USD, not 12.99 USD"},
		{engine.ManualPayment{Period: new(1)}, "with period 0, not 1"},
		{engine.ManualPayment{Note: "cash"}, `with note "bank", not "cash"`},
		{engine.ManualPayment{Date: date("2024-03-04")}, "the key was used on 2024-03-05 for a request with date " +
			"2024-03-05, not 2024-03-04"},
	} {
		_, err := w.start().CreateReceipt(w.keyed(ctx, key), n, other.ManualPayment)
		wantErr(t, err, billing.ErrState)
		wantText(t, err, other.text)
	}
	_, err = w.start().CreateReceipt(w.keyed(ctx, "wire 4712"), n, engine.ManualPayment{})
	mustNot(t, err)
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29"})
	other := w.create(one("2024-02-29", of("a2")))
	_, err = w.start().CreateReceipt(w.keyed(ctx, key), other, engine.ManualPayment{})
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "with subscription a1/s1, not a2/s1")
	if len(w.spy.keys) != 2 || strings.Contains(fmt.Sprint(w.spy.keys), "wire") {
		t.Errorf("items of keys: %v", w.spy.keys)
	}
	w.report(t)

	w.goTo(date("2034-12-31")) // the receipts have expired, and keys never do
	again, err := w.start().CreateReceipt(w.keyed(ctx, key), n, m)
	mustNot(t, err)
	if !again.Repeated || again.Receipt != nil || again.Period != 0 {
		t.Errorf("after the receipt's end: %+v", again)
	}
}

// TestManual_OldKey: the item that an older Duesday wrote for a key counts until it expires.
func TestManual_OldKey(t *testing.T) {
	w := newWorld("2024-03-05T09:00", planted{})
	n := w.create(one("2024-01-31"))
	sum := sha256.Sum256([]byte("request\x00wire 4711"))
	mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S("ACC#a1")},
		store.Attribute{Name: schema.SK, Value: store.S("KEY#s1#SKU#gold#" + hex.EncodeToString(sum[:16]))},
		store.Attribute{Name: schema.Amount, Value: store.S("12.99")}, store.Attribute{Name: schema.Currency, Value: store.S("USD")},
		store.Attribute{Name: schema.CreatedDate, Value: store.S("2024-02-01T09:00:00.000Z")},
		store.Attribute{Name: schema.Kind, Value: store.S("receipt")}, store.Attribute{Name: schema.Period, Value: store.Int(0)},
		store.Attribute{Name: schema.SKU, Value: store.S("gold")}, store.Attribute{Name: schema.Subscription, Value: store.S("s1")},
		store.Attribute{Name: schema.TTL, Value: store.Int(w.now().AddDate(0, 0, 30).Unix())}))))
	ask := func(m engine.ManualPayment) (*engine.Recorded, error) {
		return w.start().CreateReceipt(w.keyed(t.Context(), "wire 4711"), n, m)
	}
	if r, err := ask(engine.ManualPayment{}); err != nil || !r.Repeated || r.Period != 0 || w.sub(n).Paid != 0 {
		t.Errorf("%+v %v", r, err)
	}
	_, err := ask(engine.ManualPayment{Period: new(1)})
	wantErr(t, err, billing.ErrState)
	w.pass(31 * 24 * time.Hour)
	if r, err := ask(engine.ManualPayment{}); err != nil || r.Repeated || w.sub(n).Paid != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestManual_OneOfMany: a request that names neither period nor key is refused if a repetition of it could
// settle a second period.
func TestManual_OneOfMany(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	record := func(m engine.ManualPayment, refused string) {
		t.Helper()
		_, err := w.start().CreateReceipt(t.Context(), n, m)
		switch wrong, is := errors.AsType[*billing.FieldError](err); {
		case refused == "":
			mustNot(t, err)
		case !is || wrong.Field != "period":
			t.Errorf("error %v", err)
		default:
			wantText(t, err, refused)
		}
	}
	wire := engine.ManualPayment{Note: "wire", Date: date("2024-02-28")}
	w.goTo(date("2024-02-29"))
	record(wire, "periods 0 and 1 are both due")
	w.goTo(date("2024-02-28"))
	record(wire, "")
	w.goTo(date("2024-02-29")) // repeated after midnight, when the next one is due
	record(wire, "is already recorded for period 0")
	equal(t, w.dues(n), []string{"2024-01-31"})
	record(engine.ManualPayment{Note: "another", Date: wire.Date}, "")
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29"})
	w.report(t)
}

// TestManual_Amount: whichever way a period is settled, a part does not settle it, nor does more
// than it owes unless it is said to be, nor another currency.
func TestManual_Amount(t *testing.T) {
	eur, err := money.ParseCurrency("EUR")
	mustNot(t, err)
	for name, begin := range map[string]func(w *world, n billing.Name){
		"due":  func(*world, billing.Name) {},
		"live": func(w *world, _ billing.Name) { w.start().run(civil.Date{}) }, // declined
		"parked": func(w *world, n billing.Name) {
			w.byTool(n, schema.NextPaymentDate, store.S("2024-02-10"))
			w.start().run(civil.Date{})
		},
		"past": func(w *world, n billing.Name) {
			w.newMethod(n, lostCard)
			w.start().run(civil.Date{})
			_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Amount: new(usd(500))}) // of the next one
			mustNot(t, err)
		},
		"past and live": func(w *world, n billing.Name) {
			w.newMethod(n, lostCard)
			w.start().run(civil.Date{})
			w.newMethod(n, "pm_sandbox_processing")
			_, err := w.start().ChargePeriod(t.Context(), n, engine.PeriodCharge{})
			mustNot(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("2024-01-31T09:00", planted{})
			n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
			w.goTo(date("2024-02-10"))
			begin(w, n)
			before := w.rawOf(n)
			for _, refused := range []engine.ManualPayment{{Amount: usd(500)}, {Amount: usd(1298)}, {Amount: usd(1)}, {Amount: usd(0)},
				{Amount: usd(1300)}, {Amount: usd(500), Overpaid: true}, {Amount: money.New(1299, eur)},
				{Amount: money.New(1500, eur), Overpaid: true}} {
				for _, key := range []string{"", "wire", "wire"} {
					refused.Period = new(int)
					_, err := w.start().CreateReceipt(w.keyed(t.Context(), key), n, refused)
					if field, is := errors.AsType[*billing.FieldError](err); !is || field.Field != "amount" {
						t.Fatalf("%+v: %v", refused, err)
					}
					wantText(t, err, "must be 12.99 USD, which period 0 owes (got "+refused.Amount.String()+")")
				}
			}
			if !w.rawOf(n).Equal(before) || len(w.spy.keys) > 0 {
				t.Error("a refused payment has changed something")
			}
			over := engine.ManualPayment{Period: new(int), Amount: usd(1500), Overpaid: true}
			for range 2 {
				r, err := w.start().CreateReceipt(w.keyed(t.Context(), "wire"), n, over)
				mustNot(t, err)
				if r.Receipt == nil || r.Receipt.Amount != usd(1500) || r.Receipt.Kind != billing.External {
					t.Errorf("%+v", r)
				}
			}
			w.report(t)
		})
	}
}

// TestManual_WrongInput names the field.
func TestManual_WrongInput(t *testing.T) {
	w := newWorld("2024-02-10T09:00", planted{})
	n := w.create(one("2024-01-31"))
	for want, m := range map[string]engine.ManualPayment{
		"period": {Period: new(-1)},
		"date":   {Date: date("2024-02-11")},
		"note":   {Note: "4242 4242 4242 4242"},
		"amount": {Amount: usd(-1)},
	} {
		_, err := w.start().CreateReceipt(t.Context(), n, m)
		if err == nil || !strings.HasPrefix(err.Error(), want+":") {
			t.Errorf("%s: error %v", want, err)
		}
	}
	_, err := w.start().CreateReceipt(w.keyed(t.Context(), strings.Repeat("k", billing.MaxID+1)), n, engine.ManualPayment{})
	wantText(t, err, "key:")
	w.report(t)
}

// A live is a payment intent that is live when a person tells of a manual payment.
type live struct {
	name, method string
	before       func(w *world, n billing.Name) // brings it about
	meanwhile    func(w *world, ref string)     // what the bank or the customer does after the request
	want         billing.ReceiptKind
}

func lives() []live {
	first := func(w *world, n billing.Name) { w.start().run(civil.Date{}) }
	return []live{
		{name: "a past period waits for the customer", method: lostCard, before: collectPast, want: billing.External},
		{name: "a past period is decided later: paid", method: lostCard, before: func(w *world, n billing.Name) {
			collectPastBy(w, n, "pm_sandbox_processing")
		}, meanwhile: func(w *world, ref string) { _ = w.box.Finish(ref, true) }, want: billing.Overpayment},
		{name: "a past period is paid and not settled", method: lostCard, before: func(w *world, n billing.Name) {
			collectPast(w, n)
			_ = w.box.Authenticate(w.sub(n).Open.Ref)
		}, want: billing.Overpayment},
		{name: "declined", method: "pm_card_visa_chargeDeclined", before: first, want: billing.External},
		{"waits for the customer", "pm_card_authenticationRequired", first, nil, billing.External},
		{"only bound", "pm_card_visa", func(w *world, n billing.Name) { w.start(fault{5, true}).run(civil.Date{}) }, nil,
			billing.External},
		{"paid and not settled", "pm_card_visa", func(w *world, n billing.Name) { w.start(fault{7, true}).run(civil.Date{}) }, nil,
			billing.Overpayment},
		{"authenticated and not settled", "pm_card_authenticationRequired", func(w *world, n billing.Name) {
			first(w, n)
			_ = w.box.Authenticate(w.sub(n).Open.Ref)
		}, nil, billing.Overpayment},
		{"the bank decides later: paid", "pm_sandbox_processing", first,
			func(w *world, ref string) { _ = w.box.Finish(ref, true) }, billing.Overpayment},
		{"the bank decides later: bounced", "pm_sandbox_processing", first,
			func(w *world, ref string) { _ = w.box.Finish(ref, false) }, billing.External},
		{"parked and declined", "pm_card_visa_chargeDeclined", func(w *world, n billing.Name) {
			first(w, n)
			w.byTool(n, schema.NextPaymentDate, store.S("2024-02-20"))
			w.goTo(date("2024-02-21"))
			first(w, n) // parked, since another tool has moved it
			w.set("2024-02-21T10:00")
		}, nil, billing.External},
	}
}

// collectPast has period 0, which has failed, charged again beside period 1, which is not due yet.
func collectPast(w *world, n billing.Name) { collectPastBy(w, n, "pm_card_authenticationRequired") }

func collectPastBy(w *world, n billing.Name, method string) {
	ctx, p := context.Background(), w.start()
	p.run(civil.Date{})
	_, _ = p.UpdateSubscription(ctx, n, billing.Change{Method: &method})
	_, _ = p.ChargePeriod(ctx, n, engine.PeriodCharge{})
}

// An undecidedBank does not cancel an intent while it decides on it.
type undecidedBank struct{ processor.Charger }

func undecided(_ *world, p processor.Charger) processor.Charger { return undecidedBank{p} }

func (b undecidedBank) Cancel(ctx context.Context, ref string) (processor.Intent, error) {
	if in, err := b.Lookup(ctx, ref); err != nil || in.State == processor.Processing {
		return in, err
	}
	return b.Charger.Cancel(ctx, ref)
}

// start has a world in which the intent is live.
func (l *live) start(t *testing.T) (*world, billing.Name, string) {
	t.Helper()
	w := newWorld("2024-01-31T09:00", planted{proc: undecided})
	n := w.create(one("2024-01-31", method(l.method)))
	l.before(w, n)
	s := w.sub(n)
	if s.Open == nil || s.Open.Period != 0 {
		t.Fatalf("%s: no intent is live: %s", l.name, w.describe(n))
	}
	return w, n, s.Open.Ref
}

// ended fails the test unless the period was settled once, and the payment is recorded as wanted.
func (l *live) ended(t *testing.T, w *world, n billing.Name, at string) {
	t.Helper()
	s := w.sub(n)
	if s.Open != nil || s.Period != 1 || s.Paid != 1 || s.Manual != nil || s.Requested != "" || s.Status != billing.Active {
		t.Errorf("%s, %s: %s", l.name, at, w.describe(n))
	}
	found, err := w.start().ReceiptsOf(t.Context(), n, 0)
	mustNot(t, err)
	kinds := []string{}
	for _, r := range found {
		kinds = append(kinds, string(r.Kind))
	}
	slices.Sort(kinds)
	want := []string{string(billing.External)}
	if l.want == billing.Overpayment {
		want = []string{string(billing.Charged), string(billing.Overpayment)}
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("%s, %s: receipts %v, want %v", l.name, at, kinds, want)
	}
	w.report(t)
}

// TestManual_LiveIntent: the intent is cancelled, and then the payment is recorded. If it was paid, the
// payment is kept as an overpayment. While the bank decides, it is requested, and other requests wait.
func TestManual_LiveIntent(t *testing.T) {
	ctx := context.Background()
	for _, l := range lives() {
		w, n, ref := l.start(t)
		m := engine.ManualPayment{Note: "wire", Period: new(int)}
		r, err := w.start().CreateReceipt(ctx, n, m)
		mustNot(t, err)
		if r.Requested != (l.meanwhile != nil) || !r.Requested && (r.Receipt == nil || r.Receipt.Kind != l.want) {
			t.Errorf("%s: answered %+v", l.name, r)
		}
		if l.meanwhile != nil {
			w.waits(t, n)
			again, err := w.start().CreateReceipt(ctx, n, m)
			mustNot(t, err)
			if !again.Requested || !again.Repeated {
				t.Errorf("%s: again answered %+v", l.name, again)
			}
			l.meanwhile(w, ref)
			w.start().run(civil.Date{})
		}
		l.ended(t, w, n, "in peace")
		_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(int)})
		wantErr(t, err, billing.ErrState)
	}
}

// waits: while a manual payment is requested, everything that would end the period otherwise is refused.
func (w *world) waits(t *testing.T, n billing.Name) {
	t.Helper()
	ctx, p := t.Context(), w.start()
	_, cancel := p.Cancel(ctx, n, false)
	_, pause := p.Pause(ctx, n)
	_, another := p.CreateReceipt(ctx, n, engine.ManualPayment{Amount: usd(1), Period: new(int)})
	_, keyed := p.CreateReceipt(w.keyed(ctx, "another"), n, engine.ManualPayment{Period: new(int)})
	_, dated := p.CreateReceipt(ctx, n, engine.ManualPayment{Date: w.today().AddDays(-9), Period: new(int)})
	for _, err := range []error{cancel, pause, another, keyed, dated} {
		wantErr(t, err, billing.ErrState)
		wantText(t, err, "period 0")
	}
}

// TestManual_CrashAtEveryPoint: with a crash, or a lost answer, before and after every commit and call of
// the request, and whoever comes next, a run, an event, the same command, or several of them at once, the
// payment is recorded once and the period settled once.
func TestManual_CrashAtEveryPoint(t *testing.T) {
	ctx := context.Background()
	m := engine.ManualPayment{Period: new(int), Note: "bank"}
	run := func(p *process, _ billing.Name, _ string) { p.run(civil.Date{}) }
	heard := func(p *process, n billing.Name, ref string) { _ = p.Heard(ctx, n.Account, n.ID, ref) }
	again := func(p *process, n billing.Name, _ string) { _, _ = p.CreateReceipt(p.w.keyed(ctx, "wire"), n, m) }
	nexts := map[string][]func(*process, billing.Name, string){"a run": {run}, "an event": {heard}, "the command": {again},
		"a run, an event and the command": {run, heard, again}}
	cases := 0
	for _, l := range lives() {
		for next, threads := range nexts {
			for _, crash := range []bool{true, false} {
				for point := 1; ; point++ {
					w, n, ref := l.start(t)
					p := w.start(fault{point, crash})
					_, _ = p.CreateReceipt(w.keyed(ctx, "wire"), n, m)
					if !p.faults.struck() {
						break
					}
					cases++
					if l.meanwhile != nil {
						l.meanwhile(w, ref)
					}
					var all []func(func())
					for _, do := range threads {
						p := w.start()
						all = append(all, func(edge func()) { p.edge = edge; do(p, n, ref) })
					}
					interleave(seeded(uint64(point)), all)
					w.start().run(civil.Date{}) // an event or a command may have come too early
					at := fmt.Sprintf("crash %v at point %d, then %s", crash, point, next)
					_, err := w.start().CreateReceipt(w.keyed(ctx, "wire"), n, m)
					switch s := w.sub(n); {
					case s.Period != 1 || s.Open != nil || s.Paid != 1:
						t.Errorf("%s, %s: %s", l.name, at, w.describe(n))
					case len(w.spy.keys) == 0 && !errors.Is(err, billing.ErrState): // it was charged before anybody was told
						t.Errorf("%s, %s: %v", l.name, at, err)
					case len(w.spy.keys) > 0:
						mustNot(t, err)
					}
					w.report(t)
				}
			}
		}
	}
	t.Logf("%d cases", cases)
	if cases < 200 {
		t.Errorf("only %d cases", cases)
	}
}

// TestManual_AgainstARun: the request and a run, or an event, work at once on a due or an open period,
// interleaved at every call. The period is settled once, and a payment that was told of is recorded.
func TestManual_AgainstARun(t *testing.T) {
	ctx := context.Background()
	did := map[billing.ReceiptKind]int{}
	for _, l := range append(lives(), live{name: "due", method: "pm_card_visa"}) {
		for seed := range uint64(60) {
			var w *world
			var n billing.Name
			ref := ""
			if l.before == nil {
				w = newWorld("2024-01-31T09:00", planted{proc: undecided})
				n = w.create(one("2024-01-31", method(l.method)))
			} else {
				w, n, ref = l.start(t)
			}
			w.twins = true
			m := engine.ManualPayment{Period: new(int)}
			request, job, event := w.start(), w.start(), w.start()
			var r *engine.Recorded
			var err error
			interleave(seeded(seed), []func(func()){
				func(edge func()) {
					request.edge = edge
					r, err = request.CreateReceipt(w.keyed(ctx, "wire"), n, m)
				},
				func(edge func()) { job.edge = edge; job.run(civil.Date{}) },
				func(edge func()) { event.edge = edge; _ = event.Heard(ctx, n.Account, n.ID, ref) },
			})
			if l.meanwhile != nil {
				l.meanwhile(w, ref)
			}
			w.start().run(civil.Date{})
			if err == nil {
				if r, err = w.start().CreateReceipt(w.keyed(ctx, "wire"), n, m); err != nil || r.Receipt == nil {
					t.Errorf("%s, seed %d: %+v, %v", l.name, seed, r, err)
					continue
				}
				did[r.Receipt.Kind]++
			} else if did["refused"]++; !errors.Is(err, billing.ErrState) {
				t.Errorf("%s, seed %d: %v", l.name, seed, err)
			}
			w.report(t)
		}
	}
	t.Log(did)
	if did[billing.External] == 0 || did[billing.Overpayment] == 0 || did["refused"] == 0 {
		t.Errorf("not everything has happened: %v", did)
	}
}
