package tracking_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// thin returns a thin event about an object, or without an object if "".
func thin(id, typ, context, kind, of string, more ...thing) []byte {
	e := thing{"object": "v2.core.event", "id": id, "type": typ, "created": shopStart.Format(time.RFC3339Nano),
		"livemode": false, "context": context, "related_object": nil}
	if kind != "" {
		e["related_object"] = thing{"id": of, "type": kind, "url": "/v1/" + kind + "s/" + of}
	}
	for _, m := range more {
		maps.Copy(e, m)
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // unreachable: it is made of texts and booleans
	}
	return b
}

// thinPaid returns the thin twin of the event paid. If id is evt_1 and snapshot is evt_2, evt_1 is
// the twin of evt_2.
func thinPaid(id, snapshot string) []byte {
	return thin(id, "v1.payment_intent.succeeded", shopAt, tracking.KindPayment, "pi_"+snapshot,
		thing{"snapshot_event": snapshot})
}

// askedFor returns the objects that were requested from Stripe, without the accounts.
func (d *desk) askedFor() (list []string) {
	for _, what := range d.stub.asked {
		if kind, at, _ := strings.Cut(what, " "); kind != "connected" {
			list = append(list, kind+" "+strings.TrimPrefix(at, shopAt+"/"))
		}
	}
	return list
}

// once checks that the purchase was fulfilled once and that nothing is waiting.
func (d *desk) once() {
	d.Helper()
	d.deliver()
	if jobs := d.robot.jobs(); !slices.Equal(jobs, []string{"fulfil/" + aPurchase}) {
		d.Errorf("jobs %v", jobs)
	}
	d.waits(0, 0, 0)
}

// TestThin_Alone checks that the object is fetched and applied as if an event had contained it.
func TestThin_Alone(t *testing.T) {
	d := newDesk(t)
	if err := d.service.SavePoll(t.Context(), shopAt, tracking.PollState{Checked: d.clock}); err != nil {
		t.Fatal(err)
	}
	d.stub.objects["pi_evt_s"] = seenPayment("pi_evt_s", aPurchase)
	d.takes(thinPaid("evt_t", "evt_s"), tracking.Received)
	d.stored("evt_t", tracking.Received)
	if again := d.take(thinPaid("evt_t", "evt_s")); !again.Duplicate {
		t.Errorf("again: %+v", again)
	}
	d.waits(1, 0, 0)
	d.drain()
	e := d.is("evt_t", tracking.Applied)
	d.stored("evt_t", tracking.Applied)
	if e.Type != "payment_intent.succeeded" || e.ToldType != "v1.payment_intent.succeeded" || e.Twin != "evt_s" {
		t.Errorf("stored: %+v", e)
	}
	d.once()
	if _, err := d.service.Event(t.Context(), "evt_s"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the snapshot event has not come: %v", err)
	}
	a, err := d.service.ConnectedAccount(t.Context(), shopAt)
	if err != nil || !a.Polled.Thin || !a.Polled.Checked.IsZero() {
		t.Errorf("it is not noted that the account sends thin events: %+v, %v", a, err)
	}
	for _, knew := range []bool{false, true} { // a round that did not know of it has not listed the thin events
		p := tracking.PollState{Quiet: 1, Checked: d.clock, Thin: knew}
		if err := d.service.SavePoll(t.Context(), shopAt, p); err != nil {
			t.Fatal(err)
		}
		if a, err = d.service.ConnectedAccount(t.Context(), shopAt); err != nil || !a.Polled.Thin || a.Polled.Quiet != 1 ||
			a.Polled.Checked.IsZero() == knew {
			t.Errorf("the poller has forgotten it, %v: %+v, %v", knew, a, err)
		}
	}
	for range 2 { // a replay changes nothing
		v, err := d.service.Replay(t.Context(), "evt_t")
		if err != nil || v.Status != tracking.Applied {
			t.Errorf("replay: %+v, %v", v, err)
		}
	}
	d.once()
}

