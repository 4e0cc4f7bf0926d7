package tracking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// TestForeign: a payment of the merchant's own costs one request, whatever the number and order of its
// events, also after a restart.
func TestForeign(t *testing.T) {
	d := newDesk(t)
	d.stub.objects["pi_1"], d.stub.objects["pi_2"] = seenPayment("pi_1", ""), seenPayment("pi_2", aPurchase)
	told := func(n int, typ, kind, status string, more ...thing) []byte {
		id := "pi_1"
		if kind != tracking.KindPayment {
			id = fmt.Sprint(kind, "_", n)
		}
		return message(fmt.Sprint("evt_", n), typ, shopAt, object(kind, id, status, "", "",
			append(more, thing{"customer": "cus_1"})...))
	}
	of := thing{"payment_intent": "pi_1"}
	d.takes(told(1, "payment_intent.created", tracking.KindPayment, "requires_payment_method"), tracking.Received)
	d.takes(told(2, "charge.succeeded", tracking.KindCharge, "succeeded", of), tracking.Received)
	d.takes(told(3, "payment_intent.succeeded", tracking.KindPayment, "succeeded"), tracking.Received)
	d.drain() // by several workers at once
	asked := func(want int) {
		t.Helper()
		if got := strings.Count(strings.Join(d.stub.asked, "\n"), "payment "+shopAt+"/pi_1"); got != want {
			t.Errorf("asked %d times, want %d: %q", got, want, d.stub.asked)
		}
	}
	asked(1)
	for n := 1; n <= 3; n++ {
		if e := d.is(fmt.Sprint("evt_", n), tracking.Ignored); e.Reason != "not ours" {
			t.Errorf("event %d: %q", n, e.Reason)
		}
	}
	d.takes(told(4, "refund.created", tracking.KindRefund, "succeeded", of), tracking.Ignored)
	v, err := d.another().service.Ingest(t.Context(), told(5, "charge.updated", tracking.KindCharge, "succeeded", of),
		webhook(true))
	if err != nil || v.Status != tracking.Ignored {
		t.Errorf("after a restart: %+v, %v", v, err)
	}
	asked(1)
	d.takes(message("evt_thin", "v1.payment_intent.canceled", "", nil, thing{"object": "v2.core.event", "context": shopAt,
		"created":        d.clock.Format(time.RFC3339),
		"related_object": thing{"id": "pi_1", "type": tracking.KindPayment}}), tracking.Received)
	d.drain()
	d.is("evt_thin", tracking.Ignored)
	asked(1)

	// A person asks again, and one that turns out to be ours is.
	d.stub.objects["pi_1"] = seenPayment("pi_1", aPurchase)
	if v, err := d.service.Replay(t.Context(), "evt_3"); err != nil || v.Status != tracking.Applied {
		t.Errorf("replayed: %+v, %v", v, err)
	}
	asked(2)
	d.takes(told(6, "payment_intent.amount_capturable_updated", tracking.KindPayment, "succeeded"), tracking.Applied)

	// An event that names a purchase needs no request, and our own payment is not affected.
	d.takes(undecided("evt_7", "pi_2"), tracking.Received)
	d.drain()
	d.is("evt_7", tracking.Applied)
	d.stub.objects["pi_3"] = seenPayment("pi_3", "")
	d.takes(undecided("evt_8", "pi_3"), tracking.Received)
	d.drain()
	d.takes(message("evt_9", "payment_intent.succeeded", shopAt,
		object(tracking.KindPayment, "pi_3", "succeeded", bPurchase, tracking.Legacy)), tracking.Applied)
	d.clock = d.clock.Add(31 * day) // the mark is gone
	d.stub.objects["pi_4"] = seenPayment("pi_4", "")
	d.takes(undecided("evt_10", "pi_4"), tracking.Received)
}

