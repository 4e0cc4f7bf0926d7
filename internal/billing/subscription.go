package billing

import (
	"fmt"
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Status says whether a subscription is charged.
type Status string

// The statuses. Only an active subscription has new periods opened; a period that is
// open is brought to its end in any of them.
const (
	Active      Status = "active"
	Paused      Status = "paused"
	PastDue     Status = "past_due"  // a period failed: waits for a new method or a resume
	ParkedState Status = "parked"    // waits for a person: charge or skip
	CanceledSub Status = "canceled"  // final
	Completed   Status = "completed" // all installments paid; final
)

// A Request is what a person has asked for while a period is open. It is committed
// before the intent is cancelled and done when the period has ended.
type Request string

// The requests.
const (
	RequestNone   Request = ""
	RequestCancel Request = "cancel"
	RequestPause  Request = "pause"
	RequestSkip   Request = "skip"
)

// A Subscription is the item SUB#<id>#SKU#<sku> of an account.
type Subscription struct {
	Name
	Email        string // copy of the account's
	PaymentDay   int
	Amount       money.Amount // of the next period to be opened
	Method       string
	Address      string
	Interval     civil.Interval
	Anchor       civil.Date // the due date of period AnchorPeriod
	AnchorPeriod int
	TimeZone     string
	ReminderDays int
	Created      time.Time
	LastPayment  time.Time  // Created until the first payment
	LastReminder time.Time  // Created until the first reminder
	NextPayment  civil.Date // the day the payment job looks at it again; zero: never
	NextReminder civil.Date // zero: none until the next payment is settled
	Status       Status
	Period       int // the period to be paid next, from 0
	Installments int // 0: no end
	Paid         int
	LastCharge   string // reference of the charge that was settled last
	Requested    Request
	CancelAtEnd  bool
	PausedOn     civil.Date
	Parked       string // why it is parked
	Open         *OpenPeriod
	Version      int64 // of the item: each commit adds one

	Raw    store.Item // as read: attributes that are not ours are kept
	Shards int        // per date, of the store that it is written to
	Moved  bool       // it has been copied to another store, which charges it from now on
}

// Schedule returns how due dates follow from the anchor.
func (s *Subscription) Schedule() civil.Schedule {
	return civil.Schedule{Anchor: s.Anchor, From: s.AnchorPeriod, Day: s.PaymentDay, Interval: s.Interval}
}

// Due returns the due date of the period to be paid next.
func (s *Subscription) Due() (civil.Date, error) {
	if s.Open != nil {
		return s.Open.Due, nil
	}
	return s.Schedule().Due(s.Period)
}

// today is the business day, or the clock's day in the subscription's time zone.
func (s *Subscription) Today(day civil.Date, now time.Time) civil.Date {
	if !day.IsZero() {
		return day
	}
	return TodayIn(s.TimeZone, now)
}

func TodayIn(zone string, now time.Time) civil.Date {
	if zone != "" && zone != "UTC" {
		if loc, err := civil.Zone(zone); err == nil {
			return civil.Today(now, loc)
		}
	}
	return civil.Of(now.UTC())
}

// decodeSubscription reads an item, also one written by other tools from the published
// model: what is absent has its default.
func DecodeSubscription(it store.Item) (*Subscription, error) {
	key := store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)}
	name, ok := NameOf(key)
	if !ok {
		return nil, fmt.Errorf("item %s/%s is no subscription", key.PK, key.SK)
	}
	s := &Subscription{Name: name, Raw: it, ReminderDays: DefaultReminderDays, Status: Active, Interval: Monthly}
	var t terms
	for i := range it { // one pass: looking each up by its name was a twentieth of a payment run
		s.take(&t, it[i].Name, it[i].Value)
	}
	if err := s.decodeTerms(&t); err != nil {
		return nil, fmt.Errorf("subscription %s: %w", name, err)
	}
	if !t.ours {
		if err := s.readLegacy(&t); err != nil {
			return nil, fmt.Errorf("subscription %s: %w", name, err)
		}
	}
	return s, nil
}

// Terms are the attributes that have a form of their own, before it has been read.
type terms struct {
	amount, day, interval          string
	next, reminder, anchor, paused string
	details, open                  store.Item
	ours                           bool // Duesday has written the item
}

