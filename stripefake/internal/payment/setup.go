package payment

import (
	"cmp"
	"maps"
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func setupRoutes() []api.Route {
	const one = "/v1/setup_intents/{intent}"
	const beyond = "~allowed_payment_method_types ~payment_method_data ~payment_method_options "
	const beyondPay = "~confirmation_token ~mandate_data "
	const described = "customer =description metadata payment_method payment_method_types " + beyond +
		"~attach_to_self ~customer_account ~excluded_payment_method_types ~flow_directions ~payment_method_configuration "
	return []api.Route{
		on("POST", "/v1/setup_intents", redirecting+described+"confirm:bool return_url =usage:off_session|on_session "+
			"use_stripe_sdk:bool "+beyondPay+"~on_behalf_of ~single_use", Call.createSetup),
		api.Lists("/v1/setup_intents", "setup_intent", "created customer payment_method", nil),
		on("GET", one, "client_secret", Call.setupOfPath),
		on("POST", one, described, api.Update("", openSetup("update"), Call.updateSetup)),
		on("POST", one+"/confirm", "payment_method return_url use_stripe_sdk:bool "+beyond+beyondPay,
			api.With(openSetup("confirm"), Call.confirmSetupOfPath)),
		on("POST", one+"/cancel", "cancellation_reason:abandoned|duplicate|requested_by_customer",
			api.With(openSetup("cancel"), Call.cancelSetupOfPath)),
	}
}

func (c Call) newSetup(members object) object {
	o := object{
		"created": c.TimeOf(members.Str("customer")),
		"payment_method_options": object{"card": object{"mandate_options": nil, "network": nil,
			"request_three_d_secure": "automatic"}},
		"payment_method_types": []any{"card"}, "status": NeedsMethod, "usage": "off_session",
	}.Null("application automatic_payment_methods cancellation_reason customer customer_account description " +
		"flow_directions last_setup_error latest_attempt mandate next_action on_behalf_of payment_method " +
		"payment_method_configuration_details single_use_mandate")
	maps.Copy(o, members)
	if o.Str("payment_method") != "" {
		o["status"] = needsConfirm
	}
	o["id"] = c.NewID("seti")
	o["client_secret"] = c.secretOf(o.ID())
	return c.Make("setup_intent", "seti", o)
}

func (c Call) createSetup() (object, error) {
	o := object{"customer": nil, "payment_method_types": []any{"card"}}
	if err := cmp.Or(c.describeSetup(o), c.automatic(o)); err != nil {
		return nil, err
	}
	confirm := c.Flag("confirm")
	method := c.Form.Str("payment_method")
	switch {
	case confirm && method == "":
		return nil, shape.Invalid("setup_intent_unexpected_state", "", lacksSetupMethod)
	case confirm:
		if err := c.wayBack(o, false); err != nil {
			return nil, err
		}
	case c.Form.Has("return_url"):
		return nil, shape.Invalid("", "return_url", "`return_url` can only be given if `confirm` is true.")
	}
	if method != "" {
		m, err := c.usable(method, o.Str("customer"))
		if err != nil {
			return nil, err
		}
		o["payment_method"] = m.ID()
	}
	o = c.newSetup(o)
	if confirm {
		return o, c.ConfirmSetup(o, o.Str("payment_method"))
	}
	return o, nil
}

const lacksSetupMethod = "You cannot confirm this SetupIntent because it's missing a payment method. Update the " +
	"SetupIntent with a payment method and then confirm it again."

// describeSetup sets the members that the parameters give, except the payment method.
func (c Call) describeSetup(o object) error {
	if id := c.Form.Str("customer"); id != "" {
		if of := o.Str("customer"); of != "" && of != id {
			return shape.Invalid("", "customer", "You cannot modify `customer` on a SetupIntent once it already has been set.")
		}
		if _, err := c.Customer(id, "customer"); err != nil {
			return err
		}
		o["customer"] = id
	}
	return c.describeWithTypes(o)
}

func (c Call) setupOfPath() (object, error) {
	if o := c.Space.Get("setup_intent", c.ID); o != nil {
		return o, nil
	}
	return nil, shape.Missing("setupintent", c.ID, "intent")
}

// openSetup returns a handler for the setup intent of the path, if the verb can be done to it.
func openSetup(verb string) func(Call) (object, error) {
	return api.With(Call.setupOfPath, func(_ Call, o object) (object, error) {
		switch {
		case !IsOpen(o):
			return nil, unexpected(o, "You cannot "+verb+" this SetupIntent because it has a status of "+o.Str("status")+".")
		case o.Str("_session") != "" && verb != "update":
			return nil, shape.Invalid("", "intent", "You cannot "+verb+" the SetupIntent for a Checkout Session. To cancel "+
				"it, expire the Checkout Session instead.")
		}
		return o, nil
	})
}

func (c Call) updateSetup(o object) error {
	if err := c.describeSetup(o); err != nil {
		return err
	}
	if id := c.Form.Str("payment_method"); id != "" {
		m, err := c.usable(id, o.Str("customer"))
		if err != nil {
			return err
		}
		o["payment_method"], o["status"], o["next_action"] = m.ID(), needsConfirm, nil
	}
	o["last_setup_error"] = nil
	return nil
}

func (c Call) confirmSetupOfPath(o object) (object, error) {
	method := cmp.Or(c.Form.Str("payment_method"), o.Str("payment_method"))
	if method == "" {
		return nil, unexpected(o, lacksSetupMethod)
	}
	after := o.Clone()
	if err := c.wayBack(after, false); err != nil {
		return nil, err
	}
	o["_return_url"], o["_sdk"] = after["_return_url"], after["_sdk"]
	return o, c.ConfirmSetup(o, method)
}

// ConfirmSetup tries to save the payment method. The error is a *shape.Error, as of Confirm.
func (c Call) ConfirmSetup(o object, method string) error {
	m, err := c.usable(method, o.Str("customer"))
	if err != nil {
		return err
	}
	if !slices.Contains(o.List("payment_method_types"), any(m.Str("type"))) {
		return shape.Invalid("setup_intent_invalid_parameter", "payment_method",
			"The PaymentMethod provided ("+m.Str("type")+") is not allowed for this SetupIntent.")
	}
	o["payment_method"], o["next_action"], o["last_setup_error"] = m.ID(), nil, nil
	switch acts := BehaviourOf(m); {
	case acts.refuses:
		e := reasonFor(acts.declines)
		c.setupFailed(o, m, e)
		e.Intent, e.Method = o, m
		return e
	case acts.on:
		o["status"], o["next_action"] = NeedsAction, c.nextAction(o)
		c.Emit("setup_intent.requires_action", o, nil)
		return nil
	}
	c.setupSucceeded(o, m)
	return nil
}

func (c Call) setupFailed(o, m object, why *shape.Error) {
	o["status"], o["payment_method"], o["next_action"] = NeedsMethod, nil, nil
	o["last_setup_error"] = paymentError(why, m)
	c.Emit("setup_intent.setup_failed", o, nil)
}

// setupSucceeded saves the payment method: for the customer, if the setup intent has one.
func (c Call) setupSucceeded(o, m object) {
	o["status"], o["next_action"] = Succeeded, nil
	m["_setup"] = o.Str("usage") == "off_session" || m.Yes("_setup")
	if of := o.Str("customer"); of != "" && m.Str("customer") == "" {
		c.attached(m, of)
	}
	c.Emit("setup_intent.succeeded", o, nil)
	if session := c.Space.Get("checkout.session", o.Str("_session")); session != nil {
		session["status"], session["url"] = "complete", nil
		c.Emit("checkout.session.completed", session, nil)
	}
}

func (c Call) cancelSetupOfPath(o object) (object, error) {
	c.cancelSetup(o, c.Form.Str("cancellation_reason"))
	return o, nil
}

func (c Call) cancelSetup(o object, reason string) {
	o["status"], o["cancellation_reason"], o["next_action"] = canceled, shape.OrNil(reason), nil
	c.Emit("setup_intent.canceled", o, nil)
}
