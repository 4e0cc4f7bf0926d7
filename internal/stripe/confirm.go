package stripe

import (
	"cmp"
	"context"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// Confirm implements billing.Processor. It says no only where Stripe's code says no: the
// table in api/classify.go. An intent that the customer has to authenticate is confirmed once
// more, in the customer's presence as it were, which makes the page to do it on.
func (p *Processor) Confirm(ctx context.Context, r billing.ConfirmRequest) (billing.Intent, error) {
	at, err := parseRef(r.Ref)
	if err != nil {
		return billing.Intent{}, err
	}
	if r.Key == "" || r.Method == "" {
		return billing.Intent{}, api.Unsent("no idempotency key, or no payment method")
	}
	params := &sdk.PaymentIntentConfirmParams{PaymentMethod: &r.Method, OffSession: new(true), Expand: expandCharge()}
	params.IdempotencyKey, params.StripeAccount = &r.Key, api.Account(at.at)
	pi, err := p.client.V1PaymentIntents.Confirm(ctx, at.id, params)
	if err == nil {
		return p.confirmed(ctx, at, pi)
	}
	if f, ok := api.Is(err, api.Action); ok {
		return p.authenticate(ctx, at, r, f)
	}
	return p.answered(ctx, at, r.Key, err)
}

// confirmed tells what a confirm came to. An answer that Stripe repeats from an earlier send
// Is of then: unless it is final the intent is looked up as it is now.
func (p *Processor) confirmed(ctx context.Context, at ref, pi *sdk.PaymentIntent) (billing.Intent, error) {
	in, err := p.same(at, pi)
	if err == nil && in.State != billing.Succeeded && pi.LastResponse != nil && api.IsReplay(pi.LastResponse.Header) {
		return p.Lookup(ctx, at.String())
	}
	return in, err
}

// answered tells what a confirm came to that was answered by an error.
func (p *Processor) answered(ctx context.Context, at ref, key string, err error) (billing.Intent, error) {
	if _, ok := api.Is(err, api.Moved); ok {
		return p.Lookup(ctx, at.String())
	}
	f, ok := api.Is(err, api.Declined, api.PayerGone, api.Gone) // what is gone may be a mandate: whether it is the intent, the look at it tells
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
	if isEarlier(f, key, pi) {
		return in, nil
	}
	a := f.Answer
	code, hard := cmp.Or(a.Decline, a.Code, a.Kind), api.IsHard(a.Code, a.Decline, a.Advice)
	if f.Charge == "" || f.Charge != chargeOf(pi) {
		in, err = p.leave(ctx, at, newNote(key, code, hard), pi)
		if err != nil {
			return billing.Intent{}, err
		}
	} else {
		in.State, in.Latest, in.Code, in.Hard, in.Link = billing.Declined, f.Charge, code, hard, ""
	}
	if pi.LatestCharge == nil || pi.LatestCharge.Created == 0 || pi.LatestCharge.ID != f.Charge {
		in.Changed = p.api.Now() // of an attempt that was answered this moment
	}
	return in, nil
}

// Seen returns the intent as it is after a failed attempt: from the error, which holds it, or
// by looking where it does not, or repeats an earlier one.
func (p *Processor) seen(ctx context.Context, at ref, f *api.Error) (*sdk.PaymentIntent, billing.Intent, error) {
	pi := f.Intent
	if pi == nil || pi.ID != at.id || pi.Status == "" || f.Replayed {
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
func (p *Processor) authenticate(ctx context.Context, at ref, r billing.ConfirmRequest, f *api.Error) (billing.Intent, error) {
	pi, first, err := p.seen(ctx, at, f)
	if err != nil {
		return billing.Intent{}, err
	}
	switch first.State {
	case billing.Succeeded, billing.Processing, billing.Canceled:
		return first, nil
	}
	if isEarlier(f, r.Key, pi) {
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
	first.Changed = p.api.Now()
	if p.returnURL == "" || first.Link != "" {
		return first, nil
	}
	params := &sdk.PaymentIntentConfirmParams{PaymentMethod: &r.Method, ReturnURL: &p.returnURL, Expand: expandCharge()}
	params.StripeAccount = api.Account(at.at)
	params.IdempotencyKey = new("dd_" + digest(r.Key, "action", p.returnURL)) // the address is a setting, and may change
	pi, err = p.client.V1PaymentIntents.Confirm(ctx, at.id, params)
	if err == nil {
		return p.confirmed(ctx, at, pi)
	}
	// A Decline is the news: the customer has nothing to authenticate any more. What nobody
	// knows is not called a wait for the customer: the money may have been taken.
	if _, news := api.Is(err, api.Declined, api.PayerGone, api.Moved, api.Unknown); news {
		return p.answered(ctx, at, *params.IdempotencyKey, err)
	}
	p.api.Log.Warn("stripe made no page for the customer to authenticate on", "intent", at.String(), "error", err.Error())
	return first, nil
}
