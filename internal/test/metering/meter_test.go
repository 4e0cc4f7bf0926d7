package metering_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/metering"
	"github.com/duesday/duesday/internal/test/storetest"
)

// TestContract: who uses a store does not notice that it is metered.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		s, err := memstore.Open(tables, now)
		if err != nil {
			t.Fatal(err)
		}
		m, err := metering.NewMeter(s, metering.Options{Tables: tables})
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}

func TestNewMeter_BadTables(t *testing.T) {
	if m, err := metering.NewMeter(nil, metering.Options{Tables: []store.Table{{Name: "t"}}}); !errors.Is(err,
		store.ErrInvalid) || m != nil {
		t.Errorf("NewMeter = %v, %v; want ErrInvalid", m, err)
	}
}

// TestTransactions: a table write costs twice, an index row once, a check as a write, by the
// documented rules; DynamoDB Local cannot tell.
func TestTransactions(t *testing.T) {
	m := newMeter(t, metering.Options{Tables: []store.Table{table}})
	day, last := text("Day", "2026-01-05"), text("Last", "2025")
	for _, it := range []store.Item{item(1, 900, day, last), item(2, 2500), item(3, 1500)} {
		if err := m.Commit(t.Context(), store.Put(table.Name, it)); err != nil {
			t.Fatal(err)
		}
	}
	got := counted(m, func() {
		err := m.Commit(t.Context(),
			store.Put(table.Name, item(1, 1100, text("Day", "2026-02-05"), last)), // 2 × 2, and its row moves: 2
			store.Delete(table.Name, key(2)),                                      // 2 × 3
			store.Check(table.Name, key(3)),                                       // 2 × 2
			store.Put(table.Name, item(4, 100), store.Absent()))                   // 2 × 1
		if err != nil {
			t.Fatal(err)
		}
	})
	if want := map[string]float64{"": 4 + 6 + 4 + 2, "by-day": 2}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// TestFailedConditionsArePaidFor: the larger of what is there and what was to be written
// counts, and no index row.
func TestFailedConditionsArePaidFor(t *testing.T) {
	m := newMeter(t, metering.Options{Tables: []store.Table{table}})
	if err := m.Commit(t.Context(), store.Put(table.Name,
		item(1, 2500, text("Day", "1"), text("Last", "1")))); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		want   float64 // units, of reads for a lone check
		writes []store.Write
	}{
		"put of less": {3, []store.Write{store.Put(table.Name, item(1, 100), store.Absent())}},
		"put of more": {5, []store.Write{store.Put(table.Name, item(1, 4500), store.Absent())}},
		"update": {3, []store.Write{store.Update(table.Name, key(1), store.NewItem(text("Day", "2")),
			nil, store.AttributeAbsent("Last"))}},
		"update of nothing":   {1, []store.Write{store.Update(table.Name, key(9), store.NewItem(text("Day", "2")), nil)}},
		"delete":              {3, []store.Write{store.Delete(table.Name, key(1), store.AttributeAbsent("Last"))}},
		"delete of nothing":   {1, []store.Write{store.Delete(table.Name, key(9))}},
		"check, a read alone": {1, []store.Write{store.Check(table.Name, key(1), store.Absent())}},
		"all of a transaction": {2 * (3 + 1), []store.Write{store.Put(table.Name, item(1, 100), store.Absent()),
			store.Put(table.Name, item(2, 100))}},
	} {
		before := m.Usage()
		if err := m.Commit(t.Context(), c.writes...); !errors.Is(err, store.ErrConflict) {
			t.Fatalf("%s: %v, want a conflict", what, err)
		}
		used := m.Usage().Since(before)
		want := metering.Units{Write: c.want}
		if c.writes[0].Op == store.OpCheck {
			want = metering.Units{Read: c.want}
		}
		if got := sumOf(used).Units; got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		for l := range used {
			if !l.Failed || l.Index != "" {
				t.Errorf("%s: counted as %+v", what, l)
			}
		}
	}
}

