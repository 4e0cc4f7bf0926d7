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

// A Status tells whether a subscription is charged.
type Status string

// The statuses. New periods are opened for an active subscription only. An open period is
// brought to its end in all of them.
const (
	Active      Status = "active"
	Paused      Status = "paused"
	PastDue     Status = "past_due"  // a period failed; it waits for a new method or a resume
	ParkedState Status = "parked"    // a person must decide: charge or skip
	CanceledSub Status = "canceled"  // final
	Completed   Status = "completed" // all installments paid; final
)

// A Request is a person's request while a period is open. It is committed before the intent
// is cancelled, and carried out when the period has ended.
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
	Anchor       civil.Date // due date of period AnchorPeriod
	AnchorPeriod int
	TimeZone     string
	ReminderDays int
	Created      time.Time
	LastPayment  time.Time  // Created until the first payment
	LastReminder time.Time  // Created until the first reminder
	NextPayment  civil.Date // the day of the payment job's next look; zero: never
	NextReminder civil.Date // zero: none until the next payment is settled
	Status       Status
	Period       int // the period to be paid next, from 0
	Installments int // 0: no end
	Paid         int
	LastCharge   string // reference of the last settled charge
	Requested    Request
	CancelAtEnd  bool
	PausedOn     civil.Date
	Parked       string // why it is parked
	Open         *OpenPeriod
	Version      int64 // of the item; each commit adds one

	Raw    store.Item // as read; holds the attributes of other tools
	Shards int        // per date, of the store
	Moved  bool       // another store has a copy and charges it from now on
}

// Schedule returns the due dates following from the anchor.
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

// Today returns the business day, or if it is zero, the clock's day in the subscription's time
// zone.
func (s *Subscription) Today(day civil.Date, now time.Time) civil.Date {
	if !day.IsZero() {
		return day
	}
	return TodayIn(s.TimeZone, now)
}

// TodayIn returns the day in the time zone; an unknown zone is read as UTC.
func TodayIn(zone string, now time.Time) civil.Date {
	if zone != "" && zone != "UTC" {
		if loc, err := civil.Zone(zone); err == nil {
			return civil.Today(now, loc)
		}
	}
	return civil.Of(now.UTC())
}

