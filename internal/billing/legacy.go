package billing

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Other tools write items from the published model, too: without Duesday's own attributes,
// with numbers for the model's strings, with other forms of timestamps, and with card numbers.
// This file reads such a legacy item as far as possible. The first write of a subscription
// adds Duesday's attributes and takes the card numbers out.

// An IllegibleError tells of an unreadable item, written by another tool. Asking again changes
// nothing; other items are not affected. It is no FieldError: nobody has given a wrong field.
type IllegibleError struct {
	attribute, reason string // without any value of the item; "": Err has both
	Err               error  // may show a value; may be nil
}

func (e *IllegibleError) Error() string {
	var parts []string
	if e.attribute != "" {
		parts = append(parts, e.attribute+" "+e.reason)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// An ItemError names an unreadable item of a list. The items after it follow.
type ItemError struct {
	Key store.Key
	Err error
}

func (e *ItemError) Error() string {
	return "item " + secret.MaskCards(e.Key.PK+" "+e.Key.SK) + ": " + UnreadableReason(e.Err)
}

func (e *ItemError) Unwrap() error { return e.Err }

// UnreadableReason tells why an item cannot be read, without any value of it but its key's.
func UnreadableReason(err error) string {
	e, ok := errors.AsType[*IllegibleError](err)
	if ok && e.attribute != "" {
		return e.attribute + " " + e.reason
	}
	if ok {
		if f, wrong := errors.AsType[*FieldError](e.Err); wrong {
			return f.Error()
		}
	}
	return "cannot be read"
}

// textOf returns a string, or a number as it would have been written into one.
func textOf(v store.Value) string {
	if v.Kind() == store.KindNumber {
		return v.Num()
	}
	return v.Str()
}

// readStamp reads a timestamp that may lack its time or zone (UTC); zero: it is none.
func readStamp(s string) time.Time {
	t := ParseStamp(s)
	for _, layout := range [...]string{"2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if !t.IsZero() || s == "" {
			break
		}
		if other, err := time.Parse(layout, s); err == nil {
			t = other
		}
	}
	return t
}

// keptStamp is stamp for a time that may have been unreadable: then it stays as it is stored.
func (c *codec) keptStamp(name string, p *time.Time) {
	if c.writing && p.IsZero() {
		c.keep(store.Attribute{Name: name, Value: c.seek(name)})
	} else {
		attribute(c, name, p, false, store.KindNone, readTime, writeTime)
	}
}

// OldestDate is the oldest date accepted from other tools: a walk goes from day to day.
func OldestDate() civil.Date { return civil.Of(time.Unix(0, 0).UTC()) }

// readLegacy completes a subscription never written by Duesday, or returns the reason why it cannot
// be charged as it is. It guesses nothing: a wrong guess takes somebody's money.
func (s *Subscription) readLegacy(t *terms) error {
	for _, f := range [...]struct{ name, id string }{{"account", s.Account}, {"subscription", s.ID}, {"sku", s.Name.SKU}} {
		if err := CheckID(f.name, f.id); err != nil {
			return &IllegibleError{Err: err}
		}
	}
	for _, d := range [...]struct {
		name string
		date civil.Date
	}{{schema.NextPaymentDate, s.NextPayment}, {schema.NextReminderDate, s.NextReminder}} {
		if !d.date.IsZero() && d.date.Before(OldestDate()) {
			return &IllegibleError{d.name, "is before " + OldestDate().String(), nil}
		}
	}
	if secret.HasCardNumber(t.amount) {
		return &IllegibleError{schema.PaymentAmount, "looks like a card number", nil}
	}
	if s.TimeZone != "" {
		if _, err := civil.Zone(s.TimeZone); err != nil {
			return &IllegibleError{schema.TimeZone, "is not an IANA name", err}
		}
	}
	if secret.HasCardInMethod(s.Method) {
		s.Method = ""
	}
	if secret.HasCardNumber(s.Email) {
		s.Email = ""
	}
	s.Address = secret.MaskCards(s.Address)
	if s.Status == Active && s.NextPayment.IsZero() && s.Anchor.IsZero() {
		return s.offAgenda()
	}
	if s.Status != Active {
		s.since(cmp.Or(s.LastPayment, s.Created, time.Unix(0, 0)))
		return nil
	}
	if _, err := s.Due(); err != nil {
		return &IllegibleError{schema.NextPaymentDate, "is not on the " + schema.PaymentDay, err}
	}
	return nil
}

// followDay carries on a schedule whose PaymentDay another tool has changed, as if a person had.
func (s *Subscription) followDay() error {
	was := s.Schedule()
	if s.Anchor.IsZero() || s.Over() || was.Validate() == nil {
		return nil
	}
	next := s.Period
	if s.NextOpen() != nil {
		next++ // the open one keeps its due date
	}
	was = was.OnAnchor()
	var due civil.Date
	old, err := was.Due(next)
	if err == nil {
		old = s.dueBefore(next, old)
		due, err = civil.FirstOnOrAfter(old, s.PaymentDay, s.Interval)
	}
	switch {
	case err == nil:
		s.Anchor, s.AnchorPeriod, s.DueBefore = due, next, old
		s.Redone = fmt.Sprintf("PaymentDay was changed from %d to %d by another tool: period %d is due on %s", was.Day,
			s.PaymentDay, next, due)
	case s.Status == Active || s.Status == ParkedState:
		return &IllegibleError{schema.PaymentDay, "is no payment day", err}
	}
	return nil
}

// Altered tells of a NextPaymentDate that another tool has moved past the day of the period to be paid
// next, or returns "". That tool may have taken the payment.
func (s *Subscription) Altered() string {
	moved := s.AlteredTo
	if s.Shifted() {
		moved = s.NextPayment
	}
	if moved.IsZero() || s.Status != Active {
		return ""
	}
	return fmt.Sprintf("changed by another tool: NextPaymentDate %s is past %s, the day of period %d", moved, s.day(), s.Period)
}

// Shifted reports whether another tool has moved NextPaymentDate past that day since Duesday wrote it last.
func (s *Subscription) Shifted() bool {
	day := s.day()
	return s.NextPayment != s.agenda && !s.agenda.IsZero() && !day.IsZero() && s.NextPayment.After(day)
}

// Removed reports whether another tool has removed NextPaymentDate since Duesday wrote it last.
func (s *Subscription) Removed() bool { return s.NextPayment.IsZero() && !s.agenda.IsZero() }

// MovedTo says what another tool has done to NextPaymentDate, which is now that day, or none.
func MovedTo(day civil.Date) string {
	if day.IsZero() {
		return "removed NextPaymentDate"
	}
	return "moved NextPaymentDate to " + day.String()
}

// day is that of the period to be paid next: its due date, or its retry day.
func (s *Subscription) day() civil.Date {
	day, err := s.Due()
	if err != nil {
		return civil.Date{}
	}
	if o := s.NextOpen(); o != nil {
		day = civil.Later(civil.Later(day, o.Retry), o.PayBy)
	}
	return day
}

// KeepAltered leaves the subscription on the day to which another tool has moved it, but no day before
// today, or off the agenda if that is zero. It notes which day Duesday would have set.
func (s *Subscription) KeepAltered(to, today civil.Date) {
	own := s.NextPayment
	if s.NextPayment = to; !to.IsZero() {
		s.NextPayment = civil.Later(to, today)
	}
	s.agenda, s.read = own, s.NextPayment
}

// Advance puts an open period on the day's agenda. One moved by another tool stays, to be parked.
func (s *Subscription) Advance(today civil.Date) {
	if s.Altered() == "" {
		s.NextPayment = today
	}
}

// offAgenda reads a subscription without a NextPaymentDate: its tool does not want it charged. It
// is read as paused. A person may resume it, from the first payment day after the last payment.
func (s *Subscription) offAgenda() error {
	last := s.LastPayment
	if last.Before(s.Created) {
		last = s.Created
	}
	if last.IsZero() {
		return &IllegibleError{schema.NextPaymentDate, fmt.Sprintf("is missing, and so are %s and %s",
			schema.LastPaymentDate, schema.CreatedDate), nil}
	}
	var err error
	if s.Anchor, err = civil.FirstOnOrAfter(civil.Of(last).AddDays(1), s.PaymentDay, s.Interval); err != nil {
		return &IllegibleError{schema.PaymentDay, "is no payment day", err}
	}
	s.Status = Paused
	s.since(last)
	return nil
}

// since notes the cause of a status that another tool has set, as the audit looks for it.
func (s *Subscription) since(at time.Time) {
	if s.Status == Paused {
		s.PausedOn = cmp.Or(s.PausedOn, civil.Of(at.UTC()))
	} else if s.Over() {
		s.RequestedAt = cmp.Or(s.RequestedAt, at)
	}
}
