package engine_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// The subscriptions of a world to be spoilt, on 2024-03-01, by their accounts: a1 has paid two
// periods, one of them refunded; a2 waits for its retry day; a3 is parked; a4 was canceled; a5 has
// paid its one installment; a6 has failed; a7 has paid two of three installments; a8 is due in April;
// a9 waits for its customer.
func spoilWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	w.settings(t, "receipt-months=12")
	w.create(one("2024-01-31"))
	w.create(one("2024-02-29", of("a2"), method("pm_card_visa_chargeDeclined")))
	w.create(one("2024-02-29", of("a3"), method("")))
	canceled := w.create(one("2024-01-31", of("a4")))
	w.create(one("2024-01-31", of("a5"), func(n *billing.NewSubscription) { n.Installments = 1 }))
	w.create(one("2024-01-31", of("a6"), method("pm_card_visa_chargeDeclinedLostCard")))
	w.create(one("2024-01-31", of("a7"), func(n *billing.NewSubscription) { n.Installments = 3 }))
	w.create(one("2024-04-30", of("a8")))
	w.create(one("2024-02-29", of("a9"), method("pm_card_authenticationRequired")))
	w.daily("2024-01-31")
	_, err := w.start().Cancel(t.Context(), canceled, false)
	mustNot(t, err)
	w.goTo(date("2024-02-24"))
	w.daily("2024-03-01")
	w.refund(t, refund.Order{Name: named("a1")}, "once")
	return w
}

// named is the subscription of the account.
func named(account string) billing.Name { return billing.Name{Account: account, ID: "s1", SKU: "gold"} }

// itemsOf returns the account's items whose sort keys have the prefix.
func (w *world) itemsOf(t *testing.T, account, prefix string) (items []store.Item) {
	t.Helper()
	q := store.Query{Table: w.tables.RecurringPayments.Name, Partition: "ACC#" + account, Prefix: prefix}
	for it, err := range w.spy.mem.Query(t.Context(), q) {
		mustNot(t, err)
		items = append(items, it)
	}
	return items
}

// chargeOf returns the reference of the account's n-th receipt.
func (w *world) chargeOf(t *testing.T, account string, n int) string {
	t.Helper()
	return w.itemsOf(t, account, "REC#")[n].Str(schema.Charge)
}

// A spoiling is one way to spoil a store or a ledger. It uses the helpers of a hand.
type spoiling struct {
	what, want string
	do         func(h *hand)
}

// A hand spoils a world.
type hand struct {
	t *testing.T
	*world
}

// set writes attributes of the account's subscription; the zero Value removes one.
func (h *hand) set(account string, pairs ...any) {
	h.spoil(h.t, named(account), func(it *store.Item) { change(it, pairs) })
}

func change(it *store.Item, pairs []any) {
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			it.Set(pairs[i].(string), store.S(v))
		case int:
			it.Set(pairs[i].(string), store.Int(int64(v)))
		case bool:
			it.Set(pairs[i].(string), store.Bool(v))
		case store.Value:
			it.Set(pairs[i].(string), v)
		case nil:
			it.Remove(pairs[i].(string))
		}
	}
}

// open changes the open period of the account's subscription.
func (h *hand) open(account string, pairs ...any) {
	h.spoil(h.t, named(account), func(it *store.Item) {
		o := it.Get(schema.OpenPeriod).Map().Clone()
		change(&o, pairs)
		it.Set(schema.OpenPeriod, store.M(o))
	})
}

func (h *hand) commit(w store.Write) { mustNot(h.t, h.spy.mem.Commit(h.t.Context(), w)) }

// first changes the first item of the account with the prefix.
func (h *hand) first(account, prefix string, pairs ...any) {
	it := h.itemsOf(h.t, account, prefix)[0].Clone()
	change(&it, pairs)
	h.commit(store.Put(h.tables.RecurringPayments.Name, it))
}

// drop deletes the first item of the account with the prefix.
func (h *hand) drop(account, prefix string) {
	h.commit(store.Delete(h.tables.RecurringPayments.Name, billing.KeyOf(h.itemsOf(h.t, account, prefix)[0])))
}

