package stripefake

import "slices"

// billingRoutes are the routes of Stripe's billing: from prices to schedules and test clocks.
func billingRoutes() []route {
	return slices.Concat(productRoutes(), priceRoutes(), itemRoutes(), invoiceRoutes(), invoicePaymentRoutes(),
		subscriptionRoutes(), scheduleRoutes(), clockRoutes())
}

func on(method, path, params string, do func(*call) (object, error)) route {
	return route{method: method, path: path, params: params, do: do}
}

// buyer returns the customer that a parameter names, who is there.
func (c *call) buyer() (object, error) {
	if err := c.require("customer"); err != nil {
		return nil, err
	}
	return c.customer(c.form.str("customer"), "customer")
}

// payer returns the payment method of the parameter, which has to be the customer's; "" if
// there is none.
func (c *call) payer(f form, name, param string, customer object) (string, error) {
	id := f.str(name)
	if id == "" {
		return "", nil
	}
	method, err := c.find("payment_method", id, param)
	if err != nil {
		return "", err
	}
	if method.str("customer") != customer.id() {
		return "", invalid("resource_missing", param, "The payment method "+id+" does not belong to the customer "+customer.id()+
			". Please attach it to the customer first.")
	}
	return method.id(), nil
}

// methodFor is the payment method that an invoice is paid with: its own, its subscription's,
// or the customer's; "" if there is none.
func (c *call) methodFor(invoice object) string {
	if id := invoice.str("default_payment_method"); id != "" {
		return id
	}
	if sub := c.subscriptionOf(invoice); sub != nil && sub.str("default_payment_method") != "" {
		return sub.str("default_payment_method")
	}
	if customer := c.space.get("customer", invoice.str("customer")); customer != nil {
		return c.defaultMethod(customer)
	}
	return ""
}

// collection checks the parameter collection_method: the fake charges, and sends no invoices.
func (c *call) collection() error {
	if c.form.has("collection_method") && c.form.str("collection_method") != "charge_automatically" {
		return invalid("", "collection_method", "This fake knows the collection_method charge_automatically only.")
	}
	return nil
}

// issuer is who makes an invoice out: the account itself.
func issuer() object { return object{"type": "self"} }
