package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/cardupdate"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// reload calls step with the subscription's current state, and calls it again after each retryable
// error.
func (e *Engine) reload(ctx context.Context, n billing.Name, step func(*billing.Subscription) error) error {
	return store.Retry(ctx, "subscription "+n.String(), func() error {
		s, err := e.Load(ctx, n)
		if err != nil {
			return err
		}
		return step(s)
	})
}

// A decision changes the subscription and returns the other writes for the same commit.
type decision func(s *billing.Subscription, today civil.Date) ([]write, error)

// change commits what decide returns, only once. It returns the subscription even if decide fails, and
// unchanged if the context's call repeats an earlier one.
func (e *Engine) change(ctx context.Context, n billing.Name, decide decision) (s *billing.Subscription, err error) {
	return e.changeUnless(ctx, n, func() (bool, error) {
		row, err := call.Begin(ctx, e.Store, nil)
		return row != nil, err
	}, decide)
}

// changeUnless is change, where repeated reports whether the request was committed before.
func (e *Engine) changeUnless(ctx context.Context, n billing.Name, repeated func() (bool, error),
	decide decision) (s *billing.Subscription, err error) {
	if _, err := e.CheckClock(ctx); err != nil {
		return nil, err
	}
	full, err := e.Subscription(ctx, n)
	if err != nil {
		return nil, err
	}
	defer e.locks.Lock(full.Name)()
	o := once{Engine: e}
	err = e.reload(ctx, full.Name, func(now *billing.Subscription) error {
		s = now
		if landed, err := o.landed(ctx, now); landed || err != nil {
			return err
		}
		if before, err := repeated(); before || err != nil {
			return err
		}
		today := now.Today(e.day, e.Now())
		others, err := decide(now, today)
		if err == nil && !e.day.IsZero() {
			var found []store.Write
			found, err = e.findable(ctx, now, today)
			others = append(others, plain(found...)...)
		}
		if errors.Is(err, billing.ErrUnchanged) {
			return cmp.Or(orConflict(call.Store(ctx, e.Store)), err)
		}
		if err != nil {
			return err
		}
		if err = o.put(ctx, now, others...); err != nil {
			s = nil
		}
		return err
	})
	return s, err
}

// findable moves the row of a change on a business day to a date where the next runs find it, as a
// run does with waiting rows. It returns the writes for the low watermark.
func (e *Engine) findable(ctx context.Context, s *billing.Subscription, today civil.Date) ([]store.Write, error) {
	if due, err := s.Due(); s.NextPayment == today && (s.Open != nil || s.Upgrading() || s.Status != billing.Active || err != nil) {
		s.NextPayment = e.agendaDay(s, today)
	} else if s.NextPayment == today {
		s.NextPayment = civil.Later(due, e.agendaDay(s, today))
	}
	return e.WatermarkWrites(ctx, s.NextPayment, s.NextReminder)
}

