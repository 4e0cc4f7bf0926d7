package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/duesday/duesday/internal/billing"
)

// A writer brings lines to disk in the order of add. Lines added during a sync share the next one.
//
// A failed write or sync is final: the content of the file is unknown until it is opened again.
// Every wait for a line that was not on disk fails from then on.
type writer struct {
	file file
	// Lines on disk, including those read at the start. The lines of intents are counted apart too,
	// because they are numbered.
	durable, intents atomic.Uint32

	mu      sync.Mutex
	work    sync.Cond // pending, or closing
	done    sync.Cond // durable has grown, or err is set, or stopped
	pending []record  // guarded by mu
	closing bool      // guarded by mu
	stopped bool      // guarded by mu; run has returned
	err     error     // guarded by mu
}

// A file is the part of an *os.File in use.
type file interface {
	io.WriteCloser
	Sync() error
}

func newWriter(f file, lines uint32) *writer {
	w := &writer{file: f}
	w.work.L, w.done.L = &w.mu, &w.mu
	w.durable.Store(lines)
	w.intents.Store(lines)
	go w.run()
	return w
}

// add queues the next line of the ledger.
func (w *writer) add(r record) {
	w.mu.Lock()
	if w.err == nil {
		w.pending = append(w.pending, r)
	}
	w.mu.Unlock()
	w.work.Signal()
}

// wait returns when the first n lines are on disk. Its error wraps ErrUnknown: the line may be
// there.
func (w *writer) wait(n uint32) error {
	if w.durable.Load() >= n {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.durable.Load() < n {
		if w.err != nil {
			return fmt.Errorf("%w: the sandbox's ledger cannot be written: %w", billing.ErrUnknown, w.err)
		}
		w.done.Wait()
	}
	return nil
}

// close writes the pending lines. It may be called more than once.
func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
	w.work.Signal()
	for !w.stopped {
		w.done.Wait()
	}
	return w.err
}

// run writes the pending lines, batch by batch, until close or an error.
func (w *writer) run() {
	var text bytes.Buffer
	var batch []record
	for {
		var more bool
		if batch, more = w.next(batch[:0]); !more {
			break
		}
		text.Reset()
		err := flush(w.file, &text, batch)
		w.mu.Lock()
		if w.err = err; err == nil {
			for i := range batch {
				if batch[i].Of == "" {
					w.intents.Add(1)
				}
			}
			w.durable.Add(uint32(len(batch)))
		}
		w.mu.Unlock()
		w.done.Broadcast()
		if err != nil {
			break
		}
		clear(batch) // the strings can be freed
	}
	err := w.file.Close()
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.stopped = true
	w.mu.Unlock()
	w.done.Broadcast()
}

// next waits for lines, takes them all and leaves the empty slice in their place. more is false if
// there are none and the writer is closing.
func (w *writer) next(empty []record) (batch []record, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) == 0 && !w.closing {
		w.work.Wait()
	}
	batch, w.pending = w.pending, empty
	return batch, len(batch) > 0
}

func flush(f file, text *bytes.Buffer, batch []record) error {
	enc := json.NewEncoder(text) // ends each line with a newline
	for i := range batch {
		if err := enc.Encode(&batch[i]); err != nil {
			return err
		}
	}
	if _, err := f.Write(text.Bytes()); err != nil {
		return err
	}
	return f.Sync()
}
