package tracking

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/store"
)

// changedNothing is noted for an event without news.
const changedNothing = "told again"

func (a *application) applyPayment(ctx context.Context, o Object) (decision, error) {
	if err := a.loadPayment(ctx, o.Payment); err != nil {
		return decision{}, err
	}
	if a.payment.Payment == nil {
		if d, err := a.beginPayment(ctx, o); err != nil || d.status != "" {
			return d, err
		}
	}
	p, before := a.payment.Payment, a.payment.Status
	changes := mergePayment(p, o)
	if len(changes) == 0 && a.event != "" && o.Kind == KindPayment { // no index leads to the event: the history does
		changes = append(changes, changedNothing)
	}
	a.note(&p.History, changes)
	a.payment.changed = a.payment.changed || len(changes) > 0
	settled := o.Kind == KindInvoice && o.Status == "paid" // perhaps by other means than this payment
	paid := p.Status == PaymentPaid && (before != PaymentPaid || a.payment.changed)
	// The payment of a subscription's invoice fulfils nothing: the subscription does.
	if p.Subscription != "" || !settled && !paid {
		return applied, nil
	}
	if err := a.loadPurchase(ctx, p.Purchase, Object{}); err != nil {
		return decision{}, err
	}
	if !recurring(a.purchase.Kind) {
		by := p.ID
		if settled {
			by = o.ID
		}
		a.askEffects(true, "paid "+by)
	}
	return applied, nil
}

// beginPayment makes the row of a purchase's payment. The decision has a status if it is not ours.
func (a *application) beginPayment(ctx context.Context, o Object) (decision, error) {
	switch {
	case o.Tag.Purchase != "" && (o.InvoiceTold || o.Kind == KindInvoice || !recurring(o.Tag.Kind)):
	case o.Kind == KindInvoice:
		return ignored("not ours"), nil
	case o.Kind == KindPayment && o.InvoiceTold && (o.Fetched || o.Invoice == "" && o.Customer == ""):
		// An event's payment with a customer may have an invoice of a newer kind, which its version
		// of the API does not tell: then Stripe is asked.
		return ignored("not ours"), nil
	default:
		return decision{}, need{kind: KindPayment, id: o.Payment}
	}
	if err := a.loadPurchase(ctx, o.Tag.Purchase, o); err != nil {
		return decision{}, err
	}
	a.payment = paymentRow{&Payment{ID: o.Payment, StripeAccount: a.at, Merchant: a.merchant, Purchase: o.Tag.Purchase,
		Status: PaymentNew, Created: a.created(o)}, true}
	return decision{}, nil
}

func (a *application) loadPayment(ctx context.Context, id string) error {
	if p := a.payment.Payment; p != nil && p.ID == id {
		return nil
	} else if a.payment.changed {
		return fmt.Errorf("%w: two payments in one commit: %s and %s", errPoison, p.ID, id)
	}
	p, err := a.s.Payment(ctx, a.at, id)
	if a.payment.Payment = p; errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
