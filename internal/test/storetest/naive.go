package storetest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// naive is a second, plain implementation of the contract: a map for each table, filtered and
// sorted for every query. It uses none of the store's own rules (Resolve, Holds, Expired,
// Project), so their errors show too. It has no limits, but refuses two writes on one key.
type naive struct {
	tables map[string]map[store.Key]store.Item
	now    func() int64
}

func (n *naive) expired(table string, it store.Item) bool {
	at, ok := it.Get("ttl").Int64()
	return table == ledger && ok && at > 0 && at <= n.now()
}

func (n *naive) get(table string, k store.Key) (store.Item, bool) {
	it, ok := n.tables[table][k]
	return it, ok && !n.expired(table, it)
}

func (n *naive) keyOf(w store.Write) store.Key {
	if w.Op != store.OpPut {
		return w.Key
	}
	sh := shapes()[w.Table]
	return store.Key{PK: w.Item.Str(sh.partition), SK: w.Item.Str(sh.sort)}
}

// commit returns the conflicting writes' numbers, or applies all; false: two writes on one key.
func (n *naive) commit(writes []store.Write) (conflicts []int, distinct bool) {
	for i, w := range writes {
		key := n.keyOf(w)
		for _, earlier := range writes[:i] {
			if earlier.Table == w.Table && n.keyOf(earlier) == key {
				return nil, false
			}
		}
		it, present := n.get(w.Table, key)
		good, mayBeAbsent := true, w.Op == store.OpPut
		for _, c := range w.If {
			switch name, v := c.Parts(); {
			case name == "": // the item must be absent
				good = good && !present
				mayBeAbsent = mayBeAbsent || w.Op == store.OpCheck
			case v.IsZero(): // the attribute must
				good = good && (!present || it.Get(name).IsZero())
			default:
				good = good && present && it.Get(name).Equal(v)
			}
		}
		if !good || (!present && !mayBeAbsent) {
			conflicts = append(conflicts, i)
		}
	}
	if len(conflicts) > 0 {
		return conflicts, true
	}
	for _, w := range writes {
		items, key := n.tables[w.Table], n.keyOf(w)
		switch w.Op {
		case store.OpPut:
			items[key] = w.Item.Clone()
		case store.OpUpdate:
			it := items[key].Clone()
			for _, a := range w.Set {
				it.Set(a.Name, a.Value)
			}
			for _, name := range w.Remove {
				it.Remove(name)
			}
			items[key] = it
		case store.OpDelete:
			delete(items, key)
		}
	}
	return nil, true
}

// A naiveRow is a row of a query's answer, with its place in the order.
type naiveRow struct {
	item  store.Item
	place string // sort key; among equal ones the order is the engine's own
	may   bool   // it may be missing: an expired row of an index, or one beside the cursor
}

// shape has the key attributes of a table or index and the attributes of its rows.
type shape struct {
	partition, sort string // attribute names; "" for no sort key
	shows           string // names, each between blanks; "" for all
}

func shapes() map[string]shape {
	return map[string]shape{
		ledger: {"pk", "sk", ""}, plain: {"id", "", ""},
		byState: {"state", "due", " pk sk state due amount note "}, byOwner: {"owner", "", ""},
		inverted: {"sk", "pk", " pk sk "}, byName: {"kind", "name", ""},
	}
}

// query returns all rows of the answer, the limit apart.
func (n *naive) query(q store.Query) []naiveRow {
	sh := shapes()[cmp.Or(q.Index, q.Table)]
	var rows []naiveRow
	for k, it := range n.tables[q.Table] {
		sort := it.Str(sh.sort)
		in := it.Str(sh.partition) == q.Partition && (sh.sort == "" || sort != "") &&
			strings.HasPrefix(sort, q.Prefix) && sort >= q.From && (q.To == "" || sort <= q.To)
		row := naiveRow{place: sort, may: n.expired(q.Table, it)}
		in = in && (q.Index != "" || !row.may)
		if !q.After.IsZero() {
			after := q.After.Index.SK
			if q.Index == "" {
				after = q.After.Key.SK
			}
			switch c := cmp.Compare(sort, after); {
			case c == 0:
				in = in && k != q.After.Key
				row.may = true
			default:
				in = in && (c > 0) == !q.Reverse
			}
		}
		if !in {
			continue
		}
		for _, a := range it {
			if sh.shows == "" || strings.Contains(sh.shows, " "+a.Name+" ") {
				row.item.Set(a.Name, a.Value)
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b naiveRow) int {
		c := cmp.Compare(a.place, b.place)
		if q.Reverse {
			return -c
		}
		return c
	})
	return rows
}

// wrong says why the rows are no answer to a query that has these, or "". Ties have no order.
func wrong(rows []naiveRow, limit int, got []store.Item) string {
	if limit > 0 && len(got) > limit {
		return "more rows than the limit"
	}
	seen, at := make([]bool, len(rows)), 0
	for _, it := range got {
		i := slices.IndexFunc(rows, func(r naiveRow) bool { return r.item.Equal(it) })
		switch {
		case i < 0:
			return "not to be expected here: " + show(it)
		case seen[i]:
			return "twice: " + show(it)
		case rows[i].place != rows[at].place && i < at:
			return "out of place: " + show(it)
		}
		seen[i], at = true, i
	}
	for i, r := range rows {
		if limit > 0 && len(got) == limit && (len(got) == 0 || i >= at || r.place == rows[at].place) {
			break // the limit cut it off
		}
		if !seen[i] && !r.may {
			return "missing: " + show(r.item)
		}
	}
	return ""
}
