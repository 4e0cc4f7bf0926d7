package poller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// A catchUp brings one account up to date during a round.
type catchUp struct {
	*round
	a     *tracking.ConnectedAccount
	state tracking.PollState
	known func(context.Context, RawEvent) (bool, error) // reports whether an event is stored

	missing []RawEvent           // missing events held in memory, newest first
	bytes   int64                // total size of their bodies
	dropped int                  // newer missing events that were dropped from memory
	cut     time.Time            // creation time of the oldest dropped event
	again   map[string]time.Time // creation times by ID of sent events that the next list repeats
	gap     error                // error of comparing the objects after events were lost
	news    bool                 // Stripe listed an event since the last round
	listed  int
	found   int // number of missing events found
	sent    int
}

// run brings the account up to date. If the missing events do not fit in memory, run sends the
// oldest ones and lists the rest again.
func (c *catchUp) run(ctx context.Context) error {
	since := c.since(c.a)
	c.known = (&span{p: c.p, account: c.a.StripeAccount}).has
	if c.isShort(since) {
		c.known = func(_ context.Context, e RawEvent) (bool, error) {
			ids, err := c.stored()
			_, ok := ids[e.ID]
			return ok, err
		}
	}
	for first := true; ; first = false {
		now, err := c.list(ctx, since)
		if err != nil {
			return err
		}
		if first {
			c.lost(ctx, now)
		}
		sent := c.sent
		if err := c.send(ctx); err != nil {
			return err
		}
		if c.dropped == 0 {
			c.verified(now)
			return c.gap
		}
		if !first && c.sent == sent && !c.cut.After(since) {
			return errors.New("more events happened in one second than fit in memory, and some of them are not stored yet")
		}
		since = c.cut
		maps.DeleteFunc(c.again, func(_ string, created time.Time) bool { return created.Before(since) })
		c.verified(earlier(c.cut, now))
		if err := c.save(ctx); err != nil {
			return err
		}
		c.known = (&span{p: c.p, account: c.a.StripeAccount}).has // the IDs read earlier lack the events just sent
	}
}

// verified advances the account's mark, unless lost events leave an open gap.
func (c *catchUp) verified(through time.Time) {
	if c.gap == nil {
		c.state.Through = later(c.state.Through, through)
	}
}

// list reads Stripe's list and holds the oldest missing events in memory. It returns the time by
// Stripe's clock.
func (c *catchUp) list(ctx context.Context, since time.Time) (time.Time, error) {
	c.release()
	c.dropped = 0
	last := cmp.Or(c.a.Polled.Through, c.round.now.Add(-c.p.o.Interval)) // old events do not make a new account busy
	var broken error
	each := func(e RawEvent) error {
		c.listed++
		c.news = c.news || !e.Created.Before(last)
		known, err := c.known(ctx, e)
		if _, sent := c.again[e.ID]; err == nil && !known && !sent {
			c.hold(e)
		}
		broken = err
		return err
	}
	now, err := c.p.o.Lister.ListEvents(ctx, atOf(c.a), since, each)
	if err == nil && c.asksThin(c.a) { // listed second, so it includes all thin events before now
		if err = c.p.o.Lister.ListThin(ctx, atOf(c.a), since, each); errors.Is(err, ErrNoThin) {
			c.p.o.Log.Debug("Stripe does not list thin events for this account", "stripe_account", c.a.StripeAccount, "error", secret.Short(err.Error()))
			err = nil
		}
	}
	switch {
	case broken != nil:
		return now, broken
	case err != nil:
		return now, fmt.Errorf("list the events: %w", err)
	}
	return now, nil
}

// hold keeps an event in memory. If there are too many, it drops the newest.
func (c *catchUp) hold(e RawEvent) {
	e.Body = bytes.Clone(e.Body) // the lister may overwrite the page
	c.missing = append(c.missing, e)
	c.count(len(e.Body))
	for n := len(c.missing); n > c.p.o.Batch || n > leastHeld && c.p.held.Load() > c.p.maxHeld; n-- {
		newest := c.missing[0]
		if c.missing[0], c.missing = (RawEvent{}), c.missing[1:]; c.dropped == 0 {
			c.cut = newest.Created
		}
		c.cut = earlier(c.cut, newest.Created)
		c.dropped++
		c.count(-len(newest.Body))
	}
}

