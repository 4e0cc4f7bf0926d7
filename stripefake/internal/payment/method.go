package payment

import (
	"maps"
	"net/http"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func methodRoutes() []api.Route {
	const described = "=allow_redisplay:always|limited|unspecified billing_details metadata"
	return []api.Route{
		on("POST", "/v1/payment_methods", "~customer ~payment_method ~us_bank_account type! card "+described,
			Call.createMethod),
		on("GET", "/v1/payment_methods", "type customer allow_redisplay"+api.ListParams, Call.listMethods),
		on("GET", "/v1/payment_methods/{payment_method}", "", Call.methodOfPath),
		on("POST", "/v1/payment_methods/{payment_method}", "card card[exp_month]:int card[exp_year]:int "+described,
			api.Update("payment_method.updated", Call.methodOfPath, Call.updateMethod)),
		on("POST", "/v1/payment_methods/{payment_method}/attach", "customer!", Call.attachMethod),
		on("POST", "/v1/payment_methods/{payment_method}/detach", "", api.With(Call.methodOfPath, Call.detachMethod)),
		on("GET", "/v1/customers/{customer}/payment_methods", "type allow_redisplay"+api.ListParams, Call.listMethods),
		on("GET", "/v1/customers/{customer}/payment_methods/{payment_method}", "", Call.methodOfPath),
	}
}

const (
	usedUp = "The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment, " +
		"shared with a connected account without Customer attachment, or was detached from a Customer. It may not be " +
		"used again. To use a PaymentMethod multiple times, you must attach it to a Customer first."
	usedUpForAttach = "This PaymentMethod was previously used without being attached to a Customer or was detached " +
		"from a Customer, and may not be used again."
	rawNumber = "Sending credit card numbers directly to the Stripe API is generally unsafe. We suggest you " +
		"use test tokens that map to the test card you are using, see https://stripe.com/docs/testing."
)

// method returns the payment method of the parameter. A test id makes a new one.
func (c Call) method(id, param string) (object, error) {
	if m := c.Space.Get("payment_method", id); m != nil {
		return m, nil
	}
	if _, ok := CardOf(id); ok {
		return c.testMethod(id), nil
	}
	return nil, shape.Absent("PaymentMethod", id, param)
}

// methodOfPath is method for the one in the path.
func (c Call) methodOfPath() (object, error) {
	id := c.ID
	m, err := c.method(id, "payment_method")
	if err != nil || c.Path["customer"] != "" && m.Str("customer") != c.Path["customer"] {
		return nil, shape.Missing("PaymentMethod", id, "payment_method")
	}
	return m, nil
}

// usable is method for a charge or a setup of the customer; "": no customer.
func (c Call) usable(id, customer string) (object, error) {
	if m := c.Space.Get("payment_method", id); m != nil {
		switch of := m.Str("customer"); {
		case of != "" && customer == "":
			return nil, shape.Invalid("", "payment_method", "The payment method supplied ("+id+") belongs to a Customer. "+
				"Please include the Customer in the `customer` parameter of the request.")
		case of != "" && of != customer:
			return nil, shape.Invalid("", "payment_method", "The customer does not have a payment method with the ID "+id+
				". The payment method must be attached to the customer.")
		case m.Yes("_used"):
			return nil, shape.Invalid("", "payment_method", usedUp)
		}
	}
	return c.method(id, "payment_method")
}

func (c Call) createMethod() (object, error) {
	if typ := c.Form.Str("type"); typ != "card" {
		return nil, shape.Invalid("", "type", "stripefake can only create payment methods of type card, although Stripe "+
			"has others.")
	}
	card := c.Form.Sub("card")
	if card.Has("number") || card.Has("cvc") {
		return nil, shape.Refused(http.StatusPaymentRequired, "", "card[number]", rawNumber)
	}
	if err := card.Require("token"); err != nil {
		return nil, err
	}
	id, ok := tokenMethod(card.Str("token"))
	if !ok {
		return nil, shape.Absent("token", card.Str("token"), "card[token]")
	}
	changed := object{"billing_details": noBilling()}
	if err := c.describeMethod(changed); err != nil {
		return nil, err
	}
	m := c.testMethod(id)
	maps.Copy(m, changed)
	return m, nil
}

// describeMethod sets the members that the parameters give, except the card.
func (c Call) describeMethod(m object) error {
	given, details := c.Form.Sub("billing_details"), m.Sub("billing_details")
	given.SetTexts(details, "email name phone tax_id")
	if address := given.Sub("address"); address.Given() {
		details["address"] = addressOf(details.Sub("address"), address)
	}
	return c.Describe(m)
}

func addressOf(before object, given shape.Params) object {
	a := noAddress()
	maps.Copy(a, before)
	given.SetTexts(a, addressTexts)
	return a
}

func (c Call) updateMethod(m object) error {
	if m.Str("customer") == "" {
		return shape.Invalid("", "", "You must save this PaymentMethod to a customer before you can update it.")
	}
	if err := c.describeMethod(m); err != nil || !c.Form.Sub("card").Given() {
		return err
	}
	card := m.Sub("card")
	for _, name := range c.Form.Sub("card").Names() {
		if name != "exp_month" && name != "exp_year" {
			return shape.UnknownParam("card[" + name + "]")
		}
		card[name] = c.Num("card[" + name + "]")
	}
	year, month := card.Num("exp_year"), card.Num("exp_month")
	today := time.Unix(c.Now, 0).UTC()
	switch {
	case month < 1 || month > 12:
		return &shape.Error{Status: http.StatusPaymentRequired, Kind: "card_error", Code: "invalid_expiry_month",
			Param: "exp_month", Message: "Your card's expiration month is invalid."}
	case year < int64(today.Year()) || year > int64(today.Year()+50) || year == int64(today.Year()) &&
		month < int64(today.Month()):
		return &shape.Error{Status: http.StatusPaymentRequired, Kind: "card_error", Code: "invalid_expiry_year",
			Param: "exp_year", Message: "Your card's expiration year is invalid."}
	}
	return nil
}

func (c Call) attachMethod() (object, error) {
	customer, err := c.Customer(c.Form.Str("customer"), "customer")
	if err != nil {
		return nil, err
	}
	m, err := c.methodOfPath()
	if err != nil {
		return nil, err
	}
	return m, c.attach(m, customer)
}

func (c Call) attach(m, customer object) error {
	if m.Str("customer") == customer.ID() {
		return nil
	}
	if err := attachable(m); err != nil {
		return err
	}
	c.attached(m, customer.ID())
	return nil
}

// attachable refuses a payment method that no customer can get: used up, or refused by the bank.
func attachable(m object) error {
	switch acts := BehaviourOf(m); {
	case m.Str("customer") != "":
		return shape.Invalid("", "", "The payment method you provided has already been attached to a customer.")
	case m.Yes("_used"):
		return shape.Invalid("", "", usedUpForAttach)
	case acts.refuses:
		return reasonFor(acts.declines)
	}
	return nil
}

func (c Call) attached(m object, customer string) {
	m["customer"] = customer
	if checks := m.Sub("card").Sub("checks"); checks != nil {
		checks["cvc_check"] = "pass"
	}
	c.Emit("payment_method.attached", m, nil)
}

func (c Call) detachMethod(m object) (object, error) {
	if m.Str("customer") == "" {
		return nil, shape.Invalid("", "", "The payment method you provided is not attached to a customer so detachment "+
			"is impossible.")
	}
	c.detach(m)
	return m, nil
}

// detach takes the payment method from its customer, for good.
func (c Call) detach(m object) {
	of := m.Str("customer")
	if customer := c.Space.Get("customer", of); customer != nil && c.DefaultMethod(customer) == m.ID() {
		customer.Sub("invoice_settings")["default_payment_method"] = nil
	}
	m["customer"], m["_used"] = nil, true
	c.Emit("payment_method.detached", m, object{"customer": of})
}

func (c Call) listMethods() (object, error) {
	customer, err := c.Path["customer"], error(nil)
	if customer != "" {
		_, err = c.customerOfPath()
	} else if customer = c.Form.Str("customer"); customer != "" {
		_, err = c.Customer(customer, "customer")
	}
	if err != nil {
		return nil, err
	}
	return c.List("payment_method", func(m object) bool {
		return m.Str("customer") != "" && (customer == "" || m.Str("customer") == customer) &&
			c.Keeps(m, "type allow_redisplay")
	})
}