// rows bends the rows of an index.
func (h *hand) rows(index string, bend func(store.Item) []store.Item) {
	h.plant.store = func(_ *world, s store.Store) store.Store { return &bentIndex{s, index, bend} }
}

// A bentIndex is a store whose index shows other rows than its items have.
type bentIndex struct {
	store.Store
	index string
	bend  func(store.Item) []store.Item
}

func (b *bentIndex) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for it, err := range b.Store.Query(ctx, q) {
			rows := []store.Item{it}
			if err == nil && q.Index == b.index {
				rows = b.bend(it.Clone())
			}
			for _, it := range rows {
				if !yield(it, err) {
					return
				}
			}
		}
	}
}

// of returns a bend for the rows of one account.
func bendOf(account string, bend func(store.Item) []store.Item) func(store.Item) []store.Item {
	return func(it store.Item) []store.Item {
		if it.Str(schema.PK) != "ACC#"+account {
			return []store.Item{it}
		}
		return bend(it)
	}
}

// ledgerOf bends what the processor lists.
func (h *hand) ledgerOf(intent func(processor.Intent) []processor.Intent, reversal func(processor.Reversal) []processor.Reversal) {
	h.plant.proc = func(w *world, p processor.Charger) processor.Charger {
		return &bentLedger{gives(w, p).(*giver), intent, reversal}
	}
}

// A bentLedger is a processor that lists something else than it did.
type bentLedger struct {
	*giver
	intent   func(processor.Intent) []processor.Intent
	reversal func(processor.Reversal) []processor.Reversal
}

func bending[T any](list iter.Seq2[T, error], bend func(T) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range list {
			all := []T{v}
			if bend != nil && err == nil {
				all = bend(v)
			}
			for _, v := range all {
				if !yield(v, err) {
					return
				}
			}
		}
	}
}

func (b *bentLedger) List(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Intent, error] {
	return bending(b.giver.List(ctx, r), b.intent)
}

func (b *bentLedger) Reversals(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	return bending(b.giver.Reversals(ctx, r), b.reversal)
}

// charges bends the successes of a1's first period.
func (h *hand) charges(bend func(processor.Intent) []processor.Intent) {
	h.ledgerOf(func(in processor.Intent) []processor.Intent {
		if in.Tag.Account != "a1" || in.Tag.Period != 0 {
			return []processor.Intent{in}
		}
		return bend(in)
	}, nil)
}

// TestVerify_NoticesEachSpoiling: every way of spoiling a store, its indexes or a ledger is a
// problem with its name. Nobody could notice these: another amount, payment method, reminder time
// or address of a subscription, which a person may have chosen; a time zone of an account and all
// its subscriptions; another method or customer of an account; a row of the outbox that is gone,
// since a delivered one is; the record of a run that is gone; a row left in an index on a date that
// no subscription has and no run looks at, which nobody reads; an open period that is gone, whose
// intent the rollback check of the next run finds; and a receipt changed together with its charge.
func TestVerify_NoticesEachSpoiling(t *testing.T) {
	spoilings := slices.Concat(spoiltSubscriptions(), spoiltPeriods(), spoiltIndexes(), spoiltRecords(), spoiltLedgers())
	if len(spoilings) < 35 {
		t.Errorf("%d ways", len(spoilings))
	}
	clean := spoilWorld(t)
	if r, err := clean.start().Verify(t.Context()); err != nil || !r.OK || r.Open != 2 || r.Parked != 1 {
		t.Fatalf("before: %+v, %v", r, err)
	}
	for _, x := range spoilings {
		t.Run(x.what, func(t *testing.T) {
			w := spoilWorld(t)
			x.do(&hand{t, w})
			r, err := w.start().Verify(t.Context())
			mustNot(t, err)
			found := false
			for _, p := range r.Problems {
				found = found || p.Kind == x.want
			}
			if r.OK || !found {
				t.Errorf("want %q among %+v", x.want, r.Problems)
			}
			if len(r.Problems) > 4 {
				t.Errorf("%d problems for one spoiling: %+v", len(r.Problems), r.Problems)
			}
		})
	}
}

