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
func (t *turn) decideThin(ctx context.Context) error {
	e := t.e
	twin, err := t.eventOrMarker(ctx, e.Twin)
	isNew, n := errors.Is(err, store.ErrNotFound), need{kind: e.Object.Kind, id: e.Object.ID}
	switch {
	case err != nil && !isNew:
		return err
	case !isNew && !twin.isMarker() && twin.StripeAccount == e.StripeAccount && twin.Status != Dead &&
		twin.Status != Refused:
		return t.ignore("the same as " + twin.ID + ", which is " + string(twin.Status))
	case t.by == fromStore:
		return t.later(pendingEvent, n.Error(), 0)
	}
	o, err := t.fetch(ctx, e.StripeAccount, n)
	if errors.Is(err, ErrGone) {
		return t.ignore(gone)
	} else if err != nil {
		return err
	}
	e.Object, e.Subscription = o, cmp.Or(o.Subscription, e.Subscription)
	if err = t.decide(ctx); err != nil || t.status != Applied {
		return err
	}
	told, err := json.Marshal(o)
	e.fetched = string(told) // Rebuild folds it
	if isNew && e.Twin != "" {
		t.writes = append(t.writes, t.twinMarker(e))
	}
	return err
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
