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

// An Order describes a purchase to create. Duesday stores it with the purchase before it calls
// Stripe. The JSON tags are the names in the stored form, so they must not change.
type Order struct {
	Tag Tag    `json:"-"` // set by CreatePurchase
	At  string `json:"-"` // connected account, or "" for our own; set by CreatePurchase
	By  string `json:"-"` // ID of the requesting API key, for the timeline; "" for a command

	Merchant string `json:"account"` // UUID of the seller
	Kind     Kind   `json:"kind"`
	// Key is the idempotency key that the caller chooses, with 1 to 255 characters. The same key
	// and merchant always mean the same purchase. Duesday stores the key, so it must not contain a
	// card number.
	Key string `json:"key"`

	Amount      int64  `json:"amount,omitempty"`      // minor units, for legacy, and for product without a price
	Currency    string `json:"currency,omitempty"`    // ISO 4217 in either case; required with an amount
	Price       string `json:"price,omitempty"`       // Stripe price for subscription and split, optional for product
	Payments    int    `json:"payments,omitempty"`    // number of payments, for split
	Description string `json:"description,omitempty"` // up to 500 characters, visible to buyers

	Customer      string `json:"customer,omitempty"`       // cus_…; if "", Duesday finds a customer by email or creates one
	Email         string `json:"email,omitempty"`          // of the buyer
	Name          string `json:"name,omitempty"`           // of the buyer
	PaymentMethod string `json:"payment_method,omitempty"` // pm_…, created by the buyer's client; for every kind except legacy
}

const (
	maxKey         = 255
	maxDescription = 500
	maxName        = 200
	maxPayments    = 120
	maxAmount      = 99_999_999 // minor units, the maximum that Stripe accepts
)

// Check returns a FieldError for each invalid field as one error. It does not check whether the IDs
// exist, because Stripe does.
func (o *Order) Check() error {
	var all []error
	for _, f := range [...]struct {
		name, text string
		most       int
	}{{"key", o.Key, maxKey}, {"description", o.Description, maxDescription}, {"email", o.Email, maxKey},
		{"name", o.Name, maxName}, {"price", o.Price, maxKey}, {"customer", o.Customer, maxKey},
		{"payment_method", o.PaymentMethod, maxKey}} {
		all = append(all, checkText(f.name, f.text, f.most))
	}
	for _, f := range [...]struct{ name, text, prefix string }{{"customer", o.Customer, "cus_"},
		{"payment_method", o.PaymentMethod, "pm_"}} {
		if f.text != "" && (!isID(f.text, f.prefix) || strings.Contains(f.text, "-")) {
			all = append(all, field.Wrong(f.name, "must be a Stripe ID that begins with "+f.prefix))
		}
	}
	split := o.Kind == SplitPayment
	byPrice := split || o.Kind == Subscribe || o.Kind == Product && o.Price != ""
	byAmount := o.Kind == Legacy || o.Kind == Product && o.Price == "" // neither: the kind is wrong
	byClient := o.Kind != Legacy && (byAmount || byPrice)
	for _, f := range [...]struct {
		wrong         bool
		name, problem string
	}{
		{o.Key == "", "key", "must be set: a text of your choice that identifies the order, so that it is never repeated by mistake"},
		{!byAmount && !byPrice, "kind", "must be legacy, product, subscription or split"},
		{o.Price != "" && !IsPrice(o.Price), "price", "must be a Stripe price or plan ID: ASCII characters without spaces and slashes"},
		{o.Email != "" && !isAddress(o.Email), "email", "must be a single address, such as ada@example.com"},
		{byAmount && (o.Amount <= 0 || o.Amount > maxAmount), "amount", "must be 1 to 99999999 minor units"},
		{byAmount && !isCurrency(o.Currency), "currency", "must be an active ISO 4217 code, such as USD"},
		{byAmount && o.Price != "", "price", "must be empty for a legacy purchase, which has an amount"},
		{byPrice && (o.Amount != 0 || o.Currency != ""), "amount", "must be empty, like currency, because the price sets both"},
		{byPrice && o.Price == "", "price", "must be a Stripe price ID"},
		{split && (o.Payments < 2 || o.Payments > maxPayments), "payments", "must be 2 to 120"},
		{!split && o.Payments != 0, "payments", "must be empty except for a split purchase"},
		{o.Kind == Legacy && o.PaymentMethod != "", "payment_method", "must be empty for a legacy purchase, because the buyer's client completes it"},
		{byClient && o.PaymentMethod == "", "payment_method", "must be the payment method that the buyer's client created, pm_…"},
		{byClient && o.Customer == "" && o.Email == "", "customer", "must be a customer, cus_…, unless email is set"},
	} {
		if f.wrong {
			all = append(all, field.Wrong(f.name, f.problem))
		}
	}
	return errors.Join(all...)
}

