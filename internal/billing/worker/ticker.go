package worker

import (
	"sync"
	"time"
)

// A Ticker makes a ticker, as time.NewTicker does. A simulation's never ticks.
type Ticker func(time.Duration) *time.Ticker

// Every calls do again and again until stop is called. stop waits for the last call.
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