// take reads one attribute, or keeps it for decodeTerms.
func (s *Subscription) take(t *terms, name string, v store.Value) {
	integer := func() int { n, _ := v.Int64(); return int(n) }
	switch name {
	case schema.AnchorPeriod:
		s.AnchorPeriod = integer()
	case schema.CancelAtEnd:
		s.CancelAtEnd = v.Bool()
	case schema.CreatedDate:
		s.Created = readStamp(v.Str())
	case schema.Email:
		s.Email = v.Str()
	case schema.Installments:
		s.Installments = integer()
	case schema.LastCharge:
		s.LastCharge = v.Str()
	case schema.LastPaymentDate:
		s.LastPayment = readStamp(v.Str())
	case schema.LastReminderDate:
		s.LastReminder = readStamp(v.Str())
	case schema.Paid:
		s.Paid = integer()
	case schema.Parked:
		s.Parked = v.Str()
	case schema.Period:
		s.Period = integer()
	case schema.ReminderDays:
		s.ReminderDays = integer()
	case schema.Requested:
		s.Requested = Request(v.Str())
	case schema.Moved:
		s.Moved = true
	case schema.Status:
		s.Status = Status(v.Str())
	case schema.TimeZone:
		s.TimeZone = v.Str()
	case schema.Version:
		s.Version, t.ours = v.Int64()
	default:
		t.take(name, v)
	}
}

func (t *terms) take(name string, v store.Value) {
	switch name {
	case schema.PaymentAmount:
		t.amount = textOf(v)
	case schema.PaymentDay:
		t.day = textOf(v)
	case schema.Interval:
		t.interval = v.Str()
	case schema.NextPaymentDate:
		t.next = v.Str()
	case schema.NextReminderDate:
		t.reminder = v.Str()
	case schema.Anchor:
		t.anchor = v.Str()
	case schema.PausedDate:
		t.paused = v.Str()
	case schema.PaymentDetails:
		t.details = v.Map()
	case schema.OpenPeriod:
		t.open = v.Map()
	}
}

// decodeTerms reads what has a form of its own: dates, money, the schedule, the open period.
func (s *Subscription) decodeTerms(t *terms) (err error) {
	s.Method, s.Address = t.details.Str(schema.PaymentMethod), t.details.Str(schema.DefaultAddress)
	if s.Amount, err = decodeAmount(t.amount, t.details.Str(schema.Currency)); err != nil {
		return &UnreadableError{schema.PaymentAmount, "is no amount in the subscription's currency", err}
	}
	if s.PaymentDay, err = strconv.Atoi(t.day); err != nil {
		return &UnreadableError{schema.PaymentDay, "is no number", err}
	}
	if t.interval != "" {
		if s.Interval, err = civil.ParseInterval(t.interval); err != nil {
			return &UnreadableError{schema.Interval, "is no interval", err}
		}
	}
	for _, f := range [...]struct {
		name, text string
		to         *civil.Date
	}{{schema.NextPaymentDate, IndexDate(t.next), &s.NextPayment}, {schema.NextReminderDate, IndexDate(t.reminder), &s.NextReminder},
		{schema.Anchor, t.anchor, &s.Anchor}, {schema.PausedDate, t.paused, &s.PausedOn}} {
		if f.text != "" {
			if *f.to, err = civil.Parse(f.text); err != nil {
				return &UnreadableError{f.name, "is no date", err}
			}
		}
	}
	if s.Anchor.IsZero() {
		s.Anchor = s.NextPayment
	}
	if t.open != nil {
		s.Open, err = decodeOpen(t.open)
	}
	return err
}

