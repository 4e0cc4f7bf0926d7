package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
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
// has charged, or the charge would be hidden. The latter turns charging off. It returns the
// connected accounts that could not be asked, because they refuse us: nothing may be opened
// there by who relies on this answer.
func (e *Engine) checkRollback(ctx context.Context) (refused map[string]bool, err error) {
	places, err := e.Places(ctx)
	if err != nil {
		return nil, err
	}
	scope := make([]billing.ListRequest, len(places))
	for i, at := range places {
		scope[i].At = at
	}
	return e.checkScope(ctx, scope)
}

// guardAccount is guard for a command about one account that charges nobody and settles
// nothing. Where the processor knows its customer, nobody else's intents are listed: what it
// would miss, charges at a customer that the account had in the lost time, the next command
// that moves money is stopped by.
func (e *Engine) checkRollbackOf(ctx context.Context, id string) error {
	a, err := e.Account(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err != nil || a.Payer.Customer == "" {
		return e.checkCharge(ctx, id)
	}
	refused, err := e.checkScope(ctx, []billing.ListRequest{{At: a.Payer.At, Customer: a.Payer.Customer}})
	return e.unasked(err, refused, a)
}

// guardCharge is guard for a command that may charge the account, or settle one of its
// periods.
func (e *Engine) checkCharge(ctx context.Context, id string) error {
	a, err := e.Account(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		a, err = &billing.Account{}, nil
	}
	if err != nil {
		return err
	}
	refused, err := e.checkRollback(ctx)
	return e.unasked(err, refused, a)
}

// unasked refuses what concerns an account whose place could not be asked.
func (e *Engine) unasked(err error, refused map[string]bool, a *billing.Account) error {
	if err == nil && refused[a.Payer.At] {
		err = fmt.Errorf("%w: %s could not be asked for what the store may not know", billing.ErrAccountRefused, a.Payer.At)
	}
	return err
}

func (e *Engine) checkScope(ctx context.Context, scope []billing.ListRequest) (refused map[string]bool, err error) {
	if err := e.complete(ctx); err != nil {
		return nil, err
	}
	ended, err := e.LastRunEnded(ctx)
	if err == nil {
		err = e.checkClockAfter(ended)
	}
	if err != nil {
		return nil, err
	}
	if ended.IsZero() {
		ended = e.Opened.Created
	}
	for i := range scope {
		scope[i].Since = ended.Add(-gateMargin)
	}
	lost, refused, err := e.lost(ctx, scope)
	if err != nil || len(lost) == 0 {
		return refused, err
	}
	first := lost[0]
	reason := fmt.Sprintf("the processor has %d payment intents that succeeded or were tried and that this store does not know, the first %s (%s) for %s/%s period %d",
		len(lost), first.Ref, first.State, first.Tag.Account, first.Tag.Subscription, first.Tag.Period)
	if err := e.SetCharging(ctx, false, reason); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s; charging is now off: run duesday reconcile, then duesday charging on", ErrWentBack, reason)
}

// complete refuses a store without its outbox table: a charge could be taken and not settled.
func (e *Engine) complete(ctx context.Context) error {
	_, err := e.Store.Get(ctx, e.Tables.Outbox.Name, store.Key{PK: billing.MetaPK, SK: billing.MetaPK}) // no such item
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
	ended, err := e.LastRunEnded(ctx)
	if err != nil {
		return err
	}
	return e.checkClockAfter(ended)
}

func (e *Engine) checkClockAfter(ended time.Time) error {
	if !e.Now().Before(ended.Add(-5 * time.Minute)) {
		return nil
	}
	return fmt.Errorf("%w: it is %s, and the last run ended at %s: set the clock right; if it is right now, say duesday charging on",
		ErrClock, billing.Stamp(e.Now()), billing.Stamp(ended))
}

// lost returns the processor's intents in the scope that the store does not know, and on
// which money has moved or may still, those at our own account first; and the connected
// accounts that refuse to be asked.
func (e *Engine) lost(ctx context.Context, scope []billing.ListRequest) (lost []billing.Intent, refused map[string]bool, err error) {
	if e.proc == nil {
		return nil, nil, errors.New("this needs the payment processor")
	}
	found, errs := make([][]billing.Intent, len(scope)), make([]error, len(scope))
	billing.AskEach(scope, func(i int, r billing.ListRequest) error {
		found[i], errs[i] = e.lostAt(ctx, r)
		return errs[i]
	})
	refused = map[string]bool{}
	for i, r := range scope {
		switch {
		case r.At != "" && (errors.Is(errs[i], billing.ErrAccountRefused) || errors.Is(errs[i], billing.ErrInvalid)): // or no such place
			refused[r.At] = true
		case errs[i] != nil:
			return nil, nil, errs[i]
		}
		lost = append(lost, found[i]...)
	}
	return lost, refused, nil
}

// lostAt is lost for one listing. One that breaks off is begun anew.
func (e *Engine) lostAt(ctx context.Context, r billing.ListRequest) (lost []billing.Intent, err error) {
	for range billing.MaxSends {
		lost, err = lost[:0], nil
		for in, lerr := range e.proc.List(ctx, r) {
			if lerr != nil {
				err = fmt.Errorf("listing the processor's payment intents: %w", lerr)
				break
			}
			if in.Tag.Installation != e.Opened.Installation || in.State == billing.Opened || in.State == billing.Canceled {
				continue
			}
			now, known, kerr := e.recognise(ctx, in)
			if kerr != nil {
				return nil, kerr
			}
			if !known {
				lost = append(lost, now)
			}
		}
		if err == nil || billing.Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return lost, err
}

// recognise reports whether the store knows an intent that was tried, and how it stands now.
// One that was listed unfinished may have been settled before the store was read. But only
// what is bound is ever tried, and what is bound stays so until it is shown cancelled or is
// settled: so one that is unfinished after the store was read without it is unknown to it.
func (e *Engine) recognise(ctx context.Context, in billing.Intent) (now billing.Intent, known bool, err error) {
	known, err = e.knows(ctx, in)
	if err != nil || known || in.State == billing.Succeeded {
		return in, known, err
	}
	if now, err = e.proc.Lookup(ctx, in.Ref); err != nil {
		return in, false, fmt.Errorf("looking up payment intent %s: %w", in.Ref, err)
	}
	switch now.State {
	case billing.Canceled, billing.Opened:
		return now, true, nil
	case billing.Succeeded:
		known, err = e.knows(ctx, now)
	}
	return now, known, err
}

// knows reports whether the store has dealt with the intent or is about to: it is open with
// this very intent; or, of a success, its period is past and did not end otherwise.
func (e *Engine) knows(ctx context.Context, in billing.Intent) (bool, error) {
	n := billing.Name{Account: in.Tag.Account, ID: in.Tag.Subscription, SKU: in.Tag.SKU}
	s, err := e.Load(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if _, bad := errors.AsType[*billing.IllegibleError](err); bad { // by another tool's hand: it cannot be charged, and every run names it
		return true, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case s.Period <= in.Tag.Period || in.State != billing.Succeeded:
		return s.Open != nil && s.Open.Ref == in.Ref, nil
	case s.LastCharge == in.Ref: // settled by this very charge: the record need not be looked for
		return true, nil
	}
	_, err = e.Store.Get(ctx, e.Table, billing.PeriodKey(n, in.Tag.Period))
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// acceptClock marks the runs that ended later than now: a person says that the clock was
// ahead then, and is right now.
func (e *Engine) acceptClock(ctx context.Context) error {
	q := store.Query{Table: e.Table, Partition: billing.RunPK(billing.Payments), To: "9999-12-31~"}
	for it, err := range e.Store.Query(ctx, q) {
		if err != nil {
			return err
		}
		if billing.ParseStamp(it.Str(schema.EndedDate)).After(e.Now()) {
			set := store.NewItem(store.Attribute{Name: schema.Accepted, Value: store.Bool(true)})
			if err := e.Store.Commit(ctx, store.Update(e.Table, billing.KeyOf(it), set, nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Reconcile adopts the processor's successes that the store does not know, oldest first:
// each settles its period as if its reply had come late; periods before it that the
// processor shows no charge for are void. An unknown intent that was tried and may still
// succeed is cancelled first. It returns how many were adopted, and an error that names what
// could not be, connected accounts that refuse us among it.
func (e *Engine) Reconcile(ctx context.Context) (int, error) {
	places, err := e.allPlaces(ctx)
	if err != nil {
		return 0, err
	}
	scope := make([]billing.ListRequest, len(places))
	for i, at := range places {
		scope[i].At = at
	}
	lost, refused, err := e.lost(ctx, scope)
	if err != nil {
		return 0, err
	}
	var failed []error
	for at := range refused {
		failed = append(failed, fmt.Errorf("%w: %s was not looked at", billing.ErrAccountRefused, at))
	}
	slices.SortStableFunc(lost, func(a, b billing.Intent) int { return a.Tag.Period - b.Tag.Period })
	adopted := 0
	for _, in := range lost {
		in, err := e.finish(ctx, in)
		if err == nil && in.State == billing.Succeeded {
			if err = e.adopt(ctx, in); err == nil {
				adopted++
			}
		}
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("subscription %s/%s with SKU %s is not in the store: create or import it again, then reconcile", in.Tag.Account, in.Tag.Subscription, in.Tag.SKU)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("charge %s of %s: %w", in.Ref, in.Amount, err))
		}
	}
	return adopted, errors.Join(failed...)
}

// finish brings an unknown intent to its end: cancelled, where the money was not taken.
func (e *Engine) finish(ctx context.Context, in billing.Intent) (billing.Intent, error) {
	if in.State == billing.Succeeded {
		return in, nil
	}
	now, err := e.proc.Cancel(ctx, in.Ref)
	if err == nil && now.State != billing.Succeeded && now.State != billing.Canceled {
		err = fmt.Errorf("it is %s and cannot be cancelled yet; reconcile again when the processor has decided: %w", now.State, billing.ErrState)
	}
	if err != nil {
		return in, err
	}
	return now, nil
}

func (e *Engine) adopt(ctx context.Context, in billing.Intent) error {
	n := billing.Name{Account: in.Tag.Account, ID: in.Tag.Subscription, SKU: in.Tag.SKU}
	defer e.locks.lock(n)()
	for tries := 0; tries < store.MaxTries; {
		s, err := e.Load(ctx, n)
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
		if store.Retryable(err) {
			tries++
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("overtaken by others %d times", store.MaxTries)
}

// adoptEnded turns the record of a period that ended without a payment into a receipt: the
// money was taken after all.
func (e *Engine) adoptEnded(ctx context.Context, s *billing.Subscription, in billing.Intent) error {
	rec := e.receipt(s, billing.Charged, in.Amount, civil.Date{}, in.Changed, in.Ref)
	rec.Period = in.Tag.Period
	if due, err := s.Schedule().Due(rec.Period); err == nil {
		rec.Due = due
	}
	return e.Store.Commit(ctx, store.Put(e.Table, rec.Item(), store.Absent()), store.Delete(e.Table, billing.PeriodKey(s.Name, rec.Period)))
}

// adoptInto takes one step towards the success: cancels an intent of ours that stands in
// its place, voids one period before it, or settles it.
func (e *Engine) adoptInto(ctx context.Context, s *billing.Subscription, in billing.Intent) error {
	today := billing.TodayIn(s.TimeZone, e.Now())
	if s.Open != nil && s.Open.Ref != in.Ref {
		seen, err := e.proc.Cancel(ctx, s.Open.Ref)
		switch {
		case err != nil:
			return err
		case seen.State == billing.Succeeded:
			_, err = e.settle(ctx, s, seen, today)
			return err
		case seen.State != billing.Canceled:
			return fmt.Errorf("payment intent %s, which stands in its place, is %s: %w", s.Open.Ref, seen.State, billing.ErrState)
		}
	}
	if s.Period < in.Tag.Period {
		others := []store.Write{e.ended(s, billing.EndVoid, "no charge at the processor when the store was reconciled", s.Open).Write(e.Table)}
		if parked := e.pass(s, today, false, e.Now()); parked != nil {
			others = append(others, parked.Write(e.Table))
		}
		return e.Put(ctx, s, others...)
	}
	due, err := s.Due()
	if err != nil {
		return err
	}
	if s.Open == nil || s.Open.Ref != in.Ref {
		s.Open = &billing.OpenPeriod{Period: s.Period, Generation: in.Tag.Generation, Ref: in.Ref, Amount: in.Amount, Method: s.Method, Due: due, Attempt: 1, Opened: e.Now()}
	}
	_, err = e.settle(ctx, s, in, today)
	return err
}

// allPlaces is places, with the connected accounts that the processor knows: one that was
// used first in the lost time is in no store that was restored.
func (e *Engine) allPlaces(ctx context.Context) ([]string, error) {
	places, err := e.Places(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := e.proc.(billing.Platform)
	if !ok {
		return places, nil
	}
	for at, err := range p.Connected(ctx) {
		if errors.Is(err, billing.ErrRefused) && len(places) == 1 { // a key that need not see any
			e.Log.WarnContext(ctx, "the key may not list connected accounts, and none was ever used here", "error", err)
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listing the connected accounts: %w", err)
		}
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	return places, nil
}
