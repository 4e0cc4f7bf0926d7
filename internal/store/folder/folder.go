// Package folder lets the processes of one user share an embedded store in one folder. The process that
// locks the folder, the holder, serves the store on a Unix socket, and the other processes are its
// clients. When the holder ends, its clients elect the next holder. Callers see one store.Store. The
// package does not know the protocol (package link does) or the files (package pebblestore does).
//
// # Failures
//
//   - The holder stops serving in order: no call fails, and no outcome is unknown.
//   - The holder is killed: a commit without an answer is ErrUnknown, and so is a backup; everything
//     else goes on at the next holder.
//   - The holder stands still: within 10 s a call is ErrLocked and names the holder's process.
//   - The holder serves nobody, as a command that moves the store does: ErrLocked, after a second.
//   - A holder that ends soon meets a client that stays: it hands the folder over, and goes on as a
//     client. No call fails.
//   - Someone removes or replaces the holder's socket or HOLDER: the holder puts it back within a
//     second, and a call waits for that.
//   - The holder is another version of Duesday: link.ErrVersion, at once.
//   - The holder lives by a test clock: a client lives by it too, and a client that was given another
//     one gets link.ErrClock.
//   - Two processes open the folder at once: the lock decides, the other one becomes a client.
//   - The holder is gone, killed or in order: every claim is lost, and may be claimed again.
//   - A client is gone: its claims end with its connection.
//   - The folder or a file in it is another user's, even for root, or everybody may write it: refused
//     before a file is made.
package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/socket"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// Options configure how to open a shared store.
type Options struct {
	pebblestore.Options        // Now is the machine's clock
	Version             string // of Duesday: all processes of a folder have the same
	Clock               string // a test clock, as clock.Parse reads it; "": the machine's, or the holder's
	Lasting             bool   // the process stays: others hand the folder over to it
	Reads               bool   // the process only reads: also in a folder that nobody can write
}

// A Store is the store in a folder, held by this process or another, safe for concurrent use.
type Store struct {
	store.Notices // of every process while this one holds the folder, else of this one
	dir           string
	o             Options
	schema        store.Schema
	clock         atomic.Pointer[clock.Clock]
	election      *election
	begun         bool // the clock is chosen; only an election looks at it or changes it

	held   atomic.Pointer[pebblestore.Store] // of this process, last
	expiry atomic.Pointer[func(context.Context, store.Store) bool]
}

// shared is the store of a session: a holding, or a client of one.
type shared interface {
	store.Store
	store.Claimer
	Checkpoint(ctx context.Context, to string) error
}

var _ shared = (*Store)(nil)

