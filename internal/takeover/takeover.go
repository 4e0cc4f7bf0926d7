// Package takeover moves subscriptions that the processor runs to Duesday, within the same account at the
// processor, and back. Payment methods stay where they are.
//
// A takeover never has both sides charge one period. Ours is stored held first, and then theirs is made to
// end with its period; each step has its own commit, and the same request continues after a crash. Package
// engine opens our first period only after it has seen theirs ended.
package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sequence"
)

// Ahead is the least time from a takeover to the renewal of the processor's subscription.
const Ahead = 24 * time.Hour

// ErrNoBiller is returned if the processor runs no subscriptions.
var ErrNoBiller = errors.New("this processor runs no subscriptions that could be taken over")

// A Service plans, starts and undoes takeovers.
type Service struct {
	engine *engine.Engine
	biller processor.Biller
}

// New returns a Service of the engine's store and processor, or ErrNoBiller.
func New(e *engine.Engine) (*Service, error) {
	b, ok := e.Biller()
	if !ok {
		return nil, fmt.Errorf("%w: %w", ErrNoBiller, billing.ErrState)
	}
	return &Service{engine: e, biller: b}, nil
}

// An Entry is what a takeover does, or has done, with one of the processor's subscriptions.
type Entry struct {
	Theirs processor.Subscription
	Ours   *billing.Subscription // as it is stored, or as it would be; nil if it cannot be
	Stored bool
	order  billing.NewSubscription
	Stays  string // why theirs is left as it is; "" if it is, or can be, taken over
}

// A Filter selects the processor's subscriptions, those after a subscription in the processor's order. An
// empty field selects all.
type Filter struct{ ID, Customer, SKU, After string }

func (f *Filter) has(s *processor.Subscription) bool {
	return (f.ID == "" || f.ID == s.ID) && (f.Customer == "" || f.Customer == s.Customer) && (f.SKU == "" || f.SKU == s.SKU)
}

