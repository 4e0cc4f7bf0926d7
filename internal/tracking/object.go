package tracking

import "time"

// The kinds of Stripe's objects followed here, in Stripe's words. Other kinds keep theirs.
const (
	KindPayment        = "payment_intent"
	KindSubscription   = "subscription"
	KindSchedule       = "subscription_schedule"
	KindInvoice        = "invoice"
	KindInvoicePayment = "invoice_payment"
	KindCharge         = "charge"
	KindRefund         = "refund"
	KindDispute        = "dispute"
	KindApplication    = "application" // of account.application.deauthorized
)

// An Object is one of Stripe's objects, as an event or an answer tells it, in any version of the
// API. An untold member is zero.
type Object struct {
	Kind    string
	ID      string
	Status  string    // Stripe's word
	Created time.Time // UTC
	Tag     Tag       // our own metadata, of the object or of its owner

	// Fetched: the object as Stripe had it when we asked, and not as an event told at some time.
	Fetched bool

	// Failed, of a payment intent: its latest attempt was declined.
	Failed bool
	// Code, of a payment intent: why, in Stripe's words. Of a subscription: why it was cancelled.
	Code string

	Amount   int64  // minor units, of a payment intent, refund or dispute
	Currency string // ISO 4217, upper case

	// Its owners. With InvoiceTold, of a payment intent, an Invoice of "" means none made it.
	// Versions since 2025-03-31.basil do not tell.
	Payment, Invoice, Subscription, Schedule, Customer string
	InvoiceTold                                        bool

	Refunded int64    // of a charge: minor units, all refunds so far
	Refunds  []Refund // of a charge or refund: those listed in it
}

// A Refund is one refund of a payment.
type Refund struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"` // minor units
	Status string `json:"status"` // pending, requires_action, succeeded, canceled or failed
}

// A Dispute is one dispute of a payment.
type Dispute struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"` // minor units
	Status string `json:"status"` // needs_response, under_review, won, lost, warning_…
}

// The metadata of a purchase's objects at Stripe. Billing's intents have MetaInstallation, too.
const (
	MetaInstallation = "duesday_installation"
	MetaPurchase     = "duesday_purchase"      // UUID
	MetaKind         = "duesday_purchase_kind" // one of Kind
)

// A Tag is the purpose of an object at Stripe, by its metadata.
type Tag struct {
	Installation string // of its Duesday
	Purchase     string // UUID; "" if it is no purchase's
	Kind         Kind   // of the purchase

	// Charge: it is a payment intent of billing's, for a period of one of Duesday's own
	// subscriptions.
	Charge bool
	// ChargeAccount and ChargeSubscription name the subscription.
	ChargeAccount, ChargeSubscription string
}
