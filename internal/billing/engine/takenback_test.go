package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/proof"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// parking returns a world whose settings park, with one subscription that was charged for period 0.
func parking(change ...func(*billing.NewSubscription)) (*world, billing.Name) {
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	w.cfg.AfterReversal = settings.Park
	n := w.create(one("2024-01-31", change...))
	w.start().run(civil.Date{})
	return w, n
}

// takeBack makes the bank take the subscription's latest payment back, and records it.
func (w *world) takeBack(t *testing.T, n billing.Name) processor.Reversal {
	t.Helper()
	r := w.makeReturn(t, processor.Disputed, w.sub(n).LastCharge, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	w.mustCollect(t, 0) // the second look finds nothing new
	return r
}

func (w *world) wantParked(t *testing.T, n billing.Name, period int) {
	t.Helper()
	s := w.sub(n)
	p, err := w.start().RecordOf(t.Context(), n, period)
	mustNot(t, err)
	if s.Status != billing.ParkedState || s.Period != period || p.Ending != billing.EndParked || p.Reason != s.Parked ||
		!strings.HasPrefix(s.Parked, "taken back: period 0 by dispute dp_sandbox_") {
		t.Errorf("not parked: %s, %+v", w.describe(n), p)
	}
}

// TestTakenBack_Nothing: by default, the subscription goes on.
func TestTakenBack_Nothing(t *testing.T) {
	w, n := charged(planted{})
	w.takeBack(t, n)
	w.daily("2024-02-29")
	if s := w.sub(n); s.Status != billing.Active || s.Period != 2 {
		t.Errorf("is %s", w.describe(n))
	}
	w.report(t)
}

// TestTakenBack_Park: nothing is charged until an operator decides.
func TestTakenBack_Park(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		decide func(p *process, n billing.Name) error
		on     string // the day of the decision
		paid   int
	}{
		"resume": {func(p *process, n billing.Name) error { _, err := p.Resume(ctx, n); return err }, "2024-02-10", 2},
		"charge": {func(p *process, n billing.Name) error { _, _, err := p.ChargeParked(ctx, n); return err }, "2024-02-10", 2},
		"charge the due period": {func(p *process, n billing.Name) error { _, _, err := p.ChargeParked(ctx, n); return err },
			"2024-03-01", 2},
		"skip":   {func(p *process, n billing.Name) error { _, err := p.SkipParked(ctx, n); return err }, "2024-03-01", 1},
		"cancel": {func(p *process, n billing.Name) error { _, err := p.Cancel(ctx, n, false); return err }, "2024-03-01", 1},
		"a manual payment of the due period": {func(p *process, n billing.Name) error {
			_, err := p.CreateReceipt(ctx, n, engine.ManualPayment{Period: new(1)})
			return err
		}, "2024-03-01", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, n := parking()
			w.takeBack(t, n)
			w.wantParked(t, n, 1)
			w.daily(test.on)
			w.wantParked(t, n, 1)
			mustNot(t, test.decide(w.start(), n))
			w.daily("2024-03-30")
			if s := w.sub(n); s.Status == billing.ParkedState || s.Paid != test.paid {
				t.Errorf("after the decision: %s", w.describe(n))
			}
			w.report(t)
		})
	}
}

// TestTakenBack_ResumeIsNotABackCharge: an overdue period is charged or skipped, and never becomes void unsaid.
func TestTakenBack_ResumeIsNotABackCharge(t *testing.T) {
	w, n := parking()
	w.takeBack(t, n)
	w.daily("2024-03-01")
	_, err := w.start().Resume(t.Context(), n)
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "period 1 was due on 2024-02-29; charge or skip it first")
	w.wantParked(t, n, 1)
	w.report(t)
}

