package stripefake

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The states of a payment intent.
const (
	needsMethod  = "requires_payment_method"
	needsConfirm = "requires_confirmation"
	needsAction  = "requires_action"
	needsCapture = "requires_capture"
	processing   = "processing"
	succeeded    = "succeeded"
	canceled     = "canceled"
)

// The steps that other packages may follow.
const (
	intentMoved    = "payment_intent.moved" // with the payment intent in its new state
	customerLeaves = "customer.leaves"      // with the customer, before it is deleted
)

const (
	// describing are the parameters of payment intents that creating and updating have in common.
	describing = "amount currency customer payment_method payment_method_types application_fee_amount capture_method description metadata receipt_email " +
		"setup_future_usage statement_descriptor statement_descriptor_suffix transfer_data transfer_group " + beyondIntent
	// beyondIntent are those that creating, updating and confirming have in common and this
	// fake does not do. Some of the others are for whoever creates or updates, some for
	// whoever creates or confirms, and some for one of these alone.
	beyondIntent   = "allowed_payment_method_types amount_details excluded_payment_method_types hooks payment_details payment_method_data payment_method_options shipping "
	beyondOpen     = "customer_account payment_method_configuration "
	beyondPay      = "confirmation_token mandate mandate_data radar_options "
	beyondCreating = "confirmation_method on_behalf_of "
	beyondConfirm  = "amount_to_confirm "
	allBeyond      = beyondIntent + beyondOpen + beyondPay + beyondCreating + beyondConfirm

	confirming = "off_session error_on_requires_action return_url use_stripe_sdk"
)

func intentRoutes() []route {
	const one = "/v1/payment_intents/{intent}"
	return []route{
		{method: "POST", path: "/v1/payment_intents", params: describing + beyondOpen + beyondPay + beyondCreating + "automatic_payment_methods confirm " + confirming, do: (*call).createIntent},
		{method: "GET", path: "/v1/payment_intents", params: "customer created" + listParams, do: (*call).listIntents},
		{method: "GET", path: one, params: "client_secret", do: (*call).intentOfPath},
		{method: "POST", path: one, params: describing + beyondOpen, do: (*call).updateIntent},
		{method: "POST", path: one + "/confirm", params: "payment_method payment_method_types receipt_email setup_future_usage capture_method " + beyondIntent + beyondPay + beyondConfirm + confirming, do: (*call).confirmIntent},
		{method: "POST", path: one + "/capture", params: "amount_to_capture metadata final_capture", do: (*call).captureIntent},
		{method: "POST", path: one + "/cancel", params: "cancellation_reason", do: (*call).cancelOfPath},
	}
}

// newIntent makes a payment intent that is not confirmed. Of the members, amount and
// currency are needed; customer, payment_method (a test id makes one) and whatever else
// Stripe's object has may be there, in its shape.
func (c *call) newIntent(members object) (object, error) {
	if err := checkMoney(members.num("amount"), members.str("currency")); err != nil {
		return nil, err
	}
	if id := members.str("customer"); id != "" {
		if _, err := c.customer(id, "customer"); err != nil {
			return nil, err
		}
	}
	o := object{"amount": nil, "amount_capturable": int64(0), "amount_details": object{"tip": object{}}, "amount_received": int64(0), "application": nil, "application_fee_amount": nil,
		"automatic_payment_methods": nil, "canceled_at": nil, "cancellation_reason": nil, "capture_method": "automatic_async", "client_secret": nil,
		"confirmation_method": "automatic", "currency": nil, "customer": nil, "customer_account": nil, "description": nil, "last_payment_error": nil, "latest_charge": nil,
		"metadata": object{}, "next_action": nil, "on_behalf_of": nil, "payment_method": nil, "payment_method_configuration_details": nil,
		"payment_method_options": cardOptions(), "payment_method_types": []any{"card"}, "processing": nil, "receipt_email": nil, "review": nil,
		"setup_future_usage": nil, "shipping": nil, "statement_descriptor": nil, "statement_descriptor_suffix": nil, "status": needsMethod,
		"transfer_data": nil, "transfer_group": nil, "created": c.timeOf(members.str("customer"))}
	maps.Copy(o, members)
	if id := members.str("payment_method"); id != "" {
		m, err := c.fitting(o, id)
		if err != nil {
			return nil, err
		}
		o["payment_method"], o["status"] = m.id(), needsConfirm
	}
	o["id"] = c.newID("pi")
	o["client_secret"] = c.secretOf(o.id())
	o = c.create("payment_intent", "pi", o)
	c.emit("payment_intent.created", o, nil)
	return o, nil
}

// secretOf makes a client secret. It opens nothing here.
func (c *call) secretOf(id string) string { return id + "_" + c.newID("secret") }

func cardOptions() object {
	return object{"card": object{"installments": nil, "mandate_options": nil, "network": nil, "request_three_d_secure": "automatic"}}
}

