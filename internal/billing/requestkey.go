package billing

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

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
)

// AnyPeriod is the period of a KeyedRequest that names no period.
const AnyPeriod = -1

// keyDays is for how many days a key is known: longer than a year's bookkeeping looks back.
const keyDays = 400

// A KeyedRequest is a request with a key. The commit that chooses its period also writes its item
// KEY#…. A repeated key means the same request, which settles nothing again.
type KeyedRequest struct {
	Name
	Key     string // the person's text; the item's key has its hash. "": none, and no item
	Kind    KeyedKind
	Period  int
	Amount  money.Amount
	Note    string
	Taken   civil.Date // when a manual payment was taken, in the subscription's time zone; zero: not known
	Created time.Time
}

// ItemKey is the key of the item.
func (k *KeyedRequest) ItemKey() store.Key {
	return store.Key{PK: AccountPK(k.Account), SK: KeyPrefix + k.ID + "#SKU#" + k.SKU + "#" + Hash("request", k.Key)}
}

// Write returns the put of the item, unless one is there; none without a key.
func (k *KeyedRequest) Write(table string) []store.Write {
	if k.Key == "" {
		return nil
	}
	c := writer(nil)
	k.attributes(c, k.ItemKey())
	return []store.Write{store.Put(table, c.item, store.Absent())}
}

// DecodeKeyed reads the item; Key stays empty.
func DecodeKeyed(it store.Item) (*KeyedRequest, error) {
	k := &KeyedRequest{Name: Name{Account: AccountOf(it.Str(schema.PK))}}
	c := codec{stored: it}
	k.attributes(&c, store.Key{})
	return k, c.err
}

func (k *KeyedRequest) attributes(c *codec, key store.Key) {
	expires := k.Created.AddDate(0, 0, keyDays)
	c.amount(schema.Amount, "request", &k.Amount)
	c.instant(schema.CreatedDate, &k.Created)
	always(c, schema.Kind, &k.Kind)
	text(c, schema.Note, &k.Note)
	c.only(schema.PK, key.PK)
	c.number(schema.Period, &k.Period)
	c.only(schema.SK, key.SK)
	always(c, schema.SKU, &k.SKU)
	always(c, schema.Subscription, &k.ID)
	c.date(schema.TakenDate, &k.Taken)
	attribute(c, schema.TTL, &expires, false, store.KindNone, readExpiry, func(at time.Time) store.Value { return store.Int(at.Unix()) })
}

// Refuses returns an error that names the first difference if the request that is asked for is not
// this one. AnyPeriod, a zero amount or date and an empty note differ from none.
func (k *KeyedRequest) Refuses(asked *KeyedRequest) error {
	var field string
	var was, is any
	switch {
	case asked.Kind != k.Kind:
		field, was, is = "kind", k.Kind, asked.Kind
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
		"request: %w", k.Name, k.Created.Format(time.DateOnly), field, was, is, ErrState)
}

// Keyed returns the request that was committed under the key before, or nil if there is none or no
// key was given. It returns ErrState if that was another request. The caller commits Write of the
// request with its period: of two requests with one key, the second conflicts and finds the first.
func (e *Records) Keyed(ctx context.Context, asked *KeyedRequest) (*KeyedRequest, error) {
	if asked.Key == "" {
		return nil, nil
	}
	it, err := e.Store.Get(ctx, e.Table, asked.ItemKey())
	if err != nil {
		return nil, IgnoreNotFound(err)
	}
	before, err := DecodeKeyed(it)
	if err != nil {
		return nil, err
	}
	return before, before.Refuses(asked)
}