func (c *catchUp) count(size int) {
	c.bytes += int64(size)
	c.p.held.Add(int64(size))
}

func (c *catchUp) release() {
	c.count(int(-c.bytes))
	c.missing = nil
}

// send ingests the events in memory, oldest first, except those that arrived meanwhile. It stops at
// the first failure, because later events may depend on the failed event. It skips a body that is
// not an event.
func (c *catchUp) send(ctx context.Context) error {
	if len(c.missing) == 0 {
		return nil
	}
	slices.Reverse(c.missing)
	slices.SortStableFunc(c.missing, func(a, b RawEvent) int { return a.Created.Compare(b.Created) })
	if err := c.leaveOut(ctx); err != nil {
		return err
	}
	c.found += len(c.missing)
	for i, e := range c.missing {
		_, err := c.p.o.Ledger.Ingest(ctx, e.Body, tracking.Origin{Connect: !c.a.Own, Source: tracking.FromPoll})
		if errors.Is(err, tracking.ErrBody) { // otherwise the events after it would wait forever
			c.p.o.Log.Error("Stripe listed an event that Duesday cannot decode; it was skipped", "stripe_account", c.a.StripeAccount, "event",
				e.ID, "error", secret.Short(err.Error()))
		} else if err != nil {
			return fmt.Errorf("ingest %s: %w", e.ID, err)
		}
		c.sent++
		c.again[e.ID] = e.Created
		c.count(-len(e.Body))
		c.missing[i].Body = nil
	}
	return nil
}

// leaveOut drops events that have been stored meanwhile, and events that were listed twice.
func (c *catchUp) leaveOut(ctx context.Context) error {
	held := make(map[string]bool, len(c.missing)) // keyed by ID
	for _, e := range c.missing {
		held[e.ID] = true
	}
	q := tracking.EventQuery{StripeAccount: c.a.StripeAccount, From: c.missing[0].Created,
		To: c.missing[len(c.missing)-1].Created.Add(time.Second)}
	if err := c.p.readIDs(ctx, q, func(id string) { delete(held, id) }); err != nil {
		return err
	}
	c.missing = slices.DeleteFunc(c.missing, func(e RawEvent) bool {
		wanted := held[e.ID]
		if delete(held, e.ID); !wanted {
			c.count(-len(e.Body))
		}
		return !wanted
	})
	return nil
}

// lost reports the period whose events Stripe has deleted, and compares the account's objects
// instead. The argument now is the time by Stripe's clock.
func (c *catchUp) lost(ctx context.Context, now time.Time) {
	gap := Gap{StripeAccount: c.a.StripeAccount, From: c.state.Through, To: now.Add(-stripeKeeps)}
	if gap.From.IsZero() || !gap.From.Before(gap.To) {
		return
	}
	c.p.o.Log.Error("an account's oldest missing events are lost, because Stripe deletes events after 30 days; the poller compares the account's objects instead",
		"stripe_account", c.a.StripeAccount, "from", gap.From, "to", gap.To)
	if !c.p.o.NoSweeps { // otherwise the sweeping poller detects the gap from the mark
		var changed []string
		if _, changed, c.gap = c.p.compare(ctx, c.a, gap.From.Add(-sweepOverlap)); c.gap == nil {
			c.state.Swept = c.now
		}
		gap.Changed = len(changed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Lost = append(c.report.Lost, gap)
}

func (c *catchUp) save(ctx context.Context) error {
	if err := c.p.o.Ledger.SavePoll(ctx, c.a.StripeAccount, c.state); err != nil {
		return fmt.Errorf("save the account's progress: %w", err)
	}
	c.a.Polled = c.state
	return nil
}
