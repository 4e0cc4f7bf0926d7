package view

import (
	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/takeover"
)

// Origin returns from which of the processor's subscriptions a subscription was taken over, or nil.
func Origin(s *billing.Subscription) Object {
	k := s.Takeover
	if k == nil {
		return nil
	}
	return Object{"from", k.From, "boundary", k.Boundary, "stage", k.Stage, "waits_since?", k.Waits}
}

// Takeover returns what a takeover does, or has done, with one of the processor's subscriptions. becomes is
// absent if it stays.
func Takeover(e takeover.Entry) Object {
	o := Object{"id", e.Theirs.ID, "customer", e.Theirs.Customer, "status", e.Theirs.Status, "cancel_at_period_end?", e.Theirs.EndsWithPeriod,
		"period_end", e.Theirs.PeriodEnd, "state", TakeoverState(e), "detail?", e.Stays}
	if e.Ours == nil {
		return o
	}
	return append(o, "becomes", Subscription(e.Ours))
}

// TakeoverState returns ready or stays, or the stage of a takeover that was started.
func TakeoverState(e takeover.Entry) string {
	switch {
	case e.Stored:
		return string(e.Ours.Takeover.Stage)
	case e.Stays != "":
		return "stays"
	}
	return "ready"
}

// TakeoverTerms returns, for people, what the subscription becomes: its amount, interval, and other terms.
func TakeoverTerms(e takeover.Entry) []any {
	s := e.Ours
	if s == nil {
		return []any{"", "", "", "", "", "", "", ""}
	}
	return []any{s.Name, s.Amount, s.Interval, s.Anchor, s.Method, TaxText(s.Terms.Tax), s.Terms.Count(), s.Terms.Discount.String()}
}
