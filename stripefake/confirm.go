package stripefake

import (
	"maps"
	"net/http"
	"strings"
)

// maxConfirms is how often a payment intent can be confirmed; the next time cancels it.
// Stripe documents that there is such a limit, and that it varies.
const maxConfirms = 20

const (
	lacksMethod = "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the PaymentIntent with a payment method and then confirm it again, " +
		"or confirm it again directly with a payment method or ConfirmationToken."
	noReturnURL = "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because some of these payment methods might redirect your customer off of your page, " +
		"you must provide a `return_url`. If you don't want to accept redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and " +
		"`automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents."
	failedAuthentication = "The provided PaymentMethod has failed authentication. You can provide payment_method_data or a new PaymentMethod to attempt to fulfill this PaymentIntent again."
)

// confirming reads what a request says of how the payment intent is confirmed.
func (c *call) confirming(pi object) (offSession bool, err error) {
	off, err := c.choice("off_session", "true", "false", "one_off", "recurring")
	if err != nil {
		return false, err
	}
	strict, err := c.flag("error_on_requires_action")
	if err != nil {
		return false, err
	}
	sdk, err := c.flag("use_stripe_sdk")
	if err != nil {
		return false, err
	}
	if back := c.form.str("return_url"); back != "" {
		if err := checkURL(back, "return_url"); err != nil {
			return false, err
		}
	} else if !sdk && pi.sub("automatic_payment_methods").str("allow_redirects") == "always" && pi.str("_return_url") == "" {
		return false, invalid("", "return_url", noReturnURL)
	}
	offSession = off != "" && off != "false"
	pi["_strict"] = strict
	pi["_sdk"] = sdk
	return offSession, nil
}

func (c *call) confirmIntent() (object, error) {
	pi, err := c.intentOfPath()
	if err != nil {
		return nil, err
	}
	if err := confirmable(pi); err != nil {
		return nil, err
	}
	after := pi.clone()
	if err := c.describeIntent(after); err != nil {
		return nil, err
	}
	offSession, err := c.confirming(after)
	if err != nil {
		return nil, err
	}
	method := c.form.str("payment_method")
	if method == "" {
		method = pi.str("payment_method")
	}
	if method == "" {
		return nil, unexpected(pi, lacksMethod)
	}
	m, err := c.fitting(after, method)
	if err != nil {
		return nil, err
	}
	maps.Copy(pi, after)
	return pi, c.confirm(pi, m.id(), offSession, c.form.str("return_url"))
}

func confirmable(pi object) error {
	switch status := pi.str("status"); {
	case status == succeeded:
		return unexpected(pi, "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.")
	case !isOpen(pi):
		return unexpected(pi, "You cannot confirm this PaymentIntent because it has a status of "+status+
			". Only a PaymentIntent with one of the following statuses may be confirmed: requires_confirmation, requires_action.")
	}
	return nil
}

// confirm tries to collect the payment with the method ("": that of the payment intent).
// The error is an *apiError: that of a decline, after which the payment intent needs another
// method, or that nothing has been done. returnURL may be empty.
func (c *call) confirm(pi object, method string, offSession bool, returnURL string) error {
	if err := confirmable(pi); err != nil {
		return err
	}
	if method == "" {
		method = pi.str("payment_method")
	}
	if method == "" {
		return unexpected(pi, lacksMethod)
	}
	m, err := c.fitting(pi, method)
	if err != nil {
		return err
	}
	if returnURL != "" {
		pi["_return_url"] = returnURL
	}
	if pi["_confirms"] = pi.num("_confirms") + 1; pi.num("_confirms") > maxConfirms {
		if err := c.cancelIntent(pi, "automatic"); err != nil {
			return err
		}
		return confirmable(pi)
	}
	pi["payment_method"], pi["next_action"], pi["last_payment_error"] = m.id(), nil, nil
	return c.tryPayment(pi, m, offSession, false)
}

// tryPayment is one try to collect the payment.
func (c *call) tryPayment(pi, m object, offSession, authenticated bool) error {
	acts := behaviourOf(m)
	asks := !authenticated && (!offSession && acts.on || offSession && acts.off && !(acts.setupFrees && m.yes("_setup")))
	switch {
	case asks && (offSession || pi.yes("_strict")):
		return c.declined(pi, m, "authentication_required")
	case asks:
		c.askCustomer(pi, m)
		return nil
	case acts.bank:
		charge := c.charge(pi, m, object{"status": "pending", "captured": false, "outcome": nil})
		pi["status"], pi["latest_charge"], pi["processing"] = processing, charge.id(), nil
		c.spend(pi, m)
		c.emit("charge.pending", charge, nil)
		c.emit("payment_intent.processing", pi, nil)
		return nil
	case acts.declines != "":
		return c.declined(pi, m, acts.declines)
	case acts.flaky && !pi.yes("_flaked"):
		pi["_flaked"] = true
		return c.declined(pi, m, "generic_decline")
	}
	c.paid(pi, m)
	if acts.breaks {
		c.breakOff = true
	}
	return nil
}

// spend notes that the payment method has been used: for once, unless a customer has it or is
// to have it.
func (c *call) spend(pi, m object) {
	switch {
	case m.str("customer") != "":
	case pi.str("setup_future_usage") != "" && pi.str("customer") != "":
		c.attached(m, pi.str("customer"))
	default:
		m["_used"] = true
	}
}

