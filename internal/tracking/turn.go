package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// A turn takes one event, or one object fetched from Stripe, into the store: decide finds its decision by
// the stored rows and Stripe's answers, apply merges it into copies of the rows, and file stores all of it
// in one commit.
type turn struct {
	*Service
	e  *Event // nil: an object was fetched
	by effort
	application
	writes []store.Write // the changed rows with their effects, or rows that the event waits by
	held   chan struct{} // its place among the events of its payment, given up by end; nil: none
}

// An effort says by which means an event may be decided.
type effort int

const (
	fromStore effort = iota // by stored rows; the inbox decides the rest
	askStripe               // by asking Stripe as well
	anew                    // as askStripe, also for a payment that was seen to be foreign
	forced                  // as anew; a schedule without a known end was cancelled
)

const gone = "Stripe has no such object any more"

// later leaves the event to the inbox.
func (t *turn) later(kind, reason string, wait time.Duration) error {
	t.set(Received, reason)
	t.writes = []store.Write{t.pending(kind, t.e.ID, wait)}
	return nil
}

// ignore is the decision about an event that is not followed here.
func (t *turn) ignore(reason string) error {
	t.set(Ignored, reason)
	return nil
}

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

// work applies the object of a merchant. It reads the rows and fetches the objects that apply lacks, and
// applies all objects again. By fromStore it returns a need.
func (t *turn) work(ctx context.Context, at, merchant string, o Object) error {
	t.application = application{at: at, merchant: merchant, installation: t.o.Installation, known: map[unread]any{},
		rule: rule{endedBy: t.o.EndedBy, force: t.by == forced, fresh: t.fresh}}
	if t.e != nil {
		t.event = t.e.ID
	}
	objects := []Object{o}
	for {
		t.noted = t.now()
		err := t.apply(objects)
		if lacks, ok := errors.AsType[unread](err); ok {
			if err := t.read(ctx, lacks); err != nil {
				return err
			}
			continue
		}
		n, lacks := errors.AsType[need](err)
		if !lacks || t.by == fromStore {
			return err
		}
		if slices.ContainsFunc(objects[:len(objects)-1], func(o Object) bool { return o.Kind == n.kind && o.ID == n.id }) {
			return fmt.Errorf("%s %s: %w", o.Kind, o.ID, errUndecided)
		}
		more, err := t.fetch(ctx, at, n)
		if errors.Is(err, ErrGone) && n.kind != KindPayment { // a lost part is not the whole
			return fmt.Errorf("%s %s: %w: %v", o.Kind, o.ID, errUndecided, err)
		}
		if err != nil {
			return err
		}
		objects = slices.Insert(objects, len(objects)-1, more)
		clear(t.known) // they may have changed meanwhile
	}
}

// read reads a row for the application.
func (t *turn) read(ctx context.Context, of unread) (err error) {
	var there any
	switch of.kind {
	case rowOfPurchase:
		there, err = t.loadPurchase(ctx, of.id)
	case KindPayment:
		there, err = t.Payment(ctx, t.at, of.id)
	default:
		there, err = t.Subscription(ctx, t.at, of.id)
	}
	t.known[of] = there
	return ignoreNotFound(err)
}

// rowWrites are the writes of the changed rows, with the effects asked for.
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

// ask writes the outbox's row for an action of the purchase.
func (s *Service) ask(p *Purchase, action Action) store.Write {
	asked := p.effect(action).Asked
	due := asked
	if action == ActionUnsubscribe {
		due = due.Add(s.o.UnsubscribeAfter)
	}
	return outbox.Write(s.o.Tables.Outbox.Name, outbox.Effect{Queue: outbox.Actions, ID: string(action) + "/" + p.ID,
		Kind: string(action), Created: asked, Due: due, Data: map[string]string{pendingID: p.ID}})
}