// fitting returns the payment method if the payment intent can be confirmed with it.
func (c *call) fitting(pi object, id string) (object, error) {
	m, err := c.usable(id, pi.str("customer"), "payment_method")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(pi.list("payment_method_types"), any(m.str("type"))) {
		return nil, invalid("payment_intent_incompatible_payment_method", "payment_method", "The PaymentMethod provided ("+m.str("type")+") is not allowed for this PaymentIntent. "+
			"Please attach a PaymentMethod of one of the following types: "+joined(pi.list("payment_method_types"))+".")
	}
	return m, nil
}

func joined(list []any) string { return strings.Trim(fmt.Sprint(list), "[]") }

func (c *call) createIntent() (object, error) {
	if err := c.require("amount", "currency"); err != nil {
		return nil, err
	}
	members := object{"customer": orNil(c.form.str("customer")), "payment_method_types": []any{"card"}, "status": needsMethod}
	if err := c.describeIntent(members); err != nil {
		return nil, err
	}
	if err := c.automatic(members); err != nil {
		return nil, err
	}
	confirm, err := c.flag("confirm")
	if err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(confirming) {
		if !confirm && c.form.has(name) {
			return nil, invalid("", name, "`"+name+"` can only be given if `confirm` is true.")
		}
	}
	method := c.form.str("payment_method")
	members["payment_method"] = orNil(method)
	if !confirm {
		return c.newIntent(members)
	}
	if method == "" {
		return nil, invalid("payment_intent_unexpected_state", "", lacksMethod)
	}
	offSession, err := c.confirming(members)
	if err != nil {
		return nil, err
	}
	pi, err := c.newIntent(members)
	if err != nil {
		return nil, err
	}
	return pi, c.confirm(pi, "", offSession, c.form.str("return_url"))
}

// automatic sets what kinds of payment methods the payment intent takes: those that are
// asked for or, since 2023-08-16, those of the account's settings.
func (c *call) automatic(members object) error {
	types := c.form.list("payment_method_types")
	automatic := c.form.sub("automatic_payment_methods")
	switch {
	case types != nil && automatic.yes("enabled"):
		return invalid("", "payment_method_types", "You may only specify one of these parameters: automatic_payment_methods, payment_method_types.")
	case types != nil || automatic == nil && c.version < "2023-08-16":
		return nil
	case automatic != nil && !automatic.yes("enabled"):
		return nil
	}
	redirects, err := c.choice("automatic_payment_methods[allow_redirects]", "always", "never")
	if err != nil {
		return err
	}
	if redirects == "" {
		redirects = "always"
	}
	members["automatic_payment_methods"] = object{"allow_redirects": redirects, "enabled": true}
	if members.str("currency") == "usd" {
		members["payment_method_types"] = []any{"card", "us_bank_account"}
	}
	return nil
}

// describeIntent sets what a request says of a payment intent, but of its payment method and
// its customer, which stand in o already.
func (c *call) describeIntent(o object) error {
	if err := c.beyond(allBeyond); err != nil {
		return err
	}
	if c.form.has("amount") || c.form.has("currency") {
		if c.form.has("amount") {
			n, err := c.num("amount")
			if err != nil {
				return err
			}
			o["amount"] = n
		}
		if c.form.has("currency") {
			o["currency"] = strings.ToLower(c.form.str("currency"))
		}
		if err := checkMoney(o.num("amount"), o.str("currency")); err != nil {
			return err
		}
	}
	for _, name := range []string{"description", "receipt_email", "statement_descriptor", "statement_descriptor_suffix", "transfer_group"} {
		setText(o, c.form, name)
	}
	for name, of := range map[string][]string{"capture_method": {"automatic", "automatic_async", "manual"}, "setup_future_usage": {"", "off_session", "on_session"}} {
		if v, err := c.choice(name, of...); err != nil {
			return err
		} else if c.form.has(name) {
			o[name] = orNil(v)
		}
	}
	if err := c.methodTypes(o); err != nil {
		return err
	}
	if err := c.share(o); err != nil {
		return err
	}
	return c.metadata(o)
}

func (c *call) methodTypes(o object) error {
	types := c.form.list("payment_method_types")
	for _, typ := range types {
		if typ != "card" && typ != "us_bank_account" {
			return invalid("", "payment_method_types", fmt.Sprintf("stripefake has no payment methods of type %v, although Stripe has: card and us_bank_account are there.", typ))
		}
	}
	if types != nil {
		o["payment_method_types"] = types
	}
	return nil
}

// share sets what of the payment goes to another account.
func (c *call) share(o object) error {
	if transfer := c.form.sub("transfer_data"); transfer != nil {
		if to := transfer.str("destination"); !strings.HasPrefix(to, "acct_") {
			return absent("destination", to, "transfer_data[destination]")
		}
		o["transfer_data"] = object{"destination": transfer.str("destination")}
	}
	if !c.form.has("application_fee_amount") {
		return nil
	}
	fee, err := c.amount("application_fee_amount")
	switch {
	case err != nil:
		return err
	case !c.connected() && o["transfer_data"] == nil:
		return invalid("", "application_fee_amount", "Can only apply an application_fee when the request is made on behalf of another account (using an OAuth key, the Stripe-Account header, or the destination parameter).")
	case fee > o.num("amount"):
		return invalid("", "application_fee_amount", "The application fee must be less than or equal to the charge amount.")
	}
	o["application_fee_amount"] = fee
	return nil
}

