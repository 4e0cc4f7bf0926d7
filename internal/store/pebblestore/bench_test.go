package pebblestore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// The tables of the benchmarks are those of the published model as far as the
// engine's work goes: two indexes with their projections, receipts beside the
// subscription, an outbox.
func paymentTables() []store.Table {
	return []store.Table{
		{
			Name: "payments", PartitionKey: "PK", SortKey: "SK", TTL: "TTL",
			Indexes: []store.Index{
				{Name: "GSI-1", PartitionKey: "NextReminderDate", SortKey: "LastReminderDate",
					Include: []string{"SK", "PK", "SKU", "Email", "NextPaymentDate"}},
				{Name: "GSI-2", PartitionKey: "NextPaymentDate", SortKey: "LastPaymentDate",
					Include: []string{"PK", "SK", "Email", "PaymentDay", "PaymentAmount", "SKU", "PaymentDetails"}},
			},
		},
		{Name: "outbox", PartitionKey: "PK", SortKey: "SK"},
	}
}

func paymentNames() []string {
	return []string{"PK", "SK", "Email", "PaymentDay", "PaymentAmount", "LastPaymentDate", "NextPaymentDate",
		"LastReminderDate", "NextReminderDate", "SKU", "PaymentDetails", "CreatedDate", "ProcessedDate", "ProcessedAmount",
		"TTL", "default-address", "Currency", "PaymentMethod", "Version", "Period", "Anchor", "Interval", "Status",
		"Charge", "Kind", "Data"}
}

func account(i int) store.Item {
	return store.NewItem(
		store.Attribute{Name: "PK", Value: store.S(accountKey(i))},
		store.Attribute{Name: "SK", Value: store.S("ACC")},
		store.Attribute{Name: "CreatedDate", Value: store.S("2026-01-05T09:15:39.247Z")},
		store.Attribute{Name: "Email", Value: store.S(fmt.Sprintf("person%07d@example.com", i))},
		store.Attribute{Name: "Status", Value: store.S("active")},
		store.Attribute{Name: "Version", Value: store.Int(1)},
	)
}

func accountKey(i int) string { return fmt.Sprintf("ACC#%08d", i) }

const subscriptionSK = "SUB#main#SKU#coffee-monthly"

func subscription(i int) store.Item {
	return store.NewItem(
		store.Attribute{Name: "PK", Value: store.S(accountKey(i))},
		store.Attribute{Name: "SK", Value: store.S(subscriptionSK)},
		store.Attribute{Name: "Anchor", Value: store.S("2026-01-21")},
		store.Attribute{Name: "CreatedDate", Value: store.S("2026-01-05T09:15:39.247Z")},
		store.Attribute{Name: "Email", Value: store.S(fmt.Sprintf("person%07d@example.com", i))},
		store.Attribute{Name: "Interval", Value: store.S("month")},
		store.Attribute{Name: "LastPaymentDate", Value: store.S(fmt.Sprintf("2026-10-21T02:15:%02d.%03dZ", i/1000%60,
			i%1000))},
		store.Attribute{Name: "LastReminderDate", Value: store.S(fmt.Sprintf("2026-10-14T02:15:%02d.%03dZ", i/1000%60,
			i%1000))},
		store.Attribute{Name: "NextPaymentDate", Value: store.S("2026-11-21")},
		store.Attribute{Name: "NextReminderDate", Value: store.S("2026-11-14")},
		store.Attribute{Name: "PaymentAmount", Value: store.S("12.99")},
		store.Attribute{Name: "PaymentDay", Value: store.Int(21)},
		store.Attribute{Name: "PaymentDetails", Value: store.M(store.NewItem(
			store.Attribute{Name: "Currency", Value: store.S("EUR")},
			store.Attribute{Name: "PaymentMethod", Value: store.S(fmt.Sprintf("pm_%024d", i))},
			store.Attribute{Name: "default-address", Value: store.S("12 Long Lane, 90210 Springfield")},
		))},
		store.Attribute{Name: "Period", Value: store.Int(10)},
		store.Attribute{Name: "SKU", Value: store.S("coffee-monthly")},
		store.Attribute{Name: "Status", Value: store.S("active")},
		store.Attribute{Name: "Version", Value: store.Int(21)},
	)
}

