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
	// MakeCustomer creates a customer and returns its ID. Within a day, the same key returns the
	// same ID.
	MakeCustomer(ctx context.Context, r CustomerRequest) (string, error)

	// Attach returns the card with which to charge p.Customer. The card is method or, if method is
	// "", the customer's default. If method does not belong to a customer yet, Attach attaches it.
	// It returns ErrInvalid if the customer or method does not exist, or if the method belongs to
	// another customer.
	Attach(ctx context.Context, p Payer, method string) (Card, error)

	// Card returns the card of a payment method, or ErrInvalid if the method does not exist.
	Card(ctx context.Context, at, method string) (Card, error)

	// CardLink creates a page where the customer can enter a card.
	CardLink(ctx context.Context, r LinkRequest) (CardLink, error)

	// Setups yields the cards that customers entered through links created at or after r.Since, in
	// no particular order. An error is the last element.
	Setups(ctx context.Context, r ListRequest) iter.Seq2[Setup, error]
}

// ErrNoWallet is returned for a processor that is not a Wallet.
var ErrNoWallet = errors.New("this processor stores no customers or cards, so it needs a payment method's token")

// A CustomerRequest requests a new customer at the processor.
type CustomerRequest struct {
	Key          string // idempotency key
	At           string // connected account, or ""
	Installation string
	Account      string // Duesday's account
	Email        string
}

// A Card describes a payment method without its secrets. Only cards have Last4 and Expires.
type Card struct {
	Method string // payment method token
	Brand  string // such as visa
	Last4  string // such as 4242
	// Expires is the first instant, in UTC, when the card has expired. It is zero if the card never
	// expires, or if the expiry date is unknown.
	Expires time.Time
	Made    time.Time // when the processor received the card
}

// A LinkRequest requests a page where a customer can enter a card. The processor stores
// Installation, Account and Subscription as metadata, and the Setup contains them again.
type LinkRequest struct {
	Key          string // idempotency key
	Payer        Payer  // must have a Customer
	Installation string
	Account      string
	Subscription string // subscription that gets the card; "" for the whole account
	Currency     string // ISO 4217 code
}

// A CardLink is a page where a customer can enter a card.
type CardLink struct {
	URL     string    // contains a secret, so it is shown and mailed, but never stored or logged
	Expires time.Time // UTC
}

// A Setup is a card that a customer entered through a link.
type Setup struct {
	ID           string // the processor's ID
	At           string
	Customer     string
	Installation string
	Account      string
	Subscription string // "" if the card is for the whole account
	Card         Card
}

// String returns the card in the form that its holder knows, such as "Visa ending in 4242".
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

// brands maps the processor's brand names to the names printed on cards, where they differ.
var brands = map[string]string{"": "Card", "unknown": "Card", "amex": "American Express",
	"american_express": "American Express", "cartes_bancaires": "Cartes Bancaires", "diners": "Diners Club", "jcb": "JCB",
	"unionpay": "UnionPay"}

// LastMonth returns the last month in which the card is valid, such as 2026-12, or "" if that month
// is unknown.
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
