package billing

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Reschedule sets the days of the jobs' next looks at the subscription, none older than today, so
// that walks find it. A past reminder day becomes today if the due date is ahead, else none.
func (s *Subscription) Reschedule(due, today civil.Date) {
	s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	collects := s.Collecting() || s.Collect > 0 || s.Upgrading()
	if s.Status == ParkedState || collects {
		s.NextPayment = today // every run looks at it until it is decided
	}
	if s.Status != Active {
		return
	}
	if !collects {
		s.NextPayment = civil.Later(due, today)
	}
	if s.ReminderDays > 0 && !s.CancelAtEnd && due.After(today) {
		s.NextReminder = civil.Later(due.AddDays(-s.ReminderDays), today)
	}
}

// NotePayment counts a payment of that time. Payments may be noted out of order.
func (s *Subscription) NotePayment(at time.Time) {
	s.Paid++
	if at.After(s.LastPayment) {
		s.LastPayment = at
	}
}

// PaidOff reports whether all installments have been paid: it is never charged again.
func (s *Subscription) PaidOff() bool { return s.Installments > 0 && s.Paid >= s.Installments }

// Cancel ends the subscription for good.
func (s *Subscription) Cancel() {
	s.EndUpgrade("the subscription was canceled")
	s.Status, s.CancelAtEnd = CanceledSub, false
	s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	s.Requested, s.Manual, s.Parked, s.Collect, s.Pending = RequestNone, nil, "", 0, nil
}

// EndWithPeriod has the subscription end with the period that is running on the day of the request.
// The same request again does not move the end.
func (s *Subscription) EndWithPeriod(today civil.Date) {
	if !s.CancelAtEnd {
		s.CancelAtEnd, s.CancelDate = true, today
	}
	s.NextReminder = civil.Date{}
}

// Pause takes the subscription off the agenda.
func (s *Subscription) Pause(today civil.Date) {
	s.EndUpgrade("the subscription was paused")
	s.Status, s.PausedOn = Paused, today
	s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	s.Requested, s.Manual, s.Collect = RequestNone, nil, 0
}

// Unanswered reports whether the last attempt was not declined: the customer has to answer.
func (o *OpenPeriod) Unanswered() bool {
	n := len(o.Attempts)
	return n == 0 || o.Attempts[n-1].Number < o.Attempt
}

// Collecting reports whether the open period is a past one, charged again: Period stays then.
func (s *Subscription) Collecting() bool { return s.Open != nil && s.Open.Period < s.Period }

// MarkCollect has the payment job collect the past period, from that day on.
func (s *Subscription) MarkCollect(period int, today civil.Date) {
	s.Collect, s.NextPayment = period+1, today
}

// AtHand returns the period that the payment job deals with next: the open one, or a past one to be
// collected, or else the one to be paid next.
func (s *Subscription) AtHand() int {
	switch {
	case s.Open != nil:
		return s.Open.Period
	case s.Collect > 0:
		return s.Collect - 1
	}
	return s.Period
}

// NextDue reports whether the due date of an active subscription's next period has come.
func (s *Subscription) NextDue(today civil.Date) bool {
	due, err := s.Due()
	return s.Status == Active && err == nil && !due.After(today)
}

// NextOpen returns the open period if it is the one to be paid next, on its due date, or nil.
func (s *Subscription) NextOpen() *OpenPeriod {
	if s.Beside() {
		return nil
	}
	return s.Open
}

// Use sets the method of the next attempt. A fallback that was tried is not tried again.
func (o *OpenPeriod) Use(method string) {
	if o.Method = method; o.FallbackFor != "" {
		o.FallbackFor = method
	}
}

// ByFallback reports whether the period is tried with the account's fallback.
func (o *OpenPeriod) ByFallback() bool { return o.FallbackFor != "" && o.FallbackFor != o.Method }

// Tried reports whether the open period is tried with the method, now or before its fallback.
func (o *OpenPeriod) Tried(method string) bool { return method == o.Method || method == o.FallbackFor }

// Bound reports whether the intent, perhaps without its connected account, is the open period's.
func (s *Subscription) Bound(intent string) bool {
	if s.Open == nil || intent == "" {
		return false
	}
	_, id, connected := strings.Cut(s.Open.Ref, "/")
	return s.Open.Ref == intent || connected && id == intent
}

// ShowsOvertaken reports whether the intent may show the outcome of an attempt before a person gave
// the period's new method. It does not count against that: at worst it is tried once more.
func (o *OpenPeriod) ShowsOvertaken(in processor.Intent) bool {
	return o.Overtaken && in.Latest != o.Base && (in.State == processor.Declined || in.State == processor.RequiresAction)
}

