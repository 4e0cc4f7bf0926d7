package stripe

import (
	"context"
	"iter"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// CheckConnected implements billing.Platform. It returns ErrInvalid if at is no id of an account,
// or is our own account, whose payments would be listed twice. It returns ErrAccountRefused if the
// account is not connected to us.
func (p *Processor) CheckConnected(ctx context.Context, at string) error {
	if err := api.CheckID("connected account", at, "acct_"); err != nil {
		return err
	}
	own, err := p.api.AccountID(ctx, "")
	if err != nil {
		return err
	}
	if at == own {
		return api.Unsent("%s is our own account at Stripe, and not connected to it: payments are taken there where no "+
			"account is named", at)
	}
	got, err := p.api.AccountID(ctx, at)
	if err == nil && got != at {
		return api.Unusable("an account", "%s was asked for, and %s answered", at, got)
	}
	return err
}

// Connected implements billing.Platform. It leaves disconnected accounts out.
func (p *Processor) Connected(ctx context.Context) iter.Seq2[string, error] {
	return list(p.rows(ctx, "/v1/accounts", billing.ListRequest{}), api.IDOf)
}

// Identity implements billing.Identified: "stripe acct_123 test". It asks Stripe for the account
// of the key, and takes the mode from the key.
func (p *Processor) Identity(ctx context.Context) (string, error) {
	id, live, err := p.api.Own(ctx)
	if err != nil {
		return "", err
	}
	return "stripe " + id + " " + api.Mode(live), nil
}
