package tracking

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duesday/duesday/internal/store"
)

// Apply merges an object that was seen at Stripe, as if an event had told it, and reports
// whether it changed anything. at is the connected account, "" for our own. What belongs to no
// purchase of ours changes nothing.
func (s *Service) Apply(ctx context.Context, at string, o Object) (changed bool, err error) {
	return s.applySeen(ctx, at, false, o)
}

// applySeen merges objects of which each may be about another row, one commit each.
func (s *Service) applySeen(ctx context.Context, at string, force bool, objects ...Object) (changed bool, err error) {
	if at == "" {
		at = s.o.Own
	}
	account, err := s.customerOf(ctx, at)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		o.Seen = true
		one, err := s.applyOne(ctx, at, account, force, o)
		if err != nil {
			return changed, err
		}
		changed = changed || one
	}
	if changed {
		s.nudge()
	}
	return changed, nil
}

func (s *Service) applyOne(ctx context.Context, at, account string, force bool, o Object) (changed bool, err error) {
	for range maxTries {
		a := &application{s: s, at: at, account: account, seen: true, force: force}
		if _, err := a.decide(ctx, o); err != nil {
			return false, err
		}
		writes, err := a.writes()
		if err != nil || len(writes) == 0 {
			return false, err
		}
		if err = s.commit(ctx, writes...); err == nil || !again(err) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("%s %s: overtaken by others %d times", o.Kind, o.ID, maxTries)
}

// decide merges the object, and asks Stripe for what that needs, which is merged before it.
func (a *application) decide(ctx context.Context, o Object) (finding, error) {
	objects := []Object{o}
	for {
		f, err := a.all(ctx, objects...)
		if err != nil || f.need.id == "" {
			return f, err
		}
		asked := slices.ContainsFunc(objects[:len(objects)-1], func(o Object) bool { return o.Kind == f.need.kind && o.ID == f.need.id })
		if asked {
			return finding{}, fmt.Errorf("%s %s: %w", o.Kind, o.ID, errUndecided)
		}
		more, err := a.s.find(ctx, a.at, f.need)
		if errors.Is(err, ErrGone) && f.need.kind != KindPayment && !o.thin() { // that a part is gone says nothing of the whole
			return finding{}, fmt.Errorf("%s %s: %w: %v", o.Kind, o.ID, errUndecided, err)
		}
		if err != nil {
			return finding{}, err
		}
		a.undecided(need{}) // begin anew, with what is known now
		if o.thin() {
			o, objects = more, []Object{more}
			continue
		}
		objects = slices.Insert(objects, len(objects)-1, more)
	}
}

// all merges objects of one row, in turn; the finding is that of the last. Where one that was
// asked for shows that none of it is ours, it is that one's.
func (a *application) all(ctx context.Context, objects ...Object) (f finding, err error) {
	for i, o := range objects {
		f, err = a.take(ctx, o)
		if err != nil || i == len(objects)-1 {
			break
		}
		if f.need.id != "" { // what was asked for does not tell either
			return finding{}, fmt.Errorf("%s %s: %w", o.Kind, o.ID, errUndecided)
		}
		if f.status != Applied {
			break
		}
	}
	return f, err
}

// errUndecided: Stripe was asked and does not tell enough, or not yet.
var errUndecided = errors.New("what Stripe tells does not decide it yet")

// find asks Stripe.
func (s *Service) find(ctx context.Context, at string, n need) (o Object, err error) {
	if at == s.o.Own {
		at = ""
	}
	switch n.kind {
	case KindSubscription:
		o, err = s.o.Finder.Subscription(ctx, at, n.id)
	case KindSchedule:
		o, err = s.o.Finder.Schedule(ctx, at, n.id)
	default:
		o, err = s.o.Finder.Payment(ctx, at, n.id)
	}
	if o.Seen = true; o.Kind == KindSchedule && o.Subscription == "" {
		o.Subscription = n.of // Stripe may forget it once the schedule has ended
	}
	return o, err
}

// refreshSubscription asks for a subscription whose state cannot be told from its events. The
// answer counts only if nothing was told of it meanwhile, which may be newer.
func (s *Service) refreshSubscription(ctx context.Context, at, id string, force bool) error {
	account, err := s.customerOf(ctx, at)
	if err != nil {
		return err
	}
	for range maxTries {
		row, err := s.Subscription(ctx, at, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		o, err := s.find(ctx, at, need{kind: KindSubscription, id: id})
		if err != nil {
			return err
		}
		a := &application{s: s, at: at, account: account, seen: true, force: force, fresh: true}
		if _, err := a.decide(ctx, o); err != nil {
			return err
		}
		if a.subscription == nil || a.subscription.version != row.version {
			continue
		}
		writes, err := a.writes()
		if err != nil || len(writes) == 0 {
			return err
		}
		if err = s.commit(ctx, writes...); !again(err) {
			if err == nil {
				s.nudge()
			}
			return err
		}
	}
	return fmt.Errorf("subscription %s: overtaken by others %d times", id, maxTries)
}