// Open opens the store in the folder. Its errors are pebblestore.Open's; ErrLocked: a mute holder.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	schema, err := store.NewSchema(o.Tables...)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, o: o, schema: schema}
	s.election = newElection(s.take, s.connect)
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	s.o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := s.setClock(o.Clock); err != nil {
		return nil, err
	}
	if _, err = s.election.session(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// setClock lives by the clock of the text from now on.
func (s *Store) setClock(text string) error {
	c, err := clock.Machine(s.o.Now), error(nil)
	if text != "" {
		c, err = clock.Parse(text, s.o.Now)
	}
	if err == nil {
		s.o.Clock = text
		s.clock.Store(c)
	}
	return err
}

// Clock returns the clock of all processes of the folder.
func (s *Store) Clock() *clock.Clock { return s.clock.Load() }

// Holds reports whether this process is the holder.
func (s *Store) Holds() bool { return s.election.holds() }

// take is hold. A process that only reads opens a folder that nobody can write, without serving it.
func (s *Store) take() (*session, error) {
	x, err := s.hold()
	if err == nil || !s.o.Reads || !store.IsUnwritable(err) {
		return x, err
	}
	o := s.o.Options
	o.ReadOnly, o.Create, o.Now = true, false, s.Clock().Now
	held, rerr := pebblestore.Open(s.dir, o)
	if rerr != nil {
		return nil, errors.Join(rerr, err)
	}
	s.o.Logger.Warn("the store's folder is not writable, so the store is opened only for reading", "error", err)
	return &session{shared: &holding{Store: held, notices: &s.Notices, dir: s.dir}, end: held.Close}, nil
}

func (s *Store) hold() (*session, error) {
	o, err := s.o.Options, error(nil)
	if o.Socket, err = socket.Path(s.dir, "duesday.sock"); err != nil {
		return nil, err
	}
	o.Now = s.Clock().Now
	_, dead := pebblestore.HolderOf(s.dir) // once the folder is ours
	held, err := pebblestore.Open(s.dir, o)
	if err != nil {
		return nil, err
	}
	if s.held.Store(held); s.expiry.Load() != nil {
		held.ExpireWhile(*s.expiry.Load())
	}
	socket.Clear(dead)
	l, err := socket.Listen(held.Post())
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	own := holding{Store: held, notices: &s.Notices, dir: s.dir, ended: make(chan struct{})}
	x := &session{shared: &own}
	stop := serve(l, &own, s.linkOptions(), func() {
		if err := s.election.finish(x); err != nil {
			s.o.Logger.Warn("handing the store over", "error", err)
		}
	})
	x.end = func() error {
		own.copies.Lock() // a copy may take longer than others wait for a holder without a socket
		defer own.copies.Unlock()
		close(own.ended)
		return errors.Join(stop(), held.Close())
	}
	s.begun, s.o.Create = true, false // from now on it is there
	s.NoteAll()                       // what others have committed until now
	return x, nil
}

// A holding is the store of a holder, with the claims of all processes.
type holding struct {
	*pebblestore.Store
	store.Claims
	notices *store.Notices
	dir     string
	ended   chan struct{} // closed when another process may hold the folder
	copies  sync.RWMutex  // read-locked by each; the end waits for them
}

// Commit implements store.Store for every process of the folder, and signals what each puts.
func (h *holding) Commit(ctx context.Context, writes ...store.Write) error {
	err := h.Store.Commit(ctx, writes...)
	h.notices.Note(err, writes...)
	return err
}

// Claim implements store.Claimer.
func (h *holding) Claim(ctx context.Context, name, by string) (lost <-chan struct{}, release func(), err error) {
	if _, release, err = h.Claims.Claim(ctx, name, by); err != nil {
		return nil, nil, err
	}
	return h.ended, release, nil
}

// Checkpoint copies the store for any process of the folder.
func (h *holding) Checkpoint(ctx context.Context, to string) error {
	if !filepath.IsAbs(to) {
		return fmt.Errorf("%w: the backup path must be absolute (got %s)", store.ErrInvalid, to)
	}
	if err := pebblestore.CheckTarget(h.dir, to); err != nil {
		return err
	}
	if h.copies.TryRLock() { // else the holder ends, and answers this one last
		defer h.copies.RUnlock()
	}
	return h.Store.Checkpoint(ctx, to)
}

func (s *Store) connect(ctx context.Context) (*session, error) {
	who, at := pebblestore.HolderOf(s.dir)
	if at == "" {
		return nil, errUnserved
	}
	conn, err := socket.Dial(ctx, at)
	if err != nil {
		return nil, err
	}
	c, err := link.Connect(ctx, conn, s.linkOptions())
	if err != nil {
		return nil, err
	}
	if s.begun && c.Clock() != s.o.Clock {
		err = fmt.Errorf("%w: the new holder's clock is %s, this process's clock is %s", link.ErrClock,
			cmp.Or(c.Clock(), "the machine's"), cmp.Or(s.o.Clock, "the machine's"))
	} else {
		err = s.setClock(c.Clock())
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	s.begun, s.o.Create = true, false
	return &session{shared: c, holder: who, end: c.Close}, nil
}

func (s *Store) linkOptions() link.Options {
	return link.Options{Version: s.o.Version, Tables: s.o.Tables, Names: s.o.Names, Clock: s.o.Clock,
		Lasting: s.o.Lasting}
}

// ExpireWhile lets the store delete expired items while this process holds it, as
// pebblestore.Store.ExpireWhile does. A holder without a call deletes none.
func (s *Store) ExpireWhile(may func(context.Context, store.Store) bool) {
	s.expiry.Store(&may)
	if held := s.held.Load(); held != nil {
		held.ExpireWhile(may)
	}
}

// Claim implements store.Claimer. The holder keeps the claims of all: a new holder knows none.
func (s *Store) Claim(ctx context.Context, name, by string) (lost <-chan struct{}, release func(), err error) {
	err = s.election.do(ctx, func(now shared) error {
		lost, release, err = now.Claim(ctx, name, by)
		return err
	})
	return lost, release, err
}

// Checkpoint copies the store into the folder to, as pebblestore.Store.Checkpoint does. The holder
// makes the copy. It returns ErrInvalid if the folder cannot take it, by pebblestore.CheckTarget,
// and ErrUnknown if the holder ends meanwhile: a part of the copy may be there.
func (s *Store) Checkpoint(ctx context.Context, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	return s.election.do(ctx, func(now shared) error { return now.Checkpoint(ctx, to) })
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (it store.Item, err error) {
	err = s.election.do(ctx, func(now shared) error {
		it, err = now.Get(ctx, table, key)
		return err
	})
	return it, err
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	return s.election.do(ctx, func(now shared) error {
		err := now.Commit(ctx, writes...)
		if _, holds := now.(*holding); !holds {
			s.Note(err, writes...)
		}
		return err
	})
}

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		q, limited := q, q.Limit > 0
		s.election.iterate(ctx, yield, func(now shared) iter.Seq2[store.Item, error] { return now.Query(ctx, q) },
			func(it store.Item) (more bool) {
				q.After = s.schema[q.Table].CursorAt(q.Index, it)
				if limited {
					q.Limit--
				}
				return !limited || q.Limit > 0
			})
	}
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, c store.Scan) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		c := c
		s.election.iterate(ctx, yield, func(now shared) iter.Seq2[store.Item, error] { return now.Scan(ctx, c) },
			func(it store.Item) (more bool) {
				c.After = s.schema[c.Table].CursorAt("", it)
				return true
			})
	}
}

// Close implements store.Store. A holder first answers its clients, and then releases the folder.
func (s *Store) Close() error { return s.election.close() }
