package tracking

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/money"
)

// The merge is pure: it does not read the clock or the store. The fields that decide an outcome
// only grow. A status rises, a set gains members and a flag is set. Events therefore lead to the
// same state whatever order they arrive in and however often they are repeated. Duesday never sorts
// events by their time, because it has a resolution of one second and Stripe advises against it.
//
// A subscription's Detail is an exception that can also fall. See mergeSubscription.
//
// A subscription's Detail can fall as well as rise: see mergeSubscription.

// These maps rank Stripe's statuses. A status that is not listed has rank zero.
var (
	paymentRank = map[PaymentStatus]int{PaymentNew: 1, PaymentFailed: 2, PaymentPaid: 3}
	refundRank  = map[string]int{"pending": 1, "requires_action": 2, "succeeded": 3, "canceled": 4, "failed": 5}
	disputeRank = map[string]int{"warning_needs_response": 1, "warning_under_review": 2, "needs_response": 3,
		"under_review": 4, "warning_closed": 5, "prevented": 6, "charge_refunded": 7, "won": verdictRank, "lost": verdictRank,
		"appeal_needs_response": verdictRank, "appeal_under_review": verdictRank}
	scheduleRank = map[string]int{"not_started": 1, "active": 2, "released": 3, "completed": 4, "canceled": 5}
)

// verdictRank is the rank of a dispute that was decided at least once. A lost dispute can be
// appealed, and then won or lost again, so events cannot show which of these statuses is the
// latest.
const verdictRank = 8

// paymentStatus returns the status that a payment intent implies, as in the table in
// docs/internals/tracking.md.
func paymentStatus(o Object) PaymentStatus {
	switch {
	case o.Status == "succeeded":
		return PaymentPaid
	case o.Status == "canceled" || o.Failed:
		return PaymentFailed
	}
	return PaymentNew
}

// mergePayment merges an object into the payment, and returns descriptions of the changes for
// people. It sets ask if the object is a dispute whose latest status is unknown and must be
// fetched. The caller sets fresh if it fetched the object after it read the payment, so the object
// has the latest status.
func mergePayment(p *Payment, o Object, fresh bool) (changes []string, ask bool) {
	switch o.Kind {
	case KindPayment:
		changes = mergeIntent(p, o)
	case KindCharge, KindRefund:
		changes = mergeRefunds(p, o)
	case KindDispute:
		changes, ask = mergeDispute(p, o, fresh)
	}
	return append(changes, mergeLinks(p, o)...), ask
}

func mergeDispute(p *Payment, o Object, fresh bool) (changes []string, ask bool) {
	d, there := p.Disputes[o.ID]
	before, rank, had := d, disputeRank[o.Status], disputeRank[d.Status]
	if d.ID = o.ID; !there || rank > had || fresh && o.Status != "" {
		d.Amount, d.Status = o.Amount, o.Status
	}
	if o.Due.After(d.Due) {
		d.Due = o.Due
	}
	switch {
	case d.Status != before.Status || !there:
		changes = []string{"dispute " + o.ID + " " + d.Status}
	case !d.Due.Equal(before.Due):
		changes = []string{"dispute " + o.ID + ": evidence is due by " + d.Due.Format(time.RFC3339)}
	case d != before:
		changes = []string{"dispute " + o.ID + " changed its amount"}
	}
	if len(changes) > 0 {
		p.Disputes = maps.Clone(p.Disputes)
		if p.Disputes == nil {
			p.Disputes = map[string]Dispute{}
		}
		p.Disputes[o.ID] = d
	}
	return changes, !fresh && rank == verdictRank && had == verdictRank && o.Status != d.Status
}

func mergeIntent(p *Payment, o Object) (changes []string) {
	status := paymentStatus(o)
	if (status == PaymentPaid || p.Status != PaymentPaid && o.Amount > p.Amount) &&
		(p.Amount != o.Amount || p.Currency != o.Currency) {
		p.Amount, p.Currency = o.Amount, o.Currency
		changes = append(changes, amountText(p.Amount, p.Currency))
	}
	if status == PaymentFailed && o.Code != "" {
		if at, there := slices.BinarySearch(p.Codes, o.Code); !there && at < maxCodes {
			codes := slices.Insert(slices.Clone(p.Codes), at, o.Code)
			p.Codes = codes[:min(len(codes), maxCodes)]
			changes = append(changes, "declined: "+o.Code)
		}
	}
	if paymentRank[status] > paymentRank[p.Status] {
		p.Status = status
		changes = append(changes, string(status))
	}
	return changes
}

// amountText formats an amount for people.
func amountText(minor int64, code string) string {
	currency, err := money.ParseCurrency(code)
	if err != nil {
		return fmt.Sprintf("%d minor units of %s", minor, code)
	}
	return money.New(minor, currency).String()
}

// maxCodes is the maximum number of decline codes that a payment keeps. It keeps those that come
// first alphabetically.
const maxCodes = 10

