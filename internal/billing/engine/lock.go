package engine

import (
	"sync"

	"github.com/duesday/duesday/internal/billing"
)

// keyedLocks let one goroutine of this process work on a subscription at a time. They only save
// work (two workers would look up and confirm the same intent): the conditions of the commits
// decide.
type keyedLocks struct {
	mu   sync.Mutex
	held map[billing.Name]*keyedLock // guarded by mu
}

type keyedLock struct {
	sync.Mutex
	waiting int // guarded by keyedLocks.mu
}

// lock waits for the subscription and returns its unlock.
func (l *keyedLocks) lock(n billing.Name) (unlock func()) {
	n.SKU = ""
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[billing.Name]*keyedLock)
	}
	k := l.held[n]
	if k == nil {
		k = new(keyedLock)
		l.held[n] = k
	}
	k.waiting++
	l.mu.Unlock()
	k.Lock()
	return func() {
		k.Unlock()
		l.mu.Lock()
		if k.waiting--; k.waiting == 0 {
			delete(l.held, n)
		}
		l.mu.Unlock()
	}
}
