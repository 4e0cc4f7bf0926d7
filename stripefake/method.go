package stripefake

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// paymentRoutes are the routes of customers and of what moves money.
func paymentRoutes() []route {
	return slices.Concat(customerRoutes(), methodRoutes(), intentRoutes(), setupRoutes(), checkoutRoutes(), chargeRoutes(), refundRoutes(), disputeRoutes())
}

func methodRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/payment_methods", params: "type card billing_details allow_redisplay metadata customer payment_method us_bank_account", do: (*call).createMethod},
		{method: "GET", path: "/v1/payment_methods", params: "type customer allow_redisplay" + listParams, do: (*call).listMethods},
		{method: "GET", path: "/v1/payment_methods/{payment_method}", do: (*call).retrieveMethod},
		{method: "POST", path: "/v1/payment_methods/{payment_method}", params: "card billing_details allow_redisplay metadata", do: (*call).updateMethod},
		{method: "POST", path: "/v1/payment_methods/{payment_method}/attach", params: "customer", do: (*call).attachMethod},
		{method: "POST", path: "/v1/payment_methods/{payment_method}/detach", do: (*call).detachMethod},
		{method: "GET", path: "/v1/customers/{customer}/payment_methods", params: "type allow_redisplay" + listParams, do: (*call).listMethods},
		{method: "GET", path: "/v1/customers/{customer}/payment_methods/{payment_method}", do: (*call).retrieveMethod},
	}
}

const (
	usedUp = "The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment, shared with a connected account without Customer attachment, " +
		"or was detached from a Customer. It may not be used again. To use a PaymentMethod multiple times, you must attach it to a Customer first."
	usedUpForAttach = "This PaymentMethod was previously used without being attached to a Customer or was detached from a Customer, and may not be used again."
	rawNumber       = "Sending credit card numbers directly to the Stripe API is generally unsafe. We suggest you use test tokens that map to the test card you are using, see https://stripe.com/docs/testing."
)

// method returns the payment method that the parameter names. The id of a test payment method
// makes a new one.
func (c *call) method(id, param string) (object, error) {
	if m := c.space.get("payment_method", id); m != nil {
		return m, nil
	}
	if _, ok := testCardOf(id); ok {
		return c.testMethod(id), nil
	}
	return nil, absent("PaymentMethod", id, param)
}

// methodOfPath is method for the one in the path.
func (c *call) methodOfPath() (object, error) {
	id := c.path["payment_method"]
	m, err := c.method(id, "payment_method")
	if err != nil || c.path["customer"] != "" && m.str("customer") != c.path["customer"] {
		return nil, missing("PaymentMethod", id, "payment_method")
	}
	return m, nil
}

// usable is method for one that is to be charged or set up for the customer ("": none).
func (c *call) usable(id, customer, param string) (object, error) {
	if m := c.space.get("payment_method", id); m != nil {
		switch of := m.str("customer"); {
		case of != "" && customer == "":
			return nil, invalid("", param, "The payment method supplied ("+id+") belongs to a Customer. Please include the Customer in the `customer` parameter of the request.")
		case of != "" && of != customer:
			return nil, invalid("", param, "The customer does not have a payment method with the ID "+id+". The payment method must be attached to the customer.")
		case m.yes("_used"):
			return nil, invalid("", param, usedUp)
		}
	}
	return c.method(id, param)
}

func (c *call) createMethod() (object, error) {
	if err := c.beyond("customer payment_method us_bank_account"); err != nil {
		return nil, err
	}
	if err := c.require("type"); err != nil {
		return nil, err
	}
	if typ := c.form.str("type"); typ != "card" {
		return nil, invalid("", "type", "stripefake makes payment methods of type card alone, although Stripe makes others.")
	}
	card := c.form.sub("card")
	if card.has("number") || card.has("cvc") {
		return nil, &apiError{status: http.StatusPaymentRequired, kind: "invalid_request_error", param: "card[number]", message: rawNumber}
	}
	if err := c.require("card[token]"); err != nil {
		return nil, err
	}
	id, ok := tokenMethod(card.str("token"))
	if !ok {
		return nil, absent("token", card.str("token"), "card[token]")
	}
	changed := object{"billing_details": noBilling()}
	if err := c.describeMethod(changed); err != nil {
		return nil, err
	}
	m := c.testMethod(id)
	maps.Copy(m, changed)
	return m, nil
}

// describeMethod sets what a request says of a payment method, but of its card.
func (c *call) describeMethod(m object) error {
	if err := c.metadata(m); err != nil {
		return err
	}
	show, err := c.choice("allow_redisplay", "always", "limited", "unspecified")
	if err != nil {
		return err
	}
	if show != "" {
		m["allow_redisplay"] = show
	}
	billing := c.form.sub("billing_details")
	details := m.sub("billing_details").clone()
	for _, name := range []string{"email", "name", "phone", "tax_id"} {
		setText(details, billing, name)
	}
	if address := billing.sub("address"); address != nil {
		details["address"] = addressOf(details.sub("address"), address)
	}
	m["billing_details"] = details
	return nil
}