func spoiltSubscriptions() []spoiling {
	const next = schema.NextPaymentDate
	return []spoiling{
		{"its date ten years later", "looked at too late", func(h *hand) { h.set("a1", next, "2034-03-31") }},
		{"its date ten years earlier", "never charged", func(h *hand) { h.set("a1", next, "2014-03-31") }},
		{"its date gone", "never charged", func(h *hand) { h.set("a1", next, nil) }},
		{"its date some days early", "looked at too early", func(h *hand) { h.set("a8", next, "2024-04-10") }},
		{"its date in a shard that is not there", "never charged", func(h *hand) { h.set("a1", next, "2024-03-31#07") }},
		{"the sort key of its index gone", "never charged", func(h *hand) { h.set("a1", schema.LastPaymentDate, nil) }},
		{"due before the last run", "left out by a run", func(h *hand) {
			h.set("a8", next, "2024-02-20", schema.Anchor, "2024-02-20", schema.PaymentDay, "20", schema.NextReminderDate, nil)
		}},
		{"a parked row in 2099", "looked at too late", func(h *hand) { h.set("a3", next, "2099-01-01") }},
		{"an open row in 2099", "looked at too late", func(h *hand) { h.set("a9", next, "2099-01-01") }},
		{"a retry ten years later", "looked at too late", func(h *hand) { h.set("a2", next, "2034-03-03") }},
		{"a decline by a clock ten years ahead", "looked at too late", func(h *hand) {
			declined := store.NewItem()
			change(&declined, []any{schema.Attempt, 1, schema.Code, "card_declined", schema.Method, "pm_1",
				schema.ProcessedDate, "2034-03-02T09:00:00.000Z"})
			h.open("a2", schema.RetryDate, "2034-03-03", schema.Attempts, store.L(store.M(declined)))
			h.set("a2", next, "2034-03-03")
		}},
		{"a reminder after the payment", "reminded too late", func(h *hand) {
			h.set("a1", schema.NextReminderDate, "2034-03-24")
		}},
		{"a status that is none", "unreadable subscription", func(h *hand) { h.set("a1", schema.Status, "activ") }},
		{"paused behind everybody's back", "on the agenda", func(h *hand) { h.set("a1", schema.Status, "paused") }},
		{"canceled behind everybody's back", "on the agenda", func(h *hand) { h.set("a1", schema.Status, "canceled") }},
		{"past due, and its last period was paid", "past due without a failure", func(h *hand) {
			h.set("a1", schema.Status, "past_due", next, nil, schema.NextReminderDate, nil)
		}},
		{"past due, and nothing was ever due", "past due without a failure", func(h *hand) {
			h.set("a8", schema.Status, "past_due", next, nil, schema.NextReminderDate, nil)
		}},
		{"paused without a date", "paused without a record", func(h *hand) {
			h.set("a1", schema.Status, "paused", next, nil, schema.NextReminderDate, nil)
		}},
		{"paused without a date before its first payment", "paused without a record", func(h *hand) {
			h.set("a8", schema.Status, "paused", next, nil, schema.NextReminderDate, nil)
		}},
		{"canceled by nobody's request", "canceled without a request", func(h *hand) {
			h.set("a1", schema.Status, "canceled", next, nil, schema.NextReminderDate, nil)
		}},
		{"canceled by nobody's request before its first payment", "canceled without a request", func(h *hand) {
			h.set("a8", schema.Status, "canceled", next, nil, schema.NextReminderDate, nil)
		}},
		{"another time zone", "time zone differs", func(h *hand) { h.set("a1", schema.TimeZone, "Pacific/Kiritimati") }},
		{"a time zone that is none", "time zone differs", func(h *hand) { h.set("a1", schema.TimeZone, "Mars/Base") }},
		{"completed before the last installment", "completed too early", func(h *hand) {
			h.set("a7", schema.Status, "completed", next, nil, schema.NextReminderDate, nil)
		}},
		{"completed before its first payment", "completed too early", func(h *hand) {
			h.set("a8", schema.Status, "completed", next, nil, schema.NextReminderDate, nil)
		}},
		{"completed with an installment written off", "completed too early", func(h *hand) {
			void := billing.EndedPeriod{Name: named("a5"), SKU: "gold", Period: 1, Ending: billing.EndVoid, Due: date("2024-02-29"),
				Ended: h.now(), Reason: "the subscription was cancelled", Amount: usd(1299)}
			h.commit(void.Write(h.tables.RecurringPayments.Name))
			h.set("a5", schema.Period, 2, schema.Paid, 2, schema.Installments, 2)
		}},
		{"canceled without its overdue period", "period dropped", func(h *hand) { h.set("a4", schema.CancelDate, "2024-02-29") }},
		{"parked no longer", "parked period", func(h *hand) { h.set("a3", schema.Status, nil) }},
		{"another payment day", "invalid schedule", func(h *hand) { h.set("a1", schema.PaymentDay, "15") }},
		{"an anchor on another day", "invalid schedule", func(h *hand) { h.set("a1", schema.Anchor, "2024-01-15") }},
		{"an anchor ten years later", "due dates differ", func(h *hand) { h.set("a1", schema.Anchor, "2034-01-31") }},
		{"an anchor ten years later, not yet paid", "looked at too early", func(h *hand) {
			h.set("a8", schema.Anchor, "2034-04-30")
		}},
		{"its anchor gone", "unreadable subscription", func(h *hand) { h.set("a1", schema.Anchor, nil) }},
		{"an anchor of a later period", "unreadable subscription", func(h *hand) { h.set("a1", schema.AnchorPeriod, 7) }},
		{"a period too many", "period skipped", func(h *hand) { h.set("a1", schema.Period, 3) }},
		{"a period too few", "receipt for a future period", func(h *hand) { h.set("a1", schema.Period, 1) }},
		{"all installments paid, and active", "paid off and active", func(h *hand) { h.set("a7", schema.Installments, 2) }},
		{"too many installments paid", "too many installments", func(h *hand) { h.set("a7", schema.Paid, 4) }},
		{"an interval in a unit of a later version", "unreadable subscription", func(h *hand) { h.set("a1", schema.Interval, "10 hours") }},
		{"no amount", "invalid amount", func(h *hand) { h.set("a1", schema.PaymentAmount, "0.00") }},
		{"an amount that is none", "unreadable subscription", func(h *hand) { h.set("a1", schema.PaymentAmount, "many") }},
		{"another address", "copy of the address differs", func(h *hand) { h.set("a1", schema.Email, "eve@example.com") }},
		{"its version gone", "version missing", func(h *hand) { h.set("a1", schema.Version, nil) }},
		{"itself gone", "receipt without a subscription", func(h *hand) { h.drop("a1", "SUB#") }},
		{"a second one of its id", "two subscriptions with one ID", func(h *hand) {
			it := h.item(h.t, named("a8"))
			it.Set(schema.SK, store.S("SUB#s1#SKU#tin"))
			it.Set(schema.SKU, store.S("tin"))
			h.commit(store.Put(h.tables.RecurringPayments.Name, it))
		}},
		{"a request that is none", "unreadable subscription", func(h *hand) { h.set("a9", schema.Requested, "stop") }},
	}
}