// TestThin_Twins checks that, whichever form arrives first, the second one causes no request and
// names the first.
func TestThin_Twins(t *testing.T) {
	snapshot := paid("evt_s", shopAt, aPurchase)
	twin := func(d *desk, id, other string) {
		d.Helper()
		if e := d.event(id); !e.Status.Final() || e.Twin != other || !strings.Contains(e.Reason, other) || len(e.Body) == 0 {
			d.Errorf("%s: %+v", id, e)
		}
	}
	for name, play := range map[string]func(d *desk){
		"snapshot first": func(d *desk) {
			d.takes(snapshot, tracking.Applied)
			d.takes(thinPaid("evt_t", "evt_s"), tracking.Ignored)
			twin(d, "evt_t", "evt_s")
			if asked := d.askedFor(); len(asked) > 0 {
				d.Errorf("asked for %v", asked)
			}
		},
		"thin first": func(d *desk) {
			d.takes(thinPaid("evt_t", "evt_s"), tracking.Received)
			d.drain()
			d.is("evt_t", tracking.Applied)
			d.takes(snapshot, tracking.Applied)
			twin(d, "evt_s", "evt_t")
		},
		"thin first, applied last": func(d *desk) {
			d.takes(thinPaid("evt_t", "evt_s"), tracking.Received)
			d.takes(snapshot, tracking.Applied)
			d.drain()
			d.is("evt_t", tracking.Ignored)
			twin(d, "evt_t", "evt_s")
		},
		"the snapshot comes while the object is fetched": func(d *desk) {
			d.takes(thinPaid("evt_t", "evt_s"), tracking.Received)
			other := d.another()
			d.stub.meanwhile = func() { other.hear(snapshot) }
			d.drain()
			d.is("evt_s", tracking.Applied)
			d.is("evt_t", tracking.Ignored)
			twin(d, "evt_t", "evt_s")
		},
	} {
		d := newDesk(t)
		d.stub.objects["pi_evt_s"] = seenPayment("pi_evt_s", aPurchase)
		play(d)
		d.once()
		for _, body := range [][]byte{snapshot, thinPaid("evt_t", "evt_s")} {
			if v := d.take(body); !v.Duplicate {
				t.Errorf("%s: again: %+v", name, v)
			}
		}
		d.once()
		if p, err := d.service.Payment(t.Context(), shopAt, "pi_evt_s"); err != nil || p.Status != tracking.PaymentPaid {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestThin_TwinOfNoUse checks that a snapshot event does not decide its twin if it is a dead letter
// or belongs to another account.
func TestThin_TwinOfNoUse(t *testing.T) {
	d := newDesk(t)
	d.takes(undecided("evt_s", "pi_evt_s"), tracking.Received)
	d.dies("evt_s")
	d.stub.objects["pi_evt_s"] = seenPayment("pi_evt_s", aPurchase)
	d.takes(thinPaid("evt_t", "evt_s"), tracking.Received)
	d.drain()
	d.is("evt_t", tracking.Applied)
	d.deliver()
	d.waits(0, 0, 1)
	d.takes(paid("evt_o", otherAt, bPurchase), tracking.Quarantined)
	d.stub.objects["pi_evt_o"] = seenPayment("pi_evt_o", "")
	d.takes(thinPaid("evt_u", "evt_o"), tracking.Received)
	d.drain()
	if e := d.is("evt_u", tracking.Ignored); e.Reason != "not ours" {
		t.Errorf("got %+v", e)
	}
}

// TestThin_Crashes checks that the purchase is fulfilled once, whichever form arrives first and
// whatever fault hits any commit.
func TestThin_Crashes(t *testing.T) {
	bodies := [][]byte{thinPaid("evt_t", "evt_s"), paid("evt_s", shopAt, aPurchase)}
	for _, first := range []int{0, 1} {
		for at, more := 1, true; more; at++ {
			for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
				d := newDesk(t)
				d.stub.objects["pi_evt_s"] = seenPayment("pi_evt_s", aPurchase)
				hook, met := dying(at, phase)
				all := func() {
					for i := range bodies {
						_, _ = d.service.Ingest(t.Context(), bodies[(first+i)%2], webhook(true)) // it fails
						_, _ = d.service.DrainInbox(t.Context())
					}
				}
				d.during(hook, all)
				more = met()
				d.clock = d.clock.Add(time.Minute)
				all()
				d.clock = d.clock.Add(time.Minute)
				d.drain()
				for _, id := range []string{"evt_s", "evt_t"} {
					if e := d.event(id); !e.Status.Final() {
						t.Errorf("first %d, at %d, phase %d: %s is %s", first, at, phase, id, e.Status)
					}
				}
				d.once()
			}
		}
	}
}

// TestThin_Kinds checks which kinds are fetched, and which are stored with a reason.
func TestThin_Kinds(t *testing.T) {
	d := newDesk(t)
	sub := tracking.Object{Kind: tracking.KindSubscription, ID: "sub_1", Subscription: "sub_1", Status: "active",
		Tag: tracking.Tag{Installation: installation, Purchase: bPurchase, Kind: tracking.Subscribe}}
	bill := tracking.Object{Kind: tracking.KindInvoice, ID: "in_1", Invoice: "in_1", Status: "paid",
		Tag: tracking.Tag{Installation: installation, Purchase: aPurchase, Kind: tracking.Product}}
	back := []tracking.Refund{{ID: "re_1", Amount: 400, Status: "succeeded"}}
	d.stub.objects = map[string]tracking.Object{"pi_1": seenPayment("pi_1", aPurchase), "sub_1": sub, "in_1": bill,
		"ch_1": {Kind: tracking.KindCharge, ID: "ch_1", Payment: "pi_1", Refunded: 400},
		"re_1": {Kind: tracking.KindRefund, ID: "re_1", Payment: "pi_1", Refunds: back},
		"du_1": {Kind: tracking.KindDispute, ID: "du_1", Payment: "pi_1", Amount: 1500, Status: "needs_response"}}
	for i, c := range []struct {
		typ, kind, id string
		status        tracking.EventStatus // in the end
		reason        string               // part of it
	}{
		{"v1.payment_intent.created", "payment_intent", "pi_1", tracking.Applied, ""},
		{"v1.payment_intent.succeeded", "payment_intent", "pi_1", tracking.Applied, ""},
		{"v1.payment_intent.created", "payment_intent", "pi_gone", tracking.Ignored, "no such object any more"},
		{"v1.customer.subscription.updated", "subscription", "sub_1", tracking.Applied, ""},
		{"v1.invoice.paid", "invoice", "in_1", tracking.Applied, ""},
		{"v1.charge.refunded", "charge", "ch_1", tracking.Applied, ""},
		{"v1.charge.refund.updated", "refund", "re_1", tracking.Applied, ""},
		{"v1.charge.dispute.created", "dispute", "du_1", tracking.Applied, ""},
		{"v1.charge.succeeded", "charge", "ch_1", tracking.Ignored, "charge is not followed"},
		{"v1.invoice.created", "invoice", "in_1", tracking.Ignored, "invoice is not followed"},
		{"v1.payout.paid", "payout", "po_1", tracking.Ignored, "payout is not followed"},
		{"v1.payment_intent.succeeded", "", "", tracking.Ignored, "not followed"},
		{"v1.payment_intent.succeeded", "payment_intent", "../x", tracking.Ignored, "not followed"},
		{"v1.payment_intent.succeeded", "payment_intent", "", tracking.Ignored, "not followed"},
		{"v2.core.account[identity].updated", "v2.core.account", shopAt, tracking.Ignored, "version 2"},
	} {
		id, asked := fmt.Sprint("evt_", i), len(d.askedFor())
		d.take(thin(id, c.typ, shopAt, c.kind, c.id))
		d.drain()
		if e := d.is(id, c.status); !strings.Contains(e.Reason, c.reason) || c.status == tracking.Ignored && e.Reason == "" {
			t.Errorf("%s: %q, want %q", c.typ, e.Reason, c.reason)
		}
		fetched := c.status == tracking.Applied || c.id == "pi_gone"
		if list := d.askedFor()[asked:]; fetched != (len(list) > 0) {
			t.Errorf("%s: asked for %v", c.typ, list)
		}
		d.stored(id, c.status)
	}
	p, err := d.service.Payment(t.Context(), shopAt, "pi_1")
	if err != nil || p.Refunded != 400 || len(p.Refunds) != 1 || len(p.Disputes) != 1 {
		t.Errorf("got %+v, %v", p, err)
	}
	if r := d.rebuilt(); r.Thin != 0 || r.Events == 0 || r.Compared != 1 || r.Unread != 0 || len(r.Differences) != 0 {
		t.Errorf("rebuilt: %+v", r)
	}
	d.plant(tables.Tracking.Payments.Name, store.Key{PK: shopAt, SK: "pi_1"}, schema.TrackedStatus, "new")
	if r := d.rebuilt(); len(r.Differences) != 1 || r.Differences[0].ID != "pi_1" {
		t.Errorf("with a payment that lost its status: %+v", r)
	}
}

// TestThin_Newer checks that the events that follow change nothing if the fetched object was
// already newer than its event.
func TestThin_Newer(t *testing.T) {
	d := newDesk(t)
	o := tracking.Object{Kind: tracking.KindSubscription, ID: "sub_1", Subscription: "sub_1", Status: "canceled",
		Tag: tracking.Tag{Installation: installation, Purchase: aPurchase, Kind: tracking.Subscribe}}
	d.takes(message("evt_s", "customer.subscription.created", shopAt,
		object(tracking.KindSubscription, "sub_1", "active", aPurchase, tracking.Subscribe)), tracking.Applied)
	d.stub.objects["sub_1"] = o // canceled a moment ago
	for i, typ := range []string{"v1.customer.subscription.updated", "v1.customer.subscription.deleted"} {
		d.takes(thin(fmt.Sprint("evt_", i), typ, shopAt, "subscription", "sub_1"), tracking.Received)
	}
	for range 3 {
		d.drain()
		d.deliver()
	}
	if jobs := d.robot.jobs(); !slices.Equal(jobs, []string{"fulfil/" + aPurchase, "unsubscribe/" + aPurchase}) {
		t.Errorf("jobs %v", jobs)
	}
	d.waits(0, 0, 0)
}

// TestThin_Quarantined checks that an account is marked as sending thin events even if they arrived
// before its registration.
func TestThin_Quarantined(t *testing.T) {
	d := newDesk(t)
	d.stub.objects["pi_1"] = seenPayment("pi_1", bPurchase)
	d.takes(thin("evt_1", "v1.payment_intent.succeeded", otherAt, tracking.KindPayment, "pi_1"), tracking.Quarantined)
	if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
		t.Fatal(err)
	}
	d.drain()
	d.is("evt_1", tracking.Applied)
	if a, err := d.service.ConnectedAccount(t.Context(), otherAt); err != nil || !a.Polled.Thin {
		t.Errorf("got %+v, %v", a, err)
	}
}

// TestThin_NotedFirst checks that an event is not stored if marking its account fails. The event
// arrives again.
func TestThin_NotedFirst(t *testing.T) {
	for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
		d := newDesk(t)
		hook, met := failing(1, phase, errors.New("disk full"), storetest.Commit)
		var err error
		d.during(hook, func() { _, err = d.service.Ingest(t.Context(), thinPaid("evt_t", "evt_s"), webhook(true)) })
		if _, there := d.service.Event(t.Context(), "evt_t"); err == nil || !met() || !errors.Is(there, store.ErrNotFound) {
			t.Errorf("got %v; the event: %v", err, there)
		}
		d.take(thinPaid("evt_t", "evt_s"))
		if a, err := d.service.ConnectedAccount(t.Context(), shopAt); err != nil || !a.Polled.Thin {
			t.Errorf("got %+v, %v", a, err)
		}
		d.is("evt_t", tracking.Received)
	}
}

