package worker

import (
	"sync"

	"github.com/duesday/duesday/internal/billing"
)

// Locks let one goroutine of this process work on a subscription at a time. Locks only save work,
// because two goroutines would look up and confirm the same intent: billing.Records.Put decides.
type Locks struct {
	held sync.Map // chan struct{} by billing.Name without SKU; closed by the unlock
}

// Lock waits until no other goroutine works on the subscription, and returns the function that
// unlocks it.
func (l *Locks) Lock(n billing.Name) (unlock func()) {
	n.SKU = ""
	mine := make(chan struct{})
	for {
		other, taken := l.held.LoadOrStore(n, mine)
		if !taken {
			return func() {
				l.held.Delete(n)
				close(mine)
			}
		}
		<-other.(chan struct{})
	}
}
