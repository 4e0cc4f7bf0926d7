package billing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing/cardless"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A codec reads an item into a record, or writes a record as an item. A record lists its attributes
// once, for both directions, in byte order of their names: each search goes on from the one before,
// and each write is an append. A search for each name took a twentieth of a payment run.
//
// An absent attribute leaves its field. Defaults are not written, unless the method says otherwise.
type codec struct {
	stored  store.Item // the item to be read, or the record's item as it was read
	at      int        // the first attribute of stored not yet passed
	writing bool
	item    store.Item // written so far
	err     error      // of the first unreadable attribute
}

// writer returns a codec to write an item that keeps the attributes of other tools in stored.
func writer(stored store.Item) *codec {
	return &codec{stored: stored, writing: true, item: make(store.Item, 0, 16+len(stored))}
}

// seek goes on to the attribute, returns its value, and on writing keeps other tools' before it.
func (c *codec) seek(name string) store.Value {
	for ; c.at < len(c.stored) && c.stored[c.at].Name < name; c.at++ {
		c.keep(c.stored[c.at])
	}
	if c.at == len(c.stored) || c.stored[c.at].Name != name {
		return store.Value{}
	}
	c.at++
	return c.stored[c.at-1].Value
}

// keep copies an attribute of other tools, but no card number.
func (c *codec) keep(a store.Attribute) {
	if !c.writing || cardless.IsName(a.Name) || secret.HasCardNumber(a.Name) {
		return
	}
	if v, _ := cardless.Of(a.Value); v.Kind() != store.KindNone {
		c.item.Set(a.Name, v)
	}
}

// written returns the whole item.
func (c *codec) written() store.Item {
	for _, a := range c.stored[c.at:] {
		c.keep(a)
	}
	return c.item
}

// fail notes the first unreadable attribute.
func (c *codec) fail(name, reason string, err error) {
	if c.err == nil {
		c.err = &IllegibleError{name, reason, err}
	}
}

// attribute reads the attribute if it is there, or writes it unless it is to be left out. A value of
// another kind is unreadable, because what it stands for decides about money.
func attribute[T any](c *codec, name string, p *T, leftOut bool, kind store.Kind, read func(store.Value) T,
	write func(T) store.Value) {
	switch was := c.seek(name); {
	case c.writing && !leftOut:
		c.item.Set(name, write(*p))
	case !c.writing && !was.IsZero() && c.isA(kind, name, was):
		*p = read(was)
	}
}

// isA reports whether the value is of the kind, and a number is whole; KindNone: any. It notes another one.
func (c *codec) isA(kind store.Kind, name string, v store.Value) bool {
	_, whole := v.Int64()
	if kind == store.KindNone || v.Kind() == kind && (whole || kind != store.KindNumber) {
		return true
	}
	c.fail(name, "is not "+map[store.Kind]string{store.KindString: "a string", store.KindNumber: "a whole number",
		store.KindBool: "a boolean", store.KindMap: "a map", store.KindList: "a list"}[kind], nil)
	return false
}

// inner reads or writes a record in a map; nil is none, and absent. what names it in errors.
func inner[T any](c *codec, name, what string, p **T, attributes func(*T, *codec)) {
	in := codec{writing: c.writing}
	if stored := c.seek(name); !c.writing && !stored.IsZero() && c.isA(store.KindMap, name, stored) {
		*p, in.stored = new(T), stored.Map()
	}
	if *p == nil {
		return
	}
	if attributes(*p, &in); c.writing {
		c.item.Set(name, store.M(in.item))
	} else if in.err != nil && c.err == nil {
		c.err = fmt.Errorf("%s: %w", what, in.err)
	}
}

func text[T ~string](c *codec, name string, p *T) { textBut(c, name, p, "") }

// textBut leaves out the empty text and the usual one.
func textBut[T ~string](c *codec, name string, p *T, usual T) {
	attribute(c, name, p, *p == "" || *p == usual, store.KindString, readText[T], writeText[T])
}

// always is text for a text that is written also if it is empty.
func always[T ~string](c *codec, name string, p *T) {
	attribute(c, name, p, false, store.KindString, readText[T], writeText[T])
}