func addressOf(before object, f form) object {
	a := noAddress()
	maps.Copy(a, before)
	for name := range noAddress() {
		setText(a, f, name)
	}
	return a
}

func (c *call) retrieveMethod() (object, error) { return c.methodOfPath() }

func (c *call) updateMethod() (object, error) {
	m, err := c.methodOfPath()
	if err != nil {
		return nil, err
	}
	if m.str("customer") == "" {
		return nil, invalid("", "", "You must save this PaymentMethod to a customer before you can update it.")
	}
	after := m.clone()
	if err := c.describeMethod(after); err != nil {
		return nil, err
	}
	if card := c.form.sub("card"); card != nil {
		if err := c.renew(after.sub("card"), card); err != nil {
			return nil, err
		}
	}
	c.change("payment_method.updated", m, after)
	return m, nil
}

// renew sets the expiry of a card.
func (c *call) renew(card object, f form) error {
	for name := range f {
		if name != "exp_month" && name != "exp_year" {
			return unknownParam("card[" + name + "]")
		}
		n, err := c.num("card[" + name + "]")
		if err != nil {
			return err
		}
		card[name] = n
	}
	year, month := card.num("exp_year"), card.num("exp_month")
	today := time.Unix(c.now, 0).UTC()
	switch {
	case month < 1 || month > 12:
		return &apiError{status: http.StatusPaymentRequired, kind: "card_error", code: "invalid_expiry_month", param: "exp_month", message: "Your card's expiration month is invalid."}
	case year < int64(today.Year()) || year > int64(today.Year()+50) || year == int64(today.Year()) && month < int64(today.Month()):
		return &apiError{status: http.StatusPaymentRequired, kind: "card_error", code: "invalid_expiry_year", param: "exp_year", message: "Your card's expiration year is invalid."}
	}
	return nil
}

func (c *call) attachMethod() (object, error) {
	if err := c.require("customer"); err != nil {
		return nil, err
	}
	customer, err := c.customer(c.form.str("customer"), "customer")
	if err != nil {
		return nil, err
	}
	m, err := c.methodOfPath()
	if err != nil {
		return nil, err
	}
	return m, c.attach(m, customer)
}

// attach makes the payment method the customer's.
func (c *call) attach(m, customer object) error {
	if m.str("customer") == customer.id() {
		return nil
	}
	if err := attachable(m); err != nil {
		return err
	}
	c.attached(m, customer.id())
	return nil
}

// attachable refuses a payment method that cannot become a customer's. That includes a card
// that its bank refuses: Stripe asks the bank when a card is saved.
func attachable(m object) error {
	switch acts := behaviourOf(m); {
	case m.str("customer") != "":
		return invalid("", "", "The payment method you provided has already been attached to a customer.")
	case m.yes("_used"):
		return invalid("", "", usedUpForAttach)
	case acts.refuses:
		d := reasonFor(acts.declines)
		return &apiError{status: http.StatusPaymentRequired, kind: "card_error", code: d.code, decline: d.decline, advice: d.advice, message: d.message}
	}
	return nil
}

func (c *call) attached(m object, customer string) {
	m["customer"] = customer
	m.sub("card").setIfThere("checks", object{"address_line1_check": nil, "address_postal_code_check": nil, "cvc_check": "pass"})
	c.emit("payment_method.attached", m, nil)
}

func (c *call) detachMethod() (object, error) {
	m, err := c.methodOfPath()
	if err != nil {
		return nil, err
	}
	if m.str("customer") == "" {
		return nil, invalid("", "", "The payment method you provided is not attached to a customer so detachment is impossible.")
	}
	c.detach(m)
	return m, nil
}

// detach takes the payment method from its customer, for good.
func (c *call) detach(m object) {
	of := m.str("customer")
	if customer := c.space.get("customer", of); customer != nil && c.defaultMethod(customer) == m.id() {
		customer.sub("invoice_settings")["default_payment_method"] = nil
	}
	m["customer"], m["_used"] = nil, true
	c.emit("payment_method.detached", m, object{"customer": of})
}

func (c *call) listMethods() (object, error) {
	customer := c.path["customer"]
	if customer == "" {
		customer = c.form.str("customer")
		if customer != "" {
			if _, err := c.customer(customer, "customer"); err != nil {
				return nil, err
			}
		}
	} else if _, err := c.customerOfPath(); err != nil {
		return nil, err
	}
	typ, show := c.form.str("type"), c.form.str("allow_redisplay")
	return c.list("payment_method", func(m object) bool {
		return m.str("customer") != "" && (customer == "" || m.str("customer") == customer) && (typ == "" || m.str("type") == typ) && (show == "" || m.str("allow_redisplay") == show)
	})
}
