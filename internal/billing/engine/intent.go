package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/processor"
)

// open is OPEN and BIND: an unconfirmed intent, then one conditional commit to bind it to the
// period. A crash in between leaves an orphan, which moves no money.
func (t *turn) open(ctx context.Context) (step, error) {
	e, s := t.e, t.s
	method, payer, err := e.Cards().MethodOf(ctx, s)
	if err != nil {
		return step{}, err
	}
	due, err := s.Due()
	if err != nil {
		return step{}, err
	}
	s.TakeEffect()
	o := &billing.OpenPeriod{Period: s.Period, Amount: s.Amount, Method: method, Payer: payer, Due: due,
		Attempt: 1, Opened: e.Now()}
	if method == "" {
		return e.park(ctx, s, t.today, billing.NoMethod)
	}
	return t.bind(ctx, o)
}

// rebind replaces an intent that the processor shows cancelled, unasked, by the next generation.
func (t *turn) rebind(ctx context.Context) (step, error) {
	o := *t.s.Open
	o.Retired = append(append([]string(nil), o.Retired...), o.Ref)
	o.Generation++
	o.Ref, o.Base, o.State, o.Overtaken = "", "", "", false // no attempt before is under way on the next one
	if len(o.Retired) > maxGenerations {
		return t.e.park(ctx, t.s, t.today, "the processor cancels every payment intent")
	}
	return t.bind(ctx, &o)
}

// maxGenerations bounds the intents of one period: beyond it, something else cancels them.
const maxGenerations = 8

func (t *turn) bind(ctx context.Context, o *billing.OpenPeriod, others ...write) (step, error) {
	e, s, today := t.e, t.s, t.today
	if t.w.Refused[o.Payer.At] {
		return t.unbound(ctx, fmt.Errorf("%w: %s", processor.ErrAccountRefused, o.Payer.At))
	}
	tag := processor.Tag{Installation: e.Opened.Installation, Account: s.Account, Subscription: s.ID, SKU: s.Name.SKU,
		Period: o.Period, Generation: o.Generation}
	r := processor.OpenRequest{Key: e.openKey(s, o), Tag: tag, Product: s.SKUOf(o), Amount: o.Amount, Method: o.Method,
		Payer: o.Payer}
	// It is asked again after a lost answer: the key makes this harmless for a day, an orphan later.
	gated := processor.WithGate(ctx, t.w.Charging.Check)
	in, err := processor.Ask(ctx, func() (processor.Intent, error) { return e.proc.Open(gated, r) })
	if err != nil {
		return t.unbound(ctx, err)
	}
	o.Ref = in.Ref
	s.Open, s.Collect = o, 0
	s.NextPayment = e.waitDay(s, today)
	if err := e.put(ctx, s, others...); err != nil {
		return step{}, err
	}
	return step{bound: s}, nil
}

// unbound deals with an error of OPEN.
func (t *turn) unbound(ctx context.Context, err error) (step, error) {
	if t.record != nil {
		return t.notReopened(ctx, err)
	}
	return t.e.setback(ctx, t.s, t.today, err)
}

// confirm is CONFIRM: it sends the attempt. After a lost answer it looks up whether the attempt
// ran. If it did not, confirm sends it again under the next resend number: a processor replays a
// cached failure for a day. It returns an intent moved by the attempt, or an error. No attempt leaves
// while the switch is off.
func (e *Engine) confirm(ctx context.Context, s *billing.Subscription, switched *charging.Switch) (processor.Intent, error) {
	o := s.Open
	var err error
	for resend := range processor.MaxSends {
		var in processor.Intent
		key := e.idempotencyKey("confirm", s, o.Period, o.Generation, o.Ref, strconv.Itoa(o.Attempt),
			strconv.Itoa(resend), o.Method) // of one sending of one attempt on the bound intent
		r := processor.ConfirmRequest{Key: key, Ref: o.Ref, Method: o.Method, Attempt: o.Attempt}
		if in, err = e.proc.Confirm(processor.WithGate(ctx, switched.Check), r); err == nil {
			return in, nil
		}
		if processor.Definite(err) || ctx.Err() != nil {
			return processor.Intent{}, err
		}
		seen, lerr := e.proc.Lookup(ctx, o.Ref)
		if lerr != nil {
			return processor.Intent{}, lerr
		}
		if billing.AttemptRan(o, seen) && !(seen.NoPage && resend+1 < processor.MaxSends) {
			return seen, nil
		}
		if _, stopped := errors.AsType[*charging.StopError](err); stopped {
			break
		}
	}
	return processor.Intent{}, err
}

// makePage confirms once more the attempt waiting for the customer, to make a page for
// authentication: the reply with the page was lost, or the authentication failed. Intent and
// attempt stay the same. If makePage fails, the page is missing until the next day's run.
func (t *turn) makePage(ctx context.Context) processor.Intent {
	e, s, in, today := t.e, t.s, t.in, t.today
	o := s.Open
	ctx = processor.WithGate(ctx, t.w.Charging.Check)
	key := e.idempotencyKey("page", s, o.Period, o.Generation, o.Ref, strconv.Itoa(o.Attempt), in.Latest,
		today.String(), o.Method)
	now, err := e.proc.Confirm(ctx, processor.ConfirmRequest{Key: key, Ref: o.Ref, Method: o.Method, Attempt: o.Attempt})
	if err != nil {
		return in
	}
	return now
}

// openKey hashes the values of an intent: two requests with the same values mean one intent.
func (e *Engine) openKey(s *billing.Subscription, o *billing.OpenPeriod) string {
	more := []string{o.Amount.Decimal(), o.Amount.Currency().Code(), o.Method}
	if o.Payer != (processor.Payer{}) {
		more = append(more, o.Payer.At, o.Payer.Customer, strconv.Itoa(o.Payer.Fee))
	}
	if sku := s.SKUOf(o); sku != s.Name.SKU {
		more = append(more, "sku", sku)
	}
	return e.idempotencyKey("open", s, o.Period, o.Generation, more...)
}

func (e *Engine) idempotencyKey(call string, s *billing.Subscription, period, generation int, more ...string) string {
	return billing.HashKey(append([]string{call, e.Opened.Installation, s.Account, s.Key().SK, billing.Stamp(s.Created),
		strconv.Itoa(period), strconv.Itoa(generation)}, more...)...)
}
