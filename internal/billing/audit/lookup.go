package audit

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Lists find items by the rows of package lookup. The scan toggles the hash of each row that it meets, and
// of each row that an item should have. A hash that is left belongs to a row that is missing, that fits no
// item, or that was written during the scan. A second scan finds these rows, and further reads decide.

func (a *auditor) toggle(rows ...store.Item) {
	for _, r := range rows {
		h := a.hashRow(r)
		if _, met := a.lookups[h]; met {
			delete(a.lookups, h)
		} else if !a.Opened.Looked.IsZero() { // else they are being filled
			a.lookups[h] = struct{}{}
		}
	}
}

func (a *auditor) hashRow(r store.Item) uint64 { return maphash.Comparable(a.seed, billing.KeyOf(r)) }

func (a *auditor) left(r store.Item) bool {
	_, left := a.lookups[a.hashRow(r)]
	return left
}

// compareLookups reports rows that are missing or fit no item. Items that another tool made may have none.
func (a *auditor) compareLookups(ctx context.Context) error {
	if len(a.lookups) == 0 {
		return nil
	}
	legacy := 0
	for it, err := range a.Store.Scan(ctx, store.Scan{Table: a.Table}) {
		if err != nil {
			return err
		}
		a.step()
		if lookup.IsRow(it) && a.left(it) {
			if err := a.checkStray(ctx, it); err != nil {
				return err
			}
		}
		rows, _ := lookup.Of(it, a.Opened.Shards) // an unreadable item has none
		for _, r := range slices.DeleteFunc(rows, func(r store.Item) bool { return !a.left(r) }) {
			missing, err := a.missing(ctx, it, r)
			switch _, ours := it.Get(schema.Version).Int64(); {
			case err != nil:
				return err
			case missing && ours:
				n, _ := billing.NameOf(billing.KeyOf(it))
				n.Account = billing.AccountOf(it.Str(schema.PK))
				a.problem("lookup row missing", n, 0, "lists %s leave it out; run duesday store migrate --index", lookup.By(r))
			case missing:
				legacy++
			}
		}
	}
	if legacy > 0 {
		a.result.Notes = append(a.result.Notes, Problem{Kind: "not in lists", Detail: fmt.Sprintf("items of other tools lack "+
			"%d lookup rows; run duesday store migrate --index", legacy)})
	}
	return nil
}

// missing reports whether the item has the row, and the store does not.
func (a *auditor) missing(ctx context.Context, it, r store.Item) (bool, error) {
	if _, err := a.Store.Get(ctx, a.Table, billing.KeyOf(r)); err == nil || billing.IgnoreNotFound(err) != nil {
		return false, err
	}
	now, err := a.Store.Get(ctx, a.Table, billing.KeyOf(it)) // the row's absence counts while the item stays as it was
	return err == nil && now.Equal(it), billing.IgnoreNotFound(err)
}

// checkStray reports a row that fits no item, before and after the row is read again.
func (a *auditor) checkStray(ctx context.Context, r store.Item) error {
	for range 2 {
		it, err := lookup.Item(ctx, a.Records, r)
		if err != nil || it != nil {
			return err
		}
		if _, err := a.Store.Get(ctx, a.Table, billing.KeyOf(r)); err != nil {
			return billing.IgnoreNotFound(err)
		}
	}
	a.problem("lookup row fits no item", lookup.NameIn(r), 0, "lists %s drop it; run duesday store migrate --index", lookup.By(r))
	return nil
}
