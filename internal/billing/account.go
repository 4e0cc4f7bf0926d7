package billing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/civil"
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

	raw store.Item // as read: attributes that are not ours are kept
}

var (
	// ErrExists: there is one already.
	ErrExists = errors.New("exists already")
	// ErrState: what was asked does not fit the state it is in.
	ErrState = errors.New("not possible now")
)

// mixed is FanOut of an account whose Mixed is set.
const mixed = "mixed"

func (a *Account) item() store.Item {
	it := store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(accountPK(a.ID))},
		store.Attribute{Name: schema.SK, Value: store.S(accountSK)},
		store.Attribute{Name: schema.Version, Value: store.Int(a.Version)})
	keepStamp(&it, a.raw, schema.CreatedDate, a.Created)
	for _, f := range [...]struct{ name, text string }{{schema.Email, a.Email}, {schema.PaymentMethod, a.Method}} {
		if f.text != "" {
			it.Set(f.name, store.S(f.text))
		}
	}
	if a.TimeZone != "" && a.TimeZone != "UTC" {
		it.Set(schema.TimeZone, store.S(a.TimeZone))
	}
	if !a.Given.IsZero() {
		it.Set(schema.MethodDate, store.S(stamp(a.Given)))
	}
	a.Payer.set(&it)
	switch {
	case a.Copying:
		it.Set(schema.FanOut, store.Bool(true))
	case a.Mixed:
		it.Set(schema.FanOut, store.S(mixed))
	}
	keep(&it, a.raw, func(name string) bool { return accountOwns[name] })
	return it
}

// accountOwns are the attributes that item writes or leaves out on purpose.
var accountOwns = map[string]bool{
	schema.CreatedDate: true, schema.Email: true, schema.FanOut: true, schema.PK: true, schema.PaymentMethod: true,
	schema.SK: true, schema.TimeZone: true, schema.Version: true, schema.MethodDate: true,
	schema.Customer: true, schema.ProcessorAccount: true, schema.ApplicationFee: true,
}

func decodeAccount(it store.Item) *Account {
	a := &Account{ID: trimAccount(it.Str(schema.PK)), Email: it.Str(schema.Email), TimeZone: it.Str(schema.TimeZone),
		Method: it.Str(schema.PaymentMethod), Given: readStamp(it.Str(schema.MethodDate)), Payer: payerOf(it), Created: readStamp(it.Str(schema.CreatedDate)), Copying: it.Get(schema.FanOut).Bool(),
		Mixed: it.Str(schema.FanOut) == mixed, Version: it.Int(schema.Version), raw: it}
	if a.TimeZone == "" {
		a.TimeZone = "UTC"
	}
	if secret.HasCardInMethod(a.Method) { // of another tool's making
		a.Method = ""
	}
	return a
}

// unchanged holds while the account is as it was read.
func (a *Account) unchanged() store.Condition {
	if v := a.raw.Get(schema.Version); !v.IsZero() {
		return store.AttributeEquals(schema.Version, v)
	}
	return store.AttributeAbsent(schema.Version)
}

// bump returns the put of the account if it is still as it was read. Every change in the
// account's set of subscriptions goes through it, which keeps their ids unique.
func (a *Account) bump(table string) store.Write {
	a.Version++
	return store.Put(table, a.item(), a.unchanged())
}

// Account returns the account, or store.ErrNotFound.
func (e *Engine) Account(ctx context.Context, id string) (*Account, error) {
	if err := CheckID("account", id); err != nil {
		return nil, err
	}
	it, err := e.store.Get(ctx, e.table, accountKey(id))
	if err != nil {
		return nil, err
	}
	return decodeAccount(it), nil
}

// wallet returns what the subscription's next period is charged with: its own token, or its
// account's, "" when neither has one; and the payer. The account is only read for what the
// subscription does not know: a processor without customers needs no payer.
func (e *Engine) wallet(ctx context.Context, s *Subscription) (method string, p Payer, err error) {
	if _, ok := e.proc.(Wallet); !ok && s.Method != "" {
		return s.Method, p, nil
	}
	it, err := e.store.Get(ctx, e.table, accountKey(s.Account))
	if errors.Is(err, store.ErrNotFound) {
		return s.Method, p, nil
	}
	if err != nil {
		return "", p, err
	}
	a := decodeAccount(it)
	return cmp.Or(s.Method, a.Method), a.Payer, nil
}

// CreateAccount makes an account without a subscription; ErrExists when there is one.
func (e *Engine) CreateAccount(ctx context.Context, id, email, zone string) (*Account, error) {
	if err := CheckID("account", id); err != nil {
		return nil, err
	}
	if err := CheckEmail(email); err != nil {
		return nil, err
	}
	if zone != "" {
		if _, err := civil.Zone(zone); err != nil {
			return nil, fieldError("time_zone", err.Error())
		}
	}
	if err := e.live(ctx); err != nil {
		return nil, err
	}
	a := &Account{ID: id, Email: email, TimeZone: zone, Created: e.now(), Version: 1}
	err := e.store.Commit(ctx, store.Put(e.table, a.item(), store.Absent()))
	if errors.Is(err, store.ErrConflict) {
		return nil, fmt.Errorf("account %s %w", id, ErrExists)
	}
	return a, err
}

