package person

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// list yields the accounts that were erased.
func list(ctx context.Context, r *billing.Records, each func(account string) error) error {
	for it, err := range r.Store.Query(ctx, store.Query{Table: r.Table, Partition: ListPK}) {
		if err == nil {
			err = each(it.Str(schema.SK))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Later returns the function for tracking.Options.Erases. It reads the list of erased accounts once
// a minute.
func Later(r *billing.Records) func(ctx context.Context, at string, body []byte) (bool, error) {
	var mu sync.Mutex
	var erased *search // guarded by mu
	var read time.Time // guarded by mu
	return func(ctx context.Context, at string, body []byte) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := r.Now(); erased == nil || now.Sub(read).Abs() > time.Minute {
			s, err := newSearch(ctx, r)
			if err != nil {
				return false, err
			}
			err = list(ctx, r, func(account string) error {
				a, err := r.Account(ctx, account)
				if err == nil {
					s.add(a)
				} else if errors.As(err, new(*billing.IllegibleError)) { // another tool has changed it; events must still be stored
					s.accounts[strings.Clone(account)], err = true, nil
				}
				return billing.IgnoreNotFound(err)
			})
			if err != nil {
				return false, err
			}
			erased, read = s, now
		}
		return len(erased.accounts) > 0 && erased.names(at, body), nil
	}
}

// Again erases the accounts that this store or the one that it replaced had erased, because a
// backup brings their data back. It returns the number of accounts, and the errors of those that it
// must leave: they are refused or unreadable. They stay in the list, so the next call tries again.
// If old's list cannot be read, left has an error for it. old may be nil.
func Again(ctx context.Context, r, old *billing.Records) (n int, left []error, err error) {
	again := func(account string) error {
		a, err := r.Account(ctx, account)
		if err == nil && complete(a) {
			return nil
		}
		if err == nil {
			_, err = Erase(ctx, r, account, false)
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if errors.As(err, new(*RefusedError)) || errors.As(err, new(*billing.IllegibleError)) {
			left = append(left, err)
			return (&search{Records: r}).remember(ctx, account)
		}
		if err == nil {
			n++
		}
		return err
	}
	seen := map[string]bool{}
	for _, from := range []*billing.Records{r, old} {
		if from == nil {
			continue
		}
		err := list(ctx, from, func(account string) error {
			if seen[account] {
				return nil
			}
			seen[strings.Clone(account)] = true
			if err := again(account); err != nil {
				return &ownError{err}
			}
			return nil
		})
		own, is := errors.AsType[*ownError](err)
		switch {
		case is:
			return n, left, own.error
		case err != nil && (from == r || ctx.Err() != nil):
			return n, left, err
		case err != nil:
			left = append(left, Unknown(err))
		}
	}
	return n, left, nil
}

// An ownError is not of the store whose list is read.
type ownError struct{ error }

// Unknown returns the error of a replaced store whose list cannot be read.
func Unknown(err error) error {
	return fmt.Errorf("the replaced store cannot be read, so accounts that were erased in it are not erased again; repeat account erase for each: %w", err)
}

// Audit notes the listed accounts that are not erased completely.
func Audit(ctx context.Context, r *billing.Records, report *audit.Report) error {
	return list(ctx, r, func(account string) error {
		a, err := r.Account(ctx, account)
		if _, bad := errors.AsType[*billing.IllegibleError](err); !bad && (err != nil || complete(a)) {
			return billing.IgnoreNotFound(err)
		}
		report.Notes = append(report.Notes, audit.Problem{Kind: "not erased", Account: account,
			Detail: "the erasure of the person's data is not finished; repeat account erase"})
		return nil
	})
}

// complete reports whether the account is erased completely. Erase changes it last.
func complete(a *billing.Account) bool { return a.Erased() != "" && bare(a.Raw).Equal(a.Raw) }

// remember adds the account to the list.
func (s *search) remember(ctx context.Context, account string) error {
	return store.Retry(ctx, "account "+account, func() error { return s.Store.Commit(ctx, s.listed(account)) })
}