func readText[T ~string](v store.Value) T     { return T(v.Str()) }
func writeText[T ~string](text T) store.Value { return store.S(string(text)) }

// only writes the text and never reads it: the item's key has it, too.
func (c *codec) only(name, text string) {
	attribute(c, name, &text, text == "", store.KindString, store.Value.Str, store.S)
}

// textOrNumber also reads a number, as it would have been written into the text.
func (c *codec) textOrNumber(name string, p *string) {
	attribute(c, name, p, false, store.KindNone, textOf, store.S)
}

func (c *codec) date(name string, p *civil.Date) {
	attribute(c, name, p, p.IsZero(), store.KindString, func(v store.Value) civil.Date { return c.parse(name, v.Str()) },
		func(d civil.Date) store.Value { return store.S(d.String()) })
}

func (c *codec) parse(name, text string) (d civil.Date) {
	if text != "" {
		var err error
		if d, err = civil.Parse(text); err != nil {
			c.fail(name, "is not a date", err)
		}
	}
	return d
}

func (c *codec) stamp(name string, p *time.Time) {
	attribute(c, name, p, p.IsZero(), store.KindString, readTime, writeTime)
}

// instant is stamp for a time that is written also if it is zero.
func (c *codec) instant(name string, p *time.Time) {
	attribute(c, name, p, false, store.KindString, readTime, writeTime)
}

func readTime(v store.Value) time.Time  { return readStamp(v.Str()) }
func writeTime(t time.Time) store.Value { return store.S(Stamp(t)) }

func (c *codec) count(name string, p *int, usual int) {
	attribute(c, name, p, *p == usual, store.KindNumber, readInt, writeInt)
}

// number is count for a number without a default.
func (c *codec) number(name string, p *int) {
	attribute(c, name, p, false, store.KindNumber, readInt, writeInt)
}

func readInt(v store.Value) int {
	n, _ := v.Int64()
	return int(n)
}

func writeInt(n int) store.Value { return store.Int(int64(n)) }

func (c *codec) flag(name string, p *bool) {
	attribute(c, name, p, !*p, store.KindBool, store.Value.Bool, store.Bool)
}

// amount also has Currency, in any place: records with an amount keep no other tools' attributes.
func (c *codec) amount(name, of string, p *money.Amount) {
	if c.writing {
		c.item.Set(name, store.S(p.Decimal()))
		c.item.Set(schema.Currency, store.S(p.Currency().Code()))
		return
	}
	currency := c.stored.Get(schema.Currency)
	if !currency.IsZero() && !c.isA(store.KindString, schema.Currency, currency) {
		return
	}
	var err error
	if *p, err = decodeAmount(textOf(c.stored.Get(name)), currency.Str()); err != nil {
		c.fail(name, "is not an amount in the "+of+"'s currency", err)
	}
}

// priced reads or writes one of package price's maps, with amounts in the currency.
func priced[T any](c *codec, name string, p *T, leftOut bool, currency string, decode func(store.Item, money.Currency) (T, error),
	item func(*T) store.Item) {
	attribute(c, name, p, leftOut, store.KindMap, func(v store.Value) (x T) {
		in, err := money.ParseCurrency(cmp.Or(currency, "USD"))
		if err == nil {
			x, err = decode(v.Map(), in)
		}
		if err != nil {
			c.fail(name, "has a value that Duesday does not know", err)
		}
		return x
	}, func(x T) store.Value { return store.M(item(&x)) })
}

// price is priced for the breakdown of the record's amount.
func (c *codec) price(p **price.Price) {
	priced(c, schema.Price, p, *p == nil, c.stored.Str(schema.Currency), func(it store.Item, in money.Currency) (*price.Price, error) {
		x, err := price.Decode(it, in)
		return &x, err
	}, func(x **price.Price) store.Item { return (*x).Item() })
}

// ItemAt returns an item with its key.
func ItemAt(k store.Key, attributes ...store.Attribute) store.Item {
	it := store.NewItem(attributes...)
	it.Set(schema.PK, store.S(k.PK))
	it.Set(schema.SK, store.S(k.SK))
	return it
}

