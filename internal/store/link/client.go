package link

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// ErrLost means that the connection to the holder is lost, and that the call wrote nothing.
var ErrLost = errors.New("lost the connection to the process that holds the store")

// The refusals of a holder, in its answer to the greeting. Nothing was written.
var (
	ErrVersion  = errors.New("the store is held by another version of Duesday")
	ErrClock    = errors.New("the store is held by a process with another clock")
	ErrHandOver = errors.New("the holder is handing the store over")
)

// refusals are known by their places in the answer, also to other versions: 0 is a welcome.
var refusals = [...]error{nil, ErrVersion, ErrClock, ErrHandOver}

// greeting returns what a client says first.
func (o Options) greeting() string {
	return fmt.Sprintf("%s\n%x\n%s\n%t", o.Version, sha256.Sum256(fmt.Appendf(nil, "%+v %q", o.Tables, o.Names)), o.Clock,
		o.Lasting)
}

func (o Options) refusal(greeting string) error {
	theirs, ours := strings.Split(greeting, "\n"), strings.Split(o.greeting(), "\n")
	switch {
	case len(theirs) != len(ours) || !slices.Equal(theirs[:2], ours[:2]):
		return fmt.Errorf("%w: the holder is version %s, this process is %.40q", ErrVersion, o.Version, theirs[0])
	case theirs[2] != "" && theirs[2] != o.Clock:
		return fmt.Errorf("%w: the holder's clock is %s, this process's clock is %.80s", ErrClock,
			cmp.Or(o.Clock, "the machine's"), theirs[2])
	case theirs[3] == "true" && !o.Lasting:
		return ErrHandOver
	}
	return nil
}

// A Client is a store.Store whose items are the holder's. It is safe for concurrent use.
type Client struct {
	*wire
	schema store.Schema
	names  *pebblestore.Dictionary
	clock  string // the holder's

	mu      sync.Mutex
	last    uint64                // request; guarded by mu
	waiting map[uint64]chan frame // requests without an answer; guarded by mu
	changes sync.WaitGroup        // under way; begun under mu while the client is not closed
	closed  bool                  // guarded by mu
}

var (
	_ store.Store   = (*Client)(nil)
	_ store.Claimer = (*Client)(nil)
)

// Connect greets the holder and returns the client. It returns ErrVersion, ErrClock or ErrHandOver
// if the holder refuses it. Close closes the connection.
func Connect(ctx context.Context, conn net.Conn, o Options) (*Client, error) {
	schema, err := store.NewSchema(o.Tables...)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	names, err := pebblestore.NewDictionary(o.Names)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &Client{wire: newWire(conn), schema: schema, names: names, waiting: map[uint64]chan frame{}}
	go func() {
		// Of other errors the answers tell more: the holder's end comes before them.
		if err := c.write(false); errors.Is(err, os.ErrDeadlineExceeded) {
			c.fail(err)
		}
	}()
	go c.read()
	a, err := c.ask(ctx, kindGreeting, []byte(o.greeting()))
	if err == nil {
		err = c.welcomed(&reader{names: names, b: a})
	}
	if err != nil {
		c.fail(err)
		return nil, err
	}
	return c, nil
}

func (c *Client) welcomed(r *reader) error {
	place, text := r.number(), r.text()
	switch {
	case r.err != nil:
		return r.err
	case place == 0:
		c.clock = text
		return nil
	case place > 0 && place < len(refusals):
		return &answerError{refusals[place], text}
	}
	return &answerError{ErrVersion, text}
}

// Clock returns the text of the holder's clock, as in its Options.
func (c *Client) Clock() string { return c.clock }

// read hands the answers to those who wait for them.
func (c *Client) read() {
	for {
		f, err := c.receive(false)
		if f.kind == kindEnd {
			err = errEnd
		}
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		answer := c.waiting[f.request]
		delete(c.waiting, f.request)
		c.mu.Unlock()
		if answer != nil {
			answer <- f
		}
	}
}

// errUnsent: the request has not left, or the holder has not carried it out.
var errUnsent = fmt.Errorf("%w; nothing was sent", ErrLost)

