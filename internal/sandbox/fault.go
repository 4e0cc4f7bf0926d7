package sandbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/processor"
)

// A fate is the fault, or none, of one call.
type fate int

const (
	normal  fate = iota
	busy         // not done, and the caller knows
	lost         // not done, and the caller cannot know
	cached       // not done, and the key is spoilt
	unknown      // done, and the caller cannot know
)

// fates draws one fate for each call, so that the order of calls decides.
type fates struct {
	mu  sync.Mutex
	rng *rand.Rand // guarded by mu; nil when there are no faults
	o   *Options
}

func newFates(o *Options) *fates {
	d := &fates{o: o}
	if o.UnknownRate+o.LostRate+o.BusyRate+o.CachedRate > 0 {
		d.rng = rand.New(rand.NewPCG(o.Seed, 0))
	}
	return d
}

func (d *fates) draw() fate {
	if d.rng == nil {
		return normal
	}
	d.mu.Lock()
	u := d.rng.Float64()
	d.mu.Unlock()
	for _, r := range d.o.rates() {
		if u < *r.p {
			return r.fate
		}
		u -= *r.p
	}
	return normal
}

// begin is the way of a call to the processor. The call is executed only if begin returns no error.
func (s *Sandbox) begin(ctx context.Context, key string) (fate, error) {
	if err := clock.Wait(ctx, s.o.Latency); err != nil {
		return normal, fmt.Errorf("%w: %w", processor.ErrUnknown, err)
	}
	f := s.fates.draw()
	switch {
	case f == busy:
		return f, processor.ErrNotExecuted
	case f == lost, f == cached && key == "":
		return f, processor.ErrUnknown
	case f == cached && s.spoil(key):
		return f, processor.ErrUnknown
	}
	return f, nil
}

// end is the way of the answer back. It returns err, or the error of a lost answer.
func (f fate) end(err error) error {
	if f == unknown {
		return processor.ErrUnknown
	}
	return err
}

// spoil makes the key answer ErrUnknown for KeyLife, unless it has a saved answer: then it is false.
func (s *Sandbox) spoil(key string) bool {
	h, now := hashKey(key), s.o.Now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.ledger.keys[h]; ok && s.alive(s.ledger.lines.at(n).at, now) {
		return false
	}
	if _, ok := s.reversalOf(h, now); ok {
		return false
	}
	if at, ok := s.spoilt[h]; !ok || !s.alive(at, now) {
		s.spoilt[h] = now
	}
	return true
}

// alive reports whether a saved key is still remembered, as it is after a clock went back.
func (s *Sandbox) alive(at, now int64) bool { return now-at < s.o.KeyLife.Milliseconds() }