// UpdateSubscription changes the amount, day, method, address or reminder. The next payment run
// tries an open period with a new method. If the processor keeps the customer, the customer must
// own the method.
func (e *Engine) UpdateSubscription(ctx context.Context, n billing.Name,
	c billing.Change) (*billing.Subscription, error) {
	var payer processor.Payer
	if c.Collection != nil && *c.Collection == billing.ByWire {
		if err := e.NeedFormat(ctx, billing.WireFormat); err != nil {
			return nil, err
		}
	}
	if c.Tax != nil {
		a, err := e.Account(ctx, n.Account)
		if billing.IgnoreNotFound(err) != nil {
			return nil, err
		}
		c.Tax = c.Tax.In(cmp.Or(a, new(billing.Account)).Details.Address.Country, price.Mode(e.cfg.TaxMode))
	}
	if c.Quantity != nil || c.Discount != nil || c.Tax != nil {
		if err := e.NeedFormat(ctx, billing.TermsFormat); err != nil {
			return nil, err
		}
	}
	if c.Method != nil {
		if err := billing.CheckMethod(*c.Method); err != nil {
			return nil, err
		}
		if err := e.Charging().CheckRollbackOf(ctx, n.Account, false); err != nil {
			return nil, err
		}
		method, p, err := e.ownMethod(ctx, n, *c.Method)
		if err != nil {
			return nil, err
		}
		c.Method, payer = &method, p
	}
	s, err := e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		if s.Over() {
			return nil, wrongStatus(s)
		}
		writes, err := e.changeTerms(s, c, today)
		if err == nil && c.Collection != nil && s.PaidByWire(s.Period) && s.Status == billing.ParkedState && s.Parked == billing.NoMethod {
			var more []write // the subscription no longer needs the record
			more, err = e.unpark(s, today)
			writes = append(writes, more...)
		}
		if err != nil || c.Method == nil {
			return writes, err
		}
		more, err := e.changeMethod(ctx, s, *c.Method, payer, today)
		return append(writes, more...), err
	})
	if err == nil && c.Method != nil && s.Status == billing.PastDue && s.Collection != billing.ByWire && s.NextOpen() == nil && s.Requested == billing.RequestNone {
		return e.Resume(ctx, n) // one commit cannot void all due dates
	}
	return s, err
}

// ownMethod returns the method in the form in which the subscription is charged with it, and the
// payer.
func (e *Engine) ownMethod(ctx context.Context, n billing.Name, method string) (string, processor.Payer, error) {
	if _, ok := e.proc.(processor.Wallet); !ok {
		return method, processor.Payer{}, nil
	}
	payer, err := e.Charging().Payer(ctx, n.Account)
	if err != nil || payer.Customer == "" {
		return method, payer, err
	}
	card, err := e.Cards().OwnCard(ctx, payer, method)
	return card.Method, payer, err
}

// changeMethod sets the subscription's own method. A run tries an open period with the method
// today, unless the period is ending. A past_due subscription becomes active again, and no past
// period is charged.
func (e *Engine) changeMethod(ctx context.Context, s *billing.Subscription, method string, p processor.Payer,
	today civil.Date) (writes []write, err error) {
	s.SetMethod(method, e.Now())
	if s.NextOpen() == nil {
		writes, err = e.follow(ctx, s, cardupdate.Choice{Method: method, Payer: p}, today, cardupdate.Urgency{Asked: true})
	} else {
		if err = e.retry(ctx, s, method, p, today); !s.Open.ByWire() {
			s.Advance(today)
		}
	}
	if errors.Is(err, billing.ErrUnchanged) {
		err = nil
	}
	return writes, err
}

// refusal returns ErrState with the subscription's name followed by the text.
func refusal(s *billing.Subscription, format string, a ...any) error {
	return fmt.Errorf("subscription %s%s: %w", s.Name, fmt.Sprintf(format, a...), billing.ErrState)
}

func wrongStatus(s *billing.Subscription) error {
	return refusal(s, " is %s", s.Status)
}

// Pause stops charging until Resume. An open period ends first. It becomes void, or paid if it was
// already paid.
func (e *Engine) Pause(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	return e.request(ctx, n, billing.RequestPause, civil.Date{}, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		if s.Status == billing.ParkedState {
			return nil, refusal(s, " is parked; charge or skip the period first")
		}
		s.Pause(today)
		return nil, nil
	}, billing.Active, billing.PastDue)
}

