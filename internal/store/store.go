package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// A Store holds tables, for concurrent use. The package comment has every engine's guarantees.
type Store interface {
	// Get returns the item at the key: strongly consistent, durable, not expired. It returns
	// ErrNotFound if the key holds no item, and ErrFormat if it cannot return the item whole.
	Get(ctx context.Context, table string, key Key) (Item, error)

	// Query yields the items of one partition in sort order. It yields an error at most once, last.
	Query(ctx context.Context, q Query) iter.Seq2[Item, error]

	// Scan yields every item of one segment of a table, in no particular order. It
	// yields an error at most once, last. Of the daily work, only the outlook pass uses it.
	Scan(ctx context.Context, s Scan) iter.Seq2[Item, error]

	// Commit applies all writes or none, and is durable when it returns nil. It returns a
	// ConflictError if a condition does not hold, and ErrTooLarge or ErrInvalid if every engine would
	// refuse it. ErrThrottled: it may be repeated unchanged; ErrUnknown: the answer was lost.
	Commit(ctx context.Context, writes ...Write) error

	// Close waits for running commits and releases the store. Every later call returns ErrClosed.
	Close() error
}

// A Query reads one partition of a table or of one of its indexes in sort order.
type Query struct {
	Table     string
	Index     string // "" reads the table itself
	Partition string
	Prefix    string // sort keys that begin with it; not together with From and To
	From, To  string // sort keys from From to To, both inclusive; "" leaves that end open
	Reverse   bool   // descending sort order
	Limit     int    // at most so many items; 0 for all
	After     Cursor // resume after the item that gave this cursor, in a query of the same partition
	Eventual  bool   // may miss commits of the last seconds, where that is cheaper: to look whether there is anything
}

// A Scan reads a whole table, unordered, in segments read in parallel, for operators' commands and the outlook pass.
type Scan struct {
	Table    string
	Segment  int // 0 <= Segment < Segments
	Segments int // 0 means 1
	After    Cursor
}

// InSegment reports whether the scan's segment has the items of the partition. It must not change: a
// cursor may be kept while Duesday is updated.
func InSegment[P string | []byte](s Scan, partition P) bool {
	h := uint32(2166136261) // FNV-1a
	for i := range len(partition) {
		h = (h ^ uint32(partition[i])) * 16777619
	}
	return s.Segments <= 1 || h%uint32(s.Segments) == uint32(s.Segment)
}

// A Cursor marks a place in a Query or Scan, also of an item changed or deleted; zero: the start.
type Cursor struct {
	Key   Key // base key
	Index Key // index key, in a query of an index
}

// IsZero reports whether c is the zero cursor, which is the start.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// CursorAt returns the cursor of an item for a query of the named index of t, or, if the name is
// empty, for a query or scan of t.
func (t *Table) CursorAt(index string, it Item) Cursor {
	c := Cursor{Key: t.KeyOf(it)}
	if x := t.Index(index); x != nil {
		c.Index, _ = x.KeyOf(it)
	}
	return c
}

// Pages says how an engine reads the answer to a Query or Scan: a page at a time. Pages grow, because
// most loops end early and some read millions of rows.
type Pages struct {
	Limit       int // at most so many items; 0 for all
	First, Full int // most items of the first page and of a full one; 0 for no bound

	// Next returns the next page, of up to n items (0 for no bound), and whether there may be more.
	Next func(n int) (items []Item, more bool, err error)
}

// Paged returns the iteration that yields page after page. open is called for each loop over it.
func Paged(ctx context.Context, open func() (Pages, error)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		p, err := open()
		if err != nil {
			yield(nil, err)
			return
		}
		left := p.Limit
		for n := p.First; ; n = min(4*n, p.Full) {
			if p.Limit > 0 && (n == 0 || n > left) {
				n = left
			}
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			items, more, err := p.Next(n)
			for _, it := range items {
				if !yield(it, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if left -= len(items); !more || (p.Limit > 0 && left == 0) {
				return
			}
		}
	}
}

// A Noticer is a store that reports which tables its own process has put items into. It may also
// report the puts of other processes.
type Noticer interface {
	// Puts returns the table's channel, the same one at each call. From the first call on, the
	// channel holds one element when a commit has, or may have, put an item into the table.
	Puts(table string) <-chan struct{}
}

// Notices holds the channels of a Noticer. The zero value is ready, and is safe for concurrent use.
type Notices struct{ tables sync.Map }

// Puts implements Noticer.
func (n *Notices) Puts(table string) <-chan struct{} {
	c, _ := n.tables.LoadOrStore(table, make(chan struct{}, 1))
	return c.(chan struct{})
}

// Note signals the tables that the writes put items into, unless err says that nothing was written.
func (n *Notices) Note(err error, writes ...Write) {
	for i := range writes {
		if c, asked := n.tables.Load(writes[i].Table); asked && writes[i].Op == OpPut && (err == nil || errors.Is(err, ErrUnknown)) {
			signal(c.(chan struct{}))
		}
	}
}

// NoteAll signals every table: other processes may have put items into each.
func (n *Notices) NoteAll() {
	n.tables.Range(func(_, c any) bool {
		signal(c.(chan struct{}))
		return true
	})
}

// signal fills the channel unless it is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// A Claimer is a store whose processes can claim names. Only a store shared by the processes of one
// machine can be one: it knows when a process ends.
type Claimer interface {
	// Claim claims the name for by, until release is called or the process ends. It returns a
	// *ClaimedError if the name is claimed. With an empty by it only asks, and claims nothing. lost is
	// closed if the claim ends otherwise: the claims' keeper is gone, and the name is free.
	Claim(ctx context.Context, name, by string) (lost <-chan struct{}, release func(), err error)
}

// A ClaimedError reports which process has claimed a name.
type ClaimedError struct{ Name, By string }

func (e *ClaimedError) Error() string { return fmt.Sprintf("%s is claimed by %s", e.Name, e.By) }

// Claims holds the claims of one process, or the claims that it keeps for other processes. They
// exist only in memory. The zero value holds no claims. It is safe for concurrent use.
type Claims struct {
	mu   sync.Mutex
	held map[string]string // by name; guarded by mu
}

var _ Claimer = (*Claims)(nil)

// Claim implements Claimer. The process keeps the claim until it releases it.
func (c *Claims) Claim(_ context.Context, name, by string) (lost <-chan struct{}, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, taken := c.held[name]; taken {
		return nil, nil, &ClaimedError{name, other}
	}
	if by == "" {
		return nil, func() {}, nil
	}
	if c.held == nil {
		c.held = map[string]string{}
	}
	c.held[name] = by
	return nil, sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held, name)
	}), nil
}