// TestThin_NoAnswer checks that the event is a dead letter after ten attempts, and that a replay
// continues it.
func TestThin_NoAnswer(t *testing.T) {
	d := newDesk(t)
	d.takes(thinPaid("evt_t", "evt_s"), tracking.Received)
	e := d.dies("evt_t")
	if e.Type != "payment_intent.succeeded" || !strings.Contains(e.Reason, "no answer") {
		t.Errorf("got %+v", e)
	}
	d.stub.objects["pi_evt_s"] = seenPayment("pi_evt_s", aPurchase)
	if v, err := d.service.Replay(t.Context(), "evt_t"); err != nil || v.Status != tracking.Applied {
		t.Errorf("got %+v, %v", v, err)
	}
	d.drain()
	d.once()
}

// TestThin_Whose checks that the last part of the context identifies the account, under the same
// endpoint rules.
func TestThin_Whose(t *testing.T) {
	live := thing{"livemode": true}
	const typ = "v1.payment_intent.succeeded"
	for name, c := range map[string]struct {
		connect bool
		context string
		more    thing
		status  tracking.EventStatus // "": it is for the other endpoint
	}{
		"connected":                   {true, shopAt, nil, tracking.Received},
		"of an organization":          {true, "org_1/acct_platform/" + shopAt, nil, tracking.Received},
		"live":                        {true, shopAt, live, tracking.Refused},
		"of nobody":                   {true, otherAt, nil, tracking.Quarantined},
		"of no account":               {true, "org_1", nil, tracking.Refused},
		"of no account, at our own":   {false, "org_1", nil, tracking.Refused},
		"our own at Connect":          {true, "", nil, ""},
		"connected at our own":        {false, shopAt, nil, ""},
		"our own":                     {false, "", nil, tracking.Received},
		"our own, by name":            {false, stripefake.DefaultAccount, nil, tracking.Received},
		"of version 2, live, Connect": {true, "", thing{"livemode": true, "type": "v2.core.account.updated"}, tracking.Ignored},
		"of version 2, of no mode":    {false, shopAt, thing{"livemode": nil, "type": "v2.core.account.updated"}, tracking.Ignored},
	} {
		d := newDesk(t)
		v, err := d.service.Ingest(t.Context(), thin("evt_1", typ, c.context, "payment_intent", "pi_1", c.more),
			webhook(c.connect))
		if errors.Is(err, tracking.ErrEndpoint) != (c.status == "") || c.status != "" && err != nil || v.Status != c.status {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// TestThin_Charge checks that billing settles its own payment intent, even for an account that
// sells nothing here, and that our own account's other payments are not followed.
func TestThin_Charge(t *testing.T) {
	s := settler{}
	d := newDesk(t, func(o *tracking.Options) { o.Settler = &s })
	charge := seenPayment("pi_1", "")
	charge.Tag = tracking.Tag{Installation: installation, Charge: true, ChargeAccount: "ann", ChargeSubscription: "tea"}
	d.stub.objects["pi_1"], d.stub.objects["pi_2"] = charge, seenPayment("pi_2", "")
	for _, n := range []string{"1", "2"} {
		body := thin("evt_"+n, "v1.payment_intent.succeeded", "", "payment_intent", "pi_"+n)
		if v, err := d.service.Ingest(t.Context(), body, webhook(false)); err != nil || v.Status != tracking.Received {
			t.Fatalf("got %+v, %v", v, err)
		}
	}
	d.drain()
	d.is("evt_1", tracking.Applied)
	d.is("evt_2", tracking.Ignored)
	if want := []string{"ann/tea pi_1"}; !slices.Equal(s.heard, want) {
		t.Errorf("heard %v, want %v", s.heard, want)
	}
}

// TestThin_Deauthorized: Stripe is asked whether it is the newest word, as of the snapshot form.
func TestThin_Deauthorized(t *testing.T) {
	d := newDesk(t)
	d.stub.connected[shopAt] = tracking.ErrDisconnected
	d.takes(thin("evt_1", "v1.account.application.deauthorized", shopAt, "", ""), tracking.Received)
	d.drain()
	d.is("evt_1", tracking.Applied)
	if a, err := d.service.ConnectedAccount(t.Context(), shopAt); err != nil || a.Status != tracking.Disconnected {
		t.Errorf("got %+v, %v", a, err)
	}
}

// TestThin_OlderBuild checks a thin event that an older build stored, even without a status. It is
// shown as received, a rebuild names it, and a replay applies it.
func TestThin_OlderBuild(t *testing.T) {
	d := newDesk(t)
	d.stub.objects["pi_evt_s"] = seenPayment("pi_evt_s", aPurchase)
	d.takes(thinPaid("evt_t", "evt_s"), tracking.Received)
	key := store.Key{PK: "evt_t"}
	old := store.Update(tables.Tracking.Events.Name, key, store.NewItem(store.Attribute{Name: schema.TrackedType,
		Value: store.S("v1.payment_intent.succeeded")}), []string{schema.TrackedStatus, schema.TrackedToldType,
		schema.TrackedTwin})
	if err := d.mem.Commit(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	d.is("evt_t", tracking.Received)
	if r := d.rebuilt(); !slices.Equal(r.Waiting, []string{"evt_t"}) {
		t.Errorf("rebuilt: %+v", r)
	}
	d.stub.down = errors.New("no answer")
	d.drain() // the reason of the setback is kept
	if e := d.is("evt_t", tracking.Received); !strings.Contains(e.Reason, "no answer") {
		t.Errorf("got %+v", e)
	}
	d.stub.down = nil
	if v, err := d.service.Replay(context.Background(), "evt_t"); err != nil || v.Status != tracking.Applied {
		t.Errorf("got %+v, %v", v, err)
	}
	if e := d.is("evt_t", tracking.Applied); e.Type != "payment_intent.succeeded" || e.Twin != "evt_s" {
		t.Errorf("got %+v", e)
	}
	d.clock = d.clock.Add(time.Hour)
	d.drain()
	d.once()
}
