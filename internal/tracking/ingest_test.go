package tracking_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// TestTake_Whose checks that an event from the other mode is stored but changes nothing, and that
// an event sent to the wrong endpoint is not even stored.
func TestTake_Whose(t *testing.T) {
	live := thing{"livemode": true}
	for name, c := range map[string]struct {
		connect bool
		body    []byte
		status  tracking.EventStatus
	}{
		"connected":            {true, paid("evt_1", shopAt, aPurchase), tracking.Applied},
		"live":                 {true, paid("evt_1", shopAt, aPurchase, live), tracking.Refused},
		"live, our own":        {false, paid("evt_1", "", aPurchase, live), tracking.Refused},
		"live, of nobody":      {true, paid("evt_1", otherAt, aPurchase, live), tracking.Refused},
		"our own at Connect":   {true, paid("evt_1", "", aPurchase), ""},
		"connected at our own": {false, paid("evt_1", shopAt, aPurchase), ""},
		"of nobody at our own": {false, paid("evt_1", otherAt, aPurchase), ""},
		"of nobody":            {true, paid("evt_1", otherAt, aPurchase), tracking.Quarantined},
		"our own, and not registered": {false,
			message("evt_1", "payment_intent.succeeded", "", object(tracking.KindPayment, "pi_1", "succeeded", "", "")),
			tracking.Ignored},
		"our own, for a purchase": {false, paid("evt_1", "", aPurchase), tracking.Quarantined},
		"our own, by name":        {false, paid("evt_1", stripefake.DefaultAccount, aPurchase), tracking.Quarantined},
		"another type": {true,
			message("evt_1", "terminal.reader.action_succeeded", shopAt, thing{"object": "terminal.reader", "id": "tmr_1"}),
			tracking.Ignored},
		"of tomorrow": {true, message("evt_1", "payment_intent.folded", shopAt,
			object("payment_dream", "pd_1", "deep", aPurchase, tracking.Legacy)), tracking.Ignored},
		"of another installation": {true,
			message("evt_1", "payment_intent.succeeded", shopAt, object(tracking.KindPayment, "pi_1", "succeeded", "", "",
				thing{"metadata": thing{tracking.MetaInstallation: "theirs", tracking.MetaPurchase: aPurchase,
					tracking.MetaKind: "legacy"}})), tracking.Ignored},
		"a subscription of another installation": {true,
			message("evt_1", "customer.subscription.created", shopAt,
				object(tracking.KindSubscription, "sub_1", "active", "", "",
					thing{"metadata": thing{tracking.MetaInstallation: "theirs", tracking.MetaPurchase: aPurchase}})),
			tracking.Ignored},
		"nobody's subscription": {true,
			message("evt_1", "customer.subscription.created", shopAt,
				object(tracking.KindSubscription, "sub_1", "active", "", "")), tracking.Ignored},
	} {
		d := newDesk(t)
		before := d.state()
		v, err := d.service.Ingest(t.Context(), c.body, webhook(c.connect))
		if c.status == "" { // an answer that says so: it is for the other endpoint
			if after := d.state(); !errors.Is(err, tracking.ErrEndpoint) || after != before ||
				len(d.items(tables.Tracking.Events.Name)) > 0 {
				t.Errorf("%s: got %+v, %v", name, v, err)
			}
			continue
		}
		if err != nil || v.Status != c.status || v.Event != "evt_1" {
			t.Errorf("%s: got %+v, %v, want it %s", name, v, err, c.status)
			continue
		}
		after := d.state()
		if c.status != tracking.Applied && c.status != tracking.Quarantined && after != before {
			t.Errorf("%s: it has changed\n%s\nto\n%s", name, before, after)
		}
		if bought := strings.Contains(after, tables.Tracking.Purchases.Name); bought != (c.status == tracking.Applied) {
			t.Errorf("%s: stored:\n%s", name, after)
		}
		d.stored("evt_1", c.status)
	}
}

