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

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
)

func decode(body []byte) (tracking.Event, error) { return event.Decode(body) }

// dies makes the inbox give the event up, because Stripe does not answer for ten attempts.
func (d *desk) dies(id string) *tracking.Event {
	d.Helper()
	d.stub.down = errors.New("no answer to pi_1_secret_abc, whatever is asked")
	defer func() { d.stub.down = nil }()
	for try := 1; ; try++ {
		r := d.drain()
		e := d.event(id)
		if try == 10 {
			if e.Status != tracking.Dead || r.Dead != 1 {
				d.Errorf("after ten tries: %s, %+v", e.Status, r)
			}
			return e
		}
		if e.Status != tracking.Received || r.Failed != 1 {
			d.Fatalf("after %d tries: %s (%s), %+v", try, e.Status, e.Reason, r)
		}
		if e.Reason == "" || e.Body == nil {
			d.Errorf("after %d tries: reason %q, %d bytes", try, e.Reason, len(e.Body))
		}
		d.clock = d.clock.Add(25 * time.Hour)
	}
}

// undecided is an event about a payment intent that does not identify its owner.
func undecided(id, intent string) []byte {
	return message(id, "payment_intent.succeeded", shopAt,
		object(tracking.KindPayment, intent, "succeeded", "", "", thing{"customer": "cus_1"}))
}

func seenPayment(intent, purchase string) tracking.Object {
	o := tracking.Object{Kind: tracking.KindPayment, ID: intent, Status: "succeeded", Amount: 1500, Currency: "USD",
		Fetched: true, InvoiceTold: true, Customer: "cus_1"}
	if purchase != "" {
		o.Tag = tracking.Tag{Installation: installation, Purchase: purchase, Kind: tracking.Product}
	}
	return o
}

