package audit

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
)

// An agenda is what the jobs look at.
type agenda struct {
	from       civil.Date // the oldest date of a walk
	until      civil.Date // tomorrow: it has begun somewhere
	completed  civil.Date // the business day of the last completed run; zero: none
	watermark  civil.Date // the low watermark; zero: none
	partitions [indexes]map[string]bool
	doubts     []doubt
}

// readWalk reads what the next payment run would look at.
func (a *auditor) readWalk(ctx context.Context) (err error) {
	g := &a.agenda
	g.until = a.Today().AddDays(1)
	g.partitions = [indexes]map[string]bool{{}, {}}
	if g.from, err = a.WalkStart(ctx, billing.Payments); err != nil {
		return err
	}
	w, err := a.Watermark(ctx, billing.Payments)
	if err != nil {
		return err
	}
	if w != nil {
		g.watermark = w.Date
	}
	run, err := a.LastDailyRun(ctx, billing.Payments)
	if run != nil {
		g.completed = run.Date
	}
	return err
}

// checkState reports what contradicts itself in the item of a subscription that Duesday wrote.
func (a *auditor) checkState(s *billing.Subscription) {
	problem := func(kind, format string, args ...any) { a.problem(kind, s.Name, s.Period, format, args...) }
	o := s.Open
	switch {
	case s.Ours() && s.Status == billing.Paused && s.PausedOn.IsZero() && (s.Period > 0 || a.told(s)):
		problem("paused without a record", "it has no %s, so another tool may have changed its %s; pause or resume it", schema.PausedDate,
			schema.Status)
	case s.Ours() && s.Status == billing.CanceledSub && s.RequestedAt.IsZero() && a.told(s):
		problem("canceled without a request", "it has no %s, so another tool may have changed its %s", schema.RequestedDate, schema.Status)
	case s.Ours() && s.Status == billing.PastDue && s.Period == 0 && s.Requested != billing.RequestCancel && a.told(s):
		problem("past due without a failure", "none of its periods has ended, so no run charges it; resume or cancel it")
	case (s.Requested == billing.RequestManual) != (s.Manual != nil), s.Manual != nil && o == nil:
		problem("inconsistent manual payment", "request %q, stored payment: %v, open period: %v", s.Requested,
			s.Manual != nil, o != nil)
	case o != nil && (o.Period > s.Period || o.Period < 0 || (o.Ref == "") != o.ByWire()):
		problem("inconsistent open period", "period %d is open, with payment intent %q", o.Period, o.Ref)
	case s.Collect < 0 || s.Collect > s.Period || s.Collect > 0 && (o != nil || s.Over() || s.Status == billing.ParkedState):
		problem("inconsistent collection", "period %d is to be collected", s.Collect-1)
	case strayUpgrade(s):
		problem("inconsistent upgrade", "an upgrade of period %d is under way", s.Upgrade.Period)
	case s.Installments > 0 && s.Paid > s.Installments, s.Paid > s.Period:
		problem("too many installments", "%d installments were paid in %d periods; the plan has %d (0: no end)", s.Paid, s.Period, s.Installments)
	case s.Ours() && !s.Amount.IsPositive():
		problem("invalid amount", "%s", s.Amount)
	case s.Ours() && s.Status == billing.Active && o == nil && s.PaidOff():
		problem("paid off and active", "%d of %d installments were paid, so no run charges it", s.Paid, s.Installments)
	case s.Ours():
		a.checkSchedule(s)
	case o != nil || s.Period > 0:
		problem("version missing", "Duesday wrote it, but its %s is gone", schema.Version)
	}
}

// strayUpgrade reports whether an upgrade is under way that no run would deal with.
func strayUpgrade(s *billing.Subscription) bool {
	return s.Upgrade != nil && s.Upgrade.Reason == "" && (!s.Upgrading() || s.Collect > 0 || s.Over())
}

