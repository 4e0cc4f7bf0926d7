package billing

import (
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
// with numbers where the model has strings, with timestamps of their own making, and with
// card numbers. What can be read is read here; the first write of a subscription adds what
// is ours and takes the card numbers out.

// unreadable says which attribute of an item cannot be read, and why.
type UnreadableError struct {
	attribute, reason string // without any value of the item
	err               error  // may show it; may be nil
}

func (e *UnreadableError) Error() string {
	if e.err == nil {
		return e.attribute + " " + e.reason
	}
	return e.attribute + " " + e.reason + ": " + e.err.Error()
}

func (e *UnreadableError) Unwrap() error { return e.err }

// reasonOf says why an item cannot be read, without any value of it but its key's.
func UnreadableReason(err error) string {
	if e, ok := errors.AsType[*UnreadableError](err); ok {
		return e.attribute + " " + e.reason
	}
	if e, ok := errors.AsType[*FieldError](err); ok {
		return e.Error()
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

// readStamp reads a timestamp of the model, or one that lacks its zone, which is UTC then,
// or its time; the zero time when it is none.
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

// keepStamp writes the timestamp, or leaves what stands there when nobody could read it.
func keepStamp(it *store.Item, raw store.Item, name string, t time.Time) {
	if t.IsZero() {
		if was, _ := WithoutCards(raw.Get(name)); !was.IsZero() {
			it.Set(name, was)
		}
		return
	}
	it.Set(name, store.S(Stamp(t)))
}

// oldestDate is the oldest date that is believed: a walk goes from day to day.
func OldestDate() civil.Date { return civil.Of(time.Unix(0, 0).UTC()) }

// adopted completes a subscription that Duesday has never written, or says why it cannot be
// charged as it is: a guess would be somebody's money.
func (s *Subscription) readLegacy(t *terms) error {
	for _, f := range [...]struct{ name, id string }{{"account", s.Account}, {"subscription", s.ID}, {"sku", s.SKU}} {
		if err := CheckID(f.name, f.id); err != nil {
			return err
		}
	}
	switch s.Status {
	case Active, Paused, PastDue, ParkedState, CanceledSub, Completed:
	default:
		return &UnreadableError{schema.Status, fmt.Sprintf("is none that Duesday knows: want no such attribute, or %s, %s, %s or %s",
			Active, Paused, CanceledSub, Completed), nil}
	}
	for _, d := range [...]struct {
		name string
		date civil.Date
	}{{schema.NextPaymentDate, s.NextPayment}, {schema.NextReminderDate, s.NextReminder}} {
		if !d.date.IsZero() && d.date.Before(OldestDate()) {
			return &UnreadableError{d.name, "is before " + OldestDate().String(), nil}
		}
	}
	if secret.HasCardNumber(t.amount) {
		return &UnreadableError{schema.PaymentAmount, "looks like a card number", nil}
	}
	if s.TimeZone != "" {
		if _, err := civil.Zone(s.TimeZone); err != nil {
			return &UnreadableError{schema.TimeZone, "is no IANA name", err}
		}
	}
	if secret.HasCardInMethod(s.Method) {
		s.Method = ""
	}
	if secret.HasCardNumber(s.Email) {
		s.Email = ""
	}
	s.Address = secret.MaskCards(s.Address)
	if s.Status == Active && s.NextPayment.IsZero() && t.anchor == "" {
		return s.offAgenda()
	}
	if s.Status != Active {
		return nil
	}
	if _, err := s.Due(); err != nil {
		return &UnreadableError{schema.NextPaymentDate, "is not on the " + schema.PaymentDay, err}
	}
	return nil
}

// offAgenda reads a subscription without a NextPaymentDate: whoever took it off the agenda
// meant that it is not charged. It is paused, so that a person may resume it, from the
// first payment day after the last payment.
func (s *Subscription) offAgenda() error {
	last := s.LastPayment
	if last.Before(s.Created) {
		last = s.Created
	}
	if last.IsZero() {
		return &UnreadableError{schema.NextPaymentDate, fmt.Sprintf("is missing, and so are %s and %s", schema.LastPaymentDate, schema.CreatedDate), nil}
	}
	var err error
	if s.Anchor, err = civil.FirstOnOrAfter(civil.Of(last).AddDays(1), s.PaymentDay, s.Interval); err != nil {
		return &UnreadableError{schema.PaymentDay, "is no payment day", err}
	}
	s.Status = Paused
	return nil
}

// isCardName reports the model's member for a card number.
func isCardName(name string) bool { return strings.EqualFold(name, schema.DefaultCard) }

// WithoutCards returns the value without its card numbers and without the model's default-card,
// and how many there were. It is the zero Value when it is one itself.
func WithoutCards(v store.Value) (store.Value, int) {
	found := 0
	switch v.Kind() {
	case store.KindString, store.KindNumber, store.KindBinary:
		if secret.HasCardNumber(textOf(v) + v.Raw()) {
			return store.Value{}, 1
		}
	case store.KindMap:
		var kept store.Item
		for _, a := range v.Map() {
			inner, n := WithoutCards(a.Value)
			if isCardName(a.Name) || secret.HasCardNumber(a.Name) || a.Name == schema.PaymentMethod && secret.HasCardInMethod(textOf(a.Value)) {
				inner, n = store.Value{}, max(n, 1)
			}
			if found += n; !inner.IsZero() {
				kept.Set(a.Name, inner)
			}
		}
		if found > 0 {
			return store.M(kept), found
		}
	case store.KindList:
		var kept []store.Value
		for _, e := range v.List() {
			inner, n := WithoutCards(e)
			if found += n; !inner.IsZero() {
				kept = append(kept, inner)
			}
		}
		if found > 0 {
			return store.L(kept...), found
		}
	}
	return v, 0
}

// keep copies the attributes that are not ours, but never a card number.
func keep(it *store.Item, raw store.Item, ours func(string) bool) {
	for _, a := range raw {
		if ours(a.Name) || isCardName(a.Name) || secret.HasCardNumber(a.Name) {
			continue
		}
		if v, _ := WithoutCards(a.Value); !v.IsZero() {
			it.Set(a.Name, v)
		}
	}
}

// ours reports whether Duesday has written the subscription before.
func (s *Subscription) Ours() bool {
	_, ours := s.Raw.Get(schema.Version).Int64()
	return ours
}
