package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// These attributes are in META during a move, besides Moved. The source of a copy has the Moved…
// attributes, and the destination has the Copy… and CopiedFrom attributes. Once the destination is
// live, they are deleted or only serve as history.
const (
	movedID       = "MovedID"       // copy for which the source is fenced
	movedCharging = "MovedCharging" // whether charging was on at the source before the fence
	movedReason   = "MovedReason"   // why charging was off
	movedOutcome  = "MovedOutcome"  // final or canceled; absent while both are possible
	copyID        = "CopyID"        // copy that created the destination
	copyState     = "CopyState"     // copying or canceled; absent once the destination is live
	copiedFrom    = "CopiedFrom"

	copying  = "copying"
	canceled = "canceled"
	finished = "final"
)

// CopyPK is the partition that contains the copy's progress in the destination's recurring-payments
// table. The copy has deleted its items by the time the destination is live.
const CopyPK = "COPY"

// A Side is a store that takes part in a move, with its tables.
type Side struct {
	Store  store.Store
	Tables schema.Tables
}

func (s Side) table() string { return s.Tables.RecurringPayments.Name }

// A State is a store's META item during a move, as it was read.
type State struct {
	billing.Meta
	MovedID  string // copy for which the source is fenced
	Final    bool   // the copy of this fenced source is live or may become live at any moment
	GivenUp  bool   // the copy of this fenced source never becomes live; Unfence follows
	CopyID   string // copy that created this destination, whether it is live or not
	Copying  bool   // the copy is unfinished
	Canceled bool   // the copy was permanently given up

	item store.Item
}

// State returns the state from META, or store.ErrNotFound if there is no META.
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

// Claim makes an empty store the destination of the copy id. It writes the source's META to the
// store, in one commit with the other writes. No one can open the store before Activate. Claim
// returns a conflict if the store already has a META item.
func (s Side) Claim(ctx context.Context, source *State, id, from string, shards int, others ...store.Write) error {
	it := source.item.Clone()
	for _, name := range [...]string{schema.Reason, movedID, movedCharging, movedReason, movedOutcome, schema.LookupFill} {
		it.Remove(name)
	}
	if shards != source.Shards { // its lookup rows have other keys
		it.Remove(schema.LookupDate)
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

// Fence permanently switches the source off in favor of the copy id, and stores whether charging
// was on. It does nothing if the source is already fenced for the copy.
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

// SetFormat sets this program's format in a source that is fenced for the copy id. program is the
// program's version.
func (s Side) SetFormat(ctx context.Context, id, program string) error {
	set := store.NewItem(store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)},
		store.Attribute{Name: schema.Program, Value: store.S(program)})
	return s.Store.Commit(ctx, store.Update(s.table(), billing.MetaKey, set, nil, is(movedID, id)))
}

// Finish decides that the copy id becomes the live store. It records the decision in the source,
// because the destination may be lost. After Finish, Activate may follow and GiveUp fails. Finish
// returns a conflict if the copy was given up before.
func (s Side) Finish(ctx context.Context, id string) error {
	return s.decide(ctx, id, finished, store.AttributeAbsent(movedOutcome))
}

// GiveUp decides that the copy id never becomes live, and records the decision in the source. After
// GiveUp, Unfence may follow. GiveUp returns a conflict if the copy is live or may become live. A
// copy whose destination was durably cancelled cannot become live, so GiveUp then overrides Finish.
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

// Unfence restores the source's charging state. The copy id must have been given up before.
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

// is returns the condition that the attribute equals the text.
func is(name, text string) store.Condition { return store.AttributeEquals(name, store.S(text)) }

// before returns the change of META that restores a fenced source.
func (st *State) before() (set store.Item, remove []string) {
	set = store.NewItem(store.Attribute{Name: schema.Charging, Value: st.item.Get(movedCharging)})
	if reason := st.item.Get(movedReason); !reason.IsZero() {
		set.Set(schema.Reason, reason)
		return set, nil
	}
	return set, []string{schema.Reason}
}

// StillCopying returns the condition on META that lets the copy id write to its destination. The
// condition fails once the copy is live or has been given up.
func (s Side) StillCopying(id string) store.Write {
	return store.Check(s.table(), billing.MetaKey, stillCopying(id)...)
}

func stillCopying(id string) []store.Condition {
	return []store.Condition{is(copyID, id), is(copyState, copying)}
}

