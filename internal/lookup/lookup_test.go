package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

// A world is a store, a processor and a clock, which survive every process.
type world struct {
	rapid.TB
	store  store.Store
	tables schema.Tables
	box    *sandbox.Sandbox
	clock  atomic.Int64
	shards int
}

func newWorld(t rapid.TB, shards int) *world {
	w := &world{TB: t, tables: schema.New("x-"), shards: shards}
	w.clock.Store(time.Date(2024, 1, 31, 9, 0, 0, 0, time.UTC).UnixNano())
	var err error
	if w.store, err = memstore.Open(w.tables.All(), w.now); err == nil {
		w.box, err = sandbox.Open("", sandbox.Options{Now: w.now})
	}
	w.must(err)
	return w
}

func (w *world) now() time.Time { return time.Unix(0, w.clock.Load()).UTC() }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// open returns the engine of another process, whose commits the hook sees.
func (w *world) open(hook storetest.Hook) (*engine.Engine, error) {
	f := storetest.NewFaulty(w.store)
	f.Hook = hook
	return engine.Open(context.Background(), engine.Options{Store: f, Tables: w.tables, Processor: w.box, Now: w.now,
		Config: engine.DefaultConfig(), Shards: w.shards})
}

func (w *world) engine() *engine.Engine {
	w.Helper()
	e, err := w.open(nil)
	w.must(err)
	return e
}

func usd(minor int64) money.Amount {
	c, _ := money.ParseCurrency("USD")
	return money.New(minor, c)
}

func (w *world) subscription(account, id, sku, method string) billing.NewSubscription {
	return billing.NewSubscription{Account: account, ID: id, SKU: sku, Amount: usd(999), PaymentDay: civil.Of(w.now()).Day(), Method: method,
		Email: account + "@example.com", Customer: "cus_" + account, NextPayment: civil.Of(w.now())}
}

// rows returns the keys of the stored rows, and those that the items should have.
func (w *world) rows() (stored, wanted []string) {
	w.Helper()
	for it, err := range w.store.Scan(context.Background(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		w.must(err)
		if strings.HasPrefix(it.Str(schema.PK), lookup.Prefix) {
			stored = append(stored, it.Str(schema.PK)+" "+it.Str(schema.SK)+" "+it.Str(schema.SKU))
			continue
		}
		rows, err := lookup.Of(it, w.shards)
		w.must(err)
		for _, r := range rows {
			wanted = append(wanted, r.Str(schema.PK)+" "+r.Str(schema.SK)+" "+r.Str(schema.SKU))
		}
	}
	slices.Sort(stored)
	slices.Sort(wanted)
	return stored, wanted
}

func (w *world) wantExact(what string) {
	w.Helper()
	if stored, wanted := w.rows(); !slices.Equal(stored, wanted) {
		without := func(list, others []string) string {
			return strings.Join(slices.DeleteFunc(slices.Clone(list), func(x string) bool { return slices.Contains(others, x) }), "\n")
		}
		w.Fatalf("%s: too many rows:\n%s\ntoo few:\n%s", what, without(stored, wanted), without(wanted, stored))
	}
}

// A step is a random request or run.
type step struct {
	what string
	do   func(ctx context.Context, e *engine.Engine) error
}

func (w *world) step(t *rapid.T) step {
	n := billing.Name{Account: fmt.Sprint("a", rapid.IntRange(0, 3).Draw(t, "account")), ID: fmt.Sprint("s", rapid.IntRange(0, 2).Draw(t, "id"))}
	sku := rapid.SampledFrom([]string{"gold", "gold-plus", "tin"}).Draw(t, "sku")
	method := rapid.SampledFrom([]string{"pm_card_visa", "pm_card_visa_chargeDeclined", "pm_card_chargeDeclinedExpiredCard"}).Draw(t, "method")
	steps := map[string]func(context.Context, *engine.Engine) error{
		"create": func(ctx context.Context, e *engine.Engine) error {
			s := w.subscription(n.Account, n.ID, sku, method)
			if a, err := e.Account(ctx, n.Account); err == nil {
				s.Email, s.Customer = a.Email, a.Payer.Customer
			}
			s.Installments = len(method) % 3
			_, err := e.CreateSubscription(ctx, s)
			return err
		},
		"import": func(ctx context.Context, e *engine.Engine) error {
			batch := []billing.NewSubscription{w.subscription("i"+n.Account, n.ID, sku, method), w.subscription("j"+n.Account, n.ID, sku, method)}
			_, err := bulk.Create(ctx, e.Records, batch)
			return err
		},
		"pause":  func(ctx context.Context, e *engine.Engine) error { _, err := e.Pause(ctx, n); return err },
		"resume": func(ctx context.Context, e *engine.Engine) error { _, err := e.Resume(ctx, n); return err },
		"cancel": func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Cancel(ctx, n, sku == "tin")
			return err
		},
		"plan": func(ctx context.Context, e *engine.Engine) error {
			_, err := e.UpdateSubscription(ctx, n, billing.Change{SKU: &sku})
			return err
		},
		"email": func(ctx context.Context, e *engine.Engine) error {
			email := strings.ToUpper(sku) + "@example.com"
			_, err := account.Update(ctx, e.Records, n.Account, account.Change{Email: &email})
			return err
		},
		"customer": func(ctx context.Context, e *engine.Engine) error {
			_, err := account.Edit(ctx, e.Records, n.Account, func(a *billing.Account) error {
				a.Payer = map[string]processor.Payer{"gold": {}, "tin": {Customer: "cus_9"}, "gold-plus": {Customer: "cus_9", At: "acct_1"}}[sku]
				return nil
			})
			return err
		},
		"run": func(ctx context.Context, e *engine.Engine) error {
			_, err := job.Payments(ctx, e, job.Options{Workers: 2})
			return err
		},
		"day": func(context.Context, *engine.Engine) error { w.clock.Add(int64(24 * time.Hour)); return nil },
	}
	what := rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(t, "step")
	return step{what + " " + n.String() + " " + sku, steps[what]}
}

