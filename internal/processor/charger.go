package processor

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/money"
)

// A Charger moves the money. Open makes a payment intent, and only Confirm moves money. An intent
// makes at most one successful charge, without a time limit, and the charge protocol relies on
// this. An idempotency key only saves work, because the processor may forget it after a day.
//
// Any error other than this package's Err… values, such as a canceled context, means that the
// outcome is unknown.
type Charger interface {
	// Open makes an intent, unconfirmed. The same key within a day gives the same
	// intent; the same key with other parameters is ErrInvalid.
	Open(ctx context.Context, r OpenRequest) (Intent, error)

	// Confirm tries to take the money. A decline is an Intent in state Declined, not an error. A
	// succeeded or cancelled intent is returned as it is.
	Confirm(ctx context.Context, r ConfirmRequest) (Intent, error)

	// Lookup returns the intent as the processor has it now, or ErrNoIntent.
	Lookup(ctx context.Context, ref string) (Intent, error)

	// Cancel cancels the intent and returns it as it then is: Canceled, or Succeeded if it was first.
	Cancel(ctx context.Context, ref string) (Intent, error)

	// List yields the intents opened or succeeded at or after r.Since, in any state and order. It may
	// yield older ones, and may leave out intents without any attempt. An error comes last.
	List(ctx context.Context, r ListRequest) iter.Seq2[Intent, error]
}

// A ListRequest selects the elements of a list at a processor.
type ListRequest struct {
	At       string    // a connected account; "" for our own, which does not include the connected
	Customer string    // the processor's id; "" for all
	Since    time.Time // inclusive; zero for all
	Until    time.Time // exclusive; zero for no end
}

// A Payer holds an account's data at the processor, except the payment method. The zero Payer is
// our own account at the processor, without a customer. An open period keeps the Payer with which
// it was opened.
type Payer struct {
	At       string // a connected account at the processor, acct_…; "" for our own
	Customer string // the processor's customer, cus_…; "" for none
	Fee      int    // our share of the connected account's charges, in hundredths of a percent
}

// Same reports whether both payers are the same customer of the same account at the processor.
func (p Payer) Same(q Payer) bool { return p.At == q.At && p.Customer == q.Customer }

// A Platform is a Charger with connected accounts.
type Platform interface {
	// CheckConnected returns ErrInvalid for an unknown or our own account, or ErrAccountRefused.
	CheckConnected(ctx context.Context, at string) error

	// Connected yields all connected accounts, also those without any charge. An error comes last.
	Connected(ctx context.Context) iter.Seq2[string, error]
}

// An Identified processor returns its account and mode in one short line, such as "stripe acct_123
// test". The line is not a secret, and is the same for every key of the account.
type Identified interface {
	Identity(ctx context.Context) (string, error)
}

// A State is the progress of a payment intent at the processor.
type State string

// The states of an intent, named as in the sandbox's ledger. Succeeded and Canceled are final.
const (
	Opened         State = "opened"          // not yet confirmed
	Succeeded      State = "succeeded"       // the money was taken
	Declined       State = "declined"        // the latest attempt was declined; it may be confirmed again
	RequiresAction State = "requires_action" // the customer has to authenticate
	Processing     State = "processing"      // the outcome is not known yet
	Canceled       State = "canceled"
)

// A Tag names the period of an intent. The processor stores it as the intent's metadata.
type Tag struct {
	Installation string
	Account      string
	Subscription string
	SKU          string
	Period       int
	Generation   int
}

// An OpenRequest requests an unconfirmed intent. The caller must not change any field when it
// repeats the request.
type OpenRequest struct {
	Key     string // idempotency key
	Tag     Tag
	Product string // what is paid for: the SKU as it is now
	Amount  money.Amount
	Method  string // the payment method's token
	Payer   Payer
}

// A ConfirmRequest requests one attempt to charge an intent.
type ConfirmRequest struct {
	Key     string // idempotency key
	Ref     string
	Method  string
	Attempt int // 1, 2, …: for the processor's records only
}

// An Intent is a payment intent as the processor shows it.
type Intent struct {
	Ref     string
	State   State
	Tag     Tag
	Amount  money.Amount
	Latest  string    // id of the latest attempt, "" before the first; another id: a confirm has run
	Code    string    // decline code of the latest attempt
	Hard    bool      // another attempt is pointless, by the decline or the processor's advice
	Stop    bool      // the processor advises against another attempt, also with another method
	Changed time.Time // when it came into this state
	Opened  time.Time // when it was made; zero: the processor does not tell
	NoPage  bool      // of RequiresAction: there is no Link; another Confirm makes one
	Link    string    // of RequiresAction: the page to authenticate on; a secret: shown and mailed, never stored or logged
}