// stored compares a stored event with what the published table specifies.
func (d *desk) stored(id string, status tracking.EventStatus) {
	d.Helper()
	it, err := d.mem.Get(d.Context(), tables.Tracking.Events.Name, store.Key{PK: id})
	if err != nil {
		d.Fatal(err)
	}
	got := []string{it.Str("id"), it.Str("status"), it.Str("timestamp"), it.Str("date"), it.Str("time")}
	if want := []string{id, string(status), shopStart.Format("2006-01-02 15:04:05.000"), shopStart.Format(time.DateOnly),
		"09:00:00.000"}; !slices.Equal(got, want) {
		d.Errorf("stored: got %v, want %v", got, want)
	}
	want := d.event(id).Received.Add(30 * day).Unix()
	if !status.Final() {
		want = 0
	}
	if got := it.Int("expiration"); got != want {
		d.Errorf("%s, %s: it expires at %d, want %d", id, status, got, want)
	}
	if it.Str("type") == "" || it.Str("stripe_account") == "" {
		d.Errorf("stored without what the table asks for: %v", it)
	}
}

func TestTake_NoEvent(t *testing.T) {
	d := newDesk(t)
	before := strings.Join(d.items(), "\n")
	for _, body := range []string{"", "{", "null", "[]", `{"object":"event"}`, `{"object":"charge","id":"ch_1"}`,
		string(message("ev_1", "a.b", shopAt, thing{})), string(message("evt_1", "a.b", "shop", thing{}))} {
		if _, err := d.service.Ingest(t.Context(), []byte(body), webhook(true)); !errors.Is(err, tracking.ErrBody) {
			t.Errorf("%.80s: %v", body, err)
		}
	}
	if after := strings.Join(d.items(), "\n"); after != before {
		t.Errorf("stored:\n%s", after)
	}
}

// TestTake_NotTheirs checks that another account's metadata never changes one of our purchases,
// whether the object comes from an event or from a fetch.
func TestTake_NotTheirs(t *testing.T) {
	old := thing{"api_version": "2022-11-15"}
	link := thing{"payment_intent": "pi_b"}
	for name, o := range map[string]thing{
		"paid": object(tracking.KindPayment, "pi_b", "succeeded", aPurchase, tracking.Legacy),
		"new":  object(tracking.KindPayment, "pi_b", "requires_payment_method", aPurchase, tracking.Legacy),
		"recurring": object(tracking.KindPayment, "pi_b", "succeeded", aPurchase, tracking.Subscribe,
			thing{"invoice": "in_b"}),
		"canceled":  object(tracking.KindSubscription, "sub_b", "canceled", aPurchase, tracking.Subscribe),
		"active":    object(tracking.KindSubscription, "sub_b", "active", aPurchase, tracking.Subscribe),
		"of its id": object(tracking.KindSubscription, "sub_a", "canceled", aPurchase, tracking.Subscribe),
		"schedule": object(tracking.KindSchedule, "sub_sched_b", "canceled", aPurchase, tracking.SplitPayment,
			thing{"subscription": "sub_b"}),
		"invoice":       object(tracking.KindInvoice, "in_b", "paid", aPurchase, tracking.Product, link),
		"invoice alone": object(tracking.KindInvoice, "in_b", "paid", aPurchase, tracking.Product),
		"charge": object(tracking.KindCharge, "ch_b", "succeeded", aPurchase, tracking.Legacy, link,
			thing{"amount_refunded": 1500}),
		"refund":  object(tracking.KindRefund, "re_b", "succeeded", aPurchase, tracking.Legacy, link, thing{"amount": 1500}),
		"dispute": object(tracking.KindDispute, "du_b", "lost", aPurchase, tracking.Legacy, link),
	} {
		for _, version := range []thing{nil, old} {
			d := newDesk(t)
			if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
				t.Fatal(err)
			}
			d.takes(message("evt_1", "customer.subscription.created", shopAt,
				object(tracking.KindSubscription, "sub_a", "active", aPurchase, tracking.Subscribe)), tracking.Applied)
			d.deliver()
			before := d.state()
			d.takes(message("evt_2", "some.thing", otherAt, o, version), tracking.Refused)
			if after := d.state(); after != before {
				t.Errorf("%s: it has changed\n%s\nto\n%s", name, before, after)
			}
			e, err := d.service.Replay(t.Context(), "evt_2")
			if after := d.state(); after != before || err != nil || e.Status != tracking.Refused {
				t.Errorf("%s, replayed: %+v, %v", name, e, err)
			}
			told, err := decode(message("evt_3", "some.thing", otherAt, o, version))
			if err != nil {
				t.Fatal(err)
			}
			if changed, err := d.service.Apply(t.Context(), otherAt, told.Object); changed || err != nil {
				t.Errorf("%s, seen: %v, %v", name, changed, err)
			}
			if after := d.state(); after != before {
				t.Errorf("%s, seen: it has changed\n%s\nto\n%s", name, before, after)
			}
		}
	}
}

