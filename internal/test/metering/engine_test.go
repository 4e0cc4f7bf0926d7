package metering_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/metering"
)

// TestTheEngineSendsWhatIsCounted does the same to the engine on DynamoDB Local, which says what
// it was told that it has consumed, and to a Meter: single writes, with the token, and reads.
func TestTheEngineSendsWhatIsCounted(t *testing.T) {
	l := newLocal(t, table)
	engine, err := dynamostore.Open(t.Context(), dynamostore.Options{Tables: []store.Table{l.table},
		Client: dynamotest.Client(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	meter := newMeter(t, metering.Options{Tables: []store.Table{l.table}, TokenBytes: metering.TokenBytes})
	both := func(what string, do func(s store.Store) error) {
		t.Helper()
		read, write := engine.Consumed()
		before := meter.Usage()
		if err := do(engine); err != nil {
			t.Fatal(what, err)
		}
		if err := do(meter); err != nil {
			t.Fatal(what, err)
		}
		r, w := engine.Consumed()
		if got, want := sumOf(meter.Usage().Since(before)).Units, (metering.Units{Read: r - read,
			Write: w - write}); got != want {
			t.Errorf("%s: the meter counts %v, the engine has consumed %v", what, got, want)
		}
	}
	write := func(what string, w store.Write) {
		t.Helper()
		both(what, func(s store.Store) error { return s.Commit(t.Context(), w) })
	}
	day, last := text("Day", "2026-01-05"), text("Last", "2025")
	fits := capacity.WriteUnitBytes - metering.TokenBytes
	write("put, just in one unit", store.Put(l.table.Name, item(1, fits, day, last)))
	write("put, just not", store.Put(l.table.Name, item(2, fits+1, day, last), store.Absent()))
	write("put over it", store.Put(l.table.Name, item(1, fits, text("Day", "2026-02-05"), last),
		store.AttributeEquals("Day", store.S("2026-01-05"))))
	write("into the index that projects all", store.Update(l.table.Name, key(1), store.NewItem(text("SKU", "1")), nil))
	write("its row changes with the token", store.Update(l.table.Name, key(1), store.NewItem(text("SKU", "1")), nil))
	write("check, which is a read", store.Check(l.table.Name, key(2)))
	both("get", func(s store.Store) error { _, err := s.Get(t.Context(), l.table.Name, key(1)); return err })
	for _, q := range []store.Query{{Partition: "ACC#1"}, {Partition: "ACC#1", Limit: 1},
		{Index: "by-day", Partition: "2026-02-05"}, {Index: "by-sku", Partition: "1"}} {
		q.Table = l.table.Name
		both("query "+q.Index, func(s store.Store) (err error) {
			for _, err = range s.Query(t.Context(), q) {
				continue
			}
			return err
		})
	}
	scan := func(s store.Store) (err error) {
		for _, err = range s.Scan(t.Context(), store.Scan{Table: l.table.Name}) {
			continue
		}
		return err
	}
	both("scan", scan)
	for n := range 30 { // of one size, because the pages of a scan begin anywhere
		write("put", store.Put(l.table.Name, item(100+n, 100_000)))
	}
	both("scan of three pages", scan)
	write("delete", store.Delete(l.table.Name, key(1)))
}

// TestMailIsClaimedForWhatIsCounted drains mail from DynamoDB Local and from a Meter, with the
// claims that every process on DynamoDB makes: a mail costs its claim and its deletion, and one
// that says what it adds to sums is claimed by the transaction that adds it, of which Local counts
// no update and twice what is documented for the rest.
func TestMailIsClaimedForWhatIsCounted(t *testing.T) {
	l := newLocal(t, schema.New("").Outbox)
	engine, err := dynamostore.Open(t.Context(), dynamostore.Options{Tables: []store.Table{l.table},
		Client: dynamotest.Client(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	meter := newMeter(t, metering.Options{Tables: []store.Table{l.table}, TokenBytes: metering.TokenBytes})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	sums := store.Key{PK: "SUM#2026-01", SK: "a"}
	const mails = 5
	for _, text := range []string{"", "collected 12.99 USD 2026-01-01T00:00"} {
		for i := range mails {
			e := outbox.Effect{ID: "mail " + strconv.Itoa(i), Kind: outbox.KindReceipt, Due: now, Created: now, Sums: text,
				Data: map[string]string{outbox.DataEmail: "ada@example.com"}}
			for _, s := range []store.Store{engine, meter} {
				if err := s.Commit(t.Context(), outbox.Write(l.table.Name, e)); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, before := engine.Consumed()
		counted := meter.Usage()
		for _, s := range []store.Store{engine, meter} {
			r, err := outbox.New(s, l.table, func() time.Time { return now }, taken{}, nil).Claiming(time.Minute).
				Counting(func(context.Context, []string) ([]store.Write, error) {
					it := store.NewItem()
					l.table.SetKey(&it, sums)
					return []store.Write{store.Put(l.table.Name, it)}, nil
				}).Drain(t.Context(), 1)
			if err != nil || r.Delivered != mails {
				t.Fatal(r, err)
			}
		}
		_, after := engine.Consumed()
		var single, transactions float64
		for line, c := range meter.Usage().Since(counted) {
			if line.Transaction {
				transactions += c.Units.Write
			} else {
				single += c.Units.Write
			}
		}
		want := map[bool][2]float64{true: {2 * mails, 0}, false: {mails, 2*mails + 2}}[text == ""]
		if got := [2]float64{single, transactions}; got != want || transactions == 0 && after-before != single {
			t.Errorf("%d mails that add %q to sums: the meter counts %v write units, by themselves and in transactions, want %v; "+
				"Local has consumed %g", mails, text, got, want, after-before)
		}
	}
}

// taken is an outbox.Deliverer that takes every mail.
type taken struct{}

func (taken) Deliver(context.Context, outbox.Effect) error { return nil }
