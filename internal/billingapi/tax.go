package billingapi

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	pricing "github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/tax"
)

// A taxForm is a subscription's tax. An absent field stays unchanged, but a new rate removes the note. Elsewhere, the
// field tax is the mode, so the object itself has no other name.
type taxForm struct {
	Rate *string      `json:"rate" field:"tax_rate"`
	Mode pricing.Mode `json:"mode" field:"tax" empty:"no"`
	Note *string      `json:"note" field:"tax_note"`
}

// change returns the requested change, or nil if the form is absent.
func (f *taxForm) change() *tax.Change {
	if f == nil {
		return nil
	}
	return &tax.Change{Rate: f.Rate, Mode: f.Mode, Note: f.Note}
}

// fill sets the tax of a new subscription: the form's, or else the rate of its account's country.
func (f *taxForm) fill(ctx context.Context, e *engine.Engine, n *billing.NewSubscription) error {
	now, err := settings.Read(ctx, e.Records)
	if err != nil {
		return err
	}
	if n.Taxes = now.Taxes(); f != nil {
		if n.Terms.Tax, err = f.change().New(pricing.Mode(now.TaxMode)); err != nil {
			return err
		}
	}
	return n.Check()
}
