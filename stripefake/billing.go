package stripefake

import (
	"reflect"
	"slices"
	"strings"
)

// billingRoutes are the routes of Stripe's billing: from prices to schedules and test clocks.
func billingRoutes() []route {
	return slices.Concat(productRoutes(), priceRoutes(), itemRoutes(), invoiceRoutes(), invoicePaymentRoutes(),
		subscriptionRoutes(), scheduleRoutes(), clockRoutes())
}

func on(method, path, params string, do func(*call) (object, error)) route {
	return route{method: method, path: path, params: params, do: do}
}

// changed emits an …updated event with the members that have changed, if there are any, and
// plans the object anew.
func (c *call) changed(typ string, before, o object) {
	c.plan(o)
	if previous := differences(before, o); isPublic(previous) {
		c.emit(typ, o, previous)
	}
}

// isPublic says whether anything that is shown has changed.
func isPublic(previous object) bool {
	for name := range previous {
		if !strings.HasPrefix(name, "_") {
			return true
		}
	}
	return false
}

// differences are the members of before that are others in o, as they were: of an object
// within, only those members of it that differ; of a list, all of it. Private ones are among
// them, as old versions show some of them in their way.
func differences(before, o object) object {
	previous := object{}
	for name, was := range before {
		is := o[name]
		if reflect.DeepEqual(was, is) {
			continue
		}
		a, aIs := was.(object)
		b, bIs := is.(object)
		if aIs && bIs && !isWhole(name) {
			if inner := differences(a, b); len(inner) > 0 {
				previous[name] = inner
			}
			continue
		}
		previous[name] = was
	}
	for name := range o {
		if _, was := before[name]; !was {
			previous[name] = nil
		}
	}
	return previous
}

// isWhole says which lists differ as a whole.
func isWhole(name string) bool { return name == "items" || name == "lines" }

// putBack takes the differences back, in place.
func putBack(o, previous object) {
	for name, was := range previous {
		inner, changed := was.(object)
		if now := o.sub(name); changed && now != nil && !isWhole(name) {
			putBack(now, inner)
			continue
		}
		o[name] = cloneValue(was)
	}
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

func idOrNil(id string) any {
	if id == "" {
		return nil
	}
	return id
}

// issuer is who makes an invoice out: the account itself.
func issuer() object { return object{"type": "self"} }