// TestTakenBack_WhileThePeriodIsOpen: the open period may still be paid, and the one after it is parked.
func TestTakenBack_WhileThePeriodIsOpen(t *testing.T) {
	w, n := parking()
	w.newMethod(n, "pm_sandbox_processing")
	charge := w.sub(n).LastCharge
	w.daily("2024-02-29")
	w.makeReturn(t, processor.Disputed, charge, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	w.wantParked(t, n, 1)
	mustNot(t, w.box.Finish(w.sub(n).Open.Ref, true))
	w.tomorrow()
	w.start().run(civil.Date{})
	w.wantParked(t, n, 2)
	_, err := w.start().Resume(t.Context(), n)
	mustNot(t, err)
	if s := w.sub(n); s.Status != billing.Active || s.Paid != 2 {
		t.Errorf("after the decision: %s", w.describe(n))
	}
	w.report(t)
}

// TestTakenBack_BeforeTheSettle: the bank is faster than the commit of the receipt.
func TestTakenBack_BeforeTheSettle(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	w.cfg.AfterReversal = settings.Park
	n := w.create(one("2024-01-31", method("pm_sandbox_processing")))
	w.start().run(civil.Date{})
	ref := w.sub(n).Open.Ref
	mustNot(t, w.box.Finish(ref, true))
	w.makeReturn(t, processor.Disputed, ref, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	w.wantParked(t, n, 0)
	w.tomorrow()
	w.start().run(civil.Date{})
	w.wantParked(t, n, 1)
	w.report(t)
}

// TestTakenBack_EveryCrashPoint: the subscription is parked if, and only if, the reversal is recorded.
func TestTakenBack_EveryCrashPoint(t *testing.T) {
	for point, more := 1, true; more; point++ {
		for _, crash := range []bool{true, false} {
			w, n := parking()
			w.makeReturn(t, processor.Disputed, w.sub(n).LastCharge, 1299, processor.ReversalSucceeded)
			p := w.start(fault{point, crash})
			_, _ = p.collect()
			more = p.faults.struck()
			if recorded, parked := w.states(t) != "", w.sub(n).Status == billing.ParkedState; recorded != parked {
				t.Errorf("point %d, crash %t: recorded %t, parked %t", point, crash, recorded, parked)
			}
			_, err := w.start().collect()
			mustNot(t, err)
			w.wantParked(t, n, 1)
			w.report(t)
		}
	}
}

// TestTakenBack_PaidAgain: an operator records another payment of the period, once, and never beside money that
// the merchant has.
func TestTakenBack_PaidAgain(t *testing.T) {
	ctx := context.Background()
	w, n := charged(planted{})
	again := func(m engine.ManualPayment) (*engine.Recorded, error) {
		m.Period, m.Note = new(0), "wire 42"
		return w.start().CreateReceipt(ctx, n, m)
	}
	refused := func(part string) {
		t.Helper()
		_, err := again(engine.ManualPayment{})
		wantErr(t, err, billing.ErrState)
		wantText(t, err, "period 0 is paid (receipt 2024", part)
	}
	refused("charge)")
	r := w.makeReturn(t, processor.Disputed, w.sub(n).LastCharge, 1299, processor.ReversalPending)
	w.mustCollect(t, 1)
	refused("only a reversal of the whole amount allows another payment: dispute dp_sandbox_")
	mustNot(t, w.sandbox().MoveReversal(r.ID, processor.ReversalSucceeded))
	w.mustCollect(t, 1)
	p, err := w.start().Prove(ctx, n, 0)
	mustNot(t, err)
	if p.State != "reversed" || p.Alarm || !strings.Contains(p.Why, "the customer has the money back") {
		t.Errorf("the proof: %s, %t, %s", p.State, p.Alarm, p.Why)
	}
	_, err = again(engine.ManualPayment{Amount: usd(1298)})
	wantText(t, err, "must be 12.99 USD, which period 0 owes")
	_, err = again(engine.ManualPayment{Amount: usd(1300)})
	wantText(t, err, "--overpaid")
	before := w.sub(n)
	got, err := again(engine.ManualPayment{Date: date("2024-01-31")})
	mustNot(t, err)
	if x := got.Receipt; x.Kind != billing.External || x.Period != 0 || x.Amount != usd(1299) || !x.Expires.IsZero() || x.Charge != "wire 42" {
		t.Errorf("the receipt is %+v", x)
	}
	if s := w.sub(n); s.Paid != before.Paid || s.Period != before.Period || s.NextPayment != before.NextPayment || s.Status != before.Status {
		t.Errorf("the subscription was %+v and is %+v", before, s)
	}
	_, err = again(engine.ManualPayment{})
	wantErr(t, err, billing.ErrState)
	p, err = w.start().Prove(ctx, n, 0)
	mustNot(t, err)
	if p.State != "paid" || p.Alarm || !strings.Contains(p.Why, "the manual payment settles the period") {
		t.Errorf("the proof: %s, %t, %s", p.State, p.Alarm, p.Why)
	}
	w.report(t)

	// the appeal is won: both payments stand, and nothing hides it
	mustNot(t, w.sandbox().MoveReversal(r.ID, processor.ReversalFailed))
	w.mustCollect(t, 1)
	w.wantStates(t, "dispute 12.99 failed")
	rep, err := w.start().Verify(ctx)
	mustNot(t, err)
	if len(rep.Problems) > 0 || len(rep.Notes) != 1 || rep.Notes[0].Kind != "overpaid" || !strings.Contains(rep.Notes[0].Detail, "12.99") {
		t.Errorf("the audit: %+v, notes %+v", rep.Problems, rep.Notes)
	}
	p, err = w.start().Prove(ctx, n, 0)
	mustNot(t, err)
	if !strings.Contains(p.Why, "A manual payment came in addition: return one of them.") {
		t.Errorf("the proof: %s", p.Why)
	}
	w.refund(t, refund.Order{Name: n}) // the charge can be given back beside the manual payment
	w.report(t)
}

// TestTakenBack_LongAfter: the receipt of the charge has expired, and that of the other payment never does.
func TestTakenBack_LongAfter(t *testing.T) {
	ctx := context.Background()
	w, n := charged(planted{})
	ref := w.sub(n).LastCharge
	w.daily("2024-10-31")
	found, err := w.start().ReceiptsOf(ctx, n, 0)
	if mustNot(t, err); len(found) != 0 {
		t.Fatal("the receipt has not expired")
	}
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(0)})
	wantText(t, err, "its receipt has expired")
	r := w.makeReturn(t, processor.Disputed, ref, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{PaymentDay: new(5)}) // whose schedule has no period 0
	mustNot(t, err)
	again, err := w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(0)})
	mustNot(t, err)
	if again.Receipt.Due != date("2024-01-31") {
		t.Errorf("another payment of period 0 was due on %s", again.Receipt.Due)
	}
	p, err := w.start().Prove(ctx, n, 0)
	mustNot(t, err)
	if p.State != "paid" || p.Alarm || !strings.Contains(p.Why, "the manual payment settles the period") {
		t.Errorf("the proof: %s, %t, %s", p.State, p.Alarm, p.Why)
	}
	w.daily("2025-10-31")
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(0)})
	wantErr(t, err, billing.ErrState)
	w.report(t)
	mustNot(t, w.sandbox().MoveReversal(r.ID, processor.ReversalFailed))
	_, err = w.start().Refunds().Collect(ctx, time.Time{})
	mustNot(t, err)
	rep, err := w.start().Verify(ctx)
	mustNot(t, err)
	if len(rep.Problems) > 0 || len(rep.Notes) != 1 || rep.Notes[0].Kind != "overpaid" {
		t.Errorf("the audit: %+v, notes %+v", rep.Problems, rep.Notes)
	}
	if p, err = w.start().Prove(ctx, n, 0); err != nil || !p.Alarm || !strings.Contains(p.Why, "paid twice") {
		t.Errorf("the proof: %v, %t, %s", err, p.Alarm, p.Why)
	}
}

