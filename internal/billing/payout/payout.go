// Package payout compares a store's receipts with the payouts of its processor.
//
// It asks the processor for each payout and its transactions, and matches their payment intents
// with receipts. A report has two lists that are empty if nothing is wrong: charges without a
// receipt, and receipts that are in no payout. Whatever the processor does not list makes the
// report incomplete, and a receipt is never reported as missing from a list that the processor has
// not given completely.
//
// It changes nothing, in the store or at the processor.
package payout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// Settled is the usual Query.Days, and MaxSettled the longest.
const Settled, MaxSettled = 14, 366

// A Query selects what a report shows.
type Query struct {
	// From and Until are the first and the last day on which a shown payout arrives, and on which a
	// listed receipt was paid. A zero Until means no end.
	From, Until civil.Date
	Days        int // after which a receipt must be in a payout
}

func (q *Query) has(d civil.Date) bool {
	return !d.Before(q.From) && (q.Until.IsZero() || !d.After(q.Until))
}

// A Report compares payouts with receipts.
type Report struct {
	Payouts []*Payout // by arrival
	// Unreceipted are charges of this store that have no receipt, or a receipt of another amount.
	Unreceipted []*Line
	Unsettled   []*Line   // receipts in no payout
	Gaps        []*Payout // what is Hidden; without an ID, a Stripe account's list of payouts, or a receipt
	Untold      int       // receipts in no payout that a gap may contain
}

// A Payout is a payout with its transactions.
type Payout struct {
	processor.Payout
	Lines    []*Line      // none of a Hidden payout
	Unlisted money.Amount // what is not in Lines
	sums     map[processor.TransactionKind]money.Amount
}

// Sum returns a part of the amount. SettledFee are all fees, and SettledOther is all else of other
// systems.
func (p *Payout) Sum(of processor.TransactionKind) money.Amount {
	return cmp.Or(p.sums[of], money.New(0, p.Amount.Currency()))
}

// A Line is a transaction in a payout, or a receipt in none.
type Line struct {
	processor.Transaction
	Payout    *Payout
	Receipt   *billing.Receipt // nil if there is none
	ReceiptID string
	Own       bool   // the charge, or what is reversed, is this store's
	Problem   string // "" if there is none
}

// ErrNone is returned for a processor that has no payouts.
var ErrNone = errors.New("this processor pays nothing out, so there are no payouts to compare with receipts")

// A maker makes one report.
type maker struct {
	Report
	Query
	from     processor.Settler
	meta     billing.Meta
	settings settings.Settings
	now      time.Time
	byRef    map[string][]*Line
	unread   []*Payout // receipts that cannot be read
}

