package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// ErrClock: the clock stands before something the store has seen.
var ErrClock = errors.New("the clock went back")

// ErrWentBack: the processor has successes that the store does not know: the store was
// restored from a copy, or is one.
var ErrWentBack = errors.New("the store went back in time")

// gateMargin is how long before the store's last settled charges the processor's successes
// are compared; a charge may have been opened long before it was settled.
const gateMargin = 48 * time.Hour

// guard refuses what moves a subscription on to its next period on a clock that went back,
// and on a store that did: it would be charged again for what the lost part of the store
// has charged, or the charge would be hidden. The latter turns charging off.
func (e *Engine) guard(ctx context.Context) error {
	if err := e.complete(ctx); err != nil {
		return err
	}
	ended, err := e.lastEnded(ctx)
	if err == nil {
		err = e.checkClockAfter(ended)
	}
	if err != nil {
		return err
	}
	if ended.IsZero() {
		ended = e.meta.Created
	}
	lost, err := e.lost(ctx, ended.Add(-gateMargin))
	if err != nil || len(lost) == 0 {
		return err
	}
	first := lost[0]
	reason := fmt.Sprintf("the processor has %d successful charges that this store does not know, the first %s for %s/%s period %d",
		len(lost), first.Ref, first.Tag.Account, first.Tag.Subscription, first.Tag.Period)
	if err := e.SetCharging(ctx, false, reason); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s; charging is now off: run duesday reconcile, then duesday charging on", ErrWentBack, reason)
}

// complete refuses a store without its outbox table: a charge could be taken and not settled.
func (e *Engine) complete(ctx context.Context) error {
	_, err := e.store.Get(ctx, e.outbox, store.Key{PK: metaKey, SK: metaKey}) // no such item
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if errors.Is(err, store.ErrMissing) {
		return fmt.Errorf("the store is not whole, and nobody was charged: %w; duesday store create makes what is missing", err)
	}
	return err
}

// checkClock refuses a clock that stands before the end of an earlier run.
func (e *Engine) checkClock(ctx context.Context) error {
	ended, err := e.lastEnded(ctx)
	if err != nil {
		return err
	}
	return e.checkClockAfter(ended)
}

func (e *Engine) checkClockAfter(ended time.Time) error {
	if !e.now().Before(ended.Add(-5 * time.Minute)) {
		return nil
	}
	return fmt.Errorf("%w: it is %s, and the last run ended at %s: set the clock right; if it is right now, say duesday charging on",
		ErrClock, stamp(e.now()), stamp(ended))
}

// lost returns the processor's successes since then that the store does not know. A listing
// that breaks off is begun anew.
func (e *Engine) lost(ctx context.Context, since time.Time) (lost []Intent, err error) {
	if e.proc == nil {
		return nil, errors.New("this needs the payment processor")
	}
	for range maxSends {
		lost, err = lost[:0], nil
		for in, lerr := range e.proc.List(ctx, ListRequest{Since: since}) {
			if lerr != nil {
				err = fmt.Errorf("listing the processor's successes: %w", lerr)
				break
			}
			if in.Tag.Installation != e.meta.Installation {
				continue
			}
			known, kerr := e.knows(ctx, in)
			if kerr != nil {
				return nil, kerr
			}
			if !known {
				lost = append(lost, in)
			}
		}
		if err == nil || definite(err) || ctx.Err() != nil {
			break
		}
	}
	return lost, err
}

