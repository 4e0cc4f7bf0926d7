package pebblestore

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// A scheduler lets no compaction begin before the store is open. After a kill Pebble flushes its log
// on opening, and would wait for the compaction that the flush makes due: two seconds at a million
// subscriptions.
type scheduler struct {
	*pebble.ConcurrencyLimitScheduler // without its ticker, which is for allowances that change: after flushes
	opened                            atomic.Bool
}

func newScheduler() *scheduler {
	return &scheduler{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.opened.Load() {
		return false, nil
	}
	return s.ConcurrencyLimitScheduler.TrySchedule()
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. Pebble calls it after a
// flush, with its lock held.
func (s *scheduler) UpdateGetAllowedWithoutPermission() { go s.grant() }

// grant lets the compactions begin that wait for it.
func (s *scheduler) grant() {
	if ok, one := s.TrySchedule(); ok {
		one.Done() // which lets others have it
	}
}

func (s *scheduler) open() {
	s.opened.Store(true)
	s.grant()
}
