package refund

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Collect records the refunds and disputes that anybody has made at the processor at or after
// since, and the changes of those that are recorded. It carries on the orders that were cut off. It
// returns the number of records that it made or changed. A reversal of no subscription of this
// store is left alone. If a connected account refuses, the others are still collected and the error
// names it.
//
// While nothing is new, it only reads the records of each account in the list, once.
func (s *Service) Collect(ctx context.Context, since time.Time) (changed int, err error) {
	proc, ok := s.proc.(processor.Refunder)
	if !ok {
		return 0, nil
	}
	places, err := s.Places(ctx)
	if err != nil {
		return 0, err
	}
	c := &collector{Service: s, records: map[string][]*billing.ReversalRecord{}}
	answers := processor.AskEach(places, func(at string) ([]processor.Reversal, error) {
		return processor.AskAll(ctx, proc.Reversals, processor.ListRequest{At: at, Since: since})
	})
	var failed []error
	for i, at := range places {
		err := answers[i].Err
		if err != nil {
			err = fmt.Errorf("listing the processor's refunds and disputes: %w", err)
		}
		for _, shown := range answers[i].Value {
			if err != nil && !passing(ctx, err) {
				break
			}
			err = errors.Join(err, c.collect(ctx, shown))
		}
		if err != nil && at != "" {
			err = fmt.Errorf("connected account %s: %w", at, err)
		}
		if err != nil && !passing(ctx, err) {
			return c.changed, err
		}
		failed = append(failed, err)
	}
	failed = append(failed, c.carryOnAll(ctx))
	if c.others > 0 {
		s.Log.Debug("skipped refunds and disputes that belong to no subscription in this store", "count", c.others)
	}
	return c.changed, errors.Join(failed...)
}

// passing reports whether the next request may succeed after this error.
func passing(ctx context.Context, err error) bool {
	if _, unreadable := errors.AsType[*billing.IllegibleError](err); unreadable {
		return true
	}
	return ctx.Err() == nil && (errors.Is(err, processor.ErrUnknown) || errors.Is(err, processor.ErrNotExecuted) ||
		errors.Is(err, processor.ErrAccountRefused) ||
		errors.Is(err, processor.ErrInvalid) || errors.Is(err, processor.ErrNoIntent))
}

// A collector is one pass of Collect.
type collector struct {
	*Service
	records map[string][]*billing.ReversalRecord // by account, as read in this pass
	changed int
	others  int // reversals of no subscription of this store
}

// collect records one reversal of the list, if it is of a subscription of this store.
func (c *collector) collect(ctx context.Context, shown processor.Reversal) error {
	n := billing.TaggedName(shown.Tag)
	if shown.Tag.Installation != c.Opened.Installation || n.Account == "" {
		c.others++
		return nil
	}
	list, read := c.records[n.Account]
	if !read {
		var err error
		if list, err = c.ReversalsOf(ctx, n.Account); err != nil {
			return err
		}
		c.records[n.Account] = list
	}
	was, becomes := billing.Reconcile(list, n, shown, c.Now())
	if becomes == nil {
		return nil
	}
	if was == nil {
		sub, err := c.Subscription(ctx, n)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, billing.ErrMoved) {
			c.others++
			return nil
		}
		if err != nil {
			return err
		}
		n = sub.Name
	}
	delete(c.records, n.Account)
	now, err := c.read(ctx, n.Account)
	if err != nil {
		return err
	}
	changed, err := c.record(ctx, n, &now, shown)
	if changed {
		c.changed++
	}
	return err
}

// carryOnAll carries on every refund among the unfinished.
func (c *collector) carryOnAll(ctx context.Context) error {
	var names []store.Key
	for it, err := range c.Store.Query(ctx, store.Query{Table: c.Table, Partition: billing.UnfinishedPK}) {
		if err != nil {
			return err
		}
		account, sk, _ := strings.Cut(billing.KeyOf(it).SK, "#")
		names = append(names, store.Key{PK: billing.AccountPK(account), SK: sk})
	}
	var failed []error
	for _, key := range names {
		err := c.carryOnRecord(ctx, key)
		if err != nil && !passing(ctx, err) {
			return errors.Join(append(failed, err)...)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// carryOnRecord carries on one refund, if its record still waits for an answer.
func (c *collector) carryOnRecord(ctx context.Context, key store.Key) error {
	it, err := c.Store.Get(ctx, c.Table, key)
	if err != nil {
		return billing.IgnoreNotFound(err)
	}
	r, err := billing.DecodeReversal(it)
	if err != nil {
		return err
	}
	if standingOf(r) != requested {
		return nil
	}
	t := &task{trigger: byJob, Name: r.Name, id: r.ReversalID, charge: r.Charge,
		now: recorded{reversals: []*billing.ReversalRecord{r}}}
	if r, err = c.carryOn(ctx, t); err == nil && r != nil {
		c.changed++
	}
	return err
}
