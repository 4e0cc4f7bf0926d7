package tracking

import "time"

// The kinds of Stripe's objects that mean something here, in Stripe's words. Objects of other
// kinds have their own.
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

// An Object is what an event, or an answer of Stripe's, says of one of its objects, whatever
// the version of the API it is written in. What is not said is zero.
type Object struct {
	Kind    string
	ID      string
	Status  string    // Stripe's word
	Created time.Time // UTC
	Tag     Tag       // our own metadata, of the object or of what it belongs to

	// Fetched: the object as Stripe had it when we asked, and not as an event told at some time.
	Fetched bool

	// Failed, of a payment intent: its latest attempt was declined.
	Failed bool
	// Code, of a payment intent: why, in Stripe's words. Of a subscription: why it was cancelled.
	Code string

	Amount   int64  // minor units, of a payment intent, refund or dispute
	Currency string // ISO 4217, upper case

	// What it belongs to. InvoiceTold, of a payment intent: Invoice is all there is to know, and
	// "" means that no invoice made it. Versions since 2025-03-31.basil do not tell.
	Payment, Invoice, Subscription, Schedule, Customer string
	InvoiceTold                                        bool

	Refunded int64    // of a charge: minor units, all refunds so far
	Refunds  []Refund // of a charge or refund: those that it tells of
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

// The metadata by which an object at Stripe is known as a purchase's. MetaInstallation is the
// one that billing's intents have too.
const (
	MetaInstallation = "duesday_installation"
	MetaPurchase     = "duesday_purchase"      // UUID
	MetaKind         = "duesday_purchase_kind" // one of Kind
)

// A Tag is what the metadata of an object at Stripe say of what it is for.
type Tag struct {
	Installation string // of the Duesday that made it
	Purchase     string // UUID; "" of what is not a purchase's
	Kind         Kind   // of the purchase

	// Charge: it is a payment intent of billing's, for a period of one of Duesday's own
	// subscriptions.
	Charge bool
	// ChargeAccount and ChargeSubscription name that subscription.
	ChargeAccount, ChargeSubscription string
}
