package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// A ManualPayment is a payment taken outside Duesday, as a person reports it.
type ManualPayment struct {
	Period *int         // nil selects the period that is due at the first read
	Amount money.Amount // must be the period's amount; zero selects it
	Note   string       // the person's reference
	// Overpaid accepts an amount that is larger than the period's.
	Overpaid bool
	Date     civil.Date // day of the payment in the subscription's time zone; zero means now
}

// Check returns a FieldError for each wrong field as one error, or nil.
func (m *ManualPayment) Check() error {
	var period error
	if m.Period != nil && *m.Period < 0 {
		period = billing.Invalid("period", "must be 0 or more, as receipt list and subscription show print it")
	}
	return errors.Join(period, billing.CheckText("note", m.Note, billing.MaxText))
}

// taken returns the time of the payment, which is now or on an earlier day of the subscription. For
// an earlier day, taken returns the day's first instant that is on the same day in the reports'
// zone, so that reports count the payment in that month.
func (m *ManualPayment) taken(s *billing.Subscription, now time.Time, zone string) (time.Time, error) {
	switch today := s.Today(civil.Date{}, now); {
	case m.Date.IsZero() || m.Date == today:
		return now, nil
	case m.Date.After(today):
		return now, billing.Invalid("date", "must be today, "+today.String()+", or earlier")
	}
	in := func(zone string) *time.Location {
		if loc, err := civil.Zone(cmp.Or(zone, "UTC")); err == nil {
			return loc
		}
		return time.UTC
	}
	at, reported := m.Date.In(in(s.TimeZone)), m.Date.In(in(zone))
	if reported.After(at) && reported.Before(m.Date.AddDays(1).In(in(s.TimeZone))) {
		at = reported
	}
	return at.UTC(), nil
}

// Recorded is the result of CreateReceipt.
type Recorded struct {
	Period    int
	Receipt   *billing.Receipt // an overpayment if the period was also charged; nil if requested or expired
	Requested bool             // the intent cannot be cancelled yet, so the payment runs continue the request
	Repeated  bool             // the key was known
}

// CreateReceipt performs access pattern 2 for a person: it records a manual payment that settles an
// unpaid period without a charge. The period is the due or parked one, or a past one whose record
// says failed, void or skipped. While an intent is live, CreateReceipt commits the payment as a
// request, and then cancels the intent. It also records another payment of a past period whose whole
// payment was reversed. If the customer pays the intent in the meantime, the manual
// payment becomes an overpayment. CreateReceipt returns ErrState if the period is paid or not due.
func (e *Engine) CreateReceipt(ctx context.Context, n billing.Name, m ManualPayment) (*Recorded, error) {
	if err := errors.Join(billing.CheckKey(ctx), m.Check()); err != nil {
		return nil, err
	}
	full, err := e.Subscription(ctx, n)
	if err != nil {
		return nil, err
	}
	at, err := m.taken(full, e.Now(), e.cfg.TimeZone)
	if err != nil {
		return nil, err
	}
	if err := e.Charging().CheckRollbackOf(ctx, n.Account, true); err != nil {
		return nil, err
	}
	t := manualRequest{once: once{Engine: e}, ManualPayment: m, period: full.Period, at: at}
	t.asked = billing.KeyedRequest{Name: full.Name, Kind: billing.KeyedReceipt, Period: billing.AnyPeriod,
		Amount: m.Amount, Note: m.Note, Taken: m.Date}
	if m.Period != nil {
		t.period, t.asked.Period = *m.Period, *m.Period
	}
	if err := t.commit(ctx); err != nil {
		return nil, err
	}
	if t.rec != nil {
		return &Recorded{Period: t.period, Receipt: t.rec}, nil
	}
	return t.carryOn(ctx)
}

// A manualRequest is one call of CreateReceipt.
type manualRequest struct {
	once
	ManualPayment
	period   int
	at       time.Time
	asked    billing.KeyedRequest
	repeated bool
	amount   money.Amount     // amount to record
	rec      *billing.Receipt // committed receipt; nil if an intent was open or the request is repeated
}

