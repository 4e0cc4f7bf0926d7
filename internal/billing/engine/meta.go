package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Making is the action of Open on a store without a META item.
type Making uint8

// The actions of Open.
const (
	MakeNew     Making = iota // make one, in an empty table
	MakeNever                 // ErrNoStore
	MakeAdopted               // make one beside the items of other tools
)

func (e *Engine) makeMeta(ctx context.Context, o *Options) error {
	if err := MayMake(ctx, e.Records, o.Making); err != nil {
		return err
	}
	var settings []store.Write
	if o.KeepSettings {
		settings = e.FirstSettings(o.Config.Settings)
	}
	meta := billing.ItemAt(billing.MetaKey,
		store.Attribute{Name: schema.Installation, Value: store.S(rand.Text())},
		store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)},
		store.Attribute{Name: schema.Shards, Value: store.Int(int64(max(1, o.Shards)))},
		store.Attribute{Name: schema.Charging, Value: store.Bool(true)},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(billing.Stamp(e.Now()))})
	if o.Making == MakeNew {
		meta.Set(schema.SumsDate, meta.Get(schema.CreatedDate))
	}
	if o.Program != "" {
		meta.Set(schema.Program, store.S(o.Program))
	}
	return e.Store.Commit(ctx, append(settings, store.Put(e.Table, meta, store.Absent()))...)
}

// MayMake returns an error if the table is no store and may not become one. A copy of another store
// without its META would be a new installation, and charge every account again. MayMake changes
// nothing.
func MayMake(ctx context.Context, e *billing.Records, making Making) error {
	_, err := e.Meta(ctx)
	switch {
	case !errors.Is(err, store.ErrNotFound):
		return err
	case making == MakeNever:
		return fmt.Errorf("table %s has no META item: %w", e.Table, billing.ErrNoStore)
	case making == MakeAdopted:
		for _, kind := range [...]billing.Kind{billing.Payments, billing.Reminders} {
			there, err := billing.AnyItem(e.Store.Query(ctx,
				store.Query{Table: e.Table, Partition: billing.RunPK(kind), Limit: 1}))
			if err != nil {
				return err
			}
			if there {
				const part = "table %s has runs of Duesday's in it and no META item: %w; it was part of a store, which has " +
					"to be put back whole"
				return fmt.Errorf(part, e.Table, billing.ErrNoStore)
			}
		}
		return nil
	}
	there, err := billing.AnyItem(e.Store.Scan(ctx, store.Scan{Table: e.Table}))
	if err == nil && there {
		const others = "table %s has items in it and no META item: %w; duesday store adopt takes over a table that " +
			"other tools have made"
		err = fmt.Errorf(others, e.Table, billing.ErrNoStore)
	}
	return err
}

// ErrOtherProcessor: the store was charged through another processor account, or through the
// same one in the other mode.
var ErrOtherProcessor = errors.New("this store belongs to another processor")

// pin stores the identity of the first processor account, and refuses every other one from then
// on: a test key would pay periods with nothing, a live key would charge a copy made for testing.
// A processor without an identity is accepted until an identity is stored. After a run with such
// a processor no identity is accepted.
func (e *Engine) pin(ctx context.Context, readOnly bool) error {
	if e.proc == nil {
		return nil
	}
	identity := ""
	if p, ok := e.proc.(billing.Identified); ok {
		var err error
		if identity, err = p.Identity(ctx); err != nil {
			return fmt.Errorf("asking the processor whose account it is: %w", err)
		}
	}
	return store.Retry(ctx, "noting the processor in the store", func() error {
		switch {
		case e.Opened.Processor == identity, e.Opened.Processor == "" && readOnly:
			return nil
		case e.Opened.Processor != "":
			return fmt.Errorf("%w: it is charged through %s, and this is %s",
				ErrOtherProcessor, e.Opened.Processor, cmp.Or(identity, "a sandbox"))
		}
		ran, err := billing.AnyItem(e.LatestRuns(ctx, billing.Payments, 1))
		if err != nil {
			return err
		}
		if ran {
			return fmt.Errorf("%w: it has been charged through a sandbox, and this is %s", ErrOtherProcessor, identity)
		}
		set := store.NewItem(store.Attribute{Name: schema.Processor, Value: store.S(identity)})
		err = e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil, store.AttributeAbsent(schema.Processor)))
		if err != nil && !store.Retryable(err) {
			return err
		}
		if e.Opened, err = e.Meta(ctx); err == nil && e.Opened.Processor != identity {
			err = store.ErrConflict // another process was first, or nothing landed
		}
		return err
	})
}

// SetCharging switches charging on or off for the whole store. While it is off, no job opens or
// confirms an intent. Switching it on also accepts the clock, and puts rows that a clock ahead has put
// off on today's agenda.
func (e *Engine) SetCharging(ctx context.Context, on bool, reason string) error {
	var set store.Item
	var remove []string
	var err error
	if on {
		if err = e.redate(ctx); err == nil {
			set, remove, err = e.AcceptClock(ctx)
		}
		if err != nil {
			return err
		}
	}
	if set.Set(schema.Charging, store.Bool(on)); on || reason == "" {
		remove = append(remove, schema.Reason)
	} else {
		set.Set(schema.Reason, store.S(secret.MaskCards(reason)))
	}
	err = e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, remove, store.AttributeAbsent(schema.Moved)))
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("this store was %w", billing.ErrMoved)
	}
	return err
}

// ErrChargingOff: charging is switched off for the whole store.
var ErrChargingOff = errors.New("charging is switched off: duesday charging on")

// Restored records the restoration of the store from a copy made at that time. The next runs look
// at every date since the store was made: rows due in the copy may be older than the walks of the
// lost time. Restored switches charging off, since requests and charges of the lost time are not in
// the copy. Reconcile finds the charges; only a person can repeat the requests and switch charging
// on again.
func (e *Engine) Restored(ctx context.Context, made time.Time, from string) error {
	oldest := civil.Earlier(civil.Of(e.Opened.Created), civil.Of(made))
	if err := e.LowerWatermarks(ctx, oldest, oldest); err != nil {
		return err
	}
	set := store.NewItem(
		store.Attribute{Name: billing.RestoredDate, Value: store.S(billing.Stamp(e.Now()))},
		store.Attribute{Name: billing.RestoredFrom, Value: store.S(from)})
	if e.Opened.Moved == "" {
		set.Set(schema.Charging, store.Bool(false))
		reason := "put back to how it stood at " + billing.Stamp(made) + ": duesday reconcile adopts what was charged since"
		set.Set(schema.Reason, store.S(reason))
	}
	return e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil))
}
