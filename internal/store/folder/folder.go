// Package folder lets many processes of one user share an embedded store. The process that has
// locked the folder, its holder, serves the store on a Unix socket, and the others are its clients.
// When the holder ends, its clients elect the next one by the lock. Callers see one store.Store.
// The package does not know frames, which are package link's, or files, which are pebblestore's.
//
// # Failures
//
//   - The holder stops serving in order: no call fails, and no outcome is unknown.
//   - The holder is killed: a commit without an answer is ErrUnknown; everything else goes on at
//     the next holder.
//   - The holder stands still, or serves nobody: after Patience a call is ErrLocked and names the
//     holder's process.
//   - The holder is another version of Duesday: link.ErrVersion, at once.
//   - Two processes open the folder at once: the lock decides, the other one becomes a client.
//   - The holder is gone, killed or in order: every claim is lost, and may be claimed again.
//   - A client is gone: its claims end with its connection.
//   - The folder is another user's, even for root: refused before a file is made.
package folder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// Patience is how long a process waits for a holder that does not answer.
const Patience = 9 * time.Second

const retryEvery = 20 * time.Millisecond

// Options say how to open a shared store.
type Options struct {
	pebblestore.Options
	Version string // of Duesday: all processes of a folder have the same
}

// A Store is the store in a folder, held by this process or by another one. It is safe for
// concurrent use.
type Store struct {
	dir    string
	o      Options
	schema store.Schema

	turn   chan struct{} // full while a goroutine looks at or changes the rest
	now    *session      // nil: to be elected
	closed bool
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Claimer = (*Store)(nil)
)

// A session is the time for which a process holds the folder, or is the client of one holder.
type session struct {
	store.Store
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
	if err := checkOwner(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, o: o, schema: schema, turn: make(chan struct{}, 1)}
	_, err = s.session(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Holds reports whether this process is the holder.
func (s *Store) Holds() bool {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.now != nil && !s.now.client
}

// session returns the present one, or the one that it has elected.
func (s *Store) session(ctx context.Context) (*session, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case s.closed:
		return nil, store.ErrClosed
	case s.now == nil:
		x, err := s.elect(ctx)
		if err != nil {
			return nil, err
		}
		s.now = x
		s.o.Create = false // from now on it is there
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

// elect takes the folder, or connects to the process that has taken it.
func (s *Store) elect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		x, err := s.hold()
		if !errors.Is(err, store.ErrLocked) {
			return x, err
		}
		locked := err
		if x, err = s.connect(ctx); err == nil || errors.Is(err, link.ErrVersion) {
			return x, err
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
				return nil, err
			}
			return nil, fmt.Errorf("%w; it does not answer", locked)
		}
	}
}

// hold takes the folder, and serves it.
func (s *Store) hold() (*session, error) {
	o, err := s.o.Options, error(nil)
	if o.Socket, err = socketOf(s.dir); err != nil {
		return nil, err
	}
	held, err := pebblestore.Open(s.dir, o)
	if err != nil {
		return nil, err
	}
	l, err := listen(s.dir, o.Socket)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	shared := struct {
		*pebblestore.Store
		*store.Claims
	}{held, new(store.Claims)}
	stop := serve(l, shared, s.linkOptions())
	return &session{Store: shared, end: func() error { return errors.Join(stop(), held.Close()) }}, nil
}

func (s *Store) connect(ctx context.Context) (*session, error) {
	socket, err := pebblestore.SocketOf(s.dir)
	if err != nil || socket == "" {
		return nil, errors.Join(err, store.ErrLocked)
	}
	conn, err := dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	c, err := link.Connect(ctx, conn, s.linkOptions())
	if err != nil {
		return nil, err
	}
	return &session{Store: c, client: true, end: c.Close}, nil
}

func (s *Store) linkOptions() link.Options {
	return link.Options{Version: s.o.Version, Tables: s.o.Tables, Names: s.o.Names}
}

// do does the work in the present session, and again in the next one while the holder is gone and
// nothing was written.
func (s *Store) do(ctx context.Context, work func(store.Store) error) error {
	for {
		x, err := s.session(ctx)
		if err != nil {
			return err
		}
		if err = work(x.Store); !x.client || !errors.Is(err, link.ErrLost) {
			return err
		}
		if s.drop(x); errors.Is(err, store.ErrUnknown) {
			return err
		}
	}
}

// Claim implements store.Claimer. The holder keeps the claims of all: a new holder knows none.
func (s *Store) Claim(ctx context.Context, name, by string) (lost <-chan struct{}, release func(), err error) {
	err = s.do(ctx, func(now store.Store) error {
		lost, release, err = now.(store.Claimer).Claim(ctx, name, by)
		return err
	})
	return lost, release, err
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (it store.Item, err error) {
	err = s.do(ctx, func(now store.Store) error {
		it, err = now.Get(ctx, table, key)
		return err
	})
	return it, err
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	return s.do(ctx, func(now store.Store) error { return now.Commit(ctx, writes...) })
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
	err := s.do(ctx, func(now store.Store) error {
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
