package billing

import "github.com/duesday/duesday/stripefake/internal/shape"

// buyer returns the customer of the parameter.
func (c call) buyer() (object, error) {
	if err := c.Form.Require("customer"); err != nil {
		return nil, err
	}
	return c.Customer(c.Form.Str("customer"), "customer")
}

// customerOf returns the customer of an invoice, a subscription or a schedule.
func (c call) customerOf(o object) object { return c.Space.Get("customer", o.Str("customer")) }

// payer returns the payment method of the parameter, which must be the customer's; "": none.
func (c call) payer(p shape.Params, name string, customer object) (string, error) {
	id := p.Str(name)
	if id == "" {
		return "", nil
	}
	method, err := c.Find("payment_method", id, p.In(name))
	if err != nil {
		return "", err
	}
	if method.Str("customer") != customer.ID() {
		return "", p.Invalid("resource_missing", name, "The payment method "+id+" does not belong to the customer "+
			customer.ID()+". Please attach it to the customer first.")
	}
	return method.ID(), nil
}

// methodFor returns the payment method of an invoice: its own, its subscription's, or the
// customer's; "": none.
func (c call) methodFor(invoice object) string {
	if id := invoice.Str("default_payment_method"); id != "" {
		return id
	}
	if sub := c.subscriptionOf(invoice); sub != nil && sub.Str("default_payment_method") != "" {
		return sub.Str("default_payment_method")
	}
	if customer := c.customerOf(invoice); customer != nil {
		return c.DefaultMethod(customer)
	}
	return ""
}

// collection refuses a collection_method that the fake does not have: it sends no invoices.
func (c call) collection() error {
	if c.Form.Has("collection_method") && c.Form.Str("collection_method") != "charge_automatically" {
		return shape.Invalid("", "collection_method", "This fake knows the collection_method charge_automatically only.")
	}
	return nil
}

// issuer is the account itself.
func issuer() object { return object{"type": "self"} }
