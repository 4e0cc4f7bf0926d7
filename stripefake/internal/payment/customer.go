package payment

import (
	"fmt"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// customerParams are the parameters of both creating and updating.
const customerParams = "address balance:int description email invoice_prefix invoice_settings metadata name " +
	"next_invoice_sequence:int phone preferred_locales shipping tax_exempt:|exempt|none|reverse " + beyondCustomer

const beyondCustomer = "business_name individual_name cash_balance source tax"

func customerRoutes() []api.Route {
	return []api.Route{
		on("POST", "/v1/customers", customerParams+" payment_method tax_id_data test_clock", Call.createCustomer),
		api.Lists("/v1/customers", "customer", "email created test_clock", nil),
		on("GET", "/v1/customers/{customer}", "", Call.retrieveCustomer),
		on("POST", "/v1/customers/{customer}", customerParams+" default_source",
			api.With(Call.customerOfPath, Call.updateCustomer)),
		on("DELETE", "/v1/customers/{customer}", "", api.With(Call.customerOfPath, Call.deleteCustomer)),
	}
}

// Customer returns the customer of the parameter, unless it is deleted.
func (c Call) Customer(id, param string) (object, error) {
	if o := c.Space.Get("customer", id); o != nil && !o.Yes("deleted") {
		return o, nil
	}
	return nil, shape.Absent("customer", id, param)
}

// customerOfPath returns the customer of the path, unless it is deleted.
func (c Call) customerOfPath() (object, error) {
	o, err := c.Find("customer", c.Path["customer"], "id")
	if err == nil && o.Yes("deleted") {
		return nil, shape.Missing("customer", o.ID(), "id")
	}
	return o, err
}

// DefaultMethod returns the id of the customer's payment method for invoices, or "".
func (c Call) DefaultMethod(customer object) string {
	return customer.Sub("invoice_settings").Str("default_payment_method")
}

func (c Call) createCustomer() (object, error) {
	o := object{
		"balance": int64(0), "delinquent": false, "invoice_prefix": fmt.Sprintf("FAKE%04X", c.Numbered+1),
		"invoice_settings": object{"custom_fields": nil, "default_payment_method": nil, "footer": nil,
			"rendering_options": nil},
		"metadata": object{}, "next_invoice_sequence": int64(1), "preferred_locales": []any{},
		"tax_exempt": "none",
	}.Null("address currency customer_account default_source description discount email name phone shipping " +
		"test_clock")
	if err := c.describeCustomer(o); err != nil {
		return nil, err
	}
	if id := c.Form.Str("test_clock"); id != "" {
		if c.Space.Get("test_helpers.test_clock", id) == nil {
			return nil, shape.Absent("test_clock", id, "test_clock")
		}
		o["test_clock"] = id
		o["created"] = c.ClockNow(o)
	}
	var method object
	if id := c.Form.Str("payment_method"); id != "" {
		var err error
		if method, err = c.method(id, "payment_method"); err != nil {
			return nil, err
		}
		if err := attachable(method); err != nil {
			return nil, err
		}
	}
	wanted := c.Form.Sub("invoice_settings").Str("default_payment_method")
	if wanted != "" && (method == nil || wanted != method.ID() && wanted != c.Form.Str("payment_method")) {
		return nil, notTheirs(wanted, "invoice_settings[default_payment_method]")
	}
	o = c.Create("customer", "cus", o)
	if wanted != "" {
		o.Sub("invoice_settings")["default_payment_method"] = method.ID()
	}
	c.Emit("customer.created", o, nil)
	if method != nil {
		return o, c.attach(method, o)
	}
	return o, nil
}

func notTheirs(method, param string) error {
	return &shape.Error{Status: 400, Kind: "invalid_request_error", Code: "resource_missing", Param: param,
		Message: "The customer does not have a payment method with the ID " + shape.Shown(method) +
			". The payment method must be attached to the customer."}
}

// describeCustomer sets the members that the parameters give, except payment methods.
func (c Call) describeCustomer(o object) error {
	if err := c.Beyond(beyondCustomer + " default_source tax_id_data"); err != nil {
		return err
	}
	if err := c.Metadata(o); err != nil {
		return err
	}
	for _, name := range []string{"description", "email", "name", "phone"} {
		shape.SetText(o, c.Form, name)
	}
	if email := o.Str("email"); email != "" && (!strings.Contains(email, "@") || strings.ContainsAny(email, " \t\r\n") ||
		len(email) > 512) {
		return shape.Invalid("email_invalid", "email", "Invalid email address: "+shape.Shown(email))
	}
	for _, name := range []string{"balance", "next_invoice_sequence"} {
		if c.Form.Has(name) {
			o[name] = c.Num(name)
		}
	}
	if c.Form.Str("invoice_prefix") != "" {
		o["invoice_prefix"] = c.Form.Str("invoice_prefix")
	}
	if exempt := c.Form.Str("tax_exempt"); exempt != "" {
		o["tax_exempt"] = exempt
	}
	if locales := c.Form.List("preferred_locales"); locales != nil {
		o["preferred_locales"] = locales
	}
	if c.Form.Has("address") {
		o["address"] = nil
		if address := c.Form.Sub("address"); address != nil {
			o["address"] = addressOf(nil, address)
		}
	}
	if c.Form.Has("shipping") {
		o["shipping"] = nil
		if shipping := c.Form.Sub("shipping"); shipping != nil {
			o["shipping"] = object{"address": addressOf(nil, shipping.Sub("address")), "name": shipping.Str("name"),
				"phone": shape.OrNil(shipping.Str("phone"))}
		}
	}
	settings := c.Form.Sub("invoice_settings")
	for name := range settings {
		if name != "default_payment_method" && name != "footer" {
			return c.BeyondPart("invoice_settings[" + name + "]")
		}
	}
	if settings.Has("footer") {
		o["invoice_settings"] = o.Sub("invoice_settings").With("footer", shape.OrNil(settings.Str("footer")))
	}
	return nil
}

func (c Call) updateCustomer(o object) (object, error) {
	after := o.Clone()
	if err := c.describeCustomer(after); err != nil {
		return nil, err
	}
	if settings := c.Form.Sub("invoice_settings"); settings.Has("default_payment_method") {
		id := settings.Str("default_payment_method")
		if id != "" {
			if m := c.Space.Get("payment_method", id); m == nil || m.Str("customer") != o.ID() {
				return nil, notTheirs(id, "invoice_settings[default_payment_method]")
			}
		}
		after["invoice_settings"] = after.Sub("invoice_settings").With("default_payment_method", shape.OrNil(id))
	}
	c.Change("customer.updated", o, after)
	return o, nil
}

// retrieveCustomer answers with the stub of a deleted customer.
func (c Call) retrieveCustomer() (object, error) {
	return c.Find("customer", c.Path["customer"], "id")
}

func (c Call) deleteCustomer(o object) (object, error) {
	c.Follow(CustomerLeaves, o)
	for _, m := range c.Space.All("payment_method") {
		if m.Str("customer") == o.ID() {
			c.detach(m)
		}
	}
	c.Emit("customer.deleted", o, nil)
	stub := object{"id": o.ID(), "object": "customer", "deleted": true}
	c.Space.Put("customer", stub)
	return stub, nil
}
