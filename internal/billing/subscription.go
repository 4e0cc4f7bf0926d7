package billing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Status tells whether a subscription is charged.
type Status string

// The statuses. Only an active subscription opens periods. In all, an open one comes to its end.
const (
	Active      Status = "active"
	Paused      Status = "paused"
	PastDue     Status = "past_due"  // a period failed; it waits for a new method or a resume
	ParkedState Status = "parked"    // a person must decide: charge or skip
	CanceledSub Status = "canceled"  // final
	Completed   Status = "completed" // all installments paid; final
)

// Known reports whether the status is one of those above.
func (s Status) Known() bool {
	switch s {
	case Active, Paused, PastDue, ParkedState, CanceledSub, Completed:
		return true
	}
	return false
}

// A Request is a person's request while a period is open. It is committed before the intent
// is cancelled, and carried out when the period has ended.
type Request string

// The requests.
const (
	RequestNone   Request = ""
	RequestCancel Request = "cancel"
	RequestPause  Request = "pause"
	RequestSkip   Request = "skip"
	RequestManual Request = "manual" // the period was paid outside: Manual has the payment
)

// A Collection is how the periods of a subscription are paid.
type Collection string

// The collections. A period keeps that with which it was opened.
const (
	Automatic Collection = "automatic" // by a charge
	ByWire    Collection = "manual"    // by the customer, who is asked to pay: nothing is charged
)

// CheckCollection returns a FieldError for an unknown collection.
func CheckCollection(c Collection) error {
	if c != Automatic && c != ByWire {
		return Invalid("collection", fmt.Sprintf("must be %s or %s (got %.40q)", Automatic, ByWire, secret.MaskCards(string(c))))
	}
	return nil
}

// NoMethod is Subscription.Parked, and the reason of the period's record, if there is no payment
// method to charge.
const NoMethod = "no payment method"

// NoTaxRate is Subscription.Parked, and the reason of the period's record, if the tax setting is on and
// the subscription has no rate.
const NoTaxRate = "no tax rate"

// A Subscription is the item SUB#<id>#SKU#<sku> of an account. Its Name has the SKU with which it was
// made: that of its key, by which the processor and the records of its periods know it for good.
type Subscription struct {
	Name
	SKU          string // what is subscribed to now: Name.SKU, until the plan is changed
	Email        string // copy of the account's
	PaymentDay   int
	Amount       money.Amount // of one unit, from the next period to be opened
	Terms        price.Terms  // of the next period to be opened: AmountOf computes what it costs
	Pending      *Plan        // the plan from a later period on; nil: none
	Takeover     *Takeover    // from which of the processor's subscriptions it was taken over; nil: none
	Upgrade      *Upgrade     // the latest one of the period to be paid next or last paid; nil: none
	Method       string
	Collection   Collection // of the next period to be opened
	Address      string
	Interval     civil.Interval
	Anchor       civil.Date // due date of period AnchorPeriod
	AnchorPeriod int
	DueBefore    civil.Date // of AnchorPeriod, before the changes of its payment day; zero: none
	TrialEnds    civil.Date // the first due date, after a free trial; zero: there was none
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
	Kept         string // for how many months receipts are kept; see package kept
	LastCharge   string // reference of the last settled charge
	Requested    Request
	RequestedAt  time.Time      // when it was; of a canceled one: of that, or of its end; zero: none, or by an older Duesday
	SkipUntil    civil.Date     // with RequestSkip: the periods due before it are skipped; zero: the open one only
	Manual       *ManualRequest // with RequestManual
	CancelAtEnd  bool
	CancelDate   civil.Date // business day of the request to cancel, now or at the end; zero: none, or by an older Duesday
	Collect      int        // the past period to be collected, plus one; 0: none, or it is open
	CardTold     string     // the last month, 2026-12, of the card whose end the customer was told of
	Mailed       []string   // topics of mail that a replaced store has sent; see outbox.Effect.Topic
	Told         civil.Date // when the customer was last asked again to act; zero: never
	PausedOn     civil.Date
	Parked       string // why it is parked
	Open         *OpenPeriod
	Version      int64 // of the item; each commit adds one

	Raw    store.Item // as read; holds the attributes of other tools
	Shards int        // per date, of the store
	Moved  bool       // another store has a copy and charges it from now on
	Redone string     // how another tool has changed the schedule; the next write carries it on
	Adds   string     // what the next commit adds to the sums because of a first decline; "": nothing

	agenda civil.Date // NextPayment as Duesday wrote it; zero: not noted
	read   civil.Date // NextPayment as it was read

	shifted bool // another tool had moved NextPayment when it was read

	// AlteredTo is NextPayment as another tool has set it, past the day of the open period; zero: none has.
	AlteredTo civil.Date

	stored store.Item // as read, where Raw was changed since; else nil
}