func spoiltPeriods() []spoiling {
	return []spoiling{
		{"another intent bound", "unknown to the processor", func(h *hand) { h.open("a9", schema.Ref, "pi_other") }},
		{"an intent of another subscription bound", "open intent differs", func(h *hand) {
			h.open("a9", schema.Ref, h.chargeOf(h.t, "a7", 0))
		}},
		{"another period open", "inconsistent open period", func(h *hand) { h.open("a9", schema.Period, 3) }},
		{"a state that is none", "unreadable subscription", func(h *hand) { h.open("a9", schema.State, "lost") }},
		{"a receipt gone", "charge without a receipt", func(h *hand) { h.drop("a1", "REC#") }},
		{"a receipt of less", "amounts differ", func(h *hand) { h.first("a1", "REC#", schema.ProcessedAmount, "1.00") }},
		{"a receipt of another charge", "receipt without a charge", func(h *hand) {
			h.first("a1", "REC#", schema.Charge, "pi_other")
		}},
		{"a second receipt", "two receipts", func(h *hand) { h.first("a1", "REC#", schema.SK, "REC#2024-02-01T00:00:00.000Z#2") }},
		{"a manual payment beside a charge", "two receipts", func(h *hand) {
			r := billing.Receipt{Name: named("a7"), SKU: "gold", Kind: billing.External, Due: date("2024-01-31"), Processed: h.now(),
				Amount: usd(1299)}
			h.commit(store.Put(h.tables.RecurringPayments.Name, r.Item()))
		}},
		{"a receipt of another period", "two receipts", func(h *hand) { h.first("a1", "REC#", schema.Period, 1) }},
		{"a receipt of another due date", "due dates differ", func(h *hand) {
			h.first("a1", "REC#", schema.DueDate, "2024-01-30")
		}},
		{"a receipt without an amount", "unreadable receipt", func(h *hand) {
			h.first("a1", "REC#", schema.ProcessedAmount, "many")
		}},
		{"the record of a period to be collected gone", "collected without a record", func(h *hand) {
			h.set("a6", schema.Collect, 1, schema.NextPaymentDate, "2024-03-01")
			h.drop("a6", "PER#")
		}},
		{"a period to be collected without a date", "never charged", func(h *hand) { h.set("a6", schema.Collect, 1) }},
		{"a mark of a period to come", "inconsistent collection", func(h *hand) { h.set("a1", schema.Collect, 9) }},
		{"the record of a failed period gone", "period skipped", func(h *hand) { h.drop("a6", "PER#") }},
		{"a manual payment that is gone", "inconsistent manual payment", func(h *hand) {
			h.set("a2", schema.Requested, "manual")
		}},
		{"a request with a key that is none", "unknown request kind", func(h *hand) {
			k := billing.KeyedRequest{Name: named("a1"), Kind: "gift", Amount: usd(1)}
			ctx := h.keyed(context.Background(), "wire")
			k.Fix(ctx)
			if err := call.Store(ctx, h.spy); err != nil {
				panic(err)
			}
		}},
		{"an end that is none", "unknown period ending", func(h *hand) { h.first("a6", "PER#", schema.Status, "lost") }},
		{"a record of a period to come", "record for a future period", func(h *hand) {
			h.first("a6", "PER#", schema.Period, 4, schema.SK, "PER#s1#SKU#gold#000004", schema.DueDate, "2024-05-31")
		}},
		{"a paid period ended", "paid and ended", func(h *hand) {
			h.first("a6", "PER#", schema.PK, "ACC#a1")
		}},
	}
}

