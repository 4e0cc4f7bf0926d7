// Package bulk creates the subscriptions of an import, many in each commit. It does not check them: its
// callers do.
package bulk

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// A Count counts the subscriptions of a batch.
type Count struct {
	Created  int
	Existing int // there already, and unchanged
	Due      int // created, and due today or before
}

// Create creates the subscriptions. The caller must have called Check and Preview for each, and
// must not import subscriptions of one account at the same time: each commit changes the account.
// They go in commits of up to a hundred writes. If a commit meets an item in the store, its
// subscriptions go one by one.
func Create(ctx context.Context, e *billing.Records, batch []billing.NewSubscription) (Count, error) {
	ctx = call.Without(ctx) // imported rows have no history here
	var count Count
	known := map[string]*billing.Account{} // in the store
	for len(batch) > 0 {
		n, done, err := importSome(ctx, e, batch, known, &count)
		if err != nil {
			return count, err
		}
		if !done {
			for i := range batch[:n] {
				if err := importOne(ctx, e, batch[i], &count); err != nil {
					return count, err
				}
			}
			clear(known)
			if last := batch[n-1].Account; n < len(batch) && batch[n].Account == last {
				if known[last], err = e.Account(ctx, last); err != nil {
					return count, err
				}
			}
		}
		batch = batch[n:]
	}
	return count, nil
}

// importSome tries to create the first n subscriptions of the batch in one commit. done is false
// if one of them, or an account that is not known, is there already: then nothing was written.
func importSome(ctx context.Context, e *billing.Records, batch []billing.NewSubscription, known map[string]*billing.Account,
	count *Count) (n int, done bool, err error) {
	if err := e.MayChange(ctx); err != nil {
		return 0, false, err
	}
	const room = store.MaxWrites - 2 // of the low watermarks
	writes := make([]store.Write, 0, store.MaxWrites)
	accounts := make(map[string]bool, len(batch))
	var payment, reminder civil.Date
	due := 0
	for n < len(batch) {
		b := &batch[n]
		a := known[b.Account]
		if a != nil {
			b.Details.Address.Country = a.Details.Address.Country // its tax is the account's
		}
		s, err := e.Build(ctx, b)
		if err != nil {
			return n, false, err
		}
		made, err := e.WithBeside(ctx, s.Create(e.Table))
		if err != nil {
			return n, false, err
		}
		var its []store.Write // of its account
		if a == nil {
			a = b.NewAccount(s.Created)
			if its, err = e.WithBeside(ctx, store.Put(e.Table, a.Item(), store.Absent())); err != nil {
				return n, false, err
			}
		}
		if len(writes)+len(made)+max(1, len(its)) > room {
			break
		}
		if !accounts[b.Account] {
			if its == nil {
				its = []store.Write{a.BumpVersion(e.Table)}
			}
			accounts[b.Account], known[b.Account], a.Raw = true, a, its[0].Item // known is cleared if the commit fails
		}
		writes = append(append(writes, made...), its...)
		if IsDue(e, s) {
			due++
		}
		payment, reminder = civil.Earlier(payment, s.NextPayment), civil.Earlier(reminder, s.NextReminder)
		n++
	}
	watermark, err := e.WatermarkWrites(ctx, payment, reminder)
	if err == nil {
		err = e.Store.Commit(ctx, append(writes, watermark...)...)
	}
	if err != nil {
		if store.Retryable(err) {
			err = nil
		}
		return n, false, err
	}
	count.Created += n
	count.Due += due
	return n, true, nil
}

// IsDue reports whether the payment job looks at the subscription today.
func IsDue(e *billing.Records, s *billing.Subscription) bool {
	return !s.NextPayment.After(billing.TodayIn(s.TimeZone, e.Now()))
}

func importOne(ctx context.Context, e *billing.Records, n billing.NewSubscription, count *Count) error {
	s, err := e.CreateSubscription(ctx, n)
	switch {
	case errors.Is(err, billing.ErrExists):
		count.Existing++
		return nil
	case err != nil:
		return fmt.Errorf("%s/%s: %w", n.Account, n.ID, err)
	}
	count.Created++
	if IsDue(e, s) {
		count.Due++
	}
	return nil
}
