package poller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// A catchUp is one account's part of a round.
type catchUp struct {
	*round
	a     *tracking.ConnectedAccount
	state tracking.PollState
	known func(context.Context, RawEvent) (bool, error) // whether an event is stored

	missing []RawEvent           // newest first: those in memory
	bytes   int64                // of their bodies
	dropped int                  // missing too, newer, and not in memory
	cut     time.Time            // creation of the oldest dropped one
	again   map[string]time.Time // creation by id: sent, and listed again from the cut on
	gap     error                // why the objects could not be compared, if events are lost
	news    bool                 // there is an event since the last round
	listed  int
	found   int // missing
	sent    int
}

// run brings the account up to date. Of too many events it sends the oldest, and lists the rest again.
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
		c.known = (&span{p: c.p, account: c.a.StripeAccount}).has // the ids read before lack those just sent
	}
}

// verified moves the mark forward, but not over an open gap.
func (c *catchUp) verified(through time.Time) {
	if c.gap == nil {
		c.state.Through = later(c.state.Through, through)
	}
}

// list keeps the oldest missing events in memory. It returns the time by Stripe's clock.
func (c *catchUp) list(ctx context.Context, since time.Time) (time.Time, error) {
	c.release()
	c.dropped = 0
	last := c.a.Polled.Through
	if last.IsZero() {
		last = c.round.now.Add(-c.p.o.Interval) // a new account's past does not make it busy
	}
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
	if err == nil && c.asksThin(c.a) { // later: it has all thin events before now, too
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

// hold keeps an event in memory, and drops the newest if there are too many.
func (c *catchUp) hold(e RawEvent) {
	e.Body = bytes.Clone(e.Body) // its page may be overwritten
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

// send sends the events in memory, oldest first, except those received meanwhile. The first failure
// ends it, as later events may need the failed one. A body that is no event is passed over.
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
		if errors.Is(err, tracking.ErrBody) { // the events after it must not wait for ever
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

// leaveOut drops events stored by now, and events listed twice.
func (c *catchUp) leaveOut(ctx context.Context) error {
	held := make(map[string]bool, len(c.missing)) // by id
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

// lost reports the time not listed by Stripe any more, and compares its objects. now is Stripe's.
func (c *catchUp) lost(ctx context.Context, now time.Time) {
	gap := Gap{StripeAccount: c.a.StripeAccount, From: c.state.Through, To: now.Add(-stripeKeeps)}
	if gap.From.IsZero() || !gap.From.Before(gap.To) {
		return
	}
	c.p.o.Log.Error("an account's oldest missing events are lost, because Stripe deletes events after 30 days; the poller compares the account's objects instead",
		"stripe_account", c.a.StripeAccount, "from", gap.From, "to", gap.To)
	if !c.p.o.NoSweeps { // else whoever sweeps sees the gap by the mark
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
