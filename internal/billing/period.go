package billing

import (
	"cmp"
	"time"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An OpenPeriod is the period being charged, in its subscription's item. BIND freezes its terms. One
// with PayBy is paid by wire: it has no intent.
type OpenPeriod struct {
	Period     int
	Generation int // of the intent: after a cancelled intent comes the next generation
	Ref        string
	Retired    []string // cancelled intents of this period
	Amount     money.Amount
	Price      *price.Price // what makes it Amount, frozen with it; nil: one unit, without discount and tax
	Method     string
	Payer      processor.Payer
	Due        civil.Date
	Attempt    int             // the attempt to be made, from 1
	Base       string          // Intent.Latest before that attempt: another Latest means that it ran
	First      civil.Date      // of the first decline; zero before it
	Retry      civil.Date      // not before; zero: now
	Asked      civil.Date      // when the customer was asked to authenticate the attempt; zero: not asked
	State      processor.State // Processing or RequiresAction while it waits, failing while it ends, else ""
	Opened     time.Time
	Attempts   []Attempt // the declined ones
	SKU        string    // what a past period or an upgrade is for; "" of another: the subscription's
	// FallbackFor is the method whose place the account's fallback has taken; "": it was not tried. It is
	// Method if another method has followed the fallback.
	FallbackFor  string
	FallbackCard string     // Visa ending in 4242; "": not known
	PayBy        civil.Date // by wire: on that day it ends failed; zero: it is charged
	Debit        bool       // the last attempt before Retry was a bank debit
	Overtaken    bool       // the attempt was set while an earlier one may have been under way
	Declined     string     // what its first decline has added to the sums, as outbox rows have it; "": nothing
}

// ByWire reports whether the customer was asked to pay the period.
func (o *OpenPeriod) ByWire() bool { return o != nil && !o.PayBy.IsZero() }

// A ManualRequest is a manual payment of the open period, a receipt once the intent is cancelled.
type ManualRequest struct {
	Period    int
	Amount    money.Amount
	Note      string
	Processed time.Time
}

func (m *ManualRequest) attributes(c *codec) {
	c.amount(schema.Amount, "manual payment", &m.Amount)
	text(c, schema.Note, &m.Note)
	c.number(schema.Period, &m.Period)
	c.instant(schema.ProcessedDate, &m.Processed)
}

// An Attempt is one declined attempt.
type Attempt struct {
	Number int       `json:"attempt"`
	Code   string    `json:"code"`
	Method string    `json:"payment_method"`
	At     time.Time `json:"at"`
}

func (o *OpenPeriod) attributes(c *codec) {
	c.count(schema.ApplicationFee, &o.Payer.Fee, 0)
	c.date(schema.AskedDate, &o.Asked)
	c.count(schema.Attempt, &o.Attempt, 1)
	attempts(c, &o.Attempts)
	text(c, schema.Base, &o.Base)
	c.instant(schema.CreatedDate, &o.Opened)
	c.amount(schema.Amount, "period", &o.Amount)
	text(c, schema.Customer, &o.Payer.Customer)
	c.flag(schema.Debit, &o.Debit)
	text(c, schema.DeclinedSum, &o.Declined)
	c.date(schema.DueDate, &o.Due)
	text(c, schema.FallbackCard, &o.FallbackCard)
	text(c, schema.FallbackFor, &o.FallbackFor)
	c.date(schema.FirstDecline, &o.First)
	c.count(schema.Generation, &o.Generation, 0)
	text(c, schema.Method, &o.Method)
	c.flag(schema.Overtaken, &o.Overtaken)
	c.date(schema.PayBy, &o.PayBy)
	c.number(schema.Period, &o.Period)
	c.price(&o.Price)
	text(c, schema.ProcessorAccount, &o.Payer.At)
	text(c, schema.Ref, &o.Ref)
	list(c, schema.RetiredRefs, &o.Retired, store.Value.Str, store.S)
	c.date(schema.RetryDate, &o.Retry)
	text(c, schema.SKU, &o.SKU)
	text(c, schema.State, &o.State)
	o.Attempt = max(1, o.Attempt)
}

// list reads or writes a list, and leaves out an empty one.
func list[T any](c *codec, name string, p *[]T, read func(store.Value) T, write func(T) store.Value) {
	attribute(c, name, p, len(*p) == 0, store.KindList, func(v store.Value) (list []T) {
		for _, e := range v.List() {
			list = append(list, read(e))
		}
		return list
	}, func(list []T) store.Value {
		values := make([]store.Value, len(list))
		for i, e := range list {
			values[i] = write(e)
		}
		return store.L(values...)
	})
}

func attempts(c *codec, p *[]Attempt) {
	list(c, schema.Attempts, p, func(v store.Value) (a Attempt) {
		a.attributes(&codec{stored: v.Map()})
		return a
	}, func(a Attempt) store.Value {
		c := writer(nil)
		a.attributes(c)
		return store.M(c.item)
	})
}

func (a *Attempt) attributes(c *codec) {
	c.number(schema.Attempt, &a.Number)
	always(c, schema.Code, &a.Code)
	always(c, schema.Method, &a.Method)
	c.instant(schema.ProcessedDate, &a.At)
}

// An Ending tells how a period ended, if not paid.
type Ending string

// The endings. A parked period has not ended yet: a person ends it.
const (
	EndFailed  Ending = "failed"
	EndVoid    Ending = "void"
	EndSkipped Ending = "skipped"
	EndParked  Ending = "parked"
)

// CancelledVoid is the reason of a period void by a cancellation.
const CancelledVoid = "the subscription was cancelled"

// An EndedPeriod is the record PER#… of a period not ended paid, in the commit that ended it.
type EndedPeriod struct {
	Name            // of the subscription; its SKU is that of the key
	SKU      string // what it was for
	Period   int
	Ending   Ending
	Due      civil.Date
	Ended    time.Time // of a failed one, when it first failed; of one void by a cancellation, its request's
	Reason   string
	Amount   money.Amount
	Price    *price.Price // as OpenPeriod's
	Ref      string       // of its cancelled intent; "" when none was bound
	Attempts []Attempt
	Declined string // as OpenPeriod's; "" also of a parked one, whose open period has it

	// Generation is that of Ref. Records of an older Duesday lack it: the intent's tag has it.
	Generation int
	// CollectUntil is the last day on which a new payment method collects it; zero: it is forgiven.
	CollectUntil civil.Date
}

// Fail has the period end failed at the time, or once more: the time of the first failure stays.
func (p *EndedPeriod) Fail(at time.Time, reason string) {
	if p.Reason = reason; p.Ending != EndFailed {
		p.Ending, p.Ended = EndFailed, at
	}
}

// Write returns the put of the record.
func (p *EndedPeriod) Write(table string) store.Write {
	c := writer(nil)
	p.attributes(c, PeriodKey(p.Name, p.Period))
	return store.Put(table, c.item)
}

// DecodePeriod reads the item.
func DecodePeriod(it store.Item) (*EndedPeriod, error) {
	p := &EndedPeriod{Name: Name{Account: AccountOf(it.Str(schema.PK))}}
	c := codec{stored: it}
	if p.attributes(&c, store.Key{}); p.Due.IsZero() {
		c.fail(schema.DueDate, "is not a date", nil)
	}
	p.Name.SKU = cmp.Or(keySKU(it.Str(schema.SK)), p.SKU)
	return p, c.err
}

func (p *EndedPeriod) attributes(c *codec, key store.Key) {
	c.amount(schema.Amount, "period", &p.Amount)
	attempts(c, &p.Attempts)
	c.date(schema.CollectUntil, &p.CollectUntil)
	text(c, schema.DeclinedSum, &p.Declined)
	c.date(schema.DueDate, &p.Due)
	c.instant(schema.EndedDate, &p.Ended)
	c.count(schema.Generation, &p.Generation, 0)
	c.only(schema.PK, key.PK)
	c.number(schema.Period, &p.Period)
	c.price(&p.Price)
	always(c, schema.Reason, &p.Reason)
	text(c, schema.Ref, &p.Ref)
	c.only(schema.SK, key.SK)
	p.SKU = cmp.Or(p.SKU, p.Name.SKU)
	always(c, schema.SKU, &p.SKU)
	always(c, schema.Status, &p.Ending)
	always(c, schema.Subscription, &p.ID)
}
