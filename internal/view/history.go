package view

import (
	"strings"

	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/money"
)

// History returns one change by a person, a program or an event. A personal member has neither before
// nor after.
func History(e *history.Entry) Object {
	changed := Object{}
	for _, c := range e.Changes {
		changed = append(changed, c.Name, Object{"before?", shownChange(e, c.Name, c.Before), "after?", shownChange(e, c.Name, c.After)})
	}
	return Object{"at", e.At, "actor", e.Actor, "account", e.Account, "subscription?", e.Subscription, "what", e.What,
		"changed?", changed, "currency?", e.Currency, "reason?", e.Reason, "version", e.Version}
}

// shownChange converts the decimal text of an amount to minor units, and returns other texts unchanged.
func shownChange(e *history.Entry, name, text string) any {
	if currency, err := money.ParseCurrency(e.Currency); err == nil && strings.HasSuffix(name, "amount") {
		if a, err := money.Parse(text, currency); err == nil {
			return a
		}
	}
	return text
}
