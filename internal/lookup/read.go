package lookup

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// ErrIncomplete is returned while accounts or subscriptions may lack rows, because a list would be partial.
var ErrIncomplete = errors.New("the lookup rows of this store are not complete; to fill them, run: duesday store migrate")

// Ready returns ErrIncomplete unless every account and subscription has its rows.
func Ready(ctx context.Context, e *billing.Records) error {
	if !e.Opened.Looked.IsZero() {
		return nil
	}
	meta, err := e.Meta(ctx) // another process may have filled them meanwhile
	if err == nil && meta.Looked.IsZero() {
		err = ErrIncomplete
	}
	return err
}

// A Filter selects subscriptions. The zero Filter selects all.
type Filter struct {
	Status billing.Status
	SKU    string
	Email  string // the account's, ignoring case
}

// Place returns the subscription's place in the filter's list, after which the list can continue. The place
// stays valid if the subscription leaves the list.
func (f *Filter) Place(s *billing.Subscription) string {
	if f.Email != "" {
		return s.Account + "/" + s.Key().SK
	}
	return subscriptionSK(s)
}

// Subscriptions yields the filter's subscriptions whose places are after the given one, or all if after is "".
// They are sorted by SKU and name, or by account and key if the filter has an email address. For an unreadable
// subscription, it yields a billing.ItemError and continues. Any other error, such as ErrIncomplete, ends the
// list.
func Subscriptions(ctx context.Context, e *billing.Records, f Filter, after string) iter.Seq2[*billing.Subscription, error] {
	if f.Email != "" {
		return ofEmail(ctx, e, &f, after)
	}
	fits := has
	if f.Status == "" { // the status may change between the reads of a row and its item
		fits = hasSK
	}
	return items(ctx, e, f.rows(ctx, e, after), after, fits, billing.DecodeSubscription)
}

// rowsAtOnce is the number of rows of each partition that are read before their items. The partitions are read
// together, because a subscription whose status changes between two reads could be missing.
const rowsAtOnce = 256

// rows yields the filter's rows, starting with the row after.
func (f *Filter) rows(ctx context.Context, e *billing.Records, after string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for more := true; more; {
			more = false
			var parts []iter.Seq2[store.Item, error]
			for _, status := range statuses {
				for end := range billing.Shards(e.Opened.Shards) {
					if f.Status == "" || f.Status == status {
						parts = append(parts, tell(e.Store.Query(ctx, f.query(e.Table, string(status)+end, after)), &more))
					}
				}
			}
			var page []store.Item
			var failed error
			for r, err := range sequence.Merge(parts, bySK) {
				if failed = err; err != nil || more { // a partition may have other rows before this one
					break
				}
				if sk := r.Str(schema.SK); sk != after { // otherwise, it was in the previous page, or has two statuses
					page, after = append(page, r), sk
				}
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if failed != nil {
				yield(nil, failed)
				return
			}
		}
	}
}

// tell yields the rows of a query, and sets more at their end if they are as many as a query returns.
func tell(rows iter.Seq2[store.Item, error], more *bool) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		n := 0
		for r, err := range rows {
			if n++; !yield(r, err) {
				return
			}
		}
		*more = *more || n == rowsAtOnce
	}
}

// query returns the query for the filter's rows in one partition, starting with the row after.
func (f *Filter) query(table, end, after string) store.Query {
	q := store.Query{Table: table, Partition: byStatus + end, From: after, Limit: rowsAtOnce}
	if f.SKU != "" {
		q.From, q.To = max(after, f.SKU+"#"), f.SKU+"$" // $ follows #
	}
	return q
}

func ofEmail(ctx context.Context, e *billing.Records, f *Filter, after string) iter.Seq2[*billing.Subscription, error] {
	account, sk, _ := strings.Cut(after, "/")
	return func(yield func(*billing.Subscription, error) bool) {
		for a, err := range Accounts(ctx, e, f.Email, processor.Payer{}, "") {
			if err == nil && a.ID < account {
				continue
			}
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for s, err := range e.GetSubscriptionsByAccount(ctx, a.ID) {
				left := err == nil && (a.ID == account && s.Key().SK <= sk ||
					f.Status != "" && s.Status != f.Status || f.SKU != "" && s.SKU != f.SKU)
				if !left && !yield(s, err) {
					return
				}
			}
		}
	}
}

