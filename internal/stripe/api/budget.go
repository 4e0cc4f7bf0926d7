package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	totalFactor = 4 // times the rate of one endpoint: the rate of all endpoints together
	// slack lengthens each interval by one part in so many. Requests that left evenly arrive less
	// evenly, and at 25 a second the 26th must not arrive in the same second.
	slack = 50
)

// A budget spaces requests evenly, in order of arrival: those to one endpoint, and all together.
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

// take waits until a request to the endpoint may be sent, and returns that instant.
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

// A share is the file by which processes have one budget. It holds each pace as the last of them has
// left it. A process changes it under a lock for microseconds, before each request to Stripe.
//
// A file rather than the holder of the store's folder grants the requests: it needs no connection,
// and goes on when the holder ends.
//
//   - A process is killed with the lock: the kernel releases it.
//   - A process stands still with the lock: after lockPatience the others go on without the file.
//   - The file is damaged or lost, or the disk is full: each process knows its own requests, and the
//     next to write starts the file anew.
//   - The wall clock steps back: instants that no process can have meant are left out.
//   - Processes have different rates: each request takes the interval of its own process.
//   - The machine stops: nothing of the file is needed later, so it is not synced.
type share struct {
	mu      sync.Mutex // the lock is the file's, and so the process's
	file    *os.File
	blocked time.Time // since when another process has the lock; guarded by mu
}

const (
	lockPatience = time.Second
	lockEvery    = time.Millisecond
	maxShare     = 1 << 20 // bytes
	longestSlot  = 2 * time.Second
)

// openShare returns nil for an empty path.
func openShare(path string) (*share, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("stripe: budget of requests: %w", err)
	}
	return &share{file: f}, nil
}

func (s *share) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
}

// change lets the change see the pace as all processes have left it, and writes it back. It returns
// false, and changes nothing, while another process has the lock. The caller holds p.mu.
func (s *share) change(p *pace, now time.Time, change func()) bool {
	if s == nil {
		change()
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if syscall.Flock(int(s.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if s.blocked.IsZero() {
			s.blocked = now
		}
		if now.Sub(s.blocked) < lockPatience {
			return false
		}
		change()
		return true
	}
	defer syscall.Flock(int(s.file.Fd()), syscall.LOCK_UN)
	s.blocked = time.Time{}
	all := map[string]record{}
	text, err := io.ReadAll(io.NewSectionReader(s.file, 0, maxShare))
	if err != nil || json.Unmarshal(text, &all) != nil {
		clear(all)
	}
	p.merge(all[p.name], now)
	change()
	all[p.name] = p.record
	if text, err = json.Marshal(all); err == nil {
		if _, err = s.file.WriteAt(text, 0); err == nil {
			_ = s.file.Truncate(int64(len(text))) // else the file is damaged
		}
	}
	return true
}

// merge takes what is later in the record, if a clock that was not set back can have written it.
func (p *pace) merge(r record, now time.Time) {
	if p.Next.Sub(now) > longestSlot {
		p.Next = now
	}
	if p.Until.Sub(now) > longestAsked {
		p.Until = now
	}
	if r.Next.Sub(now) <= longestSlot {
		p.Next = later(p.Next, r.Next)
	}
	if r.Until.Sub(now) <= longestAsked {
		p.Until = later(p.Until, r.Until)
	}
	if r.Cut.After(p.Cut) && !r.Cut.After(now) && r.Rate > 0 {
		p.Cut, p.Rate = r.Cut, min(r.Rate, p.full)
	}
}