// commit commits the receipt or, while an intent is live, the request for the receipt.
func (t *manualRequest) commit(ctx context.Context) error {
	defer t.locks.Lock(t.asked.Name)()
	return t.reload(ctx, t.asked.Name, func(s *billing.Subscription) error {
		landed, err := t.landed(ctx, s)
		if landed || err != nil {
			return err
		}
		before, err := t.Keyed(ctx, &t.asked)
		if before != nil && err == nil {
			t.period, t.repeated, t.rec = before.Period, true, nil
		}
		if before != nil || err != nil {
			return err
		}
		decide := t.due
		switch {
		case s.Open != nil && s.Open.Period == t.period:
			decide = t.live
		case s.Period > t.period:
			decide = t.past
		}
		k := t.asked
		writes, err := decide(ctx, s)
		if err == nil && !t.repeated {
			err = t.onlyOne(ctx, s)
		}
		if err != nil || t.repeated {
			return err
		}
		k.Period, k.Amount, k.Taken = t.period, t.amount, billing.TodayIn(s.TimeZone, t.at)
		k.Fix(ctx)
		return t.put(ctx, s, writes...)
	})
}

// onlyOne returns a FieldError if a request without a period and key might mean a different period
// than the one it would settle. This is so if the following period is also due, or if a similar
// payment settled the previous period. Repeating such a request would settle both periods.
func (t *manualRequest) onlyOne(ctx context.Context, s *billing.Subscription) error {
	if t.ManualPayment.Period != nil || call.KeyOf(ctx) != "" {
		return nil
	}
	day := billing.TodayIn(s.TimeZone, t.at)
	due, err := s.Schedule().Due(t.period + 1)
	last := s.Over() || s.Open != nil && s.Installments > 0 && s.Paid+1 >= s.Installments
	if err == nil && !last && !due.After(billing.TodayIn(s.TimeZone, t.Now())) {
		return billing.Invalid("period", fmt.Sprintf("periods %d and %d are both due; name the period that was "+
			"paid, or give the payment a key", t.period, t.period+1))
	}
	before, err := t.ReceiptsOf(ctx, s.Name, t.period-1)
	for _, r := range before {
		if r.Kind == billing.External && r.Amount == t.amount && r.Charge == t.Note &&
			billing.TodayIn(s.TimeZone, r.Processed) == day {
			return billing.Invalid("period", fmt.Sprintf("a payment of %s with this date and note is already recorded for period %d; "+
				"to record another one, name its period or give it a key", t.amount, t.period-1))
		}
	}
	return err
}