// TestForeign_ThinRefunds: the payment of refunds and disputes that only name themselves is asked for
// once too. One that a look at Stripe has shown to be ours since is followed again.
func TestForeign_ThinRefunds(t *testing.T) {
	d := newDesk(t)
	d.stub.objects = map[string]tracking.Object{"pi_1": seenPayment("pi_1", ""),
		"ch_1": {Kind: tracking.KindCharge, ID: "ch_1", Payment: "pi_1", Refunded: 400},
		"re_1": {Kind: tracking.KindRefund, ID: "re_1", Payment: "pi_1"},
		"du_1": {Kind: tracking.KindDispute, ID: "du_1", Payment: "pi_1", Amount: 1500, Status: "needs_response"}}
	tell := func(id, typ, kind, of string, status tracking.EventStatus) {
		t.Helper()
		d.takes(thin(id, typ, shopAt, kind, of), tracking.Received)
		d.drain()
		d.is(id, status)
	}
	tell("evt_1", "v1.charge.refunded", tracking.KindCharge, "ch_1", tracking.Ignored)
	tell("evt_2", "v1.refund.created", tracking.KindRefund, "re_1", tracking.Ignored)
	tell("evt_3", "v1.charge.dispute.created", tracking.KindDispute, "du_1", tracking.Ignored)
	tell("evt_4", "v1.payment_intent.succeeded", tracking.KindPayment, "pi_1", tracking.Ignored)
	if asked := strings.Join(d.askedFor(), ", "); asked != "charge ch_1, payment pi_1, refund re_1, dispute du_1" {
		t.Errorf("asked for %s", asked)
	}
	d.stub.objects["pi_1"] = seenPayment("pi_1", aPurchase)
	if _, err := d.service.Apply(t.Context(), shopAt, d.stub.objects["pi_1"]); err != nil {
		t.Fatal(err)
	}
	tell("evt_5", "v1.payment_intent.amount_capturable_updated", tracking.KindPayment, "pi_1", tracking.Applied)
}

// TestForeign_OtherInstallation: thin events of a payment that another installation made ask Stripe
// once, though the fetched payment names a purchase.
func TestForeign_OtherInstallation(t *testing.T) {
	d := newDesk(t)
	theirs := seenPayment("pi_1", aPurchase)
	theirs.Tag.Installation = "another"
	d.stub.objects = map[string]tracking.Object{"pi_1": theirs}
	for i, typ := range []string{"succeeded", "amount_capturable_updated", "processing"} {
		id := fmt.Sprintf("evt_%d", i)
		d.takes(thin(id, "v1.payment_intent."+typ, shopAt, tracking.KindPayment, "pi_1"), tracking.Received)
		d.drain()
		d.is(id, tracking.Ignored)
	}
	if asked := strings.Join(d.askedFor(), ", "); asked != "payment pi_1" {
		t.Errorf("asked for %s", asked)
	}
}

// TestForeign_Invoice: an invoice without metadata, as older versions of the API tell that of a
// subscription, does not make its payment foreign: nobody has asked for that.
func TestForeign_Invoice(t *testing.T) {
	d := newDesk(t)
	d.stub.objects["pi_1"] = seenPayment("pi_1", aPurchase)
	bill := object(tracking.KindInvoice, "in_1", "open", "", "", thing{"payment_intent": "pi_1", "subscription": "sub_1"})
	d.takes(message("evt_1", "invoice.finalized", shopAt, bill), tracking.Ignored)
	if _, err := d.service.Replay(t.Context(), "evt_1"); err != nil { // as the release of a quarantined one
		t.Fatal(err)
	}
	d.takes(undecided("evt_2", "pi_1"), tracking.Received)
	d.drain()
	d.is("evt_2", tracking.Applied)
}

// TestAttachedPayment: a payment of a part, attached by hand to an open invoice, fulfils nothing. The
// paid invoice does, and then the payment has its row.
func TestAttachedPayment(t *testing.T) {
	d := newDesk(t)
	part := seenPayment("pi_1", aPurchase)
	part.Tag.Kind, part.Invoice, part.Attached = tracking.Product, "in_1", true
	d.stub.objects["pi_1"] = part
	d.takes(undecided("evt_1", "pi_1"), tracking.Received)
	d.drain()
	d.is("evt_1", tracking.Applied) // a payment of the purchase, which fulfils nothing
	if v, err := d.service.Apply(t.Context(), shopAt, part); err != nil || v {
		t.Errorf("a sweep: got %v, %v", v, err)
	}
	if d.deliver(); len(d.robot.jobs()) > 0 {
		t.Fatalf("jobs of a part: %v", d.robot.jobs())
	}
	d.takes(message("evt_2", "invoice.paid", shopAt, object(tracking.KindInvoice, "in_1", "paid", aPurchase,
		tracking.Product)), tracking.Applied)
	part.Attached = false
	if _, err := d.service.Apply(t.Context(), shopAt, part); err != nil {
		t.Fatal(err)
	}
	d.deliver()
	if p, err := d.service.Payment(t.Context(), shopAt, "pi_1"); err != nil || p.Status != tracking.PaymentPaid ||
		!slices.Equal(d.robot.jobs(), []string{"fulfil/" + aPurchase}) {
		t.Errorf("got %+v, %v; jobs %v", p, err, d.robot.jobs())
	}
}

