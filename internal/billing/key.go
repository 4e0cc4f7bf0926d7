package billing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Keys of the recurring-payments table, exactly the published model's. Its text and its JSON
// disagree on the subscription's sort key: Duesday writes the JSON's, and reads both.

const (
	AccountSK   = "ACC"
	SubPrefix   = "SUB#"
	RecPrefix   = "REC#"
	PerPrefix   = "PER#"
	KeyPrefix   = "KEY#"
	MetaPK      = "META"
	WatermarkSK = "FLOOR"
)

// AccountPK is the partition key of an account's items.
func AccountPK(account string) string { return "ACC#" + account }

// AccountKey is the key of an account's own item.
func AccountKey(account string) store.Key { return store.Key{PK: AccountPK(account), SK: AccountSK} }

// A Name names a subscription: ACCOUNT/SUBSCRIPTION, and its SKU when it is known.
type Name struct {
	Account string
	ID      string
	SKU     string // "" when not yet looked up
}

// TaggedName returns the name of the subscription whose period an intent was opened for.
func TaggedName(t processor.Tag) Name {
	return Name{Account: t.Account, ID: t.Subscription, SKU: t.SKU}
}

// ParseName reads ACCOUNT/SUBSCRIPTION.
func ParseName(text string) (Name, error) {
	account, id, ok := strings.Cut(text, "/")
	if !ok || CheckID("account", account) != nil || CheckID("subscription", id) != nil {
		return Name{}, fmt.Errorf("subscription must be ACCOUNT/SUBSCRIPTION, such as 123/456 (got %q)", secret.MaskCards(text))
	}
	return Name{Account: account, ID: id}, nil
}

func (n Name) String() string { return n.Account + "/" + n.ID }

// Key is the key of the subscription's item, if the SKU is known.
func (n Name) Key() store.Key {
	return store.Key{PK: AccountPK(n.Account), SK: SubPrefix + n.ID + "#SKU#" + n.SKU}
}

// TextKey is the key in the form of the model's text.
func (n Name) TextKey() store.Key {
	return store.Key{PK: AccountPK(n.Account), SK: SubPrefix + n.ID + "#SKU" + n.SKU}
}

// NameOf reads a subscription's name from its key, in either form. ok is false for other items.
func NameOf(k store.Key) (n Name, ok bool) {
	account, of := strings.CutPrefix(k.PK, "ACC#")
	rest, is := strings.CutPrefix(k.SK, SubPrefix)
	id, sku, whole := strings.Cut(rest, "#SKU")
	if !of || !is || !whole {
		return Name{}, false
	}
	return Name{Account: account, ID: id, SKU: strings.TrimPrefix(sku, "#")}, true
}

// RowName returns the name of an index's row, or a key of another form, with an IllegibleError.
func RowName(it store.Item) (Name, error) {
	k := KeyOf(it)
	n, ok := NameOf(k)
	if !ok {
		return Name{Account: AccountOf(k.PK), ID: secret.MaskCards(k.SK)},
			&IllegibleError{schema.SK, "is not " + SubscriptionForm, nil}
	}
	return n, nil
}

// StrayRow returns RowName's error for an item under SUB#, or in an index, that is no subscription.
func StrayRow(it store.Item) error {
	inIndex := it.Has(schema.NextPaymentDate) && it.Has(schema.LastPaymentDate) ||
		it.Has(schema.NextReminderDate) && it.Has(schema.LastReminderDate)
	if !inIndex && !strings.HasPrefix(it.Str(schema.SK), SubPrefix) {
		return nil
	}
	_, err := RowName(it)
	return err
}

// receiptKey is the model's REC#<processed>#SKU#<sku>. Subscription and period make it unique.
func receiptKey(n Name, processed time.Time, period int) store.Key {
	return store.Key{PK: AccountPK(n.Account),
		SK: RecPrefix + Stamp(processed) + "#SKU#" + n.SKU + "#SUB#" + n.ID + "#" + strconv.Itoa(period)}
}