// Key is the key of the item: as it was read, or of a new one.
func (s *Subscription) Key() store.Key {
	if len(s.Raw) > 0 {
		return KeyOf(s.Raw)
	}
	return s.Name.Key()
}

// Schedule returns the due dates following from the anchor.
func (s *Subscription) Schedule() civil.Schedule {
	return civil.Schedule{Anchor: s.Anchor, From: s.AnchorPeriod, Day: s.PaymentDay, Interval: s.Interval}
}

// Due returns the due date of the period to be paid next.
func (s *Subscription) Due() (civil.Date, error) {
	if o := s.NextOpen(); o != nil {
		return o.Due, nil
	}
	return s.Schedule().Due(s.Period)
}

// Today returns the business day, or if it is zero, the clock's day in the subscription's zone.
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
		return nil, &IllegibleError{schema.SK, "is not " + SubscriptionForm, nil}
	}
	s := &Subscription{Name: name, Raw: it, ReminderDays: DefaultReminderDays, Status: Active, Interval: Monthly,
		Collection: Automatic, Moved: it.Has(schema.Moved)}
	var t terms
	c := codec{stored: it}
	s.attributes(&c, &t)
	err := cmp.Or(c.err, s.readTerms(&t), s.readStates())
	if s.read = s.NextPayment; err == nil && s.Ours() {
		err = s.followDay()
	} else if err == nil {
		err = s.readLegacy(&t)
	}
	if err != nil {
		return nil, fmt.Errorf("subscription %s: %w", name, err)
	}
	if s.shifted = s.Shifted(); s.shifted && s.NextOpen() != nil {
		s.AlteredTo = s.NextPayment
	}
	return s, nil
}

// Item returns the item to be stored. Attributes written by other tools stay as they were read.
func (s *Subscription) Item() store.Item {
	t := terms{key: s.Key(), amount: s.Amount.Decimal(), currency: s.Amount.Currency().Code(),
		day: strconv.Itoa(s.PaymentDay)}
	if s.Interval != Monthly {
		t.interval = s.Interval.String()
	}
	if s.NextOpen() == nil {
		s.AlteredTo = civil.Date{}
	}
	if s.agenda.IsZero() || s.NextPayment != s.read {
		s.agenda, s.read = s.NextPayment, s.NextPayment
	}
	c := writer(s.Raw)
	s.attributes(c, &t)
	it := c.written()
	if _, whole := it.Get(schema.TTL).Int64(); !whole {
		it.Remove(schema.TTL) // another tool's text or fraction, which expires nothing; the engines refuse it
	}
	return it
}

// terms are attributes in their stored form: those that are read together with others, and the key.
type terms struct {
	key                             store.Key
	amount, currency, day, interval string
}

