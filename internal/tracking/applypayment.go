package tracking

import (
	"cmp"
	"fmt"
	"maps"
)

func (a *application) applyPayment(o Object) error {
	if err := a.needPayment(o); err != nil || a.status != "" {
		return err
	}
	p, before := a.payment, a.payment.Status
	a.fetched = a.fetched || o.Kind == KindPayment && o.Fetched
	if o.Kind == KindInvoicePayment && o.Status == "paid" && p.Status != PaymentPaid && !a.fetched {
		return need{kind: KindPayment, id: p.ID} // its own events may have come before this link
	}
	if p.attached && o.Kind == KindPayment && o.Fetched && !o.Attached {
		p.attached, a.changed.payment = false, true
	}
	changes, ask := mergePayment(p, o, a.fresh)
	a.note(&p.History, changes...)
	if a.changed.payment = a.changed.payment || len(changes) > 0 || ask; ask {
		a.refetch = p.ID + "/" + o.ID
	}
	a.set(Applied, "")
	by, settled := p.ID, o.Kind == KindInvoice && o.Status == "paid" // perhaps by other means than this payment
	if settled {
		by = o.ID
	}
	paid := p.Status == PaymentPaid && (before != PaymentPaid || a.changed.payment)
	// The payment of a subscription's invoice fulfils nothing: the subscription does. Nor does a part of an
	// invoice, which tells when it is paid.
	if p.Subscription != "" || !settled && (!paid || p.attached) {
		return nil
	}
	return a.paid(p.Purchase, Object{}, by)
}

// needPayment gets the payment's row, or makes that of a purchase's payment. It decides the event if the
// payment is not ours.
func (a *application) needPayment(o Object) (err error) {
	switch {
	case a.payment != nil && a.payment.ID == o.Payment:
		return nil
	case a.changed.payment:
		return fmt.Errorf("%w: one commit would write two payments, %s and %s", errPoison, a.payment.ID, o.Payment)
	}
	if a.payment, err = row[Payment](a, KindPayment, o.Payment); err != nil {
		return err
	}
	if a.payment != nil {
		a.payment.Refunds = maps.Clone(a.payment.Refunds)
		return nil
	}
	switch {
	case o.Tag.Purchase != "" && (o.InvoiceTold || o.Kind == KindInvoice || !recurring(o.Tag.Kind)):
	case o.Kind == KindInvoice:
		a.set(Ignored, notOurs)
		return nil
	case o.Kind == KindPayment && o.InvoiceTold && (o.Fetched || o.Invoice == "" && o.Customer == ""):
		// An event's payment with a customer may have an invoice of a newer kind, which its version
		// of the API does not tell: then Stripe is asked.
		a.decision = decision{status: Ignored, reason: notOurs, foreign: true, mark: markOf(o)}
		return nil
	default:
		return need{kind: KindPayment, id: o.Payment}
	}
	if err := a.needPurchase(o.Tag.Purchase, o); err != nil {
		return err
	}
	a.payment = &Payment{ID: o.Payment, StripeAccount: a.at, Merchant: a.merchant, Purchase: o.Tag.Purchase,
		Status: PaymentNew, Created: cmp.Or(o.Created, a.noted), attached: o.Attached}
	a.changed.payment = true
	return nil
}