// Plan yields an entry for each of the processor's subscriptions that has not ended. It changes nothing. An
// error is the last element.
func (v *Service) Plan(ctx context.Context, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		rules, err := settings.Read(ctx, v.engine.Records)
		if err == nil {
			err = lookup.Ready(ctx, v.engine.Records)
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		all := v.biller.Subscriptions
		if f.ID != "" {
			all = v.one(f.ID)
		}
		selected := sequence.Filter(all(ctx, f.After), func(s processor.Subscription) bool { return f.has(&s) })
		for s, err := range selected {
			e := Entry{Theirs: s}
			if err == nil {
				e, err = v.entry(ctx, s, rules)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// one yields one of the processor's subscriptions, if it has not ended, without reading all.
func (v *Service) one(id string) func(ctx context.Context, after string) iter.Seq2[processor.Subscription, error] {
	return func(ctx context.Context, after string) iter.Seq2[processor.Subscription, error] {
		return func(yield func(processor.Subscription, error) bool) {
			s, err := v.biller.Subscription(ctx, id)
			if err == nil && s.Obstacle == "" {
				s.Obstacle, err = v.biller.Disputed(ctx, s.Customer)
			}
			if after == id || errors.Is(err, processor.ErrInvalid) || err == nil && !s.Ended.IsZero() {
				return // it is not there
			}
			yield(s, err)
		}
	}
}

// workers is the number of subscriptions that are taken over at the same time.
const workers = 8

// Start takes over every selected subscription that can be, and calls report, one call at a time, with each
// result. After an error, the same call continues with what is left; report gets the error of a single
// subscription.
func (v *Service) Start(ctx context.Context, f Filter, report func(Entry, error)) error {
	var all sync.WaitGroup
	var one sync.Mutex
	free := make(chan struct{}, workers)
	defer all.Wait()
	for e, err := range v.Plan(ctx, f) {
		if err != nil {
			return err
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			var err error
			if e.Stays == "" {
				e, err = v.Take(ctx, e)
			}
			one.Lock()
			defer one.Unlock()
			report(e, err)
		})
	}
	return ctx.Err()
}

// Take takes over the subscription of an entry that Plan has returned. It checks it again first. It
// continues an earlier takeover, whatever its step was, and does nothing to a complete one.
func (v *Service) Take(ctx context.Context, e Entry) (Entry, error) {
	ctx = call.After(ctx) // each step has its own commit
	rules, err := settings.Read(ctx, v.engine.Records)
	if err != nil {
		return e, err
	}
	theirs, err := processor.Ask(ctx, func() (processor.Subscription, error) { return v.biller.Subscription(ctx, e.Theirs.ID) })
	if err != nil {
		return e, err
	}
	if e, err = v.entry(ctx, theirs, rules); err != nil || e.Stays != "" {
		return e, err
	}
	if !e.Stored {
		if e.Ours, err = v.engine.CreateSubscription(ctx, e.order); err != nil {
			return e, err
		}
		e.Stored = true
	}
	if v.complete(&e) {
		return e, nil
	}
	ending, err := processor.Ask(ctx, func() (processor.Subscription, error) {
		return v.biller.SetEnd(ctx, theirs.ID, processor.End{Ends: new(true), Taker: v.engine.Opened.Installation, Forget: theirs.Refused})
	})
	if err != nil {
		return e, err
	}
	e.Theirs = ending
	boundary := e.Ours.Takeover.Boundary
	if !ending.EndsWithPeriod || ending.TakenBy != v.engine.Opened.Installation || !ending.PeriodEnd.Equal(boundary) {
		return e, fmt.Errorf("the processor shows that %s continues, has no mark, or has a period that does not end at %s; start the takeover again, or undo it",
			theirs.ID, boundary.Format(time.RFC3339))
	}
	now, err := v.engine.NoteTakeover(ctx, e.Ours.Name, billing.TakeoverEnding)
	if errors.Is(err, billing.ErrState) && now != nil && (now.Takeover.Stage == billing.TakeoverUndoing || now.Takeover.Stage == billing.TakeoverUndone) {
		_, undone := v.biller.SetEnd(ctx, theirs.ID, processor.End{Ends: new(false)}) // an undo came between
		err = errors.Join(err, undone)
	}
	e.Ours = cmp.Or(now, e.Ours)
	return e, unlessUnchanged(err)
}

// Undo hands a held subscription back: it cancels ours, and makes theirs continue. It returns ErrState if ours
// was charged, or theirs has ended. It continues an earlier undo.
func (v *Service) Undo(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	ctx = call.After(ctx)
	s, err := v.engine.Subscription(ctx, n)
	if err != nil {
		return nil, err
	}
	if s.Takeover == nil {
		return s, fmt.Errorf("subscription %s was not taken over: %w", s.Name, billing.ErrState)
	}
	from, stage := s.Takeover.From, s.Takeover.Stage
	theirs, err := processor.Ask(ctx, func() (processor.Subscription, error) { return v.biller.Subscription(ctx, from) })
	switch {
	case err != nil:
		return s, err
	case stage == billing.TakeoverUndone:
		return s, v.unmark(ctx, theirs)
	case s.Over() && s.Held() && theirs.Ended.IsZero() && !theirs.EndsWithPeriod: // a person lets it continue
		if _, err = v.biller.SetEnd(ctx, from, processor.End{Ends: new(false)}); err == nil {
			s, err = v.engine.NoteTakeover(ctx, s.Name, billing.TakeoverUndone)
		}
		return s, unlessUnchanged(err)
	case s.Over() && stage != billing.TakeoverUndoing:
		return s, fmt.Errorf("subscription %s is %s here; to keep %s, let it continue at the processor, and run the same undo again: %w",
			s.Name, s.Status, from, billing.ErrState)
	case !theirs.Ended.IsZero() && stage == billing.TakeoverUndoing:
		return v.retain(ctx, s)
	case !theirs.Ended.IsZero():
		return s, fmt.Errorf("%s has ended at the processor, so subscription %s must continue here: %w", from, s.Name, billing.ErrState)
	}
	if s, err = v.engine.UndoTakeover(ctx, s.Name); unlessUnchanged(err) != nil {
		return s, err
	}
	if theirs.EndsWithPeriod && v.refused(theirs) { // it was canceled there, and stays so
		if err := v.letEnd(ctx, theirs); err != nil {
			return s, err
		}
		s, err = v.engine.NoteTakeover(ctx, s.Name, billing.TakeoverUndone)
		return s, unlessUnchanged(err)
	}
	theirs, err = processor.Ask(ctx, func() (processor.Subscription, error) {
		return v.biller.SetEnd(ctx, from, processor.End{Ends: new(false)})
	})
	switch {
	case err == nil && !theirs.Ended.IsZero():
		return v.retain(ctx, s)
	case err != nil:
		return s, fmt.Errorf("subscription %s is canceled here, but %s may still end at the processor; run the same undo again: %w", s.Name, from, err)
	case theirs.EndsWithPeriod:
		return s, fmt.Errorf("the processor shows that %s still ends with its period; run the same undo again", from)
	}
	s, err = v.engine.NoteTakeover(ctx, s.Name, billing.TakeoverUndone)
	return s, unlessUnchanged(err)
}

// unmark lets a subscription continue that a start has made end after its undo, unless another of ours continues it.
func (v *Service) unmark(ctx context.Context, theirs processor.Subscription) error {
	e := Entry{Theirs: theirs}
	if theirs.TakenBy != v.engine.Opened.Installation {
		return nil
	}
	switch _, _, err := v.find(ctx, &e); {
	case err != nil || e.Stored:
		return err
	case !theirs.Ended.IsZero():
		return fmt.Errorf("%s has ended with the mark of a start, so its end has triggered no unsubscribe, and nobody charges its customer: %w", theirs.ID, billing.ErrState)
	}
	if theirs.Refused {
		return v.letEnd(ctx, theirs)
	}
	_, err := v.biller.SetEnd(ctx, theirs.ID, processor.End{Ends: new(false)})
	return err
}

// letEnd removes this installation's mark from a subscription that its customer has canceled, so that its end triggers an
// unsubscribe.
func (v *Service) letEnd(ctx context.Context, theirs processor.Subscription) (err error) {
	if theirs.TakenBy == v.engine.Opened.Installation {
		_, err = v.biller.SetEnd(ctx, theirs.ID, processor.End{})
	}
	return err
}

// retain parks ours, because theirs ended before it could be made to continue.
func (v *Service) retain(ctx context.Context, s *billing.Subscription) (*billing.Subscription, error) {
	now, err := v.engine.RetainTakeover(ctx, s.Name)
	return now, cmp.Or(err, fmt.Errorf("%s ended at the processor during the undo; subscription %s is parked here: charge, skip or cancel it: %w",
		s.Takeover.From, s.Name, billing.ErrState))
}

func unlessUnchanged(err error) error {
	if errors.Is(err, billing.ErrUnchanged) {
		return nil
	}
	return err
}
