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

func newNaive(now func() int64) *naive {
	return &naive{now: now, tables: map[string]map[store.Key]store.Item{ledger: {}, plain: {}}}
}

// A guess is a condition for the model to read.
type guess struct {
	kind  string // "absent", "attribute absent", "equals"
	name  string
	value store.Value
}

func (g guess) condition() store.Condition {
	switch g.kind {
	case "absent":
		return store.Absent()
	case "attribute absent":
		return store.AttributeAbsent(g.name)
	}
	return store.AttributeEquals(g.name, g.value)
}

// A step is one write of a random commit.
type step struct {
	kind   string // "put", "update", "delete", "check"
	table  string
	key    store.Key
	item   store.Item // of a put, without its key; of an update, the attributes to set
	remove []string
	If     []guess
}

func withKey(table string, it store.Item, k store.Key) store.Item {
	it = it.Clone()
	if table == plain {
		it.Set("id", store.S(k.PK))
		return it
	}
	it.Set("pk", store.S(k.PK))
	it.Set("sk", store.S(k.SK))
	return it
}

func (s step) write() store.Write {
	var conditions []store.Condition
	for _, g := range s.If {
		conditions = append(conditions, g.condition())
	}
	switch s.kind {
	case "put":
		return store.Put(s.table, withKey(s.table, s.item, s.key), conditions...)
	case "update":
		return store.Update(s.table, s.key, s.item, s.remove, conditions...)
	case "delete":
		return store.Delete(s.table, s.key, conditions...)
	}
	return store.Check(s.table, s.key, conditions...)
}

func (n *naive) expired(table string, it store.Item) bool {
	at, ok := it.Get("ttl").Int64()
	return table == ledger && ok && at > 0 && at <= n.now()
}

// get returns the living item at the key.
func (n *naive) get(table string, k store.Key) (store.Item, bool) {
	it, ok := n.tables[table][k]
	return it, ok && !n.expired(table, it)
}

// commit returns the numbers of the conflicting writes, or applies all. It reports
// false for two writes on one key.
func (n *naive) commit(steps []step) (conflicts []int, distinct bool) {
	for i, s := range steps {
		for _, earlier := range steps[:i] {
			if earlier.table == s.table && earlier.key == s.key {
				return nil, false
			}
		}
	}
	for i, s := range steps {
		it, present := n.get(s.table, s.key)
		good, mayBeAbsent := true, s.kind == "put"
		for _, g := range s.If {
			switch g.kind {
			case "absent":
				good = good && !present
				mayBeAbsent = mayBeAbsent || s.kind == "check"
			case "attribute absent":
				good = good && (!present || it.Get(g.name).IsZero())
			default:
				good = good && present && it.Get(g.name).Equal(g.value)
			}
		}
		if !good || (!present && !mayBeAbsent) {
			conflicts = append(conflicts, i)
		}
	}
	if len(conflicts) > 0 {
		return conflicts, true
	}
	for _, s := range steps {
		switch s.kind {
		case "put":
			n.tables[s.table][s.key] = withKey(s.table, s.item, s.key)
		case "update":
			it := n.tables[s.table][s.key].Clone()
			for _, a := range s.item {
				it.Set(a.Name, a.Value)
			}
			for _, name := range s.remove {
				it.Remove(name)
			}
			n.tables[s.table][s.key] = it
		case "delete":
			delete(n.tables[s.table], s.key)
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

var shapes = map[string]shape{
	ledger: {"pk", "sk", ""}, plain: {"id", "", ""},
	byState: {"state", "due", " pk sk state due amount note "}, byOwner: {"owner", "", ""},
	inverted: {"sk", "pk", " pk sk "}, byName: {"kind", "name", ""},
}

// query returns all rows of the answer, the limit apart.
func (n *naive) query(q store.Query) []naiveRow {
	sh := shapes[cmp.Or(q.Index, q.Table)]
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

// wrong says what is wrong with an answer to a query that has these rows, or "". Rows
// of one place may come in any order.
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
