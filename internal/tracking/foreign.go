package tracking

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

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
func (s *Service) isForeign(ctx context.Context, e *Event) (bool, error) {
	payment := e.payment()
	if payment == "" {
		return false, nil
	}
	mark, err := s.o.Store.Get(ctx, s.events, foreignKey(e.StripeAccount, payment))
	if err == nil {
		if !e.believes(mark.Str(schema.TrackedStatus)) {
			return false, nil
		}
		if _, err = s.Payment(ctx, e.StripeAccount, payment); errors.Is(err, store.ErrNotFound) {
			return true, nil
		}
	} else if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return false, err
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

func markOf(o Object) string {
	switch {
	case o.Invoice != "":
		return markedLinked
	case o.Status == "succeeded":
		return markedPaid
	}
	return ""
}

// believes reports whether the event needs no new look at a payment that was foreign: its link to
// an invoice may be made after its first events, so its success and the link's own event ask again.
func (e *Event) believes(mark string) bool {
	if mark == markedLinked {
		return true
	}
	succeeded := e.Type == "payment_intent.succeeded" || e.Object.Kind == KindPayment && e.Object.Status == "succeeded"
	return e.Object.Kind != KindInvoicePayment && (mark == markedPaid || !succeeded)
}

// decideOnce is decide with one answer from Stripe for all events of a foreign payment: they take
// turns. The caller must end the turn when the decision is filed, because only then do the next
// events find the payment's mark.
func (s *Service) decideOnce(ctx context.Context, e *Event, by effort) (decision, error) {
	payment := e.payment()
	if payment == "" {
		return s.decide(ctx, e, by)
	}
	turn := s.asking[maphash.String(s.seed, payment)%uint64(len(s.asking))]
	select {
	case turn <- struct{}{}:
		e.turn = turn
	case <-ctx.Done():
		return decision{}, ctx.Err()
	}
	if by == askStripe {
		if is, err := s.isForeign(ctx, e); is || err != nil {
			return ignored(notOurs), err
		}
	}
	d, err := s.decide(ctx, e, by)
	if err == nil && d.status == Ignored && (d.reason == notOurs || d.reason == others) {
		if d.reason == others {
			d.mark = markedLinked
		}
		lasts := keep
		if d.mark == "" {
			lasts = linkWait
		}
		mark := store.NewItem(store.Attribute{Name: schema.TrackedID, Value: store.S(foreignKey(e.StripeAccount, payment).PK)},
			store.Attribute{Name: schema.TrackedExpiration, Value: store.Int(s.now().Add(lasts).Unix())})
		if d.mark != "" {
			mark.Set(schema.TrackedStatus, store.S(d.mark))
		}
		d.writes = append(d.writes, store.Put(s.events, mark))
	}
	return d, err
}

// endTurn ends the event's turn among the events of its payment, if it has one.
func (e *Event) endTurn() {
	if e.turn != nil {
		<-e.turn
		e.turn = nil
	}
}

// The reasons by which a payment is foreign.
const (
	notOurs = "not ours"
	others  = "made by another installation"
)
