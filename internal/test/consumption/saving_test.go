package consumption

import (
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/metering"
)

// TestWhatWouldSave measures the alternatives of docs/performance.md, Cost on
// DynamoDB, with items of the sizes that the engine writes: write units per paid period.
func TestWhatWouldSave(t *testing.T) {
	c, err := Measure(t.Context(), Options{Subscriptions: 20})
	if err != nil {
		t.Fatal(err)
	}
	size := func(step, item string) int {
		for _, l := range c.Paid.Lines {
			if l.Step == step && l.Item == item && l.Index == "" {
				return int(l.Bytes) - metering.TokenBytes
			}
		}
		t.Fatalf("no %s of %s", step, item)
		return 0
	}
	tables := schema.New("t-")
	recurring, mails := tables.RecurringPayments.Name, tables.Outbox.Name
	make1 := func(pk, sk, next, reminder string, bytes int) store.Item {
		it := store.NewItem()
		for name, value := range map[string]string{schema.PK: pk, schema.SK: sk, schema.NextPaymentDate: next,
			schema.NextReminderDate: reminder,
			schema.LastPaymentDate:  "2026-01-15T06:00:00.000Z", schema.LastReminderDate: "2026-01-08T06:00:00.000Z"} {
			if value != "" {
				it.Set(name, store.S(value))
			}
		}
		it.Set("Fill", store.S(strings.Repeat("x", max(1, bytes-metering.ItemBytes(it)-4))))
		return it
	}
	open := size(stepBind, itemSubscription)
	sub := func(next, reminder string, more int) store.Write {
		return store.Put(recurring, make1("ACC#1", "SUB#1", next, reminder, open+more))
	}
	receipt := store.Put(recurring, make1("ACC#1", "REC#1", "", "", size(stepSettle, itemReceipt)))
	mail := store.Put(mails, make1("OUT#01", "now#1", "", "", size(stepSettle, itemMail)))
	sent := store.Delete(mails, store.Key{PK: "OUT#01", SK: "now#1"})
	const due, next, reminder = "2026-02-15", "2026-03-15", "2026-03-08"
	bind, settle := sub(due, "", 0), sub(next, reminder, 0)
	for _, a := range []struct {
		name    string
		commits [][]store.Write
		want    float64
	}{
		{"as it is", [][]store.Write{{bind}, {settle, receipt, mail}, {sent}}, 11},
		{"the receipt in the subscription", [][]store.Write{{bind}, {sub(next, reminder, 150), mail}, {sent}}, 9},
		{"mail from a stream of changes", [][]store.Write{{bind}, {settle, receipt}}, 8},
		{"the receipt after the settling", [][]store.Write{{bind}, {settle, mail}, {receipt}, {sent}}, 10},
		{"no index of reminders", [][]store.Write{{bind}, {sub(next, "", 0), receipt, mail}, {sent}}, 10},
		{"receipt and mail in the subscription",
			[][]store.Write{{bind}, {sub(next, reminder, 250)}, {sub(next, reminder, 150)}}, 6},
		{"not bound", [][]store.Write{{settle, receipt, mail}, {sent}}, 10},
		{"above 1 KB", [][]store.Write{{sub(due, "", 500)}, {sub(next, reminder, 500), receipt, mail}, {sent}}, 14},
	} {
		s, err := memstore.Open(tables.All(), func() time.Time { return firstDay() })
		if err != nil {
			t.Fatal(err)
		}
		m, err := metering.NewMeter(s, metering.Options{Tables: tables.All(), TokenBytes: metering.TokenBytes})
		if err != nil {
			t.Fatal(err)
		}
		before := sub(due, "", size(stepRead, itemSubscription)-open)
		if err := m.Commit(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		earlier := m.Usage()
		for _, writes := range a.commits {
			if err := m.Commit(t.Context(), writes...); err != nil {
				t.Fatal(a.name, err)
			}
		}
		var got float64
		for _, c := range m.Usage().Since(earlier) {
			got += c.Units.Write
		}
		if got != a.want {
			t.Errorf("%s: %g write units, docs/performance.md says %g", a.name, got, a.want)
		}
	}
}
