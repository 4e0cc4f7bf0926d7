package stripefake

import (
	"maps"
	"net/http"
	"slices"
)

// Parameters of setup intents that this fake does not do: those that creating, updating and
// confirming have in common, those of whoever creates or updates, of whoever creates or
// confirms, and of whoever creates.
const (
	beyondSetup        = "allowed_payment_method_types payment_method_data payment_method_options "
	beyondOpenSetup    = "attach_to_self customer_account excluded_payment_method_types flow_directions payment_method_configuration "
	beyondPaySetup     = "confirmation_token mandate_data "
	beyondCreatedSetup = "on_behalf_of single_use "
	allBeyondSetup     = beyondSetup + beyondOpenSetup + beyondPaySetup + beyondCreatedSetup
)

func setupRoutes() []route {
	const one = "/v1/setup_intents/{intent}"
	return []route{
		{method: "POST", path: "/v1/setup_intents", params: "automatic_payment_methods confirm customer description metadata payment_method payment_method_types return_url usage use_stripe_sdk " + allBeyondSetup, do: (*call).createSetup},
		{method: "GET", path: "/v1/setup_intents", params: "created customer payment_method" + listParams, do: (*call).listSetups},
		{method: "GET", path: one, params: "client_secret", do: (*call).setupOfPath},
		{method: "POST", path: one, params: "customer description metadata payment_method payment_method_types " + beyondSetup + beyondOpenSetup, do: (*call).updateSetup},
		{method: "POST", path: one + "/confirm", params: "payment_method return_url use_stripe_sdk " + beyondSetup + beyondPaySetup, do: (*call).confirmSetupOfPath},
		{method: "POST", path: one + "/cancel", params: "cancellation_reason", do: (*call).cancelSetupOfPath},
	}
}

// newSetup makes a setup intent that is not confirmed.
func (c *call) newSetup(members object) object {
	o := object{"application": nil, "automatic_payment_methods": nil, "cancellation_reason": nil, "created": c.timeOf(members.str("customer")), "customer": nil,
		"customer_account": nil, "description": nil, "flow_directions": nil, "last_setup_error": nil, "latest_attempt": nil, "mandate": nil, "metadata": object{},
		"next_action": nil, "on_behalf_of": nil, "payment_method": nil, "payment_method_configuration_details": nil,
		"payment_method_options": object{"card": object{"mandate_options": nil, "network": nil, "request_three_d_secure": "automatic"}},
		"payment_method_types":   []any{"card"}, "single_use_mandate": nil, "status": needsMethod, "usage": "off_session"}
	maps.Copy(o, members)
	if o.str("payment_method") != "" {
		o["status"] = needsConfirm
	}
	o["id"] = c.newID("seti")
	o["client_secret"] = c.secretOf(o.id())
	o = c.create("setup_intent", "seti", o)
	c.emit("setup_intent.created", o, nil)
	return o
}

func (c *call) createSetup() (object, error) {
	o := object{"customer": nil, "payment_method_types": []any{"card"}}
	if err := c.describeSetup(o); err != nil {
		return nil, err
	}
	if err := c.automatic(o); err != nil {
		return nil, err
	}
	usage, err := c.choice("usage", "off_session", "on_session")
	if err != nil {
		return nil, err
	}
	if usage != "" {
		o["usage"] = usage
	}
	confirm, err := c.flag("confirm")
	if err != nil {
		return nil, err
	}
	method := c.form.str("payment_method")
	switch {
	case confirm && method == "":
		return nil, invalid("setup_intent_unexpected_state", "", lacksSetupMethod)
	case confirm:
		if err := c.setupReturn(o); err != nil {
			return nil, err
		}
	case c.form.has("return_url"):
		return nil, invalid("", "return_url", "`return_url` can only be given if `confirm` is true.")
	}
	if method != "" {
		m, err := c.usable(method, o.str("customer"), "payment_method")
		if err != nil {
			return nil, err
		}
		o["payment_method"] = m.id()
	}
	o = c.newSetup(o)
	if confirm {
		return o, c.confirmSetup(o, o.str("payment_method"))
	}
	return o, nil
}

const lacksSetupMethod = "You cannot confirm this SetupIntent because it's missing a payment method. Update the SetupIntent with a payment method and then confirm it again."

// describeSetup sets what a request says of a setup intent, but of its payment method.
func (c *call) describeSetup(o object) error {
	if err := c.beyond(allBeyondSetup); err != nil {
		return err
	}
	if id := c.form.str("customer"); id != "" {
		if of := o.str("customer"); of != "" && of != id {
			return invalid("", "customer", "You cannot modify `customer` on a SetupIntent once it already has been set.")
		}
		if _, err := c.customer(id, "customer"); err != nil {
			return err
		}
		o["customer"] = id
	}
	setText(o, c.form, "description")
	if err := c.methodTypes(o); err != nil {
		return err
	}
	return c.metadata(o)
}

// setupReturn reads where the customer is to be sent back to.
func (c *call) setupReturn(o object) error {
	sdk, err := c.flag("use_stripe_sdk")
	if err != nil {
		return err
	}
	o["_sdk"] = sdk
	switch back := c.form.str("return_url"); {
	case back != "":
		o["_return_url"] = back
		return checkURL(back, "return_url")
	case !sdk && o.sub("automatic_payment_methods").str("allow_redirects") == "always":
		return invalid("", "return_url", noReturnURL)
	}
	return nil
}