// mergeRefunds adds up the individual refunds. If a charge reports a larger total, mergeRefunds
// uses that total.
func mergeRefunds(p *Payment, o Object) (changes []string) {
	before := p.Refunded
	for _, r := range o.Refunds {
		if r.ID == "" || refundRank[r.Status] <= refundRank[p.Refunds[r.ID].Status] {
			continue
		}
		if p.Refunds == nil {
			p.Refunds = map[string]Refund{}
		}
		p.Refunds[r.ID] = r
		changes = append(changes, "refund "+r.ID+" "+r.Status)
	}
	p.told = max(p.told, o.Refunded)
	var all, standing int64
	for _, r := range p.Refunds {
		all += r.Amount
		if r.Status != "failed" && r.Status != "canceled" {
			standing += r.Amount
		}
	}
	p.Refunded = standing + max(0, p.told-all)
	if p.Refunded != before && len(changes) == 0 {
		changes = append(changes, "refunded")
	}
	return changes
}

func mergeLinks(p *Payment, o Object) (changes []string) {
	if p.Invoice == "" && o.Invoice != "" {
		p.Invoice = o.Invoice
		changes = append(changes, "of invoice "+o.Invoice)
	}
	if p.Subscription == "" && o.Subscription != "" {
		p.Subscription = o.Subscription
		changes = append(changes, "of subscription "+o.Subscription)
	}
	if o.Kind == KindPayment && !o.Created.IsZero() {
		p.Created = o.Created
	}
	return changes
}

// Serves reports whether a Stripe subscription with this status has been activated and has not
// ended.
func Serves(status string) bool {
	return slices.Contains([]string{"trialing", "active", "past_due", "unpaid", "paused"}, status)
}

func ended(status string) bool { return status == "canceled" || status == "incomplete_expired" }

// A rule configures how mergeSubscription merges an object.
type rule struct {
	endedBy []string // Stripe statuses that end the subscription for the buyer
	force   bool     // treat a schedule with an unknown end as cancelled
	fresh   bool     // the object was fetched after the row was read, so it is the latest state
	taker   string   // the installation whose billing continues this account's subscriptions; "" for none
}

// mergeSubscription merges an object of the subscription or its schedule, and returns descriptions
// of the changes for people. If the subscription is over and no event has shown whether its
// schedule was completed or cancelled, mergeSubscription returns undecided and changes nothing. It
// sets ask if the Detail must be fetched because the order of the events is unknown. Until a
// fetched object arrives, every event sets ask, because each may be newer than the last.
func mergeSubscription(s *Subscription, o Object, r rule) (changes []string, undecided, ask bool) {
	before := *s
	if o.Kind == KindSchedule {
		if scheduleRank[o.Status] > scheduleRank[s.scheduleStatus] {
			s.scheduleStatus = o.Status
		}
		s.Schedule = o.ID
		s.activated = s.activated || o.Status == "completed" // only an activated subscription can be completed
	} else {
		s.activated = s.activated || Serves(o.Status)
		s.over = s.over || ended(o.Status)
		s.TakenOver = s.TakenOver || ended(o.Status) && o.TakenBy != "" && o.TakenBy == r.taker
		s.expired = s.expired || o.Status == "incomplete_expired"
		s.Schedule = cmp.Or(s.Schedule, o.Schedule)
		ask = terms(s, o, r.fresh)
		ask = detail(s, o, r.fresh) || ask
		ends := slices.Contains(r.endedBy, o.Status)
		s.soft = s.soft || r.fresh && ends
		unconfirmed := ends && !s.soft && !ended(s.Detail) // an event reported the end, and no fetch has confirmed it
		ask = ask || !r.fresh && (s.asking || unconfirmed)
		s.asking = ask
		if !o.Created.IsZero() {
			s.Created = o.Created
		}
	}
	if s.undecided(r) {
		*s = before
		return nil, true, false
	}
	s.Status, s.Ending = s.decide()
	switch {
	case s.Status != before.Status && s.Ending != "":
		changes = append(changes, string(s.Status)+": "+string(s.Ending))
	case s.Status != before.Status:
		changes = append(changes, string(s.Status))
	case s.Ending != before.Ending:
		changes = append(changes, "ended: "+string(s.Ending))
	case s.Detail != before.Detail:
		changes = append(changes, "at Stripe: "+s.Detail)
	case s.Terms != before.Terms:
		changes = append(changes, s.Terms.text())
	case s.Schedule != before.Schedule || s.scheduleStatus != before.scheduleStatus:
		changes = append(changes, "schedule "+s.Schedule+" "+s.scheduleStatus)
	}
	return changes, false, ask
}

// terms merges the subscription's terms, and reports whether they must be fetched. It accepts the
// terms from the first event or from a fresh object. The order of all other events is unknown.
func terms(s *Subscription, o Object, fresh bool) (ask bool) {
	switch {
	case o.Terms == s.Terms || o.Terms == Terms{}:
	case fresh || s.Detail == "":
		s.Terms = o.Terms
	default:
		return !ended(s.Detail)
	}
	return false
}

