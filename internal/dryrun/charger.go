package dryrun

import (
	"context"
	"iter"
	"sync"

	"github.com/duesday/duesday/internal/processor"
)

// A charger answers as if each payment, cancellation and refund succeeded. It asks the processor for intents
// that it has not made, and for nothing else.
type charger struct {
	processor.Charger

	mu   sync.Mutex
	made map[string]processor.Intent
}

// Charger returns a charger over p, which is not asked to change anything.
func Charger(p processor.Charger) processor.Charger {
	return &charger{Charger: p, made: map[string]processor.Intent{}}
}

// Open returns a new intent.
func (c *charger) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	if err := processor.PassGate(ctx); err != nil {
		return processor.Intent{}, err
	}
	return c.keep(processor.Intent{Ref: "dry_run_" + r.Key, State: processor.Opened, Tag: r.Tag, Amount: r.Amount}), nil
}

// Confirm returns the intent as if the charge had succeeded.
func (c *charger) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	err := processor.PassGate(ctx)
	in := processor.Intent{}
	if err == nil {
		in, err = c.Lookup(ctx, r.Ref)
	}
	if err != nil || in.State == processor.Canceled {
		return in, err
	}
	in.State, in.Latest = processor.Succeeded, "dry_run_"+r.Key
	return c.keep(in), nil
}

// Lookup returns the intent as this charger has changed it, or as the processor has it.
func (c *charger) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	c.mu.Lock()
	in, made := c.made[ref]
	c.mu.Unlock()
	if made || c.Charger == nil {
		return in, nil
	}
	return c.Charger.Lookup(ctx, ref)
}

// Cancel returns the intent as if it had been canceled, unless it has succeeded.
func (c *charger) Cancel(ctx context.Context, ref string) (processor.Intent, error) {
	in, err := c.Lookup(ctx, ref)
	if err != nil || in.State == processor.Succeeded {
		return in, err
	}
	in.State = processor.Canceled
	return c.keep(in), nil
}

func (c *charger) keep(in processor.Intent) processor.Intent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[in.Ref] = in
	return in
}

// Refund returns a refund that the customer has received.
func (c *charger) Refund(ctx context.Context, r processor.RefundRequest) (processor.Reversal, error) {
	if err := processor.PassGate(ctx); err != nil {
		return processor.Reversal{}, err
	}
	return processor.Reversal{Kind: processor.Refunded, ID: "dry_run_" + r.ID, Request: r.ID, Ref: r.Ref, Tag: r.Tag, Amount: r.Amount,
		State: processor.ReversalSucceeded}, nil
}

// ReversalsOf asks the processor.
func (c *charger) ReversalsOf(ctx context.Context, ref string) ([]processor.Reversal, error) {
	if p, ok := c.Charger.(processor.Refunder); ok {
		return p.ReversalsOf(ctx, ref)
	}
	return nil, nil
}

// Reversals asks the processor.
func (c *charger) Reversals(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	if p, ok := c.Charger.(processor.Refunder); ok {
		return p.Reversals(ctx, r)
	}
	return func(func(processor.Reversal, error) bool) {}
}