func spoiltIndexes() []spoiling {
	gone := func(store.Item) []store.Item { return nil }
	other := func(name string) func(store.Item) []store.Item {
		return func(it store.Item) []store.Item {
			it.Set(name, store.S("other"))
			return []store.Item{it}
		}
	}
	return []spoiling{
		{"a row by status gone", "lookup row missing", func(h *hand) {
			h.commit(store.Delete(h.tables.RecurringPayments.Name, store.Key{PK: "IDX#SUB#active", SK: "gold#a1/s1"}))
		}},
		{"a row by address gone", "lookup row missing", func(h *hand) {
			h.commit(store.Delete(h.tables.RecurringPayments.Name, store.Key{PK: "IDX#EMAIL", SK: "ada@example.com#a1"}))
		}},
		{"a row of another status", "lookup row fits no item", func(h *hand) {
			h.commit(store.Put(h.tables.RecurringPayments.Name, attributes(schema.PK, "IDX#SUB#paused", schema.SK, "gold#a1/s1")))
		}},
		{"a row of no account", "lookup row fits no item", func(h *hand) {
			h.commit(store.Put(h.tables.RecurringPayments.Name, attributes(schema.PK, "IDX#CUSTOMER#/cus_1", schema.SK, "nobody")))
		}},
		{"a row of payments gone", "index row missing", func(h *hand) { h.rows(schema.PaymentIndex, bendOf("a1", gone)) }},
		{"a row of reminders gone", "index row missing", func(h *hand) { h.rows(schema.ReminderIndex, bendOf("a8", gone)) }},
		{"an index of payments empty for the parked", "index row missing", func(h *hand) {
			h.rows(schema.PaymentIndex, bendOf("a3", gone))
		}},
		{"a row of another amount", "index row differs", func(h *hand) {
			h.rows(schema.PaymentIndex, bendOf("a1", other(schema.PaymentAmount)))
		}},
		{"a row of another address", "index row differs", func(h *hand) {
			h.rows(schema.ReminderIndex, bendOf("a8", other(schema.Email)))
		}},
		{"a row left on an old date", "index row differs", func(h *hand) {
			h.plant.store = func(_ *world, s store.Store) store.Store { return &leftRow{s, h.item(h.t, named("a8"))} }
		}},
	}
}

