package payment

import (
	"cmp"
	"maps"
	"net/http"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// maxConfirms is how often a payment intent can be confirmed. It varies at Stripe. The next cancels.
const maxConfirms = 20

const (
	lacksMethod = "You cannot confirm this PaymentIntent because it's missing a payment method. You can either " +
		"update the PaymentIntent with a payment method and then confirm it again, " +
		"or confirm it again directly with a payment method or ConfirmationToken."
	noReturnURL = "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because " +
		"some of these payment methods might redirect your customer off of your page, " +
		"you must provide a `return_url`. If you don't want to accept redirect-based payment methods, set " +
		"`automatic_payment_methods[enabled]` to `true` and " +
		"`automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents."
	failedAuthentication = "The provided PaymentMethod has failed authentication. You can provide " +
		"payment_method_data or a new PaymentMethod to attempt to fulfill this PaymentIntent again."
	failedSetup = "The latest attempt to set up the payment method has failed because authentication failed."
)

// confirming reads how a request confirms the payment intent.
func (c Call) confirming(pi object) (offSession bool, err error) {
	off := c.Form.Str("off_session")
	pi["_strict"] = c.Flag("error_on_requires_action")
	return off != "" && off != "false", c.wayBack(pi, pi.Str("_return_url") != "")
}

// wayBack reads the customer's way back from a bank. known: an earlier request has it.
func (c Call) wayBack(o object, known bool) error {
	back, sdk := c.Form.Str("return_url"), c.Flag("use_stripe_sdk")
	o["_sdk"] = sdk
	switch {
	case back != "":
		o["_return_url"] = back
		return checkURL(back, "return_url")
	case !sdk && !known && o.Sub("automatic_payment_methods").Str("allow_redirects") == "always":
		return shape.Invalid("", "return_url", noReturnURL)
	}
	return nil
}

func (c Call) confirmIntent(pi object) (object, error) {
	after := pi.Clone()
	offSession, err := c.confirming(after)
	if err := cmp.Or(confirmable(pi), c.describeWithTypes(after), err); err != nil {
		return nil, err
	}
	method := cmp.Or(c.Form.Str("payment_method"), pi.Str("payment_method"))
	if method == "" {
		return nil, unexpected(pi, lacksMethod)
	}
	m, err := c.fitting(after, method)
	if err != nil {
		return nil, err
	}
	maps.Copy(pi, after)
	return pi, c.Confirm(pi, m.ID(), offSession)
}

func confirmable(pi object) error {
	switch status := pi.Str("status"); {
	case status == Succeeded:
		return unexpected(pi, "You cannot confirm this PaymentIntent because it has already succeeded after being "+
			"previously confirmed.")
	case !IsOpen(pi):
		return unexpected(pi, "You cannot confirm this PaymentIntent because it has a status of "+status+
			". Only a PaymentIntent with one of the following statuses may be confirmed: requires_confirmation, "+
			"requires_action.")
	}
	return nil
}

// Confirm tries to collect the payment with the method ("": the payment intent's own). The error
// is a *shape.Error: a decline, after which the payment intent needs another method, or a refusal,
// which changes nothing.
func (c Call) Confirm(pi object, method string, offSession bool) error {
	if err := confirmable(pi); err != nil {
		return err
	}
	if method = cmp.Or(method, pi.Str("payment_method")); method == "" {
		return unexpected(pi, lacksMethod)
	}
	m, err := c.fitting(pi, method)
	if err != nil {
		return err
	}
	if pi["_confirms"] = pi.Num("_confirms") + 1; pi.Num("_confirms") > maxConfirms {
		if err := c.CancelIntent(pi, "automatic"); err != nil {
			return err
		}
		return confirmable(pi)
	}
	pi["payment_method"], pi["next_action"], pi["last_payment_error"] = m.ID(), nil, nil
	return c.tryPayment(pi, m, offSession, false)
}

func (c Call) tryPayment(pi, m object, offSession, authenticated bool) error {
	acts := BehaviourOf(m)
	asks := !authenticated && (!offSession && acts.on || offSession && acts.Off && !(acts.SetupFrees && m.Yes("_setup")))
	switch {
	case asks && (offSession || pi.Yes("_strict")):
		return c.declined(pi, m, "authentication_required")
	case asks:
		pi["status"], pi["next_action"] = NeedsAction, c.nextAction(pi)
		c.Emit("payment_intent.requires_action", pi, nil)
		c.Follow(IntentMoved, pi)
		return nil
	case acts.bank:
		charge := c.charge(pi, m, object{"status": "pending", "captured": false, "outcome": nil})
		pi["status"], pi["latest_charge"], pi["processing"] = Processing, charge.ID(), nil
		c.spend(pi, m)
		c.Emit("charge.pending", charge, nil)
		c.Emit("payment_intent.processing", pi, nil)
		return nil
	case acts.declines != "":
		return c.declined(pi, m, acts.declines)
	case acts.flaky && !pi.Yes("_flaked"):
		pi["_flaked"] = true
		return c.declined(pi, m, "generic_decline")
	}
	c.paid(pi, m)
	if acts.breaks {
		c.BreakOff = true
	}
	return nil
}

// spend notes the use of the payment method. One that no customer has or gets can be used once.
func (c Call) spend(pi, m object) {
	switch {
	case m.Str("customer") != "":
	case pi.Str("setup_future_usage") != "" && pi.Str("customer") != "":
		c.attached(m, pi.Str("customer"))
	default:
		m["_used"] = true
	}
}

func (c Call) paid(pi, m object) {
	manual := pi.Str("capture_method") == "manual"
	c.spend(pi, m)
	charge := c.charge(pi, m, object{"status": Succeeded, "paid": true, "captured": !manual, "outcome": authorized()})
	pi["latest_charge"], pi["next_action"] = charge.ID(), nil
	if manual {
		pi["status"], pi["amount_capturable"] = NeedsCapture, pi.Num("amount")
		c.Emit("charge.succeeded", charge, nil)
		c.Emit("payment_intent.amount_capturable_updated", pi, nil)
		return
	}
	c.collected(pi, charge)
	if acts := BehaviourOf(m); acts.disputes != "" {
		c.disputeOf(charge, acts.disputes, acts.inquiry)
	}
}

// collected is the end of a payment whose whole amount was captured.
func (c Call) collected(pi, charge object) {
	charge["amount_captured"] = charge.Num("amount")
	pi["status"], pi["amount_received"] = Succeeded, pi.Num("amount")
	c.Emit("charge.succeeded", charge, nil)
	c.Emit("payment_intent.succeeded", pi, nil)
	c.Follow(IntentMoved, pi)
}

func (c Call) declined(pi, m object, code string) error {
	e := reasonFor(code)
	charge := c.charge(pi, m, object{"status": "failed", "captured": false, "outcome": declineOutcome(code),
		"failure_code": e.Code, "failure_message": e.Message})
	pi["latest_charge"], e.Charge = charge.ID(), charge.ID()
	c.paymentFailed(pi, m, charge, e)
	e.Intent, e.Method = pi, m
	return e
}

// paymentFailed ends an attempt; charge may be nil. A method without a customer is used up.
func (c Call) paymentFailed(pi, m, charge object, why *shape.Error) {
	pi["status"], pi["payment_method"], pi["next_action"] = NeedsMethod, nil, nil
	pi["last_payment_error"] = paymentError(why, m)
	if m.Str("customer") == "" {
		m["_used"] = true
	}
	if charge != nil {
		c.Emit("charge.failed", charge, nil)
	}
	c.Emit("payment_intent.payment_failed", pi, nil)
	c.Follow(IntentMoved, pi)
}

// nextAction leads the customer to a page of this fake, for a payment or setup intent.
func (c Call) nextAction(o object) object {
	page := c.Base + "/redirect/authenticate/" + o.ID()
	if back := o.Str("_return_url"); back != "" && !o.Yes("_sdk") {
		return object{"type": "redirect_to_url", "redirect_to_url": object{"return_url": back, "url": page}}
	}
	return object{"type": "use_stripe_sdk", "use_stripe_sdk": object{"type": "three_d_secure_redirect",
		"stripe_js": page, "source": strings.Replace(o.ID(), "_", "_src_", 1)}}
}

// Authenticate is the customer's answer to requires_action. A decline after it is no error.
func (c Call) Authenticate(o object, ok bool) error {
	if o.Str("status") != NeedsAction {
		return unexpected(o, "Only an intent that requires action can be authenticated. "+o.ID()+
			" has a status of "+o.Str("status")+".")
	}
	m := c.Space.Get("payment_method", o.Str("payment_method"))
	failure := shape.Refused(http.StatusBadRequest, o.Str("object")+"_authentication_failure", "", failedAuthentication)
	switch isSetup := o.Str("object") == "setup_intent"; {
	case isSetup && ok:
		c.setupSucceeded(o, m)
	case isSetup:
		failure.Message = failedSetup
		c.setupFailed(o, m, failure)
	case ok:
		_ = c.tryPayment(o, m, false, true) // the payment intent keeps the decline
	default:
		c.paymentFailed(o, m, nil, failure)
	}
	return nil
}

// Finish is the bank's answer to a payment intent that is processing, or to an open refund.
func (c Call) Finish(o object, ok bool) error {
	if o.Str("object") == "refund" {
		return c.finishRefund(o, ok)
	}
	if o.Str("status") != Processing {
		return unexpected(o, "Only a processing payment intent can be completed. "+o.ID()+
			" has a status of "+o.Str("status")+".")
	}
	charge := c.Space.Get("charge", o.Str("latest_charge"))
	m := c.Space.Get("payment_method", o.Str("payment_method"))
	code := BehaviourOf(m).declines
	if ok && code == "" {
		charge["status"], charge["paid"], charge["captured"], charge["outcome"] = Succeeded, true, true, authorized()
		c.collected(o, charge)
		return nil
	}
	code = cmp.Or(code, "insufficient_funds")
	e := &shape.Error{Kind: "card_error", Code: "payment_intent_payment_attempt_failed", Decline: code,
		Charge: charge.ID(), Message: "The payment failed: " + strings.ReplaceAll(code, "_", " ") + "."}
	charge["status"], charge["failure_code"], charge["failure_message"] = "failed", code, e.Message
	outcome := declineOutcome("generic_decline")
	outcome["advice_code"], outcome["reason"] = nil, code
	charge["outcome"] = outcome
	c.paymentFailed(o, m, charge, e)
	return nil
}
