package billing

import (
	"errors"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/civil"
)

// Every wrong field is named, and by one problem.
func TestNewSubscription_Problems(t *testing.T) {
	n := NewSubscription{Account: "a/b", Email: "nobody", PaymentDay: 32, Method: "4242424242424242", Address: "\x00",
		TimeZone:     "Mars/Base",
		ReminderDays: -1, Installments: -1, Start: date(t, "1950-01-01"), NextPayment: date(t, "9500-01-01")}
	var got []string
	for _, p := range n.Problems() {
		got = append(got, p.Field)
	}
	want := []string{"account", "subscription", "sku", "email", "amount", "payment_day", "payment_method", "address",
		"time_zone", "reminder_days",
		"start_date", "next_payment_date", "installments"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if first, ok := errors.AsType[*FieldError](n.Check()); !ok || first.Field != want[0] {
		t.Errorf("got %v, want a FieldError of %s first", n.Check(), want[0])
	}
}

func date(t *testing.T, text string) civil.Date {
	t.Helper()
	d, err := civil.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
