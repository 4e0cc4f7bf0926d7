package storing

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/view"
)

// A keptKind is a kind of rows in a table that never expire, with their number.
type keptKind struct {
	table, kind string
	rows        int
}

// countKept counts the rows that never expire, by kind. It scans all tables.
func (p *program) countKept(ctx context.Context, place storeurl.Place) (all []keptKind, err error) {
	counts := map[keptKind]int{}
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
				counts[keptKind{table: t.Name, kind: kind}]++
			}
		}
		return nil
	})
	for k, n := range counts {
		all = append(all, keptKind{k.table, k.kind, n})
	}
	slices.SortFunc(all, func(a, b keptKind) int {
		return cmp.Or(strings.Compare(a.table, b.table), strings.Compare(a.kind, b.kind))
	})
	return all, err
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

func (p *program) sayKept(all []keptKind) {
	p.Say("\nRows that never expire:\n")
	t := p.Table("TABLE", "KIND", "ROWS")
	for _, k := range all {
		t.Row(k.table, k.kind, k.rows)
	}
	t.Flush()
}

func viewKept(k keptKind) view.Object {
	return view.Object{"table", k.table, "kind", k.kind, "rows", k.rows}
}
