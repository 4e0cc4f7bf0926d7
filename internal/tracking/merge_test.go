package tracking

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write golden files anew")

// A tableOf lists the test cases of one merge function. Each group has a line with the number of
// its cases and a checksum of their results.
type tableOf struct{ lines []string }

func (t *tableOf) group(name string, do func(told func(result ...any))) {
	n, sum := 0, fnv.New64a()
	do(func(result ...any) {
		n++
		fmt.Fprintln(sum, result...)
	})
	t.lines = append(t.lines, fmt.Sprintf("%s: %d cases, %016x\n", name, n, sum.Sum64()))
}

// TestMerge_Table merges every object below into every state below and compares the results with
// testdata/merge.golden, so that any changed result shows there.
func TestMerge_Table(t *testing.T) {
	var table tableOf
	for i, at := range statePayments() {
		table.group(fmt.Sprint("payment ", i), func(told func(...any)) {
			for _, o := range paymentObjects() {
				p := at()
				changes, _ := mergePayment(&p, o, false)
				told(p.Status, p.Codes, p.Amount, p.Currency, p.Invoice, p.Subscription, p.Created, p.Refunded, p.Refunds,
					p.Disputes, p.told, changes)
			}
		})
	}
	for i, states := range slices.Collect(slices.Chunk(stateSubscriptions(), 16)) {
		table.group(fmt.Sprint("subscription ", i), func(told func(...any)) {
			for _, o := range subscriptionObjects() {
				for _, r := range []rule{{}, {fresh: true}, {force: true}, {endedBy: []string{"past_due"}},
					{endedBy: []string{"past_due"}, fresh: true}} {
					for _, s := range states {
						changes, undecided, ask := mergeSubscription(&s, o, r)
						told(s.Status, s.Ending, s.Detail, s.Schedule, s.Created, s.progress, changes, undecided, ask)
					}
				}
			}
		})
	}
	table.group("state of a purchase", func(told func(...any)) {
		for _, p := range statePurchases() {
			for _, s := range stateSubscriptions() {
				for _, id := range []string{"sub_1", "sub_2", "sched_1"} {
					p := Purchase{Subscriptions: maps.Clone(p)}
					s.ID = id
					s.Status, s.Ending = s.decide()
					told(mergeSubscriptionState(&p, &s), p.Subscriptions, s.Status, s.Ending)
				}
			}
		}
	})
	effects := []EffectState{NotAsked, Waits, Asked, DoneWith}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	table.group("effects of a purchase", func(told func(...any)) {
		for _, states := range statePurchases() {
			for _, fulfilment := range effects {
				for _, unsubscribe := range effects {
					for _, paid := range []bool{false, true} {
						p := Purchase{Subscriptions: states, Fulfilment: Effect{State: fulfilment},
							Unsubscribe: Effect{State: unsubscribe}}
						told(askEffects(&p, paid, "paid pi_1", now), p.Fulfilment, p.Unsubscribe)
					}
				}
			}
		}
	})
	got := strings.Join(table.lines, "")
	const file = "testdata/merge.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the table has changed; go test -update writes it anew:\n%s", got)
	}
}

func statePayments() []func() Payment {
	of := func(p Payment, refunds ...Refund) func() Payment {
		return func() Payment {
			p := p
			for _, r := range refunds {
				if p.Refunds == nil {
					p.Refunds = map[string]Refund{}
				}
				p.Refunds[r.ID] = r
			}
			if p.Invoice != "" {
				p.Disputes = map[string]Dispute{"dp_1": {ID: "dp_1", Amount: 5, Status: "under_review"}}
			}
			return p
		}
	}
	many := make([]string, maxCodes)
	for i := range many {
		many[i] = string(rune('c' + i))
	}
	return []func() Payment{
		of(Payment{}),
		of(Payment{Status: PaymentNew, Amount: 100, Currency: "USD"}),
		of(Payment{Status: PaymentFailed, Amount: 100, Currency: "USD", Codes: []string{"b"}}),
		of(Payment{Status: PaymentFailed, Amount: 100, Currency: "USD", Codes: many}),
		of(Payment{Status: PaymentPaid, Amount: 100, Currency: "USD", Invoice: "in_1", Subscription: "sub_1"}),
		of(Payment{Status: PaymentPaid, Amount: 100, Currency: "USD", Refunded: 30, told: 30}),
		of(Payment{Status: PaymentPaid, Amount: 100, Currency: "USD", Refunded: 20},
			Refund{ID: "re_1", Amount: 20, Status: "pending"}),
		of(Payment{Status: PaymentPaid, Amount: 100, Currency: "USD", Refunded: 30, told: 50},
			Refund{ID: "re_1", Amount: 20, Status: "failed"}, Refund{ID: "re_2", Amount: 30, Status: "succeeded"}),
	}
}

