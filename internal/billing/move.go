package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// What META says of moving, beside Moved. The source of a copy has the first three, its
// destination the others; all are gone, or history, when the destination is live.
const (
	movedID       = "MovedID"       // the copy that the source is fenced for
	movedCharging = "MovedCharging" // whether it charged before
	movedReason   = "MovedReason"   // why it did not
	movedOutcome  = "MovedOutcome"  // final or canceled; absent while both are possible
	copyID        = "CopyID"        // the copy that the destination was made by
	copyState     = "CopyState"     // copying or canceled; absent when it is live
	copiedFrom    = "CopiedFrom"
	RestoredDate  = "RestoredDate"
	RestoredFrom  = "RestoredFrom"

	copying  = "copying"
	canceled = "canceled"
	finished = "final"
)

// CopyPK is the partition, in the recurring-payments table of a destination, of the items
// that say how far a copy has come. They are gone when it is live.
const CopyPK = "COPY"

// A Side is a store that takes part in a move, with its tables.
type Side struct {
	Store  store.Store
	Tables schema.Tables
}

func (s Side) table() string { return s.Tables.RecurringPayments.Name }

// A MoveState is what a store's META says of moving, as it was read.
type MoveState struct {
	Meta
	MovedID  string // of a fenced source: its copy
	Final    bool   // of a fenced source: its copy is live, or may become so at any moment
	GivenUp  bool   // of a fenced source: its copy never becomes live, and it is about to be lifted
	CopyID   string // of a destination, live or not: its copy
	Copying  bool   // an unfinished copy
	Canceled bool   // one that has been given up, for good

	item store.Item
}

// MoveState reads META, or returns store.ErrNotFound.
func (s Side) MoveState(ctx context.Context) (*MoveState, error) {
	it, err := s.Store.Get(ctx, s.table(), MetaKey)
	if err != nil {
		return nil, err
	}
	if f := it.Int(schema.Format); f > FormatVersion {
		return nil, fmt.Errorf("%w: this store has format %d, this Duesday knows up to %d: use a newer one", store.ErrFormat, f, FormatVersion)
	}
	return &MoveState{
		Meta: Meta{Installation: it.Str(schema.Installation), Charging: it.Get(schema.Charging).Bool(), Reason: it.Str(schema.Reason),
			Created: ParseStamp(it.Str(schema.CreatedDate)), Shards: max(1, int(it.Int(schema.Shards))), Moved: it.Str(schema.Moved), Processor: it.Str(schema.Processor)},
		MovedID: it.Str(movedID), Final: it.Str(movedOutcome) == finished, GivenUp: it.Str(movedOutcome) == canceled,
		CopyID: it.Str(copyID), Copying: it.Str(copyState) == copying, Canceled: it.Str(copyState) == canceled, item: it,
	}, nil
}

// Claim makes an empty store the destination of the copy id: it has the source's META, but
// is open to nobody before Activate. The other writes are in the same commit. A store that
// has a META already is a conflict.
func (s Side) Claim(ctx context.Context, source *MoveState, id, from string, shards int, others ...store.Write) error {
	it := source.item.Clone()
	for _, name := range [...]string{schema.Reason, movedID, movedCharging, movedReason, movedOutcome} {
		it.Remove(name)
	}
	reason := "unfinished copy of " + from
	it.Set(schema.Shards, store.Int(int64(shards)))
	it.Set(schema.Charging, store.Bool(false))
	it.Set(schema.Reason, store.S(reason))
	it.Set(schema.Moved, store.S("this is an "+reason+"; nobody charges before the same duesday store copy has finished it, or given it up with --cancel"))
	it.Set(copyID, store.S(id))
	it.Set(copyState, store.S(copying))
	it.Set(copiedFrom, store.S(from))
	return s.Store.Commit(ctx, append(others, store.Put(s.table(), it, store.Absent()))...)
}

// Fence switches the source off for good, in favour of the copy id, and remembers whether
// it charged. It does nothing when the source is fenced for that copy already.
func (s Side) Fence(ctx context.Context, id, to string) error {
	for range store.MaxTries {
		st, err := s.MoveState(ctx)
		if err != nil {
			return err
		}
		if st.Moved != "" {
			if st.MovedID == id {
				return nil
			}
			return fmt.Errorf("this store was %w: %s", ErrMoved, st.Moved)
		}
		set := store.NewItem(
			store.Attribute{Name: schema.Moved, Value: store.S(to)},
			store.Attribute{Name: schema.Charging, Value: store.Bool(false)},
			store.Attribute{Name: schema.Reason, Value: store.S("moved to " + to)},
			store.Attribute{Name: movedID, Value: store.S(id)},
			store.Attribute{Name: movedCharging, Value: store.Bool(st.Charging)},
			store.Attribute{Name: movedReason, Value: st.item.Get(schema.Reason)})
		was := store.AttributeAbsent(schema.Reason)
		if st.Reason != "" {
			was = store.AttributeEquals(schema.Reason, store.S(st.Reason))
		}
		err = s.Store.Commit(ctx, store.Update(s.table(), MetaKey, set, nil, was, store.AttributeAbsent(schema.Moved),
			store.AttributeEquals(schema.Charging, store.Bool(st.Charging))))
		if !store.Retryable(err) {
			return err
		}
	}
	return fmt.Errorf("switching the source off: overtaken by others %d times", store.MaxTries)
}

