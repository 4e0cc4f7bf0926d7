package stripefake

import (
	"fmt"
	"strings"
)

// customerParams are what creating and updating have in common.
const customerParams = "address balance description email invoice_prefix invoice_settings metadata name next_invoice_sequence phone preferred_locales shipping tax_exempt " + beyondCustomer

const beyondCustomer = "business_name individual_name cash_balance source tax"

func customerRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/customers", params: customerParams + " payment_method tax_id_data test_clock", do: (*call).createCustomer},
		{method: "GET", path: "/v1/customers", params: "email created test_clock" + listParams, do: (*call).listCustomers},
		{method: "GET", path: "/v1/customers/{customer}", do: (*call).retrieveCustomer},
		{method: "POST", path: "/v1/customers/{customer}", params: customerParams + " default_source", do: (*call).updateCustomer},
		{method: "DELETE", path: "/v1/customers/{customer}", do: (*call).deleteCustomer},
	}
}

// customer returns the customer that the parameter names, who is not deleted.
func (c *call) customer(id, param string) (object, error) {
	if o := c.space.get("customer", id); o != nil && !o.yes("deleted") {
		return o, nil
	}
	return nil, absent("customer", id, param)
}

// customerOfPath returns the customer in the path, who is not deleted.
func (c *call) customerOfPath() (object, error) {
	o, err := c.find("customer", c.path["customer"], "id")
	if err == nil && o.yes("deleted") {
		return nil, missing("customer", o.id(), "id")
	}
	return o, err
}

// defaultMethod returns the id of the payment method that the customer's invoices are paid
// with, or "".
func (c *call) defaultMethod(customer object) string {
	return customer.sub("invoice_settings").str("default_payment_method")
}

func (c *call) createCustomer() (object, error) {
	o := object{"address": nil, "balance": int64(0), "currency": nil, "customer_account": nil, "default_source": nil, "delinquent": false, "description": nil,
		"discount": nil, "email": nil, "invoice_prefix": fmt.Sprintf("FAKE%04X", c.numbered+1),
		"invoice_settings": object{"custom_fields": nil, "default_payment_method": nil, "footer": nil, "rendering_options": nil},
		"metadata":         object{}, "name": nil, "next_invoice_sequence": int64(1), "phone": nil, "preferred_locales": []any{}, "shipping": nil,
		"tax_exempt": "none", "test_clock": nil}
	if err := c.describeCustomer(o); err != nil {
		return nil, err
	}
	if id := c.form.str("test_clock"); id != "" {
		if c.space.get("test_helpers.test_clock", id) == nil {
			return nil, absent("test_clock", id, "test_clock")
		}
		o["test_clock"] = id
		o["created"] = c.clockNow(o)
	}
	var method object
	if id := c.form.str("payment_method"); id != "" {
		var err error
		if method, err = c.method(id, "payment_method"); err != nil {
			return nil, err
		}
		if err := attachable(method); err != nil {
			return nil, err
		}
	}
	wanted := c.form.sub("invoice_settings").str("default_payment_method")
	if wanted != "" && (method == nil || wanted != method.id() && wanted != c.form.str("payment_method")) {
		return nil, notTheirs(wanted, "invoice_settings[default_payment_method]")
	}
	o = c.create("customer", "cus", o)
	if wanted != "" {
		o.sub("invoice_settings")["default_payment_method"] = method.id()
	}
	c.emit("customer.created", o, nil)
	if method != nil {
		return o, c.attach(method, o)
	}
	return o, nil
}

func notTheirs(method, param string) error {
	return &apiError{status: 400, kind: "invalid_request_error", code: "resource_missing", param: param,
		message: "The customer does not have a payment method with the ID " + shown(method) + ". The payment method must be attached to the customer."}
}

// describeCustomer sets what a request says of a customer, but of payment methods.
func (c *call) describeCustomer(o object) error {
	if err := c.beyond(beyondCustomer + " default_source tax_id_data"); err != nil {
		return err
	}
	if err := c.metadata(o); err != nil {
		return err
	}
	for _, name := range []string{"description", "email", "name", "phone"} {
		setText(o, c.form, name)
	}
	if email := o.str("email"); email != "" && (!strings.Contains(email, "@") || strings.ContainsAny(email, " \t\r\n") || len(email) > 512) {
		return invalid("email_invalid", "email", "Invalid email address: "+shown(email))
	}
	for _, name := range []string{"balance", "next_invoice_sequence"} {
		if n, err := c.num(name); err != nil {
			return err
		} else if c.form.has(name) {
			o[name] = n
		}
	}
	if c.form.str("invoice_prefix") != "" {
		o["invoice_prefix"] = c.form.str("invoice_prefix")
	}
	if exempt, err := c.choice("tax_exempt", "", "exempt", "none", "reverse"); err != nil {
		return err
	} else if exempt != "" {
		o["tax_exempt"] = exempt
	}
	if locales := c.form.list("preferred_locales"); locales != nil {
		o["preferred_locales"] = locales
	}
	if c.form.has("address") {
		o["address"] = nil
		if address := c.form.sub("address"); address != nil {
			o["address"] = addressOf(nil, address)
		}
	}
	if c.form.has("shipping") {
		o["shipping"] = nil
		if shipping := c.form.sub("shipping"); shipping != nil {
			o["shipping"] = object{"address": addressOf(nil, shipping.sub("address")), "name": shipping.str("name"), "phone": orNil(shipping.str("phone"))}
		}
	}
	settings := c.form.sub("invoice_settings")
	for name := range settings {
		if name != "default_payment_method" && name != "footer" {
			return c.beyondPart("invoice_settings[" + name + "]")
		}
	}
	if settings.has("footer") {
		o["invoice_settings"] = o.sub("invoice_settings").with("footer", orNil(settings.str("footer")))
	}
	return nil
}

func (c *call) updateCustomer() (object, error) {
	o, err := c.customerOfPath()
	if err != nil {
		return nil, err
	}
	after := o.clone()
	if err := c.describeCustomer(after); err != nil {
		return nil, err
	}
	if settings := c.form.sub("invoice_settings"); settings.has("default_payment_method") {
		id := settings.str("default_payment_method")
		if id != "" {
			if m := c.space.get("payment_method", id); m == nil || m.str("customer") != o.id() {
				return nil, notTheirs(id, "invoice_settings[default_payment_method]")
			}
		}
		after["invoice_settings"] = after.sub("invoice_settings").with("default_payment_method", orNil(id))
	}
	c.change("customer.updated", o, after)
	return o, nil
}

// retrieveCustomer answers with the stub of one who is deleted.
func (c *call) retrieveCustomer() (object, error) {
	return c.find("customer", c.path["customer"], "id")
}

func (c *call) deleteCustomer() (object, error) {
	o, err := c.customerOfPath()
	if err != nil {
		return nil, err
	}
	c.follow(customerLeaves, o)
	for _, m := range c.space.all("payment_method") {
		if m.str("customer") == o.id() {
			c.detach(m)
		}
	}
	c.emit("customer.deleted", o, nil)
	stub := object{"id": o.id(), "object": "customer", "deleted": true}
	c.space.put("customer", stub)
	return stub, nil
}

func (c *call) listCustomers() (object, error) {
	email, clock := c.form.str("email"), c.form.str("test_clock")
	return c.list("customer", func(o object) bool {
		return (email == "" || o.str("email") == email) && (clock == "" || o.str("test_clock") == clock)
	})
}
