package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// The charge protocol (docs/design.md): FIND is the walk's. READ, OPEN, BIND, CONFIRM and
// SETTLE are here and in settle.go, each a step that may be repeated after a crash at any
// point. Why at most one charge succeeds: an intent makes at most one; at most one intent
// that is not cancelled is ever bound to a period, since another follows only after the
// processor has shown the first one cancelled; and only a bound intent is confirmed.

// An Outcome is what became of one due period in one run.
type Outcome string

// The outcomes. A run balances: due is the sum of them all.
const (
	OutcomePaid    Outcome = "paid"
	OutcomeRetry   Outcome = "retry"   // declined, and tried again on a later day
	OutcomeFailed  Outcome = "failed"  // declined for good
	OutcomePending Outcome = "pending" // the customer or the processor has to act, or the outcome is in doubt
	OutcomeParked  Outcome = "parked"  // waits for a person
	OutcomeSkipped Outcome = "skipped" // not charged on request: cancelled, paused, or charging is off
)

// A Result is the outcome of one period.
type Result struct {
	billing.Name
	Period  int
	Outcome Outcome
	Amount  money.Amount
	Due     civil.Date
	Reason  string
}

// A step is what one decision about a subscription led to.
type step struct {
	result *Result               // nil: nothing to count
	again  bool                  // decide anew, after reading anew
	bound  *billing.Subscription // decide anew from this, whose intent was bound a moment ago
}

// mode says on whose behalf a subscription is worked on.
type trigger struct {
	day    civil.Date // business day; zero: the clock's in the subscription's zone
	manual bool       // a person charges a parked period
	finish bool       // only bring the open period to the end that was requested, or that its intent shows
	heard  bool       // the processor has told of the intent: look at it, whatever day it is

	refused map[string]bool // connected accounts at which nothing may be opened
	sent    *sent           // of collect
}

// sent is the attempt that this worker has confirmed last, and what came of it.
type sent struct {
	ref     string
	attempt int
	latest  string
}

// earlier reports whether what the intent shows came of an attempt of ours that the period has
// left behind: a person gave another method while it was under way. It is nothing that the
// new one has met with.
func (x *sent) earlier(o *billing.OpenPeriod, in billing.Intent) bool {
	return x != nil && x.ref == o.Ref && x.attempt < o.Attempt && x.latest != "" && x.latest == in.Latest && in.Latest != o.Base &&
		(in.State == billing.Declined || in.State == billing.RequiresAction)
}

// collect brings one subscription forward as far as it goes today: recovers what is open,
// charges what is due, oldest first, and reports each period it dealt with. A row that
// turns out not to be due reports nothing.
func (e *Engine) collect(ctx context.Context, n billing.Name, m trigger, report func(Result)) error {
	defer e.locks.lock(n)()
	m.sent = new(sent)
	var fresh *billing.Subscription // bound by us a moment ago: nothing to look up
	var doubt pendingSettle
	for paid, tries := 0, 0; tries < store.MaxTries; {
		s, isFresh := fresh, fresh != nil
		if fresh = nil; !isFresh {
			var err error
			if s, err = e.Load(ctx, n); errors.Is(err, store.ErrNotFound) {
				return nil
			} else if err != nil {
				return err
			}
		}
		if r := doubt.landed(s); r != nil {
			doubt.result = nil
			report(*r)
			paid++
		}
		st, err := e.decide(ctx, s, m, paid, isFresh)
		doubt.take(s, st.result, err)
		if store.Retryable(err) {
			tries++
			continue
		}
		if err != nil {
			return err
		}
		if st.result != nil {
			report(*st.result)
			if st.result.Outcome == OutcomePaid {
				paid++
			}
		}
		if fresh = st.bound; fresh == nil && !st.again {
			return nil
		}
	}
	return fmt.Errorf("subscription %s: %d decisions in a row were overtaken by others; left for the next run", n, store.MaxTries)
}

// A doubt is a settling of which nobody knows whether it has landed, now or a moment later.
type pendingSettle struct {
	result *Result
	charge string
}

