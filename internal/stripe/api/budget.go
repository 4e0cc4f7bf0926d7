package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/clock"
)

const (
	totalFactor = 4 // times the rate of one endpoint: the rate of all endpoints together
	// slack lengthens each interval by one part in so many. Requests that left evenly arrive less
	// evenly, and at 25 a second the 26th must not arrive in the same second.
	slack = 50
)

// A budget spaces requests evenly, in order of arrival: those to one endpoint, and all together.
type budget struct {
	rate  int // of an endpoint, requests a second
	total *pace

	paces sync.Map // *pace by endpoint
}

func newBudget(rate int) *budget {
	return &budget{rate: rate, total: newPace(totalFactor * rate)}
}

func (b *budget) pace(endpoint string) *pace {
	p, ok := b.paces.Load(endpoint)
	if !ok {
		p, _ = b.paces.LoadOrStore(endpoint, newPace(b.rate))
	}
	return p.(*pace)
}

// take waits until a request to the endpoint may be sent, and returns that instant.
func (b *budget) take(ctx context.Context, endpoint string) (time.Time, error) {
	if _, err := b.pace(endpoint).take(ctx); err != nil {
		return time.Time{}, err
	}
	return b.total.take(ctx)
}

// A pace spaces requests of one kind: the first waiting request takes the next slot.
type pace struct {
	full int           // requests a second when nothing is wrong
	head chan struct{} // full while a request waits at the head; channels serve in order

	mu    sync.Mutex
	next  time.Time // slot; guarded by mu, as the fields below
	until time.Time // no request is sent before it
	cut   time.Time // the last cut of the rate
	rate  int       // since cut, growing by one a second up to full
}

func newPace(full int) *pace {
	return &pace{full: full, rate: full, head: make(chan struct{}, 1)}
}

// monotonic is the machine's clock: that of a demo stands still, and Stripe's limits do not.
func monotonic() time.Time { return time.Now() }

func (p *pace) take(ctx context.Context) (time.Time, error) {
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	select {
	case p.head <- struct{}{}:
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	defer func() { <-p.head }()
	for {
		now := monotonic()
		wait := p.slot(now)
		if wait <= 0 {
			return now, nil
		}
		if err := clock.Wait(ctx, wait); err != nil {
			return time.Time{}, err
		}
	}
}

// slot takes the next slot if it has come, or else returns the time until it comes.
func (p *pace) slot(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	interval := time.Second / time.Duration(p.current(now))
	interval += interval / slack
	if p.next.Before(now.Add(-interval)) {
		p.next = now // unused slots are lost: no bursts
	}
	at := later(p.next, p.until)
	if wait := at.Sub(now); wait > 0 {
		return wait
	}
	// The next interval begins at the slot and not now, so that a late timer costs no throughput.
	// At most half the slack of a second is made up for: else the next requests come too close.
	p.next = later(at, now.Add(-time.Second/(2*slack))).Add(interval)
	return 0
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// current returns the rate. The caller holds mu.
func (p *pace) current(now time.Time) int {
	if p.rate == p.full {
		return p.full
	}
	since := later(p.cut, p.until)
	if grown := p.rate + max(0, int(now.Sub(since)/time.Second)); grown < p.full {
		return grown
	}
	p.rate = p.full
	return p.full
}

// slow takes a tenth off the rate and stops sending for the rest, after a request sent at the given
// instant was too many. Several requests sent before a cut cause one cut.
func (p *pace) slow(sent time.Time, rest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := monotonic()
	if sent.After(p.cut) {
		p.rate, p.cut = max(1, p.current(now)*9/10), now
	}
	p.until = later(p.until, now.Add(rest))
}
