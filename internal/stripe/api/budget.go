package api

import (
	"context"
	"sync"
	"time"
)

// totalFactor is how many times the rate of one endpoint all of them may have together.
const totalFactor = 4

// slack is the part of an interval that is added to it: requests that left evenly arrive less
// so, and of 25 a second the 26th must not come in the same second.
const slack = 50

// A budget spaces requests: evenly, so many a second for each endpoint and for all of them,
// whoever sends them, in the order in which they came.
type budget struct {
	rate  int // of an endpoint, requests a second
	total *lane

	mu    sync.Mutex
	lanes map[string]*lane // by endpoint; guarded by mu
}

func newBudget(rate int) *budget {
	return &budget{rate: rate, total: newLane(totalFactor * rate), lanes: map[string]*lane{}}
}

func (b *budget) lane(endpoint string) *lane {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lanes[endpoint]
	if l == nil {
		l = newLane(b.rate)
		b.lanes[endpoint] = l
	}
	return l
}

// take waits until a request to the endpoint may be sent, and returns that instant, or the
// context's error.
func (b *budget) take(ctx context.Context, endpoint string) (time.Time, error) {
	if _, err := b.lane(endpoint).take(ctx); err != nil {
		return time.Time{}, err
	}
	return b.total.take(ctx)
}

// A lane is a queue at whose head one waits for the next slot.
type lane struct {
	full int           // Requests a second when nothing is wrong
	head chan struct{} // holds one while somebody waits at the head; channels serve in order

	mu    sync.Mutex
	next  time.Time // the next slot; guarded by mu
	rate  int       // since cut, growing by one a second up to full; guarded by mu
	cut   time.Time // when the rate was cut last; guarded by mu
	until time.Time // nothing is sent before it; guarded by mu
}

func newLane(full int) *lane { return &lane{full: full, rate: full, head: make(chan struct{}, 1)} }

// monotonic is the clock by which requests are spaced. It is the machine's and no other: the
// clock of a demo stands still, and Stripe's limits do not.
func monotonic() time.Time { return time.Now() }

func (l *lane) take(ctx context.Context) (time.Time, error) {
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	select {
	case l.head <- struct{}{}:
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	defer func() { <-l.head }()
	for {
		now := monotonic()
		wait := l.slot(now)
		if wait <= 0 {
			return now, nil
		}
		if err := pause(ctx, wait); err != nil {
			return time.Time{}, err
		}
	}
}

// slot takes the next slot if it has come, or returns how long it is until then.
func (l *lane) slot(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	interval := time.Second / time.Duration(l.current(now))
	interval += interval / slack
	if l.next.Before(now.Add(-interval)) {
		l.next = now // Request was not used is gone: no bursts
	}
	at := l.next
	if at.Before(l.until) {
		at = l.until
	}
	if wait := at.Sub(now); wait > 0 {
		return wait
	}
	// From the slot and not from now: that a timer is late by a moment costs no throughput. One
	// that is later than half the slack of a second is not made up for: the requests after it
	// would come too close.
	if late := now.Add(-time.Second / (2 * slack)); at.Before(late) {
		at = late
	}
	l.next = at.Add(interval)
	return 0
}

// current returns the rate. The caller holds mu.
func (l *lane) current(now time.Time) int {
	if l.rate == l.full {
		return l.full
	}
	since := l.cut
	if since.Before(l.until) {
		since = l.until
	}
	if grown := l.rate + max(0, int(now.Sub(since)/time.Second)); grown < l.full {
		return grown
	}
	l.rate = l.full
	return l.full
}

// slow takes a tenth off the rate and sends nothing for a while: a request that was sent at the instant
// was one too many. Several that were sent before the rate was cut cut it once.
func (l *lane) slow(sent time.Time, rest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := monotonic()
	if sent.After(l.cut) {
		l.rate, l.cut = max(1, l.current(now)*9/10), now
	}
	if until := now.Add(rest); until.After(l.until) {
		l.until = until
	}
}
