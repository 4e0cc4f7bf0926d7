package estimate

import (
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// Scatter maps a place in the order of due dates to an account number in no such order. Ids
// are random in practice, so a run does not visit accounts in the order of their keys.
func Scatter(i int) int { return int(uint32(i) * 2654435761) }

// usd cannot fail: the currency is known.
var usd, _ = money.ParseCurrency("USD")

// Subscription returns the i-th subscription of a book: of realistic size, with an account of
// its own.
func Subscription(i int, due civil.Date) billing.NewSubscription {
	id := Scatter(i)
	return billing.NewSubscription{
		Account: fmt.Sprintf("acct_%010d", id), Email: fmt.Sprintf("customer.%d@example.com", id),
		ID:  fmt.Sprintf("sub_%010d", id),
		SKU: fmt.Sprintf("plan-%03d", i%200), Amount: money.New(int64(500+i%5000), usd), PaymentDay: due.Day(),
		Method: "pm_card_visa", Address: fmt.Sprintf("%d Bridge Street, Birmingham, B12 7ST, United Kingdom", i%900+1),
		ReminderDays: billing.DefaultReminderDays, NextPayment: due,
	}
}
