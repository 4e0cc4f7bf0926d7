package stripe

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
)

// intent reads Stripe's intent. It returns an error if the answer is unusable.
func (p *Processor) intent(at string, pi *sdk.PaymentIntent) (processor.Intent, error) {
	const what = "a payment intent"
	if pi.Object != "payment_intent" || !api.IsID(pi.ID, "pi_") {
		return processor.Intent{}, api.Unusable(what, "the answer is a %q with the id %q", pi.Object, pi.ID)
	}
	if err := p.api.CheckMode(pi.ID, pi.Livemode); err != nil {
		return processor.Intent{}, err
	}
	in := processor.Intent{Ref: ref{at, pi.ID}.String(), Tag: tagOf(pi.Metadata), Price: pi.Metadata[metaPrice],
		Amount: api.Amount(pi.Amount, string(pi.Currency)),
		Latest: chargeOf(pi), Debit: isDebit(pi), Opened: api.Instant(pi.Created), Changed: changed(pi)}
	if in.Tag != (processor.Tag{}) && !in.Amount.IsPositive() {
		return processor.Intent{}, api.Unusable(what, "%s has the unusable amount %d %q", pi.ID, pi.Amount, pi.Currency)
	}
	switch pi.Status {
	case sdk.PaymentIntentStatusRequiresConfirmation, sdk.PaymentIntentStatusRequiresPaymentMethod:
		attempted(&in, pi)
	case sdk.PaymentIntentStatusRequiresAction:
		in.State, in.Latest, in.Code = processor.RequiresAction, waiting(pi), "authentication_required"
		if a := pi.NextAction; a != nil && a.RedirectToURL != nil {
			in.Link = a.RedirectToURL.URL
		}
	case sdk.PaymentIntentStatusProcessing, sdk.PaymentIntentStatusRequiresCapture:
		in.State = processor.Processing
	case sdk.PaymentIntentStatusSucceeded:
		in.State = processor.Succeeded
	case sdk.PaymentIntentStatusCanceled:
		attempted(&in, pi) // its last attempt may have been declined
		in.State, in.Link = processor.Canceled, ""
	default:
		if in.State = processor.Processing; in.Tag == (processor.Tag{}) {
			return in, nil // not ours: it must not end a list
		}
		return processor.Intent{}, api.Unusable(what, "%s has the unknown status %q", pi.ID, pi.Status)
	}
	in.NoPage = in.State == processor.RequiresAction && in.Link == "" && p.returnURL != ""
	return in, nil
}

// attempted sets the state of an intent that waits for a confirm, the first or another.
func attempted(in *processor.Intent, pi *sdk.PaymentIntent) {
	last := pi.LastPaymentError
	n, noted := noteOf(pi)
	switch {
	case noted && n.kind == noteAction:
		in.State, in.Latest, in.Code = processor.RequiresAction, n.id+actionSuffix, n.code
	case noted:
		in.State, in.Latest, in.Code, in.Hard = processor.Declined, n.id, n.code, n.kind != noteSoft
		in.Stop = n.kind == noteStop
	case pi.Status == sdk.PaymentIntentStatusRequiresConfirmation, last == nil && in.Latest == "":
		in.State = processor.Opened
	case last == nil:
		in.State = processor.Declined
		if pi.LatestCharge != nil {
			in.Code = pi.LatestCharge.FailureCode
		}
	case api.IsAction(string(last.Code), string(last.DeclineCode)):
		in.State, in.Latest, in.Code = processor.RequiresAction, waiting(pi), "authentication_required"
	default:
		in.State, in.Code = processor.Declined, cmp.Or(string(last.DeclineCode), string(last.Code))
		advice := lastAdvice(pi)
		in.Hard = api.IsHard(string(last.Code), string(last.DeclineCode), advice)
		in.Stop = api.IsStop(string(last.DeclineCode), advice)
	}
}

// actionSuffix tells an attempt that waits for the customer from earlier ones without a charge.
const actionSuffix = "/action"

func waiting(pi *sdk.PaymentIntent) string { return cmp.Or(chargeOf(pi), pi.ID) + actionSuffix }

func chargeOf(pi *sdk.PaymentIntent) string {
	if pi.LatestCharge == nil {
		return ""
	}
	return pi.LatestCharge.ID
}

