package cause_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/delivery/cause"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/shop"
	"github.com/duesday/duesday/internal/test/storetest"
)

// A counter counts what is written.
type counter struct {
	*storetest.Faulty
	commits, writes int
}

func (c *counter) Commit(ctx context.Context, writes ...store.Write) error {
	c.commits, c.writes = c.commits+1, c.writes+len(writes)
	return c.Faulty.Commit(ctx, writes...)
}

// A scene is a shop with an engine that has its causes told, and the deliveries.
type scene struct {
	*shop.Shop
	*engine.Engine
	to    *delivery.Service
	count *counter
	seen  map[string]bool // rows of effects

	versions map[string][]float64 // of messages about a refund or dispute, by its id, in the order of told
}

func newScene(t *testing.T, endpoint bool) *scene {
	s := &scene{Shop: shop.New(t, 1, 0), seen: map[string]bool{}, versions: map[string][]float64{}}
	s.count = &counter{Faulty: storetest.NewFaulty(s.Mem)}
	s.Engine = s.Shop.Engine(s.count, s.Box)
	s.to = delivery.New(delivery.Options{Store: s.Mem, Tables: s.Shop.Tables, Now: time.Now,
		Days: func(context.Context) (int, error) { return 30, nil }})
	cause.Of(s.Engine.Records, s.to)
	if endpoint {
		if _, _, err := s.to.Create(t.Context(), "https://example.com", nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second) // until this process has the list
	}
	return s
}

func (s *scene) subscribe(account, method string) billing.Name {
	s.Helper()
	return s.subscribeFor(account, method, s.Due)
}

// subscribeFor creates a subscription whose first payment is on the day.
func (s *scene) subscribeFor(account, method string, day civil.Date) billing.Name {
	s.Helper()
	n := billing.NewSubscription{Account: account, Email: "a@example.com", ID: "s", SKU: "k", PaymentDay: day.Day(),
		Method: method, ReminderDays: 7, NextPayment: day}
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		s.Fatal(err)
	}
	n.Amount = money.New(999, usd)
	made, err := s.CreateSubscription(s.Context(), n)
	if err != nil {
		s.Fatal(err)
	}
	return made.Name
}

func (s *scene) run() {
	s.Helper()
	if _, err := job.Payments(s.Context(), s.Engine, job.Options{Workers: 1}); err != nil {
		s.Fatal(err)
	}
}

// told returns the types of the new effects, a row each, sorted.
func (s *scene) told() (all []string) {
	s.Helper()
	for shard := range 16 {
		for it, err := range s.Mem.Query(s.Context(), store.Query{Table: s.Shop.Tables.Outbox.Name, Partition: fmt.Sprintf("WHK#%02d", shard)}) {
			if err != nil {
				s.Fatal(err)
			}
			e, err := outbox.Decode(it)
			var events []delivery.Event
			if err := json.Unmarshal([]byte(e.Data["events"]), &events); err != nil {
				s.Fatal(err)
			}
			var types []string
			for _, x := range events {
				types = append(types, x.Type)
				versioned := map[string]string{"receipt.created": "number", "run.finished": "run"} // which never change
				if x.Data[cmp.Or(versioned[x.Type], "version")] == nil {
					s.Errorf("%s has no version: %v", x.Type, x.Data)
				}
				if body, _ := json.Marshal(x); strings.Contains(string(body), "example.com") || err != nil {
					s.Errorf("%s, %v", body, err)
				}
			}
			if !s.seen[e.ID] {
				s.seen[e.ID] = true
				for _, noun := range []string{"refund", "dispute"} {
					if id, ok := events[0].Data[noun].(string); ok {
						s.versions[id] = append(s.versions[id], events[0].Data["version"].(float64))
					}
				}
				all = append(all, strings.Join(types, " "))
			}
		}
	}
	slices.Sort(all)
	return all
}

