package tracking

import "time"

// These are the kinds of Stripe objects that Duesday follows. Their values are Stripe's names, and
// an object of any other kind keeps its Stripe name.
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

// A Kind is a way to pay for a purchase.
type Kind string

// The kinds of purchases.
const (
	Legacy       Kind = "legacy"       // a payment intent that the buyer's client completes
	Product      Kind = "product"      // a single payment through an invoice, charged immediately
	Subscribe    Kind = "subscription" // a Stripe subscription
	SplitPayment Kind = "split"        // a subscription schedule with a fixed number of payments
)

// An Object is a Stripe object, read from any API version. A field that the source does not contain
// is zero.
type Object struct {
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	Status  string    `json:"status,omitempty"` // Stripe's status
	Created time.Time `json:"created,omitzero"` // UTC

	// Fetched is set if the object shows Stripe's state at the time of our request. It is not set
	// for an object from an event.
	Fetched bool `json:"seen,omitempty"`

	// Thin is set if an event only named the object. Then only Kind and ID are set.
	Thin bool `json:"-"`

	// Failed is set if a payment intent's latest attempt was declined.
	Failed bool `json:"failed,omitempty"`
	// Code is Stripe's reason for the declined attempt or for a subscription's cancellation.
	Code string `json:"code,omitempty"`

	Amount   int64  `json:"amount,omitempty"`   // minor units; set for payment intents, refunds and disputes
	Currency string `json:"currency,omitempty"` // ISO 4217, upper case

	// These fields link the object to its owners. If a payment intent has InvoiceTold and no
	// Invoice, then no invoice created it. API versions since 2025-03-31.basil do not show this.
	Payment      string `json:"payment,omitempty"`
	Invoice      string `json:"invoice,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Schedule     string `json:"schedule,omitempty"`
	Customer     string `json:"customer,omitempty"`
	InvoiceTold  bool   `json:"invoice_told,omitempty"`
	// Attached is set if someone attached the payment intent to the Invoice, perhaps to pay only a
	// part of it. The invoice does not belong to a subscription and is not paid yet.
	Attached bool `json:"-"`

	// Terms are a subscription's terms, zero if the source does not contain them.
	Terms Terms `json:"terms,omitzero"`
	// Due is the deadline for a dispute's evidence.
	Due time.Time `json:"due,omitzero"`

	Refunded int64    `json:"refunded,omitempty"` // total refunded from a charge so far, in minor units
	Refunds  []Refund `json:"refunds,omitempty"`  // the refunds contained in a charge or refund
	Tag      Tag      `json:"tag,omitzero"`       // our metadata on the object or on its owner

	// TakenBy is the installation whose billing takes over a subscription. Only one that has ended tells: an
	// older object may show a mark that an undo has removed.
	TakenBy string `json:"taken_by,omitempty"`
}

// Terms describe what a subscription charges for and when it ends.
type Terms struct {
	Price    string    `json:"price,omitempty"` // price_… (or plan_…) of its first item
	Quantity int64     `json:"quantity,omitempty"`
	CancelAt time.Time `json:"cancel_at,omitzero"` // when Stripe will cancel the subscription; zero: never
}

// A Refund is a refund of a payment.
type Refund struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"` // minor units
	Status string `json:"status"` // pending, requires_action, succeeded, canceled or failed
}

// A Dispute is a dispute about a payment.
type Dispute struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"` // minor units
	Status string `json:"status"` // needs_response, under_review, won, lost, warning_…, appeal_…

	// Due is the deadline for the evidence, or for an appeal's evidence. It is zero if Stripe has
	// not set one.
	Due time.Time `json:"evidence_due,omitzero"`
}

// These are the metadata keys on a purchase's Stripe objects. Billing's payment intents also carry
// MetaInstallation.
const (
	MetaInstallation = "duesday_installation"
	MetaPurchase     = "duesday_purchase"      // UUID
	MetaKind         = "duesday_purchase_kind" // a Kind
)

// A Tag is Duesday's metadata on a Stripe object, which identifies the object's purpose.
type Tag struct {
	Installation string `json:"installation,omitempty"` // ID of the Duesday installation
	Purchase     string `json:"purchase,omitempty"`     // UUID; "" if the object does not belong to a purchase
	Kind         Kind   `json:"kind,omitempty"`         // kind of the purchase

	// Charge is set on a payment intent with which billing charges a period.
	Charge bool `json:"charge,omitempty"`
	// ChargeAccount and ChargeSubscription identify billing's subscription.
	ChargeAccount      string `json:"charge_account,omitempty"`
	ChargeSubscription string `json:"charge_subscription,omitempty"`
}