// knows reports whether the store has dealt with the success or is about to: its period is
// past and did not end otherwise, or is open with this very intent.
func (e *Engine) knows(ctx context.Context, in Intent) (bool, error) {
	n := Name{Account: in.Tag.Account, ID: in.Tag.Subscription, SKU: in.Tag.SKU}
	s, err := e.load(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case s.Period <= in.Tag.Period:
		return s.Open != nil && s.Open.Ref == in.Ref, nil
	case s.LastCharge == in.Ref: // settled by this very charge: the record need not be looked for
		return true, nil
	}
	_, err = e.store.Get(ctx, e.table, periodKey(n, in.Tag.Period))
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// lastEnded returns when the latest payment run ended, by the clock of that run.
func (e *Engine) lastEnded(ctx context.Context) (time.Time, error) {
	q := store.Query{Table: e.table, Partition: runPK(Payments), To: "9999-12-31~", Reverse: true, Limit: 10 * lookBack}
	var last time.Time
	for it, err := range e.store.Query(ctx, q) {
		if err != nil {
			return last, err
		}
		if at := parseStamp(it.Str(schema.EndedDate)); at.After(last) && !it.Get(schema.Accepted).Bool() {
			last = at
		}
	}
	return last, nil
}

// acceptClock marks the runs that ended later than now: a person says that the clock was
// ahead then, and is right now.
func (e *Engine) acceptClock(ctx context.Context) error {
	q := store.Query{Table: e.table, Partition: runPK(Payments), To: "9999-12-31~"}
	for it, err := range e.store.Query(ctx, q) {
		if err != nil {
			return err
		}
		if parseStamp(it.Str(schema.EndedDate)).After(e.now()) {
			set := store.NewItem(store.Attribute{Name: schema.Accepted, Value: store.Bool(true)})
			if err := e.store.Commit(ctx, store.Update(e.table, keyOf(it), set, nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Reconcile adopts the processor's successes that the store does not know, oldest first:
// each settles its period as if its reply had come late; periods before it that the
// processor shows no charge for are void. It returns how many were adopted, and an error
// that names every success that could not be.
func (e *Engine) Reconcile(ctx context.Context) (int, error) {
	lost, err := e.lost(ctx, time.Time{})
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(lost, func(a, b Intent) int { return a.Tag.Period - b.Tag.Period })
	adopted := 0
	var failed []error
	for _, in := range lost {
		err := e.adopt(ctx, in)
		if err == nil {
			adopted++
			continue
		}
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("subscription %s/%s with SKU %s is not in the store: create or import it again, then reconcile", in.Tag.Account, in.Tag.Subscription, in.Tag.SKU)
		}
		failed = append(failed, fmt.Errorf("charge %s of %s: %w", in.Ref, in.Amount, err))
	}
	return adopted, errors.Join(failed...)
}

func (e *Engine) adopt(ctx context.Context, in Intent) error {
	n := Name{Account: in.Tag.Account, ID: in.Tag.Subscription, SKU: in.Tag.SKU}
	defer e.locks.lock(n)()
	for tries := 0; tries < maxTries; {
		s, err := e.load(ctx, n)
		if err != nil {
			return err
		}
		known, err := e.knows(ctx, in)
		if err != nil || (known && s.Period > in.Tag.Period) {
			return err
		}
		if s.Period > in.Tag.Period {
			err = e.adoptEnded(ctx, s, in)
		} else {
			err = e.adoptInto(ctx, s, in)
		}
		if again(err) {
			tries++
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("overtaken by others %d times", maxTries)
}

// adoptEnded turns the record of a period that ended without a payment into a receipt: the
// money was taken after all.
func (e *Engine) adoptEnded(ctx context.Context, s *Subscription, in Intent) error {
	rec := e.receipt(s, Charged, in.Amount, civil.Date{}, in.Changed, in.Ref)
	rec.Period = in.Tag.Period
	if due, err := s.Schedule().Due(rec.Period); err == nil {
		rec.Due = due
	}
	return e.store.Commit(ctx, store.Put(e.table, rec.item(), store.Absent()), store.Delete(e.table, periodKey(s.Name, rec.Period)))
}

// adoptInto takes one step towards the success: cancels an intent of ours that stands in
// its place, voids one period before it, or settles it.
func (e *Engine) adoptInto(ctx context.Context, s *Subscription, in Intent) error {
	today := zoneToday(s.TimeZone, e.now())
	if s.Open != nil && s.Open.Ref != in.Ref {
		seen, err := e.proc.Cancel(ctx, s.Open.Ref)
		switch {
		case err != nil:
			return err
		case seen.State == Succeeded:
			_, err = e.settle(ctx, s, seen, today)
			return err
		case seen.State != Canceled:
			return fmt.Errorf("payment intent %s, which stands in its place, is %s: %w", s.Open.Ref, seen.State, ErrState)
		}
	}
	if s.Period < in.Tag.Period {
		others := []store.Write{e.ended(s, EndVoid, "no charge at the processor when the store was reconciled", s.Open).write(e.table)}
		if parked := e.pass(s, today, false, e.now()); parked != nil {
			others = append(others, parked.write(e.table))
		}
		return e.put(ctx, s, others...)
	}
	due, err := s.Due()
	if err != nil {
		return err
	}
	if s.Open == nil || s.Open.Ref != in.Ref {
		s.Open = &OpenPeriod{Period: s.Period, Generation: in.Tag.Generation, Ref: in.Ref, Amount: in.Amount, Method: s.Method, Due: due, Attempt: 1, Opened: e.now()}
	}
	_, err = e.settle(ctx, s, in, today)
	return err
}
