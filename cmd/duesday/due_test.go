package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/command/runs"
	"github.com/duesday/duesday/internal/store"
)

// TestDue_LeavesOutTheEnding: a subscription that will be cancelled instead of charged is not due;
// one whose last period is still to be paid is.
func TestDue_LeavesOutTheEnding(t *testing.T) {
	c := newCLI(t)
	c.create("1/ends", "pm_card_visa", "--next-payment-date", "2026-04-15")
	c.create("1/goes", "pm_card_visa", "--next-payment-date", "2026-04-15")
	c.create("1/owes", "pm_card_visa", "--next-payment-date", "2026-04-15") // a past period
	c.create("2/asked", "pm_card_visa_chargeDeclined")
	c.create("2/open", "pm_card_visa_chargeDeclined")
	c.must("run", "payments") // both are tried again a day later
	c.must("subscription", "cancel", "1/ends", "--at-period-end")
	c.must("subscription", "cancel", "2/open", "--at-period-end")
	c.must("subscription", "cancel", "1/owes", "--at-period-end")
	owes := store.NewItem(store.Attribute{Name: "Collect", Value: store.Int(1)})
	c.commit(store.Update("duesday-recurring-payments", billing.Name{Account: "1", ID: "owes", SKU: "news"}.Key(), owes, nil))
	asked := store.NewItem(store.Attribute{Name: "Requested", Value: store.S(string(billing.RequestCancel))})
	c.commit(store.Update("duesday-recurring-payments", billing.Name{Account: "2", ID: "asked", SKU: "news"}.Key(), asked, nil))
	equal(t, "due", names(c.list("due", "payments", "--until", "2026-04-30")), "2/open, 1/goes, 1/owes")
	equal(t, "on the day", names(c.list("due", "payments", "--date", "2026-04-15")), "1/goes, 1/owes")
	contains(t, c.must("due", "payments", "--until", "2026-04-30"), "3 payments\nleft out 2 subscriptions that the payment run will cancel")
}

// TestDue_PastPeriod: a failed period that is to be collected is shown with its own plan, and not with that
// of the next period.
func TestDue_PastPeriod(t *testing.T) {
	c := newCLI(t)
	c.must("account", "create", "1", "--email", "a@example.com")
	c.must("settings", "set", "after-failure=collect")
	c.create("1/1", "pm_card_visa_chargeDeclinedLostCard")
	c.run("run", "payments")
	c.must("subscription", "update", "1/1", "--sku", "gold", "--amount", "20")
	c.must("charging", "off")
	c.must("subscription", "update", "1/1", "--payment-method", "pm_card_visa")
	row := c.list("due", "payments", "--until", "2026-04-30")[0].(map[string]any)
	equal(t, "collected", members(row, "subscription", "sku", "amount"), []any{"1", "news", 1299})
	c.must("charging", "on")
	equal(t, "run", members(c.object(exitDone, "run", "payments"), "paid", "amounts"),
		[]any{1, map[string]any{"USD": 1299}})
	row = c.list("due", "payments", "--until", "2026-04-30")[0].(map[string]any)
	equal(t, "next", members(row, "next_payment_date", "sku", "amount"), []any{"2026-04-15", "gold", 2000})
}

// TestDue_InOrder has more rows than are read at once.
func TestDue_InOrder(t *testing.T) {
	c := newCLI(t)
	var book strings.Builder
	book.WriteString(header)
	for i := range 2*runs.DueAhead + 5 {
		fmt.Fprintf(&book, "%03d,a@example.com,1,news,12.99,USD,15,pm_card_visa\n", i)
	}
	c.must("import", c.file("book.csv", book.String()))
	c.must("subscription", "cancel", "070/1", "--at-period-end", "--date", "2026-03-14") // a day before it is due
	want := 0
	for _, row := range c.list("due", "payments", "--date", today) {
		if want == 70 {
			want++
		}
		equal(t, "row", row.(map[string]any)["account"], fmt.Sprintf("%03d", want))
		want++
	}
	equal(t, "rows", want, 2*runs.DueAhead+5)
}
