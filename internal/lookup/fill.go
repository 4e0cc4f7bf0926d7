package lookup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Open makes the records update the rows of every changed item. If fill is true, Open also writes the rows
// that an older store lacks.
func Open(ctx context.Context, e *billing.Records, fill bool) (err error) {
	e.Beside = append(e.Beside, Beside(e))
	if !fill || !e.Opened.Looked.IsZero() {
		return nil
	}
	if err = Fill(ctx, e, false, nil); err == nil {
		e.Opened, err = e.Meta(ctx)
	}
	return err
}

const (
	chunk   = 4096 // items after which a fill stores its progress
	writers = 64   // concurrent items

	afterPK = "AfterPK" // key of the item after which the fill continues
	afterSK = "AfterSK"
)

// Fill writes the missing rows, and then records in META that no row is missing. With sweep, it also removes
// rows that match no item, and expects that most rows exist. Writers that maintain rows can run beside it. If
// a fill is interrupted, the next one continues it.
func Fill(ctx context.Context, e *billing.Records, sweep bool, progress func(items int64)) error {
	f := &filling{Records: e, sweep: sweep}
	err := store.Retry(ctx, "beginning to fill the lookup rows", func() error { return f.begin(ctx) })
	if err != nil {
		return err
	}
	items, done := make([]store.Item, 0, chunk), int64(0)
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table, After: store.Cursor{Key: f.after}}) {
		if items = append(items, it); err == nil && len(items) < chunk {
			continue
		}
		if err == nil {
			err = f.flush(ctx, items)
		}
		if err != nil {
			return f.unlessEnded(ctx, err)
		}
		if done, items = done+chunk, items[:0]; progress != nil {
			progress(done)
		}
	}
	if err := f.flush(ctx, items); err != nil {
		return f.unlessEnded(ctx, err)
	}
	return store.Retry(ctx, "ending to fill the lookup rows", func() error { return f.end(ctx) })
}

// unlessEnded returns the error, or nil if another process has completed this fill.
func (f *filling) unlessEnded(ctx context.Context, err error) error {
	meta, missing := f.Store.Get(ctx, f.Table, billing.MetaKey)
	if missing == nil && meta.Str(schema.LookupFill) != f.id {
		return nil
	}
	return err
}

// A filling is a fill in progress.
type filling struct {
	*billing.Records
	sweep bool
	id    string
	after store.Key
}

func (f *filling) place() store.Key { return store.Key{PK: fillPK, SK: f.id} }

// begin continues an interrupted fill, or records a new one in META.
func (f *filling) begin(ctx context.Context) error {
	meta, err := f.Store.Get(ctx, f.Table, billing.MetaKey)
	if err != nil {
		return err
	}
	if f.id = meta.Str(schema.LookupFill); f.id == "" {
		set := store.NewItem(store.Attribute{Name: schema.LookupFill, Value: store.S(rand.Text())})
		err := f.Store.Commit(ctx, store.Update(f.Table, billing.MetaKey, set, nil, store.AttributeAbsent(schema.LookupFill)))
		return cmp.Or(err, store.ErrConflict) // so that Retry reads it
	}
	place, err := f.Store.Get(ctx, f.Table, f.place())
	f.after = store.Key{PK: place.Str(afterPK), SK: place.Str(afterSK)}
	return billing.IgnoreNotFound(err)
}

// end records that all rows exist, unless another process already has.
func (f *filling) end(ctx context.Context) error {
	meta, err := f.Store.Get(ctx, f.Table, billing.MetaKey)
	if err != nil || meta.Str(schema.LookupFill) != f.id {
		return err
	}
	var set store.Item
	if !meta.Has(schema.LookupDate) {
		set.Set(schema.LookupDate, store.S(billing.Stamp(f.Now())))
	}
	drop, err := drop(ctx, f.Records, f.place())
	if err != nil {
		return err
	}
	return f.Store.Commit(ctx, drop, store.Update(f.Table, billing.MetaKey, set, []string{schema.LookupFill},
		store.AttributeEquals(schema.LookupFill, store.S(f.id))))
}

// flush writes the missing rows of the items, and then the progress.
func (f *filling) flush(ctx context.Context, items []store.Item) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < len(items) && ctx.Err() == nil; i += writers {
				if err := f.write(ctx, items[i]); err != nil {
					stop(err)
				}
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil || len(items) == 0 {
		return err
	}
	last := items[len(items)-1]
	place := store.Put(f.Table, billing.ItemAt(f.place(), store.Attribute{Name: afterPK, Value: last.Get(schema.PK)},
		store.Attribute{Name: afterSK, Value: last.Get(schema.SK)}))
	underWay := store.Check(f.Table, billing.MetaKey, store.AttributeEquals(schema.LookupFill, store.S(f.id)))
	return store.Retry(ctx, "lookup rows", func() error { return f.Store.Commit(ctx, place, underWay) })
}

// write writes the missing rows of an item, or removes a row that matches no item.
func (f *filling) write(ctx context.Context, it store.Item) error {
	key := billing.KeyOf(it)
	work := f.missing
	switch isRow := strings.HasPrefix(key.PK, Prefix); {
	case isRow && !f.sweep:
		return nil
	case isRow:
		work = f.stray
	}
	return store.Retry(ctx, "lookup rows", func() (err error) {
		if it == nil {
			if it, err = f.Store.Get(ctx, f.Table, key); err != nil {
				return billing.IgnoreNotFound(err)
			}
		}
		writes, err := work(ctx, it)
		if it = nil; err != nil || len(writes) == 0 {
			return err
		}
		return f.Store.Commit(ctx, writes...)
	})
}

// missing returns the writes for the item's missing rows, on condition that the item has not changed.
func (f *filling) missing(ctx context.Context, it store.Item) (writes []store.Write, err error) {
	rows, _ := Of(it, f.Opened.Shards) // an unreadable item has none
	for _, r := range rows {
		there := false
		if f.sweep {
			_, err := f.Store.Get(ctx, f.Table, billing.KeyOf(r))
			if there = err == nil; billing.IgnoreNotFound(err) != nil {
				return nil, err
			}
		}
		if !there {
			writes = append(writes, store.Put(f.Table, r))
		}
	}
	if len(writes) > 0 {
		writes = append(writes, store.Check(f.Table, billing.KeyOf(it), asRead(it)...))
	}
	return writes, nil
}

// stray returns the writes that remove a row that matches no item, or the progress of another fill.
func (f *filling) stray(ctx context.Context, r store.Item) (writes []store.Write, err error) {
	key := billing.KeyOf(r)
	if it, err := Item(ctx, f.Records, r); key == f.place() || it != nil || err != nil {
		return nil, err
	}
	for of := range named(r) {
		switch it, err := f.Store.Get(ctx, f.Table, of); {
		case errors.Is(err, store.ErrNotFound):
			writes = append(writes, store.Check(f.Table, of, store.Absent()))
		case err != nil:
			return nil, err
		default:
			writes = append(writes, store.Check(f.Table, of, asRead(it)...))
		}
	}
	return append(writes, store.Delete(f.Table, key)), nil
}

// asRead returns the conditions that the item has not changed since it was read.
func asRead(it store.Item) []store.Condition {
	if it.Str(schema.SK) == billing.AccountSK {
		return []store.Condition{billing.Unchanged(schema.Version, it.Get(schema.Version))}
	}
	return billing.AsRead(it)
}
