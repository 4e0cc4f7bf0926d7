package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// checkTime refuses to run on a clock that went back, and on a store that did: it would
// charge again what the lost part of it has charged. The latter turns charging off.
func (e *Engine) checkTime(ctx context.Context, meta Meta) error {
	ended, err := e.lastEnded(ctx)
	if err != nil {
		return err
	}
	if e.now().Before(ended.Add(-5 * time.Minute)) {
		return fmt.Errorf("%w: it is %s, and the last run ended at %s: set the clock right first", ErrClock, stamp(e.now()), stamp(ended))
	}
	since := ended
	if since.IsZero() {
		since = meta.Created
	}
	unknown, first := 0, Intent{}
	for in, err := range e.proc.List(ctx, since.Add(-gateMargin)) {
		if err != nil {
			return fmt.Errorf("listing the processor's successes: %w", err)
		}
		if in.Tag.Installation != meta.Installation {
			continue
		}
		known, err := e.knows(ctx, in)
		if err != nil {
			return err
		}
		if !known {
			if unknown++; unknown == 1 {
				first = in
			}
		}
	}
	if unknown == 0 {
		return nil
	}
	reason := fmt.Sprintf("the processor has %d successful charges that this store does not know, the first %s for %s/%s period %d",
		unknown, first.Ref, first.Tag.Account, first.Tag.Subscription, first.Tag.Period)
	if err := e.SetCharging(ctx, false, reason); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s; charging is now off: run duesday reconcile, then duesday charging on", ErrWentBack, reason)
}

// knows reports whether the store has dealt with the success or is about to: its period is
// past, or open with this very intent.
func (e *Engine) knows(ctx context.Context, in Intent) (bool, error) {
	s, err := e.load(ctx, Name{Account: in.Tag.Account, ID: in.Tag.Subscription, SKU: in.Tag.SKU})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.Period > in.Tag.Period || (s.Open != nil && s.Open.Ref == in.Ref), nil
}

// lastEnded returns when the latest payment run ended, by the clock of that run.
func (e *Engine) lastEnded(ctx context.Context) (time.Time, error) {
	q := store.Query{Table: e.table, Partition: runPK(Payments), To: "9999-12-31~", Reverse: true, Limit: lookBack}
	var last time.Time
	for it, err := range e.store.Query(ctx, q) {
		if err != nil {
			return last, err
		}
		if at := parseStamp(it.Str(schema.EndedDate)); at.After(last) {
			last = at
		}
	}
	return last, nil
}

// Reconcile adopts the processor's successes that the store does not know, oldest first:
// each settles its period as if its reply had come late; periods before it that the
// processor shows no charge for are void. It returns how many were adopted. A success whose
// subscription is not in the store is an error that names it.
func (e *Engine) Reconcile(ctx context.Context) (int, error) {
	meta, err := e.readMeta(ctx)
	if err != nil {
		return 0, err
	}
	var lost []Intent
	for in, err := range e.proc.List(ctx, time.Time{}) {
		if err != nil {
			return 0, err
		}
		if in.Tag.Installation != meta.Installation {
			continue
		}
		known, err := e.knows(ctx, in)
		if err != nil {
			return 0, err
		}
		if !known {
			lost = append(lost, in)
		}
	}
	slices.SortStableFunc(lost, func(a, b Intent) int { return a.Tag.Period - b.Tag.Period })
	for i, in := range lost {
		if err := e.adopt(ctx, in); err != nil {
			return i, fmt.Errorf("charge %s for %s/%s period %d: %w", in.Ref, in.Tag.Account, in.Tag.Subscription, in.Tag.Period, err)
		}
	}
	return len(lost), nil
}

func (e *Engine) adopt(ctx context.Context, in Intent) error {
	n := Name{Account: in.Tag.Account, ID: in.Tag.Subscription, SKU: in.Tag.SKU}
	defer e.locks.lock(n)()
	for range maxTries {
		s, err := e.load(ctx, n)
		if err != nil {
			return err
		}
		if s.Period > in.Tag.Period {
			return nil
		}
		err = e.adoptInto(ctx, s, in)
		if err != nil && !again(err) {
			return err
		}
	}
	return fmt.Errorf("overtaken by others %d times", maxTries)
}

// adoptInto takes one step towards the success: cancels an intent of ours that stands in
// its place, voids one period before it, or settles it.
func (e *Engine) adoptInto(ctx context.Context, s *Subscription, in Intent) error {
	today := zoneToday(s.TimeZone, e.now())
	if s.Open != nil && s.Open.Ref != in.Ref {
		seen, err := e.proc.Cancel(ctx, s.Open.Ref)
		if err != nil {
			return err
		}
		if seen.State == Succeeded {
			_, err = e.settle(ctx, s, seen, today)
			return err
		}
	}
	if s.Period < in.Tag.Period {
		void := e.ended(s, EndVoid, "no charge at the processor when the store was reconciled", s.Open)
		parked := e.pass(s, today, false, e.now())
		if parked != nil {
			return e.put(ctx, s, void.write(e.table), parked.write(e.table))
		}
		return e.put(ctx, s, void.write(e.table))
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
