package stripefake

import (
	"fmt"
	"strings"
)

const (
	sessionLife  = 24 * 60 * 60 // seconds that a session is open
	shortestLife = 30 * 60      // that can be asked for
)

// beyondSession are parameters of checkout sessions that this fake does not do.
const beyondSession = "adaptive_pricing after_expiration allow_promotion_codes automatic_tax billing_address_collection branding_settings consent_collection custom_fields custom_text customer_account " +
	"customer_creation customer_update discounts excluded_payment_method_types integration_identifier invoice_creation line_items managed_payments name_collection optional_items " +
	"origin_context payment_intent_data payment_method_collection payment_method_configuration payment_method_data payment_method_options permissions phone_number_collection redirect_on_completion " +
	"return_url saved_payment_method_options shipping_address_collection shipping_options submit_type subscription_data tax_id_collection wallet_options"

func checkoutRoutes() []route {
	const one = "/v1/checkout/sessions/{session}"
	return []route{
		{method: "POST", path: "/v1/checkout/sessions", params: "cancel_url client_reference_id currency customer customer_email expires_at locale metadata mode payment_method_types setup_intent_data success_url ui_mode " + beyondSession, do: (*call).createSession},
		{method: "GET", path: "/v1/checkout/sessions", params: "created customer payment_intent status subscription" + listParams, do: (*call).listSessions},
		{method: "GET", path: one, do: (*call).sessionOfPath},
		{method: "POST", path: one, params: "metadata", do: (*call).updateSession},
		{method: "POST", path: one + "/expire", do: (*call).expireOfPath},
	}
}

func (c *call) createSession() (object, error) {
	if err := c.beyond(beyondSession); err != nil {
		return nil, err
	}
	if err := c.require("mode", "success_url"); err != nil {
		return nil, err
	}
	if mode := c.form.str("mode"); mode != "setup" {
		return nil, invalid("", "mode", "stripefake has checkout sessions with mode=setup alone, although Stripe has payment and subscription as well.")
	}
	if _, err := c.choice("ui_mode", "hosted", "hosted_page"); err != nil {
		return nil, err
	}
	for _, name := range []string{"success_url", "cancel_url"} {
		if text := c.form.str(name); text != "" {
			if err := checkURL(strings.ReplaceAll(text, sessionMark, ""), name); err != nil {
				return nil, err
			}
		}
	}
	o := emptySession()
	if err := c.describeSession(o); err != nil {
		return nil, err
	}
	setup, err := c.setupOf(o)
	if err != nil {
		return nil, err
	}
	prefix := "cs_test"
	if c.space.live {
		prefix = "cs_live"
	}
	o["id"] = c.newID(prefix)
	o["url"] = c.base + "/checkout/" + o.id()
	setup["_session"] = o.id()
	o["setup_intent"] = c.newSetup(setup).id()
	o = c.create("checkout.session", prefix, o)
	c.plan(o)
	return o, nil
}

// emptySession is a session of mode setup of which nothing is said.
func emptySession() object {
	o := object{"automatic_tax": object{"enabled": false, "liability": nil, "provider": nil, "status": nil}, "custom_fields": []any{},
		"custom_text": object{"after_submit": nil, "shipping_address": nil, "submit": nil, "terms_of_service_acceptance": nil},
		"metadata":    object{}, "mode": "setup", "payment_method_collection": "always",
		"payment_method_options": object{"card": object{"request_three_d_secure": "automatic"}}, "payment_method_types": []any{"card"},
		"payment_status": "no_payment_required", "phone_number_collection": object{"enabled": false}, "shipping_options": []any{}, "status": "open", "ui_mode": "hosted_page"}
	for name := range strings.FieldsSeq("adaptive_pricing after_expiration allow_promotion_codes amount_subtotal amount_total billing_address_collection cancel_url client_reference_id " +
		"client_secret collected_information consent consent_collection currency currency_conversion customer customer_account customer_creation customer_details customer_email " +
		"discounts invoice invoice_creation locale origin_context payment_intent payment_link payment_method_configuration_details permissions recovered_from " +
		"saved_payment_method_options shipping_address_collection shipping_cost submit_type subscription total_details wallet_options") {
		o[name] = nil
	}
	return o
}

