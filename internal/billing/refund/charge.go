package refund

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
)

// chargeOf finds the charge of the order's period, as the processor shows it. Its reference is
// the order's, the receipt's, or the subscription's last one.
func (s *Service) chargeOf(ctx context.Context, sub *billing.Subscription, o Order) (billing.Intent, error) {
	if o.Period >= sub.Period {
		return billing.Intent{}, fmt.Errorf("subscription %s: period %d is not paid: %w", sub.Name, o.Period,
			billing.ErrState)
	}
	ref, err := s.receiptRef(ctx, sub, o)
	if err != nil {
		return billing.Intent{}, err
	}
	ref = cmp.Or(o.Charge, ref)
	missing := fmt.Errorf("subscription %s: period %d has no receipt of a charge: "+
		"it came with the data, did not end paid, or its receipt has expired; "+
		"in that case name the charge, as the processor shows it, with --charge: %w", sub.Name, o.Period, billing.ErrState)
	guessed := ref == ""
	if guessed {
		ref = sub.LastCharge
	}
	if ref == "" {
		return billing.Intent{}, missing
	}
	in, err := billing.Ask(ctx, func() (billing.Intent, error) { return s.proc.Lookup(ctx, ref) })
	switch {
	case guessed && (errors.Is(err, billing.ErrNoIntent) || err == nil && in.Tag.Period != o.Period):
		return billing.Intent{}, missing
	case err != nil:
		return billing.Intent{}, fmt.Errorf("subscription %s: charge %s cannot be looked up: %w", sub.Name, ref, err)
	}
	return in, s.checkCharge(sub, o, ref, in)
}

// receiptRef returns the reference of the charge by the period's receipt, "" if there is none.
func (s *Service) receiptRef(ctx context.Context, sub *billing.Subscription, o Order) (ref string, err error) {
	for r, err := range s.GetReceiptsByAccount(ctx, sub.Account) {
		switch {
		case err != nil:
			return "", err
		case r.ID != sub.ID || r.Period != o.Period || r.Kind == billing.Imported: // an imported one may lack its period
		case r.Kind == billing.External:
			return "", fmt.Errorf("subscription %s: period %d was paid outside%s: give it back where it was paid: %w",
				sub.Name, o.Period, after(", ", r.Charge), billing.ErrState)
		default:
			ref = cmp.Or(ref, r.Charge)
		}
	}
	return ref, nil
}

// checkCharge returns an error unless the intent is of the order's period and has succeeded.
func (s *Service) checkCharge(sub *billing.Subscription, o Order, ref string, in billing.Intent) error {
	of := in.Tag
	ours := of.Installation == "" || of.Installation == s.Opened.Installation
	switch {
	case !ours || of.Account != sub.Account || of.Subscription != sub.ID || of.Period != o.Period:
		return billing.Invalid("charge", fmt.Sprintf("%s is not of period %d of subscription %s", ref, o.Period, sub.Name))
	case in.State != billing.Succeeded:
		return fmt.Errorf("subscription %s: charge %s is %s at the processor, and nothing can go back: %w", sub.Name, ref,
			in.State, billing.ErrState)
	}
	return nil
}