// TestRowsFitTheItems: after random requests and runs of two processes, of which some die at a commit, the
// rows are those of the items.
func TestRowsFitTheItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.SampledFrom([]int{1, 3}).Draw(t, "shards"))
		processes := []*engine.Engine{w.engine(), w.engine()}
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			s, i := w.step(t), rapid.IntRange(0, 1).Draw(t, "process")
			e := processes[i]
			if n := rapid.IntRange(0, 20).Draw(t, "crash"); n > 0 && n < 5 {
				var err error
				if e, err = w.open(storetest.CrashAt(n, rapid.SampledFrom([]storetest.Phase{storetest.Before, storetest.After}).Draw(t, "phase"))); err != nil {
					continue
				}
			}
			_ = s.do(context.Background(), e) // many are refused
			w.wantExact(s.what)
		}
		w.wantLists(processes[0])
	})
}

// wantLists compares every list with a scan of the items.
func (w *world) wantLists(e *engine.Engine) {
	w.Helper()
	ctx := context.Background()
	all, err := processor.Gather(e.Subscriptions(ctx))
	w.must(err)
	addresses := map[string]string{} // a change of the address may not have reached the subscriptions
	for a, err := range e.Accounts(ctx) {
		w.must(err)
		addresses[a.ID] = a.Email
	}
	for _, status := range []billing.Status{"", billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub, billing.Completed} {
		for _, sku := range []string{"", "gold", "gold-plus", "tin", "go"} {
			for _, email := range []string{"", "a1@example.com", "Gold@example.com", "nobody@example.com"} {
				f := lookup.Filter{Status: status, SKU: sku, Email: email}
				var want []string
				for _, s := range all {
					if (status == "" || s.Status == status) && (sku == "" || s.SKU == sku) && (email == "" || strings.EqualFold(addresses[s.Account], email)) {
						want = append(want, f.Place(s))
					}
				}
				slices.Sort(want)
				if got := w.list(e, f, ""); !slices.Equal(got, want) {
					w.Fatalf("%+v: %q, want %q", f, got, want)
				}
				for i, after := range want {
					if got := w.list(e, f, after); !slices.Equal(got, want[i+1:]) {
						w.Fatalf("%+v after %q: %q, want %q", f, after, got, want[i+1:])
					}
				}
			}
		}
	}
}

func (w *world) list(e *engine.Engine, f lookup.Filter, after string) (places []string) {
	w.Helper()
	for s, err := range lookup.Subscriptions(context.Background(), e.Records, f, after) {
		w.must(err)
		places = append(places, f.Place(s))
	}
	return places
}

func (w *world) accounts(e *engine.Engine, email string, p processor.Payer, after string) (ids string) {
	w.Helper()
	for a, err := range lookup.Accounts(context.Background(), e.Records, email, p, after) {
		w.must(err)
		ids += a.ID + " "
	}
	return ids
}