// text describes the terms for people.
func (t Terms) text() string {
	s := fmt.Sprintf("%d of %s", t.Quantity, t.Price)
	if !t.CancelAt.IsZero() {
		s += ", cancelled at " + t.CancelAt.Format(time.RFC3339)
	}
	return s
}

// detail merges Stripe's status, and reports whether it must be fetched. A fetched status always
// counts. Among the statuses in events, an end is final and incomplete comes first. The order of
// the others is unknown.
func detail(s *Subscription, o Object, fresh bool) (ask bool) {
	switch {
	case o.Status == s.Detail || o.Status == "" || ended(s.Detail):
	case ended(o.Status) || fresh || s.Detail == "" || s.Detail == "incomplete":
		s.Detail = o.Status
	case o.Status != "incomplete":
		return true
	}
	return false
}

// differs reports whether the two subscriptions differ in a part that does not decide the status.
func (s *Subscription) differs(t *Subscription) bool {
	return s.Schedule != t.Schedule || s.Terms != t.Terms || s.progress != t.progress
}

// undecided reports whether the subscription is over but no object has shown how its schedule
// ended.
func (s *Subscription) undecided(r rule) bool {
	return s.over && s.Schedule != "" && !r.force && scheduleRank[s.scheduleStatus] < scheduleRank["released"]
}

// decide implements the state machine in docs/internals/tracking.md.
func (s *Subscription) decide() (SubscriptionStatus, Ending) {
	switch {
	case s.TakenOver && s.over:
		return SubscriptionTerminated, EndTakenOver
	case s.scheduleStatus == "canceled":
		return SubscriptionTerminated, EndCanceled
	case s.scheduleStatus == "completed" && (s.over || s.ID == s.Schedule): // otherwise the released subscription continues
		return SubscriptionTerminated, EndCompleted
	case s.over && s.expired:
		return SubscriptionTerminated, EndExpired
	case s.over:
		return SubscriptionTerminated, EndCanceled
	case s.soft:
		return SubscriptionTerminated, EndSetting
	case s.activated:
		return SubscriptionActive, ""
	}
	return SubscriptionNew, ""
}

// mergeSubscriptionState merges the subscription's state into its purchase, and reports whether the
// purchase changed. Until a schedule begins and its subscription is known, its state has the
// schedule's ID.
func mergeSubscriptionState(p *Purchase, s *Subscription) (changed bool) {
	c := SubscriptionState{Status: s.Status, Ending: s.Ending, Schedule: s.Schedule}
	if s.ID == s.Schedule {
		for id, other := range p.Subscriptions {
			if id != s.ID && other.Schedule == s.ID {
				return false // the schedule has begun, so its subscription represents it
			}
		}
	} else if _, there := p.Subscriptions[s.Schedule]; there && s.Schedule != "" {
		delete(p.Subscriptions, s.Schedule)
		changed = true
	}
	if p.Subscriptions[s.ID] == c {
		return changed
	}
	if p.Subscriptions == nil {
		p.Subscriptions = map[string]SubscriptionState{}
	}
	p.Subscriptions[s.ID] = c
	return true
}

// askEffects requests the due effects of the purchase. It requests fulfilment after the first
// payment or activation. It requests unsubscribe after the last subscription ends, but only if
// fulfilment was requested and billing has taken none over. It withdraws an unsubscribe that has not begun if another subscription
// becomes known. The reason names the cause.
func askEffects(p *Purchase, paid bool, reason string, now time.Time) (asked []Action) {
	var active, over, completed int
	for _, c := range p.Subscriptions {
		switch {
		case c.Status == SubscriptionActive:
			active++
		case c.Status == SubscriptionTerminated && c.Ending == EndCompleted:
			completed++
			over++
		case c.Ending == EndTakenOver: // the customer has it from billing
		case c.Status == SubscriptionTerminated:
			over++
		}
	}
	if p.Fulfilment.State == NotAsked && (paid || active > 0 || completed > 0) {
		p.Fulfilment = Effect{State: Asked, Reason: reason, Asked: now}
		asked = append(asked, ActionFulfil)
	}
	ends := len(p.Subscriptions) > 0 && over == len(p.Subscriptions) && completed == 0
	if !ends && (p.Unsubscribe.State == Waits || p.Unsubscribe.State == Asked) {
		p.Unsubscribe = Effect{} // another subscription has begun, but its event arrived late
	}
	if p.Unsubscribe.State == NotAsked && p.Fulfilment.State != NotAsked && ends {
		p.Unsubscribe = Effect{State: Waits, Reason: reason, Asked: now}
		if p.Fulfilment.State == DoneWith {
			p.Unsubscribe.State = Asked
			asked = append(asked, ActionUnsubscribe)
		}
	}
	return asked
}
