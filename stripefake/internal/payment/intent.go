package payment

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// The states of a payment intent.
const (
	NeedsMethod  = "requires_payment_method"
	needsConfirm = "requires_confirmation"
	NeedsAction  = "requires_action"
	NeedsCapture = "requires_capture"
	Processing   = "processing"
	Succeeded    = "succeeded"
	canceled     = "canceled"
)

// The parameters of payment intents that several routes have.
const (
	describing = "customer payment_method payment_method_types application_fee_amount:amount " +
		"=capture_method:automatic|automatic_async|manual =description metadata =receipt_email " +
		"=setup_future_usage:|off_session|on_session =statement_descriptor =statement_descriptor_suffix transfer_data " +
		"=transfer_group " + beyondIntent + beyondOpen
	beyondIntent = "~allowed_payment_method_types ~amount_details ~excluded_payment_method_types ~hooks " +
		"~payment_details ~payment_method_data ~payment_method_options ~shipping "
	beyondOpen  = "~customer_account ~payment_method_configuration "
	beyondPay   = "~confirmation_token ~mandate ~mandate_data ~radar_options "
	confirming  = "off_session:true|false|one_off|recurring error_on_requires_action:bool return_url use_stripe_sdk:bool "
	redirecting = "automatic_payment_methods automatic_payment_methods[allow_redirects]:always|never "
)

func intentRoutes() []api.Route {
	const one = "/v1/payment_intents/{intent}"
	load := find("payment_intent", "intent")
	return []api.Route{
		on("POST", "/v1/payment_intents", "amount:int! currency! "+describing+beyondPay+"~confirmation_method ~on_behalf_of "+
			redirecting+"confirm:bool "+confirming, Call.createIntent),
		on("GET", "/v1/payment_intents", "customer created"+api.ListParams, Call.listIntents),
		on("GET", one, "client_secret", load),
		on("POST", one, "amount:int currency "+describing, api.With(load, Call.updateIntent)),
		on("POST", one+"/confirm", "payment_method payment_method_types =receipt_email "+
			"=setup_future_usage:|off_session|on_session =capture_method:automatic|automatic_async|manual "+
			beyondIntent+beyondPay+"~amount_to_confirm "+confirming, api.With(load, Call.confirmIntent)),
		on("POST", one+"/capture", "amount_to_capture:int metadata final_capture", api.With(load, Call.captureIntent)),
		on("POST", one+"/cancel", "cancellation_reason:abandoned|duplicate|fraudulent|requested_by_customer",
			api.With(load, Call.cancelOfPath)),
	}
}

// NewIntent makes an unconfirmed payment intent. members must have amount and currency; they may have
// others of Stripe's object. A test id of payment_method makes one.
func (c Call) NewIntent(members object) (object, error) {
	if err := checkMoney(members.Num("amount"), members.Str("currency")); err != nil {
		return nil, err
	}
	if id := members.Str("customer"); id != "" {
		if _, err := c.Customer(id, "customer"); err != nil {
			return nil, err
		}
	}
	o := object{
		"amount_details": object{"tip": object{}}, "capture_method": "automatic_async",
		"confirmation_method": "automatic", "payment_method_options": object{
			"card": object{"request_three_d_secure": "automatic"}.Null("installments mandate_options network")},
		"payment_method_types": []any{"card"}, "status": NeedsMethod,
		"created": c.TimeOf(members.Str("customer")),
	}.Null("amount application application_fee_amount automatic_payment_methods canceled_at " +
		"cancellation_reason client_secret currency customer customer_account description " +
		"last_payment_error latest_charge next_action on_behalf_of payment_method " +
		"payment_method_configuration_details processing receipt_email review setup_future_usage shipping " +
		"statement_descriptor statement_descriptor_suffix transfer_data transfer_group").Zero(
		"amount_capturable amount_received")
	maps.Copy(o, members)
	if id := members.Str("payment_method"); id != "" {
		m, err := c.fitting(o, id)
		if err != nil {
			return nil, err
		}
		o["payment_method"], o["status"] = m.ID(), needsConfirm
	}
	o["id"] = c.NewID("pi")
	o["client_secret"] = c.secretOf(o.ID())
	return c.Make("payment_intent", "pi", o), nil
}

// secretOf makes a client secret. It opens nothing here.
func (c Call) secretOf(id string) string { return id + "_" + c.NewID("secret") }

