package worker

import (
	"sync"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// A Sharing configures how the processes on one store share a run.
type Sharing struct {
	Claims store.Claimer // nil if the store has no claims
	Lease  time.Duration // time after which other processes take over a silent worker's share; 0 if there are none
	Ticker Ticker
}

// A Ticker creates a ticker, as time.NewTicker does. In a simulation, it never ticks.
type Ticker func(time.Duration) *time.Ticker

// Every calls do repeatedly until stop is called. stop waits for the last call.
func (t Ticker) Every(d time.Duration, do func()) (stop func()) {
	tick, end := t(d), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				do()
			}
		}
	})
	return func() {
		tick.Stop()
		close(end)
		work.Wait()
	}
}
