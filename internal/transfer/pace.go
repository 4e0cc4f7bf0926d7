package transfer

import (
	"context"
	"sync"
	"time"
)

// A pace lets so many items pass a second, for all goroutines together.
type pace struct {
	now  func() time.Time
	wait func(context.Context, time.Duration) error
	rate int // 0: no limit

	mu   sync.Mutex
	free time.Time // when the next item may pass; guarded by mu
}

// take waits until n items may pass.
func (p *pace) take(ctx context.Context, n int) error {
	if p.rate <= 0 || n == 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := p.now()
	if p.free.Before(now) {
		p.free = now
	}
	left := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	p.mu.Unlock()
	if left <= 0 {
		return ctx.Err()
	}
	return p.wait(ctx, left)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
