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
// DataRetryDate belongs to KindDeclined, DataCode to that and to KindFailed,
// DataLink to KindActionRequired. A value may be "" where there is nothing to say.
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
	DataLink      = "link"       // where the customer can confirm
)