// Make returns the report. Its errors are the store's, and the processor's refusal of the
// credentials.
func Make(ctx context.Context, e *billing.Records, from processor.Charger, q Query) (*Report, error) {
	settler, is := from.(processor.Settler)
	if !is {
		return nil, ErrNone
	}
	m := &maker{Query: q, from: settler, now: e.Now(), byRef: map[string][]*Line{}}
	var err error
	if m.meta, err = e.Meta(ctx); err == nil {
		m.settings, err = settings.Read(ctx, e)
	}
	zone, bad := civil.Zone(cmp.Or(m.settings.TimeZone, "UTC"))
	if err = cmp.Or(err, bad); err == nil {
		err = m.list(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	for r, err := range e.Receipts(ctx) {
		if bad, is := errors.AsType[*billing.ItemError](err); is {
			m.unread = append(m.unread, &Payout{Payout: processor.Payout{Hidden: bad.Error()}})
		} else if err != nil {
			return nil, err
		} else if r.Kind == billing.Charged {
			m.match(r, zone)
		}
	}
	return &m.Report, m.finish()
}

// list asks for the payouts of all Stripe accounts, and their transactions.
func (m *maker) list(ctx context.Context, e *billing.Records) error {
	places, err := e.Places(ctx)
	if err != nil {
		return err
	}
	answers := processor.AskEach(places, func(at string) ([]*Payout, error) { return m.read(ctx, at) })
	if err := ctx.Err(); err != nil {
		return err
	}
	if errors.Is(answers[0].Err, processor.ErrRefused) {
		return answers[0].Err
	}
	for i, a := range answers {
		if a.Err != nil {
			m.gap(&Payout{Payout: processor.Payout{At: places[i], Hidden: "the payouts could not be listed: " + a.Err.Error()}})
		}
		for _, p := range a.Value {
			if m.gap(p); m.has(p.Arrival) {
				m.Payouts = append(m.Payouts, p)
			}
			for _, l := range p.Lines {
				m.byRef[l.Ref] = append(m.byRef[l.Ref], l)
			}
		}
	}
	return nil
}

// read asks for the payouts of a Stripe account and for their transactions. A receipt's day may
// have begun half a day before the bank's.
func (m *maker) read(ctx context.Context, at string) (all []*Payout, err error) {
	since := m.From.AddDays(-2).In(time.UTC)
	list, err := processor.AskAll(ctx, m.from.Payouts, processor.ListRequest{At: at, Since: since})
	for _, x := range list {
		p := &Payout{Payout: x, Unlisted: x.Amount}
		if all = append(all, p); p.Hidden != "" {
			continue
		}
		lines, err := processor.Ask(ctx, func() ([]processor.Transaction, error) {
			return processor.Gather(m.from.Settled(ctx, at, x.ID))
		})
		if err != nil {
			p.Hidden = "its transactions could not be listed: " + err.Error()
		} else {
			p.Hidden = p.fill(lines)
		}
	}
	return all, err
}

// fill gives the payout its transactions, or returns why they are not those of the payout.
func (p *Payout) fill(all []processor.Transaction) string {
	left, seen := p.Amount, map[string]bool{}
	var lines []*Line
	for _, t := range all {
		var err error
		if left, err = left.Add(money.New(-t.Net.Minor(), t.Net.Currency())); err != nil || seen[t.ID] {
			return "transaction " + t.ID + " is listed twice, or does not fit the payout's currency"
		}
		seen[t.ID] = true
		lines = append(lines, &Line{Transaction: t, Payout: p})
	}
	if !left.IsZero() {
		return "its transactions leave " + left.String() + " unexplained"
	}
	p.Lines, p.Unlisted = lines, left
	return ""
}

// gap notes a payout that is not listed completely.
func (m *maker) gap(p *Payout) {
	if p.Hidden != "" {
		m.Gaps = append(m.Gaps, p)
	}
}

// match gives the receipt to its lines, or lists it if it should be in a payout and is in none.
func (m *maker) match(r *billing.Receipt, zone *time.Location) {
	x := &Line{Transaction: processor.Transaction{Kind: "receipt", Ref: r.Charge, Created: r.Processed, Charged: r.Amount},
		Payout: new(Payout), Receipt: r, ReceiptID: r.Number(m.meta.Installation), Own: true, Problem: "in no payout"}
	for _, l := range m.byRef[r.Charge] {
		l.Receipt, l.ReceiptID = r, x.ReceiptID
		switch {
		case l.Kind != processor.SettledCharge:
		case !l.Payout.Returned || m.byRef[l.Payout.ID] != nil: // a later payout has the money that was returned
			x.Problem = ""
		case x.Problem != "":
			x.Problem = "only in " + l.Payout.ID + ", which " + l.Payout.State
		}
	}
	at, _, connected := strings.Cut(r.Charge, "/")
	if connected {
		x.Payout.At = at
	}
	switch {
	case x.Problem == "" || !m.has(civil.Today(r.Processed, zone)) || r.Processed.After(m.now.AddDate(0, 0, -m.Days)):
	case slices.ContainsFunc(m.Gaps, func(p *Payout) bool { return p.At == x.Payout.At }):
		m.Untold++
	default:
		m.Unsettled = append(m.Unsettled, x)
	}
}

// finish adds up the payouts that are shown, and lists their charges that have no matching receipt.
func (m *maker) finish() error {
	slices.SortFunc(m.Payouts, func(a, b *Payout) int {
		return cmp.Or(a.Arrival.Compare(b.Arrival), cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
	})
	m.Gaps = slices.DeleteFunc(m.Gaps, func(p *Payout) bool { return p.ID != "" && m.Untold == 0 && !m.has(p.Arrival) })
	m.Gaps = append(m.Gaps, m.unread...) // which hide no payout
	slices.SortFunc(m.Unsettled, func(a, b *Line) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Ref, b.Ref)) })
	for _, p := range m.Payouts {
		p.sums = map[processor.TransactionKind]money.Amount{}
		for _, l := range p.Lines {
			kind := processor.SettledOther
			if l.Own = l.Receipt != nil || m.meta.Accepts(l.Tag.Installation); l.Own {
				kind = l.Kind
			}
			if kind == processor.SettledCharge {
				m.check(l)
			}
			gross, err := p.Sum(kind).Add(l.Gross)
			p.sums[kind] = gross
			fees, overflow := p.Sum(processor.SettledFee).Add(l.Fee)
			p.sums[processor.SettledFee] = fees
			if err = cmp.Or(err, overflow); err != nil {
				return fmt.Errorf("payout %s: %w", p.ID, err)
			}
		}
	}
	return nil
}

// check lists a charge whose receipt is missing and cannot have expired, or has another amount.
func (m *maker) check(l *Line) {
	months := m.settings.ReceiptMonths
	switch {
	case l.Receipt != nil && l.Receipt.Amount == l.Charged:
		return
	case l.Receipt != nil:
		l.Problem = "receipt of " + l.Receipt.Amount.String()
	case months > 0 && l.Created.Before(m.now.AddDate(0, -months, 0)):
		l.Problem = "the receipt may have expired"
		return
	case len(m.unread) > 0:
		l.Problem = "no receipt that can be read"
	default:
		l.Problem = "no receipt"
	}
	m.Unreceipted = append(m.Unreceipted, l)
}