// PeriodKey is the key of the record of a period that did not end paid.
func PeriodKey(n Name, period int) store.Key {
	return store.Key{PK: AccountPK(n.Account), SK: fmt.Sprintf("%s%s#SKU#%s#%06d", PerPrefix, n.ID, n.SKU, period)}
}

// RunPK is the partition key of the records of a job's runs, and of its low watermark.
func RunPK(kind Kind) string { return "RUN#" + string(kind) }

// Stamp returns the model's form of a timestamp: UTC with milliseconds. A layout with milliseconds
// is several times slower, and took 3 % of a payment run: each charge has half a dozen.
func Stamp(t time.Time) string {
	t = t.UTC()
	b := t.AppendFormat(make([]byte, 0, 32), time.RFC3339) // ends in Z
	ms := t.Nanosecond() / int(time.Millisecond)
	return string(append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}

// ParseStamp reads a timestamp in any form of RFC 3339. It returns the zero time for another text.
func ParseStamp(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t.UTC()
}

// LeasePK is the partition key of a job's leases.
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

// A Kind is that of a run: one of the two daily jobs, or a check that a program has requested.
type Kind string

// The kinds of runs.
const (
	Payments  Kind = "payments"
	Reminders Kind = "reminders"
	Audits    Kind = "verify" // these two are no daily jobs: a program requests them
	Adoptions Kind = "reconcile"
)

// KeyOf returns the item's key.
func KeyOf(it store.Item) store.Key { return store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)} }

// SubscriptionForm is the sort key of a subscription as Duesday writes it.
const SubscriptionForm = SubPrefix + "<subscription>#SKU#<sku>"

// A date is a partition of an index, and DynamoDB takes about a thousand writes a second into
// one. Therefore a store has a number of shards per date, set when it is made. One shard is
// exactly the published model's "2023-06-28"; more append the shard: "2023-06-28#07".

// MaxShards is the largest number of shards per date: two digits.
const MaxShards = 100

const shardMark = "#"

// placed returns the date as an index's partition key, in the shard by the name's hash, for good.
func placed(d civil.Date, n Name, shards int) string {
	return d.String() + ShardOf(n, shards)
}

// ShardOf returns the end of the subscription's partitions, such as #07, or "" with one shard.
func ShardOf(n Name, shards int) string {
	if shards <= 1 {
		return ""
	}
	h := fnv.New32a()
	h.Write([]byte(n.Account + "/" + n.ID))
	return shard(h.Sum32(), shards)
}

// IndexDate returns the date of a partition key, with or without a shard.
func IndexDate(text string) string {
	d, _, _ := strings.Cut(text, shardMark)
	return d
}

// Partitions yields an index's partitions of the date, the bare date of other tools among them.
func (e *Records) Partitions(d civil.Date) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(d.String()) || e.Opened.Shards <= 1 {
			return
		}
		for end := range Shards(e.Opened.Shards) {
			if !yield(d.String() + end) {
				return
			}
		}
	}
}

// Shards yields the ends of an index's partitions, as ShardOf returns them.
func Shards(shards int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range max(1, shards) {
			if !yield(shard(uint32(i), shards)) {
				return
			}
		}
	}
}

func shard(i uint32, shards int) string {
	if shards <= 1 {
		return ""
	}
	return fmt.Sprintf("%s%02d", shardMark, i%uint32(shards))
}

// Walks reports whether the jobs look at an index partition, or its attribute is absent.
func (e *Records) Walks(attribute string) bool {
	d, err := civil.Parse(IndexDate(attribute))
	if err != nil {
		return attribute == ""
	}
	for partition := range e.Partitions(d) {
		if partition == attribute {
			return true
		}
	}
	return false
}

// Reshard returns an item for a store of so many shards per date, if it is a subscription's.
func Reshard(it store.Item, shards int) store.Item {
	n, ok := NameOf(KeyOf(it))
	if !ok {
		return it
	}
	it = it.Clone()
	for _, name := range [...]string{schema.NextPaymentDate, schema.NextReminderDate} {
		if d, err := civil.Parse(IndexDate(it.Str(name))); err == nil {
			it.Set(name, store.S(placed(d, n, shards)))
		}
	}
	return it
}
