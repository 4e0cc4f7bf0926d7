package tracking

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// names reports whether it is a thin event whose object has to be fetched. Of an invoice, its
// payment and a charge, only these events tell what no other event does.
func (e *Event) names() bool {
	if !e.Object.Thin || e.Object.ID == "" {
		return false
	}
	switch e.Object.Kind {
	case KindPayment, KindSubscription, KindSchedule, KindRefund, KindDispute:
		return true
	case KindInvoice:
		return e.Type == "invoice.paid"
	case KindInvoicePayment:
		return e.Type == "invoice_payment.paid"
	case KindCharge:
		return e.Type == "charge.refunded"
	}
	return false
}

// decideThin fetches the object of a thin event, and decides the event as if it had told it. If the
// snapshot event of the same change has come before, that one decides, and nothing is fetched.
func (s *Service) decideThin(ctx context.Context, e *Event, by effort) (decision, error) {
	twin, err := s.eventOrMarker(ctx, e.Twin)
	isNew := errors.Is(err, store.ErrNotFound)
	switch {
	case err != nil && !isNew:
		return decision{}, err
	case !isNew && !twin.isMarker() && twin.StripeAccount == e.StripeAccount && twin.Status != Dead &&
		twin.Status != Refused:
		return ignored("the same as " + twin.ID + ", which is " + string(twin.Status)), nil
	case by == fromStore:
		return s.later(e, pendingEvent, need{kind: e.Object.Kind, id: e.Object.ID}.Error(), 0), nil
	}
	o, err := s.fetch(ctx, e.StripeAccount, need{kind: e.Object.Kind, id: e.Object.ID})
	if errors.Is(err, ErrGone) {
		return ignored(gone), nil
	} else if err != nil {
		return decision{}, err
	}
	decide := s.decide
	if e.payment() == "" { // of a refund, only its object tells the payment
		decide = s.decideOnce
	}
	e.Object, e.Subscription = o, cmp.Or(o.Subscription, e.Subscription)
	d, err := decide(ctx, e, by)
	if err == nil && d.status == Applied { // Rebuild folds it
		text, fault := json.Marshal(o)
		e.fetched, err = string(text), fault
	}
	if err == nil && d.status == Applied && isNew && e.Twin != "" {
		d.writes = append(d.writes, s.twinMarker(e))
	}
	return d, err
}

// twinMarker writes an item in the place of the snapshot event that tells what the thin event has
// told: an id, the twin and an expiration, in no index. The snapshot event replaces it.
func (s *Service) twinMarker(thin *Event) store.Write {
	return store.Put(s.events, store.NewItem(store.Attribute{Name: schema.TrackedID, Value: store.S(thin.Twin)},
		store.Attribute{Name: schema.TrackedTwin, Value: store.S(thin.ID)},
		store.Attribute{Name: schema.TrackedExpiration, Value: store.Int(thin.expiration().Unix())}), store.Absent())
}

// isMarker reports whether a stored event has not come itself.
func (e *Event) isMarker() bool { return e.Type == "" }

// noteThin records, once and before the first such event is stored, that the account has sent a thin
// event: the poller lists these too. The next round lists them from the beginning, since earlier ones
// may be lost.
func (s *Service) noteThin(ctx context.Context, e *Event, status EventStatus) error {
	if e.ToldType == "" || status == Refused {
		return nil
	}
	if _, known := s.thin.Load(e.StripeAccount); known {
		return nil
	}
	_, err := s.changeAccount(ctx, e.StripeAccount, func(a *ConnectedAccount) bool {
		if a.Polled.Thin {
			return false
		}
		a.Polled.Thin, a.Polled.Checked = true, time.Time{}
		return true
	})
	if errors.Is(err, ErrUnregistered) { // its release notes it
		return nil
	}
	if err == nil {
		s.thin.Store(e.StripeAccount, true)
	}
	return err
}