// fitting returns the payment method if the payment intent can be confirmed with it.
func (c Call) fitting(pi object, id string) (object, error) {
	m, err := c.usable(id, pi.Str("customer"))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(pi.List("payment_method_types"), any(m.Str("type"))) {
		return nil, shape.Invalid("payment_intent_incompatible_payment_method", "payment_method", "The PaymentMethod "+
			"provided ("+m.Str("type")+") is not allowed for this PaymentIntent. Please attach a PaymentMethod of "+
			"one of the following types: "+strings.Trim(fmt.Sprint(pi.List("payment_method_types")), "[]")+".")
	}
	return m, nil
}

func (c Call) createIntent() (object, error) {
	members := object{"customer": c.Form.OrNil("customer"), "payment_method_types": []any{"card"},
		"status": NeedsMethod}
	if err := cmp.Or(c.describeIntent(members), c.automatic(members)); err != nil {
		return nil, err
	}
	confirm := c.Flag("confirm")
	for name := range strings.FieldsSeq("off_session error_on_requires_action return_url use_stripe_sdk") {
		if !confirm && c.Form.Has(name) {
			return nil, shape.Invalid("", name, "`"+name+"` can only be given if `confirm` is true.")
		}
	}
	members["payment_method"] = c.Form.OrNil("payment_method")
	switch {
	case !confirm:
		return c.NewIntent(members)
	case members["payment_method"] == nil:
		return nil, shape.Invalid("payment_intent_unexpected_state", "", lacksMethod)
	}
	offSession, err := c.confirming(members)
	if err != nil {
		return nil, err
	}
	pi, err := c.NewIntent(members)
	if err != nil {
		return nil, err
	}
	return pi, c.Confirm(pi, "", offSession)
}

// automatic sets the kinds of payment methods: the request's or, since 2023-08-16, the account's.
func (c Call) automatic(members object) error {
	types := c.Form.List("payment_method_types")
	automatic := c.Form.Sub("automatic_payment_methods")
	switch {
	case types != nil && automatic.Yes("enabled"):
		return shape.OnlyOne("payment_method_types", "automatic_payment_methods, payment_method_types")
	case types != nil, !automatic.Given() && c.Version < "2023-08-16", automatic.Given() && !automatic.Yes("enabled"):
		return nil
	}
	redirects := cmp.Or(automatic.Str("allow_redirects"), "always")
	members["automatic_payment_methods"] = object{"allow_redirects": redirects, "enabled": true}
	if members.Str("currency") == "usd" {
		members["payment_method_types"] = []any{"card", "us_bank_account"}
	}
	return nil
}

// describeIntent sets the given members, except the payment method and the customer.
func (c Call) describeIntent(o object) error {
	if c.Form.Has("amount") {
		o["amount"] = c.Num("amount")
	}
	if c.Form.Has("currency") {
		o["currency"] = strings.ToLower(c.Form.Str("currency"))
	}
	if c.Form.Has("amount") || c.Form.Has("currency") {
		if err := checkMoney(o.Num("amount"), o.Str("currency")); err != nil {
			return err
		}
	}
	return cmp.Or(c.share(o), c.describeWithTypes(o))
}

// describeWithTypes is Describe, with the types of payment methods.
func (c Call) describeWithTypes(o object) error {
	types := c.Form.List("payment_method_types")
	for _, typ := range types {
		if typ != "card" && typ != "us_bank_account" {
			return shape.Invalid("", "payment_method_types", fmt.Sprintf("stripefake only supports the payment method types card "+
				"and us_bank_account (got %v).", typ))
		}
	}
	if types != nil {
		o["payment_method_types"] = types
	}
	return c.Describe(o)
}

// share sets the part of the payment for another account.
func (c Call) share(o object) error {
	if transfer := c.Form.Sub("transfer_data"); transfer.Given() {
		if to := transfer.Str("destination"); !strings.HasPrefix(to, "acct_") {
			return shape.Absent("destination", to, "transfer_data[destination]")
		}
		o["transfer_data"] = object{"destination": transfer.Str("destination")}
	}
	if !c.Form.Has("application_fee_amount") {
		return nil
	}
	fee := c.Num("application_fee_amount")
	switch {
	case !c.Connected() && o["transfer_data"] == nil:
		return shape.Invalid("", "application_fee_amount", "Can only apply an application_fee when the request is made "+
			"on behalf of another account (using an OAuth key, the Stripe-Account header, or the destination parameter).")
	case fee > o.Num("amount"):
		return shape.Invalid("", "application_fee_amount", "The application fee must be less than or equal to the "+
			"charge amount.")
	}
	o["application_fee_amount"] = fee
	return nil
}

