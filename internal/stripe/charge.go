package stripe

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
)

// Open implements processor.Charger. All parameters come from the request, and none from settings
// or the clock, so a key always has the same parameters.
//
// Stripe replays a 5xx under the same key for a day. Open therefore repeats the request under a
// second and a third key, because an intent that is never confirmed moves no money.
func (p *Processor) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	params, err := openParams(r)
	if err != nil {
		return processor.Intent{}, err
	}
	var pi *sdk.PaymentIntent
	for n := 1; n <= 3; n++ {
		key := r.Key
		if n > 1 {
			key += "_" + strconv.Itoa(n)
		}
		params.IdempotencyKey = &key
		pi, err = p.client.V1PaymentIntents.Create(ctx, params)
		if f, lost := api.Is(err, api.Unknown); !lost || f.Answer.Status < http.StatusInternalServerError ||
			ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return processor.Intent{}, err
	}
	in, err := p.intent(r.Payer.At, pi)
	if err == nil && in.Amount != r.Amount {
		return processor.Intent{}, fmt.Errorf("%w: requested %s, but Stripe created %s for %s", processor.ErrInvalid, r.Amount,
			in.Ref, in.Amount)
	}
	return in, err
}

func openParams(r processor.OpenRequest) (*sdk.PaymentIntentCreateParams, error) {
	if r.Key == "" {
		return nil, api.Unsent("the charge has no idempotency key")
	}
	if err := api.CheckAt(r.Payer.At); err != nil {
		return nil, err
	}
	units, err := api.ChargeUnits(r.Amount)
	if err != nil {
		return nil, err
	}
	meta, err := metadataOf(r.Tag, metaPrice, r.Price)
	if err != nil {
		return nil, err
	}
	params := &sdk.PaymentIntentCreateParams{
		Params: api.Params(r.Payer.At, ""), Amount: &units, Currency: new(strings.ToLower(r.Amount.Currency().Code())),
		// The payment method comes with each confirm. One that is gone is then a decline of that
		// attempt, of which the customer hears, and no refusal of the intent.
		Confirm: new(false), Metadata: meta,
		Description: new(fmt.Sprintf("%s, period %d", cmp.Or(r.Product, r.Tag.SKU, "subscription"), r.Tag.Period)),
		// Any saved method may pay that works without the customer. A method that redirects does
		// not, and would make the return address, a setting, a parameter of every confirm.
		AutomaticPaymentMethods: &sdk.PaymentIntentCreateAutomaticPaymentMethodsParams{Enabled: new(true),
			AllowRedirects: new("never")},
	}
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

// Lookup implements processor.Charger.
func (p *Processor) Lookup(ctx context.Context, text string) (processor.Intent, error) {
	at, err := parseRef(text)
	if err != nil {
		return processor.Intent{}, err
	}
	pi, err := p.retrieve(ctx, at)
	if err != nil {
		return processor.Intent{}, err
	}
	return p.intent(at.at, pi)
}

func (p *Processor) retrieve(ctx context.Context, at ref) (*sdk.PaymentIntent, error) {
	params := &sdk.PaymentIntentRetrieveParams{Params: api.Params(at.at, ""), Expand: expandCharge()}
	pi, err := p.client.V1PaymentIntents.Retrieve(ctx, at.id, params)
	if err != nil {
		return nil, noIntent(at, err)
	}
	if pi.ID != at.id {
		return nil, api.Unusable("payment intent", "requested %s, but Stripe returned %q", at, pi.ID)
	}
	return pi, nil
}

// Cancel implements processor.Charger. It sends no idempotency key, because a second cancellation
// changes nothing, and a key would replay an earlier refusal.
func (p *Processor) Cancel(ctx context.Context, text string) (processor.Intent, error) {
	at, err := parseRef(text)
	if err != nil {
		return processor.Intent{}, err
	}
	params := &sdk.PaymentIntentCancelParams{Params: api.Params(at.at, ""), CancellationReason: new("abandoned"),
		Expand: expandCharge()}
	pi, err := p.client.V1PaymentIntents.Cancel(ctx, at.id, params)
	if _, ok := api.Is(err, api.Moved); ok {
		return p.Lookup(ctx, text)
	}
	if err != nil {
		return processor.Intent{}, noIntent(at, err)
	}
	return p.sameIntent(at, pi)
}

// sameIntent reads the intent of the request.
func (p *Processor) sameIntent(at ref, pi *sdk.PaymentIntent) (processor.Intent, error) {
	if pi.ID != at.id {
		return processor.Intent{}, api.Unusable("payment intent", "requested %s, but Stripe returned %q", at, pi.ID)
	}
	return p.intent(at.at, pi)
}

// List implements processor.Charger. Stripe lists intents by creation time, so the list does not
// contain an intent that was created before r.Since and has succeeded since. r.Since and r.Until
// are rounded down to seconds. If one list ends where another begins, each intent is in exactly one
// of them.
func (p *Processor) List(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Intent, error] {
	rows := p.rows(ctx, "/v1/payment_intents", r, "expand[]", "data.latest_charge")
	return list(rows, func(pi *sdk.PaymentIntent) (processor.Intent, error) { return p.intent(r.At, pi) })
}

// noIntent returns ErrNoIntent for an error about the intent itself, which the path named.
func noIntent(at ref, err error) error {
	if f, ok := api.Is(err, api.Gone); ok {
		return fmt.Errorf("%w: %s: %s", processor.ErrNoIntent, at, f.Text)
	}
	return err
}

func expandCharge() []*string { return []*string{new("latest_charge")} }