// TestTake_Failures makes every store operation fail, crash or lose its reply. An event that was
// not accepted arrives again and is applied once.
func TestTake_Failures(t *testing.T) {
	disk := errors.New("disk full")
	bodies := map[string][]byte{"applied": paid("evt_1", shopAt, aPurchase),
		"asked for": message("evt_1", "payment_intent.succeeded", shopAt,
			object(tracking.KindPayment, "pi_evt_1", "succeeded", "", "", thing{"customer": "cus_1"}))}
	moments := 0
	for name, body := range bodies {
		for at, more := 1, true; more; at++ {
			for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
				for _, fails := range []error{disk, store.ErrUnknown, store.ErrConflict} {
					if fails == store.ErrConflict && phase == storetest.After {
						continue // it says that nothing was done
					}
					d := newDesk(t)
					d.stub.objects["pi_evt_1"] = tracking.Object{Kind: tracking.KindPayment, ID: "pi_evt_1", Status: "succeeded",
						Fetched: true, InvoiceTold: true,
						Tag: tracking.Tag{Installation: installation, Purchase: aPurchase, Kind: tracking.Legacy}}
					fresh := d.another() // knows no account yet
					d.stage.Store, fresh.stage.Store = d.mem, d.faulty
					hook, met := failing(at, phase, fails, storetest.Get, storetest.Commit)
					var err error
					d.during(hook, func() { _, err = fresh.service.Ingest(t.Context(), body, webhook(true)) })
					if more = met(); !more {
						break
					}
					moments++
					if err == nil {
						d.event("evt_1") // or it is lost
					}
					if errors.Is(err, tracking.ErrBody) {
						t.Errorf("%s at %d: answered that it is no event: %v", name, at, err)
					}
					if v := d.take(body); err == nil && !v.Duplicate {
						t.Errorf("%s at %d phase %d %v: it had been taken, and is taken once more: %+v", name, at, phase, fails, v)
					}
					d.drain()
					d.deliver()
					d.is("evt_1", tracking.Applied)
					if jobs := d.robot.jobs(); !slices.Equal(jobs, []string{"fulfil/" + aPurchase}) {
						t.Errorf("%s at %d phase %d %v: jobs %v", name, at, phase, fails, jobs)
					}
					d.waits(0, 0, 0)
				}
				if !more {
					break
				}
			}
		}
	}
	if moments < 20 {
		t.Errorf("only %d moments", moments)
	}
}

// TestTake_Answers checks that the endpoint answers 200 for a durable event, 503 if durability is
// unknown, and 400 for a body that is not an event.
func TestTake_Answers(t *testing.T) {
	d := newDesk(t)
	body := paid("evt_1", shopAt, aPurchase)
	for _, fails := range []error{errors.New("disk full"), storetest.ErrCrash} {
		hook, _ := failing(1, storetest.Before, fails, storetest.Commit)
		d.during(hook, func() {
			if got := d.hear(body); got != http.StatusServiceUnavailable {
				t.Errorf("%v: %d", fails, got)
			}
		})
	}
	for range 2 {
		if got := d.hear(body); got != http.StatusOK {
			t.Errorf("got %d", got)
		}
	}
	if got := d.hear([]byte("{}")); got != http.StatusBadRequest {
		t.Errorf("no event: %d", got)
	}
	if got := d.hear(paid("evt_2", shopAt, aPurchase,
		thing{"livemode": true})); got != http.StatusOK { // refused, and nothing that Stripe could do better
		t.Errorf("of the other mode: %d", got)
	}
	if got := d.hear(paid("evt_3", "", aPurchase)); got != http.StatusBadRequest {
		t.Errorf("for another endpoint: %d", got)
	}
}

