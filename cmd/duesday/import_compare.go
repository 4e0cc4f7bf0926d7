package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A verdict compares a good row with the store.
type verdict struct {
	exists  bool
	ended   bool // it exists, and is cancelled or completed
	due     bool // it does not exist, and is due at once
	differs []billing.Difference
	terms   billing.Change        // to make by --update
	account billing.AccountChange // to make by --update
	overdue int                   // periods, of a new one with more than one
	warning string
}

func (v *verdict) changes() bool {
	return v.terms != (billing.Change{}) || v.account != (billing.AccountChange{})
}

// An importNote is a difference or a warning of a row.
type importNote struct {
	line    int
	name    billing.Name
	differs billing.Difference // without a field: none
	warning string
}

// judge compares the row with the store, if there is one, and leaves the verdict in m.row, and an
// error of the store in m.failed. It returns the error with which the store would refuse the row.
func (m *importer) judge(ctx context.Context, s *session, n billing.NewSubscription,
	given func(string) bool) *billing.FieldError {
	m.row = verdict{warning: m.unknownMethod(n.Method)}
	if !m.looks {
		if sub, err := n.Build(m.p.now(), 1); err == nil { // else the book names it
			return m.judgeOverdue(&n, sub)
		}
		return nil
	}
	a, err := s.engine.Account(ctx, n.Account)
	if m.failed = billing.IgnoreNotFound(err); m.failed != nil {
		return nil
	}
	row, probe := &m.row, n
	if a != nil && m.update { // a new subscription of the account would be refused
		probe.Email, probe.TimeZone = "", ""
	}
	sub, err := s.engine.Preview(ctx, probe)
	row.exists = errors.Is(err, billing.ErrExists)
	switch {
	case err != nil && !row.exists:
		field, refused := errors.AsType[*billing.FieldError](err)
		if !refused {
			m.failed = err
		}
		return field
	case !row.exists:
		row.due = s.engine.IsDue(sub)
		if field := m.judgeOverdue(&n, sub); field != nil {
			return field
		}
	case sub.Over():
		row.ended = true
		return nil
	default:
		row.terms, row.differs = sub.Compare(&n, given)
	}
	if a == nil || m.told[n.Account] || !row.exists && !m.update {
		return nil
	}
	for _, d := range a.Compare(&n, given) {
		m.told[n.Account] = true
		row.differs = append(row.differs, d)
		if d.Field == "email" {
			row.account.Email = &n.Email
		} else {
			row.account.TimeZone = &n.TimeZone
		}
	}
	return nil
}

// judgeOverdue refuses a new subscription with several periods due, or notes what becomes of them.
func (m *importer) judgeOverdue(n *billing.NewSubscription, sub *billing.Subscription) *billing.FieldError {
	today := billing.TodayIn(sub.TimeZone, m.p.now())
	due, next := sub.Overdue(today)
	if m.row.overdue = due; due == 0 {
		return nil
	}
	text := fmt.Sprintf("%d periods are due from %s on", due, sub.Anchor)
	switch m.overdue.value {
	case overdueCharge:
		text += ", and runs will charge them"
	case overdueSkip:
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

// count counts a good row, and keeps what is to be said of it. n is the number of its check.
func (m *importer) count(ctx context.Context, s *session, n int, rec book.Record) error {
	if rec.Receipt != nil && m.dryRun {
		r := *rec.Receipt
		r.Kind = billing.Imported
		_, err := s.store.Get(ctx, s.engine.Table, billing.KeyOf(r.Item()))
		if errors.Is(err, store.ErrNotFound) {
			m.sum.receipts++
		}
		return billing.IgnoreNotFound(err)
	}
	if rec.Subscription == nil {
		return nil
	}
	row, sum, kept := &m.row, &m.sum, false
	name := billing.Name{Account: rec.Subscription.Account, ID: rec.Subscription.ID}
	for _, d := range row.differs {
		kept = kept || d.Kept != ""
		m.note(importNote{rec.Line, name, d, ""})
	}
	if row.warning != "" {
		m.note(importNote{line: rec.Line, name: name, warning: row.warning})
	}
	applies := m.update && row.changes()
	if applies {
		m.changes[n] = true
		sum.updated++
	}
	if row.due {
		sum.due++
	}
	switch {
	case row.ended:
		sum.ended++
	case len(row.differs) > 0 && (kept || !m.update):
		sum.differing++
	case !row.exists:
		sum.created++
	case !applies:
		sum.existing++
	}
	return nil
}

// tokens are the forms of Stripe's payment methods, and of those of its test mode.
var tokens, testTokens = regexp.MustCompile(`^(pm|card|src|ba)_[0-9A-Za-z]{8,}$`), regexp.MustCompile(`^pm_[a-z][0-9A-Za-z_]+$`)

// unknownMethod returns the warning of a payment method that no processor knows.
func (m *importer) unknownMethod(method string) string {
	switch {
	case method == "" || !m.p.cfg.UsesStripe() && sandbox.Knows(method) || tokens.MatchString(method):
		return ""
	case m.p.cfg.UsesStripe() && !m.p.cfg.Live() && testTokens.MatchString(method) && !strings.HasPrefix(method, "pm_sandbox_"):
		return ""
	}
	return "payment_method " + secret.MaskMethod(method) + " is a token that no processor knows, so every charge with it will fail"
}

func (m *importer) note(n importNote) {
	if len(m.notes) < shownRows || m.p.cfg.JSON {
		m.notes = append(m.notes, n)
	} else {
		m.more++
	}
}

func (m *importer) sayNotes() {
	if len(m.notes) == 0 {
		return
	}
	if m.shown != nil {
		m.p.say("")
	}
	t := m.p.table("LINE", "SUBSCRIPTION", "NOTE")
	for _, n := range m.notes {
		if n.warning != "" {
			t.row(n.line, n.name, "warning: "+n.warning)
		} else {
			t.row(n.line, n.name, n.differs)
		}
	}
	if m.more > 0 {
		t.row("…", "", "and "+plural(m.more, "more note")+"; --json prints all of them")
	}
	t.flush()
}

func (m *importer) viewNotes() (list []object) {
	for _, n := range m.notes {
		v := object{"line", n.line, "subscription", n.name.String(), "warning?", n.warning}
		if d := n.differs; d.Field != "" {
			v = append(v, "column", d.Field, "stored", d.Stored, "given", d.Given, "not_changed?", d.Kept)
		}
		list = append(list, v)
	}
	return list
}

// A rowUpdate is a row whose differences are to be removed.
type rowUpdate struct {
	line int
	row  *billing.NewSubscription
	verdict
}

// update makes the changes of the rows. One that is refused is noted, and does not stop the others.
func (l *loader) update(ctx context.Context, all []rowUpdate) error {
	for _, u := range all {
		var err error
		name := billing.Name{Account: u.row.Account, ID: u.row.ID}
		if u.account != (billing.AccountChange{}) {
			_, err = l.s.engine.UpdateAccount(ctx, u.row.Account, u.account)
		}
		if err == nil && u.terms != (billing.Change{}) {
			_, err = l.s.engine.UpdateSubscription(ctx, name, u.terms)
		}
		refused := errors.As(err, new(*billing.FieldError)) || errors.Is(err, billing.ErrState) ||
			errors.Is(err, billing.ErrInvalid)
		if err != nil && !refused {
			return err
		}
		l.count(func(sum *importSummary) {
			if !refused {
				sum.updated++
				return
			}
			sum.differing++
			l.m.p.code = exitPerson
			l.m.note(importNote{line: u.line, name: name, warning: "not updated: " + secret.Clean(err.Error())})
		})
	}
	return nil
}
