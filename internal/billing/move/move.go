package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Attributes of META, beside Moved, during a move. The source of a copy has the Moved… ones,
// its destination the others. All are gone, or history, when the destination is live.
const (
	movedID       = "MovedID"       // the copy for which the source is fenced
	movedCharging = "MovedCharging" // whether the source charged before
	movedReason   = "MovedReason"   // why it did not
	movedOutcome  = "MovedOutcome"  // final or canceled; absent: both are possible
	copyID        = "CopyID"        // the copy that has made the destination
	copyState     = "CopyState"     // copying or canceled; absent: the destination is live
	copiedFrom    = "CopiedFrom"

	copying  = "copying"
	canceled = "canceled"
	finished = "final"
)

// CopyPK is the partition with the copy's progress in a destination's recurring-payments table. Its
// items are gone when the destination is live.
const CopyPK = "COPY"

// A Side is a store taking part in a move, with its tables.
type Side struct {
	Store  store.Store
	Tables schema.Tables
}

func (s Side) table() string { return s.Tables.RecurringPayments.Name }

// A State is a store's META during a move, as it was read.
type State struct {
	billing.Meta
	MovedID  string // of a fenced source: its copy
	Final    bool   // of a fenced source: its copy is live, or may become so at any moment
	GivenUp  bool   // of a fenced source: its copy never becomes live; Unfence follows
	CopyID   string // of a destination, live or not: its copy
	Copying  bool   // an unfinished copy
	Canceled bool   // a copy given up for good

	item store.Item
}

// State reads META, or returns store.ErrNotFound.
func (s Side) State(ctx context.Context) (*State, error) {
	it, err := s.Store.Get(ctx, s.table(), billing.MetaKey)
	if err != nil {
		return nil, err
	}
	meta, err := billing.DecodeMeta(it)
	if err != nil {
		return nil, err
	}
	outcome, state := it.Str(movedOutcome), it.Str(copyState)
	return &State{Meta: meta, MovedID: it.Str(movedID), Final: outcome == finished, GivenUp: outcome == canceled,
		CopyID: it.Str(copyID), Copying: state == copying, Canceled: state == canceled, item: it}, nil
}

// Claim makes an empty store the destination of the copy id. It has the source's META, and nobody
// can open it before Activate. The other writes are in the commit. A META there is a conflict.
func (s Side) Claim(ctx context.Context, source *State, id, from string, shards int, others ...store.Write) error {
	it := source.item.Clone()
	for _, name := range [...]string{schema.Reason, movedID, movedCharging, movedReason, movedOutcome} {
		it.Remove(name)
	}
	reason := "unfinished copy of " + from
	it.Set(schema.Format, store.Int(billing.FormatVersion))
	it.Set(schema.Shards, store.Int(int64(shards)))
	it.Set(schema.Charging, store.Bool(false))
	it.Set(schema.Reason, store.S(reason))
	it.Set(schema.Moved, store.S("this is an "+reason+
		"; nobody charges before the same duesday store copy has finished it, or given it up with --cancel"))
	it.Set(copyID, store.S(id))
	it.Set(copyState, store.S(copying))
	it.Set(copiedFrom, store.S(from))
	return s.Store.Commit(ctx, append(others, store.Put(s.table(), it, store.Absent()))...)
}

// Fence switches the source off for good, in favour of the copy id, and remembers whether it
// charged. If the source is fenced for the copy already, it does nothing.
func (s Side) Fence(ctx context.Context, id, to string) error {
	return store.Retry(ctx, "switching the source off", func() error {
		st, err := s.State(ctx)
		if err != nil {
			return err
		}
		if st.Moved != "" {
			if st.MovedID == id {
				return nil
			}
			return fmt.Errorf("this store was %w: %s", billing.ErrMoved, st.Moved)
		}
		set := store.NewItem(
			store.Attribute{Name: schema.Moved, Value: store.S(to)},
			store.Attribute{Name: schema.Charging, Value: store.Bool(false)},
			store.Attribute{Name: schema.Reason, Value: store.S("moved to " + to)},
			store.Attribute{Name: movedID, Value: store.S(id)},
			store.Attribute{Name: movedCharging, Value: store.Bool(st.Charging)},
			store.Attribute{Name: movedReason, Value: st.item.Get(schema.Reason)})
		return s.Store.Commit(ctx, store.Update(s.table(), billing.MetaKey, set, nil,
			billing.Unchanged(schema.Reason, st.item.Get(schema.Reason)), store.AttributeAbsent(schema.Moved),
			store.AttributeEquals(schema.Charging, store.Bool(st.Charging))))
	})
}