func (c *call) intentOfPath() (object, error) {
	return c.find("payment_intent", c.path["intent"], "intent")
}

func (c *call) listIntents() (object, error) {
	customer := c.form.str("customer")
	if customer != "" && c.space.get("customer", customer) == nil {
		return nil, absent("customer", customer, "customer")
	}
	return c.list("payment_intent", func(pi object) bool { return customer == "" || pi.str("customer") == customer })
}

// unexpected is the error of what cannot be done to the payment intent in its state.
func unexpected(pi object, message string) error {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", code: "payment_intent_unexpected_state", message: message, intent: pi}
}

// isOpen reports whether the payment intent can still be confirmed and changed.
func isOpen(pi object) bool {
	return slices.Contains([]string{needsMethod, needsConfirm, needsAction}, pi.str("status"))
}

func (c *call) updateIntent() (object, error) {
	pi, err := c.intentOfPath()
	if err != nil {
		return nil, err
	}
	for name := range c.form {
		if name != "metadata" && name != "description" && name != "expand" && !isOpen(pi) {
			return nil, unexpected(pi, "This PaymentIntent's "+name+" could not be updated because it has a status of "+pi.str("status")+
				". You may only update the "+name+" of a PaymentIntent with one of the following statuses: requires_payment_method, requires_confirmation, requires_action.")
		}
	}
	for _, name := range []string{"amount", "currency", "application_fee_amount", "transfer_data"} {
		if c.form.has(name) && pi.str("_invoice") != "" {
			return nil, invalid("", name, "The parameter "+name+" cannot be updated on a PaymentIntent that was created by an invoice. You can try again without that parameter.")
		}
	}
	after := pi.clone()
	if id := c.form.str("customer"); id != "" && id != pi.str("customer") {
		if pi.str("customer") != "" {
			return nil, invalid("", "customer", "You cannot modify `customer` on a PaymentIntent once it already has been set. To fulfill a payment with a different Customer, cancel this PaymentIntent and create a new one.")
		}
		if _, err := c.customer(id, "customer"); err != nil {
			return nil, err
		}
		after["customer"] = id
	}
	if err := c.describeIntent(after); err != nil {
		return nil, err
	}
	again := after.num("amount") != pi.num("amount") || after.str("currency") != pi.str("currency")
	if c.form.has("payment_method") {
		again = true
		after["payment_method"], after["status"] = nil, needsMethod
		if id := c.form.str("payment_method"); id != "" {
			m, err := c.fitting(after, id)
			if err != nil {
				return nil, err
			}
			after["payment_method"], after["status"] = m.id(), needsConfirm
		}
	}
	if again && after.str("status") == needsAction {
		after["status"] = needsConfirm
	}
	if again {
		after["next_action"] = nil
	}
	after["last_payment_error"] = nil // as documented: by an update for any reason
	maps.Copy(pi, after)
	return pi, nil
}

func (c *call) cancelOfPath() (object, error) {
	pi, err := c.intentOfPath()
	if err != nil {
		return nil, err
	}
	if pi.str("_invoice") != "" {
		return nil, unexpected(pi, "You cannot cancel this PaymentIntent because it was created by an invoice. Void the invoice instead.")
	}
	reason, err := c.choice("cancellation_reason", "abandoned", "duplicate", "fraudulent", "requested_by_customer")
	if err != nil {
		return nil, err
	}
	return pi, c.cancelIntent(pi, reason)
}

// cancelIntent cancels the payment intent; what was authorized goes back. The reason may be
// empty, and is one of the object's: more than a request may give.
func (c *call) cancelIntent(pi object, reason string) error {
	if !isOpen(pi) && pi.str("status") != needsCapture {
		return unexpected(pi, "You cannot cancel this PaymentIntent because it has a status of "+pi.str("status")+
			". Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action, processing.")
	}
	if pi.str("status") == needsCapture {
		charge := c.space.get("charge", pi.str("latest_charge"))
		charge["amount_refunded"], charge["refunded"] = charge.num("amount"), true
		c.emit("charge.refunded", charge, nil)
	}
	pi["status"], pi["canceled_at"], pi["cancellation_reason"] = canceled, c.timeOf(pi.str("customer")), orNil(reason)
	pi["amount_capturable"], pi["next_action"] = int64(0), nil
	c.emit("payment_intent.canceled", pi, nil)
	return nil
}

// checkURL refuses what no browser can be sent to.
func checkURL(text, param string) error {
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(text) > 5000 {
		return invalid("url_invalid", param, "Not a valid URL: "+param+" has to begin with https:// or http://.")
	}
	return nil
}
