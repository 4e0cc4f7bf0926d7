package payment

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func customerRoutes() []api.Route {
	const params = "address =balance:int =description =email invoice_prefix invoice_settings metadata =name " +
		"=next_invoice_sequence:int =phone preferred_locales shipping tax_exempt:|exempt|none|reverse ~business_name " +
		"~individual_name ~cash_balance ~source ~tax "
	return []api.Route{
		on("POST", "/v1/customers", params+"payment_method ~tax_id_data test_clock", Call.createCustomer),
		api.Lists("/v1/customers", "customer", "email created test_clock", nil),
		on("GET", "/v1/customers/{customer}", "", find("customer", "id")), // a deleted one as its stub
		on("POST", "/v1/customers/{customer}", params+"~default_source",
			api.Update("customer.updated", Call.customerOfPath, Call.updateCustomer)),
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
		"invoice_settings":      object{}.Null("custom_fields default_payment_method footer rendering_options"),
		"next_invoice_sequence": int64(1), "preferred_locales": []any{}, "tax_exempt": "none",
	}.Null("address currency customer_account default_source description discount email name phone shipping test_clock")
	if err := c.describeCustomer(o); err != nil {
		return nil, err
	}
	if id := c.Form.Str("test_clock"); id != "" {
		if c.Space.Get(api.ClockKind, id) == nil {
			return nil, shape.Absent("test_clock", id, "test_clock")
		}
		o["test_clock"] = id
		o["created"] = c.ClockNow(o)
	}
	var method object
	given := c.Form.Str("payment_method")
	if given != "" {
		var err error
		method, err = c.method(given, "payment_method")
		if err := cmp.Or(err, attachable(method)); err != nil {
			return nil, err
		}
	}
	wanted := c.Form.Sub("invoice_settings").Str("default_payment_method")
	if wanted != "" && (method == nil || wanted != method.ID() && wanted != given) {
		return nil, notTheirs(wanted)
	}
	if wanted != "" {
		o.Sub("invoice_settings")["default_payment_method"] = method.ID()
	}
	o = c.Make("customer", "cus", o)
	if method != nil {
		return o, c.attach(method, o)
	}
	return o, nil
}

func notTheirs(method string) error {
	return shape.Invalid("resource_missing", "invoice_settings[default_payment_method]", "The customer does not have a "+
		"payment method with the ID "+shape.Shown(method)+". The payment method must be attached to the customer.")
}

// describeCustomer sets the members that the parameters give, except payment methods.
func (c Call) describeCustomer(o object) error {
	if err := c.Describe(o); err != nil {
		return err
	}
	if email := o.Str("email"); email != "" && (!strings.Contains(email, "@") || strings.ContainsAny(email, " \t\r\n") ||
		len(email) > 512) {
		return shape.Invalid("email_invalid", "email", "Invalid email address: "+shape.Shown(email))
	}
	for _, name := range []string{"invoice_prefix", "tax_exempt"} {
		if text := c.Form.Str(name); text != "" {
			o[name] = text
		}
	}
	if locales := c.Form.List("preferred_locales"); locales != nil {
		o["preferred_locales"] = locales
	}
	if c.Form.Has("address") {
		o["address"] = nil
		if address := c.Form.Sub("address"); address.Given() {
			o["address"] = addressOf(nil, address)
		}
	}
	if c.Form.Has("shipping") {
		o["shipping"] = nil
		if shipping := c.Form.Sub("shipping"); shipping.Given() {
			o["shipping"] = object{"address": addressOf(nil, shipping.Sub("address")), "name": shipping.Str("name"),
				"phone": shipping.OrNil("phone")}
		}
	}
	settings := c.Form.Sub("invoice_settings")
	if name := settings.Other("default_payment_method footer"); name != "" {
		return c.BeyondPart(name)
	}
	settings.SetTexts(o.Sub("invoice_settings"), "footer")
	return nil
}

func (c Call) updateCustomer(o object) error {
	if err := c.describeCustomer(o); err != nil {
		return err
	}
	settings := c.Form.Sub("invoice_settings")
	if id := settings.Str("default_payment_method"); id != "" {
		if m := c.Space.Get("payment_method", id); m == nil || m.Str("customer") != o.ID() {
			return notTheirs(id)
		}
	}
	settings.SetTexts(o.Sub("invoice_settings"), "default_payment_method")
	return nil
}

func (c Call) deleteCustomer(o object) (object, error) {
	c.Follow(CustomerLeaves, o)
	for _, m := range c.Space.All("payment_method") {
		if m.Str("customer") == o.ID() {
			c.detach(m)
		}
	}
	c.Emit("customer.deleted", o, nil)
	c.Space.Put("customer", o.Deleted())
	return o.Deleted(), nil
}
