package job_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/shop"
)

// TestShards checks that, for any number of shards, a new subscription is in both indexes at once,
// the access patterns by date find it, and the run charges it. With one shard, the attributes match
// the published model. With more shards, each attribute includes the shard.
func TestShards(t *testing.T) {
	for _, shards := range []int{1, 2, 16, billing.MaxShards} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 60
				s := shop.New(t, shards, n)
				used := map[string]bool{}
				for it, err := range s.Mem.Scan(t.Context(), store.Scan{Table: s.Tables.RecurringPayments.Name}) {
					if err != nil {
						t.Fatal(err)
					}
					if date := it.Str(schema.NextPaymentDate); date != "" {
						used[date] = true
						if it.Str(schema.NextReminderDate)[len("2006-01-02"):] != date[len("2006-01-02"):] {
							t.Errorf("two shards: %s and %s", date, it.Str(schema.NextReminderDate))
						}
					}
				}
				if shards == 1 && (len(used) != 1 || !used[s.Due.String()]) || shards > 1 &&
					(len(used) < 2 || used[s.Due.String()]) {
					t.Errorf("NextPaymentDate has %v", used)
				}
				e := s.Engine(s.Mem, s.Box)
				payments, reminders := 0, 0
				for row, err := range e.GetDuePaymentsByDate(t.Context(), s.Due) {
					if payments++; err != nil || row.NextPayment != s.Due.String() {
						t.Fatalf("%+v, %v", row, err)
					}
				}
				for row, err := range e.GetDueRemindersByDate(t.Context(), s.Due.AddDays(-7)) {
					if reminders++; err != nil || row.NextPayment != s.Due.String() || strings.Contains(row.NextReminder, "#") {
						t.Fatalf("%+v, %v", row, err)
					}
				}
				if payments != n || reminders != n {
					t.Errorf("%d due payments and %d due reminders, want %d", payments, reminders, n)
				}
				if _, err := job.Payments(t.Context(), e, job.Options{Workers: 4}); err != nil {
					t.Fatal(err)
				}
				s.WantAllCharged(n)
			})
		})
	}
}

// TestBareDatesAreFoundWithShards checks that a run charges a row that another tool wrote without a
// shard, and that the row has a shard from then on.
func TestBareDatesAreFoundWithShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 8, 5)
		table := s.Tables.RecurringPayments.Name
		var keys []store.Key
		for it, err := range s.Mem.Scan(t.Context(), store.Scan{Table: table}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(it.Str(schema.SK), "SUB#") {
				keys = append(keys, store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)})
			}
		}
		for _, k := range keys {
			bare := store.NewItem(store.Attribute{Name: schema.NextPaymentDate, Value: store.S(s.Due.String())})
			if err := s.Mem.Commit(t.Context(), store.Update(table, k, bare, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := job.Payments(t.Context(), s.Engine(s.Mem, s.Box), job.Options{Workers: 2}); err != nil {
			t.Fatal(err)
		}
		s.WantAllCharged(5)
		for _, k := range keys {
			if it, err := s.Mem.Get(t.Context(), table, k); err != nil ||
				!strings.Contains(it.Str(schema.NextPaymentDate), "#") {
				t.Errorf("%s: %s, %v", k.PK, it.Str(schema.NextPaymentDate), err)
			}
		}
	})
}

// TestShardsAreSetOnce checks that the store decides the number of shards, and not the command.
func TestShardsAreSetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 4, 0)
		open := func(shards int) error {
			_, err := engine.Open(t.Context(), engine.Options{Store: s.Mem, Tables: s.Tables, Now: time.Now, Shards: shards})
			return err
		}
		for shards, ok := range map[int]bool{0: true, 4: true, 1: false, 5: false, -1: false, billing.MaxShards + 1: false} {
			if err := open(shards); (err == nil) != ok {
				t.Errorf("%d shards: %v", shards, err)
			}
		}
	})
}
