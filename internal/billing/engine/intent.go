package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
)

// open does OPEN and BIND. It creates an unconfirmed intent, and then binds the intent to the
// period in one conditional commit. A crash in between leaves an orphan, which moves no money.
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
	o, err := s.NewPeriod(due, e.Now())
	if err != nil {
		return e.park(ctx, s, t.today, err.Error())
	}
	if o.Method, o.Payer = method, payer; method == "" {
		return e.park(ctx, s, t.today, billing.NoMethod)
	}
	t.endHold()
	return t.bind(ctx, o)
}

// rebind binds the next generation's intent after the processor has shown the current intent
// cancelled without a request from Duesday.
func (t *turn) rebind(ctx context.Context) (step, error) {
	o := *t.s.Open
	o.Retired = append(append([]string(nil), o.Retired...), o.Ref)
	o.Generation++
	o.Ref, o.Base, o.State, o.Overtaken = "", "", "", false // no earlier attempt is active on the next intent
	if len(o.Retired) > maxGenerations {
		return t.e.park(ctx, t.s, t.today, "the processor cancels every payment intent")
	}
	return t.bind(ctx, &o)
}

// maxGenerations limits the number of intents for one period. If a period needs more, something
// else cancels its intents.
const maxGenerations = 8

func (t *turn) bind(ctx context.Context, o *billing.OpenPeriod, others ...write) (step, error) {
	e, s, today := t.e, t.s, t.today
	if t.w.Refused[o.Payer.At] {
		return t.unbound(ctx, fmt.Errorf("%w: %s", processor.ErrAccountRefused, o.Payer.At))
	}
	tag := processor.Tag{Installation: e.Opened.Installation, Account: s.Account, Subscription: s.ID, SKU: s.Name.SKU,
		Period: o.Period, Generation: o.Generation}
	r := processor.OpenRequest{Key: e.openKey(s, o), Tag: tag, Product: s.SKUOf(o), Amount: o.Amount, Price: o.Price.Text(),
		Method: o.Method, Payer: o.Payer}
	// open repeats the request after a lost answer. The idempotency key makes this harmless for a
	// day. Later, the repeated request creates an orphan.
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

// unbound handles an error of OPEN.
func (t *turn) unbound(ctx context.Context, err error) (step, error) {
	switch {
	case t.record != nil:
		return t.notReopened(ctx, err)
	case t.s.Upgrading() && errors.Is(err, processor.ErrInvalid):
		return t.dropUpgrade(ctx, secret.MaskCards(err.Error()))
	}
	return t.e.setback(ctx, t.s, t.today, err)
}

// confirm does CONFIRM: it sends the attempt. After a lost answer, confirm looks up whether the
// attempt ran. If the attempt did not run, confirm sends it again under the next resend number,
// because a processor replays a cached failure for a day. confirm returns an intent that the
// attempt has changed, or an error. It sends no attempt while the charging switch is off.
func (e *Engine) confirm(ctx context.Context, s *billing.Subscription, switched *charging.Switch) (processor.Intent, error) {
	o := s.Open
	var err error
	for resend := range processor.MaxSends {
		var in processor.Intent
		key := e.idempotencyKey("confirm", s, o.Period, o.Generation, o.Ref, strconv.Itoa(o.Attempt),
			strconv.Itoa(resend), o.Method) // key for sending one attempt on the bound intent once
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

// makePage confirms the attempt that waits for the customer once more, to create an authentication
// page. It does so if the reply with the page was lost or the authentication failed. The intent and
// attempt stay the same. If makePage fails, the customer has no page until the next day's run.
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

// openKey returns a hash of the intent's values. Two requests with the same values refer to the
// same intent.
func (e *Engine) openKey(s *billing.Subscription, o *billing.OpenPeriod) string {
	more := []string{o.Amount.Decimal(), o.Amount.Currency().Code(), o.Method}
	if o.Payer != (processor.Payer{}) {
		more = append(more, o.Payer.At, o.Payer.Customer, strconv.Itoa(o.Payer.Fee))
	}
	if sku := s.SKUOf(o); sku != s.Name.SKU {
		more = append(more, "sku", sku)
	}
	if text := o.Price.Text(); text != "" { // a retry with another price is another intent
		more = append(more, "price", text)
	}
	return e.idempotencyKey("open", s, o.Period, o.Generation, more...)
}

func (e *Engine) idempotencyKey(call string, s *billing.Subscription, period, generation int, more ...string) string {
	return billing.HashKey(append([]string{call, e.Opened.Installation, s.Account, s.Key().SK, billing.Stamp(s.Created),
		strconv.Itoa(period), strconv.Itoa(generation)}, more...)...)
}