// A leftRow is a store whose index still shows an item on the day before.
type leftRow struct {
	store.Store
	it store.Item
}

func (l *leftRow) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	if q.Index != schema.PaymentIndex || q.Partition != "2024-02-28" {
		return l.Store.Query(ctx, q)
	}
	return func(yield func(store.Item, error) bool) {
		it := l.it.Clone()
		it.Set(schema.NextPaymentDate, store.S(q.Partition))
		yield(it, nil)
	}
}

func spoiltRecords() []spoiling {
	return []spoiling{
		{"an account gone", "subscription without its account", func(h *hand) { h.drop("a1", "ACC") }},
		{"an address change that was cut off", "unfinished address change", func(h *hand) {
			h.first("a1", "ACC", schema.FanOut, true)
		}},
		{"another time zone of its account", "time zone differs", func(h *hand) {
			h.first("a1", "ACC", schema.TimeZone, "Pacific/Kiritimati")
		}},
		{"money from before the store was made", "sum differs", func(h *hand) {
			for _, quarter := range []string{"2024-01-30T09:00#USD", "2019-02-01T09:15#USD"} {
				it := billing.ItemAt(store.Key{PK: "SUM#" + quarter[:7], SK: quarter})
				change(&it, []any{schema.Version, 1, schema.Amounts, store.M(store.NewItem(
					store.Attribute{Name: "collected", Value: store.S("12.99")}))})
				h.commit(store.Put(h.tables.RecurringPayments.Name, it))
			}
		}},
		{"a run that does not balance", "run does not balance", func(h *hand) {
			h.spoilRun(func(counts *store.Item) { counts.Set("due", store.Int(99)) })
		}},
		{"the record of a refund gone", "refund not recorded", func(h *hand) { h.drop("a1", "REF#") }},
		{"the record of a smaller refund", "amounts differ", func(h *hand) { h.first("a1", "REF#", schema.Amount, "1.00") }},
	}
}

// spoilRun changes the counts of the first run.
func (h *hand) spoilRun(change func(counts *store.Item)) {
	q := store.Query{Table: h.tables.RecurringPayments.Name, Partition: "RUN#payments", Prefix: "2024", Limit: 1}
	for it, err := range h.spy.mem.Query(h.t.Context(), q) {
		mustNot(h.t, err)
		counts := it.Get(schema.Counts).Map().Clone()
		change(&counts)
		it = it.Clone()
		it.Set(schema.Counts, store.M(counts))
		h.commit(store.Put(h.tables.RecurringPayments.Name, it))
	}
}

