package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
			a, _, err := s.applyAsking(ctx, source{at: at, merchant: merchant}, o)
			if err != nil {
				return err
			}
			is, err := a.commit(ctx)
			changed = changed || is
			return err
		})
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// commit stores the changed rows, with the effects asked for, and reports whether there are any.
func (a *application) commit(ctx context.Context) (changed bool, err error) {
	writes := a.writes()
	if len(writes) == 0 {
		return false, nil
	}
	if err := a.s.commit(ctx, writes...); err != nil {
		return false, err
	}
	a.s.nudge()
	return true, nil
}

// applyAsking merges the object. It fetches the objects needed for that, and merges them first.
func (s *Service) applyAsking(ctx context.Context, from source, o Object) (*application, decision, error) {
	objects := []Object{o}
	for {
		a := &application{s: s, source: from}
		d, err := a.applyAll(ctx, objects)
		n, undecided := errors.AsType[need](err)
		if !undecided {
			return a, d, err
		}
		if slices.ContainsFunc(objects[:len(objects)-1], func(o Object) bool { return o.Kind == n.kind && o.ID == n.id }) {
			return nil, d, fmt.Errorf("%s %s: %w", o.Kind, o.ID, errUndecided)
		}
		more, err := s.fetch(ctx, from.at, n)
		if errors.Is(err, ErrGone) && n.kind != KindPayment { // a lost part is not the whole
			return nil, d, fmt.Errorf("%s %s: %w: %v", o.Kind, o.ID, errUndecided, err)
		}
		if err != nil {
			return nil, d, err
		}
		objects = slices.Insert(objects, len(objects)-1, more)
	}
}

// applyAll merges objects of one row. The decision is the last's, or a fetched foreign one's.
func (a *application) applyAll(ctx context.Context, objects []Object) (d decision, err error) {
	for i, o := range objects {
		d, err = a.apply(ctx, o)
		if i == len(objects)-1 || err == nil && d.status != Applied {
			break
		}
		if _, undecided := errors.AsType[need](err); undecided { // the fetched object does not tell either
			err = fmt.Errorf("%s %s: %w", o.Kind, o.ID, errUndecided)
		}
		if err != nil {
			break
		}
	}
	return d, err
}

// errUndecided: Stripe was asked, and does not tell enough, or not yet.
var errUndecided = errors.New("what Stripe tells does not decide it yet")

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
func (s *Service) refresh(ctx context.Context, at, id string, force bool) error {
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
		a, _, err := s.applyAsking(ctx, source{at: at, merchant: merchant, force: force, fresh: true}, o)
		if err != nil {
			return err
		}
		if a.subscription != nil && a.subscription.version == before || a.payment != nil && a.payment.version == before {
			_, err = a.commit(ctx)
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