// describeSession sets what the request says of a new session.
func (c *call) describeSession(o object) error {
	for _, name := range []string{"cancel_url", "client_reference_id", "customer_email", "locale", "success_url"} {
		setText(o, c.form, name)
	}
	if !c.form.has("currency") && !c.form.has("payment_method_types") {
		return invalid("parameter_missing", "currency", "Missing required param: currency. In setup mode, either currency or payment_method_types has to be given.")
	}
	if c.form.has("currency") {
		o["currency"] = strings.ToLower(c.form.str("currency"))
		if err := checkCurrency(o.str("currency")); err != nil {
			return err
		}
	}
	if id := c.form.str("customer"); id != "" {
		if c.form.has("customer_email") {
			return invalid("", "customer_email", "You may only specify one of these parameters: customer, customer_email.")
		}
		customer, err := c.customer(id, "customer")
		if err != nil {
			return err
		}
		o["customer"] = id
		o["customer_details"] = object{"address": nil, "email": customer["email"], "name": nil, "phone": nil, "tax_exempt": "none", "tax_ids": nil, "business_name": nil, "individual_name": nil}
	}
	if err := c.methodTypes(o); err != nil {
		return err
	}
	o["expires_at"] = c.now + sessionLife
	if c.form.has("expires_at") {
		at, err := c.num("expires_at")
		if err != nil {
			return err
		}
		if at < c.now+shortestLife || at > c.now+sessionLife {
			return invalid("", "expires_at", "The `expires_at` timestamp must be from 30 minutes to 24 hours from Checkout Session creation.")
		}
		o["expires_at"] = at
	}
	return c.metadata(o)
}

// setupOf returns the members of the session's setup intent.
func (c *call) setupOf(session object) (object, error) {
	setup := object{"customer": session["customer"], "payment_method_types": session["payment_method_types"], "metadata": object{}}
	data := c.form.sub("setup_intent_data")
	for name, value := range data {
		switch name {
		case "description":
			setup["description"] = orNil(data.str("description"))
		case "metadata":
			if err := mergeMetadata(setup, value, "setup_intent_data[metadata]"); err != nil {
				return nil, err
			}
		default:
			return nil, c.beyondPart("setup_intent_data[" + name + "]")
		}
	}
	return setup, nil
}

func (c *call) sessionOfPath() (object, error) {
	o := c.space.get("checkout.session", c.path["session"])
	if o == nil {
		return nil, missing("checkout.session", c.path["session"], "session")
	}
	return o, nil
}

// expireSession ends the session unused: because somebody asks for it, or because its time is
// over.
func (c *call) expireSession(o object) {
	o["status"], o["url"] = "expired", nil
	if setup := c.space.get("setup_intent", o.str("setup_intent")); isOpen(setup) {
		c.cancelSetup(setup, "abandoned")
	}
	c.emit("checkout.session.expired", o, nil)
}

func (c *call) completeSession(o object) {
	o["status"], o["url"] = "complete", nil
	c.emit("checkout.session.completed", o, nil)
}

func (c *call) expireOfPath() (object, error) {
	o, err := c.sessionOfPath()
	if err != nil {
		return nil, err
	}
	if o.str("status") != "open" {
		return nil, invalid("", "", fmt.Sprintf("Only Checkout Sessions with a status in [\"open\"] can be expired. This Checkout Session has a status of `%s`.", o.str("status")))
	}
	c.expireSession(o)
	return o, nil
}

func (c *call) updateSession() (object, error) {
	o, err := c.sessionOfPath()
	if err != nil {
		return nil, err
	}
	return o, c.metadata(o)
}

func (c *call) listSessions() (object, error) {
	return c.list("checkout.session", c.filter("customer", "payment_intent", "status", "subscription"))
}

// sessionMark is what Stripe replaces by the session's id in success_url.
const sessionMark = "{CHECKOUT_SESSION_ID}"

// successURL is where the customer goes after the session.
func successURL(o object) string {
	return strings.ReplaceAll(o.str("success_url"), sessionMark, o.id())
}

// sessionDue is when an open session expires.
func sessionDue(o object) (int64, bool) { return o.num("expires_at"), o.str("status") == "open" }