func TestWork_AsksStripe(t *testing.T) {
	d := newDesk(t)
	d.stub.objects["pi_1"], d.stub.objects["pi_2"] = seenPayment("pi_1", aPurchase), seenPayment("pi_2", "")
	for i, intent := range []string{"pi_1", "pi_2", "pi_gone"} {
		d.takes(undecided(fmt.Sprint("evt_", i+1), intent), tracking.Received)
		d.stored(fmt.Sprint("evt_", i+1), tracking.Received)
	}
	if r := d.drain(); r.Delivered != 3 {
		t.Errorf("got %+v", r)
	}
	d.is("evt_1", tracking.Applied)
	d.is("evt_2", tracking.Ignored)
	d.is("evt_3", tracking.Ignored)
	for i := range 3 {
		d.stored(fmt.Sprint("evt_", i+1), d.event(fmt.Sprint("evt_", i+1)).Status)
	}
	if want := []string{"payment " + shopAt + "/pi_1", "payment " + shopAt + "/pi_2",
		"payment " + shopAt + "/pi_gone"}; !sameSet(d.stub.asked[1:], want) {
		t.Errorf("asked for %v, want %v", d.stub.asked[1:], want)
	}
	d.waits(0, 1, 0)
	if p := d.purchase(aPurchase); p.Fulfilment.State != tracking.Asked || p.Kind != tracking.Product {
		t.Errorf("got %+v", p)
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestWork_Crashes checks that the inbox reaches the same result, whatever fault hits any of its
// commits.
func TestWork_Crashes(t *testing.T) {
	for at, more := 1, true; more; at++ {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			for _, dies := range []bool{true, false} {
				d := newDesk(t)
				d.stub.objects["pi_1"] = seenPayment("pi_1", aPurchase)
				d.takes(undecided("evt_1", "pi_1"), tracking.Received)
				hook, met := dying(at, phase)
				if !dies {
					hook, met = failing(at, phase, store.ErrUnknown, storetest.Commit)
				}
				d.during(hook, func() { _, _ = d.service.DrainInbox(t.Context()) }) // it fails
				more = met()
				d.clock = d.clock.Add(time.Minute)
				d.drain()
				d.is("evt_1", tracking.Applied)
				d.deliver()
				if jobs := d.robot.jobs(); !slices.Equal(jobs, []string{"fulfil/" + aPurchase}) {
					t.Errorf("at %d, phase %d: jobs %v", at, phase, jobs)
				}
				d.waits(0, 0, 0)
			}
		}
		if !more && at < 3 {
			t.Errorf("only %d commits", at-1)
		}
	}
}

func TestWork_GivesUp(t *testing.T) {
	d := newDesk(t)
	d.takes(undecided("evt_1", "pi_1"), tracking.Received)
	e := d.dies("evt_1")
	if !strings.Contains(e.Reason, "no answer") || strings.Contains(e.Reason, "_secret_abc") || !e.Applied.IsZero() {
		t.Errorf("reason %q, applied %v", e.Reason, e.Applied)
	}
	d.stored("evt_1", tracking.Dead)
	d.waits(0, 0, 1)
	if n := strings.Count(d.said.String(), "an event failed too often and is now a dead letter"); n != 1 ||
		!strings.Contains(d.said.String(), "evt_1") || strings.Contains(d.said.String(), "_secret_abc") {
		t.Errorf("logged %d times: %s", n, d.said)
	}
	var waiting []string
	for e, err := range d.service.Waiting(t.Context()) {
		waiting = append(waiting, fmt.Sprint(e.ID, " ", e.Status, " ", err))
	}
	if !slices.Equal(waiting, []string{"evt_1 dead <nil>"}) {
		t.Errorf("waiting: %v", waiting)
	}
	for e := range d.service.Undecided(t.Context(), "evt_1") {
		t.Errorf("after evt_1: %s", e.ID)
	}
	d.clock = d.clock.Add(365 * 24 * time.Hour)
	d.drain()
	d.is("evt_1", tracking.Dead) // it does not vanish, and nothing happens by itself
	d.stub.down = errors.New("still no answer")
	if v, err := d.service.Replay(t.Context(), "evt_1"); err == nil {
		t.Errorf("replayed: %+v", v)
	}
	d.is("evt_1", tracking.Dead)
	d.waits(0, 0, 1)
	d.stub.down = nil
	d.stub.objects["pi_1"] = seenPayment("pi_1", aPurchase)
	if v, err := d.service.Replay(t.Context(), "evt_1"); err != nil || v.Status != tracking.Applied {
		t.Errorf("replayed: %+v, %v", v, err)
	}
	d.drain()
	d.waits(0, 1, 0)
}

// TestWork_Expired checks that the inbox drops a row whose event does not exist any more.
func TestWork_Expired(t *testing.T) {
	d := newDesk(t)
	d.takes(undecided("evt_1", "pi_1"), tracking.Received)
	if err := d.mem.Commit(t.Context(), store.Delete(tables.Tracking.Events.Name, store.Key{PK: "evt_1"})); err != nil {
		t.Fatal(err)
	}
	if r := d.drain(); r.Failed+r.Dead > 0 {
		t.Errorf("got %+v", r)
	}
	d.waits(0, 0, 0)
	// One that is final, and past its time, is gone, and may come again without an effect.
	d.takes(paid("evt_2", shopAt, aPurchase), tracking.Applied)
	d.deliver()
	d.clock = d.clock.Add(31 * 24 * time.Hour)
	if _, err := d.service.Event(t.Context(), "evt_2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	d.takes(paid("evt_2", shopAt, aPurchase), tracking.Applied)
	d.deliver()
	if jobs := d.robot.jobs(); len(jobs) != 1 {
		t.Errorf("jobs %v", jobs)
	}
}

func TestReplay(t *testing.T) {
	d := newDesk(t)
	replay := func(id string, want tracking.EventStatus) {
		t.Helper()
		v, err := d.service.Replay(t.Context(), id)
		if err != nil || v.Status != want || v.Event != id {
			t.Errorf("%s: got %+v, %v, want it %s", id, v, err, want)
		}
		d.stored(id, want)
	}
	for _, id := range []string{"evt_none", "none", ""} {
		if _, err := d.service.Replay(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	// Applied: it changes nothing that it has not changed.
	d.takes(paid("evt_1", shopAt, aPurchase), tracking.Applied)
	d.deliver()
	d.clock = d.clock.Add(time.Hour)
	replay("evt_1", tracking.Applied)
	if r := d.deliver(); r.Delivered != 0 {
		t.Errorf("delivered again: %+v", r)
	}
	// Applied, and lost since: it heals.
	if err := d.mem.Commit(t.Context(),
		store.Delete(tables.Tracking.Payments.Name, store.Key{PK: shopAt, SK: "pi_evt_1"})); err != nil {
		t.Fatal(err)
	}
	replay("evt_1", tracking.Applied)
	if p, err := d.service.Payment(t.Context(), shopAt, "pi_evt_1"); err != nil || p.Status != tracking.PaymentPaid {
		t.Errorf("not healed: %+v, %v", p, err)
	}
	// Received: at once.
	d.takes(undecided("evt_2", "pi_2"), tracking.Received)
	d.stub.objects["pi_2"] = seenPayment("pi_2", bPurchase)
	replay("evt_2", tracking.Applied)
	d.drain()
	d.waits(0, 1, 0)
	// Ignored stays ignored, of our own account too, and of nobody quarantined.
	d.takes(message("evt_3", "balance.available", shopAt, thing{"object": "balance"}), tracking.Ignored)
	replay("evt_3", tracking.Ignored)
	if v, err := d.service.Ingest(t.Context(),
		message("evt_4", "payment_intent.succeeded", "", object(tracking.KindPayment, "pi_4", "succeeded", "", "")),
		webhook(false)); err != nil || v.Status != tracking.Ignored {
		t.Errorf("our own: %+v, %v", v, err)
	}
	replay("evt_4", tracking.Ignored)
	d.takes(paid("evt_5", otherAt, bPurchase), tracking.Quarantined)
	replay("evt_5", tracking.Quarantined)
	if e := d.event("evt_5"); !e.Applied.IsZero() {
		t.Errorf("quarantined, and applied at %v", e.Applied)
	}
}

// TestReplay_Refused checks that a replay does not change a refused event, in particular an event
// from the other mode.
func TestReplay_Refused(t *testing.T) {
	d := newDesk(t)
	d.takes(paid("evt_1", shopAt, aPurchase, thing{"livemode": true}), tracking.Refused)
	before := d.state()
	if v, err := d.service.Replay(t.Context(), "evt_1"); err == nil && v.Status != tracking.Refused {
		t.Errorf("an event of the other mode was replayed: %+v", v)
	}
	if after := d.state(); after != before {
		t.Errorf("it has changed\n%s\nto\n%s", before, after)
	}
}

// A settler records the calls of Heard.
type settler struct {
	mu    sync.Mutex
	heard []string
	fails error
}

// Heard implements tracking.Settler.
func (s *settler) Heard(_ context.Context, account, subscription, intent string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, account+"/"+subscription+" "+intent)
	return s.fails
}

// charged is an event about one of billing's payment intents.
func charged(id, installation, typ, status string) []byte {
	return message(id, typ, "", object(tracking.KindPayment, "pi_"+id, status, "", "",
		thing{"metadata": thing{tracking.MetaInstallation: installation, "duesday_account": "acme",
			"duesday_subscription": "gold", "duesday_sku": "news", "duesday_period": "3", "duesday_generation": "1"}}))
}

func TestWork_Settles(t *testing.T) {
	var s settler
	d := newDesk(t, func(o *tracking.Options) { o.Settler = &s })
	take := func(body []byte, want tracking.EventStatus) {
		t.Helper()
		if v, err := d.service.Ingest(t.Context(), body, webhook(false)); err != nil || v.Status != want {
			t.Errorf("got %+v, %v, want it %s", v, err, want)
		}
	}
	take(charged("evt_1", installation, "payment_intent.succeeded", "succeeded"), tracking.Received)
	take(charged("evt_2", "theirs", "payment_intent.succeeded", "succeeded"), tracking.Ignored)
	take(charged("evt_3", installation, "payment_intent.created", "requires_confirmation"), tracking.Received)
	take(message("evt_4", "payment_intent.succeeded", "", object(tracking.KindPayment, "pi_4", "succeeded", "", "")),
		tracking.Ignored)
	if r := d.drain(); r.Delivered != 0 {
		t.Errorf("settled at once, while the run that has confirmed it does: %+v", r)
	}
	d.clock = d.clock.Add(10 * time.Second)
	s.fails = errors.New("the store is busy")
	if r := d.drain(); r.Failed != 2 {
		t.Errorf("got %+v", r)
	}
	d.is("evt_1", tracking.Received)
	s.fails = nil
	d.clock = d.clock.Add(time.Minute)
	d.drain()
	d.is("evt_1", tracking.Applied)
	d.is("evt_2", tracking.Ignored)
	d.is("evt_3", tracking.Applied)
	if want := []string{"acme/gold pi_evt_1", "acme/gold pi_evt_1", "acme/gold pi_evt_3",
		"acme/gold pi_evt_3"}; !sameSet(s.heard, want) {
		t.Errorf("heard %v, want %v", s.heard, want)
	}
	if got := d.items(tables.Tracking.Payments.Name, tables.Tracking.Purchases.Name); len(got) > 0 {
		t.Errorf("tracked: %v", got)
	}
	d.waits(0, 0, 0)
	// Without a settler they are nothing to us.
	d = newDesk(t)
	take(charged("evt_1", installation, "payment_intent.succeeded", "succeeded"), tracking.Ignored)
}

// TestReplay_OfACharge checks that replaying a dead event about billing's payment leaves no dead
// letter behind, although its row has another kind than those of other events.
func TestReplay_OfACharge(t *testing.T) {
	s := settler{fails: errors.New("the store is busy")}
	d := newDesk(t, func(o *tracking.Options) { o.Settler = &s })
	if v, err := d.service.Ingest(t.Context(), charged("evt_1", installation, "payment_intent.succeeded", "succeeded"),
		webhook(false)); err != nil || v.Status != tracking.Received {
		t.Fatalf("got %+v, %v", v, err)
	}
	d.clock = d.clock.Add(10 * time.Second)
	d.dies("evt_1")
	d.waits(0, 0, 1)
	s.fails = nil
	if v, err := d.service.Replay(t.Context(), "evt_1"); err != nil || v.Status != tracking.Applied {
		t.Fatalf("got %+v, %v", v, err)
	}
	d.drain()
	d.waits(0, 0, 0)
}

// TestRefresh_Overtaken checks that Stripe's answer about a dispute does not count if another event
// changed the payment during the request.
func TestRefresh_Overtaken(t *testing.T) {
	d := newDesk(t)
	of := func(more thing) thing { more["payment_intent"] = "pi_evt_1"; more["amount"] = 100; return more }
	told := func(id, status string) []byte {
		return message(id, "charge.dispute.closed", shopAt, object(tracking.KindDispute, "du_1", status, "", "", of(thing{})))
	}
	d.takes(paid("evt_1", shopAt, aPurchase), tracking.Applied)
	d.takes(told("evt_won", "won"), tracking.Applied)
	d.takes(told("evt_lost", "lost"), tracking.Applied) // or it was won after that: Stripe is asked
	answer := tracking.Object{Kind: tracking.KindDispute, ID: "du_1", Status: "won", Payment: "pi_evt_1", Amount: 100, Fetched: true}
	d.stub.objects["du_1"] = answer
	d.stub.meanwhile = func() {
		d.takes(message("evt_r", "refund.created", shopAt, object(tracking.KindRefund, "re_1", "succeeded", "", "", of(thing{}))), tracking.Applied)
		d.stub.meanwhile = func() {
			answer.Status = "lost"
			d.stub.objects["du_1"] = answer
		}
	}
	d.drain()
	p, err := d.service.Payment(t.Context(), shopAt, "pi_evt_1")
	if err != nil || p.Disputes["du_1"].Status != "lost" || p.Refunded != 100 {
		t.Errorf("got %+v, %v", p, err)
	}
}
