package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v86"
)

// Identity implements billing.Identified: "stripe acct_123 test". It asks Stripe whose the
// key is, and takes the mode from the key.
func (p *Processor) Identity(ctx context.Context) (string, error) {
	a, err := p.client.V1Accounts.Retrieve(ctx, &sdk.AccountRetrieveParams{})
	if err != nil {
		return "", err
	}
	if !isID(a.ID, "acct_") {
		return "", strange("the account", "the answer is a %q with the id %q", a.Object, a.ID)
	}
	return "stripe " + a.ID + " " + mode(p.live), nil
}
