package stripe

import (
	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// dispute reads Stripe's dispute. An unknown status counts as undecided. An inquiry, warning_…,
// claims no money yet, and may become a claim under the same id.
func (p *Processor) dispute(at string, x *sdk.Dispute) (billing.Reversal, error) {
	if !api.IsID(x.ID, "dp_") && !api.IsID(x.ID, "du_") {
		return billing.Reversal{}, api.Unusable("a dispute", "the answer is a %q with the id %q", x.Object, x.ID)
	}
	if err := p.api.CheckMode(x.ID, x.Livemode); err != nil {
		return billing.Reversal{}, err
	}
	r := billing.Reversal{Kind: billing.Disputed, ID: x.ID, Amount: api.Amount(x.Amount, string(x.Currency)),
		Reason: string(x.Reason), Created: api.Instant(x.Created)}
	var err error
	if r.Ref, r.Tag, err = p.returned(at, x.PaymentIntent); err != nil {
		return billing.Reversal{}, err
	}
	if !r.Amount.IsPositive() && r.Tag != (billing.Tag{}) {
		return billing.Reversal{}, api.Unusable("a dispute", "%s is of %d of %q", x.ID, x.Amount, x.Currency)
	}
	switch x.Status {
	case sdk.DisputeStatusWon:
		r.State = billing.ReversalFailed
	case sdk.DisputeStatusLost:
		r.State = billing.ReversalSucceeded
	case sdk.DisputeStatusWarningClosed, "prevented": // no money was claimed in the end
		r.State = billing.ReversalCanceled
	case sdk.DisputeStatusWarningNeedsResponse, sdk.DisputeStatusWarningUnderReview:
		r.State = billing.ReversalInquiry
	default:
		r.State = billing.ReversalPending
	}
	return r, nil
}
