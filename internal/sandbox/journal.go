package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

// A journal keeps a ledger in a file that any number of processes append to. Calls wait for their
// process's next turn. In a turn the process locks the file, reads what other processes appended,
// executes the calls, syncs their lines to disk, and unlocks the file. Each call therefore sees
// everything that was answered before it, and the calls of a turn share one sync.
//
// A failed write or sync is final, because the content of the file is unknown until it is opened
// again: every later turn fails.
type journal struct {
	// The fields of the turn, which holds the Sandbox's mu.
	file *os.File
	sync func() error // of the file
	size int64        // bytes that the ledger has read or written
	read int          // lines

	pending []record // lines of the turn's calls
	foreign bool     // other processes have appended lines since the last turn
	durable uint32   // lines of intents on disk
	err     error    // final

	mu     sync.Mutex
	wake   sync.Cond // queue or closed
	queue  []task    // guarded by mu
	closed bool      // guarded by mu
	ended  chan struct{}
}

// A task is a call that waits for its turn.
type task struct {
	work func() error
	done chan error
}

// openJournal reads the file into the ledger of s, and begins its turns.
func (s *Sandbox) openJournal(f *os.File) error {
	j := &journal{file: f, sync: f.Sync, ended: make(chan struct{})}
	j.wake.L = &j.mu
	s.out = j
	err := j.begin(s.ledger)
	if err == nil {
		err = j.end(s.ledger)
	}
	if err == nil {
		go s.turns()
	}
	return err
}

// do has the next turn execute the work, and returns when the work's lines are on disk. Its error
// wraps ErrUnknown if they may be, and ErrNotExecuted if the work was not done.
func (j *journal) do(work func() error) error {
	t := task{work, make(chan error, 1)}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return errClosed
	}
	j.queue = append(j.queue, t)
	j.mu.Unlock()
	j.wake.Signal()
	return <-t.done
}

// close ends the turns after those that queue, and closes the file. It may be called more than once.
func (j *journal) close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.wake.Signal()
	<-j.ended
	return j.err
}

// turns takes turns until the journal is closed.
func (s *Sandbox) turns() {
	j := s.out
	defer close(j.ended)
	for {
		j.mu.Lock()
		for len(j.queue) == 0 && !j.closed {
			j.wake.Wait()
		}
		tasks := j.queue
		j.queue = nil
		j.mu.Unlock()
		if len(tasks) == 0 {
			j.err = errors.Join(j.err, j.file.Close())
			return
		}
		if s.turn(tasks); j.foreign {
			<-time.After(200 * time.Microsecond) // the lock is not fair: leave others a chance
		}
	}
}

func (s *Sandbox) turn(tasks []task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := make([]error, len(tasks))
	err := s.out.begin(s.ledger)
	switch {
	case err == nil:
		for i, t := range tasks {
			answers[i] = t.work()
		}
		err = s.out.end(s.ledger)
	case !errors.Is(err, processor.ErrUnknown):
		err = fmt.Errorf("%w: sandbox ledger: %w", processor.ErrNotExecuted, err)
	}
	for i, t := range tasks {
		if err != nil {
			answers[i] = err
		}
		t.done <- answers[i]
	}
}

// begin locks the file, and reads what other processes have appended.
func (j *journal) begin(l *ledger) error {
	if j.err != nil {
		return j.err
	}
	if err := lock(j.file); err != nil {
		return fmt.Errorf("%s: %w", j.file.Name(), err)
	}
	if err := j.catchUp(l); err != nil {
		j.err = fmt.Errorf("%s, %w", j.file.Name(), err)
		return errors.Join(j.err, unlock(j.file)) // the ledger has a part of what is there
	}
	return nil
}

// catchUp adds the lines that other processes have appended since the last turn. A killed process may
// leave a torn last line, which would spoil the next one. The file is locked.
func (j *journal) catchUp(l *ledger) error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if j.foreign = size != j.size; !j.foreign {
		return nil
	}
	if size < j.size {
		return errors.New("which is shorter than before; someone replaced or truncated it")
	}
	good, lines, whole, err := read(io.NewSectionReader(j.file, j.size, size-j.size), l)
	j.size += good
	j.read += lines
	switch {
	case err != nil:
		return fmt.Errorf("line %d: %w", j.read+1, err)
	case !whole:
		_, err = j.file.Write([]byte("\n"))
		j.size++
	case j.size < size:
		err = j.file.Truncate(j.size)
	}
	return err
}

// end brings the turn's lines to disk, and with them what a process that was killed before its sync
// has left. Then it unlocks the file.
func (j *journal) end(l *ledger) error {
	text, err := encode(j.pending)
	if err == nil && len(text) > 0 {
		_, err = j.file.Write(text)
	}
	if err == nil && (len(text) > 0 || j.foreign) {
		err = j.sync()
	}
	j.size += int64(len(text))
	j.read += len(j.pending)
	clear(j.pending) // the strings can be freed
	j.pending = j.pending[:0]
	if err = errors.Join(err, unlock(j.file)); err != nil {
		j.err = fmt.Errorf("%w: the sandbox's ledger cannot be written: %w", processor.ErrUnknown, err)
		return j.err
	}
	j.durable = l.lines.n
	return nil
}
