package reversal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// A Standing tells who has the money of a charge.
type Standing int

// The standings of a charge.
const (
	Kept       Standing = iota // the merchant has the money, or a part of it
	Reversed                   // the customer has the whole amount back
	Reinstated                 // the customer had the whole amount back, and the merchant has some of it again
)

// Of returns the standing of the charge. A record in another currency returns nothing of it,
// because Duesday does not convert amounts.
func Of(list []*billing.ReversalRecord, charge string, amount money.Amount) Standing {
	gone, ever := int64(0), int64(0)
	for _, r := range list {
		if r.Charge != charge || r.Amount.Currency() != amount.Currency() || r.Ref == "" {
			continue
		}
		switch r.State {
		case processor.ReversalSucceeded:
			gone, ever = gone+r.Amount.Minor(), ever+r.Amount.Minor()
		case processor.ReversalFailed:
			ever += r.Amount.Minor()
		}
	}
	switch {
	case !amount.IsPositive():
		return Kept
	case gone >= amount.Minor():
		return Reversed
	case ever >= amount.Minor():
		return Reinstated
	}
	return Kept
}

// A Debt is the charge of a past period, another payment of which can be recorded if it was
// reversed.
type Debt struct {
	Charge  string
	Receipt *billing.Receipt // of the charge; nil if it has expired
	About   string           // the reversals of the charge; "" if there are none
}

// DebtOf returns the debt of a subscription's period, or nil if the period has no charge that any
// record names, or has another payment already.
func DebtOf(receipts []*billing.Receipt, list []*billing.ReversalRecord, id string, period int) *Debt {
	var d Debt
	for _, r := range receipts {
		if r.Kind != billing.Charged {
			return nil
		}
		d.Charge, d.Receipt = r.Charge, r
	}
	var about []string
	for _, r := range slices.Backward(list) {
		if r.ID != id || r.Period != period || d.Charge != "" && r.Charge != d.Charge {
			continue
		}
		d.Charge = r.Charge
		about = append(about, fmt.Sprintf("%s %s of %s is %s", r.Kind, r.ReversalID, r.Amount, r.State))
	}
	if d.About = strings.Join(about, "; "); d.Charge == "" {
		return nil
	}
	return &d
}
