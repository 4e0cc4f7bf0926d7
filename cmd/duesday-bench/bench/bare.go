package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/consumption"
)

// The fixed bytes of the workloads. An event has three index entries, and the item that it changes:
// with their keys they are 861 bytes of log.
const (
	subscriptionBytes = 1024
	indexBytes        = 300
	receiptBytes      = 300
	attemptBytes      = 200
	eventBytes        = 300
	eventIndexBytes   = 78
	stateBytes        = 200
)

// A Bare is a bare Pebble with the subscriptions of the workloads in it.
type Bare struct {
	db       *pebble.DB
	n        int
	noise    []byte // values are cut from it: random, as encoded items nearly are
	requests chan *request
	stopped  chan struct{}
}

// OpenBare opens an empty one in the folder, tuned like the embedded engine.
func OpenBare(dir string, cacheBytes int64) (*Bare, error) {
	db, err := pebble.Open(dir, pebblestore.BareOptions(cacheBytes))
	if err != nil {
		return nil, fmt.Errorf("bare pebble: %w", err)
	}
	b := &Bare{db: db, noise: make([]byte, 1<<20), requests: make(chan *request, 1024), stopped: make(chan struct{})}
	src := rand.NewChaCha8([32]byte{1})
	_, _ = src.Read(b.noise)
	go b.commitGroups()
	return b, nil
}

// Compact compacts the whole store in the folder, which no process may have open.
func Compact(ctx context.Context, dir string, cacheBytes int64) error {
	db, err := pebble.Open(dir, pebblestore.BareOptions(cacheBytes))
	if err != nil {
		return err
	}
	return errors.Join(db.Compact(ctx, []byte{0}, bytes.Repeat([]byte{0xff}, 16), false), db.Close())
}

// Close closes it.
func (b *Bare) Close() error {
	close(b.requests)
	<-b.stopped
	return b.db.Close()
}

func (b *Bare) value(i, size int) []byte {
	at := (i * 7919) % (len(b.noise) - size)
	return b.noise[at : at+size]
}

func key(kind byte, n int, rest ...byte) []byte {
	k := make([]byte, 0, 40)
	k = append(k, kind)
	k = append(k, "ACC#0000"...)
	k = binary.BigEndian.AppendUint64(k, uint64(n))
	return append(k, rest...)
}

func indexKey(kind byte, day uint16, n int) []byte {
	k := append(make([]byte, 0, 40), kind)
	k = binary.BigEndian.AppendUint16(k, day)
	return append(k, key('s', n)...)
}

// Load is W4: n subscriptions with two index entries each, durable at the end.
func (b *Bare) Load(n int) error {
	const chunk = 500
	for at := 0; at < n; at += chunk {
		batch := b.db.NewBatch()
		for i := at; i < min(n, at+chunk); i++ {
			n := consumption.Scatter(i)
			_ = batch.Set(key('s', n), b.value(i, subscriptionBytes), nil)
			_ = batch.Set(indexKey('1', 0, n), b.value(i+1, indexBytes), nil)
			_ = batch.Set(indexKey('2', 0, n), b.value(i+2, indexBytes), nil)
		}
		if err := batch.Commit(pebble.NoSync); err != nil {
			return err
		}
	}
	b.n = n
	return b.db.LogData(nil, pebble.Sync)
}

// A request is one commit handed to the group committer.
type request struct {
	batch *pebble.Batch
	done  chan error
}

// commitGroups merges the waiting commits and syncs them once: measured, that is a third faster
// than letting 128 workers share Pebble's own pipeline, so it is the stronger baseline.
func (b *Bare) commitGroups() {
	defer close(b.stopped)
	for r := range b.requests {
		group := []*request{r}
		batch := b.db.NewBatch()
		err := batch.Apply(r.batch, nil)
	gather:
		for len(group) < 1024 && err == nil {
			select {
			case more, ok := <-b.requests:
				if !ok {
					break gather
				}
				group = append(group, more)
				err = batch.Apply(more.batch, nil)
			default:
				break gather
			}
		}
		if err == nil {
			err = batch.Commit(pebble.Sync)
		}
		for _, g := range group {
			g.done <- err
		}
	}
}