// TestTakenBack_Overpaid: the charge goes back to a customer who paid otherwise, too. The overpayment settles the
// period, also when the receipt of the charge has expired, and nobody records a third payment.
func TestTakenBack_Overpaid(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	n := w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
	w.start().run(civil.Date{})
	ref := w.sub(n).Open.Ref
	mustNot(t, w.box.Authenticate(ref))
	over, err := w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(0), Note: "wire 41"})
	if mustNot(t, err); over.Receipt.Kind != billing.Overpayment {
		t.Fatalf("the receipt is %+v", over.Receipt)
	}
	settled := func(notes int, part string) {
		t.Helper()
		_, err := w.start().CreateReceipt(w.keyed(ctx, "wire 42"), n, engine.ManualPayment{Period: new(0), Note: "wire 42"})
		wantErr(t, err, billing.ErrState)
		wantText(t, err, "period 0 is paid")
		p, err := w.start().Prove(ctx, n, 0)
		if mustNot(t, err); p.State != proof.Paid || p.Alarm || !strings.Contains(p.Why, part) {
			t.Errorf("the proof: %s, %t, %s", p.State, p.Alarm, p.Why)
		}
		rep, err := w.start().Verify(ctx)
		if mustNot(t, err); len(rep.Problems) > 0 || len(rep.Notes) != notes {
			t.Errorf("the audit: %+v, notes %+v", rep.Problems, rep.Notes)
		}
		w.report(t)
	}
	settled(1, "A manual payment came in addition: return one of them.")
	w.newMethod(n, "pm_card_visa")
	w.daily("2024-10-31")
	found, err := w.start().ReceiptsOf(ctx, n, 0)
	if mustNot(t, err); len(found) != 1 || found[0].Kind != billing.Overpayment {
		t.Fatalf("receipts that have not expired: %v", found)
	}
	settled(1, "A manual payment came in addition: return one of them.")
	r := w.makeReturn(t, processor.Disputed, ref, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	settled(0, "The whole charge was reversed, and the manual payment settles the period.")
	mustNot(t, w.sandbox().MoveReversal(r.ID, processor.ReversalFailed)) // the appeal is won
	w.mustCollect(t, 1)
	settled(1, "A manual payment came in addition: return one of them.")
}

