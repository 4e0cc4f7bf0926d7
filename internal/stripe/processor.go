package stripe

import (
	"fmt"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// A Processor is Stripe as a billing.Processor, billing.Wallet, billing.Refunder, billing.Platform
// and billing.Identified. It is safe for concurrent use.
type Processor struct {
	api       *api.Client
	client    *sdk.Client // of api
	returnURL string
}

var (
	_ billing.Processor  = (*Processor)(nil)
	_ billing.Wallet     = (*Processor)(nil)
	_ billing.Refunder   = (*Processor)(nil)
	_ billing.Platform   = (*Processor)(nil)
	_ billing.Identified = (*Processor)(nil)
)

// New returns a Processor, and sends nothing yet. No error repeats the key.
func New(o Options) (*Processor, error) {
	c, err := api.New(o.API)
	if err != nil {
		return nil, err
	}
	if o.ReturnURL != "" {
		if err := api.CheckURL(o.ReturnURL); err != nil {
			return nil, fmt.Errorf("stripe: return_url: %w", err)
		}
	}
	return &Processor{api: c, client: c.SDK, returnURL: o.ReturnURL}, nil
}

// API returns the processor's Client, to share its budget.
func (p *Processor) API() *api.Client { return p.api }

// Close lets go of idle connections.
func (p *Processor) Close() error { return p.api.Close() }