// Cancel ends the subscription now or, if atPeriodEnd is set, at the end of the current period. If
// Cancel ends it now, overdue periods become void. The returned subscription is canceled only after
// the processor has shown an open intent cancelled, and money collected before that keeps its
// receipt. At the period's end, the next run charges overdue periods but no later ones.
func (e *Engine) Cancel(ctx context.Context, n billing.Name, atPeriodEnd bool) (*billing.Subscription, error) {
	if atPeriodEnd {
		return e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
			switch {
			case s.Over():
				return nil, wrongStatus(s)
			case s.Status != billing.Active:
				return nil, refusal(s, " is %s: cancel it now", s.Status)
			}
			s.EndWithPeriod(today)
			return nil, nil
		})
	}
	return e.request(ctx, n, billing.RequestCancel, civil.Date{}, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		s.Requested, s.RequestedAt = billing.RequestCancel, cmp.Or(s.RequestedAt, e.Now())
		if s.Status != billing.ParkedState {
			return e.cancel(s, today), nil
		}
		if due, err := s.Due(); err == nil && due.After(today) && reversal.Holds(s) { // the period is not owed
			return append(e.cancel(s, today), e.dropRecord(s, s.Period)), nil
		}
		void := e.ended(s, billing.EndVoid, billing.CancelledVoid, nil)
		return append(e.pass(s, today, false, e.Now()), e.putRecord(void)), nil
	}, billing.Active, billing.Paused, billing.PastDue, billing.ParkedState)
}

// request commits the decision if no period is open. Otherwise, request commits the request, and
// then ends the open period. A skip applies to the period at the first read or, if until is set, to
// all periods due before that day.
func (e *Engine) request(ctx context.Context, n billing.Name, r billing.Request, until civil.Date, closed decision,
	from ...billing.Status) (*billing.Subscription, error) {
	period := -1
	s, err := e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		if period < 0 {
			period = s.Period
		}
		if r == billing.RequestCancel && s.Requested != r && !s.CancelAtEnd {
			s.CancelDate = today
		}
		switch {
		case r == billing.RequestSkip && until.IsZero() && s.Period != period:
			return nil, passed(s, period)
		case !slices.Contains(from, s.Status):
			return nil, wrongStatus(s)
		case (r == billing.RequestPause || !until.IsZero()) && s.Altered() != "":
			return nil, refusal(s, " was %s; the next run parks it, then charge or skip the period", s.Altered())
		case s.Requested == billing.RequestCancel && r != billing.RequestCancel:
			return nil, refusal(s, " is being canceled")
		}
		if err := skips(s, until, today); err != nil {
			return nil, err
		}
		switch {
		case s.Open == nil:
			return closed(s, today)
		case s.Requested == billing.RequestManual:
			return nil, refusal(s, ": a manual payment of period %d is being recorded; wait until it is done", s.Open.Period)
		}
		if s.Requested != r {
			s.Requested, s.RequestedAt = r, e.Now()
		}
		s.NextPayment = today // the next run recovers the period
		return nil, nil
	})
	if err != nil || s.Requested == billing.RequestNone {
		return s, err
	}
	name := s.Name
	if err := e.collect(ctx, name, work{trigger: byRequest, Pass: Pass{Day: e.day}}, func(Result) {}); err != nil {
		return s, fmt.Errorf("%s is requested, and the next payment run will complete it: %w", r, err)
	}
	if s, err = e.Load(ctx, name); err == nil && s.Open != nil {
		const waits = "%s is requested, but the processor does not show the payment intent as canceled yet; the next " +
			"payment run asks again: %w"
		return s, fmt.Errorf(waits, r, billing.ErrState)
	}
	return s, err
}

