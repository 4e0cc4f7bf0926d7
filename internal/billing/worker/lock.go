package worker

import (
	"sync"

	"github.com/duesday/duesday/internal/billing"
)

// Locks let only one goroutine of this process at a time work on a subscription. Locks only save
// work, because two goroutines would look up and confirm the same intent. billing.Records.Put
// decides which goroutine wins.
type Locks struct {
	held sync.Map // billing.Name without SKU -> chan struct{}, which unlock closes
}

// Lock waits until no other goroutine works on the subscription, and returns the function that
// unlocks the subscription.
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
