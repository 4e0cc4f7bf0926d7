package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load has the workers do units, numbered from 0, for the time given, or until one has no more, or
// fails. It returns how many were done, and in order how long each took.
func load(workers int, length time.Duration, do func(worker, i int) (more bool, err error)) (units int,
	took []time.Duration, err error) {
	var (
		next atomic.Int64
		stop atomic.Bool
		mu   sync.Mutex
		wg   sync.WaitGroup
		end  = time.Now().Add(length)
	)
	for worker := range workers {
		wg.Go(func() {
			var own []time.Duration
			var failed error
			for at := time.Now(); at.Before(end) && !stop.Load(); {
				more, err := do(worker, int(next.Add(1))-1)
				if failed = err; err != nil || !more {
					stop.Store(true)
					break
				}
				now := time.Now()
				own = append(own, now.Sub(at))
				at = now
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
			if err == nil {
				err = failed
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return len(took), took, err
}

// Percentile returns the value that so many percent of the sorted ones do not exceed; 0 for none.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}
