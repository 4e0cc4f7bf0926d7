package schema

// The attributes of the published model, exactly as named there. Timestamps are
// "2023-05-18T14:15:39.247Z", dates "2023-06-28", amounts decimal strings "12.99".
const (
	PK               = "PK"
	SK               = "SK"
	Email            = "Email"
	PaymentDay       = "PaymentDay"
	PaymentAmount    = "PaymentAmount"
	LastPaymentDate  = "LastPaymentDate"
	NextPaymentDate  = "NextPaymentDate"
	LastReminderDate = "LastReminderDate"
	NextReminderDate = "NextReminderDate"
	SKU              = "SKU"
	PaymentDetails   = "PaymentDetails"
	CreatedDate      = "CreatedDate"
	ProcessedDate    = "ProcessedDate"
	ProcessedAmount  = "ProcessedAmount"
	TTL              = "TTL"
)

// The members of PaymentDetails. The model's DefaultCard, a card number, is never stored.
const (
	DefaultAddress = "default-address"
	DefaultCard    = "default-card"
	Currency       = "Currency"
	PaymentMethod  = "PaymentMethod" // the processor's token
)

// Duesday's own attributes.
const (
	Accepted     = "Accepted" // of a run: it ended by a fast clock, as a person has said
	Account      = "Account"
	AlteredDate  = "AlteredDate"  // NextPaymentDate as another tool wrote it while a period was open
	AgendaDate   = "AgendaDate"   // NextPaymentDate as Duesday wrote it: another one shows another tool's write
	Anchor       = "Anchor"       // first due date, from which the schedule is computed
	AnchorPeriod = "AnchorPeriod" // the period due on Anchor
	Attempt      = "Attempt"
	Attempts     = "Attempts"
	Base         = "Base"        // the latest attempt at the processor when the current one began
	CancelAtEnd  = "CancelAtEnd" // cancel instead of charging a period that was not due on CancelDate
	CancelDate   = "CancelDate"  // business day on which the cancellation was requested
	Charge       = "Charge"      // the processor's reference of a successful charge
	Charging     = "Charging"
	Code         = "Code"
	Completed    = "Completed"
	Counts       = "Counts"
	Data         = "Data"
	Debit        = "Debit" // of an open period
	DueDate      = "DueDate"
	EndedDate    = "EndedDate"
	EvidenceDate = "EvidenceDate" // of a dispute
	FanOut       = "FanOut"
	FirstDecline = "FirstDecline"
	FromDate     = "FromDate"
	Format       = "Format"
	Generation   = "Generation"
	Installation = "Installation"
	Installments = "Installments"
	Interval     = "Interval"
	Kept         = "Kept" // of a subscription: for how many months its receipts are kept, from which period on
	Kind         = "Kind"
	LastCharge   = "LastCharge"
	Method       = "Method"
	Moved        = "Moved" // of the store: where it has been copied to; of a subscription: it has been
	OpenPeriod   = "Open"
	Owner        = "Owner" // of a lease
	Paid         = "Paid"
	Parked       = "Parked"
	PausedDate   = "PausedDate"
	Period       = "Period"
	Reason       = "Reason"
	Ref          = "Ref"
	ReminderDays = "ReminderDays"
	Requested    = "Requested" // a billing.Request, committed before the open intent is cancelled
	RetiredRefs  = "RetiredRefs"
	RetryDate    = "RetryDate"
	RunDate      = "RunDate"
	Shards       = "Shards"
	StartedDate  = "StartedDate"
	State        = "State"
	Status       = "Status"
	Subscription = "Subscription"
	TimeZone     = "TimeZone"
	Tries        = "Tries"
	Until        = "Until" // of a lease, or of the claim of a row in the outbox
	Version      = "Version"
	LoweredDate  = "LoweredDate"
	Amount       = "Amount"
	DeadDate     = "DeadDate"
	LastError    = "LastError"
	Answer       = "Answer"       // of the mail server, or why a mail was not sent
	Locale       = "Locale"       // of an account: the language and region of its mail
	EmailBounced = "EmailBounced" // of an account: an address that a mail server refused for good
	Mailed       = "Mailed"       // of a subscription of a restored store: the topics of mail that the replaced store has sent
	CardTold     = "CardTold"     // of a subscription: the last month of the card whose end was told of

	// The processor's side of an account and of an open period.
	Customer         = "Customer"         // the processor's id of the customer
	ProcessorAccount = "ProcessorAccount" // a connected account at the processor
	ApplicationFee   = "ApplicationFee"   // in hundredths of a percent
	MethodDate       = "MethodDate"       // when the payment method was given
	Processor        = "Processor"        // of the store: the account whose money it moves

	OtherInstallations = "OtherInstallations" // of the store: those whose charges a person has accepted
	OthersSeen         = "OthersSeen"         // of the store: the processor has shown charges of others

	Before   = "Before"   // of a change of the settings: those that it changed, as they were
	After    = "After"    // and as they became
	Settings = "Settings" // of a run: those that it kept to
	Program  = "Program"  // of the store: the version of Duesday that has given it its format

	// Of a run.
	Amounts       = "Amounts"
	ChargingOff   = "ChargingOff"
	Process       = "Process"
	Rows          = "Rows"
	SeenDate      = "SeenDate"
	HeartbeatDate = "HeartbeatDate" // when a monitor was told of the day that it finished
	Waits         = "Waits"         // pending periods that wait since it
	Declined      = "Declined"      // periods that it saw declined for the first time
	UnpaidAmounts = "UnpaidAmounts" // by outcome, then by currency

	PendingCustomer = "PendingCustomer" // of a run: pending periods that wait for the customer

	Pending   = "Pending"   // of a subscription: its plan from a later period on
	TrialEnds = "TrialEnds" // of a subscription: the first due date, after a free trial
	DueBefore = "DueBefore" // of a subscription: the due date of AnchorPeriod before its payment day was changed
	ClockDate = "ClockDate" // of META: the latest instant at which the clock is known to have been right

	Sums      = "Sums"      // of an effect: what it adds to the sums of money; taken off when it has been added
	SumsDate  = "SumsDate"  // of META: since when the sums have been kept
	Recovered = "Recovered" // of a receipt: its payment had been declined, or when its period had ended failed

	// DeclinedSum is what a period's first decline has added to the sums of money: of an open period, a record or a receipt.
	DeclinedSum = "DeclinedSum"

	InvoicedTo = "InvoicedTo" // of a receipt that is an invoice: the customer and the seller, which it must keep

	Number   = "Number"   // of a receipt or refund: its number in a series
	Numbered = "Numbered" // of an effect: the receipts or the refund that it is about
	Last     = "Last"     // last number of each series
	Letter   = "Letter"   // of the series that a restored store begins
	Known    = "Known"    // last numbers of the series before them

	// Of a refund or dispute.
	Overtaken = "Overtaken" // of an open period: its attempt was set while another may have been under way
	AskedDate = "AskedDate" // of an open period: when the customer was asked to authenticate it
	Refund    = "Refund"    // the processor's id of it
	Request   = "Request"   // our own id, when it was asked for here

	// Of a past period that is collected.
	Collect      = "Collect"      // of a subscription: the period to be collected, plus one
	CollectUntil = "CollectUntil" // of its record: the last day on which a new payment method collects it

	Fallback     = "Fallback"     // of an account: its second payment method
	FallbackFor  = "FallbackFor"  // of an open period: the method whose place the second one has taken
	FallbackCard = "FallbackCard" // of an open period: the second one's card, for people

	RequestedDate = "RequestedDate" // of a subscription: when Requested was; of a canceled one: when that was, or when it ended
	CausesDate    = "CausesDate"    // of META: since when the cause of each status is stored
	SkipUntil     = "SkipUntil"     // of a subscription with Requested: the periods due before this day are skipped

	Manual = "Manual" // of a subscription: the manual payment to be recorded once the open intent is cancelled
	Note   = "Note"   // of a manual payment: the person's reference

	// Of a subscription that is paid by wire, and of its open period.
	CollectionMethod = "CollectionMethod"
	PayBy            = "PayBy"
	ToldDate         = "ToldDate" // of any subscription: when its customer was last asked again to act

	TakenDate = "TakenDate" // of a request with a key: when the manual payment was taken

	// Of a key of the HTTP API.
	Name        = "Name"
	Scope       = "Scope"
	Merchant    = "Merchant"    // the UUID that it is bound to
	SecretHash  = "SecretHash"  // SHA-256 of its secret, in hexadecimal
	ExpiresDate = "ExpiresDate" // from then on it is refused
	RevokedDate = "RevokedDate"
	UsedDate    = "UsedDate" // the last use, written at most once a minute

	// Of the row of an idempotency key, and of a row of history.
	Actor       = "Actor"       // also of a run: who asked, such as "user anna", "key shop" or "event evt_1"
	RequestHash = "RequestHash" // identifies what was asked: method, path and decoded body
	Object      = "Object"      // path of the object that was created or changed
	Token       = "Token"       // random: tells one writer's row from another's
	Changes     = "Changes"     // what became what

	// Of an endpoint, which also has CreatedDate, Until, PausedDate, Reason, DeadDate and Version.
	URL            = "URL"
	Types          = "Types"          // the event types that it wants, with spaces between; absent: all
	Secret         = "Secret"         // signs its messages
	PreviousSecret = "PreviousSecret" // signs them, too, before Until
	FailingDate    = "FailingDate"    // since when every delivery has failed
	// Of META: the rows by which lists find accounts and subscriptions.
	LookupDate = "LookupDate" // since when every account and subscription has its rows
	LookupFill = "LookupFill" // the id of an unfinished fill of them

	BillingDetails = "BillingDetails" // of an account: what a receipt says of the one who pays
	Salt           = "Salt"           // of META: random, and never shown

	PriceTerms = "PriceTerms" // of a subscription: quantity, discount and tax, as package price stores them
	Price      = "Price"      // of a period, its record and its receipt: what they made of the unit amount; absent: that amount
	Quantity   = "Quantity"   // of a pending change; absent: the quantity stays
	ErasedDate = "ErasedDate" // of an account, and of the store's list: the day on which the person's data was erased
	Upgrade    = "Upgrade"    // of a subscription: a request to charge the next period now, for another plan

	// Of a subscription that the processor ran before.
	Takeover  = "Takeover"
	TakenFrom = "TakenFrom" // the processor's subscription
	Boundary  = "Boundary"  // when its last period ends
	Stage     = "Stage"
	WaitsDate = "WaitsDate" // when a run first found it not ended at the boundary

	// Of the links to the customer's page.
	LinkKey   = "LinkKey"   // of META: random, never shown, and another one after a restore
	LinkEpoch = "LinkEpoch" // of an account: how often its links were revoked
)