// TestToken: what the engine adds to an item counts in the table, and makes a row of an index
// that projects everything change with every write.
func TestToken(t *testing.T) {
	m := newMeter(t, metering.Options{Tables: []store.Table{table}, TokenBytes: metering.TokenBytes})
	put := func(it store.Item) map[string]float64 {
		return counted(m, func() {
			if err := m.Commit(t.Context(), store.Put(table.Name, it)); err != nil {
				t.Fatal(err)
			}
		})
	}
	in := []store.Attribute{text("Day", "1"), text("Last", "1"), text("SKU", "1")}
	if got, want := put(item(1, 1002, in...)), map[string]float64{"": 1, "by-day": 1,
		"by-sku": 1}; !maps.Equal(got, want) {
		t.Errorf("1,002 bytes and 22: counted %v, want %v", got, want)
	}
	if got, want := put(item(1, 1002, in...)), map[string]float64{"": 1, "by-sku": 1}; !maps.Equal(got, want) {
		t.Errorf("the same again: counted %v, want %v", got, want)
	}
	if got, want := put(item(1, 1003, in...)), map[string]float64{"": 2, "by-sku": 2}; !maps.Equal(got, want) {
		t.Errorf("1,003 bytes and 22: counted %v, want %v", got, want)
	}
	read := counted(m, func() {
		if _, err := m.Get(t.Context(), table.Name, key(1)); err != nil {
			t.Fatal(err)
		}
	})
	if read[""] != 1 {
		t.Errorf("get: %v", read)
	}
}

// TestEmptyAndAbandonedReads: nothing found costs the least there is, and a loop that ends
// early has paid for its page.
func TestEmptyAndAbandonedReads(t *testing.T) {
	m := newMeter(t, metering.Options{Tables: []store.Table{table}})
	query := func(q store.Query, most int) map[string]float64 {
		q.Table = table.Name
		return counted(m, func() {
			n := 0
			for _, err := range m.Query(t.Context(), q) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == most {
					break
				}
			}
		})
	}
	if got := query(store.Query{Partition: "ACC#1"}, 1); got[""] != 1 {
		t.Errorf("empty partition: %v", got)
	}
	if got := query(store.Query{Partition: "1", Index: "by-day"}, 1); got["by-day"] != 0.5 {
		t.Errorf("empty partition of an index: %v", got)
	}
	for n := range 6 {
		if err := m.Commit(t.Context(), store.Put(table.Name, item(n, 2000))); err != nil {
			t.Fatal(err)
		}
	}
	if got := query(store.Query{Partition: "ACC#1"}, 1); got[""] != 3 {
		t.Errorf("the first of 12,000 bytes: %v, want the 3 units of the page", got)
	}
	if got := query(store.Query{Partition: "ACC#1", Limit: 2}, 0); got[""] != 1 {
		t.Errorf("limited to 4,000 bytes: %v", got)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if got := counted(m, func() {
		for _, err := range m.Query(t.Context(), store.Query{Table: table.Name, Partition: "1"}) {
			if !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		}
		if err := m.Commit(t.Context(), store.Put(table.Name, item(1, 100))); !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	}); len(got) != 0 {
		t.Errorf("a closed store consumed %v", got)
	}
}

// TestLinesAndPartitions: what was consumed is told apart, and on which date of an index.
func TestLinesAndPartitions(t *testing.T) {
	name := func(_ string, k store.Key) string { return k.SK }
	m := newMeter(t, metering.Options{Tables: []store.Table{table}, Name: name})
	in := func(day string) store.Item { return item(1, 200, text("Day", day), text("Last", "1")) }
	for _, it := range []store.Item{in("1"), in("2"), in("2")} {
		if err := m.Commit(t.Context(), store.Put(table.Name, it)); err != nil {
			t.Fatal(err)
		}
	}
	for range m.Query(t.Context(), store.Query{Table: table.Name, Index: "by-day", Partition: "2"}) {
		continue
	}
	want := map[metering.Partition]metering.Units{
		{Table: table.Name, Index: "by-day", Key: "1"}: {Write: 2},
		{Table: table.Name, Index: "by-day", Key: "2"}: {Write: 1, Read: 0.5},
	}
	if got := m.Partitions(); !maps.Equal(got, want) {
		t.Errorf("partitions %v, want %v", got, want)
	}
	used := m.Usage()
	lines := used.Sorted()
	wantLines := []metering.Line{
		{Op: metering.OpQuery, Table: table.Name, Index: "by-day"},
		{Op: metering.OpPut, Table: table.Name, Item: "SUB#1"},
		{Op: metering.OpPut, Table: table.Name, Item: "SUB#1", Index: "by-day"},
	}
	if !slices.Equal(lines, wantLines) {
		t.Errorf("lines %+v, want %+v", lines, wantLines)
	}
	if c := used[wantLines[1]]; c != (metering.Count{Times: 3, Bytes: 600, Units: metering.Units{Write: 3}}) {
		t.Errorf("puts: %+v", c)
	}
	if c := used.Plus(used).Since(used); !maps.Equal(c, used) {
		t.Errorf("twice less once is %v, want %v", c, used)
	}
}

// sumOf returns the sum of all lines.
func sumOf(u metering.Usage) (sum metering.Count) {
	for _, c := range u {
		sum.Times, sum.Bytes, sum.Units = sum.Times+c.Times, sum.Bytes+c.Bytes, sum.Units.Plus(c.Units)
	}
	return sum
}
