// Package folder lets many processes of one user share an embedded store. The process that has
// locked the folder, its holder, serves the store on a Unix socket, and the others are its clients.
// When the holder ends, its clients elect the next one by the lock. Callers see one store.Store.
// The package does not know frames, which are package link's, or files, which are pebblestore's.
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
//   - The holder is another version of Duesday: link.ErrVersion, at once.
//   - The holder lives by a test clock: a client lives by it too, and a client that was given another
//     one gets link.ErrClock.
//   - Two processes open the folder at once: the lock decides, the other one becomes a client.
//   - The holder is gone, killed or in order: every claim is lost, and may be claimed again.
//   - A client is gone: its claims end with its connection.
//   - The folder is another user's, even for root: refused before a file is made.
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

const (
	retryEvery  = 20 * time.Millisecond
	patience    = 9 * time.Second // with a holder that is about to serve
	endsIn      = time.Minute     // else a holder that hands the store over does not
	answersIn   = 4 * time.Second // else a holder that has been greeted stands still
	servesIn    = time.Second     // else a holder without a socket serves nobody
	handingOver = 2 * time.Second // for a process that stays to take the folder
)

// Options say how to open a shared store.
type Options struct {
	pebblestore.Options        // Now is the machine's clock
	Version             string // of Duesday: all processes of a folder have the same
	Clock               string // a test clock, as clock.Parse reads it; "": the machine's, or the holder's
	Lasting             bool   // the process stays: others hand the folder over to it
}

// A Store is the store in a folder, held by this process or by another one. It is safe for
// concurrent use.
type Store struct {
	dir    string
	o      Options
	schema store.Schema
	clock  atomic.Pointer[clock.Clock]

	failures atomic.Int64 // elections that have failed

	turn     chan struct{} // full while a goroutine looks at or changes the rest
	now      *session      // nil: to be elected
	handover time.Time     // until then the folder is another process's to take
	begun    bool          // the clock is chosen
	failed   error         // of the last failed election
	closed   bool
}

// shared is the store of a session: a holding, or a client of one.
type shared interface {
	store.Store
	store.Claimer
	Checkpoint(ctx context.Context, to string) error
}

var _ shared = (*Store)(nil)

// A session is the time for which a process holds the folder, or is the client of one holder.
type session struct {
	shared
	client bool
	end    func() error
}

// Open opens the store in the folder. It returns the errors of pebblestore.Open. It returns
// ErrLocked only if the holder does not answer.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	schema, err := store.NewSchema(o.Tables...)
	if err != nil {
		return nil, err
	}
	if err := socket.CheckOwner(dir); err != nil {
		return nil, fmt.Errorf("store %w", err)
	}
	s := &Store{dir: dir, o: o, schema: schema, turn: make(chan struct{}, 1)}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	s.o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := s.setClock(o.Clock); err != nil {
		return nil, err
	}
	if _, err = s.session(ctx); err != nil {
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
func (s *Store) Holds() bool {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.now != nil && !s.now.client
}

// session returns the present one, or the one that it has elected.
func (s *Store) session(ctx context.Context) (*session, error) {
	failures := s.failures.Load()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case s.closed:
		return nil, store.ErrClosed
	case s.now == nil && s.failures.Load() != failures: // this call has waited for that election
		return nil, s.failed
	case s.now == nil:
		x, err := s.elect(ctx)
		if err != nil && ctx.Err() == nil {
			s.failed = err
			s.failures.Add(1)
		}
		if err != nil {
			return nil, err
		}
		s.now = x
		s.begun, s.o.Create = true, false // from now on it is there
	}
	return s.now, nil
}

// drop ends a session whose holder is gone.
func (s *Store) drop(x *session) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.now == x {
		s.now = nil
		_ = x.end() // the connection is gone
	}
}

// handOver gives the folder to a process that stays. The calls under way go on as a client's.
func (s *Store) handOver(x *session) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.now != x || s.closed {
		return
	}
	s.now = nil
	if err := x.end(); err != nil {
		s.o.Logger.Warn("handing the store over", "error", err)
	}
	s.handover = time.Now().Add(handingOver) // the end may have taken longer
}