// TestForeign_LinkedLate: Stripe links a payment to its invoice after the first event of the
// payment came, or even after its success. The payment is ours all the same.
func TestForeign_LinkedLate(t *testing.T) {
	link := thing{"invoice": "in_1", "payment": thing{"type": "payment_intent", "payment_intent": "pi_1"}}
	for name, unlinkedAtSuccess := range map[string]bool{"before its success": false, "after its success": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			payment := func(status, purchase string) {
				o := seenPayment("pi_1", purchase)
				if o.Status = status; purchase != "" {
					o.Invoice = "in_1"
				}
				d.stub.objects["pi_1"] = o
			}
			tell := func(id, typ, kind, object_, status string, want tracking.EventStatus, more ...thing) {
				t.Helper()
				d.takes(message(id, typ, shopAt, object(kind, object_, status, "", "", append(more, thing{"customer": "cus_1"})...)),
					tracking.Received)
				d.drain()
				d.is(id, want)
			}
			payment("requires_payment_method", "")
			tell("evt_1", "payment_intent.created", tracking.KindPayment, "pi_1", "requires_payment_method", tracking.Ignored)
			if unlinkedAtSuccess {
				payment("succeeded", "")
				tell("evt_2", "payment_intent.succeeded", tracking.KindPayment, "pi_1", "succeeded", tracking.Ignored)
				payment("succeeded", aPurchase)
				tell("evt_3", "invoice_payment.paid", tracking.KindInvoicePayment, "inpay_1", "paid", tracking.Applied, link)
			} else {
				payment("succeeded", aPurchase)
				tell("evt_2", "payment_intent.succeeded", tracking.KindPayment, "pi_1", "succeeded", tracking.Applied)
			}
			p, err := d.service.Payment(t.Context(), shopAt, "pi_1")
			if err != nil || p.Status != tracking.PaymentPaid || p.Invoice != "in_1" || p.Purchase != aPurchase {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
}

// TestPayment_OfAPart: two payments of one invoice are both kept, and fulfil the purchase when the
// invoice is paid.
func TestPayment_OfAPart(t *testing.T) {
	d := newDesk(t)
	for id, amount := range map[string]int64{"pi_1": 400, "pi_2": 500} {
		o := seenPayment(id, aPurchase)
		o.Status, o.Amount, o.Invoice, o.Attached, o.Tag.Kind = "succeeded", amount, "in_1", true, tracking.Product
		d.stub.objects[id] = o
		d.takes(message("evt_"+id, "payment_intent.succeeded", shopAt, object(tracking.KindPayment, id, "succeeded", "", "",
			thing{"customer": "cus_1"})), tracking.Received)
		d.drain()
		d.is("evt_"+id, tracking.Applied)
		// Another event of the payment, which fetches nothing.
		d.takes(message("evt_again_"+id, "payment_intent.amount_capturable_updated", shopAt,
			object(tracking.KindPayment, id, "succeeded", "", "", thing{"customer": "cus_1", "amount": amount})), tracking.Applied)
		if p, err := d.service.Payment(t.Context(), shopAt, id); err != nil || p.Status != tracking.PaymentPaid || p.Amount != amount {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	fulfilment := func() tracking.EffectState {
		p, err := d.service.Purchase(t.Context(), aPurchase)
		if err != nil {
			t.Fatal(err)
		}
		return p.Fulfilment.State
	}
	if state := fulfilment(); state != tracking.NotAsked {
		t.Errorf("the parts alone: the fulfilment is %q", state)
	}
	d.takes(message("evt_paid", "invoice.paid", shopAt, object(tracking.KindInvoice, "in_1", "paid", aPurchase, tracking.Product)),
		tracking.Applied)
	if state := fulfilment(); state == tracking.NotAsked {
		t.Error("the invoice is paid, and nothing is fulfilled")
	}
}

// TestForeign_Together: workers that meet the events of one payment at the same moment ask Stripe once,
// because the next event waits until the answer is stored.
func TestForeign_Together(t *testing.T) {
	d := newDesk(t)
	const payments = 200
	for n := range payments {
		id := fmt.Sprint("pi_", n)
		d.stub.objects[id] = seenPayment(id, "")
		for k, typ := range []string{"created", "processing", "canceled"} {
			d.takes(message(fmt.Sprintf("evt_%d_%d", n, k), "payment_intent."+typ, shopAt, object(tracking.KindPayment, id,
				"canceled", "", "", thing{"customer": "cus_1"})), tracking.Received)
		}
	}
	d.drain()
	asked := strings.Join(d.stub.asked, "\n") + "\n"
	for n := range payments {
		if got := strings.Count(asked, fmt.Sprintf("payment %s/pi_%d\n", shopAt, n)); got != 1 {
			t.Errorf("pi_%d: asked %d times", n, got)
		}
	}
}