// drain counts the waiting rows, and gives numbers.
func (s *scene) drain() {
	s.Helper()
	o := outbox.New(s.Store, s.Shop.Tables.Outbox, s.Now, nowhere{}, nil).Counting(report.Tally(s.Records)).
		Numbering(numbering.New(s.Records, false))
	if _, err := o.Drain(s.Context(), 1); err != nil {
		s.Fatal(err)
	}
}

type nowhere struct{}

func (nowhere) Deliver(context.Context, outbox.Effect) error { return nil }

func (s *scene) want(what string, types ...string) {
	s.Helper()
	if got := s.told(); !slices.Equal(got, types) {
		s.Errorf("%s: got %q, want %q", what, got, types)
	}
}

// TestCauses: each step of a subscription's life writes one row with its events.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, true)
		ok := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		n := s.subscribe("1", "pm_card_visa")
		s.want("create", "subscription.created")
		s.run()
		s.want("charge", "period.paid", "run.finished")
		s.drain()
		s.want("drain", "receipt.created")
		s.drain()
		s.want("drain, again")
		ok(s.Pause(t.Context(), n))
		s.want("pause", "subscription.paused")
		ok(s.Resume(t.Context(), n))
		s.want("resume", "subscription.resumed")
		email := "b@example.com"
		ok(account.Update(t.Context(), s.Records, n.Account, account.Change{Email: &email}))
		s.want("email address", "subscription.updated")
		ok(s.Cancel(t.Context(), n, true))
		s.want("cancel at the end", "subscription.updated")
		ok(s.Cancel(t.Context(), n, false))
		s.want("cancel", "subscription.canceled")
		_, _, err := s.Refunds().Refund(t.Context(), refund.Order{Name: n})
		ok(nil, err)
		s.want("refund", "refund.created", "refund.succeeded")
		s.subscribe("2", "pm_card_authenticationRequired")
		s.told()
		s.run()
		s.want("authentication", "period.action_required", "run.finished")
		s.subscribe("3", "pm_card_visa_chargeDeclinedStolenCard")
		s.told()
		s.run()
		s.want("hard decline", "run.finished", "subscription.past_due period.failed")
		s.subscribe("4", "")
		s.told()
		s.run()
		s.want("no method", "period.parked", "run.finished")
	})
}

// TestCauses_Upgrade: an upgrade tells when it is requested, and when it is paid or has ended.
func TestCauses_Upgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, true)
		n := s.subscribe("1", "pm_card_visa")
		s.run()
		s.told()
		for _, sku := range []string{"plus", "max"} {
			time.Sleep(24 * time.Hour)
			if sku == "max" {
				if _, err := s.UpdateSubscription(t.Context(), n, billing.Change{Method: new("pm_card_visa_chargeDeclinedStolenCard")}); err != nil {
					t.Fatal(err)
				}
				s.told()
			}
			if _, err := s.UpgradeNow(t.Context(), n, upgrade.Order{SKU: &sku}); err != nil {
				t.Fatal(err)
			}
			paid := map[string]string{"plus": "subscription.updated period.paid", "max": "subscription.updated"}[sku]
			s.want(sku, "subscription.updated", paid)
		}
	})
}