// TestTakenBack_InPart: a part of the payment back is no reason for another payment of the whole.
func TestTakenBack_InPart(t *testing.T) {
	w, n := charged(planted{})
	w.makeReturn(t, processor.Disputed, w.sub(n).LastCharge, 1298, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: new(0)})
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "of 12.98 USD is succeeded")
	w.makeReturn(t, processor.Refunded, w.sub(n).LastCharge, 1, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	_, err = w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: new(0)})
	mustNot(t, err)
	w.report(t)
}

// TestTakenBack_TwoPeople: two operators record the payment at the same time, and one receipt is written.
func TestTakenBack_TwoPeople(t *testing.T) {
	ctx := context.Background()
	for point := 1; ; point++ {
		w, n := charged(planted{})
		w.takeBack(t, n)
		p := w.start(fault{point, false})
		_, first := p.CreateReceipt(ctx, n, engine.ManualPayment{Period: new(0)})
		_, second := w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(0)})
		found, err := w.start().ReceiptsOf(ctx, n, 0)
		mustNot(t, err)
		if len(found) != 2 || first == nil && second == nil {
			t.Errorf("point %d: %v, %v, %d receipts", point, first, second, len(found))
		}
		w.report(t)
		if !p.faults.struck() {
			return
		}
	}
}

// TestTakenBack_Installments: the other payment is not one more installment.
func TestTakenBack_Installments(t *testing.T) {
	w, n := parking(func(s *billing.NewSubscription) { s.Installments = 2 })
	w.takeBack(t, n)
	_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: new(0)})
	mustNot(t, err)
	_, err = w.start().Resume(t.Context(), n)
	mustNot(t, err)
	w.daily("2024-03-31")
	if s := w.sub(n); s.Status != billing.Completed || s.Paid != 2 {
		t.Errorf("is %s", w.describe(n))
	}
	w.report(t)
}

