package tracking

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

// An Order describes a purchase. It is stored with the purchase before Stripe hears of it: its tags
// are the names in the stored form, and have to stay.
type Order struct {
	Tag Tag    `json:"-"` // filled in by CreatePurchase
	At  string `json:"-"` // the connected account, or "" for our own; filled in by CreatePurchase
	By  string `json:"-"` // id of the API key that asks for it, for the timeline; "": a command

	Merchant string `json:"account"` // UUID of the seller
	Kind     Kind   `json:"kind"`
	// Key is the caller's own name of this order: the same key of the same merchant is the same
	// purchase. 1 to 255 characters. No card number: it is stored.
	Key string `json:"key"`

	Amount      int64  `json:"amount,omitempty"`      // minor units: of legacy, and of product without a price
	Currency    string `json:"currency,omitempty"`    // ISO 4217, with an amount; small letters will do
	Price       string `json:"price,omitempty"`       // at Stripe: of subscription and split, or else of product
	Payments    int    `json:"payments,omitempty"`    // of split: how many
	Description string `json:"description,omitempty"` // up to 500 characters; buyers see it

	Customer      string `json:"customer,omitempty"`       // cus_…; "" finds one by email, or makes one
	Email         string `json:"email,omitempty"`          // of the buyer
	Name          string `json:"name,omitempty"`           // of the buyer
	PaymentMethod string `json:"payment_method,omitempty"` // pm_…, made by the buyer's client: of all but legacy
}

const (
	maxKey         = 255
	maxDescription = 500
	maxName        = 200
	maxPayments    = 120
	maxAmount      = 99_999_999 // minor units: as much as Stripe takes
)

// Check returns a FieldError for the first invalid field. Stripe checks whether the ids exist.
func (o *Order) Check() error {
	for _, f := range [...]struct {
		name, text string
		most       int
	}{{"key", o.Key, maxKey}, {"description", o.Description, maxDescription}, {"email", o.Email, maxKey},
		{"name", o.Name, maxName}, {"price", o.Price, maxKey}, {"customer", o.Customer, maxKey},
		{"payment_method", o.PaymentMethod, maxKey}} {
		if err := checkText(f.name, f.text, f.most); err != nil {
			return err
		}
	}
	for _, f := range [...]struct{ name, text, prefix string }{{"customer", o.Customer, "cus_"},
		{"payment_method", o.PaymentMethod, "pm_"}} {
		if f.text != "" && (!isID(f.text, f.prefix) || strings.Contains(f.text, "-")) {
			return field.Wrong(f.name, "must be a Stripe ID that begins with "+f.prefix)
		}
	}
	switch {
	case o.Key == "":
		return field.Wrong("key", "must be set: a text of your choice that identifies the order, so that it is never repeated by mistake")
	case o.Kind != Legacy && o.Kind != Product && o.Kind != Subscribe && o.Kind != SplitPayment:
		return field.Wrong("kind", "must be legacy, product, subscription or split")
	case o.Price != "" && !IsPrice(o.Price):
		return field.Wrong("price", "must be a Stripe price or plan ID: ASCII characters without spaces and slashes")
	case o.Email != "" && !isAddress(o.Email):
		return field.Wrong("email", "must be a single address, such as ada@example.com")
	}
	return cmp.Or(o.checkPrice(), o.checkBuyer())
}

func (o *Order) checkPrice() error {
	byAmount := o.Kind == Legacy || o.Kind == Product && o.Price == ""
	switch {
	case byAmount && (o.Amount <= 0 || o.Amount > maxAmount):
		return field.Wrong("amount", "must be 1 to 99999999 minor units")
	case byAmount && !isCurrency(o.Currency):
		return field.Wrong("currency", "must be an active ISO 4217 code, such as USD")
	case byAmount && o.Price != "":
		return field.Wrong("price", "must be empty for a legacy purchase, which has an amount")
	case !byAmount && (o.Amount != 0 || o.Currency != ""):
		return field.Wrong("amount", "must be empty, like currency, because the price sets both")
	case !byAmount && o.Price == "":
		return field.Wrong("price", "must be a Stripe price ID")
	case o.Kind == SplitPayment && (o.Payments < 2 || o.Payments > maxPayments):
		return field.Wrong("payments", "must be 2 to 120")
	case o.Kind != SplitPayment && o.Payments != 0:
		return field.Wrong("payments", "must be empty except for a split purchase")
	}
	return nil
}

func (o *Order) checkBuyer() error {
	switch {
	case o.Kind == Legacy && o.PaymentMethod != "":
		return field.Wrong("payment_method", "must be empty for a legacy purchase, because the buyer's client completes it")
	case o.Kind != Legacy && o.PaymentMethod == "":
		return field.Wrong("payment_method", "must be the payment method that the buyer's client created, pm_…")
	case o.Kind != Legacy && o.Customer == "" && o.Email == "":
		return field.Wrong("customer", "must be a customer, cus_…, unless email is set")
	}
	return nil
}

func isCurrency(code string) bool {
	_, err := money.ParseCurrency(code)
	return err == nil
}

// isAddress reports whether Stripe can take the text: an address alone, whose domain has a point.
func isAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	at := strings.LastIndexByte(text, '@')
	return err == nil && a.Address == text && strings.Contains(strings.Trim(text[at+1:], "."), ".")
}

// encode returns the order as it is stored, and its hash without the key.
func (o Order) encode() (stored, hash string, err error) {
	whole, err := json.Marshal(o)
	o.Key = ""
	keyless, fault := json.Marshal(o)
	if err = cmp.Or(err, fault); err != nil {
		return "", "", fmt.Errorf("order: %w", err)
	}
	sum := sha256.Sum256(keyless)
	return string(whole), hex.EncodeToString(sum[:16]), nil
}

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

// checkUUID returns the UUID in lower case, or a FieldError.
func checkUUID(name, text string) (string, error) {
	if !IsUUID(text) {
		return "", field.Wrong(name, "must be a UUID, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58")
	}
	return strings.ToLower(text), nil
}

// IsUUID reports whether the text is a UUID, in either case. An expression took ten times as long.
func IsUUID(text string) bool {
	for i := range len(text) {
		isDash := i == 8 || i == 13 || i == 18 || i == 23
		if isDash != (text[i] == '-') || !isDash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			return false
		}
	}
	return len(text) == 36
}

// maxID is the longest accepted id: twice Stripe's own limit.
const maxID = 512

// isID reports whether the text can be an id of Stripe's, safe in keys and paths, with this prefix.
func isID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || rest == "" || len(text) > maxID {
		return false
	}
	return strings.IndexFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// IsPrice reports whether the text can be the id of a price or plan: ASCII without spaces and slashes,
// and not dots alone. Makers of plans choose such ids as gold.monthly. The id is escaped in a path.
func IsPrice(text string) bool {
	return text != "" && len(text) <= 255 && strings.Trim(text, ".") != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' })
}

// checkText returns a FieldError unless the text is short, printable, and neither card nor secret.
func checkText(name, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return field.Wrong(name, "must contain only printable characters")
	case utf8.RuneCountInString(text) > most:
		return field.Wrong(name, fmt.Sprintf("must have at most %d characters", most))
	case secret.Redact(text) != text:
		return field.Wrong(name, "looks like a Stripe secret, which Duesday never stores")
	case secret.HasCardNumber(text):
		return field.Wrong(name, "looks like a card number, which Duesday never accepts; send it only to Stripe")
	}
	return nil
}
