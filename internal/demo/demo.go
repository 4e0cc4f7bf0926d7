// Package demo generates sample subscriptions and simulates months of billing days, on which customers
// join, pay, change cards and leave, and both daily jobs run.
//
// The same seed always produces the same demo. The package does not open stores or processors, set the
// machine's clock, or print.
package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

const workers = 16 // of a job

// Options are the parts of a demo. All are needed.
type Options struct {
	Engine      *engine.Engine
	Seed        uint64
	Accounts    int
	First, Last time.Time                                      // of the days, at the same time of day
	Set         func(ctx context.Context, now time.Time) error // moves the clock of the engine and of the processor
	Deliver     func(ctx context.Context) (mails int, err error)
	EachDay     func() // is called after each day
}

// A Report is the outcome of a demo.
type Report struct {
	Subscriptions int
	Months        []*Month // in order
}

// Run runs the demo, one day after the other.
func Run(ctx context.Context, o Options) (*Report, error) {
	first, last := civil.Of(o.First), civil.Of(o.Last)
	d := &demonstration{o: o, life: newLife(o.Seed, o.Accounts, first, last)}
	days := last.DaysSince(first)
	for i := range days + 1 {
		now := o.Last.AddDate(0, 0, i-days)
		err := o.Set(ctx, now)
		if err == nil {
			err = d.day(ctx, civil.Of(now))
		}
		if err != nil {
			return nil, fmt.Errorf("on %s: %w", civil.Of(now), err)
		}
		o.EachDay()
	}
	return &Report{Subscriptions: len(d.life.people), Months: d.months}, nil
}

// A demonstration runs the days.
type demonstration struct {
	o      Options
	life   *life
	months []*Month
}

// month returns the month of the day, which is the last one or a new one.
func (d *demonstration) month(today civil.Date) *Month {
	name := today.String()[:len("2026-01")]
	if n := len(d.months); n > 0 && d.months[n-1].Name == name {
		return d.months[n-1]
	}
	m := &Month{Name: name, Counts: map[engine.Outcome]int{}, seen: map[string]bool{}}
	d.months = append(d.months, m)
	return m
}

// day is one day of the demo: people act, both jobs run, and the mail is delivered.
func (d *demonstration) day(ctx context.Context, today civil.Date) error {
	month, e := d.month(today), d.o.Engine
	if err := d.life.day(ctx, e, today, month); err != nil {
		return err
	}
	reminded, err := job.Reminders(ctx, e, job.Options{Workers: workers})
	if err != nil {
		return err
	}
	month.Reminders += reminded.Counts[engine.OutcomeSent]
	var mu sync.Mutex
	var failed error
	_, err = job.Payments(ctx, e, job.Options{Workers: workers, Each: func(r engine.Result) {
		mu.Lock()
		defer mu.Unlock()
		d.life.notice(r)
		failed = errors.Join(failed, month.add(r))
	}})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	mails, err := d.o.Deliver(ctx)
	month.Mails += mails
	return err
}

// A Month counts the events of one month of a demo.
type Month struct {
	Name      string // such as 2026-03
	Joined    int    // new subscriptions
	Changes   int    // at people's request
	Reminders int
	Outside   int // paid outside
	// Counts are of attempts, and of periods that were pending or parked at least once.
	Counts  map[engine.Outcome]int
	Mails   int
	Amounts money.Totals

	seen map[string]bool // pending and parked periods: every run meets them
}

func (t *Month) add(r engine.Result) error {
	if r.Outcome == engine.OutcomePending || r.Outcome == engine.OutcomeParked {
		key := string(r.Outcome) + " " + r.Name.String() + " " + strconv.Itoa(r.Period)
		if t.seen[key] {
			return nil
		}
		t.seen[key] = true
	}
	t.Counts[r.Outcome]++
	if r.Outcome == engine.OutcomePaid {
		return t.Amounts.Add(r.Amount)
	}
	return nil
}

// change counts a person's request if it was carried out.
func (t *Month) change(_ *billing.Subscription, err error) error {
	if err == nil {
		t.Changes++
	}
	return err
}
