// Package upgrade decides whether a subscription may be upgraded now, and says beforehand what an
// upgrade charges and which days the customer gives away.
//
// It does not charge anything: the engine does, by the charge protocol. It computes no amount by days.
package upgrade

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// An Order is a person's request. At least one of its fields is set.
type Order struct {
	SKU    *string
	Amount *money.Amount // of one unit
}

// An Offer is what an upgrade does to a subscription if its charge succeeds.
type Offer struct {
	Period    int          // the period that is charged
	SKU       string       // of the new plan
	Unit      money.Amount // amount of one unit
	Amount    money.Amount // amount to charge now
	Day       civil.Date   // business day, on which the period is then due
	DueBefore civil.Date   // due date of the period without the upgrade
	Days      int          // days of the paid period that the customer gives away
	Next      civil.Date   // due date of the following period
	Replaces  *billing.Plan
}

// Of returns the offer for the order on the business day. The error is a FieldError for each wrong field,
// or ErrState with the reason why the subscription cannot be upgraded now. keyed reports whether the
// request has an idempotency key: a request without one is refused on the business day of another.
func Of(s *billing.Subscription, o Order, today civil.Date, keyed bool) (Offer, error) {
	f := Offer{Period: s.Period, SKU: s.SKU, Unit: s.Amount, Day: today, Replaces: s.Pending}
	var sku, amount error
	if o.SKU != nil {
		f.SKU, sku = *o.SKU, billing.CheckID("sku", *o.SKU)
	}
	if o.Amount != nil {
		f.Unit, amount = *o.Amount, price.CheckAmount(*o.Amount, s.Amount.Currency())
	}
	if err := errors.Join(sku, amount); err != nil {
		return f, err
	}
	why, u := refusal(s, today), s.Upgrade
	switch {
	case s.Upgrading():
		why = "has an upgrade under way"
	case why == "" && f.SKU == s.SKU && f.Unit == s.Amount:
		why = "already has this plan"
	case why == "" && !keyed && u != nil && !u.Day.Before(today):
		why = fmt.Sprintf("already had an upgrade on %s (%s); another one on that day needs a new key", u.Day, u.Reason)
	}
	if why != "" {
		return f, fmt.Errorf("subscription %s %s: %w", s.Name, why, billing.ErrState)
	}
	after := *s
	after.Upgrade = &billing.Upgrade{Period: s.Period, SKU: f.SKU, Amount: f.Unit, Day: today}
	open, err := Open(&after, time.Time{})
	if err != nil {
		return f, err
	}
	f.Amount = open.Amount
	due, err := s.Due()
	if err == nil {
		f.DueBefore, f.Days = due, due.DaysSince(today)
		f.Next, err = after.AfterUpgrade().Schedule().Due(s.Period + 1)
	}
	return f, err
}

// Mark stores the request on the subscription, in memory.
func (f *Offer) Mark(s *billing.Subscription) {
	s.Upgrade = &billing.Upgrade{Period: f.Period, Generation: s.NextGeneration(), SKU: f.SKU, Amount: f.Unit, Day: f.Day}
}

// Open returns the marked upgrade's period as it is opened, with NewPeriod's errors.
func Open(s *billing.Subscription, now time.Time) (*billing.OpenPeriod, error) {
	o, err := s.AfterUpgrade().NewPeriod(s.Upgrade.Day, now)
	o.SKU = s.Upgrade.SKU
	return o, err
}

// Withdrawn returns why a marked upgrade must not be opened any more, or "".
func Withdrawn(s *billing.Subscription, today civil.Date) string {
	if today.After(s.Upgrade.Day) {
		return "its business day was over before it was charged"
	}
	if why := refusal(s, today); why != "" {
		return "the subscription " + why
	}
	return ""
}

// refusal returns why the period to be paid next cannot be charged before its due date, or "".
func refusal(s *billing.Subscription, today civil.Date) string {
	due, err := s.Due()
	switch {
	case s.Status != billing.Active:
		return "is " + string(s.Status)
	case s.Requested != billing.RequestNone:
		return fmt.Sprintf("waits for a %s request", s.Requested)
	case s.CancelAtEnd:
		return "ends with its period"
	case s.Collection == billing.ByWire:
		return "is paid by wire"
	case s.Open != nil && !s.Upgrading():
		return fmt.Sprintf("has period %d open", s.Open.Period)
	case s.Collect > 0:
		return fmt.Sprintf("must first collect period %d", s.AtHand())
	case s.Altered() != "":
		return "was " + s.Altered()
	case s.InTrial():
		return "is in its trial until " + s.TrialEnds.String()
	case s.Held():
		return "waits for the end of " + s.Takeover.From
	case s.Period == 0:
		return "has not paid its first period"
	case err != nil:
		return "has no due date: " + err.Error()
	case !due.After(today):
		return fmt.Sprintf("has period %d due on %s", s.Period, due)
	}
	return ""
}

// A State is the state of the subscription's last upgrade.
type State string

// The states.
const (
	Charged        State = "charged"         // its plan is in force
	ActionRequired State = "action_required" // the customer has to authenticate the payment
	Pending        State = "pending"         // the processor has not decided, or cannot be reached
	Declined       State = "declined"        // nothing has changed
	Ended          State = "ended"           // abandoned or withdrawn: nothing has changed
)

// StateOf returns the state of the subscription's last upgrade. It has one.
func StateOf(s *billing.Subscription) State {
	switch {
	case s.Upgrade.Reason == billing.UpgradePaid:
		return Charged
	case strings.HasPrefix(s.Upgrade.Reason, "declined: "):
		return Declined
	case s.Upgrade.Reason != "":
		return Ended
	case s.Open != nil && !s.Open.Asked.IsZero():
		return ActionRequired
	}
	return Pending
}
