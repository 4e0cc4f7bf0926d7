package refund

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
)

// CollectReversals records the refunds and disputes that were made at the processor since
// then, whoever made them, and how those that are recorded have gone on; and it finishes the
// refunds that were asked for here and cut off. It returns how many records were made or
// changed. What belongs to no subscription of this store is left alone. A connected account
// that is refused does not stop the others; the error names it.
//
// It reads the records of each account once that has something in the list, and nothing else
// while nothing is new.
func (e *Service) Collect(ctx context.Context, since time.Time) (recorded int, err error) {
	proc, ok := e.proc.(billing.Refunder)
	if !ok {
		return 0, nil
	}
	places, err := e.Places(ctx)
	if err != nil {
		return 0, err
	}
	c := &collector{e: e, records: map[string][]*billing.ReversalRecord{}}
	found, errs := make([][]billing.Reversal, len(places)), make([]error, len(places))
	billing.AskEach(places, func(i int, at string) error {
		found[i], errs[i] = e.reversalsAt(ctx, proc, billing.ListRequest{At: at, Since: since})
		return errs[i]
	})
	var failed []error
	for i, at := range places {
		err := errs[i]
		for _, seen := range found[i] {
			if err != nil && !mayPass(ctx, err) {
				break
			}
			err = errors.Join(err, c.take(ctx, seen))
		}
		if err != nil && at != "" {
			err = fmt.Errorf("connected account %s: %w", at, err)
		}
		if err != nil && !mayPass(ctx, err) {
			return c.recorded, err
		}
		failed = append(failed, err)
	}
	failed = append(failed, c.finishAll(ctx))
	if c.others > 0 {
		e.Log.Debug("refunds and disputes of no subscription in this store", "count", c.others)
	}
	return c.recorded, errors.Join(failed...)
}

// mayPass reports whether the error is one of the processor's that may befall one request
// and not the next.
func mayPass(ctx context.Context, err error) bool {
	if _, bad := errors.AsType[*billing.IllegibleError](err); bad {
		return true
	}
	return ctx.Err() == nil && (errors.Is(err, billing.ErrUnknown) || errors.Is(err, billing.ErrNotExecuted) || errors.Is(err, billing.ErrAccountRefused) ||
		errors.Is(err, billing.ErrInvalid) || errors.Is(err, billing.ErrNoIntent))
}

// A collector is one pass of CollectReversals.
type collector struct {
	e        *Service
	records  map[string][]*billing.ReversalRecord // by account, as they were read in this pass
	recorded int
	others   int
}