// SetFormat gives a source fenced for the id this program's format. The program is its version.
func (s Side) SetFormat(ctx context.Context, id, program string) error {
	set := store.NewItem(store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)},
		store.Attribute{Name: schema.Program, Value: store.S(program)})
	return s.Store.Commit(ctx, store.Update(s.table(), billing.MetaKey, set, nil, is(movedID, id)))
}

// Finish decides at the source, as the destination may be lost, that the copy id becomes the live
// store: Activate may follow, GiveUp fails. A copy given up before is a conflict.
func (s Side) Finish(ctx context.Context, id string) error {
	return s.decide(ctx, id, finished, store.AttributeAbsent(movedOutcome))
}

// GiveUp decides at the source that the copy id never becomes live: Unfence may follow. It
// returns a conflict if the copy is live or may become so. If the destination has durably been
// cancelled, the copy cannot: then GiveUp overrides Finish.
func (s Side) GiveUp(ctx context.Context, id string, destinationCanceled bool) error {
	if destinationCanceled {
		return s.decide(ctx, id, canceled)
	}
	return s.decide(ctx, id, canceled, store.AttributeAbsent(movedOutcome))
}

func (s Side) decide(ctx context.Context, id, outcome string, undecided ...store.Condition) error {
	var decidedOtherwise error
	err := store.Retry(ctx, "deciding on a copy", func() error {
		st, err := s.State(ctx)
		if err != nil {
			return err
		}
		if st.MovedID == id && st.item.Str(movedOutcome) == outcome {
			return nil
		}
		set := store.NewItem(store.Attribute{Name: movedOutcome, Value: store.S(outcome)})
		err = s.Store.Commit(ctx, store.Update(s.table(), billing.MetaKey, set, nil, append(undecided, is(movedID, id))...))
		if errors.Is(err, store.ErrConflict) {
			decidedOtherwise, err = err, nil
		}
		return err
	})
	return cmp.Or(err, decidedOtherwise)
}

// Unfence gives a source its charging state back. Its copy id must have been given up before.
func (s Side) Unfence(ctx context.Context, id string) error {
	return store.Retry(ctx, "switching the source on again", func() error {
		st, err := s.State(ctx)
		if err != nil || st.Moved == "" || st.MovedID != id {
			return err
		}
		set, remove := st.before()
		return s.Store.Commit(ctx, store.Update(s.table(), billing.MetaKey, set,
			append(remove, schema.Moved, movedID, movedCharging, movedReason, movedOutcome),
			is(movedID, id), is(movedOutcome, canceled)))
	})
}

// is holds while the attribute is the text.
func is(name, text string) store.Condition { return store.AttributeEquals(name, store.S(text)) }

// before returns the change of META to restore a fenced source.
func (st *State) before() (set store.Item, remove []string) {
	set = store.NewItem(store.Attribute{Name: schema.Charging, Value: st.item.Get(movedCharging)})
	if reason := st.item.Get(movedReason); !reason.IsZero() {
		set.Set(schema.Reason, reason)
		return set, nil
	}
	return set, []string{schema.Reason}
}

// StillCopying is the condition on META under which the copy id may write to its destination.
// It fails once the copy is live or has been given up.
func (s Side) StillCopying(id string) store.Write {
	return store.Check(s.table(), billing.MetaKey, stillCopying(id)...)
}

func stillCopying(id string) []store.Condition {
	return []store.Condition{is(copyID, id), is(copyState, copying)}
}

// Activate makes the destination the live store, with the charging state of the source before the
// fence, and commits the other writes. A copy live already or cancelled is a conflict.
func (s Side) Activate(ctx context.Context, source *State, others ...store.Write) error {
	if source.Moved == "" || !source.Final {
		return errors.New("the source is not permanently switched off")
	}
	set, remove := source.before()
	return s.Store.Commit(ctx, append(others, store.Update(s.table(), billing.MetaKey, set,
		append(remove, schema.Moved, copyState), stillCopying(source.MovedID)...))...)
}