func (d *pendingSettle) take(s *billing.Subscription, r *Result, err error) {
	switch {
	case errors.Is(err, store.ErrUnknown) && r != nil && r.Outcome == OutcomePaid:
		*d = pendingSettle{r, s.LastCharge}
	case err == nil:
		*d = pendingSettle{}
	}
}

// landed returns the result when the subscription shows that it has: row 11 of the crash
// matrix in docs/design.md.
func (d *pendingSettle) landed(s *billing.Subscription) *Result {
	if d.result != nil && s.Period == d.result.Period+1 && s.LastCharge == d.charge {
		return d.result
	}
	return nil
}

// decide takes the next step of the subscription as it was read.
func (e *Engine) decide(ctx context.Context, s *billing.Subscription, m trigger, paid int, fresh bool) (step, error) {
	today := s.Today(m.day, e.Now())
	if s.Open != nil {
		return e.advance(ctx, s, m, today, fresh)
	}
	due, err := s.Due()
	if err != nil {
		return step{}, fmt.Errorf("subscription %s: %w", s.Name, err)
	}
	switch e.judge(s, due, today, m, paid) {
	case early:
		return e.realign(ctx, s, due, today)
	case lapse:
		s.Cancel()
		return step{}, e.Put(ctx, s)
	case overload:
		return e.park(ctx, s, today, fmt.Sprintf("more than %d periods were due at once", e.cfg.CatchUp))
	case charge:
		return e.open(ctx, s, m, due, today)
	case undecided:
		return e.remain(ctx, s, today, OutcomeParked, s.Parked)
	}
	return step{}, nil
}

// realign moves a row that the walk found too early (the index lags, or an operator's
// tool wrote it) to the day it belongs to, so that it is not found again for nothing.
func (e *Engine) realign(ctx context.Context, s *billing.Subscription, due, today civil.Date) (step, error) {
	if s.Status != billing.Active || s.NextPayment.IsZero() || s.NextPayment.After(today) {
		return step{}, nil
	}
	s.NextPayment = due
	return step{}, e.Put(ctx, s)
}

// open is OPEN and BIND: an unconfirmed intent, then one conditional commit that binds it
// to the period. A crash in between leaves an orphan that moves no money.
func (e *Engine) open(ctx context.Context, s *billing.Subscription, m trigger, due, today civil.Date) (step, error) {
	method, payer, err := e.methodOf(ctx, s)
	if err != nil {
		return step{}, err
	}
	o := &billing.OpenPeriod{Period: s.Period, Amount: s.Amount, Method: method, Payer: payer, Due: due, Attempt: 1, Opened: e.Now()}
	if method == "" {
		return e.park(ctx, s, today, noMethod)
	}
	return e.bind(ctx, s, m, o, today)
}

// rebind replaces an intent that the processor shows cancelled, though nobody here asked
// for it: the next generation, never before that answer.
func (e *Engine) rebind(ctx context.Context, s *billing.Subscription, m trigger, today civil.Date) (step, error) {
	o := *s.Open
	o.Retired = append(append([]string(nil), o.Retired...), o.Ref)
	o.Generation++
	o.Ref, o.Base, o.State, o.Overtaken = "", "", "", false // no attempt before is under way on the next one
	if len(o.Retired) > maxGenerations {
		return e.park(ctx, s, today, "the processor cancels every payment intent")
	}
	return e.bind(ctx, s, m, &o, today)
}

// maxGenerations bounds the intents of one period; more means that something cancels them.
const maxGenerations = 8