// An AccountChange is what an account may be changed to; nil fields stay as they are.
type AccountChange struct {
	Email    *string
	TimeZone *string // decides which day it is for its subscriptions from now on
}

// UpdateAccount changes the account and every copy of what it changes: the address on
// subscriptions and receipts, the time zone on subscriptions. The account says so until all
// copies follow, so that a change that was cut off is seen, and done again by asking again.
func (e *Engine) UpdateAccount(ctx context.Context, id string, c AccountChange) (*Account, error) {
	if c.Email != nil {
		if err := CheckEmail(*c.Email); err != nil {
			return nil, err
		}
	}
	if c.TimeZone != nil {
		if _, err := civil.Zone(*c.TimeZone); err != nil {
			return nil, fieldError("time_zone", err.Error())
		}
	}
	a, err := e.changeAccount(ctx, id, func(a *Account) error {
		if c.Email != nil {
			a.Email = *c.Email
		}
		if c.TimeZone != nil {
			a.TimeZone = *c.TimeZone
		}
		a.Copying, a.Mixed = true, false
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, prefix := range []string{subPrefix, recPrefix} {
		q := store.Query{Table: e.table, Partition: accountPK(id), Prefix: prefix}
		for it, err := range e.store.Query(ctx, q) {
			if err != nil {
				return nil, err
			}
			if err := e.copyInto(ctx, it, a); err != nil {
				return nil, err
			}
		}
	}
	return e.changeAccount(ctx, id, func(now *Account) error {
		now.Copying = now.Copying && (now.Email != a.Email || now.TimeZone != a.TimeZone)
		return nil
	})
}

// errAsIs is what a change decides when there is nothing to be written.
var errAsIs = errors.New("nothing to change")

// changeAccount decides anew until its commit meets the account as it was read, and returns
// the account as it then is. change may be asked again after a commit of which nobody knows
// whether it landed; errAsIs from it writes nothing and is no error. The writes go into the
// same commit.
func (e *Engine) changeAccount(ctx context.Context, id string, change func(*Account) error, others ...store.Write) (*Account, error) {
	for range maxTries {
		if err := e.live(ctx); err != nil {
			return nil, err
		}
		a, err := e.Account(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := change(a); errors.Is(err, errAsIs) {
			return a, nil
		} else if err != nil {
			return nil, err
		}
		w := a.bump(e.table)
		if err = e.store.Commit(ctx, append([]store.Write{w}, others...)...); err == nil {
			a.raw = w.Item
			return a, nil
		} else if !again(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("account %s: overtaken by others %d times", id, maxTries)
}

// copyInto writes the account's values into one subscription or receipt that differs. The
// account must still have them, or a change that was overtaken would leave old copies behind
// the newer one's. A receipt that has expired meanwhile needs no copy.
func (e *Engine) copyInto(ctx context.Context, it store.Item, a *Account) error {
	n, isSubscription := nameOf(keyOf(it))
	if !isSubscription && it.Str(schema.Email) == a.Email {
		return nil
	}
	for range maxTries {
		now, err := e.Account(ctx, a.ID)
		if err != nil {
			return err
		}
		if now.Email != a.Email || now.TimeZone != a.TimeZone {
			return fmt.Errorf("account %s was changed again meanwhile: %w", a.ID, ErrState)
		}
		still := store.Check(e.table, accountKey(a.ID), now.unchanged())
		if isSubscription {
			var s *Subscription
			if s, err = e.load(ctx, n); err != nil {
				return err
			}
			if s.Email == a.Email && (s.TimeZone == a.TimeZone || (s.TimeZone == "" && a.TimeZone == "UTC")) {
				return nil
			}
			s.Email, s.TimeZone = a.Email, a.TimeZone
			err = e.put(ctx, s, still)
		} else {
			if _, err = e.store.Get(ctx, e.table, keyOf(it)); errors.Is(err, store.ErrNotFound) {
				return nil
			}
			set := store.NewItem(store.Attribute{Name: schema.Email, Value: store.S(a.Email)})
			err = e.store.Commit(ctx, store.Update(e.table, keyOf(it), set, nil), still)
		}
		if !again(err) {
			return err
		}
	}
	return fmt.Errorf("%s %s: overtaken by others %d times", it.Str(schema.PK), it.Str(schema.SK), maxTries)
}

// Accounts yields all accounts. It scans: for operators, not for jobs.
func (e *Engine) Accounts(ctx context.Context) iter.Seq2[*Account, error] {
	return func(yield func(*Account, error) bool) {
		for it, err := range e.store.Scan(ctx, store.Scan{Table: e.table}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if it.Str(schema.SK) == accountSK && !yield(decodeAccount(it), nil) {
				return
			}
		}
	}
}