func TestAccounts(t *testing.T) {
	w := newWorld(t, 1)
	e := w.engine()
	for _, id := range []string{"b", "a", "c"} {
		_, err := account.Create(t.Context(), e.Records, id, billing.Account{Email: "Ada#1@Example.com"})
		w.must(err)
	}
	_, err := account.Edit(t.Context(), e.Records, "c", func(a *billing.Account) error {
		a.Payer = processor.Payer{Customer: "cus_1", At: "acct_1"}
		return nil
	})
	w.must(err)
	for _, tt := range []struct {
		email string
		payer processor.Payer
		after string
		want  string
	}{
		{"ada#1@example.COM", processor.Payer{}, "", "a b c "}, {"ada#1@example.com", processor.Payer{}, "ada#1@example.com#a", "b c "},
		{"ada", processor.Payer{}, "", ""}, {"", processor.Payer{Customer: "cus_1", At: "acct_1"}, "", "c "},
		{"", processor.Payer{Customer: "cus_1"}, "", ""}, {"", processor.Payer{}, "", "a b c "},
		{"", processor.Payer{}, "ada#1@example.com#b", "c "},
	} {
		if got := w.accounts(e, tt.email, tt.payer, tt.after); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// TestHints: a list leaves out a row that no longer fits, names an unreadable item, and goes on.
func TestHints(t *testing.T) {
	w := newWorld(t, 1)
	e := w.engine()
	for _, id := range []string{"1", "2", "3"} {
		_, err := e.CreateSubscription(t.Context(), w.subscription("a", id, "gold", "pm_card_visa"))
		w.must(err)
	}
	set := func(id string, a store.Attribute) {
		key := billing.Name{Account: "a", ID: id, SKU: "gold"}.Key()
		w.must(w.store.Commit(t.Context(), store.Update(e.Table, key, store.NewItem(a), nil)))
	}
	set("1", store.Attribute{Name: schema.Status, Value: store.S("paused")})
	set("2", store.Attribute{Name: schema.PaymentAmount, Value: store.S("a lot")})
	var got, bad []string
	for s, err := range lookup.Subscriptions(t.Context(), e.Records, lookup.Filter{Status: billing.Active}, "") {
		if item, is := errors.AsType[*billing.ItemError](err); is {
			bad = append(bad, item.Key.SK)
			continue
		}
		w.must(err)
		got = append(got, s.Name.String())
	}
	if !slices.Equal(got, []string{"a/3"}) || !slices.Equal(bad, []string{"SUB#2#SKU#gold"}) {
		t.Errorf("%q, unreadable %q", got, bad)
	}
	w.must(lookup.Fill(t.Context(), e.Records, true, nil)) // finds the one that another tool has paused
	if got := w.list(e, lookup.Filter{Status: billing.Paused}, ""); !slices.Equal(got, []string{"gold#a/1"}) {
		t.Errorf("paused: %q", got)
	}
}

// TestSubscriptions_WhileStatusesChange: a list of all statuses has each subscription once, also one whose
// status changes while the list is read.
func TestSubscriptions_WhileStatusesChange(t *testing.T) {
	w := newWorld(t, 3)
	e := w.engine()
	const n = 60
	for i := range n {
		_, err := e.CreateSubscription(t.Context(), w.subscription("a", fmt.Sprint(100+i), "gold", "pm_card_visa"))
		w.must(err)
	}
	seen := map[string]int{}
	for s, err := range lookup.Subscriptions(t.Context(), e.Records, lookup.Filter{SKU: "gold"}, "") {
		w.must(err)
		seen[s.ID]++
		for i := range n {
			change := e.Pause
			if (i+len(seen))%3 == 0 {
				change = e.Resume
			}
			_, _ = change(t.Context(), billing.Name{Account: "a", ID: fmt.Sprint(100 + i)}) // some have the status
		}
	}
	for i := range n {
		if times := seen[fmt.Sprint(100+i)]; times != 1 {
			t.Errorf("%d is there %d times", 100+i, times)
		}
	}
}

// TestSubscriptions_ManyRows: a list of more rows than are read at once is whole, from any place on.
func TestSubscriptions_ManyRows(t *testing.T) {
	w := newWorld(t, 1)
	e := w.engine()
	var want []string
	var batch []billing.NewSubscription
	for i := range 900 {
		s := w.subscription("a", fmt.Sprint(1000+i), "gold", "pm_card_visa")
		batch, want = append(batch, s), append(want, "gold#a/"+s.ID)
	}
	_, err := bulk.Create(t.Context(), e.Records, batch)
	w.must(err)
	for i := range 900 {
		if i%3 != 0 && i < 800 {
			_, err = e.Pause(t.Context(), billing.Name{Account: "a", ID: fmt.Sprint(1000 + i)})
			w.must(err)
		}
	}
	for i := -1; i < len(want); i += 50 {
		after := ""
		if i >= 0 {
			after = want[i]
		}
		if got := w.list(e, lookup.Filter{}, after); !slices.Equal(got, want[i+1:]) {
			t.Errorf("after %q: %d rows, want %d", after, len(got), len(want)-i-1)
		}
	}
	if got := w.list(e, lookup.Filter{Status: billing.Paused, SKU: "gold"}, ""); len(got) != 533 {
		t.Error(len(got), "are paused")
	}
}
