package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
)

// A hand is an automation that accepts some actions and fails on request.
type hand struct {
	name  string
	takes []tracking.Action // none: all

	mu    sync.Mutex
	fails error
	did   []tracking.Job
}

// Name implements tracking.Automation.
func (h *hand) Name() string { return h.name }

// Takes implements tracking.Automation.
func (h *hand) Takes(a tracking.Action) bool { return len(h.takes) == 0 || slices.Contains(h.takes, a) }

// Do implements tracking.Automation.
func (h *hand) Do(_ context.Context, j tracking.Job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.did = append(h.did, j)
	return h.fails
}

func (h *hand) ids() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, j := range h.did {
		list = append(list, j.ID)
	}
	return list
}

func withHands(hands ...tracking.Automation) func(*tracking.Options) {
	return func(o *tracking.Options) { o.Automations = hands }
}

func (d *desk) sub(event, status string) {
	d.Helper()
	typ := map[string]string{"active": "customer.subscription.created",
		"canceled": "customer.subscription.deleted"}[status]
	d.takes(message(event, typ, shopAt, object(tracking.KindSubscription, "sub_1", status, aPurchase, tracking.Subscribe)),
		tracking.Applied)
}

func applied(p *tracking.Purchase) (list []string) {
	for _, a := range p.Automations {
		list = append(list, a.Automation+" "+string(a.Action))
	}
	return list
}

