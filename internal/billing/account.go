package billing

import (
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
	TimeZone string    // IANA name; decides what day it is for its subscriptions
	Method   string    // the processor's token that subscriptions without one of their own are charged with
	Given    time.Time // when the method was given; zero: not known
	Payer    Payer     // where and from whom its subscriptions are charged
	Created  time.Time
	Copying  bool // an address change has not yet reached every copy
	Mixed    bool // its subscriptions came with different addresses, and keep them until the account is changed
	Version  int64

	Raw store.Item // as read: attributes that are not ours are kept
}

// mixed is FanOut of an account whose Mixed is set.
const MixedAddresses = "mixed"

func (a *Account) Item() store.Item {
	it := store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(AccountPK(a.ID))},
		store.Attribute{Name: schema.SK, Value: store.S(AccountSK)},
		store.Attribute{Name: schema.Version, Value: store.Int(a.Version)})
	keepStamp(&it, a.Raw, schema.CreatedDate, a.Created)
	for _, f := range [...]struct{ name, text string }{{schema.Email, a.Email}, {schema.PaymentMethod, a.Method}} {
		if f.text != "" {
			it.Set(f.name, store.S(f.text))
		}
	}
	if a.TimeZone != "" && a.TimeZone != "UTC" {
		it.Set(schema.TimeZone, store.S(a.TimeZone))
	}
	if !a.Given.IsZero() {
		it.Set(schema.MethodDate, store.S(Stamp(a.Given)))
	}
	a.Payer.set(&it)
	switch {
	case a.Copying:
		it.Set(schema.FanOut, store.Bool(true))
	case a.Mixed:
		it.Set(schema.FanOut, store.S(MixedAddresses))
	}
	keep(&it, a.Raw, func(name string) bool { return accountOwns[name] })
	return it
}

// accountOwns are the attributes that item writes or leaves out on purpose.
var accountOwns = map[string]bool{
	schema.CreatedDate: true, schema.Email: true, schema.FanOut: true, schema.PK: true, schema.PaymentMethod: true,
	schema.SK: true, schema.TimeZone: true, schema.Version: true, schema.MethodDate: true,
	schema.Customer: true, schema.ProcessorAccount: true, schema.ApplicationFee: true,
}

func DecodeAccount(it store.Item) *Account {
	a := &Account{ID: AccountOf(it.Str(schema.PK)), Email: it.Str(schema.Email), TimeZone: it.Str(schema.TimeZone),
		Method: it.Str(schema.PaymentMethod), Given: readStamp(it.Str(schema.MethodDate)), Payer: payerOf(it), Created: readStamp(it.Str(schema.CreatedDate)), Copying: it.Get(schema.FanOut).Bool(),
		Mixed: it.Str(schema.FanOut) == MixedAddresses, Version: it.Int(schema.Version), Raw: it}
	if a.TimeZone == "" {
		a.TimeZone = "UTC"
	}
	if secret.HasCardInMethod(a.Method) { // of another tool's making
		a.Method = ""
	}
	return a
}

// unchanged holds while the account is as it was read.
func (a *Account) Unchanged() store.Condition {
	if v := a.Raw.Get(schema.Version); !v.IsZero() {
		return store.AttributeEquals(schema.Version, v)
	}
	return store.AttributeAbsent(schema.Version)
}

// bump returns the put of the account if it is still as it was read. Every change in the
// account's set of subscriptions goes through it, which keeps their ids unique.
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

// errAsIs is what a change decides when there is nothing to be written.
var ErrUnchanged = errors.New("nothing to change")

// Accounts yields all accounts. It scans: for operators, not for jobs.
func (e *Records) Accounts(ctx context.Context) iter.Seq2[*Account, error] {
	return func(yield func(*Account, error) bool) {
		for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if it.Str(schema.SK) == AccountSK && !yield(DecodeAccount(it), nil) {
				return
			}
		}
	}
}

// still holds while the account is as it was read.
func (a *Account) UnchangedCheck(table string) store.Write {
	return store.Check(table, AccountKey(a.ID), a.Unchanged())
}