// CancelCopy marks the destination of the copy id: it can never become live. It returns a conflict
// if the copy is live already or was cancelled before.
func (s Side) CancelCopy(ctx context.Context, id string, others ...store.Write) error {
	reason := "canceled copy"
	set := store.NewItem(
		store.Attribute{Name: schema.Reason, Value: store.S(reason)},
		store.Attribute{Name: schema.Moved, Value: store.S("this is a " + reason + ", of no use to anybody: drop it")},
		store.Attribute{Name: copyState, Value: store.S(canceled)})
	return s.Store.Commit(ctx, append(others, store.Update(s.table(), billing.MetaKey, set, nil, stillCopying(id)...))...)
}

// Stays reports whether an item of the recurring-payments table is not copied: META, which is
// written anew, leases, and the progress of a copy.
func Stays(k store.Key) bool {
	return k == billing.MetaKey || k.PK == CopyPK || k.PK == billing.LeasePK(billing.Payments) || k.PK == billing.LeasePK(billing.Reminders)
}

// StillFenced is the condition on META under which the copy id may mark subscriptions of its
// source, before the source is final or after. It fails once the copy has been given up.
func (s Side) StillFenced(id string, final bool) store.Write {
	outcome := store.AttributeAbsent(movedOutcome)
	if final {
		outcome = is(movedOutcome, finished)
	}
	return store.Check(s.table(), billing.MetaKey, is(movedID, id), outcome)
}

// StillLifting is the condition on META under which the marks of the copy id may be taken off its
// source: the copy has been given up. Without an id, the store must not have been moved.
func (s Side) StillLifting(id string) store.Write {
	if id == "" {
		return store.Check(s.table(), billing.MetaKey, store.AttributeAbsent(schema.Moved))
	}
	return store.Check(s.table(), billing.MetaKey, is(movedID, id), is(movedOutcome, canceled))
}

// Mark returns the write that fences one subscription of a shared source for the copy id, and the
// item as it then is. ok is false if the item is no subscription or is marked already. The write
// belongs into one commit with StillFenced.
//
// A worker that has read the item before the mark cannot bind an intent to it: the version is
// raised, or, for a legacy item, the mark was absent. A later reader gets ErrMoved. An item without
// a version gets none: with one it would no longer be read as a legacy item.
func (s Side) Mark(it store.Item, id string) (w store.Write, after store.Item, ok bool) {
	if _, is := billing.NameOf(billing.KeyOf(it)); !is || it.Str(schema.Moved) == id {
		return store.Write{}, it, false
	}
	set := billing.NextVersion(it)
	set.Set(schema.Moved, store.S(id))
	after = it.Clone()
	for _, a := range set {
		after.Set(a.Name, a.Value)
	}
	return store.Update(s.table(), billing.KeyOf(it), set, nil, billing.AsRead(it)...), after, true
}

// Unmark returns the write that takes off the mark of the copy id, or any mark without an id.
// ok is false for an item without it. The write belongs into one commit with StillLifting.
func (s Side) Unmark(it store.Item, id string) (w store.Write, ok bool) {
	mark := it.Str(schema.Moved)
	if _, is := billing.NameOf(billing.KeyOf(it)); !is || mark == "" || id != "" && mark != id {
		return store.Write{}, false
	}
	return store.Update(s.table(), billing.KeyOf(it), billing.NextVersion(it), []string{schema.Moved}, billing.AsRead(it)...), true
}

// Unmoved returns the source's item as the destination has it: unmarked, for its shards per date.
func Unmoved(it store.Item, shards int) store.Item {
	if _, is := billing.NameOf(billing.KeyOf(it)); !is {
		return it
	}
	it = it.Clone()
	it.Remove(schema.Moved)
	return billing.Reshard(it, shards)
}

// Marked reports whether the item has the mark of the copy id, or needs none.
func Marked(it store.Item, id string) bool {
	_, is := billing.NameOf(billing.KeyOf(it))
	return !is || it.Str(schema.Moved) == id
}

// LiveLeases returns the leased partitions, such as "payments 2023-06-28#07". It ignores a lease
// with more than an hour left: its writer's clock is ahead.
func (s Side) LiveLeases(ctx context.Context, now time.Time) (held []string, err error) {
	for _, kind := range [...]billing.Kind{billing.Payments, billing.Reminders} {
		for it, err := range s.Store.Query(ctx, store.Query{Table: s.table(), Partition: billing.LeasePK(kind)}) {
			if err != nil {
				return nil, err
			}
			if until := billing.ParseStamp(it.Str(schema.Until)); until.After(now) && until.Before(now.Add(time.Hour)) {
				held = append(held, string(kind)+" "+it.Str(schema.SK))
			}
		}
	}
	return held, nil
}