func spoiltLedgers() []spoiling {
	return []spoiling{
		{"a second success", "charged twice", func(h *hand) {
			h.charges(func(in processor.Intent) []processor.Intent {
				other := in
				other.Ref += "_other"
				return []processor.Intent{in, other}
			})
		}},
		{"a success gone", "receipt without a charge", func(h *hand) {
			h.charges(func(processor.Intent) []processor.Intent { return nil })
		}},
		{"a success of more", "amounts differ", func(h *hand) {
			h.charges(func(in processor.Intent) []processor.Intent {
				in.Amount = usd(9999)
				return []processor.Intent{in}
			})
		}},
		{"a success of nobody", "charge without a subscription", func(h *hand) {
			h.charges(func(in processor.Intent) []processor.Intent {
				other := in
				other.Ref, other.Tag.Account = "pi_other", "nobody"
				return []processor.Intent{in, other}
			})
		}},
		{"a success of another installation", "charged by another installation", func(h *hand) {
			h.charges(func(in processor.Intent) []processor.Intent {
				other := in
				other.Ref, other.Tag.Installation = "pi_other", "OTHER"
				return []processor.Intent{in, other}
			})
		}},
		{"a refund gone", "refund unknown to the processor", func(h *hand) {
			h.ledgerOf(nil, func(processor.Reversal) []processor.Reversal { return nil })
		}},
		{"a refund that nobody asked for", "refund not recorded", func(h *hand) {
			h.ledgerOf(nil, func(r processor.Reversal) []processor.Reversal {
				other := r
				other.ID, other.Request = "re_other", ""
				return []processor.Reversal{r, other}
			})
		}},
		{"a refund twice", "refunded twice", func(h *hand) {
			h.ledgerOf(nil, func(r processor.Reversal) []processor.Reversal {
				other := r
				other.ID = "re_other"
				return []processor.Reversal{r, other}
			})
		}},
	}
}

// TestVerify_ReceiptsRememberTheirTime: a change of receipt-months makes no problem of a receipt that
// has expired by its own time, and excuses none that has not.
func TestVerify_ReceiptsRememberTheirTime(t *testing.T) {
	for _, x := range []struct{ first, then string }{{"1", "12"}, {"12", "1"}, {"0", "1"}, {"1", "0"}} {
		t.Run(x.first+" then "+x.then, func(t *testing.T) {
			w := newWorld("2024-01-31T09:00", planted{})
			w.settings(t, "receipt-months="+x.first)
			w.create(one("2024-01-31"))
			w.start().run(w.today())
			w.settings(t, "receipt-months="+x.then) // at the same instant
			for range 100 {
				w.tomorrow()
				w.start().run(w.today())
			}
			w.report(t)
			kept := w.itemsOf(t, "a1", "REC#")
			for _, it := range kept {
				snapshot := w.spy.mem.Snapshot()
				mustNot(t, snapshot.Commit(t.Context(), store.Delete(w.tables.RecurringPayments.Name, billing.KeyOf(it))))
				w.plant.store = func(*world, store.Store) store.Store { return snapshot }
				r, err := w.start().Verify(t.Context())
				mustNot(t, err)
				others := slices.DeleteFunc(r.Problems, func(p audit.Problem) bool { return p.Kind == "sum differs" })
				if len(others) != 1 || others[0].Kind != "charge without a receipt" {
					t.Errorf("without the receipt of %s: %+v", it.Str(schema.DueDate), r.Problems)
				}
			}
		})
	}
}

// TestVerify_TwoSKUsOfOneID: legal in the published key, and each is charged once.
func TestVerify_TwoSKUsOfOneID(t *testing.T) {
	w := newWorld("2023-06-28T09:00", planted{})
	other := foreign("1", "1", "SK", "SUB#1#SKU#888", "SKU", "888")
	w.write(foreign("1", "1"), other)
	r := w.adopt(t, map[string]string{"1": "pm_card_visa"})
	if len(r.Duplicates) != 1 || !strings.Contains(r.Duplicates[0].Reason, "another subscription with this ID") {
		t.Errorf("adoption: %+v", r.Duplicates)
	}
	for range 40 {
		w.start().run(w.today())
		w.tomorrow()
	}
	a, err := w.start().Verify(t.Context())
	mustNot(t, err)
	if len(a.Problems) != 1 || a.Problems[0].Kind != "two subscriptions with one ID" || a.Receipts != 4 || a.Charges != 4 ||
		!strings.Contains(a.Problems[0].Detail, "888") || !strings.Contains(a.Problems[0].Detail, "999") {
		t.Errorf("verify: %+v", a)
	}
}