func isCurrency(code string) bool {
	_, err := money.ParseCurrency(code)
	return err == nil
}

// isAddress reports whether Stripe can accept the text as an email address. It must be a bare
// address whose domain contains a dot.
func isAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	at := strings.LastIndexByte(text, '@')
	return err == nil && a.Address == text && strings.Contains(strings.Trim(text[at+1:], "."), ".")
}

// encode returns the stored form of the order, and a hash of the order without its key.
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

// A Finder fetches objects from Stripe. The argument at is the connected account, or "" for our
// own. Every Object it returns is Fetched. It returns ErrGone if the object does not exist, and
// ErrDisconnected if the account has disconnected. After any other error the state is unknown, and
// the caller may try again.
type Finder interface {
	// Object returns an object whose kind Duesday follows. For a payment intent it also sets the
	// invoice and the invoice's subscription, if any, and InvoiceTold. The Tag comes from the first
	// of these three objects that has one.
	Object(ctx context.Context, at, kind, id string) (Object, error)
	// Connected returns nil if the account grants us access, and ErrDisconnected otherwise.
	Connected(ctx context.Context, at string) error
}

// A Seller creates a purchase's objects in Stripe. It puts the order's Tag into the metadata of
// each object, and sends each request with an idempotency key derived from the purchase ID.
type Seller interface {
	// Check returns a FieldError if Stripe is certain to refuse the order. It sends no request.
	Check(o Order) error
	// Sell creates the objects of the order, and charges the payment method if the order names one.
	// If again is set, an earlier call may have stopped at any point and at any time, so Sell finds
	// the objects of that call and continues with them. It never creates or charges anything twice.
	// A declined payment is not an error.
	Sell(ctx context.Context, o Order, again bool) (Sale, error)
	// Find returns the objects that Sell has created so far. It does not create or charge anything.
	Find(ctx context.Context, o Order) (Sale, error)
}

// A Sale holds the Stripe objects of a purchase.
type Sale struct {
	// Objects are the payment intent, or the subscription with its first payment intent, or the
	// schedule with both. All are Fetched, and the payment's links are set.
	Objects  []Object
	Customer string // cus_…
	// ClientSecret lets the buyer's browser complete a legacy purchase, or a payment that the buyer
	// must authenticate. Duesday never stores or logs it.
	ClientSecret secret.Text
	Declined     string // Stripe's reason for declining the payment; "" if it was not declined
	Action       bool   // the buyer must authenticate the payment
}

// A Settler settles the open period of a billing subscription, if there is one, from the period's
// payment intent.
type Settler interface {
	Heard(ctx context.Context, account, subscription, intent string) error
}

var (
	// ErrGone is returned if Stripe does not have the object.
	ErrGone = errors.New("no such object exists at Stripe")
	// ErrDisconnected is returned if the account is not connected, or is not connected any more.
	ErrDisconnected = errors.New("the Stripe account is not connected")
	// ErrOrder is returned if Stripe refused the order before any money moved. Its text names the
	// problem.
	ErrOrder = errors.New("the order was refused by Stripe")
)

// checkUUID returns the UUID in lower case, or a FieldError if the text is not a UUID.
func checkUUID(name, text string) (string, error) {
	if !IsUUID(text) {
		return "", field.Wrong(name, "must be a UUID, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58")
	}
	return strings.ToLower(text), nil
}

// IsUUID reports whether the text is a UUID in upper or lower case. A regular expression took ten
// times as long.
func IsUUID(text string) bool {
	for i := range len(text) {
		isDash := i == 8 || i == 13 || i == 18 || i == 23
		if isDash != (text[i] == '-') || !isDash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			return false
		}
	}
	return len(text) == 36
}

// maxID is the maximum length of an accepted ID, which is twice Stripe's own limit.
const maxID = 512

// isID reports whether the text can be a Stripe ID with this prefix. Such an ID is safe in keys and
// paths.
func isID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || rest == "" || len(text) > maxID {
		return false
	}
	return strings.IndexFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// IsPrice reports whether the text can be a price or plan ID. It must be ASCII without spaces and
// slashes, and must not consist only of dots. Merchants can choose plan IDs such as gold.monthly.
// Callers escape the ID in a path.
func IsPrice(text string) bool {
	return text != "" && len(text) <= 255 && strings.Trim(text, ".") != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' })
}

// checkText returns a FieldError if the text is too long, is not printable, or looks like a card
// number or a secret.
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
