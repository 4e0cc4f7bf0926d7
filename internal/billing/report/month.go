package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// monthOf returns the first day of the date's month.
func monthOf(d civil.Date) civil.Date { return d.AddDays(1 - d.Day()) }

// nextMonth returns the first day of the month after the date's.
func nextMonth(d civil.Date) civil.Date { return monthOf(monthOf(d).AddDays(31)) }

// months adds up the months, and what was due before them: an imported book may be older.
func (m *maker) months(ctx context.Context) error {
	end := nextMonth(cmp.Or(m.q.To, civil.Today(m.Now(), m.zone)))
	from := cmp.Or(m.q.From, civil.Earlier(civil.Later(end.AddDays(-360), civil.Today(m.Opened.Created, m.zone)), end.AddDays(-1)))
	first := monthOf(from)
	m.Taxes = m.taxes.list(first, end)
	sums, late, err := m.sums(ctx, first.In(m.zone), end.In(m.zone))
	if err != nil {
		return err
	}
	currencies := map[string]money.Currency{}
	note := func(to table, d civil.Date, a money.Amount) error {
		currencies[a.Currency().Code()] = a.Currency()
		return to.add(d, a)
	}
	tables, before := map[Kind]table{}, table{}
	for _, s := range sums {
		if tables[s.Kind] == nil {
			tables[s.Kind] = table{}
		}
		month := monthOf(civil.Today(s.At, m.zone))
		if err := note(tables[s.Kind], month, s.Amount); err != nil {
			return fmt.Errorf("%s in %s: "+TooLarge+": %w", s.Kind, month.String()[:7], s.Amount.Currency().Code(), err)
		}
	}
	for _, x := range m.outstanding.list() {
		day := x.Date
		if day.Before(first) {
			day = civil.Date{}
		}
		if err := note(before, day, x.Amount); err != nil {
			return err
		}
	}
	for _, a := range m.MRR {
		currencies[a.Currency().Code()] = a.Currency()
	}
	codes := slices.Sorted(maps.Keys(currencies))
	for _, code := range codes {
		if a := before.at(civil.Date{}, currencies[code]); !a.IsZero() {
			m.Before = append(m.Before, a)
		}
	}
	for d := first; d.Before(end); d = nextMonth(d) {
		missing := m.missing(d, late)
		for _, code := range codes {
			c := currencies[code]
			x := Month{First: d, Sums: map[Kind]money.Amount{}, Outstanding: before.at(d, c), Missing: missing}
			for _, kind := range Kinds {
				x.Sums[kind] = tables[kind].at(d, c)
			}
			m.Months = append(m.Months, x)
		}
	}
	return nil
}

// missing returns why the sums of a month may be too small. Sums never expire; but where receipts may
// have, the audit can no longer tell that they are right.
func (m *maker) missing(first civil.Date, late bool) string {
	begins, ends := first.In(m.zone), nextMonth(first).In(m.zone)
	kept, months := m.Opened.Summed, m.q.Settings.ReceiptMonths
	switch {
	case kept.IsZero():
		return "the store has no sums, because an older Duesday created it and nothing has been written since"
	case kept.After(begins) && !(kept.Equal(m.Opened.Created) && kept.Before(ends)):
		return "sums have been kept since " + kept.Format(time.DateOnly)
	case months > 0 && begins.Before(m.Now().AddDate(0, -months, 0)):
		return "its receipts have expired, so verify no longer compares its sums"
	case late && m.AsOf.Before(ends):
		return "mail is being sent, so some sums are still being added"
	}
	return m.gaps[first]
}

// sums returns the sums from one time to another, those waiting in the outbox among them, and sets
// AsOf. It is late if drains are so busy that waiting ones cannot be told from added ones.
func (m *maker) sums(ctx context.Context, from, until time.Time) (list []Sum, late bool, err error) {
	add := func(some []Sum, _ error) {
		for _, s := range some {
			if !s.At.Before(from) && s.At.Before(until) {
				list = append(list, s)
			}
		}
	}
	var items, before []store.Item
	for range 5 {
		now := m.Now()
		if before, err = processor.Gather(Items(ctx, m.Records, from, until)); err != nil {
			return nil, false, err
		}
		list, m.AsOf = nil, now
		for row, err := range Uncounted(ctx, m.Records) {
			if err != nil {
				return nil, false, err
			}
			if add(Parse(row.Sums)); row.Created.Before(m.AsOf) {
				m.AsOf = row.Created
			}
		}
		if items, err = processor.Gather(Items(ctx, m.Records, from, until)); err != nil {
			return nil, false, err
		}
		if late = !slices.EqualFunc(before, items, store.Item.Equal); !late {
			m.AsOf = now
			break
		}
		list = nil
	}
	for _, it := range items {
		some, err := Decode(it)
		if add(some, nil); err != nil {
			m.gaps[monthOf(civil.Today(TimeOf(it), m.zone))] = "one of its sums cannot be read; verify names it"
		}
	}
	return list, late, nil
}
