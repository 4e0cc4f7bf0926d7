package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/store"
)

// A Difference is an item with different content in the two stores.
type Difference struct {
	Table string // the destination's name of it
	Key   store.Key
	What  string // "is missing in the destination", "differs in Email, SKU", …
}

func (d Difference) String() string {
	return fmt.Sprintf("%s %s/%s %s", d.Table, d.Key.PK, d.Key.SK, d.What)
}

const (
	shownDifferences = 20
	compareChunk     = 32 // items of a segment compared at a time
)

// differences are the result of a comparison. They are safe for concurrent use.
type differences struct {
	mu    sync.Mutex
	first []Difference // guarded by mu
	n     int          // guarded by mu
	items int64        // in the destination
}

func (d *differences) add(x Difference) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n++; d.n <= shownDifferences {
		d.first = append(d.first, x)
	}
}

// compare holds the items of each store against the other's. In every phase but Comparing it also
// makes the destination agree.
func (c *Copy) compare(ctx context.Context, phase Phase) (*differences, error) {
	d := &differences{}
	mend := phase != Comparing
	if mend {
		if err := c.takeTurn(ctx); err != nil {
			return nil, err
		}
	}
	var done, theirs atomic.Int64
	err := each(ctx, len(c.plan.places), func(ctx context.Context, i int) error {
		p := c.plan.places[i]
		for _, back := range [...]bool{false, true} {
			side := c.From
			if back {
				side = c.To
			}
			err := c.batches(ctx, side, p, store.Key{}, compareChunk, func(chunk []store.Item, _ bool) error {
				chunk = c.moving(p.table, chunk)
				if back {
					theirs.Add(int64(len(chunk)))
				}
				defer func() { c.Progress(phase, done.Add(int64(len(chunk)))) }()
				return each(ctx, len(chunk), func(ctx context.Context, i int) error {
					return c.compareItem(ctx, d, p.table, chunk[i], back, mend)
				})
			})
			if err != nil {
				return fmt.Errorf("comparing %s: %w", side.Tables.All()[p.table].Name, err)
			}
		}
		return nil
	})
	d.items = theirs.Load()
	return d, err
}

// compareItem compares an item of one store with the other's. back: it is one of the destination.
func (c *Copy) compareItem(ctx context.Context, d *differences, table int, it store.Item, back, mend bool) error {
	from, to := c.From.Tables.All()[table], c.To.Tables.All()[table]
	key := to.KeyOf(it)
	other, t := c.To, to
	if back {
		other, t = c.From, from
	}
	found, err := other.Store.Get(ctx, t.Name, key)
	absent := errors.Is(err, store.ErrNotFound)
	switch {
	case err != nil && !absent:
		return err
	case back && !absent:
		return nil // compared on the way there
	case t.Expired(it, c.Now().Unix()):
		return nil // it has expired meanwhile
	}
	what := "is not in the source"
	if !back {
		what = c.differs(table, it, found)
	}
	if what == "" {
		return nil
	}
	d.add(Difference{to.Name, key, what})
	switch {
	case !mend:
		return nil
	case back:
		return c.mend(ctx, store.Delete(to.Name, key))
	}
	return c.mendFrom(ctx, table, it)
}

// differs describes how the destination's item (nil: none) deviates from the source's, or "".
func (c *Copy) differs(table int, it, found store.Item) string {
	if c.Shared && c.recurring(table) && !move.Marked(it, c.id) {
		return "was made in the source after the copy"
	}
	want := c.moved(table, it)
	if found == nil {
		return "is missing in the destination"
	}
	if want.Equal(found) {
		return ""
	}
	var names []string
	for _, a := range want {
		if !a.Value.Equal(found.Get(a.Name)) {
			names = append(names, a.Name)
		}
	}
	for _, a := range found {
		if !want.Has(a.Name) {
			names = append(names, a.Name)
		}
	}
	return "differs in " + strings.Join(names, ", ")
}

// mendFrom brings one item of the source to the destination once more.
func (c *Copy) mendFrom(ctx context.Context, table int, it store.Item) error {
	if c.Shared && c.recurring(table) {
		var err error
		if it, err = c.mark(ctx, it); err != nil || it == nil {
			return err
		}
	}
	return c.mend(ctx, store.Put(c.To.Tables.All()[table].Name, c.moved(table, it)))
}

// mend writes to the destination while it is this copier's turn, which it can only be of an
// unfinished copy. Mended items are compared again.
func (c *Copy) mend(ctx context.Context, w store.Write) error {
	c.mending.Lock()
	defer c.mending.Unlock()
	err := c.To.Store.Commit(ctx, w, store.Check(c.table(), planKey(planSK), store.AttributeEquals(turn, store.S(c.turn))))
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	it, err := c.To.Store.Get(ctx, c.table(), planKey(planSK))
	if errors.Is(err, store.ErrNotFound) || (err == nil && it.Str(turn) != c.turn) {
		return ErrOvertaken
	}
	return err // nil: the item to be deleted is gone
}