// payment settles one period of subscription i: the item with both index rows
// moving, a receipt of about 200 bytes, an outbox row of about 150.
func payment(i, n int) []store.Write {
	processed := fmt.Sprintf("2026-11-21T%02d:%02d:%02d.%03dZ", n/3_600_000%24, n/60_000%60, n/1000%60, n%1000)
	return []store.Write{
		store.Update("payments", store.Key{PK: accountKey(i), SK: subscriptionSK}, store.NewItem(
			store.Attribute{Name: "LastPaymentDate", Value: store.S(processed)},
			store.Attribute{Name: "NextPaymentDate", Value: store.S(fmt.Sprintf("2026-12-%02d", 1+n%28))},
			store.Attribute{Name: "NextReminderDate", Value: store.S(fmt.Sprintf("2026-11-%02d", 1+n%28))},
			store.Attribute{Name: "Period", Value: store.Int(int64(n))},
			store.Attribute{Name: "Version", Value: store.Int(int64(n))},
		), nil),
		store.Put("payments", store.NewItem(
			store.Attribute{Name: "PK", Value: store.S(accountKey(i))},
			store.Attribute{Name: "SK", Value: store.S(fmt.Sprintf("REC#%s#SKU#coffee-monthly#SUB#main#%08d", processed, n))},
			store.Attribute{Name: "Email", Value: store.S(fmt.Sprintf("person%07d@example.com", i))},
			store.Attribute{Name: "ProcessedAmount", Value: store.S("12.99")},
			store.Attribute{Name: "ProcessedDate", Value: store.S(processed)},
			store.Attribute{Name: "Charge", Value: store.S(fmt.Sprintf("pi_%024d", n))},
			store.Attribute{Name: "Status", Value: store.S("paid")},
			store.Attribute{Name: "TTL", Value: store.Int(1_900_000_000 + int64(n))},
		), store.Absent()),
		store.Put("outbox", store.NewItem(
			store.Attribute{Name: "PK", Value: store.S(fmt.Sprintf("OUT#%02d", i%16))},
			store.Attribute{Name: "SK", Value: store.S(fmt.Sprintf("%s#%012d", processed, n))},
			store.Attribute{Name: "Kind", Value: store.S("receipt")},
			store.Attribute{Name: "Data",
				Value: store.S(fmt.Sprintf(`{"account":"%08d","amount":"12.99","currency":"EUR","charge":"pi_%024d"}`, i, n))},
		), store.Absent()),
	}
}

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.TempDir(), Options{Tables: paymentTables(), Names: paymentNames(), Create: true,
		CacheBytes: 512 << 20,
		Fatal:      func(err error) { panic(err) }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// load imports n accounts with a subscription each, a hundred writes a commit.
func load(b *testing.B, s *Store, n int) {
	b.Helper()
	const perCommit, workers = store.MaxWrites / 2, 8
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				first := int(next.Add(perCommit)) - perCommit
				if first >= n {
					return
				}
				var writes []store.Write
				for i := first; i < min(first+perCommit, n); i++ {
					writes = append(writes, store.Put("payments", account(i), store.Absent()),
						store.Put("payments", subscription(i), store.Absent()))
				}
				if err := s.Commit(context.Background(), writes...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkImport reports subscriptions a second: each an account item and a
// subscription item with two index rows.
func BenchmarkImport(b *testing.B) {
	s := openBench(b)
	b.ResetTimer()
	load(b, s, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "subs/s")
}

// benchSubscriptions is enough that a pass over them is no working set of memtables.
const benchSubscriptions = 200_000

func BenchmarkCommitPayment(b *testing.B) {
	for _, workers := range []int{1, 16, 128, 512} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			s := openBench(b)
			load(b, s, benchSubscriptions)
			if err := s.db.Flush(); err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range workers {
				wg.Go(func() {
					for {
						n := int(next.Add(1))
						if n > b.N {
							return
						}
						// A stride that is prime to the number visits all in no order.
						if err := s.Commit(context.Background(), payment(n*7919%benchSubscriptions, n)...); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// BenchmarkQueryIndex reports the rows a second of a due list.
func BenchmarkQueryIndex(b *testing.B) {
	s := openBench(b)
	load(b, s, benchSubscriptions)
	rows := 0
	b.ResetTimer()
	for rows < b.N {
		for _, err := range s.Query(context.Background(), store.Query{Table: "payments", Index: "GSI-2",
			Partition: "2026-11-21"}) {
			if err != nil {
				b.Fatal(err)
			}
			if rows++; rows >= b.N {
				break
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkGet(b *testing.B) {
	s := openBench(b)
	load(b, s, benchSubscriptions)
	n := 0
	b.ResetTimer()
	for b.Loop() {
		n++
		if _, err := s.Get(context.Background(), "payments", store.Key{PK: accountKey(n * 7919 % benchSubscriptions),
			SK: subscriptionSK}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	d, _ := NewDictionary(paymentNames())
	it, keep := subscription(1), func(name string) bool { return name != "PK" && name != "SK" }
	buf := d.encode(nil, it, keep)
	b.ReportMetric(float64(len(buf)), "bytes")
	for b.Loop() {
		buf = d.encode(buf[:0], it, keep)
	}
}

func BenchmarkDecode(b *testing.B) {
	d, _ := NewDictionary(paymentNames())
	l := newLayout(&paymentTables()[0], 1, d)
	it := subscription(1)
	k := l.KeyOf(it)
	key, value := l.key(k), l.value(it)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.decodeBase(key[2:], value, k.PK); err != nil {
			b.Fatal(err)
		}
	}
}
