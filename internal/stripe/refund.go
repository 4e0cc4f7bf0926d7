package stripe

import (
	"cmp"
	"context"
	"iter"
	"slices"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/stripe/api"
)

// Refund implements processor.Refunder. We keep the fee that a connected account has paid.
func (p *Processor) Refund(ctx context.Context, r processor.RefundRequest) (processor.Reversal, error) {
	at, err := parseRef(r.Ref)
	if err != nil {
		return processor.Reversal{}, err
	}
	units, err := api.Units(r.Amount)
	if err != nil {
		return processor.Reversal{}, err
	}
	switch {
	case units <= 0:
		return processor.Reversal{}, api.Unsent("the refund amount must be more than zero (got %s)", r.Amount)
	case r.Key == "" || r.ID == "":
		return processor.Reversal{}, api.Unsent("the refund has no idempotency key or no ID")
	}
	meta, err := metadataOf(r.Tag)
	if err != nil {
		return processor.Reversal{}, err
	}
	meta[metaRefund] = r.ID
	params := &sdk.RefundCreateParams{Params: api.Params(at.at, r.Key), PaymentIntent: &at.id, Amount: &units,
		Metadata: meta, Expand: []*string{new("payment_intent")}}
	if r.Reason != "" {
		params.Reason = new(string(r.Reason))
	}
	refund, err := p.client.V1Refunds.Create(ctx, params)
	if err != nil {
		return processor.Reversal{}, noIntent(at, err)
	}
	got, err := p.refund(at.at, refund)
	if err == nil && (got.Ref != r.Ref || got.Amount != r.Amount || got.Request != r.ID) {
		return processor.Reversal{}, api.Unusable("refund", "requested %s for %s of %s, but Stripe returned %s for %s of %s", r.ID,
			r.Amount, r.Ref, got.Request, got.Amount, got.Ref)
	}
	return got, err
}

// ReversalsOf implements processor.Refunder.
func (p *Processor) ReversalsOf(ctx context.Context, text string) ([]processor.Reversal, error) {
	at, err := parseRef(text)
	if err != nil {
		return nil, err
	}
	var all []processor.Reversal
	for r, err := range p.reversals(ctx, processor.ListRequest{At: at.at}, "payment_intent", at.id) {
		if err != nil {
			return nil, noIntent(at, err)
		}
		if r.Ref != text {
			return nil, api.Unusable("list", "requested refunds and disputes of %s, but Stripe returned %s of %q", at, r.ID, r.Ref)
		}
		all = append(all, r)
	}
	return all, nil
}

// Reversals implements processor.Refunder. r.Since and r.Until are rounded down to seconds.
// r.Customer has no effect, because Stripe cannot list by customer here. The list also contains
// disputes created up to a year before r.Since, because verdicts and appeals come months later.
func (p *Processor) Reversals(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	if err := checkList(r); err != nil {
		return sequence.Fail[processor.Reversal](err)
	}
	r.Customer = ""
	return p.reversals(ctx, r)
}

type reversals = iter.Seq2[processor.Reversal, error]

// reversals yields the refunds and then the disputes. The pairs are parameters of both lists.
func (p *Processor) reversals(ctx context.Context, r processor.ListRequest, pairs ...string) reversals {
	pairs = append(pairs, "expand[]", "data.payment_intent")
	refunds := list(p.rows(ctx, "/v1/refunds", r, pairs...),
		func(x *sdk.Refund) (processor.Reversal, error) { return p.refund(r.At, x) })
	if !r.Since.IsZero() {
		r.Since = r.Since.Add(-api.DisputesLast)
	}
	disputes := list(p.rows(ctx, "/v1/disputes", r, pairs...),
		func(x *sdk.Dispute) (processor.Reversal, error) { return p.dispute(r.At, x) })
	return sequence.Flat(slices.Values([]reversals{refunds, disputes}), func(part reversals) reversals { return part })
}

