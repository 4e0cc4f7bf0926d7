package stripe

import (
	"cmp"
	"fmt"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
)

// intent tells what Stripe's intent means, or what makes it an answer that cannot be used.
func (p *Processor) intent(at string, pi *sdk.PaymentIntent) (billing.Intent, error) {
	const what = "a payment intent"
	if pi.Object != "payment_intent" || !isID(pi.ID, "pi_") {
		return billing.Intent{}, strange(what, "the answer is a %q with the id %q", pi.Object, pi.ID)
	}
	if err := p.checkMode(pi.ID, pi.Livemode); err != nil {
		return billing.Intent{}, err
	}
	in := billing.Intent{Ref: ref{at, pi.ID}.String(), Tag: tagOf(pi.Metadata), Amount: amountOf(pi.Amount, string(pi.Currency)),
		Latest: chargeOf(pi), Opened: instant(pi.Created), Changed: changed(pi)}
	if in.Tag != (billing.Tag{}) && !in.Amount.IsPositive() {
		return billing.Intent{}, strange(what, "%s is over %d of %q", pi.ID, pi.Amount, pi.Currency)
	}
	switch pi.Status {
	case sdk.PaymentIntentStatusRequiresConfirmation, sdk.PaymentIntentStatusRequiresPaymentMethod:
		attempted(&in, pi)
	case sdk.PaymentIntentStatusRequiresAction:
		in.State, in.Latest, in.Code = billing.RequiresAction, waiting(pi), "authentication_required"
		if a := pi.NextAction; a != nil && a.RedirectToURL != nil {
			in.Link = a.RedirectToURL.URL
		}
	case sdk.PaymentIntentStatusProcessing, sdk.PaymentIntentStatusRequiresCapture:
		in.State = billing.Processing
	case sdk.PaymentIntentStatusSucceeded:
		in.State = billing.Succeeded
	case sdk.PaymentIntentStatusCanceled:
		in.State = billing.Canceled
	default:
		if in.State = billing.Processing; in.Tag == (billing.Tag{}) {
			return in, nil // none of ours: it must not hide those that are
		}
		return billing.Intent{}, strange(what, "%s has the status %q, which is unknown here", pi.ID, pi.Status)
	}
	in.NoPage = in.State == billing.RequiresAction && in.Link == "" && p.returnURL != ""
	return in, nil
}

// attempted fills in what is known of an intent that waits to be confirmed, for the first
// time or again.
func attempted(in *billing.Intent, pi *sdk.PaymentIntent) {
	last := pi.LastPaymentError
	n, noted := noteOf(pi)
	switch {
	case noted && n.action:
		in.State, in.Latest, in.Code = billing.RequiresAction, n.id+actionSuffix, n.code
	case noted:
		in.State, in.Latest, in.Code, in.Hard = billing.Declined, n.id, n.code, n.hard
	case pi.Status == sdk.PaymentIntentStatusRequiresConfirmation, last == nil && in.Latest == "":
		in.State = billing.Opened
	case last == nil:
		in.State = billing.Declined
		if pi.LatestCharge != nil {
			in.Code = pi.LatestCharge.FailureCode
		}
	case isAction(string(last.Code), string(last.DeclineCode)):
		in.State, in.Latest, in.Code = billing.RequiresAction, waiting(pi), "authentication_required"
	default:
		in.State, in.Code = billing.Declined, cmp.Or(string(last.DeclineCode), string(last.Code))
		in.Hard = isHard(string(last.Code), string(last.DeclineCode), lastAdvice(pi))
	}
}

// actionSuffix makes the id of an attempt that waits for the customer differ from the ids of
// those before it, when Stripe made no charge for it yet.
const actionSuffix = "/action"

func waiting(pi *sdk.PaymentIntent) string { return cmp.Or(chargeOf(pi), pi.ID) + actionSuffix }

func chargeOf(pi *sdk.PaymentIntent) string {
	if pi.LatestCharge == nil {
		return ""
	}
	return pi.LatestCharge.ID
}

func lastAdvice(pi *sdk.PaymentIntent) string {
	if pi.LastResponse != nil {
		if advice := adviceOf(pi.LastResponse.RawJSON); advice != "" {
			return advice
		}
	}
	if pi.LatestCharge != nil && pi.LatestCharge.Outcome != nil {
		return string(pi.LatestCharge.Outcome.AdviceCode)
	}
	return ""
}

// changed returns when the intent came into its state, as well as Stripe tells: the latest
// charge's time, where there is one.
func changed(pi *sdk.PaymentIntent) time.Time {
	switch {
	case pi.Status == sdk.PaymentIntentStatusCanceled && pi.CanceledAt > 0:
		return instant(pi.CanceledAt)
	case pi.LatestCharge != nil && pi.LatestCharge.Created > 0 && pi.Status != sdk.PaymentIntentStatusCanceled:
		return instant(pi.LatestCharge.Created)
	}
	return instant(pi.Created)
}

// instant reads Stripe's seconds; 0 is no time.
func instant(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// checkMode refuses an object of the other mode: whoever answers is not who the key is for.
func (p *Processor) checkMode(id string, live bool) error {
	if live == p.live {
		return nil
	}
	return fmt.Errorf("%w: %s is of %s mode, and the key of %s mode: is this the address of Stripe's API", billing.ErrRefused, id, mode(live), mode(p.live))
}

func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}
