package billing

import (
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An OpenPeriod is the period that is being charged: what was frozen when its intent
// was bound, and how far it has come. It lives on the subscription's item.
type OpenPeriod struct {
	Period     int
	Generation int // of the intent: another one follows an intent that was cancelled
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
	Asked      civil.Date // when the customer was asked to authenticate the attempt; zero: they were not
	State      State      // Processing or RequiresAction while it waits, failing while it ends, else ""
	Opened     time.Time
	Attempts   []Attempt // that were declined
	Overtaken  bool      // the attempt was set while one before it may have been under way
}

// An Attempt is one declined attempt.
type Attempt struct {
	Number int       `json:"attempt"`
	Code   string    `json:"code"`
	Method string    `json:"payment_method"`
	At     time.Time `json:"at"`
}

func (o *OpenPeriod) item() store.Item {
	it := make(store.Item, 0, 16)
	set := func(name, text string) {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	set(schema.Amount, o.Amount.Decimal())
	if o.Attempt != 1 {
		it.Set(schema.Attempt, store.Int(int64(o.Attempt)))
	}
	if len(o.Attempts) > 0 {
		it.Set(schema.Attempts, attemptList(o.Attempts))
	}
	set(schema.Base, o.Base)
	set(schema.CreatedDate, Stamp(o.Opened))
	set(schema.Currency, o.Amount.Currency().Code())
	set(schema.DueDate, o.Due.String())
	if !o.First.IsZero() {
		set(schema.FirstDecline, o.First.String())
	}
	if o.Overtaken {
		it.Set(schema.Overtaken, store.Bool(true))
	}
	if !o.Asked.IsZero() {
		set(schema.AskedDate, o.Asked.String())
	}
	if o.Generation != 0 {
		it.Set(schema.Generation, store.Int(int64(o.Generation)))
	}
	set(schema.Method, o.Method)
	it.Set(schema.Period, store.Int(int64(o.Period)))
	set(schema.Ref, o.Ref)
	if len(o.Retired) > 0 {
		refs := make([]store.Value, len(o.Retired))
		for i, r := range o.Retired {
			refs[i] = store.S(r)
		}
		it.Set(schema.RetiredRefs, store.L(refs...))
	}
	if !o.Retry.IsZero() {
		set(schema.RetryDate, o.Retry.String())
	}
	set(schema.State, string(o.State))
	o.Payer.set(&it)
	return it
}

func decodeOpen(it store.Item) (*OpenPeriod, error) {
	o := &OpenPeriod{Period: int(it.Int(schema.Period)), Generation: int(it.Int(schema.Generation)), Ref: it.Str(schema.Ref),
		Method: it.Str(schema.Method), Payer: payerOf(it), Overtaken: it.Get(schema.Overtaken).Bool(), Attempt: max(1, int(it.Int(schema.Attempt))), Base: it.Str(schema.Base),
		State: State(it.Str(schema.State)), Opened: ParseStamp(it.Str(schema.CreatedDate))}
	var err error
	if o.Amount, err = decodeAmount(it.Str(schema.Amount), it.Str(schema.Currency)); err != nil {
		return nil, fmt.Errorf("open period: %w", err)
	}
	for _, f := range [...]struct {
		name string
		to   *civil.Date
	}{{schema.DueDate, &o.Due}, {schema.FirstDecline, &o.First}, {schema.RetryDate, &o.Retry}, {schema.AskedDate, &o.Asked}} {
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

// An Ending says how a period ended that did not end paid.
type Ending string

// The endings. A parked period has not ended yet: a person ends it.
const (
	EndFailed  Ending = "failed"
	EndVoid    Ending = "void"
	EndSkipped Ending = "skipped"
	EndParked  Ending = "parked"
)

// An EndedPeriod is the record PER#… of a period that did not end paid, written in the
// commit that ends it.
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

func (p *EndedPeriod) Write(table string) store.Write {
	key := PeriodKey(p.Name, p.Period)
	it := store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(key.PK)},
		store.Attribute{Name: schema.SK, Value: store.S(key.SK)},
		store.Attribute{Name: schema.Amount, Value: store.S(p.Amount.Decimal())},
		store.Attribute{Name: schema.Currency, Value: store.S(p.Amount.Currency().Code())},
		store.Attribute{Name: schema.DueDate, Value: store.S(p.Due.String())},
		store.Attribute{Name: schema.EndedDate, Value: store.S(Stamp(p.Ended))},
		store.Attribute{Name: schema.Period, Value: store.Int(int64(p.Period))},
		store.Attribute{Name: schema.Reason, Value: store.S(p.Reason)},
		store.Attribute{Name: schema.SKU, Value: store.S(p.SKU)},
		store.Attribute{Name: schema.Status, Value: store.S(string(p.Ending))},
		store.Attribute{Name: schema.Subscription, Value: store.S(p.ID)})
	if p.Ref != "" {
		it.Set(schema.Ref, store.S(p.Ref))
	}
	if len(p.Attempts) > 0 {
		it.Set(schema.Attempts, attemptList(p.Attempts))
	}
	return store.Put(table, it)
}

func DecodePeriod(it store.Item) (*EndedPeriod, error) {
	p := &EndedPeriod{Name: Name{Account: AccountOf(it.Str(schema.PK)), ID: it.Str(schema.Subscription), SKU: it.Str(schema.SKU)},
		Period: int(it.Int(schema.Period)), Ending: Ending(it.Str(schema.Status)), Ended: ParseStamp(it.Str(schema.EndedDate)),
		Reason: it.Str(schema.Reason), Ref: it.Str(schema.Ref), Attempts: decodeAttempts(it.Get(schema.Attempts))}
	var err error
	if p.Amount, err = decodeAmount(it.Str(schema.Amount), it.Str(schema.Currency)); err != nil {
		return nil, err
	}
	p.Due, err = civil.Parse(it.Str(schema.DueDate))
	return p, err
}
