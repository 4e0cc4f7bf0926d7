package stripe

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// Open implements billing.Processor. All parameters are the request's: none is of today's
// settings or clock, so that a key has the same parameters whenever it is sent.
//
// Where the key is answered by a 5xx, which Stripe repeats for a day, the intent is asked for
// under a second and a third key: an intent that is never confirmed moves no money.
func (p *Processor) Open(ctx context.Context, r billing.OpenRequest) (billing.Intent, error) {
	params, err := openParams(r)
	if err != nil {
		return billing.Intent{}, err
	}
	var pi *sdk.PaymentIntent
	for n := 1; n <= 3; n++ {
		key := r.Key
		if n > 1 {
			key += "_" + strconv.Itoa(n)
		}
		params.IdempotencyKey = &key
		pi, err = p.client.V1PaymentIntents.Create(ctx, params)
		if f, lost := api.Is(err, api.Unknown); !lost || f.Answer.Status < http.StatusInternalServerError || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return billing.Intent{}, err
	}
	in, err := p.intent(r.Payer.At, pi)
	if err == nil && in.Amount != r.Amount {
		return billing.Intent{}, fmt.Errorf("%w: %s was asked for and Stripe made %s over %s", billing.ErrInvalid, r.Amount, in.Ref, in.Amount)
	}
	return in, err
}

func openParams(r billing.OpenRequest) (*sdk.PaymentIntentCreateParams, error) {
	if r.Key == "" {
		return nil, api.Unsent("no idempotency key")
	}
	if err := api.CheckAt(r.Payer.At); err != nil {
		return nil, err
	}
	units, err := api.ChargeUnits(r.Amount)
	if err != nil {
		return nil, err
	}
	meta, err := metadataOf(r.Tag)
	if err != nil {
		return nil, err
	}
	params := &sdk.PaymentIntentCreateParams{
		Amount: &units, Currency: new(strings.ToLower(r.Amount.Currency().Code())),
		// Without a payment method: that comes with each confirm. One that is gone is then a
		// Decline of that attempt, which the customer hears of, and no refusal of the intent.
		Confirm: new(false), Metadata: meta,
		Description: new(fmt.Sprintf("%s, period %d", cmp.Or(r.Tag.SKU, "subscription"), r.Tag.Period)),
		// Whatever kind of method was saved may pay, if it can without the customer: one that
		// redirects cannot, and to allow it would make a return address, which is a setting, a
		// parameter of every confirm.
		AutomaticPaymentMethods: &sdk.PaymentIntentCreateAutomaticPaymentMethodsParams{Enabled: new(true), AllowRedirects: new("never")},
	}
	params.StripeAccount = api.Account(r.Payer.At)
	if r.Payer.Customer != "" {
		params.Customer = &r.Payer.Customer
	}
	fee, err := api.FeeUnits(units, r.Payer.Fee, r.Amount.Currency())
	if err != nil {
		return nil, err
	}
	if r.Payer.At != "" && fee > 0 {
		params.ApplicationFeeAmount = &fee
	}
	return params, nil
}

// Lookup implements billing.Processor.
func (p *Processor) Lookup(ctx context.Context, text string) (billing.Intent, error) {
	at, err := parseRef(text)
	if err != nil {
		return billing.Intent{}, err
	}
	pi, err := p.retrieve(ctx, at)
	if err != nil {
		return billing.Intent{}, err
	}
	return p.intent(at.at, pi)
}

func (p *Processor) retrieve(ctx context.Context, at ref) (*sdk.PaymentIntent, error) {
	params := &sdk.PaymentIntentRetrieveParams{Expand: expandCharge()}
	params.StripeAccount = api.Account(at.at)
	pi, err := p.client.V1PaymentIntents.Retrieve(ctx, at.id, params)
	if err != nil {
		return nil, noIntent(at, err)
	}
	if pi.ID != at.id {
		return nil, api.Unusable("a payment intent", "%s was asked for, and %q came", at, pi.ID)
	}
	return pi, nil
}

// Cancel implements billing.Processor. It goes without an idempotency key: to cancel twice is
// to cancel, and a key would repeat yesterday's refusal.
func (p *Processor) Cancel(ctx context.Context, text string) (billing.Intent, error) {
	at, err := parseRef(text)
	if err != nil {
		return billing.Intent{}, err
	}
	params := &sdk.PaymentIntentCancelParams{CancellationReason: new("abandoned"), Expand: expandCharge()}
	params.StripeAccount = api.Account(at.at)
	pi, err := p.client.V1PaymentIntents.Cancel(ctx, at.id, params)
	if _, ok := api.Is(err, api.Moved); ok {
		return p.Lookup(ctx, text)
	}
	if err != nil {
		return billing.Intent{}, noIntent(at, err)
	}
	return p.same(at, pi)
}

// same is intent, of the intent that was asked for.
func (p *Processor) same(at ref, pi *sdk.PaymentIntent) (billing.Intent, error) {
	if pi.ID != at.id {
		return billing.Intent{}, api.Unusable("a payment intent", "%s was meant, and %q answered", at, pi.ID)
	}
	return p.intent(at.at, pi)
}

// List implements billing.Processor, from Stripe's list, which shows what was made a moment
// ago. Stripe lists by when intents were made: one made before r.Since that has succeeded
// since is not among them. r.Since and r.Until count in whole seconds, rounded down: of two
// listings, one until where the other begins, each intent is in one.
func (p *Processor) List(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Intent, error] {
	return func(yield func(billing.Intent, error) bool) {
		if err := checkList(r); err != nil {
			yield(billing.Intent{}, err)
			return
		}
		fetch := func(after string) *sdk.V1List[*sdk.PaymentIntent] {
			params := &sdk.PaymentIntentListParams{CreatedRange: created(r.Since, r.Until), Expand: []*string{new("data.latest_charge")}}
			if r.Customer != "" {
				params.Customer = &r.Customer
			}
			params.ListParams = page(r.At, after)
			return p.client.V1PaymentIntents.List(ctx, params)
		}
		for pi, err := range pages(fetch, func(pi *sdk.PaymentIntent) string { return pi.ID }) {
			var in billing.Intent
			if err == nil {
				in, err = p.intent(r.At, pi)
			}
			if !yield(in, err) || err != nil {
				return
			}
		}
	}
}

func checkList(r billing.ListRequest) error {
	if r.Customer != "" {
		if err := api.CheckID("customer", r.Customer, "cus_"); err != nil {
			return err
		}
	}
	return api.CheckAt(r.At)
}

// noIntent tells of an error that is about the intent itself, whose name was in the path, as
// ErrNoIntent.
func noIntent(at ref, err error) error {
	if f, ok := api.Is(err, api.Gone); ok {
		return fmt.Errorf("%w: %s: %s", billing.ErrNoIntent, at, f.Text)
	}
	return err
}

func expandCharge() []*string { return []*string{new("latest_charge")} }

// created returns the range of what was made at or after from, and before until, in whole
// seconds; a zero time is no bound.
func created(from, until time.Time) *sdk.RangeQueryParams {
	if until.IsZero() {
		return since(from)
	}
	r := since(from)
	if r == nil {
		r = new(sdk.RangeQueryParams)
	}
	r.LesserThan = max(until.Unix(), 1)
	return r
}

// since returns the range of all that was made at or after t.
func since(t time.Time) *sdk.RangeQueryParams {
	if t.IsZero() {
		return nil
	}
	return &sdk.RangeQueryParams{GreaterThanOrEqual: max(t.Unix(), 1)}
}
