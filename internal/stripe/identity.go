package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v86"
)

// Identity implements billing.Identified: "stripe acct_123 test". It asks Stripe whose the
// key is, and takes the mode from the key.
func (p *Processor) Identity(ctx context.Context) (string, error) {
	id, err := p.accountID(ctx, "")
	if err != nil {
		return "", err
	}
	return "stripe " + id + " " + mode(p.live), nil
}

// accountID asks which account answers there; at is a connected one, or "".
func (p *Processor) accountID(ctx context.Context, at string) (string, error) {
	params := &sdk.AccountRetrieveParams{}
	params.StripeAccount = account(at)
	a, err := p.client.V1Accounts.Retrieve(ctx, params)
	if err != nil {
		return "", err
	}
	return idOf(a)
}

func idOf(a *sdk.Account) (string, error) {
	if !isID(a.ID, "acct_") {
		return "", strange("an account", "the answer is a %q with the id %q", a.Object, a.ID)
	}
	return a.ID, nil
}