// carryOn cancels the intent of a request, and returns the request's result.
func (t *manualRequest) carryOn(ctx context.Context) (*Recorded, error) {
	n := t.asked.Name
	r := &Recorded{Period: t.period, Repeated: t.repeated}
	s, err := t.Load(ctx, n)
	if err == nil && s.Manual != nil {
		if err = t.collect(ctx, n, work{trigger: byRequest}, func(Result) {}); err == nil {
			s, err = t.Load(ctx, n)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("subscription %s: the payment of period %d is requested, and the next payment run records "+
			"it: %w", n, t.period, err)
	}
	if r.Requested = s.Manual != nil && s.Manual.Period == t.period; r.Requested {
		return r, nil
	}
	found, err := t.ReceiptsOf(ctx, n, t.period)
	for _, rec := range found {
		if rec.Kind != billing.Charged {
			r.Receipt = rec
		}
	}
	return r, err
}

// live requests the manual payment of the open period, unless it is already requested.
func (t *manualRequest) live(ctx context.Context, s *billing.Subscription) ([]write, error) {
	t.amount, t.rec = cmp.Or(t.Amount, s.Open.Amount), nil
	switch m := s.Manual; {
	case m != nil && cmp.Or(t.Amount, m.Amount) == m.Amount && cmp.Or(t.Note, m.Note) == m.Note && call.KeyOf(ctx) == "" &&
		(t.Date.IsZero() || t.Date == billing.TodayIn(s.TimeZone, m.Processed)):
		t.repeated = true
		return nil, nil
	case s.Upgrading():
		return nil, upgrading(s)
	case s.Requested != billing.RequestNone:
		return nil, refusal(s, ": %s is requested for period %d; wait until it is done", s.Requested, s.Open.Period)
	}
	if err := cmp.Or(t.checkAmount(s.Open.Amount), t.NeedFormat(ctx, billing.PastFormat)); err != nil {
		return nil, err
	}
	s.Requested, s.RequestedAt = billing.RequestManual, t.Now()
	s.Manual = &billing.ManualRequest{Period: s.Open.Period, Amount: t.amount, Note: t.Note, Processed: t.at}
	s.NextPayment = s.Today(civil.Date{}, t.Now()) // the next run recovers the period
	return nil, nil
}

// due settles the next period to be paid, which is not open.
func (t *manualRequest) due(_ context.Context, s *billing.Subscription) ([]write, error) {
	today := billing.TodayIn(s.TimeZone, t.Now())
	t.amount = cmp.Or(t.Amount, s.AmountOf(s.Period))
	due, err := s.Due()
	switch err = cmp.Or(err, t.checkAmount(s.AmountOf(s.Period))); {
	case err != nil:
		return nil, err
	case s.AtHand() != s.Period:
		return nil, refusal(s, ": period %d is being collected", s.AtHand())
	case s.Period < t.period:
		return nil, refusal(s, ": period %d is not due; the next period, %d, is due on %s", t.period, s.Period, due)
	case s.Status != billing.Active && s.Status != billing.ParkedState:
		return nil, refusal(s, " is %s, so no period is due; to record a past period, name it with --period", s.Status)
	case s.PaidOff():
		return nil, refusal(s, ": all of its %d installments are paid", s.Installments)
	case due.After(today):
		return nil, refusal(s, ": no period is due before %s", due)
	}
	reversal.Release(s)
	t.rec = t.outside(s, due)
	return t.book(s, t.rec, nil, today), nil
}

// checkAmount returns a FieldError unless the payment equals what the period owes, or exceeds it
// and the person said so. A partial payment would settle the whole period.
func (t *manualRequest) checkAmount(owed money.Amount) error {
	problem := ""
	switch {
	case !t.amount.IsPositive() || t.amount.Currency() != owed.Currency():
	case t.amount.Minor() < owed.Minor():
		problem = "; Duesday cannot record a part, so wait for the rest or return the part"
	case t.amount.Minor() > owed.Minor() && !t.Overpaid:
		problem = "; if the customer paid too much, add --overpaid"
	default:
		return nil
	}
	return billing.Invalid("amount", fmt.Sprintf("must be %s, which period %d owes (got %s)%s", owed, t.period, t.amount, problem))
}

// outside returns the receipt. Its retention starts now, although the payment may be older.
func (t *manualRequest) outside(s *billing.Subscription, due civil.Date) *billing.Receipt {
	rec := t.receipt(s, billing.External, t.amount, due, t.at, t.Note)
	rec.Period, rec.Expires = t.period, expiry(t.Now(), t.cfg.ReceiptMonths)
	return rec
}

// past settles a past period that ended unpaid. The processor must show that no one can pay the
// period's intent any more. If the intent was paid, past adopts the charge.
func (t *manualRequest) past(ctx context.Context, s *billing.Subscription) ([]write, error) {
	if t.ManualPayment.Period == nil { // the period was the due one at the first read
		return nil, passed(s, t.period)
	}
	p, err := t.RecordOf(ctx, s.Name, t.period)
	if errors.Is(err, store.ErrNotFound) {
		return t.again(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	busy := s.AtHand() != t.period && (s.Open != nil || s.Collect > 0) // another period is being charged
	if s.Installments > 0 && (s.PaidOff() || busy && s.Paid+1 >= s.Installments) {
		return nil, refusal(s, ": all of its %d installments are paid, or the last one is being charged", s.Installments)
	}
	t.amount = cmp.Or(t.Amount, p.Amount)
	if err := t.checkAmount(p.Amount); err != nil {
		return nil, err
	}
	today := billing.TodayIn(s.TimeZone, t.Now())
	t.rec = t.outside(s, p.Due)
	t.rec.SKU = p.SKU
	if p.Ref == "" {
		return t.book(s, t.rec, p, today), nil
	}
	switch in, err := t.lastOf(ctx, p); {
	case err != nil:
		return nil, fmt.Errorf("subscription %s: payment intent %s of period %d: %w", s.Name, p.Ref, p.Period, err)
	case in.State == processor.Succeeded: // the record says that the period was not paid
		t.rec.Kind = billing.Overpayment
		return append(t.bookCharge(s, in, p.Period, p.SKU, p.Due, p, today), t.putReceipt(t.rec)), nil
	case in.State != processor.Canceled:
		return nil, refusal(s, ": payment intent %s of period %d is %s and could still be paid", p.Ref, p.Period, in.State)
	}
	return t.book(s, t.rec, p, today), nil
}

// again records another payment of a past period that was paid, if the whole payment was reversed. The
// subscription does not change, because it has counted the period's payment. The receipt never expires,
// so there is never a third payment.
func (t *manualRequest) again(ctx context.Context, s *billing.Subscription) ([]write, error) {
	receipts, err := t.ReceiptsOf(ctx, s.Name, t.period)
	list, failed := t.ReversalsOf(ctx, s.Account)
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	debt := reversal.DebtOf(receipts, list, s.ID, t.period)
	if debt == nil || debt.About == "" {
		return nil, t.isPaid(ctx, s, "")
	}
	first := debt.Receipt
	if first == nil {
		in, err := processor.Ask(ctx, func() (processor.Intent, error) { return t.proc.Lookup(ctx, debt.Charge) })
		if err != nil {
			return nil, fmt.Errorf("subscription %s: charge %s of period %d: %w", s.Name, debt.Charge, t.period, err)
		}
		due, err := s.Schedule().Due(t.period)
		if err != nil { // the schedule has changed since, and has no day for the period
			due = billing.TodayIn(s.TimeZone, cmp.Or(in.Opened, in.Changed))
		}
		first = &billing.Receipt{SKU: in.Tag.SKU, Due: due, Amount: in.Amount}
	}
	if reversal.Of(list, debt.Charge, first.Amount) != reversal.Reversed {
		return nil, t.isPaid(ctx, s, "; only a reversal of the whole amount allows another payment: "+debt.About)
	}
	t.amount = cmp.Or(t.Amount, first.Amount)
	if err := t.checkAmount(first.Amount); err != nil {
		return nil, err
	}
	t.rec = t.outside(s, first.Due)
	if t.rec.SKU, t.rec.Expires = first.SKU, (time.Time{}); t.amount == first.Amount {
		t.rec.Price = first.Price
	}
	mail := t.effect(outbox.KindReceipt, s, nil, t.rec)
	mail.ID += "/again"
	return append(t.mail(s, mail), t.putReceipt(t.rec)), nil
}

// isPaid returns the error for a request about a past period that has no record of another end.
func (t *manualRequest) isPaid(ctx context.Context, s *billing.Subscription, why string) error {
	r, err := t.receiptOf(ctx, s.Name, t.period)
	if err != nil {
		return err
	}
	by := "its receipt has expired"
	if r != nil {
		by = fmt.Sprintf("receipt %s of %s, %s", r.Number(t.Opened.Installation), r.Processed.Format(time.DateOnly), r.Kind)
	}
	return refusal(s, ": period %d is paid (%s)%s", t.period, by, why)
}

// endManual closes the open period, whose intent is cancelled, with the requested manual payment.
func (e *Engine) endManual(ctx context.Context, s *billing.Subscription, today civil.Date) (step, error) {
	r := resultOf(s, OutcomeSkipped, "it was paid outside")
	past, err := e.collected(ctx, s)
	if err != nil {
		return step{}, err
	}
	others := e.book(s, e.manualReceipt(s, billing.External), past, today)
	return step{result: r, again: goesOn(s, today)}, e.put(ctx, s, others...)
}

// overpaid is the reason for a period that was charged while a person requested its manual payment.
const overpaid = "it was paid outside, too: give one of the payments back"

// manualReceipt returns the receipt for the requested payment.
func (e *Engine) manualReceipt(s *billing.Subscription, kind billing.ReceiptKind) *billing.Receipt {
	m := s.Manual
	rec := e.receipt(s, kind, m.Amount, s.Open.Due, m.Processed, m.Note)
	rec.Period, rec.SKU, rec.Expires = m.Period, s.SKUOf(s.Open), expiry(e.Now(), e.cfg.ReceiptMonths)
	return rec
}
