package stripe

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/stripe/api"
)

// MakeCustomer implements processor.Wallet.
func (p *Processor) MakeCustomer(ctx context.Context, r processor.CustomerRequest) (string, error) {
	if err := api.CheckAt(r.At); err != nil {
		return "", err
	}
	meta, err := metadata(metaInstallation, r.Installation, api.MetaAccount, r.Account)
	if err != nil {
		return "", err
	}
	params := &sdk.CustomerCreateParams{Params: api.Params(r.At, r.Key), Metadata: meta}
	if r.Email != "" {
		params.Email = &r.Email
	}
	c, err := p.client.V1Customers.Create(ctx, params)
	if err != nil {
		return "", err
	}
	if !api.IsID(c.ID, "cus_") {
		return "", api.Unusable("customer", "Stripe returned a %q with ID %q", c.Object, c.ID)
	}
	return c.ID, p.api.CheckMode(c.ID, c.Livemode)
}

// Attach implements processor.Wallet. The default method is the default for the customer's invoices
// at Stripe, or else the newest card. At Stripe, Attach only sets the method's customer.
func (p *Processor) Attach(ctx context.Context, payer processor.Payer, method string) (processor.Card, error) {
	if err := cmp.Or(api.CheckAt(payer.At), api.CheckID("customer", payer.Customer, "cus_")); err != nil {
		return processor.Card{}, err
	}
	params := api.Params(payer.At, "")
	c, err := p.client.V1Customers.Retrieve(ctx, payer.Customer, &sdk.CustomerRetrieveParams{Params: params})
	switch {
	case err != nil:
		return processor.Card{}, err
	case c.ID != payer.Customer:
		return processor.Card{}, api.Unusable("customer", "requested %s, but Stripe returned %q", payer.Customer, c.ID)
	case c.Deleted:
		return processor.Card{}, fmt.Errorf("%w: customer %s was deleted at Stripe", processor.ErrInvalid, c.ID)
	}
	if err := p.api.CheckMode(c.ID, c.Livemode); err != nil {
		return processor.Card{}, err
	}
	if method == "" {
		if c.InvoiceSettings == nil || c.InvoiceSettings.DefaultPaymentMethod == nil {
			return p.newest(ctx, payer)
		}
		method = c.InvoiceSettings.DefaultPaymentMethod.ID
	}
	pm, err := p.method(ctx, payer.At, method)
	if err != nil {
		return processor.Card{}, err
	}
	if pm.Customer == nil {
		attach := &sdk.PaymentMethodAttachParams{Params: api.Params(payer.At, ""), Customer: &payer.Customer}
		if pm, err = p.client.V1PaymentMethods.Attach(ctx, method, attach); err != nil {
			return processor.Card{}, err
		}
	}
	if pm.Customer == nil || pm.Customer.ID != payer.Customer {
		return processor.Card{}, fmt.Errorf("%w: payment method %s does not belong to customer %s", processor.ErrInvalid,
			api.Clean(method), payer.Customer)
	}
	return p.card(pm)
}

func (p *Processor) newest(ctx context.Context, payer processor.Payer) (processor.Card, error) {
	var newest *sdk.PaymentMethod
	request := processor.ListRequest{At: payer.At, Customer: payer.Customer}
	for pm, err := range list(p.rows(ctx, "/v1/payment_methods", request, "type", "card"), whole[sdk.PaymentMethod]) {
		if err != nil {
			return processor.Card{}, err
		}
		if newest == nil || pm.Created > newest.Created {
			newest = pm
		}
	}
	if newest == nil {
		return processor.Card{}, fmt.Errorf("%w: customer %s has no default payment method and no card at Stripe",
			processor.ErrInvalid, payer.Customer)
	}
	return p.card(newest)
}

// Card implements processor.Wallet.
func (p *Processor) Card(ctx context.Context, at, method string) (processor.Card, error) {
	if err := api.CheckAt(at); err != nil {
		return processor.Card{}, err
	}
	pm, err := p.method(ctx, at, method)
	if err != nil {
		return processor.Card{}, err
	}
	return p.card(pm)
}

func (p *Processor) method(ctx context.Context, at, method string) (*sdk.PaymentMethod, error) {
	if !api.IsMethod(method) {
		return nil, api.Unsent("the payment method must be pm_… (got %s)", api.Quote(secret.MaskMethod(method)))
	}
	return p.client.V1PaymentMethods.Retrieve(ctx, method, &sdk.PaymentMethodRetrieveParams{Params: api.Params(at, "")})
}

