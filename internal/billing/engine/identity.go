package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

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
