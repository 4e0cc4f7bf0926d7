package billing

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// An Account is the item ACC of an account's partition.
type Account struct {
	ID       string
	Email    string
	Name     string          // of the customer, for mail; "": not known
	Details  party.Details   // for receipts
	TimeZone string          // IANA name, of its subscriptions' days
	Locale   string          // of its mail, such as pt-BR; "": English
	Bounced  Bounce          // of its address; zero: none
	Method   string          // the processor's token, for subscriptions without one of their own
	Fallback string          // a second token, for a period whose method was declined for good; "": none
	Given    time.Time       // when the method was given; zero: not known
	Payer    processor.Payer // of its subscriptions
	Created  time.Time
	Copying  bool // an address change has not yet reached every copy
	Mixed    bool // its subscriptions came with different addresses; the next change of the account unites them
	Version  int64

	Raw store.Item // as read; holds the attributes of other tools
}

// A Bounce is a mail server's refusal, for good, of an address.
type Bounce struct {
	Email string
	Code  string // the server's: 550 5.1.1
	At    time.Time
}

// MixedAddresses is the attribute FanOut of an account whose Mixed is set.
const MixedAddresses = "mixed"

// Item returns the item to be stored: attributes of other tools stay as they were read.
func (a *Account) Item() store.Item {
	c := writer(a.Raw)
	a.attributes(c)
	return c.written()
}

// DecodeAccount reads the item; it leaves out a payment method that is a card number.
func DecodeAccount(it store.Item) (*Account, error) {
	a, c := &Account{ID: AccountOf(it.Str(schema.PK)), Raw: it}, codec{stored: it}
	if a.attributes(&c); c.err != nil {
		return nil, &IllegibleError{"account " + secret.MaskCards(a.ID) + "'s", UnreadableReason(c.err), nil}
	}
	a.TimeZone = cmp.Or(a.TimeZone, "UTC")
	for _, method := range [...]*string{&a.Method, &a.Fallback} {
		if secret.HasCardInMethod(*method) { // another tool has written it
			*method = ""
		}
	}
	return a, nil
}

// Erased returns the day on which the data of the account's person was erased, or "". Package person erases it.
func (a *Account) Erased() string { return a.Raw.Str(schema.ErasedDate) }

func (a *Account) attributes(c *codec) {
	c.count(schema.ApplicationFee, &a.Payer.Fee, 0)
	a.details(c)
	c.keptStamp(schema.CreatedDate, &a.Created)
	text(c, schema.Customer, &a.Payer.Customer)
	text(c, schema.Email, &a.Email)
	attribute(c, schema.EmailBounced, &a.Bounced, a.Bounced == Bounce{}, store.KindMap, readBounce, writeBounce)
	text(c, schema.Fallback, &a.Fallback)
	a.fanOut(c)
	text(c, schema.Locale, &a.Locale)
	c.stamp(schema.MethodDate, &a.Given)
	text(c, schema.Name, &a.Name)
	c.only(schema.PK, AccountPK(a.ID))
	text(c, schema.PaymentMethod, &a.Method)
	text(c, schema.ProcessorAccount, &a.Payer.At)
	c.only(schema.SK, AccountSK)
	textBut(c, schema.TimeZone, &a.TimeZone, "UTC")
	attribute(c, schema.Version, &a.Version, false, store.KindNumber, readVersion, store.Int)
}

// details keeps the map's members of other tools, and an attribute of another form, which is theirs.
func (a *Account) details(c *codec) {
	stored := c.seek(schema.BillingDetails)
	in := codec{stored: stored.Map(), writing: c.writing}
	for i, f := range a.Details.Fields() {
		text(&in, party.Names[i], f)
	}
	if it := in.written(); len(it) > 0 {
		c.item.Set(schema.BillingDetails, store.M(it))
	} else if stored.Kind() != store.KindMap {
		c.keep(store.Attribute{Name: schema.BillingDetails, Value: stored})
	}
	c.err = cmp.Or(c.err, in.err)
}

