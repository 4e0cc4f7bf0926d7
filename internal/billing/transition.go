package billing

import (
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// schedule sets the days on which the jobs look at the subscription again. Nothing is
// written that is older than the run's own day, so that a walk finds it. A reminder day
// that has passed becomes today if the due date is ahead, else it is dropped.
func (s *Subscription) Reschedule(due, today civil.Date) {
	s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	if s.Status == ParkedState {
		s.NextPayment = today // every run shows it until a person has decided
	}
	if s.Status != Active {
		return
	}
	s.NextPayment = civil.Later(due, today)
	if s.ReminderDays > 0 && !s.CancelAtEnd && due.After(today) {
		s.NextReminder = civil.Later(due.AddDays(-s.ReminderDays), today)
	}
}

// paidOff reports whether all installments have been paid: nothing is ever charged again.
func (s *Subscription) PaidOff() bool { return s.Installments > 0 && s.Paid >= s.Installments }

func (s *Subscription) Cancel() {
	s.Status, s.CancelAtEnd = CanceledSub, false
	s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	s.Requested, s.Parked = RequestNone, ""
}

func (s *Subscription) Pause(today civil.Date) {
	s.Status, s.PausedOn = Paused, today
	s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	s.Requested = RequestNone
}

// unanswered reports whether the attempt that was made last came to no decline: the customer
// was to authenticate it.
func (o *OpenPeriod) Unanswered() bool {
	n := len(o.Attempts)
	return n == 0 || o.Attempts[n-1].Number < o.Attempt
}

// bound reports whether the intent is that of the open period. An id of an intent is one of all
// connected accounts.
func (s *Subscription) Bound(intent string) bool {
	if s.Open == nil || intent == "" {
		return false
	}
	_, id, connected := strings.Cut(s.Open.Ref, "/")
	return s.Open.Ref == intent || connected && id == intent
}

// overtaken reports whether what the intent shows may have come of an attempt before the
// period's own, which a person's new method has overtaken. It is then not held against that
// method: at worst it is tried once more.
func (o *OpenPeriod) ShowsOvertaken(in Intent) bool {
	return o.Overtaken && in.Latest != o.Base && (in.State == Declined || in.State == RequiresAction)
}

// ending reports whether the open period is to end unpaid as soon as its intent is shown
// cancelled.
func (s *Subscription) Ending() bool {
	return s.Requested != RequestNone || (s.Open != nil && s.Open.State == Failing)
}

// over reports whether nothing will ever be charged for the subscription again.
func (s *Subscription) Over() bool { return s.Status == CanceledSub || s.Status == Completed }

// given returns when the subscription's own method was given; zero when that is not known.
// Like what is not ours, it is kept where it stands on the item.
func (s *Subscription) MethodGiven() time.Time { return readStamp(s.Raw.Str(schema.MethodDate)) }

func (s *Subscription) SetMethod(method string, at time.Time) {
	s.Method = method
	s.Raw = s.Raw.Clone()
	s.Raw.Set(schema.MethodDate, store.S(Stamp(at)))
}

// ran reports whether the intent shows that the period's current attempt has run.
func AttemptRan(o *OpenPeriod, in Intent) bool {
	switch in.State {
	case Succeeded, Canceled, Processing:
		return true
	case Declined, RequiresAction:
		return in.Latest != o.Base
	}
	return false
}

// A Change is what updateSubscription (access pattern 3) takes from a person; nil fields
// stay as they are.
type Change struct {
	Amount       *money.Amount // from the next period that is not open yet
	PaymentDay   *int          // from the first such day on or after the next due date
	Method       *string       // at once, also for a period that is open
	Address      *string
	ReminderDays *int
}

func (s *Subscription) ChangeTerms(c Change, today civil.Date) error {
	if c.Amount != nil {
		if !c.Amount.IsPositive() || c.Amount.Currency() != s.Amount.Currency() {
			return Invalid("amount", "want more than zero "+s.Amount.Currency().Code())
		}
		s.Amount = *c.Amount
	}
	if c.Address != nil {
		if err := CheckText("address", *c.Address, MaxText); err != nil {
			return err
		}
		s.Address = *c.Address
	}
	if c.PaymentDay != nil {
		if err := s.changeDay(*c.PaymentDay, today); err != nil {
			return err
		}
	}
	if c.ReminderDays != nil {
		if *c.ReminderDays < 0 || *c.ReminderDays > 366 {
			return Invalid("reminder_days", "want 0 (none) to 366")
		}
		s.ReminderDays = *c.ReminderDays
		if due, err := s.Due(); err == nil && s.Open == nil {
			s.Reschedule(due, today)
		}
	}
	return nil
}

// changeDay anchors the schedule anew: on the first such day on or after the old next due
// date. A period that is open keeps its due date.
func (s *Subscription) changeDay(day int, today civil.Date) error {
	next := s.Period
	if s.Open != nil {
		next++
	}
	old, err := s.Schedule().Due(next)
	if err != nil {
		return err
	}
	first, err := civil.FirstOnOrAfter(old, day, s.Interval)
	if err != nil {
		return Invalid("payment_day", err.Error())
	}
	s.PaymentDay, s.Anchor, s.AnchorPeriod = day, first, next
	if s.Open == nil {
		s.Reschedule(first, today)
	}
	return nil
}

// Arrears reports whether more periods are due than are caught up with in one run. One that
// other tools have left so, and Duesday has never charged, is parked as it is: it may have
// been abandoned years ago.
func (s *Subscription) Arrears(catchUp int, today civil.Date) bool {
	last, err := s.Schedule().Due(s.Period + catchUp)
	return err == nil && !last.After(today)
}

// DefaultCatchUp is Config.CatchUp when nothing else is said.
const DefaultCatchUp = 3

// failing marks an open period whose last attempt was declined for good: its intent has to
// be shown cancelled before the period may end failed.
const Failing State = "failing"