// DecodeSubscription reads an item, also a legacy one. An absent attribute has its default.
func DecodeSubscription(it store.Item) (*Subscription, error) {
	key := KeyOf(it)
	name, ok := NameOf(key)
	if !ok {
		return nil, fmt.Errorf("item %s/%s is no subscription", key.PK, key.SK)
	}
	s := &Subscription{Name: name, Raw: it, ReminderDays: DefaultReminderDays, Status: Active, Interval: Monthly}
	var t terms
	for i := range it { // one pass: a search for each name took a twentieth of a payment run
		s.readAttribute(&t, it[i].Name, it[i].Value)
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

// terms are the attributes with a form of their own, not yet parsed.
type terms struct {
	amount, day, interval          string
	next, reminder, anchor, paused string
	details, open                  store.Item
	ours                           bool // Duesday has written the item
}

// readAttribute reads one attribute, or keeps it for decodeTerms.
func (s *Subscription) readAttribute(t *terms, name string, v store.Value) {
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
		t.keep(name, v)
	}
}

func (t *terms) keep(name string, v store.Value) {
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

// decodeTerms parses the dates, money, the schedule and the open period.
func (s *Subscription) decodeTerms(t *terms) (err error) {
	s.Method, s.Address = t.details.Str(schema.PaymentMethod), t.details.Str(schema.DefaultAddress)
	if s.Amount, err = decodeAmount(t.amount, t.details.Str(schema.Currency)); err != nil {
		return &unreadableError{schema.PaymentAmount, "is no amount in the subscription's currency", err}
	}
	if s.PaymentDay, err = strconv.Atoi(t.day); err != nil {
		return &unreadableError{schema.PaymentDay, "is no number", err}
	}
	if t.interval != "" {
		if s.Interval, err = civil.ParseInterval(t.interval); err != nil {
			return &unreadableError{schema.Interval, "is no interval", err}
		}
	}
	for _, f := range [...]struct {
		name, text string
		to         *civil.Date
	}{{schema.NextPaymentDate, IndexDate(t.next), &s.NextPayment},
		{schema.NextReminderDate, IndexDate(t.reminder), &s.NextReminder},
		{schema.Anchor, t.anchor, &s.Anchor}, {schema.PausedDate, t.paused, &s.PausedOn}} {
		if f.text != "" {
			if *f.to, err = civil.Parse(f.text); err != nil {
				return &unreadableError{f.name, "is no date", err}
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

// Item returns the item to be stored. Attributes written by other tools stay as they were read.
func (s *Subscription) Item() store.Item {
	it := item{make(store.Item, 0, 32)}
	indexed := func(name string, d civil.Date) {
		if !d.IsZero() {
			it.text(name, placed(d, s.Name, s.Shards))
		}
	}
	// In byte order of the names: each Set is an append.
	it.date(schema.Anchor, s.Anchor)
	it.count(schema.AnchorPeriod, s.AnchorPeriod, 0)
	it.flag(schema.CancelAtEnd, s.CancelAtEnd)
	keepStamp(&it.Item, s.Raw, schema.CreatedDate, s.Created)
	it.text(schema.Email, s.Email)
	it.count(schema.Installments, s.Installments, 0)
	if s.Interval != Monthly {
		it.text(schema.Interval, s.Interval.String())
	}
	it.text(schema.LastCharge, s.LastCharge)
	s.last(&it.Item, schema.LastPaymentDate, s.LastPayment)
	s.last(&it.Item, schema.LastReminderDate, s.LastReminder)
	indexed(schema.NextPaymentDate, s.NextPayment)
	indexed(schema.NextReminderDate, s.NextReminder)
	if s.Open != nil {
		it.Set(schema.OpenPeriod, store.M(s.Open.item()))
	}
	key := s.Key()
	it.text(schema.PK, key.PK)
	it.count(schema.Paid, s.Paid, 0)
	it.text(schema.Parked, s.Parked)
	it.date(schema.PausedDate, s.PausedOn)
	it.text(schema.PaymentAmount, s.Amount.Decimal())
	it.text(schema.PaymentDay, strconv.Itoa(s.PaymentDay))
	it.Set(schema.PaymentDetails, s.details())
	it.count(schema.Period, s.Period, 0)
	it.count(schema.ReminderDays, s.ReminderDays, DefaultReminderDays)
	it.text(schema.Requested, string(s.Requested))
	it.text(schema.SK, key.SK)
	it.text(schema.SKU, s.SKU)
	it.text(schema.Status, string(s.Status))
	if s.TimeZone != "UTC" {
		it.text(schema.TimeZone, s.TimeZone)
	}
	it.Set(schema.Version, store.Int(s.Version))
	keep(&it.Item, s.Raw, func(name string) bool { return subscriptionOwns[name] })
	if _, whole := it.Get(schema.TTL).Int64(); !whole {
		it.Remove(schema.TTL) // another tool's text or fraction, which expires nothing; the engines refuse it
	}
	return it.Item
}

// last writes the sort key of an index. Without it the item would not be in the index.
func (s *Subscription) last(it *store.Item, name string, t time.Time) {
	if keepStamp(it, s.Raw, name, t); !it.Has(name) {
		it.Set(name, store.S(Stamp(s.Created)))
	}
}

// subscriptionOwns are the attributes written, or left out on purpose, by Item.
var subscriptionOwns = map[string]bool{
	schema.Anchor: true, schema.AnchorPeriod: true, schema.CancelAtEnd: true, schema.CreatedDate: true, schema.Email: true,
	schema.Installments: true, schema.Interval: true, schema.LastCharge: true, schema.LastPaymentDate: true,
	schema.LastReminderDate: true, schema.NextPaymentDate: true, schema.NextReminderDate: true, schema.OpenPeriod: true,
	schema.PK: true, schema.Paid: true, schema.Parked: true, schema.PausedDate: true, schema.PaymentAmount: true,
	schema.PaymentDay: true, schema.PaymentDetails: true, schema.Period: true, schema.ReminderDays: true,
	schema.Requested: true,
	schema.SK:        true, schema.SKU: true, schema.Status: true, schema.TimeZone: true, schema.Version: true,
}

// details keeps the members of other tools, but no card number.
func (s *Subscription) details() store.Value {
	var d item
	keep(&d.Item, s.Raw.Get(schema.PaymentDetails).Map(), func(name string) bool {
		return name == schema.Currency || name == schema.PaymentMethod || name == schema.DefaultAddress
	})
	d.text(schema.Currency, s.Amount.Currency().Code())
	d.text(schema.PaymentMethod, s.Method)
	d.text(schema.DefaultAddress, s.Address)
	return store.M(d.Item)
}

// write returns the put of the subscription, if it is still as it was read.
func (s *Subscription) write(table string) store.Write {
	was := asRead(s.Raw)
	s.Version++
	return store.Put(table, s.Item(), was...)
}

// asRead holds while the subscription's item is as it was read. A legacy item has no version:
// then it must still be there, not be moved, and have the same terms. PaymentDetails is not
// compared: it may hold a value that store.Item cannot, and would never be equal.
func asRead(it store.Item) []store.Condition {
	v := it.Get(schema.Version)
	if _, ours := v.Int64(); ours {
		return []store.Condition{store.AttributeEquals(schema.Version, v)}
	}
	was := []store.Condition{store.AttributeEquals(schema.PK, it.Get(schema.PK))}
	for _, name := range [...]string{schema.Version, schema.Moved,
		schema.NextPaymentDate, schema.NextReminderDate, schema.LastPaymentDate,
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

// Create returns the put of a new subscription.
func (s *Subscription) Create(table string) store.Write {
	return store.Put(table, s.Item(), store.Absent())
}