func readBounce(v store.Value) Bounce {
	m := v.Map()
	return Bounce{Email: m.Str("email"), Code: m.Str("code"), At: readStamp(m.Str("at"))}
}

func writeBounce(b Bounce) store.Value {
	return store.M(store.NewItem(store.Attribute{Name: "at", Value: store.S(Stamp(b.At))},
		store.Attribute{Name: "code", Value: store.S(b.Code)},
		store.Attribute{Name: "email", Value: store.S(b.Email)}))
}

func (a *Account) fanOut(c *codec) {
	switch v := c.seek(schema.FanOut); {
	case !c.writing && (v.IsZero() || v.Kind() == store.KindBool || v.Str() == MixedAddresses):
		a.Copying, a.Mixed = v.Bool(), v.Str() == MixedAddresses
	case !c.writing:
		c.fail(schema.FanOut, "is not a value that Duesday knows", nil)
	case a.Copying:
		c.item.Set(schema.FanOut, store.Bool(true))
	case a.Mixed:
		c.item.Set(schema.FanOut, store.S(MixedAddresses))
	}
}

// Account returns the account, or store.ErrNotFound.
func (e *Records) Account(ctx context.Context, id string) (*Account, error) {
	if err := CheckID("account", id); err != nil {
		return nil, err
	}
	it, err := e.Store.Get(ctx, e.Table, AccountKey(id))
	if err != nil {
		return nil, err
	}
	return DecodeAccount(it)
}

// ErrUnchanged is the outcome of a change with nothing to write.
var ErrUnchanged = errors.New("nothing to change")

// Accounts yields all accounts. It scans: for operators, not for jobs.
func (e *Records) Accounts(ctx context.Context) iter.Seq2[*Account, error] {
	return scanned(e, ctx, func(it store.Item) bool { return it.Str(schema.SK) == AccountSK },
		DecodeAccount)
}

// An Attachment has the customer, method, Stripe account and fee with which an account's
// subscriptions are charged. Zero fields stay as they are.
type Attachment struct {
	Customer string  // the processor's customer, cus_…
	Fallback *string // a second method, for a period whose method was declined for good; "": none from now on
	Method   string  // the payment method's token; with a Customer, "" is that customer's default

	// Connected is the connected account at the processor, acct_…; "" for our own. Another one
	// than before has no use for customer and method, which are removed.
	Connected *string
	Fee       *int // our share of a charge at the connected account, 0 to 10000 hundredths of a percent
}

// GivesMethod reports whether the account is given a customer or a method, which its subscriptions follow.
func (t *Attachment) GivesMethod() bool { return t.Customer != "" || t.Method != "" }

// Check returns a FieldError for each wrong field as one error, or nil.
func (t *Attachment) Check() error {
	if t.Customer == "" && t.Method == "" && t.Connected == nil && t.Fee == nil && t.Fallback == nil {
		return Invalid("customer", "nothing to attach: name a customer, a payment method, a fallback, a connected "+
			"account or a fee")
	}
	connected, fallback := cmp.Or(t.Connected, new(string)), cmp.Or(t.Fallback, new(string))
	var all []error
	for _, f := range [...]struct{ name, text string }{{"customer", t.Customer}, {"payment_method", t.Method},
		{"fallback", *fallback}, {"connected", *connected}} {
		all = append(all, CheckGiven(f.text, func(id string) error { return CheckID(f.name, id) }))
	}
	if t.Fee != nil && (*t.Fee < 0 || *t.Fee > 10_000) {
		all = append(all, Invalid("fee", "must be 0 to 100 %"))
	}
	return errors.Join(all...)
}

// Payer returns the payer with the changes of the attachment.
func (t *Attachment) Payer(p processor.Payer) (processor.Payer, error) {
	if t.Connected != nil && *t.Connected != p.At {
		p = processor.Payer{At: *t.Connected}
	}
	p.Customer, p.Fee = cmp.Or(t.Customer, p.Customer), *cmp.Or(t.Fee, &p.Fee)
	if p.Fee > 0 && p.At == "" {
		return p, Invalid("fee", "only a connected account pays a fee, but the platform's own account takes this account's payments")
	}
	return p, nil
}
