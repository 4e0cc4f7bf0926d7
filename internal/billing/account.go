package billing

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// An Account is the item ACC of an account's partition.
type Account struct {
	ID       string
	Email    string
	TimeZone string    // IANA name, of its subscriptions' days
	Method   string    // the processor's token, for subscriptions without one of their own
	Given    time.Time // when the method was given; zero: not known
	Payer    Payer     // of its subscriptions
	Created  time.Time
	Copying  bool // an address change has not yet reached every copy
	Mixed    bool // its subscriptions came with different addresses; the next change of the account unites them
	Version  int64

	Raw store.Item // as read; holds the attributes of other tools
}

// MixedAddresses is the attribute FanOut of an account whose Mixed is set.
const MixedAddresses = "mixed"

// Item returns the item to be stored: attributes of other tools stay as they were read.
func (a *Account) Item() store.Item {
	it := itemAt(AccountKey(a.ID))
	it.Set(schema.Version, store.Int(a.Version))
	keepStamp(&it.Item, a.Raw, schema.CreatedDate, a.Created)
	it.text(schema.Email, a.Email)
	it.text(schema.PaymentMethod, a.Method)
	if a.TimeZone != "UTC" {
		it.text(schema.TimeZone, a.TimeZone)
	}
	it.stamp(schema.MethodDate, a.Given)
	a.Payer.set(&it)
	switch {
	case a.Copying:
		it.flag(schema.FanOut, true)
	case a.Mixed:
		it.text(schema.FanOut, MixedAddresses)
	}
	keep(&it.Item, a.Raw, func(name string) bool { return accountOwns[name] })
	return it.Item
}

// accountOwns are the attributes written, or left out on purpose, by Item.
var accountOwns = map[string]bool{
	schema.CreatedDate: true, schema.Email: true, schema.FanOut: true, schema.PK: true, schema.PaymentMethod: true,
	schema.SK: true, schema.TimeZone: true, schema.Version: true, schema.MethodDate: true,
	schema.Customer: true, schema.ProcessorAccount: true, schema.ApplicationFee: true,
}

// DecodeAccount reads the item; it leaves out a payment method that is a card number.
func DecodeAccount(it store.Item) *Account {
	a := &Account{ID: AccountOf(it.Str(schema.PK)), Email: it.Str(schema.Email),
		TimeZone: cmp.Or(it.Str(schema.TimeZone), "UTC"),
		Method:   it.Str(schema.PaymentMethod), Given: readStamp(it.Str(schema.MethodDate)), Payer: payerOf(it),
		Created: readStamp(it.Str(schema.CreatedDate)), Copying: it.Get(schema.FanOut).Bool(),
		Mixed: it.Str(schema.FanOut) == MixedAddresses, Version: it.Int(schema.Version), Raw: it}
	if secret.HasCardInMethod(a.Method) { // another tool has written it
		a.Method = ""
	}
	return a
}

// Unchanged holds while the account is as it was read.
func (a *Account) Unchanged() store.Condition {
	if v := a.Raw.Get(schema.Version); !v.IsZero() {
		return store.AttributeEquals(schema.Version, v)
	}
	return store.AttributeAbsent(schema.Version)
}

// UnchangedCheck holds a commit to the account as it was read.
func (a *Account) UnchangedCheck(table string) store.Write {
	return store.Check(table, AccountKey(a.ID), a.Unchanged())
}

// BumpVersion returns the put of the account, if it is still as it was read. Each commit that
// changes the account's set of subscriptions has it: their ids stay unique.
func (a *Account) BumpVersion(table string) store.Write {
	a.Version++
	return store.Put(table, a.Item(), a.Unchanged())
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
	return DecodeAccount(it), nil
}

// ErrUnchanged is the outcome of a change with nothing to write.
var ErrUnchanged = errors.New("nothing to change")

// Accounts yields all accounts. It scans: for operators, not for jobs.
func (e *Records) Accounts(ctx context.Context) iter.Seq2[*Account, error] {
	return scanned(e, ctx, func(it store.Item) bool { return it.Str(schema.SK) == AccountSK },
		func(it store.Item) (*Account, error) { return DecodeAccount(it), nil })
}
