package stripe

import (
	"cmp"
	"context"
	"net/http"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
)

// Confirm implements billing.Processor. It says no only where Stripe's code says no: the
// table in classify.go. An intent that the customer has to authenticate is confirmed once
// more, in the customer's presence as it were, which makes the page to do it on.
func (p *Processor) Confirm(ctx context.Context, r billing.ConfirmRequest) (billing.Intent, error) {
	at, err := parseRef(r.Ref)
	if err != nil {
		return billing.Intent{}, err
	}
	if r.Key == "" || r.Method == "" {
		return billing.Intent{}, unsent("no idempotency key, or no payment method")
	}
	params := &sdk.PaymentIntentConfirmParams{PaymentMethod: &r.Method, OffSession: new(true), Expand: expandCharge()}
	params.IdempotencyKey, params.StripeAccount = &r.Key, account(at.at)
	pi, err := p.client.V1PaymentIntents.Confirm(ctx, at.id, params)
	if err == nil {
		return p.confirmed(ctx, at, pi)
	}
	if f, ok := is(err, action); ok {
		return p.authenticate(ctx, at, r, f)
	}
	return p.answered(ctx, at, r.Key, err)
}

// confirmed tells what a confirm came to. An answer that Stripe repeats from an earlier send
// is of then: unless it is final the intent is looked up as it is now.
func (p *Processor) confirmed(ctx context.Context, at ref, pi *sdk.PaymentIntent) (billing.Intent, error) {
	in, err := p.same(at, pi)
	if err == nil && in.State != billing.Succeeded && pi.LastResponse != nil && isReplay(pi.LastResponse.Header) {
		return p.Lookup(ctx, at.String())
	}
	return in, err
}

func isReplay(h http.Header) bool { return h.Get("Idempotent-Replayed") == "true" }

// answered tells what a confirm came to that was answered by an error.
func (p *Processor) answered(ctx context.Context, at ref, key string, err error) (billing.Intent, error) {
	if _, ok := is(err, moved); ok {
		return p.Lookup(ctx, at.String())
	}
	f, ok := is(err, declined, payerGone, gone) // what is gone may be a mandate: whether it is the intent, the look at it tells
	if !ok {
		return billing.Intent{}, err
	}
	pi, in, err := p.seen(ctx, at, f)
	if err != nil {
		return billing.Intent{}, err
	}
	if in.State == billing.Succeeded || in.State == billing.Processing || in.State == billing.Canceled {
		return in, nil // the intent knows better, whoever moved it
	}
	if f.earlier(key, pi) {
		return in, nil
	}
	a := f.answer
	code, hard := cmp.Or(a.decline, a.code, a.kind), isHard(a.code, a.decline, a.advice)
	if f.charge == "" || f.charge != chargeOf(pi) {
		in, err = p.leave(ctx, at, newNote(key, code, hard), pi)
		if err != nil {
			return billing.Intent{}, err
		}
	} else {
		in.State, in.Latest, in.Code, in.Hard, in.Link = billing.Declined, f.charge, code, hard, ""
	}
	if pi.LatestCharge == nil || pi.LatestCharge.Created == 0 || pi.LatestCharge.ID != f.charge {
		in.Changed = p.now() // of an attempt that was answered this moment
	}
	return in, nil
}

// seen returns the intent as it is after a failed attempt: from the error, which holds it, or
// by looking where it does not, or repeats an earlier one.
func (p *Processor) seen(ctx context.Context, at ref, f *failure) (*sdk.PaymentIntent, billing.Intent, error) {
	pi := f.intent
	if pi == nil || pi.ID != at.id || pi.Status == "" || f.replayed {
		var err error
		if pi, err = p.retrieve(ctx, at); err != nil {
			return nil, billing.Intent{}, err
		}
	}
	in, err := p.intent(at.at, pi)
	return pi, in, err
}

// authenticate asks for the page on which the customer can authenticate the attempt that f
// was the answer to. It is the same intent, so that there is no second charge: whatever the
// page leads to completes it.
func (p *Processor) authenticate(ctx context.Context, at ref, r billing.ConfirmRequest, f *failure) (billing.Intent, error) {
	pi, first, err := p.seen(ctx, at, f)
	if err != nil {
		return billing.Intent{}, err
	}
	switch first.State {
	case billing.Succeeded, billing.Processing, billing.Canceled:
		return first, nil
	}
	if f.earlier(r.Key, pi) {
		return first, nil
	}
	if pi.Metadata[metaAttempt] != "" { // about an earlier attempt; it would hide this one
		n := newNote(r.Key, "authentication_required", false)
		n.action = true
		if first, err = p.leave(ctx, at, n, pi); err != nil {
			return billing.Intent{}, err
		}
	} else {
		first.State, first.Latest, first.Code, first.Hard = billing.RequiresAction, waiting(pi), "authentication_required", false
	}
	first.Changed = p.now()
	if p.returnURL == "" || first.Link != "" {
		return first, nil
	}
	params := &sdk.PaymentIntentConfirmParams{PaymentMethod: &r.Method, ReturnURL: &p.returnURL, Expand: expandCharge()}
	params.StripeAccount = account(at.at)
	params.IdempotencyKey = new("dd_" + digest(r.Key, "action", p.returnURL)) // the address is a setting, and may change
	pi, err = p.client.V1PaymentIntents.Confirm(ctx, at.id, params)
	if err == nil {
		return p.confirmed(ctx, at, pi)
	}
	// A decline is the news: the customer has nothing to authenticate any more. What nobody
	// knows is not called a wait for the customer: the money may have been taken.
	if _, news := is(err, declined, payerGone, moved, unknown); news {
		return p.answered(ctx, at, *params.IdempotencyKey, err)
	}
	p.log.Warn("stripe made no page for the customer to authenticate on", "intent", at.String(), "error", err.Error())
	return first, nil
}
