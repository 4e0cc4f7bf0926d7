package storetest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

// testModel does random operations on the engine and on the naive model and compares every answer.
// Keys and values are few, so operations meet; the simplest come first, for short failures.
func testModel(t *testing.T, open Opener) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newClock()
		s, release := lease(t, open, c)
		defer release()
		m := &machine{rig: &rig{tester: rt, Store: s, clock: c},
			model: &naive{now: c.unix, tables: map[string]map[store.Key]store.Item{ledger: {}, plain: {}}}}
		rt.Repeat(map[string]func(*rapid.T){
			"":       m.compareNowAndThen,
			"commit": m.commitSome,
			"get":    m.getOne,
			"query":  m.queryOne,
			"resume": m.resume,
			"tick":   func(t *rapid.T) { m.clock.advance(rapid.Int64Range(1, 3).Draw(t, "seconds")) },
		})
		m.compareAll()
	})
}

// lease opens a store for one attempt, under a subtest that lasts until release. A failure
// shrinks through a thousand attempts, and a thousand directories could fill a disk.
func lease(t *testing.T, open Opener, c *clock) (s store.Store, release func()) {
	opened, finish, finished := make(chan store.Store, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		t.Run("store", func(t *testing.T) {
			opened <- openFor(t, open, c)
			<-finish
		})
	}()
	select {
	case s = <-opened:
	case <-finished:
		t.Fatal("no store was opened")
	}
	return s, func() {
		close(finish)
		<-finished
	}
}

// A machine drives the engine and the model through the same operations.
type machine struct {
	*rig
	model *naive
	held  []store.Query // of earlier answers, each with a cursor in it
	steps int
}

var (
	drawPK    = rapid.SampledFrom([]string{"a", "b", "a\x00", "aa", "a\x00\x01"})
	drawSK    = rapid.SampledFrom([]string{"1", "2", "10", "1\x00", "é", "\x01", "123", "1001"})
	drawTable = rapid.SampledFrom([]string{ledger, ledger, ledger, plain})
	drawText  = rapid.SampledFrom([]string{"x", "y", "x\x00", "xy", "x", "y", "\x7f"})
	drawName  = rapid.SampledFrom([]string{"amount", "state", "due", "owner", "note", "kind", "name", "zone", "ttl"})
)

// drawKey draws a key, more often than not a used one (also an expired item's), so writes meet.
func (m *machine) drawKey(t *rapid.T, table string) store.Key {
	used := slices.SortedFunc(maps.Keys(m.model.tables[table]), store.Key.Compare)
	if len(used) > 0 && rapid.SampledFrom([]bool{true, true, false}).Draw(t, "a used key") {
		return rapid.SampledFrom(used).Draw(t, "key")
	}
	k := store.Key{PK: drawPK.Draw(t, "pk")}
	if table == ledger {
		k.SK = drawSK.Draw(t, "sk")
	}
	return k
}

// drawValue draws a valid value: text for an index key, a second near now for TTL, or any other.
func drawValue(t *rapid.T, name string, now int64) store.Value {
	switch name {
	case "state", "due", "owner", "kind", "name":
		return store.S(drawText.Draw(t, name))
	case "ttl":
		return rapid.SampledFrom([]store.Value{
			store.Int(now + 2), store.Int(now + 1), store.Int(now), store.Int(now + 5), store.Int(0), store.Int(-1),
			store.S("1"), store.Int(now * 1000),
		}).Draw(t, name)
	}
	return drawAny(2).Draw(t, name)
}

func drawAny(depth int) *rapid.Generator[store.Value] {
	flat := rapid.OneOf(
		rapid.Map(rapid.Int64Range(0, 2), store.Int),
		rapid.Map(drawText, store.S),
		rapid.Map(rapid.Bool(), store.Bool),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3), store.B),
		rapid.Map(rapid.SampledFrom([]string{"0.5", "1E+40", "-1E-130", "12345678901234567890123456789012345678"}), decimal),
	)
	if depth == 0 {
		return flat
	}
	return rapid.OneOf(flat,
		rapid.Map(rapid.SliceOfN(drawAny(depth-1), 0, 2), func(vs []store.Value) store.Value { return store.L(vs...) }),
		rapid.Map(rapid.MapOfN(drawText, drawAny(depth-1), 0, 2), func(vs map[string]store.Value) store.Value {
			var it store.Item
			for name, v := range vs {
				it.Set(name, v)
			}
			return store.M(it)
		}))
}

// drawItem draws an item's attributes. Half of the items have all index keys, a third expire.
func (m *machine) drawItem(t *rapid.T, table string) store.Item {
	names := rapid.SliceOfNDistinct(drawName, 0, 6, rapid.ID[string]).Draw(t, "names")
	if rapid.Bool().Draw(t, "indexed") {
		names = append(names, map[string][]string{ledger: {"state", "due", "owner"}, plain: {"kind", "name"}}[table]...)
	}
	if rapid.SampledFrom([]bool{false, false, true}).Draw(t, "mortal") {
		names = append(names, "ttl")
	}
	var it store.Item
	for _, name := range names {
		it.Set(name, drawValue(t, name, m.clock.unix()))
	}
	return it
}

