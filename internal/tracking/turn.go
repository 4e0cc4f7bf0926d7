package tracking

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// An intake takes events and fetched objects into the store, each in a turn.
type intake struct {
	*registry
	seed   maphash.Seed
	asking [64]chan struct{} // by payment: holds one while one of its events asks Stripe
}

// A turn takes one event, or one object fetched from Stripe, into the store: decide finds its decision by
// the stored rows and Stripe's answers, apply merges it into copies of the rows, and file stores all of it
// in one commit.
type turn struct {
	*intake
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

func (in *intake) fetch(ctx context.Context, at string, n need) (Object, error) {
	if at == in.o.Own {
		at = ""
	}
	o, err := in.o.Finder.Object(ctx, at, n.kind, n.id)
	if o.Fetched = true; o.Kind == KindSchedule && o.Subscription == "" {
		o.Subscription = n.of // Stripe may forget it once the schedule has ended
	}
	return o, err
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