func (e *Engine) bind(ctx context.Context, s *billing.Subscription, m trigger, o *billing.OpenPeriod, today civil.Date) (step, error) {
	if m.refused[o.Payer.At] {
		return e.setback(ctx, s, today, fmt.Errorf("%w: %s", billing.ErrAccountRefused, o.Payer.At))
	}
	tag := billing.Tag{Installation: e.Opened.Installation, Account: s.Account, Subscription: s.ID, SKU: s.SKU, Period: o.Period, Generation: o.Generation}
	in, err := e.openIntent(ctx, billing.OpenRequest{Key: e.openKey(s, o), Tag: tag, Amount: o.Amount, Method: o.Method, Payer: o.Payer})
	if err != nil {
		return e.setback(ctx, s, today, err)
	}
	o.Ref = in.Ref
	s.Open = o
	s.NextPayment = civil.Later(s.NextPayment, today)
	if err := e.Put(ctx, s); err != nil {
		return step{}, err
	}
	return step{bound: s}, nil
}

// openIntent asks again where no answer was heard: the key makes that harmless for a day,
// and after a day an orphan is.
func (e *Engine) openIntent(ctx context.Context, r billing.OpenRequest) (in billing.Intent, err error) {
	for range billing.MaxSends {
		if in, err = e.proc.Open(ctx, r); err == nil || billing.Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return in, err
}

// confirm is CONFIRM: it sends the attempt, and where the answer is lost looks up whether
// the attempt ran before sending it again under the next resend number, because a
// processor replays a cached failure for a day. It returns an intent that the attempt has
// moved, or an error.
func (e *Engine) confirm(ctx context.Context, s *billing.Subscription) (billing.Intent, error) {
	o := s.Open
	var err error
	for resend := range billing.MaxSends {
		var in billing.Intent
		r := billing.ConfirmRequest{Key: e.confirmKey(s, resend), Ref: o.Ref, Method: o.Method, Attempt: o.Attempt}
		if in, err = e.proc.Confirm(ctx, r); err == nil {
			return in, nil
		}
		if billing.Definite(err) || ctx.Err() != nil {
			return billing.Intent{}, err
		}
		seen, lerr := e.proc.Lookup(ctx, o.Ref)
		if lerr != nil {
			return billing.Intent{}, lerr
		}
		if billing.AttemptRan(o, seen) && !(seen.NoPage && resend+1 < billing.MaxSends) {
			return seen, nil
		}
	}
	return billing.Intent{}, err
}

// makePage confirms the attempt that waits for the customer once more, so that there is a page
// for them to authenticate on: the reply that had it was lost, or what they did there failed.
// It is the same intent and the same attempt. Where that fails, the page is missing as before,
// and the next day's run tries again.
func (e *Engine) makePage(ctx context.Context, s *billing.Subscription, in billing.Intent, today civil.Date) billing.Intent {
	o := s.Open
	key := e.idempotencyKey("page", s, o.Period, o.Generation, o.Ref, strconv.Itoa(o.Attempt), in.Latest, today.String(), o.Method)
	now, err := e.proc.Confirm(ctx, billing.ConfirmRequest{Key: key, Ref: o.Ref, Method: o.Method, Attempt: o.Attempt})
	if err != nil {
		return in
	}
	return now
}

// openKey hashes all that must be one and the same for two requests to mean one intent.
func (e *Engine) openKey(s *billing.Subscription, o *billing.OpenPeriod) string {
	more := []string{o.Amount.Decimal(), o.Amount.Currency().Code(), o.Method}
	if o.Payer != (billing.Payer{}) {
		more = append(more, o.Payer.At, o.Payer.Customer, strconv.Itoa(o.Payer.Fee))
	}
	return e.idempotencyKey("open", s, o.Period, o.Generation, more...)
}

// confirmKey hashes one sending of one attempt on the bound intent.
func (e *Engine) confirmKey(s *billing.Subscription, resend int) string {
	o := s.Open
	return e.idempotencyKey("confirm", s, o.Period, o.Generation, o.Ref, strconv.Itoa(o.Attempt), strconv.Itoa(resend), o.Method)
}

func (e *Engine) idempotencyKey(call string, s *billing.Subscription, period, generation int, more ...string) string {
	parts := append([]string{call, e.Opened.Installation, s.Account, s.Key().SK, billing.Stamp(s.Created), strconv.Itoa(period), strconv.Itoa(generation)}, more...)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "dd_" + hex.EncodeToString(sum[:16])
}