func (m *machine) drawWrite(t *rapid.T) store.Write {
	kind := rapid.SampledFrom([]string{"put", "put", "update", "delete", "check"}).Draw(t, "kind")
	table := drawTable.Draw(t, "table")
	key := m.drawKey(t, table)
	var conditions []store.Condition
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "conditions") {
		conditions = append(conditions, m.drawCondition(t, table, key))
	}
	switch kind {
	case "put":
		it := m.drawItem(t, table)
		m.table(table).SetKey(&it, key)
		return store.Put(table, it, conditions...)
	case "update":
		set := m.drawItem(t, table)
		names := rapid.SliceOfNDistinct(drawName, 0, 3, rapid.ID[string]).Draw(t, "remove")
		return store.Update(table, key, set, slices.DeleteFunc(names, set.Has), conditions...)
	case "delete":
		return store.Delete(table, key, conditions...)
	}
	return store.Check(table, key, conditions...)
}

// drawCondition draws a condition. Half of those that compare use a stored value, so they often hold.
func (m *machine) drawCondition(t *rapid.T, table string, key store.Key) store.Condition {
	kind := rapid.SampledFrom([]string{"equals", "absent", "attribute absent"}).Draw(t, "condition")
	if kind == "absent" {
		return store.Absent()
	}
	name := drawName.Draw(t, "of")
	var v store.Value
	if stored := m.model.tables[table][key]; len(stored) > 0 && rapid.Bool().Draw(t, "about what is stored") {
		a := rapid.SampledFrom(stored).Draw(t, "attribute")
		name, v = a.Name, a.Value
	} else if kind == "equals" {
		v = drawValue(t, name, m.clock.unix())
	}
	if kind == "equals" {
		return equals(name, v)
	}
	return store.AttributeAbsent(name)
}

func (m *machine) commitSome(t *rapid.T) {
	var writes []store.Write
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3, 12}).Draw(t, "writes") {
		writes = append(writes, m.drawWrite(t))
	}
	conflicts, distinct := m.model.commit(writes)
	err := m.Commit(m.Context(), writes...)
	switch {
	case !distinct:
		if !errors.Is(err, store.ErrInvalid) {
			t.Fatalf("two writes on one key: Commit = %v, want ErrInvalid", err)
		}
	case len(conflicts) == 0:
		if err != nil {
			t.Fatalf("Commit = %v, want success", err)
		}
	default:
		c, ok := errors.AsType[*store.ConflictError](err)
		if !ok || !slices.Contains(conflicts, c.Write) || c.Table != writes[c.Write].Table ||
			c.Key != m.model.keyOf(writes[c.Write]) {
			t.Fatalf("Commit = %v, want a conflict of one of the writes %v", err, conflicts)
		}
	}
}

func (m *machine) getOne(t *rapid.T) {
	table := drawTable.Draw(t, "table")
	m.compareGet(table, m.drawKey(t, table))
}

func (m *machine) compareGet(table string, key store.Key) {
	if want, ok := m.model.get(table, key); ok {
		m.want(table, want)
	} else {
		m.wantNone(table, key)
	}
}

func (m *machine) queryOne(t *rapid.T) {
	index := rapid.SampledFrom([]string{"", byState, byOwner, inverted, byName}).Draw(t, "index")
	q := store.Query{Table: ledger, Index: index, Reverse: rapid.Bool().Draw(t, "reverse"),
		Limit: rapid.IntRange(0, 3).Draw(t, "limit")}
	sorts := drawText
	switch index {
	case "":
		q.Partition, sorts = drawPK.Draw(t, "partition"), drawSK
	case inverted:
		q.Partition, sorts = drawSK.Draw(t, "partition"), drawPK
	case byName:
		q.Table = plain
		fallthrough
	default:
		q.Partition = drawText.Draw(t, "partition")
	}
	if index != byOwner {
		switch rapid.SampledFrom([]string{"all", "range", "prefix"}).Draw(t, "ends") {
		case "range":
			open := rapid.OneOf(rapid.Just(""), sorts)
			q.From, q.To = open.Draw(t, "from"), open.Draw(t, "to")
		case "prefix":
			q.Prefix = sorts.Draw(t, "prefix")
		}
	}
	m.compareQuery(t, q)
}

// compareQuery compares an answer, and keeps a cursor in it for later.
func (m *machine) compareQuery(t *rapid.T, q store.Query) {
	if got := m.compareRows(q); len(got) > 0 {
		q.After = m.table(q.Table).CursorAt(q.Index, rapid.SampledFrom(got).Draw(t, "cursor"))
		m.held = append(m.held, q)
	}
}

func (m *machine) compareRows(q store.Query) []store.Item {
	got := m.rows(q)
	if complaint := wrong(m.model.query(q), q.Limit, got); complaint != "" {
		m.Fatalf("Query(%+v) = %v: %s", q, shows(got), complaint)
	}
	return got
}

// resume goes on with an earlier query, even if its item has changed or is gone.
func (m *machine) resume(t *rapid.T) {
	if len(m.held) == 0 {
		t.Skip("no cursor yet")
	}
	m.compareQuery(t, rapid.SampledFrom(m.held).Draw(t, "query"))
}

// compareNowAndThen compares all after every step, or after some.
func (m *machine) compareNowAndThen(*rapid.T) {
	if m.steps++; m.steps%m.rounds(1, 4) == 0 {
		m.compareAll()
	}
}

// compareAll compares all items, by a scan in segments, and all index rows.
func (m *machine) compareAll() {
	for table, items := range m.model.tables {
		var want []store.Item
		for key := range items {
			if it, ok := m.model.get(table, key); ok {
				want = append(want, it)
			}
			m.compareGet(table, key)
		}
		m.wantSegments(table, 2, want)
	}
	for _, partition := range []string{"x", "y"} {
		m.compareRows(inIndex(byState, partition))
		m.compareRows(inIndex(byOwner, partition))
		m.compareRows(store.Query{Table: plain, Index: byName, Partition: partition})
	}
}
