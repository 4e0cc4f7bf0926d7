package importing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/secret"
)

// A verdict is the result of comparing a good row with the store.
type verdict struct {
	exists  bool
	ended   bool // the subscription exists, and is canceled or completed
	due     bool // the subscription is new, and due immediately
	differs []Difference
	terms   billing.Change // update to apply to the subscription, if Update is set
	account account.Change // update to apply to the account, if Update is set
	overdue int            // number of due periods of a new subscription, if more than one
	warning string
}

func (v *verdict) changes() bool {
	return v.terms != (billing.Change{}) || v.account != (account.Change{})
}

// judge compares the row with the store, if there is one. It sets m.row to the verdict and m.failed
// to any store error. It returns the error that the store would return for the row.
func (m *Import) judge(ctx context.Context, e *engine.Engine, n billing.NewSubscription,
	given func(string) bool) *billing.FieldError {
	m.row = verdict{warning: m.unknownMethod("payment_method", n.Method)}
	m.row.warning = cmp.Or(m.row.warning, m.unknownMethod("fallback", n.Fallback))
	if m.Stripe && n.Customer != "" && !strings.HasPrefix(n.Customer, "cus_") {
		m.row.warning = "customer " + n.Customer + " is not a Stripe customer ID such as cus_NffrFeUfNV2Hib, so every charge will fail"
	}
	if !m.looks {
		if sub, err := n.Build(m.Now(), 1); err == nil { // otherwise package book reports the error
			return m.judgeOverdue(&n, sub)
		}
		return nil
	}
	a, err := e.Account(ctx, n.Account)
	if m.failed = billing.IgnoreNotFound(err); m.failed != nil {
		return nil
	}
	row, probe := &m.row, n
	if a != nil && m.Update { // otherwise Preview refuses a new subscription of the account
		probe.Email, probe.TimeZone, probe.Customer, probe.Name, probe.Locale, probe.Fallback = "", "", "", "", "", ""
		probe.Details = party.Details{}
	}
	sub, err := e.Preview(ctx, probe)
	row.exists = errors.Is(err, billing.ErrExists)
	switch {
	case err != nil && !row.exists:
		field, refused := errors.AsType[*billing.FieldError](err)
		if !refused {
			m.failed = err
		}
		return field
	case !row.exists:
		row.due = bulk.IsDue(e.Records, sub)
		if field := m.judgeOverdue(&n, sub); field != nil {
			return field
		}
	case sub.Over():
		row.ended = true
		return nil
	default:
		row.terms, row.differs = ofSubscription(sub, &n, given)
	}
	if a == nil || m.told[n.Account] || !row.exists && !m.Update {
		return nil
	}
	for _, d := range ofAccount(a, &n, given) {
		m.told[n.Account] = true
		row.differs = append(row.differs, d)
		switch d.Field {
		case "email":
			row.account.Email = &n.Email
		case "time_zone":
			row.account.TimeZone = &n.TimeZone
		case "name":
			row.account.Name = &n.Name
		case "locale":
			row.account.Locale = &n.Locale
		default:
			if i := slices.Index(party.Names[:], d.Field); i >= 0 {
				*row.account.Details.Fields()[i] = n.Details.Fields()[i]
			}
		}
	}
	return nil
}

// judgeOverdue returns an error for a new subscription with several periods due. If m.Overdue is
// set, it instead adds a warning that describes what happens to these periods.
func (m *Import) judgeOverdue(n *billing.NewSubscription, sub *billing.Subscription) *billing.FieldError {
	today := billing.TodayIn(sub.TimeZone, m.Now())
	due, next := sub.Overdue(today)
	if m.row.overdue = due; due == 0 {
		return nil
	}
	text := fmt.Sprintf("%d periods are due from %s on", due, sub.Anchor)
	switch m.Overdue {
	case Charge:
		text += ", and runs will charge them"
	case Skip:
		m.row.due = m.row.due && next == today
		text += "; past periods are skipped, and the first payment is due on " + next.String()
	default:
		column := "next_payment_date"
		if n.NextPayment.IsZero() {
			column = "start_date"
		}
		return &billing.FieldError{Field: column, Problem: text + ", and one run could charge several of them; --overdue charge " +
			"accepts that, and --overdue skip begins on " + next.String()}
	}
	m.row.warning = strings.TrimPrefix(m.row.warning+"; "+text, "; ")
	return nil
}

// tokens matches Stripe's payment methods, and testTokens matches those in Stripe's test mode.
var tokens, testTokens = regexp.MustCompile(`^(pm|card|src|ba)_[0-9A-Za-z]{8,}$`), regexp.MustCompile(`^pm_[a-z][0-9A-Za-z_]+$`)

// unknownMethod returns a warning if no processor knows the payment method.
func (m *Import) unknownMethod(column, method string) string {
	switch {
	case method == "" || !m.Stripe && sandbox.Knows(method) || tokens.MatchString(method):
		return ""
	case m.Stripe && !m.Live && testTokens.MatchString(method) && !strings.HasPrefix(method, "pm_sandbox_"):
		return ""
	}
	return column + " " + secret.MaskMethod(method) + " is a token that no processor knows, so every charge with it will fail"
}
