package metering

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	"github.com/duesday/duesday/internal/store"
)

// TokenBytes is the size of the attribute _token, with its name. The DynamoDB engine adds it to
// every item of a put or update, and recognises its own writes by it after a lost reply.
const TokenBytes = len(tokenName) + 16

const tokenName = "_token"

// Options of a Meter.
type Options struct {
	Tables []store.Table // of the store
	// TokenBytes is added to the size of every item, not to index rows: see the constant.
	TokenBytes int
	// Name returns the kind of the item at a key, for Line.Item; nil: all items are one kind.
	Name func(table string, k store.Key) string
}

// A Meter is a store.Store that counts the units DynamoDB would consume for the calls to the
// store in it, as the DynamoDB engine sends them. One write is a conditional write, several are a
// transaction. Get, a lone check, a Scan and a Query of a table are strongly consistent reads, a Query of an
// index is an eventually consistent one.
//
// It makes one commit at a time and reads the old items first, to count each write against the
// item it replaces. It is too slow for anything but measuring.
type Meter struct {
	store.Store
	schema store.Schema
	token  int
	name   func(string, store.Key) string

	committing sync.Mutex
	mu         sync.Mutex
	usage      Usage               // guarded by mu
	partitions map[Partition]Units // guarded by mu
}

// A Partition is one partition of an index: all rows with one partition key.
type Partition struct{ Table, Index, Key string }

var _ store.Store = (*Meter)(nil)

// NewMeter returns a Meter over s. Closing it closes s. It returns an error for invalid tables.
func NewMeter(s store.Store, o Options) (*Meter, error) {
	schema, err := store.NewSchema(o.Tables...)
	if err != nil {
		return nil, err
	}
	m := &Meter{Store: s, schema: schema, token: o.TokenBytes, name: o.Name, usage: make(Usage),
		partitions: make(map[Partition]Units)}
	if m.name == nil {
		m.name = func(string, store.Key) string { return "" }
	}
	return m, nil
}

// Usage returns the consumption so far.
func (m *Meter) Usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.usage)
}

// Partitions returns the consumption so far of each partition of the indexes; a table has too many.
func (m *Meter) Partitions() map[Partition]Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.partitions)
}

// count adds to a line and, unless it is of a table itself, to the partition of its index.
func (m *Meter) count(l Line, partition string, bytes int, u Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usage[l] = m.usage[l].plus(Count{1, int64(bytes), u})
	if l.Index != "" {
		p := Partition{l.Table, l.Index, partition}
		m.partitions[p] = m.partitions[p].Plus(u)
	}
}

// bytes returns the size of an item as it lies in the table; 0 for none.
func (m *Meter) bytes(it store.Item) int {
	if it == nil {
		return 0
	}
	return ItemBytes(it) + m.token
}

// Get implements store.Store.
func (m *Meter) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	it, err := m.Store.Get(ctx, table, key)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		n := m.bytes(it)
		m.count(Line{Op: OpGet, Table: table, Item: m.name(table, key)}, "", n, Units{Read: ReadUnits(n, Strong)})
	}
	return it, err
}

// Commit implements store.Store.
func (m *Meter) Commit(ctx context.Context, writes ...store.Write) error {
	if err := m.schema.CheckCommit(ctx, writes); err != nil {
		return err
	}
	m.committing.Lock()
	defer m.committing.Unlock()
	before := make([]store.Item, len(writes))
	for i := range writes {
		w := &writes[i]
		it, err := m.Store.Get(ctx, w.Table, w.KeyIn(m.schema[w.Table]))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		before[i] = it
	}
	err := m.Store.Commit(ctx, writes...)
	// After an unknown outcome the writes are counted: at worst they were made and paid for.
	if failed := errors.Is(err, store.ErrConflict); err == nil || failed || errors.Is(err, store.ErrUnknown) {
		for i := range writes {
			m.write(&writes[i], before[i], len(writes) > 1, failed)
		}
	}
	return err
}

