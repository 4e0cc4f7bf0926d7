package tracking

import (
	"cmp"
	"context"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// importedReason is the reason of an effect that was done before the purchase was imported.
const importedReason = "imported"

// An Import is the result of importing one object.
type Import struct {
	New     bool   // the object has got a row
	Changed bool   // a row has changed
	Skipped string // why the object has no row; "" if it has one
}

// Import merges an object from Stripe's lists like Apply. It also creates the rows of a subscription
// without Duesday's metadata, and of the payments of such a subscription. It requests no effect for an
// object that gets its row here, unless Duesday created the purchase itself. A plan stores nothing. Repeated
// calls change nothing.
func (in *intake) Import(ctx context.Context, at string, o Object, plan bool) (i Import, err error) {
	of := func(subscription string) string {
		return purchaseID(in.salt, cmp.Or(at, in.o.Own), subscription)
	}
	i.Skipped = notOurs // a dispute or a refund without a payment reaches no turn
	err = in.applyFetched(ctx, at, o, of, func(t *turn) (err error) {
		i.New, i.Changed, i.Skipped = i.New || t.imported, i.Changed || len(t.writes) > 0, ""
		if t.status != Applied {
			i = Import{Skipped: t.reason}
		}
		if !plan {
			_, err = t.file(ctx)
		}
		return err
	})
	return i, err
}

// doneElsewhere records the due effects of an imported purchase as done. It returns false if the purchase
// was not imported or if Duesday has requested its fulfilment. paid is set if a single payment is paid.
func (p *Purchase) doneElsewhere(paid bool, now time.Time) bool {
	if p.Imported.IsZero() || p.Fulfilment.State != NotAsked && p.Fulfilment.Reason != importedReason {
		return false
	}
	begun, ends := paid, len(p.Subscriptions) > 0
	for _, s := range p.Subscriptions {
		over := s.Status == SubscriptionTerminated
		begun = begun || s.Status == SubscriptionActive || over && s.Ending != EndExpired
		ends = ends && over && s.Ending != EndCompleted
	}
	done := Effect{State: DoneWith, Reason: importedReason, Asked: now, Done: now}
	if begun && p.Fulfilment.State == NotAsked {
		p.Fulfilment, p.Fulfilled = done, true
	}
	switch {
	case begun && ends && p.Unsubscribe.State == NotAsked:
		p.Unsubscribe = done
	case !ends && p.Unsubscribe.Reason == importedReason: // the purchase has another subscription
		p.Unsubscribe = Effect{}
	}
	return true
}

// FulfilImported requests the fulfilment of an imported purchase whose subscription is active, and reports
// whether it did. Further calls do nothing.
func (in *intake) FulfilImported(ctx context.Context, at, subscription string) (asked bool, err error) {
	sub, err := in.Subscription(ctx, cmp.Or(at, in.o.Own), subscription)
	if err != nil {
		return false, err
	}
	p, err := in.Purchase(ctx, sub.Purchase)
	if err != nil {
		return false, err
	}
	_, err = in.changePurchase(ctx, p, func(p *Purchase) (bool, []store.Write) {
		if p.Imported.IsZero() || p.Fulfilment.Reason != importedReason || p.Unsubscribe.State != NotAsked ||
			p.Subscriptions[sub.ID].Status != SubscriptionActive {
			return false, nil
		}
		asked, p.Fulfilled = true, false
		p.Fulfilment = Effect{State: Asked, Reason: string(SubscriptionActive) + " " + sub.ID, Asked: in.now()}
		p.History = remember(p.History, Change{At: p.Fulfilment.Asked, What: "fulfil asked for: " + p.Fulfilment.Reason})
		return true, []store.Write{in.ask(p, ActionFulfil)}
	})
	return asked, err
}
