package stripe

import (
	"context"
)

// Identity implements billing.Identified: "stripe acct_123 test". It asks Stripe whose the
// key is, and takes the mode from the key.
func (p *Processor) Identity(ctx context.Context) (string, error) {
	id, err := p.api.AccountID(ctx, "")
	if err != nil {
		return "", err
	}
	return "stripe " + id + " " + p.api.Mode(), nil
}