func paymentObjects() (list []Object) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, status := range []string{"requires_payment_method", "processing", "succeeded", "canceled"} {
		for _, amount := range []int64{0, 50, 100, 200} {
			for _, currency := range []string{"USD", "JPY", "XXX"} {
				for _, code := range []string{"", "a", "b", "z"} {
					for _, failed := range []bool{false, true} {
						list = append(list, Object{Kind: KindPayment, ID: "pi_1", Status: status, Amount: amount, Currency: currency,
							Code: code, Failed: failed})
					}
				}
			}
		}
	}
	list = append(list, Object{Kind: KindPayment, ID: "pi_1", Invoice: "in_2", Subscription: "sub_2", Created: created},
		Object{Kind: KindPayment, ID: "pi_1", Subscription: "sub_2"}, Object{Kind: KindPayment, ID: "pi_1", Invoice: "in_2"},
		Object{Kind: KindCharge, ID: "ch_1", Created: created})
	for _, kind := range []string{KindCharge, KindRefund} {
		for _, sum := range []int64{0, 10, 30, 60} {
			for _, status := range []string{"pending", "requires_action", "succeeded", "canceled", "failed", "unknown"} {
				first := Refund{ID: "re_1", Amount: 20, Status: status}
				list = append(list, Object{Kind: kind, ID: "x_1", Refunded: sum},
					Object{Kind: kind, ID: "x_1", Refunded: sum, Refunds: []Refund{first}},
					Object{Kind: kind, ID: "x_1", Refunded: sum, Refunds: []Refund{{Amount: 7, Status: status}, first}},
					Object{Kind: kind, ID: "x_1", Refunded: sum,
						Refunds: []Refund{first, {ID: "re_3", Amount: 5, Status: "succeeded"}}})
			}
		}
	}
	for _, id := range []string{"dp_1", "dp_2"} {
		for _, status := range []string{"warning_needs_response", "needs_response", "under_review", "charge_refunded", "won",
			"lost", "unknown"} {
			list = append(list, Object{Kind: KindDispute, ID: id, Amount: 9, Status: status})
		}
	}
	return list
}

func stateSubscriptions() (list []Subscription) {
	for _, schedule := range []string{"", "sched_1"} {
		for _, told := range []string{"", "not_started", "released", "completed", "canceled"} {
			if schedule == "" && told != "" {
				continue
			}
			for _, detail := range []string{"", "incomplete", "active", "past_due", "canceled", "incomplete_expired"} {
				for bits := range 16 {
					s := Subscription{ID: "sub_1", Detail: detail, Schedule: schedule, Created: time.Unix(int64(bits), 0).UTC(),
						progress: progress{scheduleStatus: told, over: bits&1 != 0, expired: bits&2 != 0, soft: bits&4 != 0,
							activated: bits&8 != 0, asking: bits&12 == 12}}
					s.Status, s.Ending = s.decide()
					list = append(list, s)
				}
			}
		}
	}
	return list
}

func subscriptionObjects() (list []Object) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, status := range []string{"", "incomplete", "trialing", "active", "past_due", "unpaid", "paused", "canceled",
		"incomplete_expired"} {
		list = append(list, Object{Kind: KindSubscription, ID: "sub_1", Status: status, Created: created},
			Object{Kind: KindSubscription, ID: "sub_1", Status: status, Schedule: "sched_2"})
	}
	for _, status := range []string{"not_started", "active", "released", "completed", "canceled", "unknown"} {
		list = append(list, Object{Kind: KindSchedule, ID: "sched_1", Status: status},
			Object{Kind: KindSchedule, ID: "sched_2", Status: status, Created: created})
	}
	return list
}

// statePurchases returns the states with no, one and two subscriptions.
func statePurchases() []map[string]SubscriptionState {
	states := []SubscriptionState{{Status: SubscriptionNew}, {Status: SubscriptionActive},
		{Status: SubscriptionNew, Schedule: "sched_1"}, {Status: SubscriptionTerminated, Ending: EndCanceled},
		{Status: SubscriptionTerminated, Ending: EndCompleted}}
	list := []map[string]SubscriptionState{nil}
	for _, a := range states {
		list = append(list, map[string]SubscriptionState{"sub_1": a}, map[string]SubscriptionState{"sched_1": a})
		for _, b := range states {
			list = append(list, map[string]SubscriptionState{"sub_1": a, "sub_2": b},
				map[string]SubscriptionState{"sub_1": a, "sched_1": b})
		}
	}
	return list
}
