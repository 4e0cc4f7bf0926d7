// Package demo makes up a book of subscriptions and lets months of billing days happen to it:
// people join, pay, change cards and leave, and both daily jobs run.
//
// A demo follows from its seed alone. The package does not open stores or processors, move the
// clock of the machine, or print.
package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing/engine"

	"github.com/duesday/duesday/internal/civil"
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
	return &Report{Subscriptions: d.life.subscribers(), Months: d.months}, nil
}

// A Clock stands still until it is set. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	t  time.Time // guarded by mu
}

// Now returns the time set last.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Set sets the time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
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
	m := &Month{Name: name, seen: map[string]bool{}}
	d.months = append(d.months, m)
	return m
}

// day is one day of the demo: people act, both jobs run, and the mail is delivered.
func (d *demonstration) day(ctx context.Context, today civil.Date) error {
	month, e := d.month(today), d.o.Engine
	if err := d.life.day(ctx, e, today, month); err != nil {
		return err
	}
	reminded, err := e.RunReminders(ctx, engine.RunOptions{Workers: workers})
	if err != nil {
		return err
	}
	month.Reminders += reminded.Sent
	var mu sync.Mutex
	var failed error
	_, err = e.RunPayments(ctx, engine.RunOptions{Workers: workers, Each: func(r engine.Result) {
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
