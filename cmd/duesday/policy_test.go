package main

import (
	"reflect"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/config"
)

func TestPolicy_DefaultIsBillings(t *testing.T) {
	if got, want := policy(&config.Config{Policy: config.DefaultPolicy()}), billing.DefaultConfig(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPolicy_RetryDays(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclined")
	c.create("2/1", "pm_card_visa_chargeDeclined")
	equal(t, "none", members(c.object(exitDone, "run", "payments", "--retry-days", "none"), "failed", "retry"), []any{2, 0})
	equal(t, "past due", c.object(exitDone, "subscription", "show", "1/1")["status"], "past_due")
	c.create("3/1", "pm_card_visa_chargeDeclined")
	c.env["DUESDAY_RETRY_DAYS"] = "2, 60"
	equal(t, "of the environment", c.object(exitDone, "run", "payments")["retry"], 1)
	open := c.object(exitDone, "subscription", "show", "3/1")["open"].(map[string]any)
	equal(t, "retry", open["retry_date"], "2026-03-17")
}

func TestPolicy_CatchUpAndReceiptMonths(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2026-01-15")
	equal(t, "run", members(c.object(exitPerson, "run", "payments", "--catch-up", "1", "--receipt-months", "0"), "paid", "parked"), []any{1, 1})
	receipt := c.list("receipt", "list", "1")[0].(map[string]any)
	if at, there := receipt["expires_at"]; there {
		t.Errorf("kept for ever, but expires at %v", at)
	}
	c.must("subscription", "charge", "1/1", "--receipt-months", "1")
	receipt = c.list("receipt", "list", "1")[1].(map[string]any)
	equal(t, "expires", receipt["expires_at"], "2026-04-15T10:30:00.000Z")
}

// TestPolicy_Demo holds that a demo is the same one wherever it runs.
func TestPolicy_Demo(t *testing.T) {
	c := newCLI(t)
	args := []string{"demo", "--accounts", "60", "--months", "1", "--store", "mem:"}
	plain := c.object(exitDone, args...)
	strict := c.object(exitDone, append(args, "--retry-days", "none", "--catch-up", "24")...)
	equal(t, "months", strict["months"], plain["months"])
	retries := 0.0
	for _, m := range plain["months"].([]any) {
		retries += m.(map[string]any)["retry"].(float64)
	}
	if retries == 0 {
		t.Error("the demo has no retry, so that this test sees nothing")
	}
}

func TestPolicy_IsInHints(t *testing.T) {
	p := newProgram(func(string) string { return "" }, nil, nil, nil, nil)
	p.cfg = config.Config{Store: config.DefaultStore, Processor: config.DefaultProcessor, Mail: "m", Policy: config.Policy{RetryDays: []int{}, CatchUp: 3}}
	equal(t, "run", p.hint("run payments"), "duesday run payments --receipt-months 0 --retry-days none --action-days 0 --mail m")
	equal(t, "list", p.hint("outbox list"), "duesday outbox list --mail m")
	equal(t, "other", p.hint("charging on"), "duesday charging on")
}
