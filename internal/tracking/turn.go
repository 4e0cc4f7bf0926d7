package tracking

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An intake processes events and fetched objects, using one turn for each.
type intake struct {
	*registry
	seed   maphash.Seed
	asking [64]chan struct{} // one slot per payment hash, taken while an event of such a payment asks Stripe
}

// A turn processes one event, or one object fetched from Stripe. decide uses the stored rows and
// Stripe's answers, apply changes copies of the rows, and file stores everything in one commit.
type turn struct {
	*intake
	e  *Event // nil if the turn processes a fetched object
	by effort
	application
	writes []store.Write // changed rows and their effects, or the row with which the event waits
	held   chan struct{} // the slot in asking that this turn has taken, until end; or nil

	heldFor string // the payment that the slot is for
}

// An effort limits the means that a turn may use to decide an event.
type effort int

const (
	fromStore effort = iota // use only stored rows and leave the rest to the inbox
	askStripe               // also ask Stripe
	anew                    // like askStripe, and ask again about a payment known to be foreign
	forced                  // like anew, and treat a schedule with an unknown end as cancelled
)

// later leaves the event to the inbox, which decides it after the wait.
func (t *turn) later(kind, reason string, wait time.Duration) error {
	t.set(Received, reason)
	t.writes = []store.Write{t.pending(kind, t.e.ID, wait)}
	return nil
}

// ignore gives the event the status Ignored, with the reason.
func (t *turn) ignore(reason string) error {
	t.set(Ignored, reason)
	return nil
}

// decide chooses the event's new status, and sets its merchant and subscription. It returns errPoison
// if it panics. The caller must call end afterwards.
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
	if o := &e.Object; o.Kind == KindPayment && o.Tag.Charge && o.Tag.Installation == t.o.Installation && t.o.Settler != nil {
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
		t.writes = []store.Write{store.Put(t.accounts, registryRow(quarantineRows, e.StripeAccount+"#"+e.ID)),
			store.Check(t.accounts, accountKey(e.StripeAccount), store.Absent())} // fails if the account has been registered meanwhile
		return nil
	case err != nil:
		return err
	case strings.HasPrefix(e.Type, "account.application."):
		return t.decideConnection(ctx)
	}
	t.at, t.merchant, t.event = e.StripeAccount, e.Merchant, e.ID
	err = t.work(ctx, e.Object)
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
	case err == nil && t.foreign && t.held != nil:
		t.writes = []store.Write{t.foreignMark()}
	case err == nil && t.status == "":
		err = fmt.Errorf("%w: no status was decided", errPoison)
	}
	return err
}

// decideCharge passes the event to billing, which settles its own payment intent.
func (t *turn) decideCharge(ctx context.Context) error {
	if t.by == fromStore {
		return t.later(pendingCharge, "for billing to settle", settleWait)
	}
	tag := t.e.Object.Tag
	t.set(Applied, "settled by billing")
	return t.o.Settler.Heard(ctx, tag.ChargeAccount, tag.ChargeSubscription, t.e.Object.ID)
}

// decideConnection asks Stripe whether the account still grants access, because the order of such
// events is unknown.
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

// decideThin fetches the object that a thin event names, and decides the event as if it contained
// the object. If the snapshot event of the same change, its twin, arrived first, decideThin fetches
// nothing, because the twin decides.
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
	e.fetched = string(told) // Rebuild uses this copy
	if isNew && e.Twin != "" {
		t.writes = append(t.writes, t.twinMarker(e))
	}
	return err
}

// twinMarker returns the write of a marker in the place of the snapshot event whose change the thin
// event has already applied. The marker has an ID, its twin and an expiration, and is not in any
// index. The snapshot event replaces it on arrival.
func (t *turn) twinMarker(thin *Event) store.Write {
	it := store.NewItem(attribute(schema.TrackedID, thin.Twin), attribute(schema.TrackedTwin, thin.ID))
	it.Set(schema.TrackedExpiration, store.Int(thin.expiration().Unix()))
	return store.Put(t.events, it, store.Absent())
}

// work applies the object. When apply returns a need, work reads the row or fetches the object that
// is missing, and then applies all objects again. If the effort is fromStore, work does
// not ask Stripe, and returns the need as its error.
func (t *turn) work(ctx context.Context, o Object) error {
	t.installation, t.endedBy, t.force, t.known = t.o.Installation, t.o.EndedBy, t.by == forced, map[need]any{}
	t.taker = t.takerAt(t.at)
	objects := []Object{o}
	for {
		t.noted = t.now()
		err := t.apply(objects)
		n, lacks := errors.AsType[need](err)
		switch {
		case err == nil && t.status == Applied:
			t.writes = t.rowWrites()
			return nil
		case n.row:
			if t.known[n], err = t.read(ctx, n); err != nil {
				return err
			}
			continue
		case !lacks || t.by == fromStore:
			return err
		}
		if slices.ContainsFunc(objects[:len(objects)-1], func(o Object) bool { return o.Kind == n.kind && o.ID == n.id }) {
			return fmt.Errorf("%s %s: %w", o.Kind, o.ID, errUndecided)
		}
		more, err := t.fetch(ctx, t.at, n)
		if errors.Is(err, ErrGone) && n.kind != KindPayment { // Stripe lost a related object, but not the object itself
			return fmt.Errorf("%s %s: %w: %v", o.Kind, o.ID, errUndecided, err)
		}
		if err != nil {
			return err
		}
		objects = slices.Insert(objects, len(objects)-1, more)
		clear(t.known) // the rows may have changed during the fetch
	}
}

// read returns a row for the application, or nil if the row does not exist.
func (t *turn) read(ctx context.Context, n need) (there any, err error) {
	switch n.kind {
	case rowOfPurchase:
		there, err = t.loadPurchase(ctx, n.id)
	case KindPayment:
		there, err = t.Payment(ctx, t.at, n.id)
	default:
		there, err = t.Subscription(ctx, t.at, n.id)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return there, err
}

func (in *intake) fetch(ctx context.Context, at string, n need) (Object, error) {
	if at == in.o.Own {
		at = ""
	}
	o, err := in.o.Finder.Object(ctx, at, n.kind, n.id)
	if o.Fetched = true; o.Kind == KindSchedule && o.Subscription == "" {
		o.Subscription = n.of // Stripe may drop the subscription once the schedule has ended
	}
	return o, err
}

// rowWrites returns the writes of the changed rows and of the requested effects.
func (t *turn) rowWrites() (list []store.Write) {
	tables := &t.o.Tables.Tracking
	if t.changed.purchase {
		list = append(list, put(tables.Purchases.Name, t.purchase.fields, t.noted))
	}
	if t.changed.payment {
		list = append(list, put(tables.Payments.Name, t.payment.fields, t.noted))
	}
	if t.changed.subscription {
		list = append(list, put(tables.Subscriptions.Name, t.subscription.fields, t.noted))
	}
	for _, action := range t.asked {
		list = append(list, t.ask(t.purchase, action))
	}
	if t.refetch != "" {
		list = append(list, t.pending(pendingRefresh, t.at+"/"+t.refetch, 0))
	}
	return list
}
