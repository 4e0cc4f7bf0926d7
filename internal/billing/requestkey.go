package billing

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A KeyedKind is the kind of a request that can have a key.
type KeyedKind string

// The kinds.
const (
	KeyedReceipt KeyedKind = "receipt" // a manual payment
	KeyedCharge  KeyedKind = "charge"  // of one period
	KeyedRefund  KeyedKind = "refund"  // of one period's charge
	KeyedUpgrade KeyedKind = "upgrade" // of the next period, to the SKU in Note
)

// AnyPeriod is the period of a KeyedRequest that names no period.
const AnyPeriod = -1

// A KeyedRequest is what a request asks for whose call has a key. A repeated key means the same
// request, which settles nothing again.
type KeyedRequest struct {
	Name
	Kind    KeyedKind // "" for a request of another kind
	Period  int
	Attempt int          // the charge's only attempt; 0: not known, or no charge
	Amount  money.Amount // zero: the amount that is owed or left
	Note    string
	Taken   civil.Date // when a manual payment was taken, in the subscription's time zone; zero: not known
	Created time.Time
}

// oldKey is the key of the item that an older Duesday wrote, kept for 400 days.
func (k *KeyedRequest) oldKey(key string) store.Key {
	return store.Key{PK: AccountPK(k.Account), SK: KeyPrefix + k.ID + "#SKU#" + k.SKU + "#" + Hash("request", key)}
}

// Fix adds the request to the row of the call's key, which the call's first commit stores.
func (k *KeyedRequest) Fix(ctx context.Context) {
	if c := call.Of(ctx); c != nil {
		w := writer(nil)
		k.attributes(w)
		w.item.Set(schema.Account, store.S(k.Account))
		c.Extra = w.item
		call.Creates(ctx, "accounts/"+k.Account+"/subscriptions/"+k.ID) // from a command line
	}
}

// DecodeKeyed reads the row of a key, or the item that an older Duesday wrote.
func DecodeKeyed(it store.Item) (*KeyedRequest, error) {
	k := &KeyedRequest{Name: Name{Account: cmp.Or(it.Str(schema.Account), AccountOf(it.Str(schema.PK)))}}
	c := codec{stored: it}
	k.attributes(&c)
	return k, c.err
}

func (k *KeyedRequest) attributes(c *codec) {
	if c.stored.Has(schema.Amount) || !k.Amount.IsZero() {
		c.amount(schema.Amount, "request", &k.Amount)
	}
	c.number(schema.Attempt, &k.Attempt)
	c.instant(schema.CreatedDate, &k.Created)
	always(c, schema.Kind, &k.Kind)
	text(c, schema.Note, &k.Note)
	c.number(schema.Period, &k.Period)
	always(c, schema.SKU, &k.Name.SKU)
	always(c, schema.Subscription, &k.ID)
	c.date(schema.TakenDate, &k.Taken)
}

// Refuses returns an error that names the first difference if the request that is asked for is not
// this one. AnyPeriod, a zero amount or date and an empty note differ from none.
func (k *KeyedRequest) Refuses(asked *KeyedRequest) error {
	var field string
	var was, is any
	switch {
	case asked.Kind != k.Kind:
		field, was, is = "kind", cmp.Or(k.Kind, "other"), asked.Kind
	case asked.Name != k.Name:
		field, was, is = "subscription", k.Name, asked.Name
	case asked.Period != AnyPeriod && asked.Period != k.Period:
		field, was, is = "period", k.Period, asked.Period
	case cmp.Or(asked.Amount, k.Amount) != k.Amount:
		field, was, is = "amount", k.Amount, asked.Amount
	case !k.Taken.IsZero() && cmp.Or(asked.Taken, k.Taken) != k.Taken:
		field, was, is = "date", k.Taken, asked.Taken
	case cmp.Or(asked.Note, k.Note) != k.Note:
		field, was, is = "note", strconv.Quote(k.Note), strconv.Quote(asked.Note)
	default:
		return nil
	}
	return fmt.Errorf("subscription %s: the key was used on %s for a request with %s %v, not %v; use a new key for a new "+
		"request: %w", asked.Name, k.Created.Format(time.DateOnly), field, was, is, ErrState)
}

// CheckKey returns a FieldError if the call's key came from a command line and is not valid. Package web checks
// the key of a request, of which only the hash is stored.
func CheckKey(ctx context.Context) error {
	if c := call.Of(ctx); c != nil && c.Hash == "" {
		return CheckText("key", c.Key, MaxID)
	}
	return nil
}

// Keyed returns the request that was committed under the call's key before, or nil if there is none
// or the call has no key. It returns ErrState if that was another request. The caller fixes its
// request before the first commit: of two requests with one key, the second gets a
// call.RepeatedError, and Keyed then finds the first.
func (e *Records) Keyed(ctx context.Context, asked *KeyedRequest) (before *KeyedRequest, err error) {
	row, err := call.Begin(ctx, e.Store, func(row *call.Row) error {
		if before, err = DecodeKeyed(row.Item); err == nil {
			err = before.Refuses(asked)
		}
		return err
	})
	switch key := call.KeyOf(ctx); {
	case row != nil && before == nil && err == nil: // found by an earlier look
		return DecodeKeyed(row.Item)
	case row != nil || err != nil || key == "" || call.Of(ctx).Stored():
		return before, err
	default:
		it, err := e.Store.Get(ctx, e.Table, asked.oldKey(key))
		if err != nil {
			return nil, IgnoreNotFound(err)
		}
		if before, err = DecodeKeyed(it); err == nil {
			err = before.Refuses(asked)
		}
		return before, err
	}
}
