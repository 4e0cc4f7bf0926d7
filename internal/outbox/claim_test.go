package outbox_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A claimable is a store with the claims of one holder, which the test ends.
type claimable struct {
	*memstore.Store
	store.Claims
	lost chan struct{} // of the present holder
}

func (s *claimable) Claim(ctx context.Context, name, by string) (<-chan struct{}, func(), error) {
	_, release, err := s.Claims.Claim(ctx, name, by)
	return s.lost, release, err
}

// TestClaim_Lost: a drain that loses its claim in the middle of a delivery ends the delivery, claims
// again, and delivers the rest, once.
func TestClaim_Lost(t *testing.T) {
	c := &clock{t: start}
	s := &claimable{Store: open(t, c), lost: make(chan struct{})}
	const n = 20
	for i := range n {
		put(t, s.Store, effect(fmt.Sprint(i)))
	}
	losses := 0
	to := &receiver{}
	slow := deliverFunc(func(ctx context.Context, e outbox.Effect) error {
		if losses++; losses <= 3 {
			close(s.lost)
			s.lost = make(chan struct{})
		}
		if err := ctx.Err(); err != nil {
			t.Errorf("the delivery was cut: %v", err)
		}
		return to.Deliver(ctx, e)
	})
	r, err := outbox.New(s, table, c.now, slow, nil).Drain(t.Context(), 1)
	if err != nil || r != (outbox.Report{Delivered: n}) {
		t.Errorf("%+v, %v; want %d delivered", r, err, n)
	}
	for id, times := range to.got {
		if times != 1 {
			t.Errorf("%s was delivered %d times", id, times)
		}
	}
}