// Finish decides at the source that the copy id becomes the live store: Activate may follow,
// GiveUp cannot any more. It is the source that decides, because the destination may be lost.
// A conflict says that the copy has been given up.
func (s Side) Finish(ctx context.Context, id string) error {
	return s.decide(ctx, id, finished, store.AttributeAbsent(movedOutcome))
}

// GiveUp decides at the source that the copy id never becomes live: Unfence may follow. A
// conflict says that it is live, or may become so. That cannot be when its destination has
// been canceled, durably: then the source follows in any case.
func (s Side) GiveUp(ctx context.Context, id string, destinationCanceled bool) error {
	if destinationCanceled {
		return s.decide(ctx, id, canceled)
	}
	return s.decide(ctx, id, canceled, store.AttributeAbsent(movedOutcome))
}

func (s Side) decide(ctx context.Context, id, outcome string, undecided ...store.Condition) error {
	for range store.MaxTries {
		st, err := s.MoveState(ctx)
		if err != nil {
			return err
		}
		if st.MovedID == id && st.item.Str(movedOutcome) == outcome {
			return nil
		}
		set := store.NewItem(store.Attribute{Name: movedOutcome, Value: store.S(outcome)})
		err = s.Store.Commit(ctx, store.Update(s.table(), MetaKey, set, nil,
			append(undecided, store.AttributeEquals(movedID, store.S(id)))...))
		if !errors.Is(err, store.ErrUnknown) {
			return err
		}
	}
	return fmt.Errorf("deciding on a copy: overtaken by others %d times", store.MaxTries)
}

// Unfence gives a source that is fenced for the copy id its charging state back. The copy
// must have been given up before.
func (s Side) Unfence(ctx context.Context, id string) error {
	for range store.MaxTries {
		st, err := s.MoveState(ctx)
		if err != nil || st.Moved == "" || st.MovedID != id {
			return err
		}
		set, remove := st.before()
		err = s.Store.Commit(ctx, store.Update(s.table(), MetaKey, set, append(remove, schema.Moved, movedID, movedCharging, movedReason, movedOutcome),
			store.AttributeEquals(movedID, store.S(id)), store.AttributeEquals(movedOutcome, store.S(canceled))))
		if !store.Retryable(err) {
			return err
		}
	}
	return fmt.Errorf("switching the source on again: overtaken by others %d times", store.MaxTries)
}

// before returns the change of META that brings back what a fenced source was before.
func (st *MoveState) before() (set store.Item, remove []string) {
	set = store.NewItem(store.Attribute{Name: schema.Charging, Value: st.item.Get(movedCharging)})
	if reason := st.item.Get(movedReason); !reason.IsZero() {
		set.Set(schema.Reason, reason)
		return set, nil
	}
	return set, []string{schema.Reason}
}

// StillCopying is the condition on META under which the copy id may write to its
// destination: a copier that wakes after the copy has become live, or was given up, writes
// nothing.
func (s Side) StillCopying(id string) store.Write {
	return store.Check(s.table(), MetaKey, stillCopying(id)...)
}

func stillCopying(id string) []store.Condition {
	return []store.Condition{store.AttributeEquals(copyID, store.S(id)), store.AttributeEquals(copyState, store.S(copying))}
}

// Activate makes the destination the live store, with the charging state that the fenced
// source had; the other writes are in the same commit. It is a conflict when the copy has
// become live already, or was canceled.
func (s Side) Activate(ctx context.Context, source *MoveState, others ...store.Write) error {
	if source.Moved == "" || !source.Final {
		return errors.New("the source is not switched off for good")
	}
	set, remove := source.before()
	return s.Store.Commit(ctx, append(others, store.Update(s.table(), MetaKey, set,
		append(remove, schema.Moved, copyState), stillCopying(source.MovedID)...))...)
}

// CancelCopy marks the destination of the copy id so that it can never become live. It is a
// conflict when it is already, or was canceled before.
func (s Side) CancelCopy(ctx context.Context, id string, others ...store.Write) error {
	reason := "canceled copy"
	set := store.NewItem(
		store.Attribute{Name: schema.Reason, Value: store.S(reason)},
		store.Attribute{Name: schema.Moved, Value: store.S("this is a " + reason + ", of no use to anybody: drop it")},
		store.Attribute{Name: copyState, Value: store.S(canceled)})
	return s.Store.Commit(ctx, append(others, store.Update(s.table(), MetaKey, set, nil, stillCopying(id)...))...)
}

