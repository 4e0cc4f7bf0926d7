package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A once commits a person's request at most once, even if a store reply is lost.
type once struct {
	*Engine
	version int64         // subscription version before the lost commits
	lost    []store.Write // writes of commits without a reply
	keyed   bool          // the lost commits have the row of the call's key
}

// put calls Put, and keeps the writes if the reply is lost. A delayed commit may still succeed
// later. If another process has stored the call's key, put returns a conflict, so that the caller
// finds that request.
func (o *once) put(ctx context.Context, s *billing.Subscription, others ...write) error {
	version := s.Version
	if c := call.Of(ctx); c != nil && c.Key != "" && !c.Stored() {
		o.keyed = true
	}
	err := o.Engine.put(ctx, s, others...)
	if errors.Is(err, store.ErrUnknown) {
		o.version = version
		o.lost = append(o.lost, store.Put(o.Table, s.Item()))
		for _, w := range others {
			o.lost = append(o.lost, w.Write)
		}
	}
	return orConflict(err)
}

// orConflict returns a conflict for a call.RepeatedError, so that the caller finds the earlier request.
func orConflict(err error) error {
	if errors.As(err, new(*call.RepeatedError)) {
		return store.ErrConflict
	}
	return err
}

// landed reports whether a commit without a reply succeeded. A stored item of the commit proves
// that it did. If none of the items is stored and the subscription has changed, the result cannot
// be known, and landed returns ErrOvertaken.
func (o *once) landed(ctx context.Context, now *billing.Subscription) (bool, error) {
	if o.keyed && call.Of(ctx).Stored() {
		return true, nil
	}
	if len(o.lost) == 0 || now.Version == o.version {
		return false, nil
	}
	for _, w := range o.lost {
		if w.Op != store.OpPut || w.Item.Str(schema.PK) != now.Raw.Str(schema.PK) {
			continue
		}
		key := store.Key{PK: w.Item.Str(schema.PK), SK: w.Item.Str(schema.SK)}
		it, err := o.Store.Get(ctx, w.Table, key)
		if billing.IgnoreNotFound(err) != nil {
			return false, err
		}
		if it.Equal(w.Item) {
			return true, nil
		}
	}
	return false, fmt.Errorf("subscription %s: the store's reply was lost, and the subscription has changed "+
		"since; check it before you repeat the request: %w", now.Name, store.ErrOvertaken)
}

// passed returns the error for a request about a period that has ended in the meantime.
func passed(s *billing.Subscription, period int) error {
	return refusal(s, ": period %d has ended in the meantime, and period %d was not changed", period, s.Period)
}