// TestTakenBack_TellsTheOperator: one mail for each state of a dispute, with the day by which evidence is due.
func TestTakenBack_TellsTheOperator(t *testing.T) {
	w, n := parking()
	w.cfg.Operator, w.cfg.MerchantName, w.cfg.TimeZone = "ops@example.com", "Gym", "Asia/Tokyo"
	due := time.Date(2024, 2, 9, 23, 59, 59, 0, time.UTC)
	r, err := w.sandbox().MakeReversal(processor.Reversal{Kind: processor.Disputed, Ref: w.sub(n).LastCharge, Amount: usd(1299),
		State: processor.ReversalPending, Reason: "fraudulent", EvidenceDue: due})
	mustNot(t, err)
	seen := map[string]bool{}
	mail := func() (subject, text string) {
		t.Helper()
		w.mustCollect(t, 1)
		w.mustCollect(t, 0)
		found := 0
		for it, err := range w.spy.Scan(t.Context(), store.Scan{Table: w.tables.Outbox.Name}) {
			mustNot(t, err)
			f, err := outbox.Decode(it)
			mustNot(t, err)
			if f.Kind == outbox.KindOperator && !seen[f.ID] {
				found++
				seen[f.ID], subject, text = true, f.Data[outbox.DataSubject], f.Data[outbox.DataText]
			}
		}
		if found != 1 {
			t.Fatalf("%d new mails to the operator", found)
		}
		return subject, text
	}
	subject, text := mail()
	equal(t, []string{subject}, []string{"Duesday (Gym): a dispute about $12.99, evidence is due by 2024-02-10"})
	for _, part := range []string{"period 0 of subscription a1/s1", "fraudulent", r.ID, "due by 2024-02-10 (2024-02-09T23:59:59"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
	records, err := w.start().ReversalsOf(t.Context(), "a1")
	mustNot(t, err)
	if len(records) != 1 || !records[0].Evidence.Equal(due) {
		t.Errorf("recorded: %+v", records)
	}
	mustNot(t, w.sandbox().MoveReversal(r.ID, processor.ReversalSucceeded))
	subject, text = mail()
	equal(t, []string{subject}, []string{"Duesday (Gym): $12.99 was taken back"})
	if !strings.Contains(text, "duesday subscription resume a1/s1") || !strings.Contains(text, "duesday receipt create a1/s1 --period 0") {
		t.Error(text)
	}
	mustNot(t, w.sandbox().MoveReversal(r.ID, processor.ReversalFailed))
	subject, _ = mail()
	equal(t, []string{subject}, []string{"Duesday (Gym): a dispute about $12.99 is won"})
	w.report(t)
}

// TestTakenBack_Random plays returns, appeals and operators in any order, among processes that are cut off.
// The audits of the world and of the engine find no period that is charged or settled twice.
func TestTakenBack_Random(t *testing.T) {
	ctx := context.Background()
	did := map[string]int{}
	for seed := range uint64(60) {
		rng := seeded(seed)
		w := newWorld("2024-01-31T09:00", planted{proc: gives})
		w.cfg.AfterReversal = pick(rng, settings.Nothing, settings.Park, settings.Park)
		n := w.create(one("2024-01-31", method(pick(rng, "pm_card_visa", "pm_sandbox_processing"))))
		var disputes []string
		charges := map[string]bool{} // disputed
		for range 100 {
			w.goTo(w.today().AddDays(1 + rng.IntN(3)))
			var cut []fault
			if rng.IntN(4) == 0 {
				cut = append(cut, fault{1 + rng.IntN(20), rng.IntN(2) == 0})
			}
			p := w.start(cut...)
			p.run(civil.Date{})
			s := w.sub(n)
			if s.Open != nil && w.state(s.Open.Ref) == processor.Processing && rng.IntN(3) == 0 {
				_ = w.box.Finish(s.Open.Ref, true)
			}
			switch ref := s.LastCharge; rng.IntN(8) {
			case 0:
				if ref != "" && !charges[ref] {
					r, err := w.sandbox().MakeReversal(processor.Reversal{Kind: processor.Disputed, Ref: ref,
						Amount: usd(pick(rng, int64(1299), 1299, 500)), State: pick(rng, processor.ReversalPending, processor.ReversalSucceeded)})
					mustNot(t, err)
					charges[ref], disputes = true, append(disputes, r.ID)
					did["return"]++
				}
			case 1:
				if len(disputes) > 0 {
					mustNot(t, w.sandbox().MoveReversal(pick(rng, disputes...), pick(rng, processor.ReversalSucceeded, processor.ReversalFailed)))
				}
			case 2, 3:
				if _, err := p.CreateReceipt(ctx, n, engine.ManualPayment{Period: new(rng.IntN(s.Period + 1))}); err == nil {
					did["manual payment"]++
				}
			case 4:
				if _, err := p.Resume(ctx, n); err == nil {
					did["resume"]++
				}
			case 5:
				if _, _, err := p.ChargeParked(ctx, n); err == nil {
					did["charge"]++
				}
			case 6:
				if _, err := p.SkipParked(ctx, n); err == nil {
					did["skip"]++
				}
			}
			if w.sub(n).Status == billing.ParkedState {
				did["parked"]++
			}
		}
		if s := w.sub(n); s.Open != nil && w.state(s.Open.Ref) == processor.Processing {
			mustNot(t, w.box.Finish(s.Open.Ref, true))
		}
		w.tomorrow()
		w.start().run(civil.Date{})
		_, err := w.start().Refunds().Collect(ctx, time.Time{})
		mustNot(t, err)
		if w.report(t); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, move := range []string{"return", "manual payment", "resume", "charge", "skip", "parked"} {
		if did[move] == 0 {
			t.Errorf("no %s: %v", move, did)
		}
	}
	t.Log(did)
}

// TestTakenBack_BeforeARetry: the open period was declined, and every run reports that an operator must decide
// instead of waiting for the retry day.
func TestTakenBack_BeforeARetry(t *testing.T) {
	w, n := parking()
	charge := w.sub(n).LastCharge
	w.newMethod(n, "pm_card_visa_chargeDeclined")
	w.daily("2024-03-01") // the first retry, so the next one is in two days
	w.makeReturn(t, processor.Disputed, charge, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	w.wantParked(t, n, 1)
	before := len(w.attempts())
	for range 9 {
		if got := w.start().run(civil.Date{}).Counts; got[engine.OutcomeParked] != 1 {
			t.Errorf("on %s: %v", w.today(), got)
		}
		w.tomorrow()
	}
	if got := w.attempts(); len(got) != before {
		t.Errorf("charged while parked: %v", got)
	}
	w.wantParked(t, n, 1)
	w.report(t)
}

// TestTakenBack_ByAFastClock: the clock is put right again, and the subscription stays parked for the operator.
func TestTakenBack_ByAFastClock(t *testing.T) {
	w, n := parking()
	w.records = true
	w.start().run(civil.Date{})
	w.set("2024-02-20T09:00")
	w.takeBack(t, n)
	w.start().run(civil.Date{})
	w.set("2024-02-01T09:00")
	mustNot(t, w.start().SetCharging(t.Context(), true, ""))
	w.wantParked(t, n, 1)
	if got := w.start().run(civil.Date{}).Counts; got[engine.OutcomeParked] != 1 || w.sub(n).NextPayment.After(w.today()) {
		t.Errorf("reported %v: %s", got, w.describe(n))
	}
	w.daily("2024-03-31")
	w.wantParked(t, n, 1)
	w.report(t)
}
