package storing

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/view"
)

// A rowKind is a kind of rows in a table.
type rowKind struct{ table, kind string }

// countKept counts the rows that never expire, by kind. It scans all tables.
func (p *program) countKept(ctx context.Context, place storeurl.Place) (counts map[rowKind]int, err error) {
	counts = map[rowKind]int{}
	bar := p.Progress("items", 0, nil)
	defer bar.End()
	err = p.withSide(ctx, place, false, false, func(side move.Side) error {
		for _, t := range side.Tables.All() {
			for it, err := range side.Store.Scan(ctx, store.Scan{Table: t.Name}) {
				if err != nil {
					return err
				}
				bar.Done.Add(1)
				if _, expires := it.Get(cmp.Or(t.TTL, "-")).Int64(); expires {
					continue
				}
				kind := "item"
				if t.Name == side.Tables.RecurringPayments.Name {
					kind = kindOfRow(t.KeyOf(it))
				}
				counts[rowKind{t.Name, kind}]++
			}
		}
		return nil
	})
	return counts, err
}

// kindOfRow returns what the key of the recurring-payments table stands for.
func kindOfRow(k store.Key) string {
	partition, _, _ := strings.Cut(k.PK, "#")
	first, _, _ := strings.Cut(k.SK, "#")
	if partition == "ACC" {
		return cmp.Or(map[string]string{"ACC": "account", "SUB": "subscription", "REC": "receipt", "PER": "unpaid period", "REF": "refund or dispute",
			"KEY": "idempotency key", "HIS": "history"}[first], "other item")
	}
	return cmp.Or(map[string]string{"IDX": "lookup row", "KEY": "idempotency key", "SUM": "sum of money", "KEYS": "API key", "RUN": "run",
		"SETTINGS": "settings", "DOUBTS": "doubt"}[partition], strings.ToLower(partition))
}

func (p *program) sayKept(counts map[rowKind]int) {
	if counts == nil {
		return
	}
	p.Say("\nRows that never expire:\n")
	t := p.Table("TABLE", "KIND", "ROWS")
	for _, k := range sortedKinds(counts) {
		t.Row(k.table, k.kind, counts[k])
	}
	t.Flush()
}

func viewKept(counts map[rowKind]int) []view.Object {
	if counts == nil {
		return nil
	}
	return view.List(sortedKinds(counts), func(k rowKind) view.Object {
		return view.Object{"table", k.table, "kind", k.kind, "rows", counts[k]}
	})
}

func sortedKinds(counts map[rowKind]int) []rowKind {
	return slices.SortedFunc(maps.Keys(counts), func(a, b rowKind) int {
		return cmp.Or(strings.Compare(a.table, b.table), strings.Compare(a.kind, b.kind))
	})
}