// TestTake_Duplicates checks that a duplicate never changes a stored event, whatever its status.
func TestTake_Duplicates(t *testing.T) {
	for status, body := range map[tracking.EventStatus][]byte{
		tracking.Applied:     paid("evt_1", shopAt, aPurchase),
		tracking.Ignored:     message("evt_1", "balance.available", shopAt, thing{"object": "balance"}),
		tracking.Refused:     paid("evt_1", shopAt, aPurchase, thing{"livemode": true}),
		tracking.Quarantined: paid("evt_1", otherAt, aPurchase),
		tracking.Received: message("evt_1", "payment_intent.succeeded", shopAt,
			object(tracking.KindPayment, "pi_1", "succeeded", "", "", thing{"customer": "cus_1"})),
		tracking.Dead: message("evt_1", "payment_intent.succeeded", shopAt,
			object(tracking.KindPayment, "pi_1", "succeeded", "", "", thing{"customer": "cus_1"})),
	} {
		d := newDesk(t)
		d.take(body)
		if status == tracking.Dead {
			d.dies("evt_1")
		}
		before := strings.Join(d.items(), "\n")
		for range 3 {
			v := d.take(body)
			if v.Status != status || !v.Duplicate {
				t.Errorf("%s: got %+v", status, v)
			}
		}
		// It says something else now: what was stored first counts.
		if v := d.take(message("evt_1", "payment_intent.canceled", shopAt,
			object(tracking.KindPayment, "pi_1", "canceled", bPurchase, tracking.Legacy))); !v.Duplicate || v.Status != status {
			t.Errorf("%s, with another body: %+v", status, v)
		}
		if after := strings.Join(d.items(), "\n"); after != before {
			t.Errorf("%s: it has changed\n%s\nto\n%s", status, before, after)
		}
	}
}

