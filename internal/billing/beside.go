package billing

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/store"
)

// A Beside returns writes that join the commit of a changed subscription or account, such as rows that
// find it. was is the stored item, or an empty one for a new item. now is the item after the commit, and
// others are the commit's other writes. A Beside runs for each change, also for those of a charge, so
// it must return quickly, without reading the store, if there is nothing to write.
type Beside func(ctx context.Context, was, now store.Item, others []store.Write) ([]store.Write, error)

// MaxBeside is the largest number of writes that all functions in Records.Beside, and a call's
// idempotency key, add to the commit of one changed item.
const MaxBeside = 8

// WithBeside returns the writes, of which the first puts the changed item (store.Rewrite) or a new one,
// and what goes with them.
func (e *Records) WithBeside(ctx context.Context, writes ...store.Write) ([]store.Write, error) {
	changed, others := writes[0], writes[1:]
	for _, beside := range e.Beside {
		more, err := beside(ctx, changed.Was, changed.Item, others)
		if err != nil {
			return nil, err
		}
		writes = append(writes, more...)
	}
	return writes, nil
}

// Commit commits WithBeside of the writes, and the row of the call's idempotency key. It returns
// call.ErrVersion if the call expects another version of the changed item. See call.Commit for its
// other errors.
func (e *Records) Commit(ctx context.Context, writes ...store.Write) error {
	if err := call.Check(ctx, writes[0].Was); err != nil {
		return err
	}
	changed := writes[0]
	writes, err := e.WithBeside(ctx, writes...)
	if err != nil {
		return err
	}
	err = call.Commit(ctx, e.Store, writes...)
	if errors.Is(err, store.ErrUnknown) && changed.Op == store.OpPut { // all or nothing: the item tells which
		if now, gerr := e.Store.Get(ctx, changed.Table, KeyOf(changed.Item)); gerr == nil && now.Equal(changed.Item) {
			err = nil
		}
	}
	return err
}