// Activate makes the destination the live store, with the charging state that the source had before
// the fence. It commits the other writes, too. It returns a conflict if the copy is already live or
// was cancelled.
func (s Side) Activate(ctx context.Context, source *State, others ...store.Write) error {
	if source.Moved == "" || !source.Final {
		return errors.New("the source is not permanently switched off")
	}
	set, remove := source.before()
	return s.Store.Commit(ctx, append(others, store.Update(s.table(), billing.MetaKey, set,
		append(remove, schema.Moved, copyState), stillCopying(source.MovedID)...))...)
}

// CancelCopy marks the destination of the copy id as canceled, so that it can never become live. It
// commits the other writes, too. It returns a conflict if the copy is already live or was cancelled
// before.
func (s Side) CancelCopy(ctx context.Context, id string, others ...store.Write) error {
	reason := "canceled copy"
	set := store.NewItem(
		store.Attribute{Name: schema.Reason, Value: store.S(reason)},
		store.Attribute{Name: schema.Moved, Value: store.S("this is a " + reason + ", of no use to anybody: drop it")},
		store.Attribute{Name: copyState, Value: store.S(canceled)})
	return s.Store.Commit(ctx, append(others, store.Update(s.table(), billing.MetaKey, set, nil, stillCopying(id)...))...)
}

// Stays reports whether a copy leaves out an item of the recurring-payments table. A copy leaves
// out META, which it writes again, the leases, and its own progress.
func Stays(k store.Key) bool {
	return k == billing.MetaKey || k.PK == CopyPK || strings.HasPrefix(k.PK, billing.LeasePK(""))
}

// StillFenced returns the condition on META that lets the copy id mark subscriptions in its source.
// final reports whether the source is already final. The condition fails once the copy has been
// given up.
func (s Side) StillFenced(id string, final bool) store.Write {
	outcome := store.AttributeAbsent(movedOutcome)
	if final {
		outcome = is(movedOutcome, finished)
	}
	return store.Check(s.table(), billing.MetaKey, is(movedID, id), outcome)
}

// StillLifting returns the condition on META that lets a caller remove the marks of the copy id
// from its source. The condition requires that the copy has been given up. If id is empty, the
// condition requires that the store has not moved.
func (s Side) StillLifting(id string) store.Write {
	if id == "" {
		return store.Check(s.table(), billing.MetaKey, store.AttributeAbsent(schema.Moved))
	}
	return store.Check(s.table(), billing.MetaKey, is(movedID, id), is(movedOutcome, canceled))
}

// Mark returns the write that fences one subscription of a shared source for the copy id, and the
// item after the write. ok is false if the item is not a subscription or is already marked. The
// caller must commit the write together with StillFenced.
//
// A worker that read the item before the mark cannot bind an intent to it, because the mark
// increases the version or, in a legacy item, adds an attribute that was absent. A worker that
// reads the item later gets ErrMoved. Mark does not add a version to an item without one, because
// readers would then no longer treat it as a legacy item.
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

// Unmark returns the write that removes the mark of the copy id, or any mark if id is empty. ok is
// false if the item does not have such a mark. The caller must commit the write together with
// StillLifting.
func (s Side) Unmark(it store.Item, id string) (w store.Write, ok bool) {
	mark := it.Str(schema.Moved)
	if _, is := billing.NameOf(billing.KeyOf(it)); !is || mark == "" || id != "" && mark != id {
		return store.Write{}, false
	}
	return store.Update(s.table(), billing.KeyOf(it), billing.NextVersion(it), []string{schema.Moved}, billing.AsRead(it)...), true
}

// Unmoved returns the source's item in the form that the destination stores. It removes the mark
// and sets the destination's shards per date.
func Unmoved(it store.Item, shards int) store.Item {
	if _, is := billing.NameOf(billing.KeyOf(it)); !is {
		return it
	}
	it = it.Clone()
	it.Remove(schema.Moved)
	return billing.Reshard(it, shards)
}

// Marked reports whether the item has the mark of the copy id or needs no mark.
func Marked(it store.Item, id string) bool {
	_, is := billing.NameOf(billing.KeyOf(it))
	return !is || it.Str(schema.Moved) == id
}

// LiveLeases returns the leased partitions, such as "payments 2023-06-28#07". It ignores a lease
// that ends more than an hour from now, because the lease holder's clock is ahead.
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