// Resume makes a paused or past_due subscription active again, and withdraws a cancellation at the
// period's end. Due dates that have passed become void and are not charged. Resume also continues a
// subscription that was parked because of a reversal, if its next period is not overdue.
func (e *Engine) Resume(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	if err := e.Charging().CheckRollbackOf(ctx, n.Account, true); err != nil {
		return nil, err
	}
	for {
		s, err := e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
			switch {
			case s.Requested == billing.RequestCancel:
				return nil, refusal(s, " is being canceled")
			case s.Requested == billing.RequestPause:
				s.Requested = billing.RequestNone
				return nil, nil
			case s.CancelAtEnd && s.Status == billing.Active:
				s.CancelAtEnd, s.CancelDate = false, civil.Date{}
				if due, err := s.Due(); err == nil && s.NextOpen() == nil && s.Altered() == "" {
					s.Reschedule(due, today)
				}
				return nil, nil
			case reversal.Holds(s) && s.Open == nil:
				if due, err := s.Due(); err != nil || due.Before(today) {
					return nil, cmp.Or(err, refusal(s, ": period %d was due on %s; charge or skip it first", s.Period, due))
				}
				return e.unpark(s, today)
			case s.Status != billing.Paused && s.Status != billing.PastDue:
				return nil, wrongStatus(s)
			}
			s.CancelAtEnd, s.CancelDate = false, civil.Date{}
			return e.reactivate(s, today)
		})
		if err != nil || (s.Status != billing.Paused && s.Status != billing.PastDue) {
			return s, err
		}
		if row := call.Of(ctx).Repeats(); row != nil {
			if due, err := s.Due(); err != nil || !due.Before(s.Today(civil.Date{}, row.Created)) {
				return s, err // the first call had voided all due dates, so this status is a later one
			}
		}
		ctx = call.After(ctx)
	}
}

// reactivate voids the due dates before today and makes the subscription active. If one commit
// cannot hold all of them, the status stays, and the caller must call reactivate again.
func (e *Engine) reactivate(s *billing.Subscription, today civil.Date) ([]write, error) {
	if s.NextOpen() != nil {
		return nil, nil
	}
	was := s.Status
	writes, due, err := e.voidBefore(s, today, func(due civil.Date) string {
		if due.Before(s.PausedOn) {
			return "overdue when paused"
		}
		return "due while " + string(was)
	})
	switch {
	case err != nil:
		return nil, err
	case s.PaidOff():
		s.Status = billing.Completed
	case !due.Before(today):
		s.Status = billing.Active
	}
	if s.Status != was {
		s.PausedOn = civil.Date{}
		s.Reschedule(due, today)
	}
	return writes, nil
}

// cancel carries out the requested cancellation in memory, with no period open. It voids the
// periods due by today or, for a cancellation at the period's end, by the day of the request, and
// cancels the subscription. If one commit cannot hold all periods, the next step continues. cancel
// returns the other writes.
func (e *Engine) cancel(s *billing.Subscription, today civil.Date) []write {
	last := civil.Later(today, s.CancelDate) // a run may have an earlier business day than the request
	older := s.CancelAtEnd && s.CancelDate.IsZero()
	if s.CancelAtEnd && !older {
		last = s.CancelDate // no later period is owed
	}
	writes, due, err := e.voidBefore(s, last.AddDays(1), func(due civil.Date) string {
		switch {
		case older:
			return "the subscription ended with its period, as an older Duesday was asked"
		case s.Status == billing.Paused && !due.Before(s.PausedOn):
			return "due while paused"
		}
		return billing.CancelledVoid
	})
	if err != nil || s.PaidOff() || due.After(last) {
		return append(writes, e.cancelled(s)...)
	}
	if s.Manual, s.Collect, s.Parked = nil, 0, ""; s.Status != billing.Paused {
		s.Status = billing.PastDue // an older Duesday on the same store would charge an active subscription
	}
	s.NextPayment, s.NextReminder = e.agendaDay(s, today), civil.Date{}
	return writes
}

// voidBefore records the periods due before the day as void, or as skipped if a person requested
// that, in memory. It records as many periods as one commit can hold, and returns the due date of
// the first period that is left.
func (e *Engine) voidBefore(s *billing.Subscription, day civil.Date,
	reason func(due civil.Date) string) (writes []write, due civil.Date, err error) {
	ending := billing.EndVoid
	if s.Requested == billing.RequestSkip {
		ending = billing.EndSkipped
	}
	for most := store.MaxWrites - 10 - billing.MaxBeside; ; s.Period++ {
		s.TakeEffect()
		due, err = s.Schedule().Due(s.Period)
		if err != nil || s.PaidOff() || !due.Before(day) || len(writes) == most {
			return writes, due, err
		}
		s.EndUpgrade("its period has ended")
		writes = append(writes, e.putRecord(e.ended(s, ending, reason(due), nil)))
	}
}

