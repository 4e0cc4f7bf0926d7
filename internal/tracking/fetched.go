package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// Apply merges an object fetched from Stripe, as if an event had told it, and reports whether it
// changed anything. at is the connected account, "" for our own.
func (s *Service) Apply(ctx context.Context, at string, o Object) (changed bool, err error) {
	return s.applyFetched(ctx, cmp.Or(at, s.o.Own), o)
}

// applyFetched merges objects of which each may be about another row, one commit each.
func (s *Service) applyFetched(ctx context.Context, at string, objects ...Object) (changed bool, err error) {
	merchant, err := s.merchantOf(ctx, at)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		o.Fetched = true
		err := store.Retry(ctx, o.Kind+" "+o.ID, func() error {
			if o.Kind == KindDispute { // it never makes its payment known: most disputes are about other payments
				if _, err := s.Payment(ctx, at, o.Payment); err != nil {
					return ignoreNotFound(err)
				}
			}
			t := &turn{Service: s, by: askStripe}
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

func (s *Service) fetch(ctx context.Context, at string, n need) (Object, error) {
	if at == s.o.Own {
		at = ""
	}
	o, err := s.o.Finder.Object(ctx, at, n.kind, n.id)
	if o.Fetched = true; o.Kind == KindSchedule && o.Subscription == "" {
		o.Subscription = n.of // Stripe may forget it once the schedule has ended
	}
	return o, err
}

// refresh fetches a subscription (sub_…), or a payment's dispute (pi_…/du_…), whose state its events cannot
// tell. The answer counts only if no event about the row was applied meanwhile, because that may be newer.
func (s *Service) refresh(ctx context.Context, at, id string, by effort) error {
	merchant, err := s.merchantOf(ctx, at)
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
			p, err := s.Payment(ctx, at, payment)
			if err != nil {
				return ignoreNotFound(err)
			}
			before = p.version
		} else {
			sub, err := s.Subscription(ctx, at, id)
			if err != nil {
				return ignoreNotFound(err)
			}
			before = sub.version
		}
		o, err := s.fetch(ctx, at, n)
		if err != nil {
			return err
		}
		t := &turn{Service: s, by: by, application: application{rule: rule{fresh: true}}}
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

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// A thin event names an object and does not contain it (docs/internals/tracking.md). A
// change may be told by a thin event and by a snapshot event: they are twins.
