package billing

import (
	"context"
	"errors"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A floor is the item RUN#<kind>/FLOOR: no row of that kind's index is on an older date
// than it, where a walk would not look otherwise.
type floor struct {
	date    civil.Date
	lowered time.Time // when a row was last written under its protection, to the hour
}

func floorKey(kind Kind) store.Key { return store.Key{PK: runPK(kind), SK: floorSK} }

func (e *Engine) floor(ctx context.Context, kind Kind) (*floor, error) {
	it, err := e.store.Get(ctx, e.table, floorKey(kind))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := civil.Parse(it.Str(schema.RunDate))
	return &floor{date: d, lowered: parseStamp(it.Str(schema.LoweredDate))}, err
}

// conditions hold while the floor is as it was read.
func (f *floor) conditions() []store.Condition {
	if f == nil {
		return []store.Condition{store.Absent()}
	}
	return []store.Condition{store.AttributeEquals(schema.RunDate, store.S(f.date.String())),
		store.AttributeEquals(schema.LoweredDate, store.S(stamp(f.lowered)))}
}

// floorWrites returns what must be in the commit that writes these dates (zero: none) into
// the indexes, so that walks find them though they have passed.
func (e *Engine) floorWrites(ctx context.Context, payment, reminder civil.Date) ([]store.Write, error) {
	var writes []store.Write
	for _, k := range [...]struct {
		kind Kind
		date civil.Date
	}{{Payments, payment}, {Reminders, reminder}} {
		if k.date.IsZero() || !k.date.Before(e.Today()) {
			continue
		}
		w, err := e.lowerFloor(ctx, k.kind, k.date)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, nil
}

func (e *Engine) lowerFloor(ctx context.Context, kind Kind, d civil.Date) (store.Write, error) {
	f, err := e.floor(ctx, kind)
	if err != nil {
		return store.Write{}, err
	}
	hour := e.now().Truncate(time.Hour)
	if f != nil && !f.date.After(d) && f.lowered.Equal(hour) {
		return store.Check(e.table, floorKey(kind), f.conditions()...), nil
	}
	if f != nil {
		d = earlier(f.date, d)
	}
	key := floorKey(kind)
	return store.Put(e.table, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(key.PK)},
		store.Attribute{Name: schema.SK, Value: store.S(key.SK)},
		store.Attribute{Name: schema.RunDate, Value: store.S(d.String())},
		store.Attribute{Name: schema.LoweredDate, Value: store.S(stamp(hour))}), f.conditions()...), nil
}

// liftFloor removes the floor that a walk began at, if nothing was written under it since
// and the index has had a day to show what was.
func (e *Engine) liftFloor(ctx context.Context, kind Kind, f *floor, started time.Time) error {
	if f == nil || started.Sub(f.lowered) < 25*time.Hour {
		return nil
	}
	err := e.store.Commit(ctx, store.Delete(e.table, floorKey(kind), f.conditions()...))
	if again(err) {
		return nil // lowered meanwhile, or it will be tried again after the next run
	}
	return err
}
