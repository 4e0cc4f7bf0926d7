package store

import (
	"context"
	"fmt"
	"sync"
)

// A Claimer is a store whose processes can claim names. Only a store shared by the processes of one
// machine can be one: it knows when a process ends.
type Claimer interface {
	// Claim claims the name for by, until release is called or the process ends. It returns a
	// *ClaimedError if the name is claimed. With an empty by it only asks, and claims nothing. lost is
	// closed if the claim ends otherwise: the claims' keeper is gone, and the name is free.
	Claim(ctx context.Context, name, by string) (lost <-chan struct{}, release func(), err error)
}

// A ClaimedError tells by whom a name is claimed.
type ClaimedError struct{ Name, By string }

func (e *ClaimedError) Error() string { return fmt.Sprintf("%s is claimed by %s", e.Name, e.By) }

// Claims are the claims of one process, or those kept by it for others. Nothing of them is stored.
// The zero value has none. It is safe for concurrent use.
type Claims struct {
	mu   sync.Mutex
	held map[string]string // by name; guarded by mu
}

var _ Claimer = (*Claims)(nil)

// Claim implements Claimer. The claim is never lost.
func (c *Claims) Claim(_ context.Context, name, by string) (lost <-chan struct{}, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, taken := c.held[name]; taken {
		return nil, nil, &ClaimedError{name, other}
	}
	if by == "" {
		return nil, func() {}, nil
	}
	if c.held == nil {
		c.held = map[string]string{}
	}
	c.held[name] = by
	return nil, sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held, name)
	}), nil
}
