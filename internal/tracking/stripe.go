package tracking

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/secret"
)

// A Finder fetches objects from Stripe. at is the connected account, or "" for our own. Every Object
// it returns is Fetched. It returns ErrGone if there is no such object, and ErrDisconnected if the
// account has disconnected. After any other error nothing is known, and asking again may help.
type Finder interface {
	// Object returns an object of a kind that is followed. A payment intent has its invoice and the
	// invoice's subscription, if there are any, and the Tag of the first of the three that has one.
	// InvoiceTold is true.
	Object(ctx context.Context, at, kind, id string) (Object, error)
	// Connected returns nil if the account gives us access, else ErrDisconnected.
	Connected(ctx context.Context, at string) error
}

// A Seller makes a purchase's objects at Stripe. Each carries the order's Tag as metadata, and
// every request an idempotency key derived from the purchase's id.
type Seller interface {
	// Check returns a FieldError if Stripe can only refuse the order. It asks nobody.
	Check(o Order) error
	// Sell makes the objects of the order, and takes the money if the order names a payment
	// method. With again, an earlier call may have ended anywhere, any time ago: Sell finds its
	// objects and continues with them. Nothing is made or paid twice. A decline is no error.
	Sell(ctx context.Context, o Order, again bool) (Sale, error)
	// Find returns the objects made by Sell so far, and makes or pays nothing.
	Find(ctx context.Context, o Order) (Sale, error)
}

// A Sale is the objects of a purchase at Stripe.
type Sale struct {
	// Objects are the payment intent, or the subscription with its first payment intent, or the schedule
	// with both: all Fetched, with the payment's links filled in.
	Objects  []Object
	Customer string // cus_…
	// ClientSecret lets the buyer's browser complete the payment, if needed: of a legacy
	// purchase, and of a payment to be authenticated by the buyer. It is never stored or logged.
	ClientSecret secret.Text
	Declined     string // why the payment was declined, in Stripe's words
	Action       bool   // the buyer must authenticate the payment
}

// A Settler settles the open period of one of billing's subscriptions by its payment intent, if any.
type Settler interface {
	Heard(ctx context.Context, account, subscription, intent string) error
}

var (
	// ErrGone: Stripe has no such object.
	ErrGone = errors.New("no such object exists at Stripe")
	// ErrDisconnected: the account has disconnected from us, or never was connected.
	ErrDisconnected = errors.New("the Stripe account is not connected")
	// ErrOrder: Stripe refused the order before any money moved. The text names the fault.
	ErrOrder = errors.New("the order was refused by Stripe")
)
