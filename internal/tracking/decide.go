package tracking

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// decide decides the event, and fills in its merchant and subscription. A panic is an errPoison. After
// it the caller must end the turn.
func (t *turn) decide(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", errPoison, p)
		}
	}()
	if is, err := t.begin(ctx); is || err != nil {
		return cmp.Or(err, t.ignore(notOurs))
	}
	e := t.e
	if t.settles() {
		return t.decideCharge(ctx)
	}
	e.Merchant, err = t.merchantOf(ctx, e.StripeAccount)
	isOwn := e.StripeAccount == t.o.Own
	switch {
	case e.names() && (err == nil || errors.Is(err, ErrUnregistered) && isOwn):
		return t.decideThin(ctx)
	case errors.Is(err, ErrUnregistered) && isOwn && e.Object.Tag.Purchase == "":
		return t.ignore("our own account sells nothing here")
	case errors.Is(err, ErrUnregistered):
		t.set(Quarantined, "the Stripe account is not registered")
		t.writes = t.quarantine(e.StripeAccount, e.ID)
		return nil
	case err != nil:
		return err
	case strings.HasPrefix(e.Type, "account.application."):
		return t.decideConnection(ctx)
	}
	err = t.work(ctx, e.StripeAccount, e.Merchant, e.Object)
	if n, undecided := errors.AsType[need](err); undecided {
		if is, err := t.isForeign(ctx); is || err != nil {
			return cmp.Or(err, t.ignore(notOurs))
		}
		return t.later(pendingEvent, n.Error(), 0)
	}
	switch {
	case errors.Is(err, ErrGone):
		return t.ignore(gone)
	case err == nil && t.status == Applied:
		e.Subscription = t.about(e.Subscription)
		t.writes = t.rowWrites()
	case err == nil && t.foreign && t.held != nil:
		t.writes = []store.Write{t.foreignMark()}
	case err == nil && t.status == "":
		err = fmt.Errorf("%w: no status was decided", errPoison)
	}
	return err
}

// settles reports whether the event is about a payment intent of billing's.
func (t *turn) settles() bool {
	o := &t.e.Object
	return o.Kind == KindPayment && o.Tag.Charge && o.Tag.Installation == t.o.Installation && t.o.Settler != nil
}

// decideCharge has billing settle its payment intent.
func (t *turn) decideCharge(ctx context.Context) error {
	if t.by == fromStore {
		return t.later(pendingCharge, "for billing to settle", settleWait)
	}
	tag := t.e.Object.Tag
	t.set(Applied, "settled by billing")
	return t.o.Settler.Heard(ctx, tag.ChargeAccount, tag.ChargeSubscription, t.e.Object.ID)
}

// decideConnection asks Stripe whether we have access: the order of its events is unknown.
func (t *turn) decideConnection(ctx context.Context) error {
	if t.by == fromStore {
		return t.later(pendingEvent, "to be looked at", 0)
	}
	status := Connected
	err := t.o.Finder.Connected(ctx, t.e.StripeAccount)
	switch {
	case errors.Is(err, ErrDisconnected):
		status = Disconnected
		t.o.Log.Warn("a Stripe account has disconnected", "account", t.e.StripeAccount)
	case err != nil:
		return err
	}
	t.set(Applied, string(status))
	_, err = t.connection(ctx, t.e.StripeAccount, status)
	return err
}

const gone = "Stripe has no such object any more"

// decideThin fetches the object that a thin event names without containing it, and decides the event as if
// it contained the object. If the snapshot event of the same change, its twin, has come before, the twin
// decides, and nothing is fetched.
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
func (t *turn) twinMarker(thin *Event) store.Write {
	return store.Put(t.events, store.NewItem(store.Attribute{Name: schema.TrackedID, Value: store.S(thin.Twin)},
		store.Attribute{Name: schema.TrackedTwin, Value: store.S(thin.ID)},
		store.Attribute{Name: schema.TrackedExpiration, Value: store.Int(thin.expiration().Unix())}), store.Absent())
}