func (p *Processor) refund(at string, x *sdk.Refund) (processor.Reversal, error) {
	if !api.IsID(x.ID, "re_") && !api.IsID(x.ID, "pyr_") {
		return processor.Reversal{}, api.Unusable("refund", "Stripe returned a %q with ID %q", x.Object, x.ID)
	}
	r := processor.Reversal{Kind: processor.Refunded, ID: x.ID, Request: x.Metadata[metaRefund],
		Reason: string(x.Reason), Created: api.Instant(x.Created)}
	if err := p.returned(&r, at, "refund", x.PaymentIntent, x.Amount, x.Currency); err != nil {
		return processor.Reversal{}, err
	}
	state, known := map[sdk.RefundStatus]processor.ReversalState{sdk.RefundStatusPending: processor.ReversalPending,
		sdk.RefundStatusRequiresAction: processor.ReversalPending, sdk.RefundStatusSucceeded: processor.ReversalSucceeded,
		sdk.RefundStatusFailed: processor.ReversalFailed, sdk.RefundStatusCanceled: processor.ReversalCanceled}[x.Status]
	if !known && r.Request != "" { // one that is not Duesday's must not end a list
		return processor.Reversal{}, api.Unusable("refund", "%s has the unknown status %q", x.ID, x.Status)
	}
	r.State = cmp.Or(state, processor.ReversalPending)
	return r, nil
}

// returned fills in the amount of a reversal, and the ref and the tag of its intent, if it has one.
func (p *Processor) returned(r *processor.Reversal, at, what string, pi *sdk.PaymentIntent, units int64,
	currency sdk.Currency) error {
	if pi != nil && !api.IsID(pi.ID, "pi_") {
		return api.Unusable("refund or dispute", "it belongs to a %q with ID %q", pi.Object, pi.ID)
	}
	if pi != nil && pi.Object != "" { // else it is its id alone
		if err := p.api.CheckMode(pi.ID, pi.Livemode); err != nil {
			return err
		}
	}
	if pi != nil {
		r.Ref, r.Tag = ref{at, pi.ID}.String(), tagOf(pi.Metadata)
	}
	r.Amount = api.Amount(units, string(currency))
	if !r.Amount.IsPositive() && (r.Request != "" || r.Tag != (processor.Tag{})) {
		return api.Unusable(what, "%s has the unusable amount %d %q", r.ID, units, currency)
	}
	return nil
}

// dispute reads Stripe's. An unknown status counts as undecided. An inquiry claims no money yet.
func (p *Processor) dispute(at string, x *sdk.Dispute) (processor.Reversal, error) {
	if !api.IsID(x.ID, "dp_") && !api.IsID(x.ID, "du_") {
		return processor.Reversal{}, api.Unusable("dispute", "Stripe returned a %q with ID %q", x.Object, x.ID)
	}
	if err := p.api.CheckMode(x.ID, x.Livemode); err != nil {
		return processor.Reversal{}, err
	}
	r := processor.Reversal{Kind: processor.Disputed, ID: x.ID, Reason: string(x.Reason), Created: api.Instant(x.Created)}
	if x.EvidenceDetails != nil && x.EvidenceDetails.DueBy > 0 {
		r.EvidenceDue = api.Instant(x.EvidenceDetails.DueBy)
	}
	if err := p.returned(&r, at, "dispute", x.PaymentIntent, x.Amount, x.Currency); err != nil {
		return processor.Reversal{}, err
	}
	r.State = cmp.Or(map[sdk.DisputeStatus]processor.ReversalState{
		sdk.DisputeStatusWon: processor.ReversalFailed, sdk.DisputeStatusLost: processor.ReversalSucceeded,
		// the customer keeps the money until the appeal is won
		"appeal_needs_response": processor.ReversalSucceeded, "appeal_under_review": processor.ReversalSucceeded,
		// no money was claimed in the end
		sdk.DisputeStatusWarningClosed: processor.ReversalCanceled, "prevented": processor.ReversalCanceled,
		sdk.DisputeStatusWarningNeedsResponse: processor.ReversalInquiry,
		sdk.DisputeStatusWarningUnderReview:   processor.ReversalInquiry}[x.Status], processor.ReversalPending)
	return r, nil
}