// item returns the item to be stored: every attribute at its place, those that are not
// ours as they were. Attributes with their default are left out: bytes are time.
func (s *Subscription) Item() store.Item {
	it := make(store.Item, 0, 32)
	set := func(name, text string) {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	date := func(name string, d civil.Date) {
		if !d.IsZero() {
			it.Set(name, store.S(d.String()))
		}
	}
	indexed := func(name string, d civil.Date) {
		if !d.IsZero() {
			it.Set(name, store.S(placed(d, s.Name, s.Shards)))
		}
	}
	count := func(name string, n, usual int) {
		if n != usual {
			it.Set(name, store.Int(int64(n)))
		}
	}
	// In byte order of the names, so that each Set is an append.
	date(schema.Anchor, s.Anchor)
	count(schema.AnchorPeriod, s.AnchorPeriod, 0)
	if s.CancelAtEnd {
		it.Set(schema.CancelAtEnd, store.Bool(true))
	}
	keepStamp(&it, s.Raw, schema.CreatedDate, s.Created)
	set(schema.Email, s.Email)
	count(schema.Installments, s.Installments, 0)
	if s.Interval != Monthly {
		set(schema.Interval, s.Interval.String())
	}
	set(schema.LastCharge, s.LastCharge)
	s.last(&it, schema.LastPaymentDate, s.LastPayment)
	s.last(&it, schema.LastReminderDate, s.LastReminder)
	indexed(schema.NextPaymentDate, s.NextPayment)
	indexed(schema.NextReminderDate, s.NextReminder)
	if s.Open != nil {
		it.Set(schema.OpenPeriod, store.M(s.Open.item()))
	}
	key := s.Key()
	set(schema.PK, key.PK)
	count(schema.Paid, s.Paid, 0)
	set(schema.Parked, s.Parked)
	date(schema.PausedDate, s.PausedOn)
	set(schema.PaymentAmount, s.Amount.Decimal())
	set(schema.PaymentDay, strconv.Itoa(s.PaymentDay))
	it.Set(schema.PaymentDetails, s.details())
	count(schema.Period, s.Period, 0)
	count(schema.ReminderDays, s.ReminderDays, DefaultReminderDays)
	set(schema.Requested, string(s.Requested))
	set(schema.SK, key.SK)
	set(schema.SKU, s.SKU)
	set(schema.Status, string(s.Status))
	if s.TimeZone != "UTC" {
		set(schema.TimeZone, s.TimeZone)
	}
	it.Set(schema.Version, store.Int(s.Version))
	keep(&it, s.Raw, func(name string) bool { return subscriptionOwns[name] })
	if _, whole := it.Get(schema.TTL).Int64(); !whole {
		it.Remove(schema.TTL) // other tools': it expires nothing, and no engine takes it
	}
	return it
}

// last writes the sort key of an index, which must be there for the row to be in it.
func (s *Subscription) last(it *store.Item, name string, t time.Time) {
	if keepStamp(it, s.Raw, name, t); !it.Has(name) {
		it.Set(name, store.S(Stamp(s.Created)))
	}
}

// subscriptionOwns are the attributes that item writes or leaves out on purpose.
var subscriptionOwns = map[string]bool{
	schema.Anchor: true, schema.AnchorPeriod: true, schema.CancelAtEnd: true, schema.CreatedDate: true, schema.Email: true,
	schema.Installments: true, schema.Interval: true, schema.LastCharge: true, schema.LastPaymentDate: true,
	schema.LastReminderDate: true, schema.NextPaymentDate: true, schema.NextReminderDate: true, schema.OpenPeriod: true,
	schema.PK: true, schema.Paid: true, schema.Parked: true, schema.PausedDate: true, schema.PaymentAmount: true,
	schema.PaymentDay: true, schema.PaymentDetails: true, schema.Period: true, schema.ReminderDays: true, schema.Requested: true,
	schema.SK: true, schema.SKU: true, schema.Status: true, schema.TimeZone: true, schema.Version: true,
}

// details keeps members that are not ours, but never a card number.
func (s *Subscription) details() store.Value {
	var d store.Item
	keep(&d, s.Raw.Get(schema.PaymentDetails).Map(), func(name string) bool {
		return name == schema.Currency || name == schema.PaymentMethod || name == schema.DefaultAddress
	})
	d.Set(schema.Currency, store.S(s.Amount.Currency().Code()))
	if s.Method != "" {
		d.Set(schema.PaymentMethod, store.S(s.Method))
	}
	if s.Address != "" {
		d.Set(schema.DefaultAddress, store.S(s.Address))
	}
	return store.M(d)
}

// write returns the put that replaces the subscription if it is still as it was read.
func (s *Subscription) write(table string) store.Write {
	was := asRead(s.Raw)
	s.Version++
	return store.Put(table, s.Item(), was...)
}

// asRead holds while the subscription's item is as it was read. One that other tools have
// written has no version: then it holds while it is there, has not been copied to another
// store, and still says the same of when and what to charge. (PaymentDetails may hold what a
// store.Item cannot, and would never be equal.)
func asRead(it store.Item) []store.Condition {
	v := it.Get(schema.Version)
	if _, ours := v.Int64(); ours {
		return []store.Condition{store.AttributeEquals(schema.Version, v)}
	}
	was := []store.Condition{store.AttributeEquals(schema.PK, it.Get(schema.PK))}
	for _, name := range [...]string{schema.Version, schema.Moved, schema.NextPaymentDate, schema.NextReminderDate, schema.LastPaymentDate,
		schema.PaymentAmount, schema.PaymentDay, schema.Status} {
		if v := it.Get(name); !v.IsZero() {
			was = append(was, store.AttributeEquals(name, v))
		} else {
			was = append(was, store.AttributeAbsent(name))
		}
	}
	return was
}

func decodeAmount(text, currency string) (money.Amount, error) {
	if currency == "" {
		currency = "USD"
	}
	c, err := money.ParseCurrency(currency)
	if err != nil {
		return money.Amount{}, err
	}
	return money.Parse(text, c)
}

func (s *Subscription) Create(table string) store.Write {
	return store.Put(table, s.Item(), store.Absent())
}
