package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// ErrOtherProcessor: the processor is not the one that the store was charged with: another
// account, or the same one in the other mode.
var ErrOtherProcessor = errors.New("this store belongs to another processor")

// pin notes whose money the store's processor moves when it is used first, and refuses every
// other one from then on: a test key would pay periods with nothing, a live one would charge
// a copy made for testing. A processor without an identity may be used until one has been noted;
// once a run was made with it, none is.
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
	for range store.MaxTries {
		switch {
		case e.Opened.Processor == identity, e.Opened.Processor == "" && readOnly:
			return nil
		case e.Opened.Processor != "":
			return fmt.Errorf("%w: it is charged through %s, and this is %s", ErrOtherProcessor, e.Opened.Processor, orSandbox(identity))
		}
		ran, err := billing.AnyItem(e.Store.Query(ctx, store.Query{Table: e.Table, Partition: billing.RunPK(billing.Payments), To: "9999-12-31~", Limit: 1}))
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
		if e.Opened, err = e.Meta(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("noting the processor in the store: overtaken by others %d times", store.MaxTries)
}

func orSandbox(identity string) string {
	if identity == "" {
		return "a sandbox"
	}
	return identity
}