// card returns the facts about a payment method that may be shown.
func (p *Processor) card(pm *sdk.PaymentMethod) (processor.Card, error) {
	if !api.IsMethod(pm.ID) || pm.Object != "payment_method" {
		return processor.Card{}, api.Unusable("payment method", "Stripe returned a %q with ID %q", pm.Object, pm.ID)
	}
	if err := p.api.CheckMode(pm.ID, pm.Livemode); err != nil {
		return processor.Card{}, err
	}
	c := processor.Card{Method: pm.ID, Brand: string(pm.Type), Made: api.Instant(pm.Created)}
	switch {
	case pm.Card != nil:
		c.Brand, c.Last4 = cmp.Or(string(pm.Card.Brand), c.Brand), pm.Card.Last4
		if m := pm.Card.ExpMonth; m >= 1 && m <= 12 && pm.Card.ExpYear > 0 {
			// valid to the end of its month
			c.Expires = time.Date(int(pm.Card.ExpYear), time.Month(m)+1, 1, 0, 0, 0, 0, time.UTC)
		}
	case pm.SEPADebit != nil:
		c.Last4 = pm.SEPADebit.Last4
	case pm.USBankAccount != nil:
		c.Last4 = pm.USBankAccount.Last4
	case pm.BACSDebit != nil:
		c.Last4 = pm.BACSDebit.Last4
	}
	return c, nil
}

// CardLink implements processor.Wallet with a Checkout Session in setup mode.
func (p *Processor) CardLink(ctx context.Context, r processor.LinkRequest) (processor.CardLink, error) {
	if p.returnURL == "" {
		return processor.CardLink{}, api.Unsent("the card page needs an address to which the customer returns; set " +
			"return_url, as in stripe:?return_url=https://example.com/thanks")
	}
	if err := cmp.Or(api.CheckAt(r.Payer.At), api.CheckID("customer", r.Payer.Customer, "cus_")); err != nil {
		return processor.CardLink{}, err
	}
	meta, err := metadata(metaInstallation, r.Installation, api.MetaAccount, r.Account, api.MetaSubscription,
		r.Subscription)
	if err != nil {
		return processor.CardLink{}, err
	}
	key := "dd_" + digest(r.Key, "link", p.returnURL, r.Payer.Customer, r.Currency) // all but r.Key may change between repeats
	params := &sdk.CheckoutSessionCreateParams{Params: api.Params(r.Payer.At, key),
		Mode: new(string(sdk.CheckoutSessionModeSetup)), Customer: &r.Payer.Customer,
		Currency: new(strings.ToLower(r.Currency)), SuccessURL: &p.returnURL, Metadata: meta,
		SetupIntentData: &sdk.CheckoutSessionCreateSetupIntentDataParams{Metadata: meta}}
	s, err := p.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return processor.CardLink{}, err
	}
	if api.CheckURL(s.URL) != nil || s.ExpiresAt <= 0 {
		return processor.CardLink{}, api.Unusable("card page", "Stripe returned a page without an address or an expiry time")
	}
	return processor.CardLink{URL: s.URL, Expires: api.Instant(s.ExpiresAt)}, p.api.CheckMode("the card page", s.Livemode)
}

// Setups implements processor.Wallet. r.Since and r.Until are rounded down to seconds. Setups omits
// and logs a setup without its payment method.
func (p *Processor) Setups(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Setup, error] {
	rows := p.rows(ctx, "/v1/setup_intents", r, "expand[]", "data.payment_method")
	return list(rows, func(si *sdk.SetupIntent) (processor.Setup, error) {
		switch {
		case si.Status != sdk.SetupIntentStatusSucceeded || si.Metadata[metaInstallation] == "":
			return processor.Setup{}, sequence.ErrSkip
		case si.PaymentMethod == nil || si.PaymentMethod.Object == "":
			p.api.Log.Warn("skipped a customer's new card, because Stripe does not show its payment method", "setup", si.ID,
				"at", r.At)
			return processor.Setup{}, sequence.ErrSkip
		}
		return p.setup(r.At, si)
	})
}

func (p *Processor) setup(at string, si *sdk.SetupIntent) (processor.Setup, error) {
	if !api.IsID(si.ID, "seti_") {
		return processor.Setup{}, api.Unusable("setup intent", "Stripe returned a %q with ID %q", si.Object, si.ID)
	}
	if err := p.api.CheckMode(si.ID, si.Livemode); err != nil {
		return processor.Setup{}, err
	}
	card, err := p.card(si.PaymentMethod)
	if err != nil {
		return processor.Setup{}, err
	}
	s := processor.Setup{ID: si.ID, At: at, Installation: si.Metadata[metaInstallation],
		Account: si.Metadata[api.MetaAccount], Subscription: si.Metadata[api.MetaSubscription], Card: card}
	if si.Customer != nil {
		s.Customer = si.Customer.ID
	}
	return s, nil
}
