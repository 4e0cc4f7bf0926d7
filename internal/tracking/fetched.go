package tracking

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// Apply merges an object fetched from Stripe, as if an event had told it, and reports whether it
// changed anything. at is the connected account, "" for our own.
func (in *intake) Apply(ctx context.Context, at string, o Object) (changed bool, err error) {
	return in.applyFetched(ctx, cmp.Or(at, in.o.Own), o)
}

// applyFetched merges objects of which each may be about another row, one commit each.
func (in *intake) applyFetched(ctx context.Context, at string, objects ...Object) (changed bool, err error) {
	merchant, err := in.merchantOf(ctx, at)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		o.Fetched = true
		err := store.Retry(ctx, o.Kind+" "+o.ID, func() error {
			if o.Kind == KindDispute { // it never makes its payment known: most disputes are about other payments
				if _, err := in.Payment(ctx, at, o.Payment); err != nil {
					return ignoreNotFound(err)
				}
			}
			t := &turn{intake: in, by: askStripe}
			if err := t.work(ctx, at, merchant, o); err != nil {
				return err
			}
			is, err := t.fileRows(ctx)
			changed = changed || is
			return err
		})
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// refresh fetches a subscription (sub_…), or a payment's dispute (pi_…/du_…), whose state its events cannot
// tell. The answer counts only if no event about the row was applied meanwhile, because that may be newer.
func (in *intake) refresh(ctx context.Context, at, id string, by effort) error {
	merchant, err := in.merchantOf(ctx, at)
	if err != nil {
		return err
	}
	n := need{kind: KindSubscription, id: id}
	payment, dispute, ofDispute := strings.Cut(id, "/")
	if ofDispute {
		n = need{kind: KindDispute, id: dispute}
	}
	return store.Retry(ctx, n.kind+" "+n.id, func() error {
		var before int64
		if ofDispute {
			p, err := in.Payment(ctx, at, payment)
			if err != nil {
				return ignoreNotFound(err)
			}
			before = p.version
		} else {
			sub, err := in.Subscription(ctx, at, id)
			if err != nil {
				return ignoreNotFound(err)
			}
			before = sub.version
		}
		o, err := in.fetch(ctx, at, n)
		if err != nil {
			return err
		}
		t := &turn{intake: in, by: by, application: application{rule: rule{fresh: true}}}
		if err := t.work(ctx, at, merchant, o); err != nil {
			return err
		}
		if t.subscription != nil && t.subscription.version == before || t.payment != nil && t.payment.version == before {
			_, err = t.fileRows(ctx)
			return err
		}
		return fmt.Errorf("%w: an event for it was applied in the meantime", store.ErrConflict)
	})
}
