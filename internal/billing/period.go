package billing

import (
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An OpenPeriod is the period being charged. Its terms are frozen when its intent is bound. It is
// stored in the subscription's item.
type OpenPeriod struct {
	Period     int
	Generation int // of the intent: after a cancelled intent comes the next generation
	Ref        string
	Retired    []string // cancelled intents of this period
	Amount     money.Amount
	Method     string
	Payer      Payer
	Due        civil.Date
	Attempt    int        // the attempt to be made, from 1
	Base       string     // Intent.Latest before that attempt: another Latest means that it ran
	First      civil.Date // of the first decline; zero before it
	Retry      civil.Date // not before; zero: now
	Asked      civil.Date // when the customer was asked to authenticate the attempt; zero: not asked
	State      State      // Processing or RequiresAction while it waits, failing while it ends, else ""
	Opened     time.Time
	Attempts   []Attempt // the declined ones
	Overtaken  bool      // the attempt was set while an earlier one may have been under way
}

// An Attempt is one declined attempt.
type Attempt struct {
	Number int       `json:"attempt"`
	Code   string    `json:"code"`
	Method string    `json:"payment_method"`
	At     time.Time `json:"at"`
}

func (o *OpenPeriod) item() store.Item {
	it := item{make(store.Item, 0, 16)}
	it.text(schema.Amount, o.Amount.Decimal())
	it.count(schema.Attempt, o.Attempt, 1)
	if len(o.Attempts) > 0 {
		it.Set(schema.Attempts, attemptList(o.Attempts))
	}
	it.text(schema.Base, o.Base)
	it.text(schema.CreatedDate, Stamp(o.Opened))
	it.text(schema.Currency, o.Amount.Currency().Code())
	it.text(schema.DueDate, o.Due.String())
	it.date(schema.FirstDecline, o.First)
	it.flag(schema.Overtaken, o.Overtaken)
	it.date(schema.AskedDate, o.Asked)
	it.count(schema.Generation, o.Generation, 0)
	it.text(schema.Method, o.Method)
	it.Set(schema.Period, store.Int(int64(o.Period)))
	it.text(schema.Ref, o.Ref)
	if len(o.Retired) > 0 {
		refs := make([]store.Value, len(o.Retired))
		for i, r := range o.Retired {
			refs[i] = store.S(r)
		}
		it.Set(schema.RetiredRefs, store.L(refs...))
	}
	it.date(schema.RetryDate, o.Retry)
	it.text(schema.State, string(o.State))
	o.Payer.set(&it)
	return it.Item
}

func decodeOpen(it store.Item) (*OpenPeriod, error) {
	o := &OpenPeriod{Period: int(it.Int(schema.Period)), Generation: int(it.Int(schema.Generation)),
		Ref:    it.Str(schema.Ref),
		Method: it.Str(schema.Method), Payer: payerOf(it), Overtaken: it.Get(schema.Overtaken).Bool(),
		Attempt: max(1, int(it.Int(schema.Attempt))), Base: it.Str(schema.Base),
		State: State(it.Str(schema.State)), Opened: ParseStamp(it.Str(schema.CreatedDate))}
	var err error
	if o.Amount, err = decodeAmount(it.Str(schema.Amount), it.Str(schema.Currency)); err != nil {
		return nil, fmt.Errorf("open period: %w", err)
	}
	for _, f := range [...]struct {
		name string
		to   *civil.Date
	}{{schema.DueDate, &o.Due}, {schema.FirstDecline, &o.First}, {schema.RetryDate, &o.Retry},
		{schema.AskedDate, &o.Asked}} {
		if text := it.Str(f.name); text != "" {
			if *f.to, err = civil.Parse(text); err != nil {
				return nil, fmt.Errorf("open period: %s: %w", f.name, err)
			}
		}
	}
	for _, r := range it.Get(schema.RetiredRefs).List() {
		o.Retired = append(o.Retired, r.Str())
	}
	o.Attempts = decodeAttempts(it.Get(schema.Attempts))
	return o, nil
}

func attemptList(attempts []Attempt) store.Value {
	list := make([]store.Value, len(attempts))
	for i, a := range attempts {
		list[i] = store.M(store.NewItem(
			store.Attribute{Name: schema.Attempt, Value: store.Int(int64(a.Number))},
			store.Attribute{Name: schema.Code, Value: store.S(a.Code)},
			store.Attribute{Name: schema.Method, Value: store.S(a.Method)},
			store.Attribute{Name: schema.ProcessedDate, Value: store.S(Stamp(a.At))}))
	}
	return store.L(list...)
}

func decodeAttempts(v store.Value) []Attempt {
	var attempts []Attempt
	for _, e := range v.List() {
		m := e.Map()
		attempts = append(attempts, Attempt{Number: int(m.Int(schema.Attempt)), Code: m.Str(schema.Code),
			Method: m.Str(schema.Method), At: ParseStamp(m.Str(schema.ProcessedDate))})
	}
	return attempts
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

// An EndedPeriod is the record PER#… of a period that did not end paid. The commit that ends the
// period writes it.
type EndedPeriod struct {
	Name
	Period   int
	Ending   Ending
	Due      civil.Date
	Ended    time.Time
	Reason   string
	Amount   money.Amount
	Ref      string // of its cancelled intent; "" when none was bound
	Attempts []Attempt
}

// Write returns the put of the record.
func (p *EndedPeriod) Write(table string) store.Write {
	it := itemAt(PeriodKey(p.Name, p.Period),
		store.Attribute{Name: schema.Amount, Value: store.S(p.Amount.Decimal())},
		store.Attribute{Name: schema.Currency, Value: store.S(p.Amount.Currency().Code())},
		store.Attribute{Name: schema.DueDate, Value: store.S(p.Due.String())},
		store.Attribute{Name: schema.EndedDate, Value: store.S(Stamp(p.Ended))},
		store.Attribute{Name: schema.Period, Value: store.Int(int64(p.Period))},
		store.Attribute{Name: schema.Reason, Value: store.S(p.Reason)},
		store.Attribute{Name: schema.SKU, Value: store.S(p.SKU)},
		store.Attribute{Name: schema.Status, Value: store.S(string(p.Ending))},
		store.Attribute{Name: schema.Subscription, Value: store.S(p.ID)})
	it.text(schema.Ref, p.Ref)
	if len(p.Attempts) > 0 {
		it.Set(schema.Attempts, attemptList(p.Attempts))
	}
	return store.Put(table, it.Item)
}

func DecodePeriod(it store.Item) (*EndedPeriod, error) {
	p := &EndedPeriod{Name: Name{Account: AccountOf(it.Str(schema.PK)), ID: it.Str(schema.Subscription),
		SKU: it.Str(schema.SKU)},
		Period: int(it.Int(schema.Period)), Ending: Ending(it.Str(schema.Status)),
		Ended:  ParseStamp(it.Str(schema.EndedDate)),
		Reason: it.Str(schema.Reason), Ref: it.Str(schema.Ref), Attempts: decodeAttempts(it.Get(schema.Attempts))}
	var err error
	if p.Amount, err = decodeAmount(it.Str(schema.Amount), it.Str(schema.Currency)); err != nil {
		return nil, err
	}
	p.Due, err = civil.Parse(it.Str(schema.DueDate))
	return p, err
}