// Stays reports whether an item of the recurring-payments table is not copied: what the
// store says of itself is written anew, and who holds a lease, or how far a copy has come,
// is nothing to the destination.
func Stays(k store.Key) bool {
	return k == MetaKey || k.PK == CopyPK || k.PK == LeasePK(Payments) || k.PK == LeasePK(Reminders)
}

// StillFenced is the condition on META under which the copy id may mark subscriptions of its
// source, before the source is final or after it: a copier that wakes after the copy has been
// given up, and the marks have been taken off, sets no new ones.
func (s Side) StillFenced(id string, final bool) store.Write {
	outcome := store.AttributeAbsent(movedOutcome)
	if final {
		outcome = store.AttributeEquals(movedOutcome, store.S(finished))
	}
	return store.Check(s.table(), MetaKey, store.AttributeEquals(movedID, store.S(id)), outcome)
}

// StillLifting is the condition on META under which the marks of the copy id may be taken off
// its source: the copy has been given up. With no id it is that the store is not moved at all,
// and any mark in it is one that was left.
func (s Side) StillLifting(id string) store.Write {
	if id == "" {
		return store.Check(s.table(), MetaKey, store.AttributeAbsent(schema.Moved))
	}
	return store.Check(s.table(), MetaKey, store.AttributeEquals(movedID, store.S(id)), store.AttributeEquals(movedOutcome, store.S(canceled)))
}

// Mark returns the write that fences one subscription of a shared source for the copy id,
// and the item as it stands afterwards; ok is false for an item that is no subscription or
// is marked already. It belongs into one commit with StillFenced. A worker that read the item
// before cannot bind an intent to it any more: its version is raised, or, where Duesday has
// never written it, there was no mark. One that reads it later is told that it has moved. An
// item without a version gets none: Duesday would take it for its own.
func (s Side) Mark(it store.Item, id string) (w store.Write, after store.Item, ok bool) {
	if _, is := NameOf(KeyOf(it)); !is || it.Str(schema.Moved) == id {
		return store.Write{}, it, false
	}
	set := append(nextVersion(it), store.Attribute{Name: schema.Moved, Value: store.S(id)})
	after = it.Clone()
	for _, a := range set {
		after.Set(a.Name, a.Value)
	}
	return store.Update(s.table(), KeyOf(it), store.NewItem(set...), nil, asRead(it)...), after, true
}

// Unmark returns the write that takes the mark of the copy id off again, or with no id any
// mark; ok is false for an item without it. It belongs into one commit with StillLifting.
func (s Side) Unmark(it store.Item, id string) (w store.Write, ok bool) {
	mark := it.Str(schema.Moved)
	if _, is := NameOf(KeyOf(it)); !is || mark == "" || id != "" && mark != id {
		return store.Write{}, false
	}
	return store.Update(s.table(), KeyOf(it), store.NewItem(nextVersion(it)...), []string{schema.Moved}, asRead(it)...), true
}

// nextVersion returns the attribute that raises the item's version, or nothing if it has none.
func nextVersion(it store.Item) []store.Attribute {
	v, ours := it.Get(schema.Version).Int64()
	if !ours {
		return nil
	}
	return []store.Attribute{{Name: schema.Version, Value: store.Int(v + 1)}}
}

// Unmoved returns an item of the source as the destination is to have it: without its mark,
// and for so many shards per date.
func Unmoved(it store.Item, shards int) store.Item {
	if _, is := NameOf(KeyOf(it)); !is {
		return it
	}
	it = it.Clone()
	it.Remove(schema.Moved)
	return Reshard(it, shards)
}

// Marked reports whether the item needs no mark of the copy id, or has it.
func Marked(it store.Item, id string) bool {
	_, is := NameOf(KeyOf(it))
	return !is || it.Str(schema.Moved) == id
}

// LiveLeases returns the partitions that workers on the store say they are working on, such
// as "payments 2023-06-28#07". One that claims to last for longer than an hour was written
// by a clock that is ahead, and is not believed.
func (s Side) LiveLeases(ctx context.Context, now time.Time) (held []string, err error) {
	for _, kind := range [...]Kind{Payments, Reminders} {
		for it, err := range s.Store.Query(ctx, store.Query{Table: s.table(), Partition: LeasePK(kind)}) {
			if err != nil {
				return nil, err
			}
			if until := ParseStamp(it.Str(schema.Until)); until.After(now) && until.Before(now.Add(time.Hour)) {
				held = append(held, string(kind)+" "+it.Str(schema.SK))
			}
		}
	}
	return held, nil
}
