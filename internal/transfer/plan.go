package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// The items COPY/… of the destination: the plan, and the place of each segment of each table.
const (
	planSK    = "PLAN"
	segments  = "Segments"
	differs   = "Differs" // the last comparison found differences
	turn      = "Turn"    // of the plan: the copier with the right to mend and activate
	step      = "Step"    // of a place: how many commits have moved it
	items     = "Items"
	placePK   = "PlacePK" // key of the last copied item
	placeSK   = "PlaceSK"
	completed = schema.Completed
)

// A plan is the number of segments of a copy, with its places as they were read.
type plan struct {
	segments int
	differs  bool
	places   []*place
}

// A place is the progress of one segment.
type place struct {
	table   int // in Tables.All
	segment int
	step    int64
	items   int64
	after   store.Key // zero: at the start
	done    bool
}

func planKey(sk string) store.Key { return store.Key{PK: move.CopyPK, SK: sk} }

func (p *place) key() store.Key { return planKey(fmt.Sprintf("%d#%03d", p.table, p.segment)) }

func (c *Copy) table() string { return c.To.Tables.RecurringPayments.Name }

func (c *Copy) newPlan(n int) []store.Write {
	put := func(key store.Key, attributes ...store.Attribute) store.Write {
		return store.Put(c.table(), store.NewItem(append(attributes, store.Attribute{Name: schema.PK, Value: store.S(key.PK)},
			store.Attribute{Name: schema.SK, Value: store.S(key.SK)})...), store.Absent())
	}
	writes := []store.Write{put(planKey(planSK), store.Attribute{Name: segments, Value: store.Int(int64(n))})}
	for t := range c.To.Tables.All() {
		for s := range n {
			p := place{table: t, segment: s}
			writes = append(writes, put(p.key(), store.Attribute{Name: step, Value: store.Int(0)}))
		}
	}
	return writes
}

func (c *Copy) readPlan(ctx context.Context) error {
	it, err := c.To.Store.Get(ctx, c.table(), planKey(planSK))
	if errors.Is(err, store.ErrNotFound) {
		return ErrOvertaken // it has become live, or was canceled, a moment ago
	}
	if err != nil {
		return err
	}
	c.plan = plan{segments: int(it.Int(segments)), differs: it.Get(differs).Bool()}
	for t := range c.To.Tables.All() {
		for s := range c.plan.segments {
			p := &place{table: t, segment: s}
			if err := c.readPlace(ctx, p); err != nil {
				return err
			}
			c.plan.places = append(c.plan.places, p)
		}
	}
	return nil
}

func (c *Copy) readPlace(ctx context.Context, p *place) error {
	it, err := c.To.Store.Get(ctx, c.table(), p.key())
	if errors.Is(err, store.ErrNotFound) {
		return ErrOvertaken
	}
	if err != nil {
		return err
	}
	p.step, p.items, p.done = it.Int(step), it.Int(items), it.Get(completed).Bool()
	p.after = store.Key{PK: it.Str(placePK), SK: it.Str(placeSK)}
	return nil
}

// write moves the place on, unless another copier has.
func (p *place) write(table string, to place) store.Write {
	set := store.NewItem(
		store.Attribute{Name: step, Value: store.Int(to.step)},
		store.Attribute{Name: items, Value: store.Int(to.items)},
		store.Attribute{Name: completed, Value: store.Bool(to.done)})
	if to.after != (store.Key{}) {
		set.Set(placePK, store.S(to.after.PK))
		set.Set(placeSK, store.S(to.after.SK))
	}
	return store.Update(table, p.key(), set, nil, store.AttributeEquals(step, store.Int(p.step)))
}

// dropPlan deletes the plan and all places, if it is still this copier's turn.
func (c *Copy) dropPlan() []store.Write {
	writes := []store.Write{store.Delete(c.table(), planKey(planSK), store.AttributeEquals(turn, store.S(c.turn)))}
	for _, p := range c.plan.places {
		writes = append(writes, store.Delete(c.table(), p.key()))
	}
	return writes
}

// takeTurn gives this copier the right to mend and activate. After it, a late write of another
// copier cannot land.
func (c *Copy) takeTurn(ctx context.Context) error {
	c.turn = rand.Text()
	return c.note(ctx, turn, store.S(c.turn))
}

func (c *Copy) note(ctx context.Context, name string, v store.Value) (err error) {
	const tries = 5 // the same twice does no harm
	for range tries {
		err = c.To.Store.Commit(ctx, store.Update(c.table(), planKey(planSK), store.NewItem(
			store.Attribute{Name: name, Value: v}), nil), c.To.StillCopying(c.id))
		if !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	if errors.Is(err, store.ErrConflict) {
		return ErrOvertaken
	}
	return err
}