// isDebit reports whether the latest attempt was a bank debit.
func isDebit(pi *sdk.PaymentIntent) bool {
	kind := ""
	if c := pi.LatestCharge; c != nil && c.PaymentMethodDetails != nil {
		kind = string(c.PaymentMethodDetails.Type)
	} else if e := pi.LastPaymentError; e != nil && e.PaymentMethod != nil {
		kind = string(e.PaymentMethod.Type)
	}
	switch kind {
	case "sepa_debit", "us_bank_account", "bacs_debit", "au_becs_debit", "acss_debit", "nz_bank_account", "ach_debit":
		return true
	}
	return false
}

func lastAdvice(pi *sdk.PaymentIntent) string {
	if pi.LastResponse != nil {
		if advice := api.AdviceOf(pi.LastResponse.RawJSON); advice != "" {
			return advice
		}
	}
	if pi.LatestCharge != nil && pi.LatestCharge.Outcome != nil {
		return string(pi.LatestCharge.Outcome.AdviceCode)
	}
	return ""
}

// changed returns the time of the intent's state: of the latest charge, or the best that is told.
func changed(pi *sdk.PaymentIntent) time.Time {
	switch {
	case pi.Status == sdk.PaymentIntentStatusCanceled && pi.CanceledAt > 0:
		return api.Instant(pi.CanceledAt)
	case pi.LatestCharge != nil && pi.LatestCharge.Created > 0 && pi.Status != sdk.PaymentIntentStatusCanceled:
		return api.Instant(pi.LatestCharge.Created)
	}
	return api.Instant(pi.Created)
}

// A ref names an intent: pi_… on our own account, acct_…/pi_… on a connected one.
type ref struct {
	at string // acct_…, or ""
	id string // pi_…
}

func (r ref) String() string {
	if r.at == "" {
		return r.id
	}
	return r.at + "/" + r.id
}

// parseRef reads a ref. A text in another form is ErrNoIntent: it is another processor's.
func parseRef(text string) (ref, error) {
	at, id, connected := strings.Cut(text, "/")
	if !connected {
		at, id = "", text
	}
	if !api.IsID(id, "pi_") || connected && !api.IsID(at, "acct_") {
		return ref{}, fmt.Errorf("%w: a Stripe payment intent must be pi_… or acct_…/pi_… (got %.60q)", processor.ErrNoIntent,
			text)
	}
	return ref{at, id}, nil
}

// The metadata of Duesday's objects at Stripe.
const (
	metaInstallation = "duesday_installation"
	metaSKU          = "duesday_sku"
	metaPeriod       = "duesday_period"
	metaGeneration   = "duesday_generation"
	metaPrice        = "duesday_price"
	metaRefund       = "duesday_refund"
	metaAttempt      = "duesday_attempt" // a note
)

// maxMetadata is the most characters of a value at Stripe.
const maxMetadata = 500

// metadataOf returns the tag as metadata without empty values, which would remove one at Stripe.
func metadataOf(t processor.Tag, more ...string) (map[string]string, error) {
	return metadata(append(more, metaInstallation, t.Installation, api.MetaAccount, t.Account, api.MetaSubscription, t.Subscription,
		metaSKU, t.SKU, metaPeriod, strconv.Itoa(t.Period), metaGeneration, strconv.Itoa(t.Generation))...)
}

func metadata(pairs ...string) (map[string]string, error) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		name, value := pairs[i], pairs[i+1]
		if utf8.RuneCountInString(value) > maxMetadata {
			return nil, api.Unsent("metadata %s has %d characters; the maximum at Stripe is %d", name, utf8.RuneCountInString(value),
				maxMetadata)
		}
		if value != "" {
			m[name] = value
		}
	}
	return m, nil
}

// tagOf reads the tag back. It is zero if it is not Duesday's, or was made unreadable by hand.
func tagOf(m map[string]string) processor.Tag {
	if m[metaInstallation] == "" {
		return processor.Tag{}
	}
	period, err := strconv.Atoi(m[metaPeriod])
	generation, err2 := strconv.Atoi(m[metaGeneration])
	if err != nil || err2 != nil {
		return processor.Tag{}
	}
	return processor.Tag{Installation: m[metaInstallation], Account: m[api.MetaAccount],
		Subscription: m[api.MetaSubscription], SKU: m[metaSKU], Period: period, Generation: generation}
}