// returnsAt lists one place. A listing that breaks off is begun anew.
func (e *Service) reversalsAt(ctx context.Context, proc billing.Refunder, r billing.ListRequest) (all []billing.Reversal, err error) {
	for range billing.MaxSends {
		all, err = all[:0], nil
		for seen, lerr := range proc.Reversals(ctx, r) {
			if lerr != nil {
				err = fmt.Errorf("listing the processor's refunds and disputes: %w", lerr)
				break
			}
			all = append(all, seen)
		}
		if err == nil || billing.Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return all, err
}

func (c *collector) take(ctx context.Context, seen billing.Reversal) (err error) {
	account := seen.Tag.Account
	if seen.Tag.Installation != c.e.Opened.Installation || account == "" {
		c.others++
		return nil
	}
	list, read := c.records[account]
	if !read {
		if list, err = c.e.ReversalsOf(ctx, account); err != nil {
			return err
		}
		c.records[account] = list
	}
	n := billing.Name{Account: account, ID: seen.Tag.Subscription, SKU: seen.Tag.SKU}
	if r := billing.FindReversal(list, seen); r != nil {
		if same := *r; !same.Apply(seen, c.e.Now()) {
			return nil
		}
	} else if s, err := c.e.Subscription(ctx, n); errors.Is(err, store.ErrNotFound) || errors.Is(err, billing.ErrMoved) {
		c.others++
		return nil
	} else if err != nil {
		return err
	} else {
		n = s.Name
	}
	delete(c.records, account)
	changed, _, _, err := c.e.applyReversals(ctx, n, seen)
	c.recorded += changed
	return err
}

// takeReturns brings the records of a subscription's account to what the processor shows,
// and returns how many it made or changed, the records as they stand, and the account as it
// stood before they were read, nil when it has no item.
func (e *Service) applyReversals(ctx context.Context, n billing.Name, all ...billing.Reversal) (changed int, list []*billing.ReversalRecord, a *billing.Account, err error) {
	for range store.MaxTries {
		// The account first: whatever is recorded after that makes it another version.
		if a, err = e.Account(ctx, n.Account); errors.Is(err, store.ErrNotFound) {
			a, err = nil, nil
		}
		if err == nil {
			list, err = e.ReversalsOf(ctx, n.Account)
		}
		if err != nil {
			return changed, nil, nil, err
		}
		next := func() bool {
			for _, seen := range all {
				var did bool
				if did, err = e.applyReversal(ctx, n, seen, list, a); did {
					changed++
				}
				if did || err != nil {
					return true
				}
			}
			return false
		}
		if !next() {
			return changed, list, a, nil
		}
		if err != nil && !store.Retryable(err) {
			return changed, nil, nil, err
		}
	}
	return changed, nil, nil, fmt.Errorf("account %s: overtaken by others %d times", n.Account, store.MaxTries)
}

// takeReturn makes or changes the one record of what the processor shows, or returns false
// when it says nothing new.
func (e *Service) applyReversal(ctx context.Context, n billing.Name, seen billing.Reversal, list []*billing.ReversalRecord, a *billing.Account) (bool, error) {
	take := func(r *billing.ReversalRecord) bool { return r.Apply(seen, e.Now()) }
	r := billing.FindReversal(list, seen)
	if r != nil {
		if same := *r; !take(&same) {
			return false, nil
		}
	}
	if err := e.Live(ctx); err != nil {
		return false, err
	}
	if r != nil {
		_, changed, err := e.settleReversal(ctx, r, take)
		return changed, err
	}
	id := seen.ID
	if billing.IsRefundID(seen.Request) && billing.FindReversalID(list, seen.Request) == nil {
		id = seen.Request
	}
	err := e.Store.Commit(ctx, billing.NewReversalRecord(n, seen, id, e.Now()).Create(e.Table, a)...)
	return err == nil, err
}

// lookInto asks the processor what has gone back of the charge, and brings the records to
// it; see takeReturns.
func (e *Service) lookInto(ctx context.Context, n billing.Name, charge string) (list []*billing.ReversalRecord, a *billing.Account, err error) {
	var seen []billing.Reversal
	for range billing.MaxSends {
		if seen, err = e.proc.(billing.Refunder).ReturnsOf(ctx, charge); err == nil || billing.Definite(err) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("asking the processor what has gone back of charge %s: %w", charge, err)
	}
	_, list, a, err = e.applyReversals(ctx, n, seen...)
	return list, a, err
}

// finishAll goes on with every refund that is recorded and was not answered.
func (c *collector) finishAll(ctx context.Context) error {
	var names []store.Key
	for it, err := range c.e.Store.Query(ctx, store.Query{Table: c.e.Table, Partition: billing.UnfinishedPK}) {
		if err != nil {
			return err
		}
		account, sk, _ := strings.Cut(billing.KeyOf(it).SK, "#")
		names = append(names, store.Key{PK: billing.AccountPK(account), SK: sk})
	}
	var failed []error
	for _, key := range names {
		done, err := c.e.finishRefund(ctx, key)
		if done {
			c.recorded++
		}
		if err != nil && !mayPass(ctx, err) && !errors.Is(err, billing.ErrState) {
			return errors.Join(append(failed, err)...)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// finishRefund goes on with one refund that is recorded and was not answered.
func (e *Service) finishRefund(ctx context.Context, key store.Key) (done bool, err error) {
	it, err := e.Store.Get(ctx, e.Table, key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := billing.DecodeReversal(it)
	if err != nil {
		return false, &billing.IllegibleError{Err: err}
	}
	if r.State != billing.ReversalRequested {
		return false, nil
	}
	if err = e.Live(ctx); err != nil {
		return false, err
	}
	looked := e.Now()
	if r, err = e.look(ctx, r); err == nil && r.State == billing.ReversalRequested {
		r, err = e.send(ctx, r, looked)
	}
	return err == nil && r.State != billing.ReversalRequested, err
}
