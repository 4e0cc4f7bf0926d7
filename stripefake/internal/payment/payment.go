// Package payment fakes customers, payment methods, payment and setup intents, checkout sessions, charges,
// refunds, disputes and payouts. It does not know invoices and subscriptions: package billing follows the steps
// that this package names.
package payment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

type object = shape.Object

// A Call is a request about these resources, or a change by itself.
type Call struct{ *api.Call }

// The steps for followers of this package.
const (
	IntentMoved    = "payment_intent.moved" // with the payment intent in its new state
	CustomerLeaves = "customer.leaves"      // with the customer, before it is deleted
)

// Routes are the endpoints of this package.
func Routes() []api.Route {
	return slices.Concat(customerRoutes(), methodRoutes(), intentRoutes(), setupRoutes(), checkoutRoutes(),
		chargeRoutes(), disputeRoutes(), payoutRoutes())
}

// TimedSession is the expiry of checkout sessions.
func TimedSession() api.Timed {
	return api.Timed{Rank: 3, Due: sessionDue, Happens: func(c *api.Call, o object) { Call{c}.expireSession(o) }}
}

func on(method, path, params string, do func(Call) (object, error)) api.Route {
	handler := func(c *api.Call) (object, error) { return do(Call{c}) }
	return api.Route{Method: method, Path: path, Params: params, Do: handler}
}

// find returns a handler for the object that the path names. param names it in the error.
func find(kindName, param string) func(Call) (object, error) {
	return func(c Call) (object, error) { return c.Find(kindName, c.ID, param) }
}

// IntentKind is the kind of the payment intent or setup intent, by the prefix of its id.
func IntentKind(id string) string {
	if strings.HasPrefix(id, "seti_") {
		return "setup_intent"
	}
	return "payment_intent"
}

// presentment are the currencies of charges, by Stripe's documentation "Supported currencies".
const presentment = " usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp " +
	"byn bzd cad cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd " +
	"hnl htg huf idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk " +
	"mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar " +
	"sbd scr sek sgd shp sle sos srd std szl thb tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xof " +
	"xpf yer zar zmw "

const (
	zeroDecimal  = " bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf "
	threeDecimal = " bhd jod kwd omr tnd "
	wholeOnly    = " isk ugx "     // zero-decimal, but with two decimals 00
	twelveDigits = " cop idr lbp " // amounts of up to twelve digits
)

// minimums are the smallest charges in minor units, as far as Stripe lists them. Others have 1 here.
var minimums = map[string]int64{"usd": 50, "aed": 200, "aud": 50, "bgn": 100, "brl": 50, "cad": 50, "chf": 50,
	"czk": 1500, "dkk": 250, "eur": 50, "gbp": 30, "hkd": 400, "huf": 17500, "inr": 50, "jpy": 50, "mxn": 1000,
	"myr": 200, "nok": 300, "nzd": 50, "pln": 200, "ron": 200, "sek": 300, "sgd": 50, "thb": 1000}

func among(list, word string) bool { return strings.Contains(list, " "+word+" ") }

// checkCurrency refuses the currencies that Stripe does not charge in. It wants lower case.
func checkCurrency(currency string) error {
	if len(currency) != 3 || !among(presentment, currency) {
		return shape.Invalid("", "currency", "Invalid currency: "+shape.Shown(currency)+". Stripe currently supports "+
			"these currencies: "+strings.Join(strings.Fields(presentment), ", "))
	}
	return nil
}

// checkMoney refuses an amount that Stripe cannot charge in the currency.
func checkMoney(amount int64, currency string) error {
	if err := checkCurrency(currency); err != nil {
		return err
	}
	most := int64(shape.MaxAmount)
	if among(twelveDigits, currency) {
		most = 999_999_999_999
	}
	switch least := max(minimums[currency], 1); {
	case amount < 1:
		return shape.Invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	case amount < least:
		return shape.Invalid("amount_too_small", "amount", "Amount must be at least "+ShowMoney(least, currency)+" "+currency)
	case amount > most:
		return shape.Invalid("amount_too_large", "amount", "Amount must be no more than "+ShowMoney(most,
			currency)+" "+currency)
	case among(threeDecimal, currency) && amount%10 != 0:
		return shape.Invalid("parameter_invalid_integer", "amount",
			"Invalid amount: the last digit of an amount in "+currency+" must be 0.")
	case among(wholeOnly, currency) && amount%100 != 0:
		return shape.Invalid("parameter_invalid_integer", "amount",
			"Invalid amount: an amount in "+currency+" must be divisible by 100.")
	}
	return nil
}

// ShowMoney writes an amount as messages do.
func ShowMoney(amount int64, currency string) string {
	text := strconv.FormatInt(amount, 10)
	switch {
	case among(threeDecimal, currency):
		text = fmt.Sprintf("%d.%03d", amount/1000, amount%1000)
	case !among(zeroDecimal, currency):
		text = fmt.Sprintf("%d.%02d", amount/100, amount%100)
	}
	return map[string]string{"usd": "$", "eur": "€", "gbp": "£"}[currency] + text
}