// TestTake_AtOnce checks that an event in eight concurrent requests is applied once, and that eight
// concurrent events of one payment are all applied.
func TestTake_AtOnce(t *testing.T) {
	d := newDesk(t)
	errs := make(chan error, 16)
	var fresh atomic.Int32
	for i := range 8 {
		go func() {
			v, err := d.service.Ingest(context.Background(), paid("evt_1", shopAt, aPurchase), webhook(true))
			if err == nil && !v.Duplicate {
				fresh.Add(1)
			}
			errs <- err
		}()
		go func() {
			_, err := d.service.Ingest(context.Background(), message(fmt.Sprint("evt_r", i), "refund.created", shopAt,
				object(tracking.KindRefund, fmt.Sprint("re_", i), "succeeded", aPurchase, tracking.Legacy,
					thing{"payment_intent": "pi_evt_1", "amount": 100})), webhook(true))
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := fresh.Load(); n != 1 {
		t.Errorf("taken for new %d times", n)
	}
	d.drain()
	p, err := d.service.Payment(t.Context(), shopAt, "pi_evt_1")
	if err != nil || p.Status != tracking.PaymentPaid || len(p.Refunds) != 8 || p.Refunded != 800 {
		t.Errorf("got %+v, %v", p, err)
	}
	if r := d.deliver(); r.Delivered != 1 {
		t.Errorf("delivered %+v", r)
	}
}

// A panicking store panics when a caller reads a payment.
type panicking struct {
	store.Store
	on *atomic.Bool
}

// Get implements store.Store.
func (p panicking) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if p.on.Load() && table == tables.Tracking.Payments.Name {
		panic("what is this? pi_1_secret_abc")
	}
	return p.Store.Get(ctx, table, key)
}

// TestTake_Poison checks that an event that cannot be applied is stored, answered with 200, retried
// ten times, logged, and kept as a dead letter.
func TestTake_Poison(t *testing.T) {
	var on atomic.Bool
	d := newDesk(t, func(o *tracking.Options) { o.Store = panicking{o.Store, &on} })
	on.Store(true)
	if got := d.hear(paid("evt_1", shopAt, aPurchase)); got != http.StatusOK {
		t.Errorf("answered %d", got)
	}
	d.is("evt_1", tracking.Received)
	d.hear(message("evt_2", "balance.available", shopAt, thing{"object": "balance"})) // others go on
	d.is("evt_2", tracking.Ignored)
	e := d.dies("evt_1")
	if !strings.Contains(e.Reason, "panicked") || strings.Contains(e.Reason, "_secret_abc") {
		t.Errorf("reason: %s", e.Reason)
	}
	for _, want := range []string{"an event failed too often and is now a dead letter", "evt_1", "level=ERROR"} {
		if !strings.Contains(d.said.String(), want) {
			t.Errorf("%q is not in the log: %s", want, d.said)
		}
	}
	if strings.Contains(d.said.String(), "_secret_abc") {
		t.Errorf("logged: %s", d.said)
	}
	on.Store(false)
	if v, err := d.service.Replay(t.Context(), "evt_1"); err != nil || v.Status != tracking.Applied {
		t.Errorf("replayed: %+v, %v", v, err)
	}
	d.drain()
	d.waits(0, 1, 0)
}

// TestTake_DecodePanics checks that a body that makes the decoder panic causes an error response
// and does not stop the process.
func TestTake_DecodePanics(t *testing.T) {
	d := newDesk(t, func(o *tracking.Options) {
		o.Decode = func([]byte) (tracking.Event, error) { panic("index out of range") }
	})
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("it panicked: %v", p)
		}
	}()
	if v, err := d.service.Ingest(t.Context(), []byte("{}"), webhook(true)); err == nil {
		t.Errorf("got %+v", v)
	}
}

