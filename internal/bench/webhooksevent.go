package bench

import (
	"time"

	"github.com/duesday/duesday/internal/stripe"
)

// A hookEvent is an event that is signed and has only to be written out.
type hookEvent struct {
	template  int
	event     int // number
	object    int // number of the payment or the subscription, and of its customer
	payment   int // number of the payment
	created   string
	purchase  string
	signature [signatureLen]byte
}

// event is the i-th event: a third of each type. Payments come once each, in the order in which
// they were made; subscriptions come again and again.
func (w *Webhooks) event(i int, now time.Time) hookEvent {
	e := hookEvent{template: i % len(w.templates), event: i, created: unixAt(w.base, i)}
	n := i / len(w.templates)
	if e.template == 0 {
		e.object, e.payment, e.purchase = n, n, w.payments[n]
	} else {
		e.object = int(uint32(Scatter(n))) % len(w.subscriptions)
		e.purchase, e.payment = w.subscriptions[e.object], firstInvoice+i
	}
	t := &w.templates[e.template]
	body := append([]byte(nil), t.body...)
	e.fill(t, body)
	copy(e.signature[:], stripe.SignBody(body, w.key, now))
	return e
}

// fill writes the event into a copy of its template.
func (e *hookEvent) fill(t *template, body []byte) {
	t.text(body, slotCreated, e.created)
	t.text(body, slotPurchase, e.purchase)
	t.number(body, slotEvent, Scatter(e.event))
	t.number(body, slotAccount, e.object%hookAccounts)
	t.number(body, slotCustomer, e.object)
	t.number(body, slotPayment, e.payment)
	t.number(body, slotSubscription, e.object)
	t.number(body, slotInvoice, firstInvoice+e.event)
}
