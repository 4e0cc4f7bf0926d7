package billing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Keys of the recurring-payments table, exactly the published model's. Its text and its JSON
// disagree on the subscription's sort key: the JSON wins.

const (
	AccountSK   = "ACC"
	SubPrefix   = "SUB#"
	RecPrefix   = "REC#"
	PerPrefix   = "PER#"
	MetaPK      = "META"
	WatermarkSK = "FLOOR"
	stampLayout = "2006-01-02T15:04:05.000Z"
)

func AccountPK(account string) string { return "ACC#" + account }

func AccountKey(account string) store.Key { return store.Key{PK: AccountPK(account), SK: AccountSK} }

// A Name names a subscription: ACCOUNT/SUBSCRIPTION, and its SKU when it is known.
type Name struct {
	Account string
	ID      string
	SKU     string // "" when not yet looked up
}

// ParseName reads ACCOUNT/SUBSCRIPTION.
func ParseName(text string) (Name, error) {
	account, id, ok := strings.Cut(text, "/")
	if !ok || CheckID("account", account) != nil || CheckID("subscription", id) != nil {
		return Name{}, fmt.Errorf("subscription %q: want ACCOUNT/SUBSCRIPTION, such as 123/456", secret.MaskCards(text))
	}
	return Name{Account: account, ID: id}, nil
}

func (n Name) String() string { return n.Account + "/" + n.ID }

func (n Name) Key() store.Key {
	return store.Key{PK: AccountPK(n.Account), SK: SubPrefix + n.ID + "#SKU#" + n.SKU}
}

// NameOf reads a subscription's name from its key. ok is false for other items.
func NameOf(k store.Key) (n Name, ok bool) {
	account, of := strings.CutPrefix(k.PK, "ACC#")
	rest, is := strings.CutPrefix(k.SK, SubPrefix)
	id, sku, whole := strings.Cut(rest, "#SKU#")
	if !of || !is || !whole {
		return Name{}, false
	}
	return Name{Account: account, ID: id, SKU: sku}, true
}

// receiptKey is the model's REC#<processed>#SKU#<sku>. The subscription and the period make it
// unique.
func receiptKey(n Name, processed time.Time, period int) store.Key {
	return store.Key{PK: AccountPK(n.Account),
		SK: RecPrefix + Stamp(processed) + "#SKU#" + n.SKU + "#SUB#" + n.ID + "#" + strconv.Itoa(period)}
}

func PeriodKey(n Name, period int) store.Key {
	return store.Key{PK: AccountPK(n.Account), SK: fmt.Sprintf("%s%s#SKU#%s#%06d", PerPrefix, n.ID, n.SKU, period)}
}

func RunPK(kind Kind) string { return "RUN#" + string(kind) }

// Stamp returns the model's form of a timestamp: UTC with milliseconds. It does not use
// time.Format, which took 3 % of a payment run: each charge has half a dozen.
func Stamp(t time.Time) string {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format(stampLayout)
	}
	hour, minute, second := t.Clock()
	b := [24]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 23: 'Z'}
	digits(b[0:4], year)
	digits(b[5:7], int(month))
	digits(b[8:10], day)
	digits(b[11:13], hour)
	digits(b[14:16], minute)
	digits(b[17:19], second)
	digits(b[20:23], t.Nanosecond()/1_000_000)
	return string(b[:])
}

// digits fills b with the last decimal digits of n.
func digits(b []byte, n int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// ParseStamp reads a timestamp in any form of RFC 3339. It returns the zero time for another
// text.
func ParseStamp(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func LeasePK(kind Kind) string { return "LEASE#" + string(kind) }

// HashKey makes an idempotency key. Two requests mean one thing if all parts are equal.
func HashKey(parts ...string) string { return "dd_" + Hash(parts...) }

// Hash returns 32 hexadecimal digits that tell the parts apart from others.
func Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// AccountOf returns the account of a partition key.
func AccountOf(pk string) string { return strings.TrimPrefix(pk, "ACC#") }

// A Kind is one of the two daily jobs.
type Kind string

// The jobs.
const (
	Payments  Kind = "payments"
	Reminders Kind = "reminders"
)

// KeyOf returns the item's key.
func KeyOf(it store.Item) store.Key {
	return store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)}
}

// SubscriptionForm is the sort key of a subscription.
const SubscriptionForm = SubPrefix + "<subscription>#SKU#<sku>"
