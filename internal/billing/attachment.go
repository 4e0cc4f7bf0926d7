package billing

import "cmp"

// An Attachment has the customer, method, Stripe account and fee with which an account's
// subscriptions are charged. Zero fields stay as they are.
type Attachment struct {
	Customer string  // the processor's customer, cus_…
	Fallback *string // a second method, for a period whose method was declined for good; "": none from now on
	Method   string  // the payment method's token; with a Customer, "" is that customer's default

	// Connected is the connected account at the processor, acct_…; "" for our own. Another one
	// than before has no use for customer and method, which are removed.
	Connected *string
	Fee       *int // our share of a charge at the connected account, 0 to 10000 hundredths of a percent
}

// Check returns a FieldError for the first wrong field, or nil.
func (t *Attachment) Check() error {
	if t.Customer == "" && t.Method == "" && t.Connected == nil && t.Fee == nil && t.Fallback == nil {
		return Invalid("customer", "nothing to attach: give a customer, a payment method, a fallback, a connected "+
			"account or a fee")
	}
	connected, fallback := cmp.Or(t.Connected, new(string)), cmp.Or(t.Fallback, new(string))
	for _, f := range [...]struct{ name, text string }{{"customer", t.Customer}, {"payment_method", t.Method},
		{"fallback", *fallback}, {"connected", *connected}} {
		if f.text == "" {
			continue
		}
		if err := CheckID(f.name, f.text); err != nil {
			return err
		}
	}
	if t.Fee != nil && (*t.Fee < 0 || *t.Fee > 10_000) {
		return Invalid("fee", "want 0 to 100 %")
	}
	return nil
}

// Payer returns the payer with the changes of the attachment.
func (t *Attachment) Payer(p Payer) (Payer, error) {
	if t.Connected != nil && *t.Connected != p.At {
		p = Payer{At: *t.Connected}
	}
	if t.Customer != "" {
		p.Customer = t.Customer
	}
	if t.Fee != nil {
		p.Fee = *t.Fee
	}
	if p.Fee > 0 && p.At == "" {
		return p, Invalid("fee", "only a connected account leaves us a fee, and the account is charged at our own")
	}
	return p, nil
}