// Continuing yields the subscriptions that were made from the processor's one, in any status. It yields errors as
// Subscriptions does.
func Continuing(ctx context.Context, e *billing.Records, from string) iter.Seq2[*billing.Subscription, error] {
	rows := e.Store.Query(ctx, store.Query{Table: e.Table, Partition: byOrigin + from})
	return items(ctx, e, rows, "", has, billing.DecodeSubscription)
}

// PlaceOf returns the account's place in the list of Accounts.
func PlaceOf(a *billing.Account, p processor.Payer) string {
	if p.Customer != "" {
		return a.ID
	}
	return emailSK(a)
}

// Accounts yields the accounts with the email address (ignoring case), or with the processor customer. With
// neither, it yields all accounts, sorted by address. It starts after the given place, or with the first
// account if after is "". It yields errors as Subscriptions does.
func Accounts(ctx context.Context, e *billing.Records, email string, p processor.Payer, after string) iter.Seq2[*billing.Account, error] {
	q := store.Query{Table: e.Table, From: after}
	var parts []iter.Seq2[store.Item, error]
	switch {
	case p.Customer != "":
		q.Partition = customerPK(p.At, p.Customer)
		parts = append(parts, e.Store.Query(ctx, q))
	case email != "":
		address := strings.ToLower(email)
		q.Partition, q.From, q.To = emailPK(email, e.Opened.Shards), max(after, address+"#"), address+"$" // $ follows #
		parts = append(parts, e.Store.Query(ctx, q))
	default:
		for end := range billing.Shards(e.Opened.Shards) {
			q.Partition = byEmail + end
			parts = append(parts, e.Store.Query(ctx, q))
		}
	}
	all := items(ctx, e, sequence.Merge(parts, bySK), after, has, billing.DecodeAccount)
	return sequence.Filter(all, func(a *billing.Account) bool {
		return email == "" || strings.EqualFold(a.Email, email) // else the address contains # after this one
	})
}

// atOnce is the number of items that are read concurrently.
const atOnce = 16

// bySK compares rows by their sort keys.
func bySK(a, b store.Item) int { return strings.Compare(a.Str(schema.SK), b.Str(schema.SK)) }

// items yields the items of the rows after the given sort key, and omits rows that no longer match.
func items[T any](ctx context.Context, e *billing.Records, rows iter.Seq2[store.Item, error], after string, fits fit,
	decode func(store.Item) (*T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if err := Ready(ctx, e); err != nil {
			yield(nil, err)
			return
		}
		page := make([]store.Item, 0, atOnce)
		flush := func() bool {
			found, err := readAll(ctx, e, page, fits)
			page = page[:0]
			for _, it := range found {
				v, illegible := decode(it)
				if illegible != nil {
					v, illegible = nil, &billing.ItemError{Key: billing.KeyOf(it), Err: illegible}
				}
				if !yield(v, illegible) {
					return false
				}
			}
			return err == nil || yield(nil, err) && false
		}
		for r, err := range rows {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			if after != "" && r.Str(schema.SK) == after {
				continue
			}
			if page = append(page, r); len(page) == atOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// readAll returns the rows' items in order, up to the first error.
func readAll(ctx context.Context, e *billing.Records, rows []store.Item, fits fit) (found []store.Item, err error) {
	items, errs := make([]store.Item, len(rows)), make([]error, len(rows))
	var all sync.WaitGroup
	for i, r := range rows {
		all.Go(func() { items[i], errs[i] = itemOf(ctx, e, r, fits) })
	}
	all.Wait()
	for i, it := range items {
		if errs[i] != nil {
			return found, errs[i]
		}
		if it != nil {
			found = append(found, it)
		}
	}
	return found, nil
}