// elect takes the folder, or connects to the process that has taken it.
func (s *Store) elect(ctx context.Context) (*session, error) {
	began := time.Now()
	for {
		locked := store.ErrLocked
		if time.Now().After(s.handover) {
			x, err := s.hold()
			if !errors.Is(err, store.ErrLocked) {
				return x, err
			}
			locked = err
		}
		x, err := s.connect(ctx)
		switch waited := time.Since(began); {
		case err == nil || ctx.Err() != nil || errors.Is(err, link.ErrVersion) || errors.Is(err, link.ErrClock):
			return x, err
		case errors.Is(err, errUnserved) && waited > servesIn && !s.handover.After(began):
			return nil, locked
		case errors.Is(err, context.DeadlineExceeded), waited > endsIn,
			waited > patience && !errors.Is(err, link.ErrHandOver):
			return nil, fmt.Errorf("%w; it does not answer", locked)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// hold takes the folder, and serves it.
func (s *Store) hold() (*session, error) {
	o, err := s.o.Options, error(nil)
	if o.Socket, err = socket.Path(s.dir, "duesday.sock"); err != nil {
		return nil, err
	}
	o.Now = s.Clock().Now
	dead, _ := pebblestore.SocketOf(s.dir) // once the folder is ours
	held, err := pebblestore.Open(s.dir, o)
	if err != nil {
		return nil, err
	}
	socket.Clear(dead)
	l, err := socket.Listen(s.dir, o.Socket)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	own := holding{Store: held, dir: s.dir, ended: make(chan struct{})}
	x := &session{shared: &own}
	stop := serve(l, &own, s.linkOptions(), func() { s.handOver(x) })
	x.end = func() error {
		own.copies.Lock() // a copy may take longer than others wait for a holder without a socket
		defer own.copies.Unlock()
		close(own.ended)
		return errors.Join(stop(), held.Close())
	}
	return x, nil
}

// A holding is the store of a holder, with the claims of all processes.
type holding struct {
	*pebblestore.Store
	store.Claims
	dir    string
	ended  chan struct{} // closed when another process may hold the folder
	copies sync.RWMutex  // read-locked by each; the end waits for them
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
		return fmt.Errorf("%w: a backup to %s: want an absolute path", store.ErrInvalid, to)
	}
	if err := pebblestore.CheckTarget(h.dir, to); err != nil {
		return err
	}
	if h.copies.TryRLock() { // else the holder ends, and answers this one last
		defer h.copies.RUnlock()
	}
	return h.Store.Checkpoint(ctx, to)
}

// errUnserved: there is no socket to connect to.
var errUnserved = errors.New("the holder serves nobody")

func (s *Store) connect(ctx context.Context) (*session, error) {
	at, err := pebblestore.SocketOf(s.dir)
	if err != nil || at == "" {
		return nil, errors.Join(err, errUnserved)
	}
	ctx, cancel := context.WithTimeout(ctx, answersIn)
	defer cancel()
	conn, err := socket.Dial(ctx, at)
	if err != nil {
		return nil, err
	}
	c, err := link.Connect(ctx, conn, s.linkOptions())
	if err != nil {
		return nil, err
	}
	if s.begun && c.Clock() != s.o.Clock {
		err = fmt.Errorf("%w: the new holder's is %s, and this process has %s", link.ErrClock,
			cmp.Or(c.Clock(), "the machine's"), cmp.Or(s.o.Clock, "the machine's"))
	} else {
		err = s.setClock(c.Clock())
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &session{shared: c, client: true, end: c.Close}, nil
}

func (s *Store) linkOptions() link.Options {
	return link.Options{Version: s.o.Version, Tables: s.o.Tables, Names: s.o.Names, Clock: s.o.Clock,
		Lasting: s.o.Lasting}
}

// do does the work in the present session, and again in the next one while the session has ended and
// nothing was written.
func (s *Store) do(ctx context.Context, work func(shared) error) error {
	for {
		x, err := s.session(ctx)
		if err != nil {
			return err
		}
		err = work(x.shared)
		switch {
		case x.client && (errors.Is(err, link.ErrLost) || errors.Is(err, store.ErrClosed)): // another goroutine's drop
			s.drop(x)
		case !x.client && errors.Is(err, store.ErrClosed): // handed over, or closed: session tells
		default:
			return err
		}
		if errors.Is(err, store.ErrUnknown) {
			return err
		}
	}
}

// Claim implements store.Claimer. The holder keeps the claims of all: a new holder knows none.
func (s *Store) Claim(ctx context.Context, name, by string) (lost <-chan struct{}, release func(), err error) {
	err = s.do(ctx, func(now shared) error {
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
	return s.do(ctx, func(now shared) error { return now.Checkpoint(ctx, to) })
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (it store.Item, err error) {
	err = s.do(ctx, func(now shared) error {
		it, err = now.Get(ctx, table, key)
		return err
	})
	return it, err
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	return s.do(ctx, func(now shared) error { return now.Commit(ctx, writes...) })
}

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		q, limited := q, q.Limit > 0
		s.iterate(ctx, yield, func(now store.Store) iter.Seq2[store.Item, error] { return now.Query(ctx, q) },
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
		s.iterate(ctx, yield, func(now store.Store) iter.Seq2[store.Item, error] { return now.Scan(ctx, c) },
			func(it store.Item) (more bool) {
				c.After = s.schema[c.Table].CursorAt("", it)
				return true
			})
	}
}

// iterate yields the items, at the next holder from where the last one has ended. after moves the
// cursor behind an item, and returns false if no more are wanted.
func (s *Store) iterate(ctx context.Context, yield func(store.Item, error) bool,
	items func(store.Store) iter.Seq2[store.Item, error], after func(store.Item) bool) {
	left := false
	err := s.do(ctx, func(now shared) error {
		for it, err := range items(now) {
			if err != nil {
				return err
			}
			more := after(it)
			if left = !yield(it, nil) || !more; left {
				return nil
			}
		}
		return nil
	})
	if err != nil && !left {
		yield(nil, err)
	}
}

// Close implements store.Store. A holder answers its clients first, and then gives the folder back.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	if s.now == nil {
		return nil
	}
	return s.now.end()
}