func (s *Subscription) attributes(c *codec, t *terms) {
	c.date(schema.AgendaDate, &s.agenda)
	c.date(schema.AlteredDate, &s.AlteredTo)
	c.date(schema.Anchor, &s.Anchor)
	c.count(schema.AnchorPeriod, &s.AnchorPeriod, 0)
	c.flag(schema.CancelAtEnd, &s.CancelAtEnd)
	c.date(schema.CancelDate, &s.CancelDate)
	text(c, schema.CardTold, &s.CardTold)
	c.count(schema.Collect, &s.Collect, 0)
	if c.writing || s.Ours() { // else it is another tool's
		textBut(c, schema.CollectionMethod, &s.Collection, Automatic)
	}
	c.keptStamp(schema.CreatedDate, &s.Created)
	c.date(schema.DueBefore, &s.DueBefore)
	text(c, schema.Email, &s.Email)
	c.count(schema.Installments, &s.Installments, 0)
	text(c, schema.Interval, &t.interval)
	text(c, schema.Kept, &s.Kept)
	text(c, schema.LastCharge, &s.LastCharge)
	s.last(c, schema.LastPaymentDate, &s.LastPayment)
	s.last(c, schema.LastReminderDate, &s.LastReminder)
	list(c, schema.Mailed, &s.Mailed, store.Value.Str, store.S)
	inner(c, schema.Manual, "manual payment", &s.Manual, (*ManualRequest).attributes)
	s.next(c, schema.NextPaymentDate, &s.NextPayment)
	s.next(c, schema.NextReminderDate, &s.NextReminder)
	inner(c, schema.OpenPeriod, "open period", &s.Open, (*OpenPeriod).attributes)
	c.only(schema.PK, t.key.PK)
	c.count(schema.Paid, &s.Paid, 0)
	text(c, schema.Parked, &s.Parked)
	c.date(schema.PausedDate, &s.PausedOn)
	c.textOrNumber(schema.PaymentAmount, &t.amount)
	c.textOrNumber(schema.PaymentDay, &t.day)
	s.details(c, t)
	inner(c, schema.Pending, "pending change", &s.Pending, (*Plan).attributes)
	c.count(schema.Period, &s.Period, 0)
	priced(c, schema.PriceTerms, &s.Terms, s.Terms == price.Terms{}, t.currency, price.DecodeTerms, (*price.Terms).Item)
	c.count(schema.ReminderDays, &s.ReminderDays, DefaultReminderDays)
	text(c, schema.Requested, &s.Requested)
	byOther := s.Status == Completed && s.Period == 0 // see since
	if c.writing && s.Requested == RequestNone && s.Status != CanceledSub && !byOther {
		s.RequestedAt = time.Time{}
	}
	c.stamp(schema.RequestedDate, &s.RequestedAt)
	c.only(schema.SK, t.key.SK)
	s.sku(c)
	if s.Requested != RequestSkip {
		s.SkipUntil = civil.Date{}
	}
	c.date(schema.SkipUntil, &s.SkipUntil)
	text(c, schema.Status, &s.Status)
	inner(c, schema.Takeover, "takeover", &s.Takeover, (*Takeover).attributes)
	textBut(c, schema.TimeZone, &s.TimeZone, "UTC")
	c.date(schema.ToldDate, &s.Told)
	c.date(schema.TrialEnds, &s.TrialEnds)
	inner(c, schema.Upgrade, "upgrade", &s.Upgrade, (*Upgrade).attributes)
	attribute(c, schema.Version, &s.Version, false, store.KindNumber, readVersion, store.Int)
}

// last is the sort key of an index. Without it the item would not be in the index.
func (s *Subscription) last(c *codec, name string, p *time.Time) {
	if c.keptStamp(name, p); c.writing && c.item.Str(name) == "" {
		c.item.Set(name, store.S(Stamp(s.Created)))
	}
}

// next is the partition key of an index.
func (s *Subscription) next(c *codec, name string, p *civil.Date) {
	attribute(c, name, p, p.IsZero(), store.KindString, func(v store.Value) civil.Date { return c.parse(name, IndexDate(v.Str())) },
		func(d civil.Date) store.Value { return store.S(placed(d, s.Name, s.Shards)) })
}

