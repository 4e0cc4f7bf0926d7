package outbox

// The kinds of effects. The writer and the deliverer of an effect do not know each other;
// they share these words.
const (
	KindReceipt        = "receipt"         // a payment was taken
	KindReminder       = "reminder"        // a payment will be taken
	KindDeclined       = "declined"        // a payment was declined and will be tried again
	KindFailed         = "failed"          // a payment was declined for good
	KindActionRequired = "action_required" // the customer has to confirm a payment
)

// The keys of Effect.Data. Every kind has the first group, receipts the second;
// DataRetryDate belongs to KindDeclined, DataCode to that and to KindFailed, DataRef to
// KindActionRequired, the card to KindReminder. An unknown value is "".
//
// The last group is never in a stored effect, because links are short-lived secrets. The
// deliverer adds them.
const (
	DataAccount      = "account"
	DataEmail        = "email" // one bare address
	DataSubscription = "subscription"
	DataSKU          = "sku"
	DataPeriod       = "period"
	DataDueDate      = "due_date"    // 2023-06-28
	DataAmount       = "amount"      // 12.99
	DataCurrency     = "currency"    // USD
	DataAmountText   = "amount_text" // $12.99: for people

	DataProcessed = "processed" // 2023-06-28, or a timestamp that starts with the day
	DataCharge    = "charge"    // the processor's reference

	DataRetryDate = "retry_date" // 2023-07-01
	DataCode      = "code"       // the processor's decline code
	DataRef       = "ref"        // of the payment intent waiting for the customer

	DataCard        = "card"         // Visa ending in 4242
	DataCardExpires = "card_expires" // 2026-12: the last month in which it is valid
	DataNoMethod    = "no_method"    // "true": no payment method is stored
	DataCardExpired = "card_expired" // "true": it expires before the payment is due

	DataLink        = "link"         // where the customer can confirm or replace the card
	DataLinkExpires = "link_expires" // a timestamp; "" if unknown
)