// Ending reports whether the open period ends unpaid as soon as its intent is shown cancelled.
func (s *Subscription) Ending() bool {
	return s.Requested != RequestNone || (s.Open != nil && s.Open.State == Failing)
}

// Unfinished reports whether a request that needs several commits has begun, with no period open: the
// next step goes on with it before anything is charged.
func (s *Subscription) Unfinished() bool {
	return s.Open == nil && (s.Requested == RequestCancel || s.Requested == RequestSkip)
}

// WillEnd reports whether the next payment run cancels the subscription, with nothing to collect.
func (s *Subscription) WillEnd() bool {
	return s.Requested == RequestCancel || s.AtEnd() && s.Open == nil && s.Collect == 0 && s.Status == Active
}

// EndsBefore reports whether the cancellation at the period's end comes before the period due on that
// day. Periods that were due on the day of the request are still owed; after a request by an older
// Duesday, which noted no day, none is.
func (s *Subscription) EndsBefore(due civil.Date) bool {
	return s.CancelAtEnd && due.After(s.CancelDate)
}

// AtEnd reports whether the subscription is to be canceled instead of charging its next period.
func (s *Subscription) AtEnd() bool {
	due, err := s.Due()
	return s.CancelAtEnd && (err != nil || s.EndsBefore(due))
}

// Over reports whether the subscription is never charged again.
func (s *Subscription) Over() bool { return s.Status == CanceledSub || s.Status == Completed }

// InTrial reports whether the period to be paid next is the first one, after a free trial.
func (s *Subscription) InTrial() bool { return !s.TrialEnds.IsZero() && s.Period == 0 && !s.Over() }

// MethodGiven returns when the subscription's own method was given, as Raw has it; zero: not known.
func (s *Subscription) MethodGiven() time.Time { return readStamp(s.Raw.Str(schema.MethodDate)) }

// SetMethod sets the subscription's own method, given at that time.
func (s *Subscription) SetMethod(method string, at time.Time) {
	s.Method = method
	if s.stored == nil {
		s.stored = s.Raw
	}
	s.Raw = s.Raw.Clone()
	s.Raw.Set(schema.MethodDate, store.S(Stamp(at)))
}

// AttemptRan reports whether the intent shows a run of the period's current attempt.
func AttemptRan(o *OpenPeriod, in processor.Intent) bool {
	switch in.State {
	case processor.Succeeded, processor.Canceled, processor.Processing:
		return true
	case processor.Declined, processor.RequiresAction:
		return in.Latest != o.Base
	}
	return false
}

// A Change is a person's input to updateSubscription (access pattern 3). Nil fields stay.
type Change struct {
	Amount       *money.Amount   // from the next period to be opened; with SKU or From as they
	Quantity     *int            // as Amount
	Discount     *price.Discount // from the next period that is not open, instead of the one before; zero: none
	Tax          *tax.Change     // from the next period to be opened
	SKU          *string         // from the first period due on From or later
	From         civil.Date      // zero: tomorrow
	Notify       bool            // tells the customer of a change of SKU or Amount
	PaymentDay   *int            // from the first such day on or after the next due date
	Early        bool            // PaymentDay from the last such day before that date instead, if it is ahead
	Method       *string         // at once, also for an open period
	Collection   *Collection     // from the next period that is not open
	Address      *string
	ReminderDays *int
}

// ChangeTerms checks and applies the changes, except that of the payment method. Its error has a
// FieldError for each wrong field.
func (s *Subscription) ChangeTerms(c Change, today civil.Date) error {
	var all []error
	if c.Amount != nil {
		all = append(all, price.CheckAmount(*c.Amount, s.Amount.Currency()))
	}
	switch {
	case c.SKU != nil || !c.From.IsZero():
		all = append(all, s.changePlan(c, today))
	case c.Amount != nil:
		s.Amount = *c.Amount
	}
	if c.Quantity != nil && c.SKU == nil && c.From.IsZero() {
		s.Terms.Quantity = stored(*c.Quantity)
	}
	if c.Discount != nil {
		s.discount(*c.Discount)
	}
	if c.Tax != nil {
		now, err := c.Tax.Of(s.Terms.Tax)
		s.Terms.Tax, all = now, append(all, err)
	}
	if c.Amount != nil || c.Quantity != nil || c.Discount != nil || c.SKU != nil || c.Tax != nil {
		all = append(all, s.checkTerms(c)...)
	}
	if c.Collection != nil {
		all = append(all, s.changeCollection(*c.Collection, today))
	}
	if c.Address != nil {
		s.Address = *c.Address
		all = append(all, CheckText("address", s.Address, MaxText))
	}
	if c.PaymentDay != nil {
		all = append(all, s.changeDay(*c.PaymentDay, c.Early, today))
	}
	if c.ReminderDays != nil {
		s.ReminderDays = *c.ReminderDays
		if s.ReminderDays < 0 || s.ReminderDays > 366 {
			all = append(all, Invalid("reminder_days", "must be 0 (none) to 366"))
		} else if due, err := s.Due(); err == nil && s.NextOpen() == nil && s.Altered() == "" {
			s.Reschedule(due, today)
		}
	}
	return errors.Join(all...)
}

