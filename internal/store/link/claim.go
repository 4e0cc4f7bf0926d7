package link

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/store"
)

// Claim implements store.Claimer. The holder keeps the claim for as long as the connection lasts; it
// is lost with the connection. An error may be ErrLost: nothing is claimed then.
func (c *Client) Claim(ctx context.Context, name, by string) (lost <-chan struct{}, release func(), err error) {
	ctx = context.WithoutCancel(ctx) // the holder answers at once; a claim that nobody waits for would stay
	r, err := c.call(ctx, kindClaim, func(w *writer) { w.text(name, by) })
	if err != nil {
		return nil, nil, err
	}
	if other := r.text(); other != "" {
		return nil, nil, &store.ClaimedError{Name: name, By: other}
	}
	if err := errors.Join(r.answer(), r.err); err != nil {
		return nil, nil, err
	}
	return c.done, func() {
		_, _ = c.call(ctx, kindRelease, func(w *writer) { w.text(name) }) // without a connection it is released already
	}, nil
}

// claim claims the name for the client, and answers by whom it is claimed otherwise.
func (h *holder) claim(ctx context.Context, a *writer, name, by string) {
	claimer, ok := h.Store.(store.Claimer)
	if !ok {
		a.text("")
		a.error(fmt.Errorf("%w: the store does not support claims", store.ErrInvalid))
		return
	}
	_, release, err := claimer.Claim(ctx, name, by)
	other := ""
	if e, ok := errors.AsType[*store.ClaimedError](err); ok {
		other = e.By
	}
	a.text(other)
	a.error(err)
	if err == nil && by != "" {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.claims[name] = release
	}
}

// release ends the client's claim of the name, if it has one.
func (h *holder) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if release := h.claims[name]; release != nil {
		release()
	}
	delete(h.claims, name)
}

func (h *holder) releaseAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, release := range h.claims {
		release()
	}
}