// Of several workers with one item, the version condition lets one win: each commit raises the
// version, and holds only while the version is as it was read.

func readVersion(v store.Value) int64 {
	n, _ := v.Int64()
	return n
}

// write returns the write of the subscription, if it is still as it was read. Other tools write
// without a version: an attribute of theirs is changed only if it is as it was read; and an intent
// is bound only if all that the model publishes is. The time of the last payment is ours, and a
// date that was seen to be moved may be moved again: so the record of an end lands however often
// another tool writes.
func (s *Subscription) write(table string) store.Write {
	was := AsRead(s.Raw)
	if s.Over() && s.Open == nil { // another tool may have left it on the agenda
		s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	}
	s.Version++
	raw := s.Raw
	if s.stored != nil {
		raw = s.stored
	}
	w := store.Rewrite(table, raw, s.Item())
	set, remove := w.Differences()
	bind := s.Open != nil && s.Open.Ref != raw.Get(schema.OpenPeriod).Map().Str(schema.Ref)
	for _, name := range published {
		ours := name == schema.LastPaymentDate || name == schema.NextPaymentDate && s.shifted
		if bind || !ours && (set.Has(name) || slices.Contains(remove, name)) {
			was = append(was, Unchanged(name, raw.Get(name)))
		}
	}
	w.If = was
	return w
}

// published are the attributes of a subscription in the published model, beside its key.
var published = [...]string{schema.CreatedDate, schema.Email, schema.LastPaymentDate, schema.LastReminderDate,
	schema.NextPaymentDate, schema.NextReminderDate, schema.PaymentAmount, schema.PaymentDay, schema.PaymentDetails, schema.SKU}

// Create returns the put of a new subscription.
func (s *Subscription) Create(table string) store.Write {
	return store.Put(table, s.Item(), store.Absent())
}

// Ours reports whether Duesday has written the subscription before.
func (s *Subscription) Ours() bool {
	_, ours := s.Raw.Get(schema.Version).Int64()
	return ours
}

// AsRead holds if the subscription's item has not changed since it was read. A legacy item has no
// version, so it must still exist, not be moved, and have the same terms.
func AsRead(it store.Item) []store.Condition {
	v := it.Get(schema.Version)
	if _, ours := v.Int64(); ours {
		return []store.Condition{store.AttributeEquals(schema.Version, v)}
	}
	was := []store.Condition{store.AttributeEquals(schema.PK, it.Get(schema.PK))}
	for _, name := range [...]string{schema.Version, schema.Moved,
		schema.NextPaymentDate, schema.NextReminderDate, schema.LastPaymentDate,
		schema.PaymentAmount, schema.PaymentDay, schema.Status} {
		was = append(was, Unchanged(name, it.Get(name)))
	}
	return was
}

// Unchanged holds if the attribute has not changed since it was read. The zero value stands for an
// absent attribute.
func Unchanged(name string, was store.Value) store.Condition {
	if was.IsZero() {
		return store.AttributeAbsent(name)
	}
	return store.AttributeEquals(name, was)
}

// NextVersion returns the attribute with the item's next version, or none for a legacy item.
func NextVersion(it store.Item) store.Item {
	if v, ours := it.Get(schema.Version).Int64(); ours {
		return store.Item{{Name: schema.Version, Value: store.Int(v + 1)}}
	}
	return nil
}

// Unchanged holds if the account has not changed since it was read.
func (a *Account) Unchanged() store.Condition {
	return Unchanged(schema.Version, a.Raw.Get(schema.Version))
}

// UnchangedCheck returns a check that fails the commit if the account has changed since it was
// read.
func (a *Account) UnchangedCheck(table string) store.Write {
	return store.Check(table, AccountKey(a.ID), a.Unchanged())
}

// BumpVersion returns a put of the account with a new version, on condition that the account has
// not changed since it was read. Each commit that changes the account's set of subscriptions
// contains it, so that their IDs stay unique.
func (a *Account) BumpVersion(table string) store.Write {
	a.Version++
	return store.Rewrite(table, a.Raw, a.Item(), a.Unchanged())
}
