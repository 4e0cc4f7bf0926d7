package processor

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/money"
)

// A Charger charges payment methods. Open creates a payment intent, and only Confirm moves money.
// An intent makes at most one successful charge, without a time limit, and the charge protocol
// relies on this. An idempotency key only saves work, because the processor may forget the key
// after a day.
//
// Any error other than this package's Err… values, such as a canceled context, means that the
// outcome is unknown.
type Charger interface {
	// Open creates an unconfirmed intent. Within a day, the same key returns the same intent. The
	// same key with other parameters returns ErrInvalid.
	Open(ctx context.Context, r OpenRequest) (Intent, error)

	// Confirm tries to charge the intent. A decline is not an error, but an Intent in the state
	// Declined. Confirm returns a succeeded or canceled intent unchanged.
	Confirm(ctx context.Context, r ConfirmRequest) (Intent, error)

	// Lookup returns the intent's current state at the processor, or ErrNoIntent.
	Lookup(ctx context.Context, ref string) (Intent, error)

	// Cancel cancels the intent and returns its resulting state, which is Canceled, or Succeeded if
	// the charge succeeded first.
	Cancel(ctx context.Context, ref string) (Intent, error)

	// List yields the intents that were opened or succeeded at or after r.Since, in any state and
	// order. It may also yield older intents, and may omit intents without an attempt. An error is
	// the last element.
	List(ctx context.Context, r ListRequest) iter.Seq2[Intent, error]
}

// A ListRequest selects the elements of a list at a processor.
type ListRequest struct {
	At       string    // a connected account; "" for the platform's own account only
	Customer string    // the processor's customer ID; "" for all
	Since    time.Time // inclusive; zero for no start
	Until    time.Time // exclusive; zero for no end
}

// A Payer identifies an account at the processor, except for the payment method. The zero Payer is
// the platform's own account at the processor, without a customer. An open period keeps the Payer
// with which it was opened.
type Payer struct {
	At       string // a connected account at the processor, acct_…; "" for the platform's own
	Customer string // the processor's customer, cus_…; "" for none
	Fee      int    // application fee in hundredths of a percent of each charge
}

// Same reports whether both payers are the same customer of the same account at the processor.
func (p Payer) Same(q Payer) bool { return p.At == q.At && p.Customer == q.Customer }

// A Platform is a Charger that supports connected accounts.
type Platform interface {
	// CheckConnected returns ErrInvalid if the account is unknown or is the platform's own. It
	// returns ErrAccountRefused if the account refuses requests.
	CheckConnected(ctx context.Context, at string) error

	// Connected yields all connected accounts, including those without a charge. An error is the
	// last element.
	Connected(ctx context.Context) iter.Seq2[string, error]
}

// An Identified processor returns its account and mode in one short line, such as "stripe acct_123
// test". The line is not a secret, and is the same for every key of the account.
type Identified interface {
	Identity(ctx context.Context) (string, error)
}

// A State is the progress of a payment intent at the processor.
type State string

// These are the states of an intent, named as in the sandbox's ledger. Succeeded and Canceled are
// final.
const (
	Opened         State = "opened"          // not yet confirmed
	Succeeded      State = "succeeded"       // the customer was charged
	Declined       State = "declined"        // the latest attempt was declined; Confirm may try again
	RequiresAction State = "requires_action" // the customer has to authenticate
	Processing     State = "processing"      // the outcome is not known yet
	Canceled       State = "canceled"
)

// A Tag identifies the period that an intent charges. The processor stores the Tag as the intent's
// metadata.
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
	Product string // the SKU when the intent is opened
	Amount  money.Amount
	Price   string // what makes the amount, as the processor returns it; "" for nothing
	Method  string // the payment method's token
	Payer   Payer
}

// A ConfirmRequest requests one attempt to charge an intent.
type ConfirmRequest struct {
	Key     string // idempotency key
	Ref     string
	Method  string
	Attempt int // 1, 2, …; only for the processor's records
}

// An Intent is a payment intent in its state at the processor.
type Intent struct {
	Ref    string
	State  State
	Tag    Tag
	Amount money.Amount
	Price  string // OpenRequest.Price
	// Latest is the ID of the latest attempt, or "" before the first. It changes when Confirm runs.
	Latest string
	Code   string // decline code of the latest attempt
	// Hard means that another attempt is pointless because of the decline or the processor's
	// advice.
	Hard bool
	// Stop means that the processor advises against further attempts, even with another method.
	Stop bool
	// Debit means that the latest attempt was a bank debit, whose outcome takes days.
	Debit   bool
	Changed time.Time // when the intent entered State
	Opened  time.Time // when the intent was created; zero if the processor does not return the time
	// NoPage means that an intent in the state RequiresAction has no Link. Another Confirm creates
	// a link.
	NoPage bool
	// Link is the page where the customer authenticates the payment in the state RequiresAction. It
	// is a secret, so Duesday shows and mails the link, but never stores or logs it.
	Link string
}