// TestVerify_BothKeysOfOneSubscription: of a subscription that other tools have written under both
// forms of its key, one item is charged, the other is named by every run, by due, by adoption and,
// as the one problem, by verify.
func TestVerify_BothKeysOfOneSubscription(t *testing.T) {
	for _, x := range []struct {
		name, sku string
		more      []store.Item
	}{{"one SKU", "999", nil}, {"two SKUs", "999", []store.Item{foreign("1", "1", "SK", "SUB#1#SKU#888", "SKU", "888")}}, {"the twin first", "!9", nil}} {
		t.Run(x.name, func(t *testing.T) {
			w, more := newWorld("2023-06-28T09:00", planted{}), x.more
			w.write(append(more, foreign("1", "1", "SK", "SUB#1#SKU#"+x.sku), foreign("1", "1", "SK", "SUB#1#SKU"+x.sku, "PaymentAmount",
				"99.99"))...)
			if r := w.adopt(t, map[string]string{"1": "pm_card_visa"}); len(r.Duplicates) != 1+len(more) {
				t.Errorf("adoption: %+v", r.Duplicates)
			}
			for range 40 {
				named := map[string]int{}
				rep, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 2, Each: func(r engine.Result) {
					if r.Outcome == engine.OutcomeUnreadable {
						named[r.Name.String()+": "+r.Reason]++
					}
				}})
				mustNot(t, err)
				if len(named) != 1 || named["1/SUB#1#SKU"+x.sku+": SK is the second key of the subscription under SUB#1#SKU#"+x.sku] != 1 ||
					rep.Counts[engine.OutcomeUnreadable] != 1 || !rep.NeedsPerson() {
					t.Fatalf("on %s the run names %v: %+v", w.today(), named, rep.Counts)
				}
				w.tomorrow()
			}
			rows := 0
			for row, err := range w.start().GetDuePaymentsByDate(t.Context(), date("2023-06-28")) {
				if mustNot(t, err); row.Problem != "SK is the second key of the subscription under SUB#1#SKU#"+x.sku {
					t.Errorf("row %+v", row)
				}
				rows++
			}
			a, err := w.start().Verify(t.Context())
			mustNot(t, err)
			both := slices.DeleteFunc(a.Problems, func(p audit.Problem) bool { return strings.Contains(p.Detail, "two SKUs") })
			if rows != 1 || len(both) != 1 || both[0].Kind != "two subscriptions with one ID" ||
				!strings.Contains(both[0].Detail, "SUB#1#SKU#"+x.sku+" is charged, and SUB#1#SKU"+x.sku+" is not") ||
				a.Charges != 2+2*len(more) || a.Receipts != a.Charges || a.Subscriptions != 1+len(more) {
				t.Errorf("%d rows, verify: %+v", rows, a)
			}
		})
	}
}

// TestVerify_TheTextsKey: the row of an item under the key of the model's text is looked for, too.
func TestVerify_TheTextsKey(t *testing.T) {
	w := newWorld("2023-06-20T09:00", planted{})
	w.write(foreign("1", "1", "SK", "SUB#1#SKU999"))
	w.adopt(t, map[string]string{"1": "pm_card_visa"})
	verify := func() []string {
		var kinds []string
		r, err := w.start().Verify(t.Context())
		mustNot(t, err)
		for _, p := range r.Problems {
			kinds = append(kinds, p.Kind)
		}
		return kinds
	}
	equal(t, verify(), nil)
	h := &hand{t, w}
	h.rows(schema.PaymentIndex, func(store.Item) []store.Item { return nil })
	equal(t, verify(), []string{"index row missing"})
}

// TestVerify_BesideALaggingIndex: a row that is shown at the second look is no problem.
func TestVerify_BesideALaggingIndex(t *testing.T) {
	w := spoilWorld(t)
	looks := map[string]int{}
	h := &hand{t, w}
	h.rows(schema.PaymentIndex, func(it store.Item) []store.Item {
		if looks[it.Str(schema.PK)]++; looks[it.Str(schema.PK)] == 1 {
			return nil
		}
		return []store.Item{it}
	})
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	if !r.OK {
		t.Errorf("%+v", r.Problems)
	}
}