// TestCauses_OfOthers: refunds and disputes that others make at the processor write one row each time their state
// changes, and none while nothing is new. Each later message of one has a higher version.
func TestCauses_OfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, true)
		n := s.subscribe("1", "pm_card_visa")
		s.run()
		s.told()
		sub, err := s.Subscription(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		collect := func(what string, types ...string) {
			t.Helper()
			for range 2 { // again: nothing is new
				if _, err := s.Refunds().Collect(t.Context(), time.Time{}); err != nil {
					t.Fatal(err)
				}
				s.want(what, types...)
				types = nil
			}
		}
		for _, x := range []struct {
			kind   processor.ReversalKind
			states string // at the processor, one after the other
			types  string
		}{
			{processor.Disputed, "pending succeeded failed", "dispute.created dispute.lost dispute.won"},
			{processor.Disputed, "pending failed", "dispute.created dispute.won"},
			{processor.Disputed, "pending canceled", "dispute.created dispute.canceled"},
			{processor.Refunded, "pending succeeded failed", "refund.created refund.succeeded refund.failed"},
			{processor.Refunded, "pending canceled", "refund.created refund.canceled"},
			{processor.Disputed, "succeeded", "dispute.created+dispute.lost"},
		} {
			var id string
			types := strings.Fields(x.types)
			for i, state := range strings.Fields(x.states) {
				if id == "" {
					r, err := s.Box.MakeReversal(processor.Reversal{Kind: x.kind, Ref: sub.LastCharge, Amount: sub.Amount, State: processor.ReversalState(state)})
					if err != nil {
						t.Fatalf("%s %s: %v", x.kind, x.states, err)
					}
					id = r.ID
				} else if err := s.Box.MoveReversal(id, processor.ReversalState(state)); err != nil {
					t.Fatalf("%s %s: %v", x.kind, x.states, err)
				}
				collect(fmt.Sprintf("%s %s, %s", x.kind, x.states, state), strings.ReplaceAll(types[i], "+", " "))
			}
		}
		asks := &billing.ReversalRecord{Name: n, ReversalID: "du_1", Ref: "du_1", Kind: processor.Disputed, State: processor.ReversalInquiry}
		refused := &billing.ReversalRecord{Name: n, ReversalID: "rf_1", Kind: processor.Refunded, State: processor.ReversalFailed}
		claims, shown := *asks, *refused
		claims.State, shown.Ref = processor.ReversalPending, "re_1"
		for _, x := range []struct {
			was, now *billing.ReversalRecord
			types    string
		}{{nil, asks, "dispute.created"}, {asks, &claims, "dispute.updated"}, {nil, refused, "refund.created refund.failed"},
			{refused, &shown, "refund.updated"}} { // the sandbox has no inquiries, and refuses nothing that it shows then
			rows, err := s.Records.Reversed(t.Context(), x.was, x.now)
			if err == nil {
				err = s.Mem.Commit(t.Context(), rows...)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.want("a record", x.types)
			<-time.After(time.Second)
		}
		if len(s.versions) != 8 {
			t.Errorf("versions: %v", s.versions)
		}
		for id, versions := range s.versions {
			if !slices.IsSorted(versions) || len(slices.Compact(slices.Clone(versions))) != len(versions) {
				t.Errorf("%s: versions %v", id, versions)
			}
		}
	})
}

// TestCauses_Reminder: the reminder of a payment writes one row, and the next run writes none.
func TestCauses_Reminder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, true)
		s.subscribeFor("1", "pm_card_visa", s.Due.AddDays(7))
		s.subscribeFor("2", "pm_card_visa", s.Due.AddDays(8))
		s.told()
		<-time.After(time.Second)
		for _, types := range [][]string{{"reminder.due", "run.finished"}, {"run.finished"}} {
			if _, err := job.Reminders(t.Context(), s.Engine, job.Options{Workers: 1}); err != nil {
				t.Fatal(err)
			}
			s.want("reminders", types...)
		}
	})
}

// TestNoEndpoint_NoCost: without an endpoint, a charge commits and writes what it would without the causes.
func TestNoEndpoint_NoCost(t *testing.T) {
	cost := map[string][2]int{}
	for name, set := range map[string]struct{ causes, endpoint bool }{"without": {}, "no endpoint": {causes: true}, "endpoint": {true, true}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, set.endpoint)
			if !set.causes {
				s.Engine.Beside, s.Engine.Reversed, s.Engine.RunEnded = nil, nil, nil
			}
			s.subscribe("1", "pm_card_visa")
			s.count.commits, s.count.writes = 0, 0
			s.run()
			cost[name] = [2]int{s.count.commits, s.count.writes}
		})
	}
	with := cost["no endpoint"]
	if cost["without"] != with {
		t.Error(cost)
	}
	with[1] += 2 // the effects of the charge and the run
	if cost["endpoint"] != with {
		t.Error(cost)
	}
}
