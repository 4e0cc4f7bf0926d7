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
)

// A Kind says how a purchase is paid.
type Kind string

// The kinds of purchases.
const (
	Legacy       Kind = "legacy"       // a payment intent, completed by the buyer's client
	Product      Kind = "product"      // one payment: customer, invoice, paid at once
	Subscribe    Kind = "subscription" // a Stripe subscription
	SplitPayment Kind = "split"        // a subscription schedule with a fixed number of payments
)

// An Object is one of Stripe's, as told in any version of the API. An untold member is zero.
type Object struct {
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	Status  string    `json:"status,omitempty"` // Stripe's word
	Created time.Time `json:"created,omitzero"` // UTC

	// Fetched: the object as Stripe had it when we asked, and not as an event told at some time.
	Fetched bool `json:"seen,omitempty"`

	// Thin: an event named the object and did not contain it. It has a Kind and an ID alone.
	Thin bool `json:"-"`

	// Failed, of a payment intent: its latest attempt was declined.
	Failed bool `json:"failed,omitempty"`
	// Code, of a payment intent: why, in Stripe's words. Of a subscription: why it was cancelled.
	Code string `json:"code,omitempty"`

	Amount   int64  `json:"amount,omitempty"`   // minor units, of a payment intent, refund or dispute
	Currency string `json:"currency,omitempty"` // ISO 4217, upper case

	// Its owners. With InvoiceTold, of a payment intent, an Invoice of "" means none made it.
	// Versions since 2025-03-31.basil do not tell.
	Payment      string `json:"payment,omitempty"`
	Invoice      string `json:"invoice,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Schedule     string `json:"schedule,omitempty"`
	Customer     string `json:"customer,omitempty"`
	InvoiceTold  bool   `json:"invoice_told,omitempty"`
	// Attached, of a payment intent: somebody has attached it to the Invoice, perhaps for a part of
	// what that asks for. The invoice is of no subscription, and not paid yet.
	Attached bool `json:"-"`

	// Terms, of a subscription, are zero if they are not told.
	Terms Terms `json:"terms,omitzero"`
	// Due, of a dispute, is when evidence is due.
	Due time.Time `json:"due,omitzero"`

	Refunded int64    `json:"refunded,omitempty"` // of a charge: minor units, all refunds so far
	Refunds  []Refund `json:"refunds,omitempty"`  // of a charge or refund: those listed in it
	Tag      Tag      `json:"tag,omitzero"`       // our own metadata, of the object or of its owner
}

// Terms say what a subscription is for, and until when.
type Terms struct {
	Price    string    `json:"price,omitempty"` // price_… (or plan_…) of its first item
	Quantity int64     `json:"quantity,omitempty"`
	CancelAt time.Time `json:"cancel_at,omitzero"` // when Stripe will cancel it; zero: it goes on
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
	Status string `json:"status"` // needs_response, under_review, won, lost, warning_…, appeal_…

	// Due is when Stripe must have the evidence, or that of the appeal; zero if Stripe has named no time.
	Due time.Time `json:"evidence_due,omitzero"`
}

// The metadata of a purchase's objects at Stripe. Billing's intents have MetaInstallation, too.
const (
	MetaInstallation = "duesday_installation"
	MetaPurchase     = "duesday_purchase"      // UUID
	MetaKind         = "duesday_purchase_kind" // one of Kind
)

// A Tag is the purpose of an object at Stripe, by its metadata.
type Tag struct {
	Installation string `json:"installation,omitempty"` // of its Duesday
	Purchase     string `json:"purchase,omitempty"`     // UUID; "" if it is no purchase's
	Kind         Kind   `json:"kind,omitempty"`         // of the purchase

	// Charge: it is a payment intent of billing's, for one of its periods.
	Charge bool `json:"charge,omitempty"`
	// ChargeAccount and ChargeSubscription name the subscription.
	ChargeAccount      string `json:"charge_account,omitempty"`
	ChargeSubscription string `json:"charge_subscription,omitempty"`
}
