package processor

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
)

// A Wallet is a Charger that stores customers and their cards. Duesday stores only their IDs.
type Wallet interface {
	// MakeCustomer makes a customer and returns its id, the same for the same key within a day.
	MakeCustomer(ctx context.Context, r CustomerRequest) (string, error)

	// Attach returns the card to charge p.Customer with: method, or with "" the customer's default.
	// It attaches a method that belongs to no customer yet. It returns ErrInvalid if there is no
	// such customer or method, or the method is another customer's.
	Attach(ctx context.Context, p Payer, method string) (Card, error)

	// Card returns the card of a payment method, or ErrInvalid if there is none.
	Card(ctx context.Context, at, method string) (Card, error)

	// CardLink makes a page on which the customer gives a card.
	CardLink(ctx context.Context, r LinkRequest) (CardLink, error)

	// Setups yields the cards given by links made at or after r.Since, in no order, an error last.
	Setups(ctx context.Context, r ListRequest) iter.Seq2[Setup, error]
}

// ErrNoWallet is returned for a processor that is not a Wallet.
var ErrNoWallet = errors.New("this processor stores no customers or cards, so it needs a payment method's token")

// A CustomerRequest requests a new customer at the processor.
type CustomerRequest struct {
	Key          string // idempotency key
	At           string // connected account, or ""
	Installation string
	Account      string // ours
	Email        string
}

// A Card describes a payment method without its secrets. Only cards have Last4 and Expires.
type Card struct {
	Method  string    // its token
	Brand   string    // visa
	Last4   string    // 4242
	Expires time.Time // the first instant, UTC, at which it has expired; zero: never, or unknown
	Made    time.Time // when it was given to the processor
}

// A LinkRequest requests a page where a customer can enter a card. The processor stores
// Installation, Account and Subscription as metadata, and the Setup contains them again.
type LinkRequest struct {
	Key          string // idempotency key
	Payer        Payer  // with a Customer
	Installation string
	Account      string
	Subscription string // the card's; "": the card is the account's
	Currency     string // ISO 4217 code
}

// A CardLink is a page where a customer can enter a card.
type CardLink struct {
	URL     string    // holds a secret: shown and mailed, never stored or logged
	Expires time.Time // UTC
}

// A Setup is a card that a customer entered through a link.
type Setup struct {
	ID           string // the processor's
	At           string
	Customer     string
	Installation string
	Account      string
	Subscription string // "": the card is the account's
	Card         Card
}

// String returns the card as its holder knows it: "Visa ending in 4242".
func (c Card) String() string {
	brand, ok := brands[c.Brand]
	if !ok {
		brand = strings.ToUpper(c.Brand[:1]) + strings.ReplaceAll(c.Brand[1:], "_", " ")
	}
	if c.Last4 == "" {
		return brand
	}
	return brand + " ending in " + c.Last4
}

// brands are those not printed on cards as the processor writes them.
var brands = map[string]string{"": "Card", "unknown": "Card", "amex": "American Express",
	"american_express": "American Express", "cartes_bancaires": "Cartes Bancaires", "diners": "Diners Club", "jcb": "JCB",
	"unionpay": "UnionPay"}

// LastMonth returns the last month in which the card is valid, such as 2026-12, or "" if it is
// unknown.
func (c Card) LastMonth() string {
	if c.Expires.IsZero() {
		return ""
	}
	return c.Expires.UTC().Add(-time.Millisecond).Format("2006-01")
}

// ExpiredOn reports whether the card has expired at the start of the day, in UTC.
func (c Card) ExpiredOn(day civil.Date) bool {
	return !c.Expires.IsZero() && !day.In(time.UTC).Before(c.Expires)
}