// details keeps the members of other tools, but no card number.
func (s *Subscription) details(c *codec, t *terms) {
	stored := c.seek(schema.PaymentDetails)
	if !c.writing && !stored.IsZero() && !c.isA(store.KindMap, schema.PaymentDetails, stored) {
		return
	}
	inner := codec{stored: stored.Map(), writing: c.writing}
	text(&inner, schema.Currency, &t.currency)
	text(&inner, schema.PaymentMethod, &s.Method)
	if was := inner.stored.Get(schema.DefaultAddress); was.IsZero() || was.Kind() == store.KindString || s.Address != "" {
		text(&inner, schema.DefaultAddress, &s.Address) // one of another form is other tools'
	}
	if c.writing {
		c.item.Set(schema.PaymentDetails, store.M(inner.written()))
	} else if inner.err != nil {
		c.fail(schema.PaymentDetails, "is not usable: "+UnreadableReason(inner.err), nil)
	}
}

// readStates returns an error for a state of which it is not known what is to be done about money.
func (s *Subscription) readStates() error {
	next := s.Period
	if s.NextOpen() != nil {
		next++
	}
	switch {
	case s.AnchorPeriod > next:
		return &IllegibleError{schema.AnchorPeriod, "is after the next period", nil}
	case CheckCollection(s.Collection) != nil: // damaged: it must not be charged
		return &IllegibleError{schema.CollectionMethod, "is neither automatic nor manual", nil}
	case !s.Status.Known():
		return &IllegibleError{schema.Status, fmt.Sprintf("must be absent, or %s, %s, %s or %s",
			Active, Paused, CanceledSub, Completed), nil}
	case !slices.Contains([]Request{RequestNone, RequestCancel, RequestPause, RequestSkip, RequestManual}, s.Requested):
		return &IllegibleError{schema.Requested, "is not a value that Duesday knows", nil}
	case s.Open != nil && !slices.Contains([]processor.State{"", processor.Processing, processor.RequiresAction, Failing}, s.Open.State):
		return &IllegibleError{schema.OpenPeriod, "has a " + schema.State + " that Duesday does not know", nil}
	case s.Takeover != nil && !s.Takeover.Stage.Known():
		return &IllegibleError{schema.Takeover, "has a " + schema.Stage + " that Duesday does not know", nil}
	case s.Ours() && s.Period > 0 && !s.Over() && s.Raw.Str(schema.Anchor) == "": // its dates would begin anew
		return &IllegibleError{schema.Anchor, "is missing", nil}
	case s.Ours() && s.LastCharge != "" && !s.Raw.Has(schema.Period): // the rollback check would stop everybody
		return &IllegibleError{schema.Period, "is missing, although a period was charged", nil}
	}
	return nil
}

// readTerms reads money and schedule.
func (s *Subscription) readTerms(t *terms) (err error) {
	if s.Amount, err = amountOf(t.amount, t.currency); err != nil {
		return err
	}
	if s.PaymentDay, err = strconv.Atoi(t.day); err != nil {
		return &IllegibleError{schema.PaymentDay, "is no number", err}
	}
	if t.interval != "" {
		if s.Interval, err = civil.ParseInterval(t.interval); err != nil {
			return &IllegibleError{schema.Interval, "is no interval", err}
		}
	}
	s.Anchor = cmp.Or(s.Anchor, s.NextPayment)
	return nil
}

// amountOf returns a subscription's PaymentAmount, or an IllegibleError.
func amountOf(text, currency string) (money.Amount, error) {
	a, err := decodeAmount(text, currency)
	if err != nil {
		return a, &IllegibleError{schema.PaymentAmount, "is not an amount in the subscription's currency", err}
	}
	return a, nil
}

func decodeAmount(text, currency string) (money.Amount, error) {
	c, err := money.ParseCurrency(cmp.Or(currency, "USD"))
	if err != nil {
		return money.Amount{}, err
	}
	return money.Parse(text, c)
}