// paid is the attempt that succeeds.
func (c *call) paid(pi, m object) {
	manual := pi.str("capture_method") == "manual"
	c.spend(pi, m)
	charge := c.charge(pi, m, object{"status": succeeded, "paid": true, "captured": !manual, "outcome": authorized()})
	pi["latest_charge"], pi["next_action"] = charge.id(), nil
	if manual {
		pi["status"], pi["amount_capturable"] = needsCapture, pi.num("amount")
		c.emit("charge.succeeded", charge, nil)
		c.emit("payment_intent.amount_capturable_updated", pi, nil)
		return
	}
	charge["amount_captured"] = charge.num("amount")
	pi["status"], pi["amount_received"] = succeeded, pi.num("amount")
	c.emit("charge.succeeded", charge, nil)
	c.emit("payment_intent.succeeded", pi, nil)
	c.follow(intentMoved, pi)
	if acts := behaviourOf(m); acts.disputes != "" {
		c.disputeOf(charge, acts.disputes, acts.inquiry)
	}
}

// declined is the attempt that fails for the code.
func (c *call) declined(pi, m object, code string) error {
	d := reasonFor(code)
	if m.str("customer") == "" {
		m["_used"] = true
	}
	charge := c.charge(pi, m, object{"status": "failed", "captured": false, "outcome": declineOutcome(code), "failure_code": d.code, "failure_message": d.message})
	pi["latest_charge"] = charge.id()
	c.paymentFailed(pi, paymentError("card_error", d, charge.id(), m), charge)
	return &apiError{status: http.StatusPaymentRequired, kind: "card_error", code: d.code, decline: d.decline, advice: d.advice, message: d.message,
		intent: pi, method: m, charge: charge.id()}
}

// paymentFailed is what becomes of the payment intent after a failed attempt; charge may be nil.
func (c *call) paymentFailed(pi, why, charge object) {
	pi["status"], pi["payment_method"], pi["next_action"], pi["last_payment_error"] = needsMethod, nil, nil, why
	if charge != nil {
		c.emit("charge.failed", charge, nil)
	}
	c.emit("payment_intent.payment_failed", pi, nil)
	c.follow(intentMoved, pi)
}

// askCustomer is the attempt that waits for the customer.
func (c *call) askCustomer(pi, m object) {
	pi["status"], pi["next_action"] = needsAction, c.nextAction(pi)
	c.emit("payment_intent.requires_action", pi, nil)
	c.follow(intentMoved, pi)
}

// nextAction leads the customer to a page of this fake, for a payment or setup intent.
func (c *call) nextAction(o object) object {
	page := c.base + "/redirect/authenticate/" + o.id()
	if back := o.str("_return_url"); back != "" && !o.yes("_sdk") {
		return object{"type": "redirect_to_url", "redirect_to_url": object{"return_url": back, "url": page}}
	}
	return object{"type": "use_stripe_sdk", "use_stripe_sdk": object{"type": "three_d_secure_redirect", "stripe_js": page, "source": strings.Replace(o.id(), "_", "_src_", 1)}}
}

// authenticate is the customer's answer to requires_action, for a payment intent or a setup
// intent. A payment that is declined after it is no error.
func (c *call) authenticate(o object, ok bool) error {
	if o.str("status") != needsAction {
		return unexpected(o, "There is nothing to authenticate: "+o.id()+" has a status of "+o.str("status")+".")
	}
	if o.str("object") == "setup_intent" {
		return c.authenticateSetup(o, ok)
	}
	m := c.space.get("payment_method", o.str("payment_method"))
	if !ok {
		if m.str("customer") == "" {
			m["_used"] = true
		}
		d := decline{code: "payment_intent_authentication_failure", message: failedAuthentication}
		c.paymentFailed(o, paymentError("invalid_request_error", d, "", m), nil)
		return nil
	}
	if err := c.tryPayment(o, m, false, true); err != nil {
		c.Fake.o.Log.Debug("declined after authentication", "intent", o.id())
	}
	return nil
}

// finish is the bank's answer to a payment intent that is processing, or to a refund that is
// still open to one.
func (c *call) finish(o object, ok bool) error {
	if o.str("object") == "refund" {
		return c.finishRefund(o, ok)
	}
	if o.str("status") != processing {
		return unexpected(o, "There is nothing to finish: "+o.id()+" has a status of "+o.str("status")+".")
	}
	charge := c.space.get("charge", o.str("latest_charge"))
	m := c.space.get("payment_method", o.str("payment_method"))
	code := behaviourOf(m).declines
	if ok && code == "" {
		charge["status"], charge["paid"], charge["captured"], charge["amount_captured"], charge["outcome"] = succeeded, true, true, charge.num("amount"), authorized()
		o["status"], o["amount_received"] = succeeded, o.num("amount")
		c.emit("charge.succeeded", charge, nil)
		c.emit("payment_intent.succeeded", o, nil)
		c.follow(intentMoved, o)
		return nil
	}
	if code == "" {
		code = "insufficient_funds"
	}
	d := decline{code: "payment_intent_payment_attempt_failed", decline: code, message: "The payment failed: " + strings.ReplaceAll(code, "_", " ") + "."}
	charge["status"], charge["failure_code"], charge["failure_message"] = "failed", code, d.message
	outcome := declineOutcome("generic_decline")
	outcome["advice_code"], outcome["reason"] = nil, code
	charge["outcome"] = outcome
	c.paymentFailed(o, paymentError("card_error", d, charge.id(), m), charge)
	return nil
}
