package outbox

// The kinds of effects. Who writes an effect and who delivers it do not know each
// other; they agree on these words.
const (
	KindReceipt        = "receipt"         // a payment was taken
	KindReminder       = "reminder"        // a payment will be taken
	KindDeclined       = "declined"        // a payment was declined and will be tried again
	KindFailed         = "failed"          // a payment was declined for good
	KindActionRequired = "action_required" // the customer has to confirm a payment
)

// The keys of Effect.Data. Every kind has the first group, receipts the second;
// DataRetryDate belongs to KindDeclined, DataCode to that and to KindFailed, DataRef to
// KindActionRequired, the card to KindReminder. A value may be "" where there is nothing to say.
//
// The last group is never in a stored effect: links are secrets that do not live long. Who
// delivers adds them.
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

	DataProcessed = "processed" // 2023-06-28, or a timestamp that begins so
	DataCharge    = "charge"    // the processor's reference

	DataRetryDate = "retry_date" // 2023-07-01
	DataCode      = "code"       // the processor's word for why it declined
	DataRef       = "ref"        // of the payment intent that waits for the customer

	DataCard        = "card"         // Visa ending in 4242
	DataCardExpires = "card_expires" // 2026-12: the last month in which it is good
	DataNoMethod    = "no_method"    // "true": there is nothing that the payment could be taken by
	DataCardExpired = "card_expired" // "true": it will have expired when the payment is due

	DataLink        = "link"         // where the customer can confirm, or give another card
	DataLinkExpires = "link_expires" // a timestamp; "" when it is not known
)
