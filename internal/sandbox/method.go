package sandbox

import (
	"github.com/duesday/duesday/internal/processor"
)

// The test payment methods with a behaviour of their own. Those named pm_card_… are
// Stripe's names for the same behaviour.
const (
	methodFlaky   = "pm_sandbox_flaky"   // declines its first attempt in each period, pays the second
	methodTimeout = "pm_sandbox_timeout" // charges, but the answer is lost

	methodDebit = "pm_sandbox_debit" // a bank debit, which is processing until the bank answers

	methodPendingRefund = "pm_card_pendingRefund" // pays, and its refunds take their time
)

// An outcome is the result of an attempt with a payment method.
type outcome struct {
	state processor.State
	code  string
	hard  bool
}

// The outcomes of payment methods, by their tokens.
var (
	paid      = outcome{state: processor.Succeeded}
	generic   = outcome{state: processor.Declined, code: "generic_decline"}
	noMethod  = outcome{state: processor.Declined, code: "resource_missing", hard: true}
	byMethods = map[string]outcome{
		"pm_card_visa":                                 paid,
		"pm_card_visa_chargeDeclined":                  generic,
		"pm_card_visa_chargeDeclinedInsufficientFunds": {state: processor.Declined, code: "insufficient_funds"},
		"pm_card_visa_chargeDeclinedLostCard":          {state: processor.Declined, code: "lost_card", hard: true},
		"pm_card_visa_chargeDeclinedStolenCard":        {state: processor.Declined, code: "stolen_card", hard: true},
		"pm_card_chargeDeclinedExpiredCard":            {state: processor.Declined, code: "expired_card", hard: true},
		"pm_sandbox_doNotTryAgain":                     {state: processor.Declined, code: "do_not_try_again", hard: true},
		"pm_card_authenticationRequired":               {state: processor.RequiresAction},
		"pm_sandbox_processing":                        {state: processor.Processing},
		methodDebit:                                    {state: processor.Processing},
		methodTimeout:                                  paid,
		methodPendingRefund:                            paid,
		methodFlaky:                                    paid, // after its decline
	}
)

// Knows reports whether the sandbox has the payment method. It declines every attempt with an
// unknown method.
func Knows(method string) bool {
	_, ok := byMethods[method]
	return ok
}
