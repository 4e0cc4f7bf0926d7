package api

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// totalFactor times the rate of one endpoint is the rate of all endpoints together.
const totalFactor = 4

// slack lengthens each interval by one part in so many. Requests that left evenly arrive less
// evenly, and at 25 a second the 26th must not arrive in the same second.
const slack = 50

// A budget spaces requests evenly, in order of arrival in each process: so many a second for each
// endpoint and for all endpoints together.
type budget struct {
	rate  int    // of an endpoint, requests a second
	share *share // with other processes; nil: with none
	total *pace

	paces sync.Map // *pace by endpoint
}

func newBudget(rate int, s *share) *budget {
	return &budget{rate: rate, share: s, total: newPace(totalFactor*rate, "total", s)}
}

func (b *budget) pace(endpoint string) *pace {
	p, ok := b.paces.Load(endpoint)
	if !ok {
		name := strings.ReplaceAll(endpoint, "/", ".") // whoever searches files for links finds none
		p, _ = b.paces.LoadOrStore(endpoint, newPace(b.rate, name, b.share))
	}
	return p.(*pace)
}

// take waits until a request to the endpoint may be sent. It returns that instant, or the
// context's error.
func (b *budget) take(ctx context.Context, endpoint string) (time.Time, error) {
	if _, err := b.pace(endpoint).take(ctx); err != nil {
		return time.Time{}, err
	}
	return b.total.take(ctx)
}

// A pace spaces requests of one kind: the first waiting request takes the next slot.
type pace struct {
	name string        // in the share
	full int           // requests a second when nothing is wrong
	head chan struct{} // full while a request waits at the head; channels serve in order

	share *share

	mu     sync.Mutex
	record // guarded by mu
}

// A record is the state of a pace, as it is in the file of a share.
type record struct {
	Next  time.Time `json:"next"`  // slot
	Until time.Time `json:"until"` // no request is sent before it
	Cut   time.Time `json:"cut"`   // the last cut of the rate
	Rate  int       `json:"rate"`  // since Cut, growing by one a second up to full
}

func newPace(full int, name string, s *share) *pace {
	return &pace{name: name, full: full, record: record{Rate: full}, head: make(chan struct{}, 1), share: s}
}

// monotonic is the machine's clock, which spaces requests: the clock of a demo stands still, and
// Stripe's limits do not.
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
		if err := pause(ctx, wait); err != nil {
			return time.Time{}, err
		}
	}
}

// slot takes the next slot if it has come, or else returns the time until it comes.
func (p *pace) slot(now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.share.change(p, now, func() { wait = p.takeSlot(now) }) {
		return lockEvery
	}
	return wait
}

// takeSlot is slot for this process. The caller holds mu.
func (p *pace) takeSlot(now time.Time) time.Duration {
	interval := time.Second / time.Duration(p.current(now))
	interval += interval / slack
	if p.Next.Before(now.Add(-interval)) {
		p.Next = now // unused slots are lost: no bursts
	}
	at := later(p.Next, p.Until)
	if wait := at.Sub(now); wait > 0 {
		return wait
	}
	// The next interval begins at the slot and not now, so that a late timer costs no throughput.
	// At most half the slack of a second is made up for: else the next requests come too close.
	p.Next = later(at, now.Add(-time.Second/(2*slack))).Add(interval)
	return 0
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// current returns the rate. The caller holds mu.
func (p *pace) current(now time.Time) int {
	if p.Rate == p.full {
		return p.full
	}
	since := later(p.Cut, p.Until)
	if grown := p.Rate + max(0, int(now.Sub(since)/time.Second)); grown < p.full {
		return grown
	}
	p.Rate = p.full
	return p.full
}

// slow takes a tenth off the rate and stops sending for the rest, after a request sent at the given
// instant was too many. Several requests sent before a cut cause one cut.
func (p *pace) slow(sent time.Time, rest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := monotonic()
	cut := func() {
		if sent.After(p.Cut) {
			p.Rate, p.Cut = max(1, p.current(now)*9/10), now
		}
		p.Until = later(p.Until, now.Add(rest))
	}
	if !p.share.change(p, now, cut) {
		cut()
	}
}
