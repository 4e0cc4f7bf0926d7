package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/duesday/duesday/internal/billing"
)

// ErrLocked means that the ledger's file is open already, in this process or another one.
var ErrLocked = errors.New("the file is in use")

// A lockedFile gives its lock back in Close, though a child that is just being started has it too.
type lockedFile struct {
	*os.File
	holder string // the file that names this process; "": none. It goes with the lock
}

func (f lockedFile) Close() (err error) {
	if f.holder != "" {
		if err = os.Remove(f.holder); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.File.Close())
}

func openFile(name string) (f lockedFile, err error) {
	f.File, err = os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return f, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return f, errors.Join(fmt.Errorf("%s: %w", name, err), f.File.Close())
	}
	return f, nil
}

// load fills the ledger from the file, and leaves the file at its end.
func load(f lockedFile, l *ledger) error {
	// At each open: the process that made the file may have crashed before this.
	if err := syncDir(filepath.Dir(f.Name())); err != nil {
		return err
	}
	good, whole, err := read(f, l)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil || info.Size() == good && whole {
		return err
	}
	if err := f.Truncate(good); err != nil { // a torn end would spoil the next line
		return err
	}
	if !whole {
		if _, err := f.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return f.Sync()
}

// read adds the file's lines to the ledger. good is the number of their bytes. whole is false if
// the last line lacks its newline.
//
// A crash tears at most the end of the file, and the lines there were not answered yet. A last line
// without newline does not count if it is unreadable. A readable one counts: it may have been added
// by hand.
func read(f lockedFile, l *ledger) (good int64, whole bool, err error) {
	in := bufio.NewReaderSize(f, 1<<20)
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return 0, false, err
		}
		if len(text) == 0 {
			return good, true, nil
		}
		bad := l.restore(bytes.TrimSuffix(text, []byte("\n")))
		switch {
		case bad != nil && err == io.EOF:
			return good, true, nil
		case bad != nil:
			return 0, false, fmt.Errorf("%s, line %d: %w", f.Name(), number, bad)
		}
		good += int64(len(text))
		if err == io.EOF {
			return good, false, nil
		}
	}
}

// syncDir makes the name of a new file durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

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
	done    sync.Cond // durable has grown, or err is set
	pending []record  // guarded by mu
	closing bool      // guarded by mu
	err     error     // guarded by mu
	stopped chan struct{}
}

// A file is the part of an *os.File in use.
type file interface {
	io.WriteCloser
	Sync() error
}

func newWriter(f file, lines uint32) *writer {
	w := &writer{file: f, stopped: make(chan struct{})}
	w.work.L, w.done.L = &w.mu, &w.mu
	w.durable.Store(lines)
	w.intents.Store(lines)
	go w.run()
	return w
}

func (w *writer) add(r record) {
	w.mu.Lock()
	if w.err == nil {
		w.pending = append(w.pending, r)
	}
	w.mu.Unlock()
	w.work.Signal()
}

// wait returns when the first n lines are on disk. Its error wraps ErrUnknown: the line may be
// there. A ledger in memory has a nil writer, which has nothing to wait for.
func (w *writer) wait(n uint32) error {
	if w == nil || w.durable.Load() >= n {
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
	w.closing = true
	w.mu.Unlock()
	w.work.Signal()
	<-w.stopped
	return w.err
}

// run writes the pending lines, batch by batch, until close or an error.
func (w *writer) run() {
	var text bytes.Buffer
	var batch []record
	for {
		w.mu.Lock()
		for len(w.pending) == 0 && !w.closing {
			w.work.Wait()
		}
		batch, w.pending = w.pending, batch[:0]
		w.mu.Unlock()
		if len(batch) == 0 {
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
	w.err = cmp.Or(w.err, err)
	w.mu.Unlock()
	close(w.stopped)
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