// discount replaces the discount, from the next period that is not open.
func (s *Subscription) discount(d price.Discount) {
	from := s.Period
	if s.NextOpen() != nil {
		from++
	}
	s.Terms.Discount = s.Terms.Discount.Replace(d, from)
}

// checkTerms checks the terms with the plan in force, and with the pending one.
func (s *Subscription) checkTerms(c Change) (all []error) {
	if c.Quantity != nil && *c.Quantity == 0 {
		return []error{Invalid("quantity", "must be 1 or more")}
	}
	terms := s.Terms
	terms.Discount = terms.Discount.Left(s.Period) // one that is over need not fit
	if all = price.Check(s.Amount, terms, CheckText); all == nil && s.Pending != nil {
		terms.Quantity = s.Pending.quantity(s)
		all = price.Check(s.Pending.Amount, terms, CheckText)
	}
	return all
}

// changeCollection takes effect from the next period that is not open. By wire, a past period that is
// marked to be charged is not.
func (s *Subscription) changeCollection(c Collection, today civil.Date) error {
	if err := CheckCollection(c); err != nil {
		return err
	}
	if s.Collection = c; c == ByWire && s.Collect > 0 {
		due, err := s.Due()
		if s.Collect = 0; err == nil && s.Altered() == "" {
			s.Reschedule(due, today)
		}
	}
	return nil
}

// PaidByWire reports whether the period is paid by wire: as it was opened, or as it would be opened now.
func (s *Subscription) PaidByWire(period int) bool {
	if s.Open != nil && s.Open.Period == period {
		return s.Open.ByWire()
	}
	return s.Collection == ByWire
}

// changeDay sets a new anchor: the first such day on or after the next due date, or with early the
// last one before it that is after today. Of changes before one due date each begins at the same
// date, so the last one alone counts. An open period keeps its due date.
func (s *Subscription) changeDay(day int, early bool, today civil.Date) error {
	if s.Interval.Unit == civil.Day {
		return Invalid("payment_day", "cannot be changed for an interval in days, which counts from the first payment")
	}
	next := s.Period
	if s.NextOpen() != nil {
		next++
	}
	old, err := s.Schedule().Due(next)
	if err != nil {
		return err
	}
	old = s.dueBefore(next, old)
	first, err := civil.FirstOnOrAfter(old, day, s.Interval)
	if err != nil {
		return Invalid("payment_day", err.Error())
	}
	if before, err := civil.LastBefore(old, day, s.Interval); early && err == nil && first != old &&
		before.After(today) {
		first = before
	}
	if s.CancelAtEnd && !civil.Earlier(old, first).After(s.CancelDate) {
		return Invalid("payment_day", fmt.Sprintf("cannot change until period %d, due on %s, is collected, because the subscription "+
			"ends with that period", next, old))
	}
	altered := s.Altered() != "" // then the row stays for the run that parks it
	s.PaymentDay, s.Anchor, s.AnchorPeriod, s.DueBefore = day, first, next, old
	s.TakeEffect()
	if s.NextOpen() == nil && !altered {
		s.Reschedule(first, today)
	}
	return nil
}

// dueBefore returns the period's due date before all changes of its payment day; due is after them.
func (s *Subscription) dueBefore(period int, due civil.Date) civil.Date {
	if s.AnchorPeriod == period && !s.DueBefore.IsZero() {
		return s.DueBefore
	}
	return due
}

// Arrears reports whether more periods are due than one run catches up with. A legacy subscription
// in arrears, which Duesday has never charged, is parked: it may have been abandoned years ago.
func (s *Subscription) Arrears(catchUp int, today civil.Date) bool {
	last, err := s.Schedule().Due(s.Period + catchUp)
	return err == nil && !last.After(today)
}

// DefaultCatchUp is the default of Config.CatchUp.
const DefaultCatchUp = 3

// Failing marks an open period declined for good. It ends once its intent is shown cancelled.
const Failing processor.State = "failing"
