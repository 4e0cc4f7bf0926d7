package demo

import (
	"fmt"
	"math/rand/v2"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// A weighted is a choice with its weight.
type weighted[T any] struct {
	parts int
	value T
}

func pick[T any](r *rand.Rand, choices []weighted[T]) T {
	sum := 0
	for _, c := range choices {
		sum += c.parts
	}
	n := r.IntN(sum)
	for _, c := range choices {
		if n -= c.parts; n < 0 {
			return c.value
		}
	}
	return choices[0].value // unreachable: the parts have been summed
}

// A plan is a product with its prices in minor units, by currency.
type plan struct {
	sku    string
	prices map[string]int64
}

// The make-up of a book. Trouble is more frequent than in life: a small book shows all of it.
var (
	plans = []weighted[plan]{
		{40, plan{"news-basic", map[string]int64{"USD": 499, "EUR": 499, "GBP": 449, "JPY": 600, "KWD": 1500}}},
		{30, plan{"news-plus", map[string]int64{"USD": 1299, "EUR": 1199, "GBP": 1099, "JPY": 1800, "KWD": 3950}}},
		{20, plan{"gym", map[string]int64{"USD": 3900, "EUR": 3490, "GBP": 2999, "JPY": 5500, "KWD": 12000}}},
		{10, plan{"team", map[string]int64{"USD": 12000, "EUR": 11000, "GBP": 9900, "JPY": 16000, "KWD": 36750}}},
	}
	currencies  = []weighted[string]{{50, "USD"}, {25, "EUR"}, {13, "GBP"}, {8, "JPY"}, {4, "KWD"}}
	intervals   = []weighted[string]{{86, "monthly"}, {6, "weekly"}, {4, "quarterly"}, {4, "yearly"}}
	paymentDays = []weighted[int]{{20, 1}, {15, 15}, {10, 31}, {5, 30}, {5, 29}, {45, 0}} // 0: any
	zones       = []weighted[string]{{60, "UTC"}, {12, "Europe/Berlin"}, {12, "America/New_York"}, {8, "Asia/Tokyo"},
		{4, "Asia/Kuwait"}, {2, "Pacific/Kiritimati"}, {2, "Pacific/Honolulu"}}
	methods = []weighted[string]{
		{840, "pm_card_visa"}, {50, "pm_sandbox_flaky"}, {30, "pm_sandbox_timeout"}, {25, "pm_card_visa_chargeDeclined"},
		{20, "pm_card_visa_chargeDeclinedInsufficientFunds"}, {20, "pm_card_authenticationRequired"},
		{15, "pm_card_visa_chargeDeclinedLostCard"},
	}
	reminderDays = []weighted[int]{{80, 7}, {10, 3}, {5, 14}, {5, 0}}
	installments = []weighted[int]{{95, 0}, {2, 2}, {2, 3}, {1, 12}}
	firstNames   = []string{"ada", "grace", "alan", "edsger", "barbara", "donald", "frances", "john", "katherine",
		"niklaus", "radia", "tony"}
	lastNames = []string{"lovelace", "hopper", "turing", "dijkstra", "liskov", "knuth", "allen", "backus", "johnson",
		"wirth", "perlman", "hoare"}
)

// newAccount makes up the subscriptions of one account beginning on the day.
func newAccount(r *rand.Rand, number int, begins civil.Date) []billing.NewSubscription {
	id := fmt.Sprintf("%d", 1000+number)
	email := firstNames[r.IntN(len(firstNames))] + "." + lastNames[r.IntN(len(lastNames))] + "." + id + "@example.com"
	zone, currency := pick(r, zones), pick(r, currencies)
	subs := make([]billing.NewSubscription, 1+pick(r, []weighted[int]{{80, 0}, {15, 1}, {5, 2}}))
	for i := range subs {
		subs[i] = newSubscription(r, currency, begins)
		subs[i].Account, subs[i].Email, subs[i].TimeZone = id, email, zone
		subs[i].ID = fmt.Sprintf("%d", i+1)
	}
	return subs
}

func newSubscription(r *rand.Rand, code string, begins civil.Date) billing.NewSubscription {
	currency, err := money.ParseCurrency(code)
	if err != nil {
		panic(err) // unreachable: the table above has valid currencies
	}
	interval, err := civil.ParseInterval(pick(r, intervals))
	if err != nil {
		panic(err) // unreachable: the table above has valid intervals
	}
	chosen := pick(r, plans)
	day := pick(r, paymentDays)
	if day == 0 {
		day = 1 + r.IntN(28)
	}
	if interval.Unit == civil.Week {
		day = 1 + r.IntN(7)
	}
	if interval.Unit == civil.Year { // its month is that of the start
		begins = begins.AddDays(r.IntN(90))
	}
	return billing.NewSubscription{SKU: chosen.sku, Amount: money.New(chosen.prices[code], currency), PaymentDay: day,
		Interval: interval, Method: pick(r, methods), ReminderDays: pick(r, reminderDays),
		Installments: pick(r, installments), Start: begins}
}