func (c *call) setupOfPath() (object, error) {
	o := c.space.get("setup_intent", c.path["intent"])
	if o == nil {
		return nil, missing("setupintent", c.path["intent"], "intent")
	}
	return o, nil
}

func (c *call) listSetups() (object, error) {
	return c.list("setup_intent", c.filter("customer", "payment_method"))
}

func unexpectedSetup(o object, verb string) error {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", code: "setup_intent_unexpected_state", intent: o,
		message: "You cannot " + verb + " this SetupIntent because it has a status of " + o.str("status") + "."}
}

// openSetup returns the setup intent in the path if the verb can be done to it.
func (c *call) openSetup(verb string) (object, error) {
	o, err := c.setupOfPath()
	switch {
	case err != nil:
		return nil, err
	case !isOpen(o):
		return nil, unexpectedSetup(o, verb)
	case o.str("_session") != "" && verb != "update":
		return nil, invalid("", "intent", "You cannot "+verb+" the SetupIntent for a Checkout Session. To cancel it, expire the Checkout Session instead.")
	}
	return o, nil
}

func (c *call) updateSetup() (object, error) {
	o, err := c.openSetup("update")
	if err != nil {
		return nil, err
	}
	after := o.clone()
	if err := c.describeSetup(after); err != nil {
		return nil, err
	}
	if id := c.form.str("payment_method"); id != "" {
		m, err := c.usable(id, after.str("customer"), "payment_method")
		if err != nil {
			return nil, err
		}
		after["payment_method"], after["status"], after["next_action"] = m.id(), needsConfirm, nil
	}
	after["last_setup_error"] = nil
	maps.Copy(o, after)
	return o, nil
}

func (c *call) confirmSetupOfPath() (object, error) {
	o, err := c.openSetup("confirm")
	if err != nil {
		return nil, err
	}
	if err := c.beyond(allBeyondSetup); err != nil {
		return nil, err
	}
	method := c.form.str("payment_method")
	if method == "" {
		method = o.str("payment_method")
	}
	if method == "" {
		return nil, &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", code: "setup_intent_unexpected_state", message: lacksSetupMethod, intent: o}
	}
	after := o.clone()
	if err := c.setupReturn(after); err != nil {
		return nil, err
	}
	o["_return_url"], o["_sdk"] = after["_return_url"], after["_sdk"]
	return o, c.confirmSetup(o, method)
}

// confirmSetup tries to save the payment method. The error is an *apiError, as in confirm.
func (c *call) confirmSetup(o object, method string) error {
	m, err := c.usable(method, o.str("customer"), "payment_method")
	if err != nil {
		return err
	}
	if !slices.Contains(o.list("payment_method_types"), any(m.str("type"))) {
		return invalid("setup_intent_invalid_parameter", "payment_method", "The PaymentMethod provided ("+m.str("type")+") is not allowed for this SetupIntent.")
	}
	o["payment_method"], o["next_action"], o["last_setup_error"] = m.id(), nil, nil
	switch acts := behaviourOf(m); {
	case acts.refuses:
		d := reasonFor(acts.declines)
		c.setupFailed(o, paymentError("card_error", d, "", m))
		return &apiError{status: http.StatusPaymentRequired, kind: "card_error", code: d.code, decline: d.decline, advice: d.advice, message: d.message, intent: o, method: m}
	case acts.on:
		o["status"], o["next_action"] = needsAction, c.nextAction(o)
		c.emit("setup_intent.requires_action", o, nil)
		return nil
	}
	c.setupSucceeded(o, m)
	return nil
}

func (c *call) setupFailed(o, why object) {
	o["status"], o["payment_method"], o["next_action"], o["last_setup_error"] = needsMethod, nil, nil, why
	c.emit("setup_intent.setup_failed", o, nil)
}

// setupSucceeded saves the payment method: for the customer, if the setup intent has one.
func (c *call) setupSucceeded(o, m object) {
	o["status"], o["next_action"] = succeeded, nil
	m["_setup"] = o.str("usage") == "off_session" || m.yes("_setup")
	if of := o.str("customer"); of != "" && m.str("customer") == "" {
		c.attached(m, of)
	}
	c.emit("setup_intent.succeeded", o, nil)
	if session := c.space.get("checkout.session", o.str("_session")); session != nil {
		c.completeSession(session)
	}
}

// authenticateSetup is authenticate for a setup intent.
func (c *call) authenticateSetup(o object, ok bool) error {
	m := c.space.get("payment_method", o.str("payment_method"))
	if !ok {
		d := decline{code: "setup_intent_authentication_failure", message: "The latest attempt to set up the payment method has failed because authentication failed."}
		c.setupFailed(o, paymentError("invalid_request_error", d, "", m))
		return nil
	}
	c.setupSucceeded(o, m)
	return nil
}

func (c *call) cancelSetupOfPath() (object, error) {
	o, err := c.openSetup("cancel")
	if err != nil {
		return nil, err
	}
	reason, err := c.choice("cancellation_reason", "abandoned", "duplicate", "requested_by_customer")
	if err != nil {
		return nil, err
	}
	c.cancelSetup(o, reason)
	return o, nil
}

func (c *call) cancelSetup(o object, reason string) {
	o["status"], o["cancellation_reason"], o["next_action"] = canceled, orNil(reason), nil
	c.emit("setup_intent.canceled", o, nil)
}