func TestDeliver_ByAction(t *testing.T) {
	mail, gate, crm := &hand{name: "mail", takes: []tracking.Action{tracking.ActionFulfil}}, &hand{name: "gate"},
		&hand{name: "crm", takes: []tracking.Action{tracking.ActionUnsubscribe}}
	d := newDesk(t, withHands(mail, gate, crm))
	d.sub("evt_1", "active")
	d.clock = d.clock.Add(time.Minute)
	d.deliver()
	at := d.clock
	d.clock = d.clock.Add(time.Hour)
	d.sub("evt_2", "canceled")
	d.deliver()
	p := d.purchase(aPurchase)
	if got, want := applied(p), []string{"mail fulfil", "gate fulfil", "gate unsubscribe",
		"crm unsubscribe"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !p.Automations[0].At.Equal(at) || !p.Fulfilment.Done.Equal(at) || !p.Fulfilment.Asked.Equal(shopStart) ||
		!p.Unsubscribe.Done.Equal(d.clock) {
		t.Errorf("times: %+v", p)
	}
	job := mail.did[0]
	want := tracking.Job{ID: "fulfil/" + aPurchase, Action: tracking.ActionFulfil, Purchase: aPurchase,
		Merchant: shopAccount, StripeAccount: shopAt, Kind: tracking.Subscribe, Reason: "active sub_1", At: shopStart}
	if job != want {
		t.Errorf("got %+v, want %+v", job, want)
	}
	if got := crm.did[0]; got.Reason != "canceled sub_1" || got.ID != "unsubscribe/"+aPurchase {
		t.Errorf("got %+v", got)
	}
	d.waits(0, 0, 0)
}

// TestDeliver_ToNobody checks that Deliver logs an action that no automation accepts, and that the
// log counts as an automation.
func TestDeliver_ToNobody(t *testing.T) {
	d := newDesk(t, withHands(&hand{name: "mail", takes: []tracking.Action{tracking.ActionUnsubscribe}}))
	d.sub("evt_1", "active")
	d.deliver()
	if p := d.purchase(aPurchase); !p.Fulfilled || !slices.Equal(applied(p), []string{"log fulfil"}) ||
		!strings.Contains(d.said.String(), aPurchase) {
		t.Errorf("got %+v; logged %s", p, d.said)
	}
}

// TestDeliver_OneFails checks that Deliver does not repeat completed automations, that the
// automations after the failed one wait, and that the purchase is fulfilled after all have
// succeeded.
func TestDeliver_OneFails(t *testing.T) {
	first, second, third := &hand{name: "first"}, &hand{name: "second", fails: errors.New("busy")}, &hand{name: "third"}
	d := newDesk(t, withHands(first, second, third))
	d.sub("evt_1", "active")
	d.sub("evt_2", "canceled") // at once: its unsubscribe waits
	for range 3 {
		d.deliver()
		d.clock = d.clock.Add(24 * time.Hour)
	}
	p := d.purchase(aPurchase)
	if p.Fulfilled || p.Fulfilment.State != tracking.Asked || p.Unsubscribe.State != tracking.Waits ||
		!slices.Equal(applied(p), []string{"first fulfil"}) {
		t.Errorf("a day later: %+v", p)
	}
	if got := [3]int{len(first.ids()), len(second.ids()), len(third.ids())}; got != [3]int{1, 3, 0} {
		t.Errorf("asked %v times", got)
	}
	second.fails = nil
	d.deliver()
	d.deliver()
	if got, want := applied(d.purchase(aPurchase)),
		[]string{"first fulfil", "second fulfil", "third fulfil", "first unsubscribe", "second unsubscribe",
			"third unsubscribe"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := third.ids(); !slices.Equal(got, []string{"fulfil/" + aPurchase, "unsubscribe/" + aPurchase}) {
		t.Errorf("in the order %v", got)
	}
	d.waits(0, 0, 0)
}

// TestDeliver_Fewer checks that Deliver does not wait for a removed automation and does not repeat
// completed work.
func TestDeliver_Fewer(t *testing.T) {
	first, second := &hand{name: "first"}, &hand{name: "second", fails: errors.New("busy")}
	d := newDesk(t, withHands(first, second))
	d.sub("evt_1", "active")
	d.deliver()
	later := d.another(withHands(first))
	later.clock = later.clock.Add(time.Hour)
	if _, err := later.service.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := d.purchase(aPurchase); !p.Fulfilled || len(first.ids()) != 1 ||
		!slices.Equal(applied(p), []string{"first fulfil"}) {
		t.Errorf("%v, %+v", first.ids(), p)
	}
}

// TestDeliver_Permanent checks that Deliver does not retry a permanent failure, that the job
// appears as a dead letter, and that the following action waits until the job is done.
func TestDeliver_Permanent(t *testing.T) {
	h := &hand{name: "gate", fails: fmt.Errorf("%w: no such list", outbox.ErrPermanent)}
	d := newDesk(t, withHands(h))
	d.sub("evt_1", "active")
	if r := d.deliver(); r.Dead != 1 {
		t.Errorf("got %+v", r)
	}
	d.sub("evt_2", "canceled")
	d.clock = d.clock.Add(100 * 24 * time.Hour)
	d.deliver()
	if p := d.purchase(aPurchase); p.Fulfilled || p.Unsubscribe.State != tracking.Waits || len(h.ids()) != 1 {
		t.Errorf("%v, %+v", h.ids(), p)
	}
	d.waits(0, 0, 1)
	dead := 0
	for j, err := range d.service.Jobs(t.Context()) {
		if dead++; err != nil || !j.Dead || j.ID != "fulfil/"+aPurchase || j.Purchase != aPurchase ||
			!strings.Contains(j.Error, "no such list") {
			t.Errorf("shown: %+v, %v", j, err)
		}
	}
	if dead != 1 {
		t.Errorf("%d are shown", dead)
	}
	if err := d.service.ReplayJob(t.Context(), "fulfil/none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	h.fails = nil
	if err := d.service.ReplayJob(t.Context(), "fulfil/"+aPurchase); err != nil {
		t.Fatal(err)
	}
	d.deliver()
	d.deliver()
	if got := h.ids(); !slices.Equal(got,
		[]string{"fulfil/" + aPurchase, "fulfil/" + aPurchase, "unsubscribe/" + aPurchase}) {
		t.Errorf("got %v", got)
	}
	d.waits(0, 0, 0)
}

// TestDeliver_Crashes crashes at every commit. Each job runs at least once, always with the same ID
// and in order, and is recorded once.
func TestDeliver_Crashes(t *testing.T) {
	for _, dies := range []bool{true, false} {
		for at, more := 1, true; more; at++ {
			for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
				a, b := &hand{name: "a"}, &hand{name: "b"}
				d := newDesk(t, withHands(a, b))
				d.sub("evt_1", "active")
				d.sub("evt_2", "canceled")
				hook, met := dying(at, phase)
				if !dies {
					hook, met = failing(at, phase, store.ErrUnknown, storetest.Commit)
				}
				d.during(hook, func() {
					for range 3 {
						_, _ = d.service.Deliver(t.Context()) // it fails
					}
				})
				more = met()
				for range 4 {
					d.clock = d.clock.Add(time.Minute)
					d.deliver()
				}
				if got, want := applied(d.purchase(aPurchase)),
					[]string{"a fulfil", "b fulfil", "a unsubscribe", "b unsubscribe"}; !slices.Equal(got, want) {
					t.Errorf("%v at %d, phase %d: got %v, want %v", dies, at, phase, got, want)
				}
				for _, h := range []*hand{a, b} {
					if got := slices.Compact(h.ids()); !slices.Equal(got,
						[]string{"fulfil/" + aPurchase, "unsubscribe/" + aPurchase}) {
						t.Errorf("%v at %d, phase %d: %s did %v", dies, at, phase, h.name, h.ids())
					}
				}
				d.waits(0, 0, 0)
			}
			if !more && at < 6 {
				t.Errorf("only %d commits", at-1)
			}
		}
	}
}

// TestDeliver_AtOnce delivers from two processes while events keep changing the purchase.
func TestDeliver_AtOnce(t *testing.T) {
	h := &hand{name: "gate"}
	d := newDesk(t, withHands(h))
	other := d.another(withHands(h))
	d.sub("evt_1", "active")
	var running sync.WaitGroup
	for _, s := range []*tracking.Service{d.service, other.service} {
		running.Go(func() {
			for range 20 {
				if _, err := s.Deliver(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Go(func() {
		for i := range 20 {
			id := fmt.Sprint("sub_", i+2)
			body := message(fmt.Sprint("evt_", i+2), "customer.subscription.created", shopAt,
				object(tracking.KindSubscription, id, "active", aPurchase, tracking.Subscribe))
			if _, err := d.service.Ingest(context.Background(), body, webhook(true)); err != nil {
				t.Error(err)
			}
		}
	})
	running.Wait()
	d.deliver()
	if p := d.purchase(aPurchase); !p.Fulfilled || !slices.Equal(applied(p), []string{"gate fulfil"}) ||
		len(p.Subscriptions) != 21 {
		t.Errorf("%v, %d subscriptions", applied(p), len(p.Subscriptions))
	}
	if got := slices.Compact(h.ids()); len(got) != 1 {
		t.Errorf("ids %v", got)
	}
}

// TestDeliver_Withdrawn checks that a second subscription withdraws an unsubscribe that no process
// has begun. An unsubscribe that has begun continues, and the purchase reports the problem.
func TestDeliver_Withdrawn(t *testing.T) {
	second := message("evt_3", "customer.subscription.created", shopAt,
		object(tracking.KindSubscription, "sub_2", "active", aPurchase, tracking.Subscribe))
	h := &hand{name: "gate"}
	d := newDesk(t, withHands(h))
	d.sub("evt_1", "active")
	d.deliver()
	d.sub("evt_2", "canceled")
	d.takes(second, tracking.Applied)
	d.deliver()
	if p := d.purchase(aPurchase); p.Unsubscribe.State != tracking.NotAsked || len(h.ids()) != 1 || p.Problem != "" {
		t.Errorf("not begun: %v, %+v", h.ids(), p)
	}
	d.waits(0, 0, 0)
	// And it is asked for again when that one has ended, too.
	d.takes(message("evt_4", "customer.subscription.deleted", shopAt,
		object(tracking.KindSubscription, "sub_2", "canceled", aPurchase, tracking.Subscribe)), tracking.Applied)
	d.deliver()
	if got := h.ids(); len(got) != 2 {
		t.Errorf("after the end of both: %v", got)
	}

	h = &hand{name: "gate"}
	d = newDesk(t, withHands(h))
	d.sub("evt_1", "active")
	d.deliver()
	d.sub("evt_2", "canceled")
	h.fails = errors.New("busy")
	d.deliver()
	d.takes(second, tracking.Applied)
	h.fails = nil
	d.clock = d.clock.Add(time.Hour)
	d.deliver()
	if p := d.purchase(aPurchase); p.Unsubscribe.State != tracking.DoneWith || p.Problem == "" {
		t.Errorf("begun: %+v", p)
	}
}

// TestDeliver_Key checks that a job has its order's key even if another process changes the
// purchase between reading it and beginning the unsubscribe.
func TestDeliver_Key(t *testing.T) {
	h := &hand{name: "gate"}
	d := newDesk(t, withHands(h))
	d.stub.sale = tracking.Sale{Customer: "cus_1"}
	order := tracking.Order{Merchant: shopAccount, Kind: tracking.Subscribe, Key: "one", Price: "price_1",
		Customer: "cus_1", PaymentMethod: "pm_1"}
	created, err := d.service.CreatePurchase(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	sub := func(status string) thing {
		return object(tracking.KindSubscription, "sub_1", status, created.Purchase.ID, tracking.Subscribe)
	}
	d.takes(message("evt_1", "customer.subscription.created", shopAt, sub("active")), tracking.Applied)
	d.deliver()
	d.takes(message("evt_2", "customer.subscription.deleted", shopAt, sub("canceled")), tracking.Applied)
	other, changed := d.another(), false
	d.during(func(op storetest.Operation, phase storetest.Phase) error {
		writes := slices.ContainsFunc(op.Writes,
			func(w store.Write) bool { return w.Table == tables.Tracking.Purchases.Name })
		if phase == storetest.Before && writes && !changed {
			changed = true
			d.stub.sale.Customer = "cus_2"
			_, err := other.service.CreatePurchase(context.WithoutCancel(t.Context()), order)
			return err
		}
		return nil
	}, func() { d.deliver() })
	if p := d.purchase(created.Purchase.ID); p.Customer != "cus_2" || p.Unsubscribe.State != tracking.DoneWith {
		t.Fatalf("the purchase was not changed meanwhile, or the job not done: %+v", p)
	}
	for _, j := range h.did {
		if j.Key != "one" {
			t.Errorf("%s has the key %q", j.ID, j.Key)
		}
	}
	if len(h.did) != 2 {
		t.Errorf("got %v", h.ids())
	}
}

// TestUnsubscribe_Waits checks that another subscription withdraws the unsubscribe during the
// delay, and that the outbox row of the withdrawn request does not serve a later one.
func TestUnsubscribe_Waits(t *testing.T) {
	robot := &hand{name: "robot"}
	d := newDesk(t, withHands(robot), func(o *tracking.Options) { o.UnsubscribeAfter = 10 * time.Minute })
	second := func(event, typ, status string) {
		t.Helper()
		d.takes(message(event, "customer.subscription."+typ, shopAt,
			object(tracking.KindSubscription, "sub_2", status, aPurchase, tracking.Subscribe)), tracking.Applied)
	}
	did := func(after time.Duration, want int) {
		t.Helper()
		d.clock = d.clock.Add(after)
		if d.deliver(); len(robot.ids()) != want {
			t.Errorf("at %s: %q", d.clock, robot.ids())
		}
	}
	d.sub("evt_1", "active")
	did(0, 1)
	d.sub("evt_2", "canceled")
	did(9*time.Minute, 1)
	second("evt_3", "created", "active")
	if p := d.purchase(aPurchase); p.Unsubscribe.State != tracking.NotAsked {
		t.Errorf("not withdrawn: %+v", p.Unsubscribe)
	}
	second("evt_4", "deleted", "canceled") // a minute before the first row is due
	did(time.Minute, 1)
	did(9*time.Minute-time.Second, 1)
	did(time.Second, 2)
	did(time.Hour, 2)
	d.waits(0, 0, 0)
}

// TestTakeEndedBy checks that a changed setting applies once to subscriptions that were already
// past due.
func TestTakeEndedBy(t *testing.T) {
	d := newDesk(t)
	state := func(id, status string) tracking.Object {
		return tracking.Object{Kind: tracking.KindSubscription, ID: id, Subscription: id, Status: status, Fetched: true,
			Tag: tracking.Tag{Installation: installation, Purchase: aPurchase, Kind: tracking.Subscribe}}
	}
	for id, status := range map[string]string{"sub_1": "past_due", "sub_2": "past_due", "sub_3": "active"} {
		d.stub.objects[id] = state(id, status)
		if _, err := d.service.Apply(t.Context(), shopAt, state(id, status)); err != nil {
			t.Fatal(err)
		}
	}
	d.stub.objects["sub_2"] = state("sub_2", "active") // it was paid since
	d.stub.asked = nil
	start := func(endedBy ...string) {
		t.Helper()
		h := d.another(func(o *tracking.Options) { o.EndedBy = endedBy })
		if err := h.service.TakeEndedBy(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := h.service.DrainInbox(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	states := func(want string) {
		t.Helper()
		var got []string
		for _, id := range []string{"sub_1", "sub_2", "sub_3"} {
			sub, err := d.service.Subscription(t.Context(), shopAt, id)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(sub.Status, sub.Ending))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	start()
	states("active active active")
	start("unpaid", "past_due")
	states("terminatedsetting active active")
	if len(d.stub.asked) != 2 {
		t.Errorf("asked %q", d.stub.asked)
	}
	start("past_due", "unpaid")
	if len(d.stub.asked) != 2 {
		t.Errorf("the same setting: asked %q", d.stub.asked)
	}
	d.waits(0, 1, 0) // its fulfilment
}
