package bench

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/consumption"
)

// A hookEvent has the values for the template of an event.
type hookEvent struct {
	template int
	event    int // number
	object   int // number of the payment or the subscription, and of its customer
	payment  int // number of the payment
	account  int // number of the connected account
	created  int64
	purchase string
}

// event is the i-th event: a third of each type. Payments come once each, in the order in which
// they were made; subscriptions come again and again. 5,000 have the same time.
func (w *Webhooks) event(i int) hookEvent {
	e := hookEvent{template: i % len(w.templates), event: i, created: w.base.Unix() + int64(i/5000)}
	n := i / len(w.templates)
	if e.template == 0 {
		e.object, e.payment, e.purchase = n, n, w.payments[n]
	} else {
		e.object = int(uint32(consumption.Scatter(n))) % len(w.subscriptions)
		e.purchase, e.payment = w.subscriptions[e.object], firstInvoice+i
	}
	e.account = e.object % w.accounts
	return e
}

func (e *hookEvent) fill(t *template, body []byte) {
	t.text(body, slotPurchase, e.purchase)
	t.number(body, slotCreated, int(e.created))
	t.number(body, slotEvent, consumption.Scatter(e.event))
	t.number(body, slotAccount, e.account)
	t.number(body, slotCustomer, e.object)
	t.number(body, slotPayment, e.payment)
	t.number(body, slotSubscription, e.object)
	t.number(body, slotInvoice, firstInvoice+e.event)
}

// A mac is the v1 of a signature. It is all that is kept of an event that is ready: a heap full
// of bodies would spare the collector its work.
type mac [32]byte

func (w *Webhooks) sign(events int) error {
	w.first, w.ready, w.signed = w.made, w.ready[:0], time.Now()
	for i := range events {
		e := w.event(w.made + i)
		body := append([]byte(nil), w.templates[e.template].body...)
		e.fill(&w.templates[e.template], body)
		var m mac
		if _, err := hex.Decode(m[:], []byte(event.Sign(body, w.key, w.signed)[len(w.head()):])); err != nil {
			return err
		}
		w.ready = append(w.ready, m)
	}
	return nil
}

func (w *Webhooks) head() string { return fmt.Sprintf("t=%d,v1=", w.signed.Unix()) }
