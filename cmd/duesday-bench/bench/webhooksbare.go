package bench

import (
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/capacity/estimate"
)

// The fixed bytes of W2: an event with three index entries, and the item that it changes. With
// their keys they are 861 bytes of log.
const (
	eventBytes      = 300
	eventIndexBytes = 78
	stateBytes      = 200
)

// Take is W2 for the time given: per event a guard read, then one commit of the event, its
// three index entries and one of the states. first is how many events there were before.
func (b *Bare) Take(first, workers, states int, length time.Duration) (units int, took []time.Duration, err error) {
	return load(workers, length, func(_, i int) (bool, error) { return true, b.take(first+i, states) })
}

func (b *Bare) take(i, states int) error {
	n := estimate.Scatter(i)
	event := key('e', n)
	if _, closer, err := b.db.Get(event); err == nil {
		_ = closer.Close()
		return fmt.Errorf("event %d exists", i)
	}
	batch := b.db.NewBatch()
	_ = batch.Set(event, b.value(i, eventBytes), nil)
	for _, kind := range []byte{'6', '7', '8'} { // by time, by account, by subscription
		_ = batch.Set(indexKey(kind, uint16(i%1000), n), b.value(i+int(kind), eventIndexBytes), nil)
	}
	_ = batch.Set(key('t', estimate.Scatter(i%states)), b.value(i+1, stateBytes), nil)
	return b.commit(batch)
}
