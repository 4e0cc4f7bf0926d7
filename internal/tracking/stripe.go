package tracking

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/secret"
)

// A Finder is what the inbox asks of Stripe when an event does not tell enough. at is the
// connected account, or "" for our own. Every Object that it returns is Seen. Errors: ErrGone
// where there is no such object, ErrDisconnected where the account has let go of us; any other
// means that nothing is known, and asking again may help.
type Finder interface {
	// Payment returns the payment intent, with the invoice that made it and the subscription
	// that the invoice is for, if there are any, and the Tag of the first of them that has one:
	// intent, invoice, subscription. InvoiceTold is true.
	Payment(ctx context.Context, at, id string) (Object, error)
	Subscription(ctx context.Context, at, id string) (Object, error)
	Schedule(ctx context.Context, at, id string) (Object, error)
	// Connected returns nil if the account lets us in, else ErrDisconnected.
	Connected(ctx context.Context, at string) error
}

// A Seller makes at Stripe what a purchase asks for. All that it makes carries the order's Tag
// as metadata, and every request an idempotency key that is derived from the purchase's id.
type Seller interface {
	// Sell makes what the order asks for, and takes the money where the order says how. With
	// again, an earlier call may have come to any point, any time ago: what it made is found and
	// gone on with, and nothing is made or paid twice. A decline is no error.
	Sell(ctx context.Context, o Order, again bool) (Sale, error)
	// Find returns what Sell has made so far, without making or paying anything. A Sale without
	// objects: nothing that matters.
	Find(ctx context.Context, o Order) (Sale, error)
}

// A Sale is what there is at Stripe of a purchase.
type Sale struct {
	// Objects are the payment intent, or the subscription with its first payment intent, or the
	// schedule with both: all Seen, with their links to each other, and the payment's Invoice,
	// Subscription and InvoiceTold filled in.
	Objects  []Object
	Customer string // cus_…
	// ClientSecret is what the buyer's browser completes the payment with, where that is needed:
	// of a legacy purchase, and of a payment that the bank wants the buyer for. It is handed to
	// the caller, and never stored or logged.
	ClientSecret secret.Text
	Declined     string // why the payment was declined, in Stripe's words; "" when it was not
	Action       bool   // the bank wants the buyer
}

var (
	// ErrGone: Stripe has no such object.
	ErrGone = errors.New("there is no such object at Stripe")
	// ErrDisconnected: the connected account has let go of us, or never was connected.
	ErrDisconnected = errors.New("the Stripe account is not connected")
	// ErrOrder: Stripe calls the order wrong, before any money moved: the text says what.
	ErrOrder = errors.New("the order was refused by Stripe")
)