// Names lists every attribute name. Append only: an engine may store a name as its place here.
func Names() []string {
	return []string{
		PK, SK, Email, PaymentDay, PaymentAmount, LastPaymentDate, NextPaymentDate, LastReminderDate,
		NextReminderDate, SKU, PaymentDetails, CreatedDate, ProcessedDate, ProcessedAmount, TTL,
		DefaultAddress, Currency, PaymentMethod,
		Account, Anchor, AnchorPeriod, Attempt, Attempts, Base, CancelAtEnd, Charge, Charging, Code, Completed,
		Counts, Data, DueDate, EndedDate, FanOut, FirstDecline, FromDate, Format, Generation, Installation, Installments,
		Interval, Kind, LastCharge, Method, OpenPeriod, Paid, Parked, PausedDate, Period, Reason, Ref,
		ReminderDays, Requested, RetiredRefs, RetryDate, RunDate, Shards, StartedDate, State, Status, Subscription,
		TimeZone, Tries, Version, LoweredDate, Amount, DeadDate, LastError, Accepted,
		// of effects in the outbox
		"account", "amount", "amount_text", "charge", "code", "currency", "due_date", "email", "link",
		"period", "processed", "retry_date", "sku", "subscription",
		Moved, Owner, Until,
		// of the tracking tables; account and subscription stand above
		TrackedID, TrackedType, TrackedStripeAccount, TrackedTimestamp, TrackedDate, TrackedTime, TrackedExpiration,
		TrackedCreated, TrackedUpdated, TrackedFulfilled, TrackedStatus, TrackedPurchase,
		Customer, ProcessorAccount, ApplicationFee, MethodDate, Processor, Refund, Request,
		"ref", "at", "card", "card_expires", // of effects
		AskedDate, Overtaken,
		TrackedVersion, TrackedBody, TrackedReason, TrackedSource, TrackedReceived, TrackedApplied, TrackedKind, TrackedOrder,
		TrackedKeyHash, TrackedCustomer, TrackedProblem, TrackedFulfilment, TrackedUnsubscribe, TrackedAutomations,
		TrackedCourses,
		TrackedHistory, TrackedInvoice, TrackedRefunds, TrackedToldRefunded, TrackedDisputes, TrackedDetail, TrackedEnding,
		TrackedSchedule, TrackedScheduleSays, TrackedOver, TrackedActivated, TrackedLive, TrackedPolled,
		"state", "asked", "done", "automation", "action", "what", "event", "through", "checked", "next", "quiet", "swept",
		"error",
		TrackedExpired, TrackedSoft, TrackedAsking, TrackedSalt,
		Before, After, Settings,
		Locale, EmailBounced, CardTold, "receipt",
		Amounts, ChargingOff, Process, Rows, SeenDate, HeartbeatDate,
		AgendaDate, Kept, OtherInstallations, Program, DueBefore, ClockDate, OthersSeen,
		Collect, CollectUntil, "collect_until",
		Waits,
		Pending, TrialEnds,
		Sums, SumsDate, Recovered,
		Note, Manual, Fallback, FallbackFor, FallbackCard, "fallback",
		RequestedDate, TakenDate,
		Name, Scope, Merchant, SecretHash, ExpiresDate, RevokedDate, UsedDate,
		TrackedToldType, TrackedTwin, "thin",
		TrackedDue, TrackedCancelAt, TrackedPrice, TrackedQuantity,
		CausesDate,
		TrackedAttached, TrackedFetched,
		CancelDate,
		CollectionMethod, PayBy, ToldDate, "pay_by",
		SkipUntil, AlteredDate,
		Declined, Mailed,
		Actor, RequestHash, Object, Token, Changes,
		URL, Types, Secret, PreviousSecret, FailingDate, "attempts", "data", "endpoint", "events",
		LookupDate, LookupFill,
		"message",
		Salt,
		BillingDetails, "address_line1", "address_line2", "city", "company", "country", "postal_code", "tax_id",
		Number, Numbered, Last, Letter, Known,
		PriceTerms, Price, Quantity, "discount", "discount_amount", "discount_from", "discount_periods", "tax", "tax_amount", "tax_country", "tax_note",
		"tax_rate", "unit_amount",
		EvidenceDate,
		InvoicedTo,
		Debit,
		ErasedDate,
		Upgrade,
		LinkKey, LinkEpoch,
		Answer,
		UnpaidAmounts, PendingCustomer,
		DeclinedSum,
		Takeover, TakenFrom, Boundary, Stage, WaitsDate, TrackedTakenOver,
		TrackedImported,
	}
}