// checkSchedule reports a schedule without due dates, and a completion before the last installment.
// One that another tool has completed has no period of ours, and the cause is noted.
func (a *auditor) checkSchedule(s *billing.Subscription) {
	next := s.Period
	if s.NextOpen() != nil {
		next++
	}
	_, last := s.Schedule().Due(next) // an error: it is after the last year, or there is no schedule
	err := s.Schedule().Validate()
	switch {
	case s.Status == billing.Completed && last == nil && !s.PaidOff() &&
		(s.Period > 0 || s.RequestedAt.IsZero() && a.told(s)):
		a.problem("completed too early", s.Name, s.Period, "%d of %d installments were paid (0: no end)", s.Paid,
			s.Installments)
	case s.Over():
	case s.Redone != "":
		a.problem("invalid schedule", s.Name, s.Period, "%s", s.Redone)
	case err != nil, s.AnchorPeriod > next, !s.Raw.Has(schema.Anchor):
		a.problem("invalid schedule", s.Name, s.Period, "its anchor %q is for period %d, and its payment day is %d: %v",
			s.Raw.Str(schema.Anchor), s.AnchorPeriod, s.PaymentDay, cmp.Or(err, errors.New("they give no due date")))
	}
}

// checkAgenda reports a subscription that no run finds in time.
func (a *auditor) checkAgenda(s *billing.Subscription) {
	g := &a.agenda
	looked, charged := s.NextPayment, s.Status == billing.Active || s.Status == billing.ParkedState ||
		s.Open != nil || s.Collect > 0 || s.Requested == billing.RequestCancel
	problem := func(kind, format string, args ...any) { a.problem(kind, s.Name, s.Period, format, args...) }
	switch {
	case !charged:
		if s.Ours() && s.Status.Known() && !looked.IsZero() {
			problem("on the agenda", "it is %s, but its NextPaymentDate is %s", s.Status, looked)
		}
		return
	case looked.IsZero() || looked.Before(g.from) || !s.Raw.Has(schema.LastPaymentDate) ||
		!a.Walks(s.Raw.Str(schema.NextPaymentDate)):
		problem("never charged", "it is %s, but no run looks at its NextPaymentDate", s.Status)
		return
	}
	due, err := s.Due()
	closed := s.Status == billing.Active && s.Open == nil && s.Collect == 0 && !s.Upgrading() && s.Ours() && err == nil
	latest := a.latestLook(s, due, err)
	switch {
	case looked.After(latest):
		problem("looked at too late", "its NextPaymentDate is %s, but a run must look at it on %s", looked, latest)
	case closed && looked.Before(due):
		problem("looked at too early", "its NextPaymentDate is %s, but it is due on %s", looked, due)
	case closed && looked.AddDays(1).Before(g.completed) && (g.watermark.IsZero() || g.watermark.After(looked)):
		problem("left out by a run", "it was due on %s, but the run of %s left it out", looked, g.completed)
	case closed && s.LastCharge != "" && s.NextReminder.After(due):
		problem("reminded too late", "its NextReminderDate is %s, but it is due on %s", s.NextReminder, due)
	}
}

// latestLook returns the last day on which a run may look at it without harm. err is that of due.
func (a *auditor) latestLook(s *billing.Subscription, due civil.Date, err error) civil.Date {
	latest := a.agenda.until
	switch {
	case s.NextOpen() != nil:
		ahead := func(t billing.Attempt) bool { return t.At.After(a.Now().AddDate(0, 0, 1)) } // by a clock ahead
		if latest = civil.Later(latest, due); !slices.ContainsFunc(s.Open.Attempts, ahead) {
			latest = civil.Later(latest, civil.Later(s.Open.Retry, s.Open.PayBy))
		}
	case s.Open != nil, s.Collect > 0, s.Upgrading(): // it is looked at every day
	case s.Status == billing.Active && err == nil:
		latest = civil.Later(latest, due)
	}
	return latest
}
