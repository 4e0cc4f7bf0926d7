package payment

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	sessionLife  = 24 * 60 * 60 // seconds of an open session
	shortestLife = 30 * 60      // the smallest life that a request may give
)

// beyondSession are Stripe's parameters of checkout sessions that this fake does not have.
const beyondSession = "~adaptive_pricing ~after_expiration ~allow_promotion_codes ~automatic_tax " +
	"~billing_address_collection ~branding_settings ~consent_collection ~custom_fields ~custom_text ~customer_account " +
	"~customer_creation ~customer_update ~discounts ~excluded_payment_method_types ~integration_identifier " +
	"~invoice_creation ~line_items ~managed_payments ~name_collection ~optional_items ~origin_context " +
	"~payment_intent_data ~payment_method_collection ~payment_method_configuration ~payment_method_data " +
	"~payment_method_options ~permissions ~phone_number_collection ~redirect_on_completion ~return_url " +
	"~saved_payment_method_options ~shipping_address_collection ~shipping_options ~submit_type " +
	"~subscription_data ~tax_id_collection ~wallet_options "

func checkoutRoutes() []api.Route {
	const one = "/v1/checkout/sessions/{session}"
	load := find("checkout.session", "session")
	return []api.Route{
		on("POST", "/v1/checkout/sessions", beyondSession+"mode! =success_url! =cancel_url =client_reference_id "+
			"currency customer =customer_email expires_at:int =locale metadata payment_method_types setup_intent_data "+
			"ui_mode:hosted|hosted_page", Call.createSession),
		api.Lists("/v1/checkout/sessions", "checkout.session", "created customer payment_intent status subscription", nil),
		on("GET", one, "", load),
		on("POST", one, "metadata", api.Update("", load, Call.Describe)),
		on("POST", one+"/expire", "", api.With(load, Call.expireOfPath)),
	}
}

func (c Call) createSession() (object, error) {
	if mode := c.Form.Str("mode"); mode != "setup" {
		return nil, shape.Invalid("", "mode", "stripefake supports only checkout sessions with mode=setup, although Stripe "+
			"has payment and subscription as well.")
	}
	for _, name := range []string{"success_url", "cancel_url"} {
		if text := c.Form.Str(name); text != "" {
			if err := checkURL(strings.ReplaceAll(text, sessionMark, ""), name); err != nil {
				return nil, err
			}
		}
	}
	o := emptySession()
	wrong := c.describeSession(o)
	setup, err := c.setupOf(o)
	if err := cmp.Or(wrong, err); err != nil {
		return nil, err
	}
	prefix := "cs_test"
	if c.Space.Live {
		prefix = "cs_live"
	}
	o["id"] = c.NewID(prefix)
	o["url"] = c.Base + "/checkout/" + o.ID()
	setup["_session"] = o.ID()
	o["setup_intent"] = c.newSetup(setup).ID()
	o = c.Create("checkout.session", prefix, o)
	c.Plan(o)
	return o, nil
}

// emptySession is a session of mode setup of which nothing is said.
func emptySession() object {
	return object{"automatic_tax": object{"enabled": false}.Null("liability provider status"), "custom_fields": []any{},
		"custom_text": object{}.Null("after_submit shipping_address submit terms_of_service_acceptance"),
		"mode":        "setup", "payment_method_collection": "always",
		"payment_method_options": object{"card": object{"request_three_d_secure": "automatic"}},
		"payment_method_types":   []any{"card"}, "payment_status": "no_payment_required",
		"phone_number_collection": object{"enabled": false}, "shipping_options": []any{}, "status": "open",
		"ui_mode": "hosted_page"}.Null("adaptive_pricing after_expiration allow_promotion_codes amount_subtotal " +
		"amount_total billing_address_collection cancel_url client_reference_id client_secret collected_information " +
		"consent consent_collection currency currency_conversion customer customer_account customer_creation " +
		"customer_details customer_email discounts invoice invoice_creation locale origin_context payment_intent " +
		"payment_link payment_method_configuration_details permissions recovered_from saved_payment_method_options " +
		"shipping_address_collection shipping_cost submit_type subscription total_details wallet_options")
}

// describeSession sets the members of a new session that the parameters give.
func (c Call) describeSession(o object) error {
	if !c.Form.Has("currency") && !c.Form.Has("payment_method_types") {
		return shape.Invalid("parameter_missing", "currency", "Missing required param: currency. In setup mode, either "+
			"currency or payment_method_types is required.")
	}
	if c.Form.Has("currency") {
		o["currency"] = strings.ToLower(c.Form.Str("currency"))
		if err := checkCurrency(o.Str("currency")); err != nil {
			return err
		}
	}
	if id := c.Form.Str("customer"); id != "" {
		if c.Form.Has("customer_email") {
			return shape.OnlyOne("customer_email", "customer, customer_email")
		}
		customer, err := c.Customer(id, "customer")
		if err != nil {
			return err
		}
		o["customer"] = id
		o["customer_details"] = object{"email": customer["email"],
			"tax_exempt": "none"}.Null("address business_name individual_name name phone tax_ids")
	}
	at := c.Now + sessionLife
	if c.Form.Has("expires_at") {
		at = c.Num("expires_at")
	}
	if at < c.Now+shortestLife || at > c.Now+sessionLife {
		return shape.Invalid("", "expires_at", "The `expires_at` timestamp must be from 30 minutes to 24 hours from "+
			"Checkout Session creation.")
	}
	o["expires_at"] = at
	return c.describeWithTypes(o)
}

// setupOf returns the members of the session's setup intent.
func (c Call) setupOf(session object) (object, error) {
	setup := object{"customer": session["customer"], "payment_method_types": session["payment_method_types"],
		"metadata": object{}}
	data := c.Form.Sub("setup_intent_data")
	if name := data.Other("description metadata"); name != "" {
		return nil, c.BeyondPart(name)
	}
	data.SetTexts(setup, "description")
	return setup, data.Metadata(setup)
}

// expireSession ends the session unused: somebody asks for it, or its time is over.
func (c Call) expireSession(o object) {
	o["status"], o["url"] = "expired", nil
	if setup := c.Space.Get("setup_intent", o.Str("setup_intent")); IsOpen(setup) {
		c.cancelSetup(setup, "abandoned")
	}
	c.Emit("checkout.session.expired", o, nil)
}

func (c Call) expireOfPath(o object) (object, error) {
	if o.Str("status") != "open" {
		return nil, shape.Invalid("", "", fmt.Sprintf("Only Checkout Sessions with a status in [\"open\"] can be "+
			"expired. This Checkout Session has a status of `%s`.", o.Str("status")))
	}
	c.expireSession(o)
	return o, nil
}

// sessionMark stands for the session's id in success_url.
const sessionMark = "{CHECKOUT_SESSION_ID}"

// SuccessURL is where the customer goes after the session.
func SuccessURL(o object) string {
	return strings.ReplaceAll(o.Str("success_url"), sessionMark, o.ID())
}

func sessionDue(o object) (int64, bool) { return o.Num("expires_at"), o.Str("status") == "open" }
