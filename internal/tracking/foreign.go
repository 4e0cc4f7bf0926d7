package tracking

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A foreign payment belongs to a registered account, but not to a purchase in this store. Its first
// event asks Stripe, and leaves a mark in the events table, which decides the payment's other events,
// also after a restart. A mark is in no index, and expires with the events: there are never more marks
// than events.

// foreignKey is the key of the payment's mark. No event has an id with a slash.
func foreignKey(at, payment string) store.Key { return store.Key{PK: at + "/" + payment} }

// payment returns the payment intent that Stripe may have to be asked for: "" if the object names a
// purchase, or is an invoice, which is never asked about.
func (e *Event) payment() string {
	switch o := &e.Object; {
	case o.Tag.Purchase != "", o.Kind == KindInvoice:
		return ""
	case o.Kind == KindPayment:
		return o.ID
	default:
		return o.Payment
	}
}

// isForeign reports whether the event's payment was seen to be foreign, and not to be ours since.
func (t *turn) isForeign(ctx context.Context) (bool, error) {
	payment := t.e.payment()
	if payment == "" {
		return false, nil
	}
	mark, err := t.o.Store.Get(ctx, t.events, foreignKey(t.e.StripeAccount, payment))
	if err != nil || !t.e.believes(mark.Str(schema.TrackedStatus)) {
		return false, ignoreNotFound(err)
	}
	_, err = t.Payment(ctx, t.e.StripeAccount, payment)
	return errors.Is(err, store.ErrNotFound), ignoreNotFound(err)
}

// The statuses of a mark: how much Stripe could tell when it was asked. A payment that had no
// invoice then may have got one since.
const (
	markedLinked = "linked" // the payment had an invoice
	markedPaid   = "paid"   // the payment had succeeded, without an invoice
)

// linkWait is how long a mark lasts of a payment that had neither an invoice nor succeeded: its
// link may come yet.
const linkWait = 10 * time.Minute

// believes reports whether the event needs no new look at a payment that was foreign: its link to
// an invoice may be made after its first events, so its success and the link's own event ask again.
func (e *Event) believes(mark string) bool {
	if mark == markedLinked {
		return true
	}
	succeeded := e.Type == "payment_intent.succeeded" || e.Object.Kind == KindPayment && e.Object.Status == "succeeded"
	return e.Object.Kind != KindInvoicePayment && (mark == markedPaid || !succeeded)
}

// begin waits until no other event of the payment asks Stripe, and reports whether the payment is
// known to be foreign by then. So one answer from Stripe does for all events of a foreign payment.
func (t *turn) begin(ctx context.Context) (foreign bool, err error) {
	payment := t.e.payment()
	if t.by == fromStore || t.held != nil || payment == "" {
		return false, nil
	}
	place := t.asking[maphash.String(t.seed, payment)%uint64(len(t.asking))]
	select {
	case place <- struct{}{}:
		t.held, t.heldFor = place, payment
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if t.by != askStripe {
		return false, nil
	}
	return t.isForeign(ctx)
}

// end lets the payment's next event ask. It comes after file, because only then the payment's mark is
// found.
func (t *turn) end() {
	if t.held != nil {
		<-t.held
		t.held = nil
	}
}

// foreignMark writes the mark of the event's payment, which Stripe has said to be foreign. It does not
// ask the event: a fetched object may name the purchase of another installation by now.
func (t *turn) foreignMark() store.Write {
	lasts := keep
	if t.mark == "" {
		lasts = linkWait
	}
	it := store.NewItem(attribute(schema.TrackedID, foreignKey(t.e.StripeAccount, t.heldFor).PK))
	it.Set(schema.TrackedExpiration, store.Int(t.now().Add(lasts).Unix()))
	if t.mark != "" {
		it.Set(schema.TrackedStatus, store.S(t.mark))
	}
	return store.Put(t.events, it)
}

// notOurs is the reason of an event about a foreign payment.
const notOurs = "not ours"