func (b *Bare) commit(batch *pebble.Batch) error {
	r := &request{batch, make(chan error, 1)}
	b.requests <- r
	err := <-r.done
	_ = batch.Close()
	return err
}

// Pay is W1 for the time given. Each subscription takes a guard read and a commit of the attempt. A
// read of the item follows, and a commit of receipt, item, the two index entries moved and the
// attempt done. first is where in the subscriptions it goes on. It returns units done.
func (b *Bare) Pay(first, workers int, length time.Duration) (units int, err error) {
	units, _, err = load(workers, length, func(_, i int) (bool, error) { return true, b.pay(first + i) })
	return units, err
}

func (b *Bare) pay(i int) error {
	n, round := consumption.Scatter(i%b.n), uint16(i/b.n)
	attempt := key('a', n, byte(round>>8), byte(round))
	if err := b.guard(attempt); err != nil {
		return err
	}
	batch := b.db.NewBatch()
	_ = batch.Set(attempt, b.value(i, attemptBytes), nil)
	if err := b.commit(batch); err != nil {
		return err
	}
	_, closer, err := b.db.Get(key('s', n))
	if err != nil {
		return err
	}
	_ = closer.Close()
	batch = b.db.NewBatch()
	_ = batch.Set(key('r', n, byte(round>>8), byte(round)), b.value(i+1, receiptBytes), nil)
	_ = batch.Set(key('s', n), b.value(i+2, subscriptionBytes), nil)
	for _, kind := range []byte{'1', '2'} {
		_ = batch.Delete(indexKey(kind, round, n), nil)
		_ = batch.Set(indexKey(kind, round+1, n), b.value(i+3, indexBytes), nil)
	}
	_ = batch.Set(attempt, b.value(i+4, 8), nil)
	return b.commit(batch)
}

func (b *Bare) guard(key []byte) error {
	_, closer, err := b.db.Get(key)
	if err != nil {
		return nil // it is not there; a later write shows another error
	}
	_ = closer.Close()
	return fmt.Errorf("key %x exists", key)
}

// Take is W2 for the time given: per event a guard read, then one commit of the event, its
// three index entries and one of the states. first is how many events there were before.
func (b *Bare) Take(first, workers, states int, length time.Duration) (units int, took []time.Duration, err error) {
	return load(workers, length, func(_, i int) (bool, error) { return true, b.take(first+i, states) })
}

func (b *Bare) take(i, states int) error {
	n := consumption.Scatter(i)
	event := key('e', n)
	if err := b.guard(event); err != nil {
		return err
	}
	batch := b.db.NewBatch()
	_ = batch.Set(event, b.value(i, eventBytes), nil)
	for _, kind := range []byte{'6', '7', '8'} { // by time, by account, by subscription
		_ = batch.Set(indexKey(kind, uint16(i%1000), n), b.value(i+int(kind), eventIndexBytes), nil)
	}
	_ = batch.Set(key('t', consumption.Scatter(i%states)), b.value(i+1, stateBytes), nil)
	return b.commit(batch)
}

// Scan is W3: it streams the entries of the day given.
func (b *Bare) Scan(day uint16) (rows int, err error) {
	lower, upper := indexKey('2', day, 0)[:3], indexKey('2', day+1, 0)[:3]
	it, err := b.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if _, err := it.ValueAndErr(); err != nil {
			break
		}
		rows++
	}
	return rows, it.Close()
}

// Settle waits until no compaction runs, two minutes at most.
func (b *Bare) Settle() { settle(b.db.Metrics) }

// settle waits until Pebble neither flushes nor compacts, two minutes at most: compactions of an import
// distort the figures.
func settle(metrics func() *pebble.Metrics) {
	for end, quiet := time.Now().Add(2*time.Minute), 0; quiet < 5 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if m := metrics(); m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0 {
			quiet++
		} else {
			quiet = 0
		}
	}
}