func (m *Meter) write(w *store.Write, before store.Item, transaction, failed bool) {
	t := m.schema[w.Table]
	ops := [...]Op{store.OpPut: OpPut, store.OpUpdate: OpUpdate, store.OpDelete: OpDelete, store.OpCheck: OpCheck}
	l := Line{Op: ops[w.Op], Table: t.Name, Item: m.name(t.Name, w.KeyIn(t)), Transaction: transaction, Failed: failed}
	after := intended(t, w, before)
	n := max(m.bytes(before), m.bytes(after))
	if w.Op == store.OpDelete || w.Op == store.OpCheck {
		n = m.bytes(before)
	}
	u := Units{Write: WriteUnits(n, n)}
	switch {
	case transaction:
		u.Write = TransactionUnits(n, n)
	case w.Op == store.OpCheck:
		u = Units{Read: ReadUnits(n, Strong)}
	}
	m.count(l, "", n, u)
	if failed || w.Op == store.OpCheck {
		return
	}
	for i := range t.Indexes {
		x := &t.Indexes[i]
		l.Index = x.Name
		for _, r := range IndexWrites(t, x, m.stored(x, before, 0), m.stored(x, after, 1)) {
			m.count(l, r.Partition, r.Bytes, Units{Write: r.Units})
		}
	}
}

// stored returns the item as index x sees it: with the token, new after each write, if x has all.
func (m *Meter) stored(x *store.Index, it store.Item, version byte) store.Item {
	if m.token == 0 || !x.All || it == nil {
		return it
	}
	it = it.Clone()
	token := make([]byte, max(m.token-len(tokenName), 1))
	token[0] = version
	it.Set(tokenName, store.B(token))
	return it
}

// intended returns the item after the write, without regard to its conditions.
func intended(t *store.Table, w *store.Write, before store.Item) store.Item {
	bare := *w
	bare.If = nil
	if after, err := bare.Resolve(t, 0, before); err == nil {
		return after
	}
	it := w.Set.Clone() // the item is absent, or would be too large
	t.SetKey(&it, w.KeyIn(t))
	return it
}

// Query implements store.Store.
func (m *Meter) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	l := Line{Op: OpQuery, Table: q.Table, Index: q.Index, Item: m.name(q.Table, store.Key{PK: q.Partition})}
	return m.paged(ctx, l, q.Partition, q.Limit, func(n int, after *store.Cursor) iter.Seq2[store.Item, error] {
		rest := q
		rest.Limit = cmp.Or(n, q.Limit) // a negative one is refused
		if after != nil {
			rest.After = *after
		}
		return m.Store.Query(ctx, rest)
	})
}

// Scan implements store.Store. A scan reads items of every kind, so its line has none.
func (m *Meter) Scan(ctx context.Context, s store.Scan) iter.Seq2[store.Item, error] {
	return m.paged(ctx, Line{Op: OpScan, Table: s.Table}, "", 0, func(_ int, after *store.Cursor) iter.Seq2[store.Item, error] {
		rest := s
		if after != nil {
			rest.After = *after
		}
		return m.Store.Scan(ctx, rest)
	})
}

// paged reads a page and then yields it, as an engine with requests does: a loop that ends early has paid for
// its page. read continues after the last item of the page before; nil: it begins.
func (m *Meter) paged(ctx context.Context, l Line, partition string, limit int,
	read func(n int, after *store.Cursor) iter.Seq2[store.Item, error]) iter.Seq2[store.Item, error] {
	c, token := Strong, m.token
	if l.Index != "" {
		c, token = Eventual, 0
	}
	return store.Paged(ctx, func() (store.Pages, error) {
		var after *store.Cursor
		return store.Pages{Limit: limit, Next: func(n int) (page []store.Item, full bool, err error) {
			bytes := 0
			for it, err := range read(n, after) {
				if err != nil {
					return page, false, err
				}
				page = append(page, it)
				bytes += ItemBytes(it) + token
				if full = bytes >= PageBytes; full {
					at := m.schema[l.Table].CursorAt(l.Index, it)
					after = &at
					break
				}
			}
			m.count(l, partition, bytes, Units{Read: ReadUnits(bytes, c)})
			return page, full, nil
		}}, nil
	})
}
