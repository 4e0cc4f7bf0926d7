package metering_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/metering"
)

// table has the shape of the recurring-payments table.
var table = store.Table{Name: "payments", PartitionKey: "PK", SortKey: "SK", Indexes: []store.Index{
	{Name: "by-day", PartitionKey: "Day", SortKey: "Last", Include: []string{"Email"}},
	{Name: "by-sku", PartitionKey: "SKU", SortKey: "Last", All: true},
}}

// fatalT is what testing.T and rapid.T share.
type fatalT interface {
	Context() context.Context
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// A pair does everything twice: at DynamoDB Local, which says what it consumed, and in
// memory under a Meter.
type pair struct {
	*local
	meter *metering.Meter
}

func newPair(t *testing.T) *pair {
	t.Helper()
	l := newLocal(t, table)
	return &pair{l, newMeter(t, metering.Options{Tables: []store.Table{l.table}})}
}

func newMeter(t fatalT, o metering.Options) *metering.Meter {
	t.Helper()
	s, err := memstore.Open(o.Tables, func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) })
	if err != nil {
		t.Fatal(err)
	}
	m, err := metering.NewMeter(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// counted returns what do has consumed by the Meter: of the table under "", and of the
// indexes; read and write units added, since no call has both.
func counted(m *metering.Meter, do func()) map[string]float64 {
	before := m.Usage()
	do()
	all := map[string]float64{}
	for l, c := range m.Usage().Since(before) {
		all[l.Index] += c.Units.Read + c.Units.Write
	}
	return all
}

// same sends the request to DynamoDB Local, does the same to the Meter, and compares.
func (p *pair) same(t fatalT, what, op string, request object, do func()) {
	t.Helper()
	request["TableName"], request["ReturnConsumedCapacity"] = p.table.Name, "INDEXES"
	answer, err := p.call(op, request)
	if err != nil {
		t.Fatal(err)
	}
	want, got := consumed(answer), counted(p.meter, do)
	if !maps.Equal(want, got) {
		t.Fatalf("%s: the meter counts %v, DynamoDB Local %v", what, got, want)
	}
}

func (p *pair) commit(t fatalT, w store.Write) {
	t.Helper()
	// To delete what is absent is a conflict in a store, and charged by both.
	if err := p.meter.Commit(t.Context(), w); err != nil && !errors.Is(err, store.ErrConflict) {
		t.Fatal(err)
	}
}

func (p *pair) put(t fatalT, what string, it store.Item) {
	t.Helper()
	p.same(t, what, "PutItem", object{"Item": wireItem(it)}, func() { p.commit(t, store.Put(p.table.Name, it)) })
}

func (p *pair) remove(t fatalT, what string, k store.Key) {
	t.Helper()
	p.same(t, what, "DeleteItem", object{"Key": p.key(k)}, func() { p.commit(t, store.Delete(p.table.Name, k)) })
}

func (p *pair) update(t fatalT, what string, k store.Key, set store.Item, remove ...string) {
	t.Helper()
	names, values := object{}, object{}
	var sets, removes []string
	for i, a := range set {
		names[fmt.Sprint("#s", i)], values[fmt.Sprint(":s", i)] = a.Name, wireValue(a.Value)
		sets = append(sets, fmt.Sprintf("#s%d = :s%d", i, i))
	}
	for i, n := range remove {
		names[fmt.Sprint("#r", i)] = n
		removes = append(removes, fmt.Sprint("#r", i))
	}
	expression := ""
	if len(sets) > 0 {
		expression = "SET " + strings.Join(sets, ", ")
	}
	if len(removes) > 0 {
		expression += " REMOVE " + strings.Join(removes, ", ")
	}
	request := object{"Key": p.key(k), "UpdateExpression": expression, "ExpressionAttributeNames": names}
	if len(values) > 0 {
		request["ExpressionAttributeValues"] = values
	}
	p.same(t, what, "UpdateItem", request, func() { p.commit(t, store.Update(p.table.Name, k, set, remove)) })
}

func (p *pair) get(t fatalT, what string, k store.Key) {
	t.Helper()
	p.same(t, what, "GetItem", object{"Key": p.key(k), "ConsistentRead": true}, func() {
		if _, err := p.meter.Get(t.Context(), p.table.Name, k); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	})
}

func (p *pair) query(t fatalT, what string, q store.Query) {
	t.Helper()
	q.Table = p.table.Name
	partition := p.table.PartitionKey
	request := object{"ConsistentRead": q.Index == ""}
	if q.Index != "" {
		request["IndexName"], partition = q.Index, p.table.Index(q.Index).PartitionKey
	}
	if q.Limit > 0 {
		request["Limit"] = q.Limit
	}
	request["KeyConditionExpression"], request["ExpressionAttributeNames"] = "#p = :p", object{"#p": partition}
	request["ExpressionAttributeValues"] = object{":p": object{"S": q.Partition}}
	p.same(t, what, "Query", request, func() {
		for _, err := range p.meter.Query(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// item makes an item at ACC#1/SUB#n of so many bytes, with further attributes.
func item(n, bytes int, more ...store.Attribute) store.Item {
	it := store.NewItem(append(more, store.Attribute{Name: "PK", Value: store.S("ACC#1")},
		store.Attribute{Name: "SK", Value: store.S(fmt.Sprint("SUB#", n))})...)
	if rest := bytes - metering.ItemBytes(it) - len("Fill"); rest >= 0 {
		it.Set("Fill", store.S(strings.Repeat("x", rest)))
	}
	return it
}

// brief tells an item's attributes without their long values.
func brief(it store.Item) string {
	var b strings.Builder
	for _, a := range it {
		fmt.Fprintf(&b, "%s=%.30s ", a.Name, fmt.Sprint(a.Value.Str(), " of ",
			metering.ItemBytes(store.Item{{Name: "", Value: a.Value}})))
	}
	return b.String()
}

func text(name, value string) store.Attribute {
	return store.Attribute{Name: name, Value: store.S(value)}
}

func key(n int) store.Key { return store.Key{PK: "ACC#1", SK: fmt.Sprint("SUB#", n)} }

func TestSingleWritesAreAsOnDynamoDBLocal(t *testing.T) {
	p := newPair(t)
	day, last, email := text("Day", "2026-01-05"), text("Last", "2025"), text("Email", "a@example.com")
	for _, n := range []int{20, 1024, 1025, 2048, 2049, 5000} {
		p.put(t, fmt.Sprint("new, bytes ", n), item(n, n))
	}
	p.put(t, "replaced by the same", item(1024, 1024))
	p.put(t, "grows", item(1024, 4000))
	p.put(t, "shrinks", item(1024, 100))
	p.remove(t, "delete, large", key(5000))
	p.remove(t, "delete, gone already", key(5000))

	k := key(1)
	p.put(t, "into one index", item(1, 900, day, last, email))
	p.put(t, "the same again", item(1, 900, day, last, email))
	p.update(t, "attribute of no index", k, store.NewItem(text("Open", "x")))
	p.update(t, "projected attribute", k, store.NewItem(text("Email", "b@example.com")))
	p.update(t, "projected attribute, to what it is", k, store.NewItem(text("Email", "b@example.com")))
	p.update(t, "index key", k, store.NewItem(text("Day", "2026-02-05")))
	p.update(t, "index sort key", k, store.NewItem(text("Last", "2026")))
	p.update(t, "into the second index", k, store.NewItem(text("SKU", "plan")))
	p.update(t, "attribute of the second alone", k, store.NewItem(text("Open", "y")))
	p.update(t, "out of the first", k, nil, "Day")
	p.update(t, "out of both", k, store.NewItem(text("Email", "c@example.com")), "SKU")
	p.update(t, "in no index", k, store.NewItem(text("Email", "d@example.com")))
	p.put(t, "into both, large row in one", item(1, 3000, day, last, email, text("SKU", "plan")))
	p.put(t, "both keys, large to small", item(1, 900, text("Day", "2026-03-05"), last, text("SKU", "other")))
	p.update(t, "projected attribute grows over 1 KB", k, store.NewItem(text("Email", strings.Repeat("e", 1500))))
	p.update(t, "and shrinks", k, store.NewItem(text("Email", "e")))
	p.remove(t, "delete from both", k)
}

func TestReadsAreAsOnDynamoDBLocal(t *testing.T) {
	p := newPair(t)
	p.get(t, "nothing there", key(1))
	for _, n := range []int{30, 4096, 4097, 8192, 8193} {
		p.put(t, "put", item(n, n))
		p.get(t, fmt.Sprint("bytes ", n), key(n))
	}
	p.query(t, "sizes are added up, then rounded", store.Query{Partition: "ACC#1"})
	p.query(t, "with a limit", store.Query{Partition: "ACC#1", Limit: 2})
	for n := range 24 {
		p.put(t, "put", item(10_000+n, 1500, text("Day", "2026-01-05"), text("Last", "2025"),
			text("Email", strings.Repeat("e", n))))
		p.query(t, fmt.Sprint("rows in the index: ", n+1), store.Query{Index: "by-day", Partition: "2026-01-05"})
	}
}

// TestAPageIsAMegabyte compares page by page: the store's query follows them all.
func TestAPageIsAMegabyte(t *testing.T) {
	p := newPair(t)
	for n := range 5 {
		p.put(t, "put", item(n, 390_000+n*4096))
	}
	total := map[string]float64{}
	pages := 0
	request := object{"TableName": p.table.Name, "ReturnConsumedCapacity": "INDEXES", "ConsistentRead": true,
		"KeyConditionExpression":    "PK = :p",
		"ExpressionAttributeValues": object{":p": object{"S": "ACC#1"}}}
	for more := true; more; pages++ {
		answer, err := p.call("Query", request)
		if err != nil {
			t.Fatal(err)
		}
		for index, n := range consumed(answer) {
			total[index] += n
		}
		request["ExclusiveStartKey"], more = answer["LastEvaluatedKey"]
	}
	before := p.meter.Usage()
	got := counted(p.meter, func() {
		for _, err := range p.meter.Query(t.Context(), store.Query{Table: p.table.Name, Partition: "ACC#1"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	if requests := sumOf(p.meter.Usage().Since(before)).Times; !maps.Equal(got, total) || requests != pages {
		t.Errorf("the meter counts %v in %d pages, DynamoDB Local %v in %d", got, requests, total, pages)
	}
}

// TestAnyWriteIsAsOnDynamoDBLocal puts, updates and deletes at random. The common sort key of
// the indexes is always there, as it is in Duesday's items: DynamoDB Local charges an index for
// an item that has now the one and now the other of its keys, though it is in the index neither
// before nor after, and the documentation says that this costs nothing.
func TestAnyWriteIsAsOnDynamoDBLocal(t *testing.T) {
	p := newPair(t)
	values := rapid.OneOf(
		rapid.Map(rapid.StringMatching("[a-zé]{1,9}"), store.S),
		rapid.Map(rapid.IntRange(900, 1100), func(n int) store.Value { return store.S(strings.Repeat("x", n)) }),
		rapid.Map(rapid.Int64(), store.Int),
		rapid.Map(rapid.Int64(), func(n int64) store.Value {
			return store.M(store.NewItem(text("a", "b"), store.Attribute{Name: "l",
				Value: store.L(store.Bool(true), store.Int(n))}))
		}))
	attributes := func(t *rapid.T) (it store.Item) {
		for _, name := range []string{"Day", "SKU", "Last"} { // keys of indexes: few values, so that they come again
			if name == "Last" || rapid.Bool().Draw(t, name) {
				it.Set(name, store.S(rapid.SampledFrom([]string{"1", "2", strings.Repeat("3", 800)}).Draw(t, name)))
			}
		}
		for _, name := range []string{"Email", "Open", "Fill"} {
			if rapid.Bool().Draw(t, name) {
				it.Set(name, values.Draw(t, name))
			}
		}
		return it
	}
	account := 0 // a new one for each try, so that it begins with nothing
	rapid.Check(t, func(rt *rapid.T) {
		account++
		for range rapid.IntRange(1, 6).Draw(rt, "writes") {
			k := store.Key{PK: fmt.Sprintf("ACC#%09d", account),
				SK: rapid.SampledFrom([]string{"SUB#1", "SUB#2"}).Draw(rt, "key")}
			it := attributes(rt)
			old, err := p.meter.Get(t.Context(), p.table.Name, k)
			there := err == nil
			switch op := rapid.IntRange(0, 5).Draw(rt, "op"); {
			case op == 0:
				p.remove(rt, fmt.Sprintf("delete of %s", brief(old)), k)
			case op < 3 && there && len(it) > 0:
				var remove []string
				for _, a := range old {
					if !p.table.IsKey(a.Name) && !it.Has(a.Name) && a.Name != "Last" && rapid.Bool().Draw(rt, "remove") {
						remove = append(remove, a.Name)
					}
				}
				p.update(rt, fmt.Sprintf("update of %s, set %s, remove %v", brief(old), brief(it), remove), k, it, remove...)
			default:
				p.table.SetKey(&it, k)
				p.put(rt, fmt.Sprintf("put of %s over %s", brief(it), brief(old)), it)
			}
		}
	})
}

// TestNumbersAreAsOnDynamoDBLocal finds the size that Local gives to a number by filling its
// item up to the border of a write unit.
func TestNumbersAreAsOnDynamoDBLocal(t *testing.T) {
	p := newPair(t)
	check := func(t fatalT, n string) {
		t.Helper()
		v, err := store.Number(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, bytes := range []int{1024, 1025} {
			p.put(t, fmt.Sprintf("%s in %d bytes", n, bytes), item(1, bytes, store.Attribute{Name: "N", Value: v}))
			p.remove(t, "delete", key(1))
		}
	}
	for _, n := range []string{"0", "1", "12", "123", "1000", "1700000000", "1745678901", "-1", "-12", "-123",
		"0.5", "1.2", "12.5", "1.25", "0.001", "-0.05",
		"100000000000000000000", "12345678901234567890123456789012345678", "1e100", "1.5e-100"} {
		check(t, n)
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt, rapid.StringMatching(`-?[0-9]{1,15}(\.[0-9]{1,12})?`).Draw(rt, "number"))
	})
}

// TestLocalChargesTransactionsOtherwise shows how far DynamoDB Local is from the documented
// figures: it doubles once too often, index rows twice too often. We count what is documented.
func TestLocalChargesTransactionsOtherwise(t *testing.T) {
	p := newPair(t)
	it := item(1, 1500, text("Day", "2026-01-05"), text("Last", "2025"))
	other := item(2, 100)
	put := func(it store.Item) object {
		return object{"Put": object{"TableName": p.table.Name, "Item": wireItem(it)}}
	}
	answer, err := p.call("TransactWriteItems", object{"ReturnConsumedCapacity": "INDEXES",
		"TransactItems": []object{put(it), put(other)}})
	if err != nil {
		t.Fatal(err)
	}
	got := counted(p.meter, func() {
		if err := p.meter.Commit(t.Context(), store.Put(p.table.Name, it), store.Put(p.table.Name, other)); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("two puts of 1,500 and 100 bytes, one of them in an index: documented %v, DynamoDB Local %v", got,
		consumed(answer))
	if want := map[string]float64{"": 2*2 + 2*1, "by-day": 1}; !maps.Equal(got, want) {
		t.Errorf("the meter counts %v, documented %v", got, want)
	}
}
