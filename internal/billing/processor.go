package billing

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Processor moves the money. A payment intent is opened without moving any,
// confirmed, looked up, cancelled and listed; it makes at most one successful charge,
// with no limit in time. That is the fence the charge protocol stands on: an
// idempotency key only saves work, since a processor may forget it after a day.
//
// Errors other than the Err… of this file, a cancelled context among them, mean that
// the outcome is unknown.
type Processor interface {
	// Open makes an intent, unconfirmed. The same key within a day gives the same
	// intent; the same key with other parameters is ErrInvalid.
	Open(ctx context.Context, r OpenRequest) (Intent, error)

	// Confirm tries to take the money. A decline is no error: it is an Intent in state
	// Declined. An intent that has succeeded or been cancelled is returned as it is.
	Confirm(ctx context.Context, r ConfirmRequest) (Intent, error)

	// Lookup returns the intent as the processor has it now, or ErrNoIntent.
	Lookup(ctx context.Context, ref string) (Intent, error)

	// Cancel cancels the intent and returns it as it then is: Canceled, or Succeeded
	// when the money was taken first.
	Cancel(ctx context.Context, ref string) (Intent, error)

	// List yields the intents that were opened at or after r.Since, and those that have
	// succeeded since, in whatever state they are and in no order. It may yield older ones,
	// and leave out those on which nothing was ever attempted. An error comes last.
	List(ctx context.Context, r ListRequest) iter.Seq2[Intent, error]
}

// A ListRequest says what is listed at a processor.
type ListRequest struct {
	At       string    // a connected account; "" for our own, which does not include the connected
	Customer string    // of this customer of the processor's alone; "" for all
	Since    time.Time // inclusive; zero for all
	Until    time.Time // exclusive; zero for no end
}

// A Payer is where and from whom payments are taken, beside the payment method. The zero
// Payer is our own account at the processor, and no customer there. It is frozen with the
// period that is opened with it.
type Payer struct {
	At       string // a connected account at the processor, acct_…; "" for our own
	Customer string // the processor's customer, cus_…; "" for none
	Fee      int    // what the connected account leaves to us, in hundredths of a percent
}

// set writes the payer into an account's item, or an open period's.
func (p Payer) set(it *store.Item) {
	for _, f := range [...]struct{ name, text string }{{schema.ProcessorAccount, p.At}, {schema.Customer, p.Customer}} {
		if f.text != "" {
			it.Set(f.name, store.S(f.text))
		}
	}
	if p.Fee != 0 {
		it.Set(schema.ApplicationFee, store.Int(int64(p.Fee)))
	}
}

func payerOf(it store.Item) Payer {
	return Payer{At: it.Str(schema.ProcessorAccount), Customer: it.Str(schema.Customer), Fee: int(it.Int(schema.ApplicationFee))}
}

// An Identified processor tells whose money it moves: one short line that is never secret,
// the same for every key of one account in one mode, such as "stripe acct_123 test".
type Identified interface {
	Identity(ctx context.Context) (string, error)
}

// A State is where a payment intent stands at the processor.
type State string

// The states of an intent, in the words of the sandbox's ledger. Succeeded and
// Canceled are final.
const (
	Opened         State = "opened"          // not yet confirmed
	Succeeded      State = "succeeded"       // the money was taken
	Declined       State = "declined"        // the latest attempt was declined; it may be confirmed again
	RequiresAction State = "requires_action" // the customer has to authenticate
	Processing     State = "processing"      // the processor does not know yet
	Canceled       State = "canceled"
)

// A Tag says what an intent is for. It travels with the intent as metadata.
type Tag struct {
	Installation string
	Account      string
	Subscription string
	SKU          string
	Period       int
	Generation   int
}

// An OpenRequest asks for an unconfirmed intent; all of it is frozen by the caller.
type OpenRequest struct {
	Key    string // idempotency key
	Tag    Tag
	Amount money.Amount
	Method string // the payment method's token
	Payer  Payer
}

// A ConfirmRequest asks for one attempt to take the money.
type ConfirmRequest struct {
	Key     string // idempotency key
	Ref     string
	Method  string
	Attempt int // 1, 2, …: for the record; the processor decides nothing by it
}

// An Intent is a payment intent as the processor shows it.
type Intent struct {
	Ref     string
	State   State
	Tag     Tag
	Amount  money.Amount
	Latest  string    // id of the latest attempt, "" before the first: tells whether a confirm ran
	Code    string    // decline code of the latest attempt
	Hard    bool      // the decline, or the processor's advice about it, says that trying again is pointless
	Changed time.Time // when it came into this state
	Opened  time.Time // when it was made; zero where the processor does not tell
	NoPage  bool      // of RequiresAction: there is no Link, and confirming once more makes one
	Link    string    // where the customer can authenticate, of RequiresAction; holds a secret: shown and mailed, never stored or logged
}

// same reports whether the two are one customer at one place.
func (p Payer) Same(q Payer) bool { return p.At == q.At && p.Customer == q.Customer }

// MaxSends is how often one request is sent in one step. If no answer comes, the next run
// goes on with it.
const MaxSends = 3

// Definite reports whether the processor has done nothing and would answer the same again.
func Definite(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrAccountRefused) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoIntent)
}

// Ask calls do up to MaxSends times, until it returns no error or a Definite one, or ctx ends.
// Use it for requests that may be repeated, and for lists: one that breaks off begins anew.
func Ask[T any](ctx context.Context, do func() (T, error)) (answer T, err error) {
	for range MaxSends {
		if answer, err = do(); err == nil || Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}

// Gather returns the elements of a list, also those before an error.
func Gather[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}