// SkipParked ends the parked period without a charge. It first cancels a live intent. If the intent
// was already paid, the receipt stays valid.
func (e *Engine) SkipParked(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	if err := e.Charging().CheckRollbackOf(ctx, n.Account, true); err != nil {
		return nil, err
	}
	return e.request(ctx, n, billing.RequestSkip, civil.Date{}, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		if due, err := s.Due(); err != nil || due.After(today) && reversal.Holds(s) {
			return nil, cmp.Or(err, refusal(s, ": period %d is due on %s; resume it instead", s.Period, due))
		}
		reversal.Release(s)
		skipped := e.ended(s, billing.EndSkipped, skippedByPerson, nil)
		return append([]write{e.putRecord(skipped)}, e.pass(s, today, false, e.Now())...), nil
	}, billing.ParkedState)
}

// skippedByPerson is the reason for a period that was skipped on request.
const skippedByPerson = "skipped by a person"

// SkipUntil skips every period that is due before the day, as SkipParked does. The day must be
// tomorrow or earlier. The next run continues an interrupted request. If nothing is due before the
// day, SkipUntil changes nothing.
func (e *Engine) SkipUntil(ctx context.Context, n billing.Name, day civil.Date) (*billing.Subscription, error) {
	if err := cmp.Or(e.NeedFormat(ctx, billing.SkipFormat), e.Charging().CheckRollbackOf(ctx, n.Account, true)); err != nil {
		return nil, err
	}
	s, err := e.request(ctx, n, billing.RequestSkip, day, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		s.Requested, s.RequestedAt = billing.RequestSkip, cmp.Or(s.RequestedAt, e.Now())
		return e.moveOn(s, today), nil
	}, billing.Active, billing.ParkedState)
	if errors.Is(err, billing.ErrUnchanged) {
		err = nil
	}
	return s, err
}

// skips stores the day of SkipUntil, unless the day is zero. It returns ErrUnchanged if nothing is
// due before the day.
func skips(s *billing.Subscription, until, today civil.Date) error {
	if until.IsZero() {
		return nil
	}
	due, err := s.Due()
	switch {
	case err != nil:
		return err
	case until.After(today.AddDays(1)):
		return billing.Invalid("until", fmt.Sprintf("must be %s or earlier, because only periods that are due can be skipped",
			today.AddDays(1)))
	case !due.Before(until) && !s.Upgrading():
		return billing.ErrUnchanged
	}
	if s.SkipUntil = until; s.Open == nil {
		s.EndUpgrade("skip was requested")
	}
	return nil
}

// CollectNow runs today's payment job for one subscription.
func (e *Engine) CollectNow(ctx context.Context, n billing.Name) (results []Result, s *billing.Subscription, err error) {
	if s, err = e.Subscription(ctx, n); err != nil {
		return nil, nil, err
	}
	if err = e.mayCollect(ctx, s); err != nil {
		return nil, s, err
	}
	return e.collectOne(ctx, s, work{trigger: byRun, period: s.Period})
}

// mayCollect returns an error unless a person may charge the subscription now.
func (e *Engine) mayCollect(ctx context.Context, s *billing.Subscription) error {
	if err := e.Charging().CheckRollbackOf(ctx, s.Account, true); err != nil {
		return err
	}
	return e.Charging().MayCharge(ctx)
}

// collectOne calls collect for a person. It returns the results and the resulting subscription.
func (e *Engine) collectOne(ctx context.Context, s *billing.Subscription, w work) (results []Result, now *billing.Subscription, err error) {
	w.Pass = Pass{Day: e.day}
	err = e.collect(ctx, s.Name, w, func(r Result) { results = append(results, r) })
	if err == nil {
		now, err = e.Load(ctx, s.Name)
	}
	return results, cmp.Or(now, s), err
}