func (c *Client) ask(ctx context.Context, kind byte, body []byte) ([]byte, error) {
	answer := make(chan frame, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}()
	if !c.send(frame{id, kind, body}) {
		return nil, errUnsent
	}
	select {
	case f := <-answer:
		return f.body, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
	}
	select {
	case f := <-answer: // it came before the end
		return f.body, nil
	default:
	}
	if errors.Is(c.cause, errEnd) {
		return nil, errUnsent
	}
	return nil, fmt.Errorf("%w: %w", ErrLost, c.cause)
}

func (c *Client) call(ctx context.Context, kind byte, request func(*writer)) (*reader, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, store.ErrClosed
	}
	w := writer{names: c.names}
	request(&w)
	a, err := c.ask(ctx, kind, w.b)
	return &reader{names: c.names, b: a}, err
}

// Get implements store.Store.
func (c *Client) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if _, err := c.schema.CheckGet(ctx, table, key); err != nil {
		return nil, err
	}
	r, err := c.call(ctx, kindGet, func(w *writer) { w.text(table, key.PK, key.SK) })
	if err == nil {
		err = r.answer()
	}
	if err != nil {
		return nil, err
	}
	it := r.item()
	return it, r.err
}

// Commit implements store.Store. It returns ErrUnknown if no answer arrives.
func (c *Client) Commit(ctx context.Context, writes ...store.Write) error {
	if err := c.schema.CheckCommit(ctx, writes); err != nil {
		return err
	}
	w := writer{names: c.names}
	w.number(len(writes))
	for i := range writes {
		w.write(&writes[i])
	}
	return c.change(ctx, kindCommit, w.b)
}

// Checkpoint has the holder copy its store into the folder at the absolute path to, as
// pebblestore.Store.Checkpoint does. ErrUnknown: no answer came, and a part may be there.
func (c *Client) Checkpoint(ctx context.Context, to string) error {
	w := writer{names: c.names}
	w.text(to)
	return c.change(ctx, kindCheckpoint, w.b)
}

// change sends a request for a change. Without an answer its outcome is ErrUnknown.
func (c *Client) change(ctx context.Context, kind byte, body []byte) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return store.ErrClosed
	}
	c.changes.Add(1)
	c.mu.Unlock()
	defer c.changes.Done()
	a, err := c.ask(ctx, kind, body)
	if errors.Is(err, errUnsent) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	r := reader{names: c.names, b: a}
	err = r.answer()
	return cmp.Or(err, r.err) // of a damaged answer
}

// Query implements store.Store.
func (c *Client) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return store.Paged(ctx, func() (store.Pages, error) {
		t, _, err := c.schema.CheckQuery(q)
		q := q
		return store.Pages{Limit: q.Limit, Next: func(n int) (items []store.Item, more bool, err error) {
			q.Limit = n
			if items, more, err = c.page(ctx, kindQuery, func(w *writer) { w.query(q) }); more {
				q.After = t.CursorAt(q.Index, items[len(items)-1])
			}
			return items, more, err
		}}, err
	})
}

// Scan implements store.Store.
func (c *Client) Scan(ctx context.Context, s store.Scan) iter.Seq2[store.Item, error] {
	return store.Paged(ctx, func() (store.Pages, error) {
		t, err := c.schema.CheckScan(s)
		s := s
		return store.Pages{Next: func(int) (items []store.Item, more bool, err error) {
			if items, more, err = c.page(ctx, kindScan, func(w *writer) { w.scan(s) }); more {
				s.After = t.CursorAt("", items[len(items)-1])
			}
			return items, more, err
		}}, err
	})
}

// page asks for a page. more is true only if the page has an item to go on from.
func (c *Client) page(ctx context.Context, kind byte,
	request func(*writer)) (items []store.Item, more bool, err error) {
	r, err := c.call(ctx, kind, request)
	if err != nil {
		return nil, false, err
	}
	if n := r.take(2); n != nil {
		items = make([]store.Item, 0, int(n[0])<<8|int(n[1]))
	}
	for len(items) < cap(items) && r.err == nil {
		items = append(items, r.item())
	}
	more = r.flag() && len(items) > 0
	err = r.answer()
	if r.err != nil {
		return nil, false, r.err
	}
	return items, more, err
}

// Close implements store.Store. It closes the connection and leaves the holder's store open.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return store.ErrClosed
	}
	c.closed = true
	c.mu.Unlock()
	c.changes.Wait()
	c.fail(store.ErrClosed)
	return nil
}