// TestTake_GarbageOrder checks that an unreadable stored order does not block the events of its
// purchase. The job that needs the order waits for an operator.
func TestTake_GarbageOrder(t *testing.T) {
	d := newDesk(t)
	o := legacy()
	o.Merchant, o.Key = shopAccount, "1"
	c, err := d.service.CreatePurchase(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	key := store.Key{PK: c.Purchase.ID}
	order := func(text string) string {
		t.Helper()
		it, err := d.mem.Get(t.Context(), tables.Tracking.Purchases.Name, key)
		if err != nil {
			t.Fatal(err)
		}
		set := store.NewItem(store.Attribute{Name: schema.TrackedOrder, Value: store.S(text)})
		if err := d.mem.Commit(t.Context(), store.Update(tables.Tracking.Purchases.Name, key, set, nil)); err != nil {
			t.Fatal(err)
		}
		return it.Str(schema.TrackedOrder)
	}
	right := order("{")
	d.takes(paid("evt_1", shopAt, c.Purchase.ID), tracking.Applied)
	d.deliver()
	if p, err := d.service.Purchase(t.Context(), c.Purchase.ID); err == nil {
		t.Errorf("shown: %+v", p)
	}
	if was := order(right); was != "{" {
		t.Errorf("the order has become %q", was)
	}
	d.clock = d.clock.Add(time.Minute)
	d.deliver()
	if p := d.purchase(c.Purchase.ID); !p.Fulfilled {
		t.Errorf("got %+v", p)
	}
}

// huge returns a body that does not fit into an item and cannot be compressed.
func huge(t testing.TB) thing {
	t.Helper()
	b := make([]byte, 480<<10)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(b); i++ {
		b[i] = byte(r.Uint32())
	}
	return thing{"padding": base64.StdEncoding.EncodeToString(b)}
}

// TestTake_TooLarge checks that an event whose body is too large for an item is still applied. If
// it cannot be decided immediately, it becomes a dead letter that an operator can find.
func TestTake_TooLarge(t *testing.T) {
	d := newDesk(t)
	d.takes(message("evt_1", "payment_intent.succeeded", shopAt,
		object(tracking.KindPayment, "pi_1", "succeeded", aPurchase, tracking.Legacy, huge(t))), tracking.Applied)
	if e := d.is("evt_1", tracking.Applied); len(e.Body) > 0 || !strings.Contains(e.Reason, "too large") {
		t.Errorf("reason %q, %d bytes", e.Reason, len(e.Body))
	}
	d.stored("evt_1", tracking.Applied)
	if r := d.deliver(); r.Delivered != 1 {
		t.Errorf("delivered: %+v", r)
	}
	d.takes(message("evt_2", "balance.available", shopAt, huge(t)), tracking.Ignored)
	d.takes(message("evt_3", "payment_intent.succeeded", shopAt,
		object(tracking.KindPayment, "pi_3", "succeeded", "", "", thing{"customer": "cus_1"}, huge(t))), tracking.Dead)
	d.takes(message("evt_4", "payment_intent.succeeded", otherAt,
		object(tracking.KindPayment, "pi_4", "succeeded", aPurchase, tracking.Legacy, huge(t))), tracking.Dead)
	var waiting []string
	for e, err := range d.service.Waiting(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, e.ID)
	}
	if slices.Sort(waiting); !slices.Equal(waiting, []string{"evt_3", "evt_4"}) {
		t.Errorf("a person is shown %v", waiting)
	}
	for _, id := range []string{"evt_3", "evt_4"} {
		if !strings.Contains(d.said.String(), id) {
			t.Errorf("%s was given up without a word", id)
		}
	}
	d.rebuilt() // it fails on an error
}

// TestTake_KeepsNoSecret checks that neither the items nor the bodies read from them contain a
// secret.
func TestTake_KeepsNoSecret(t *testing.T) {
	d := newDesk(t)
	const secret = "pi_1_secret_S3cr3tOfTheBuyer"
	for i, more := range []thing{
		{"client_secret": secret},
		{"client_secret": secret, "status": "requires_payment_method",
			"charges": thing{"data": []thing{{"client_secret": secret}}}},
		{"status": "requires_action", "next_action": thing{"type": "redirect_to_url", "redirect_to_url": thing{
			"url": "https://hooks.stripe.com/3d_secure_2/hosted?merchant=acct_1&payment_intent=pi_1&" +
				"payment_intent_client_secret=" + secret + "&publishable_key=pk_test_1",
			"return_url": "https://shop.example/?back=1"}}},
		{"confirmation_secret": thing{"type": "payment_intent", "client_secret": secret}},
	} {
		d.takes(message(fmt.Sprint("evt_", i), "payment_intent.changed", shopAt,
			object(tracking.KindPayment, "pi_1", "succeeded", aPurchase, tracking.Legacy, more)), tracking.Applied)
	}
	noSecrets(t, d.items())
	noSecrets(t, d.bodies())
}

// TestTake_OldDuplicate checks that an old event is recognized as a duplicate for 30 days after it
// was received.
func TestTake_OldDuplicate(t *testing.T) {
	d := newDesk(t)
	for _, age := range []time.Duration{0, 29 * day, 40 * day} {
		id := fmt.Sprint("evt_", int(age.Hours()))
		body := paid(id, shopAt, aPurchase, thing{"created": d.clock.Add(-age).Unix()})
		begin := d.clock
		d.takes(body, tracking.Applied)
		d.clock = begin.Add(30*day - time.Minute)
		if v := d.take(body); !v.Duplicate {
			t.Errorf("%s old, again after 30 days: %+v", age, v)
		}
		d.clock = begin.Add(30 * day)
		if v := d.take(body); v.Duplicate {
			t.Errorf("%s old, after more than 30 days: %+v", age, v)
		}
	}
}