func (c Call) listIntents() (object, error) {
	customer := c.Form.Str("customer")
	if customer != "" && c.Space.Get("customer", customer) == nil {
		return nil, shape.Absent("customer", customer, "customer")
	}
	return c.List("payment_intent", func(pi object) bool { return c.Keeps(pi, "customer") })
}

// unexpected is the error of an action that the state of a payment or setup intent does not allow.
func unexpected(o object, message string) error {
	e := shape.Refused(http.StatusBadRequest, o.Str("object")+"_unexpected_state", "", message)
	e.Intent = o
	return e
}

// IsOpen reports whether the payment intent can still be confirmed and changed.
func IsOpen(pi object) bool {
	return slices.Contains([]string{NeedsMethod, needsConfirm, NeedsAction}, pi.Str("status"))
}

func (c Call) updateIntent(pi object) (object, error) {
	for _, name := range c.Form.Names() {
		if name != "metadata" && name != "description" && name != "expand" && !IsOpen(pi) {
			return nil, unexpected(pi, "This PaymentIntent's "+name+" could not be updated because it has a status of "+
				pi.Str("status")+". You may only update the "+name+" of a PaymentIntent with one of the following "+
				"statuses: requires_payment_method, requires_confirmation, requires_action.")
		}
	}
	for _, name := range []string{"amount", "currency", "application_fee_amount", "transfer_data"} {
		if c.Form.Has(name) && pi.Str("_invoice") != "" {
			return nil, shape.Invalid("", name, "The parameter "+name+" cannot be updated on a PaymentIntent that was "+
				"created by an invoice. You can try again without that parameter.")
		}
	}
	after := pi.Clone()
	if id := c.Form.Str("customer"); id != "" && id != pi.Str("customer") {
		if pi.Str("customer") != "" {
			return nil, shape.Invalid("", "customer", "You cannot modify `customer` on a PaymentIntent once it already has "+
				"been set. To fulfill a payment with a different Customer, cancel this PaymentIntent and create a new one.")
		}
		if _, err := c.Customer(id, "customer"); err != nil {
			return nil, err
		}
		after["customer"] = id
	}
	if err := c.describeIntent(after); err != nil {
		return nil, err
	}
	reconfirm := after.Num("amount") != pi.Num("amount") || after.Str("currency") != pi.Str("currency")
	if c.Form.Has("payment_method") {
		reconfirm = true
		after["payment_method"], after["status"] = nil, NeedsMethod
		if id := c.Form.Str("payment_method"); id != "" {
			m, err := c.fitting(after, id)
			if err != nil {
				return nil, err
			}
			after["payment_method"], after["status"] = m.ID(), needsConfirm
		}
	}
	if reconfirm && after.Str("status") == NeedsAction {
		after["status"] = needsConfirm
	}
	if reconfirm {
		after["next_action"] = nil
	}
	after["last_payment_error"] = nil // Stripe documents that every update clears it
	maps.Copy(pi, after)
	return pi, nil
}

func (c Call) cancelOfPath(pi object) (object, error) {
	if pi.Str("_invoice") != "" {
		return nil, unexpected(pi, "You cannot cancel this PaymentIntent because it was created by an invoice. Void the "+
			"invoice instead.")
	}
	return pi, c.CancelIntent(pi, c.Form.Str("cancellation_reason"))
}

// CancelIntent cancels the payment intent and releases an authorized amount. reason may be "".
func (c Call) CancelIntent(pi object, reason string) error {
	if !IsOpen(pi) && pi.Str("status") != NeedsCapture {
		return unexpected(pi, "You cannot cancel this PaymentIntent because it has a status of "+pi.Str("status")+
			". Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, "+
			"requires_capture, requires_confirmation, requires_action, processing.")
	}
	if pi.Str("status") == NeedsCapture {
		charge := c.Space.Get("charge", pi.Str("latest_charge"))
		charge["amount_refunded"], charge["refunded"] = charge.Num("amount"), true
		c.Emit("charge.refunded", charge, nil)
	}
	pi["status"], pi["canceled_at"], pi["cancellation_reason"] = canceled, c.TimeOf(pi.Str("customer")),
		shape.OrNil(reason)
	pi["amount_capturable"], pi["next_action"] = int64(0), nil
	c.Emit("payment_intent.canceled", pi, nil)
	return nil
}

// checkURL refuses an address that no browser can open.
func checkURL(text, param string) error {
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		len(text) > 5000 {
		return shape.Invalid("url_invalid", param, "Not a valid URL: "+param+" must begin with https:// or http://.")
	}
	return nil
}
