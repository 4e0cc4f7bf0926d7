package main

import (
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// at moves the clock of the cli to the day.
func (c *cli) at(day string) {
	c.t.Helper()
	now, err := time.Parse(time.DateTime, day+" 10:30:00")
	if err != nil {
		c.t.Fatal(err)
	}
	c.clock.Set(now)
}

// proves runs prove and compares state, alarm and the beginning of the sentence.
func (c *cli) proves(name, period, state, why string) map[string]any {
	c.t.Helper()
	code := exitDone
	alarm := strings.HasPrefix(why, "!")
	if alarm {
		code, why = exitPerson, why[1:]
	}
	o := c.object(code, "prove", name, "--period", period)
	if o["state"] != state || o["alarm"] != alarm || !strings.HasPrefix(o["why"].(string), why) {
		c.t.Errorf("%s period %s: %v, %v\n%s\nwant %s\n%s", name, period, o["state"], o["alarm"], o["why"], state, why)
	}
	r := c.run("prove", name, "--period", period)
	contains(c.t, r.out, o["why"].(string)+"\n", "Period "+period+" of "+name+", ", ": "+state+"\n")
	return o
}

func TestProve(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"+
		"2,b@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclined\n"+
		"3,c@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n"+
		"4,d@example.com,1,news,12.99,USD,15,\n"+
		"5,e@example.com,1,news,12.99,USD,16,pm_card_visa\n"+
		"6,f@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.must("receipt", "create", "6/1", "--note", "cash")
	c.proves("1/1", "0", "waiting", "There was no charge: no intent has been bound to the period yet; the processor shows no success")
	c.run("run", "payments")

	o := c.proves("1/1", "0", "paid", "There was one charge: pi_sandbox_")
	equal(t, "paid", members(o, "due_date", "reminder_date", "receipt_months"), []any{"2026-03-15", "2026-03-08", 6})
	equal(t, "intent", members(o["intents"].([]any)[0].(map[string]any), "in_the_store", "state", "amount"),
		[]any{"settled", "succeeded", 1299})
	o = c.proves("2/1", "0", "open", "There was no charge yet: pi_sandbox_")
	equal(t, "declined", members(o["declined"].([]any)[0].(map[string]any), "attempt", "code"), []any{1, "generic_decline"})
	o = c.proves("3/1", "0", "failed", "There was no charge: the period ended failed; the processor shows no success, and every intent for the period is canceled")
	equal(t, "intent", members(o["intents"].([]any)[0].(map[string]any), "in_the_store", "state"), []any{"canceled", "canceled"})
	c.proves("4/1", "0", "parked", "There was no charge: the period is parked until an operator decides")
	c.proves("6/1", "0", "paid", "There was no charge: the period has a manual payment; the processor shows no success")
	c.must("subscription", "skip", "4/1")
	c.proves("4/1", "0", "skipped", "There was no charge: the period ended skipped; ")

	r := c.run("prove", "1/1", "--period", "3")
	contains(t, r.errors, "period 3 of 1/1 is in the future: it is due on 2026-06-15", "the next period is 1, due on 2026-04-15")
	equal(t, "exit", r.code, exitFailed)
	r = c.run("prove", "1/1", "--period", "-1")
	contains(t, r.errors, "period: must be 0 or more")
	contains(t, c.run("prove", "1/9", "--period", "0").errors, "there is no subscription 1/9")

	c.must("subscription", "pause", "5/1")
	c.at("2026-04-20")
	c.must("subscription", "resume", "5/1")
	c.proves("5/1", "1", "void", "There was no charge: the period ended void; ")
	c.must("receipt", "refund", "1/1", "--period", "0", "--amount", "5.00")
	contains(t, c.must("prove", "1/1", "--period", "0"), "Refunds and disputes in the store:", "at the processor:", "succeeded  $5.00")
	c.must("subscription", "cancel", "6/1")
	c.proves("6/1", "1", "void", "There was no charge: the period ended void; ")
	c.proves("6/1", "2", "ended", "There was no charge: the subscription is canceled; ")
	c.must("verify")
}

func TestProve_Reminder(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,20,pm_card_visa\n"))
	c.at("2026-03-16")
	c.must("run", "reminders")
	equal(t, "written", c.object(exitDone, "prove", "1/1", "--period", "0")["reminded_at"], "2026-03-16T10:30:00.000Z")
	contains(t, c.must("prove", "1/1", "--period", "0"), "reminder  for 2026-03-13, written 2026-03-16T10:30:00.000Z")
}

func TestProve_ExpiredReceipt(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n2,b@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.must("receipt", "create", "2/1")
	c.must("run", "payments")
	for _, day := range []string{"2026-04-15", "2026-05-15", "2026-06-15", "2026-07-15", "2026-08-15", "2026-09-16"} {
		c.at(day)
		c.must("charging", "on") // the clock is right
		c.must("run", "payments")
	}
	o := c.proves("1/1", "0", "paid", "There was one charge: the receipt has expired after 6 months, and the processor shows one success, pi_")
	equal(t, "expired", members(o, "receipt_expired", "receipts"), []any{true, []any{}})
	equal(t, "what it was for", o["sku"], nil)
	contains(t, c.must("prove", "1/1", "--period", "0"), "Period 0 of 1/1, SKU not known: paid", "receipt   expired; receipts of this period are kept for 6 months", "listed")
	c.proves("2/1", "0", "paid", "There was no charge: the processor shows no success. The receipt, which has expired after 6 months, was for a manual")
}

// TestProve_Contradictions has a ledger that another program has written to.
func TestProve_Contradictions(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n2,b@example.com,1,news,12.99,USD,15,pm_card_visa\n"+
		"3,c@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n"))
	c.must("receipt", "create", "2/1")
	c.run("run", "payments")
	const file = "duesday-sandbox.jsonl"
	book := c.read(file)
	success := ""
	for line := range strings.Lines(book) {
		if strings.Contains(line, `"account":"1"`) && strings.Contains(line, `"outcome":"succeeded"`) {
			success = line
		}
	}
	ref := c.object(exitDone, "prove", "1/1", "--period", "0")["intents"].([]any)[0].(map[string]any)["intent"].(string)
	other := strings.ReplaceAll(success, ref, "pi_by_hand")
	c.file(file, book+other)
	o := c.proves("1/1", "0", "paid", "!There were 2 successful charges: "+ref+", pi_by_hand. Refund all but one, and run verify.")
	equal(t, "intents", len(o["intents"].([]any)), 2)
	c.file(file, book+strings.ReplaceAll(other, `"account":"1"`, `"account":"2"`))
	c.proves("2/1", "0", "paid", "!The period was paid twice: by charge pi_by_hand and by a manual payment.")
	c.file(file, book+strings.ReplaceAll(other, `"account":"1"`, `"account":"3"`))
	c.proves("3/1", "0", "failed", "!There was one charge, pi_by_hand, which is missing in the store. Run reconcile.")
	if err := os.Remove(c.path(file)); err != nil {
		t.Fatal(err)
	}
	c.proves("1/1", "0", "paid", "!The processor does not know "+ref)
	c.proves("3/1", "0", "failed", "!The processor does not know pi_")
}

// TestProve_ImportedPayment: a payment of the published model names no period.
func TestProve_ImportedPayment(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("model.json", `{"ModelName":"m","DataModel":[{"TableName":"t","TableData":[`+
		`{"PK":{"S":"ACC#1"},"SK":{"S":"SUB#1#SKU#news"},"Email":{"S":"a@example.com"},"PaymentDay":{"N":"15"},"NextPaymentDate":{"S":"2026-04-15"},`+
		`"PaymentAmount":{"N":"12"},"PaymentDetails":{"M":{"PaymentMethod":{"S":"pm_card_visa"}}}},`+
		`{"PK":{"S":"ACC#1"},"SK":{"S":"REC#2026-04-16T10:00:00.000Z#SKU#news"},"ProcessedDate":{"S":"2026-04-16T10:00:00.000Z"},`+
		`"ProcessedAmount":{"N":"12"},"SKU":{"S":"news"},"Email":{"S":"a@example.com"}}]}]}`))
	o := c.proves("1/1", "0", "waiting", "There was no charge: an imported payment covers that time; the processor shows no success")
	equal(t, "imported", len(o["imported"].([]any)), 1)
	c.must("subscription", "update", "1/1", "--sku", "gold", "--from", "2026-04-01")
	o = c.proves("1/1", "0", "waiting", "There was no charge: an imported payment covers that time; the processor shows no success")
	equal(t, "imported, of the plan before", len(o["imported"].([]any)), 1)
}

// TestProve_Stripe asks Stripe for the account's customer, and finds a charge that another program has
// made in the period's name.
func TestProve_Stripe(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("account", "create", "1", "--email", "a@example.com")
	c.subscribe("1/1")
	c.giveCard(c.cardLink("1"), "pm_card_visa")
	c.run("run", "payments")
	o := c.proves("1/1", "0", "paid", "There was one charge: pi_")
	intent := o["intents"].([]any)[0].(map[string]any)
	equal(t, "intent", members(intent, "in_the_store", "state", "amount"), []any{"settled", "succeeded", 1299})
	c.must("receipt", "refund", "1/1", "--period", "0", "--amount", "5.00")
	o = c.proves("1/1", "0", "paid", "There was one charge: pi_")
	equal(t, "refunds", len(o["intents"].([]any)[0].(map[string]any)["returns"].([]any)), 1)

	ref := intent["intent"].(string)
	was := c.ask("GET", "/v1/payment_intents/"+ref, "")
	form := url.Values{"amount": {"1299"}, "currency": {"usd"}, "customer": {was["customer"].(string)}, "confirm": {"true"},
		"payment_method": {was["payment_method"].(string)}, "return_url": {thanks}}
	for name, value := range was["metadata"].(map[string]any) {
		form.Set("metadata["+name+"]", value.(string))
	}
	other := c.ask("POST", "/v1/payment_intents", form.Encode())
	equal(t, "by hand", other["status"], "succeeded")
	r := c.run("prove", "1/1", "--period", "0")
	contains(t, r.out, "There were 2 successful charges: "+ref+", "+other["id"].(string)+".", "listed")
	equal(t, "exit", r.code, exitPerson)
}

// TestProve_PastPeriod: of a failed period that is charged again, the cancelled intent is shown beside the
// bound one.
func TestProve_PastPeriod(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n"+
		"2,b@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n"))
	c.run("run", "payments")
	c.must("subscription", "update", "1/1", "--payment-method", "pm_sandbox_processing")
	c.run("subscription", "charge", "1/1", "--period", "0")
	o := c.proves("1/1", "0", "open", "There was no charge yet: pi_")
	var seen []any
	for _, x := range o["intents"].([]any) {
		seen = append(seen, members(x.(map[string]any), "generation", "in_the_store", "state"))
	}
	equal(t, "intents", seen, []any{[]any{1, "bound", "processing"}, []any{0, "canceled", "canceled"}})
	c.must("subscription", "update", "2/1", "--payment-method", "pm_card_visa")
	c.must("subscription", "charge", "2/1", "--period", "0")
	c.proves("2/1", "0", "paid", "There was one charge: pi_")
}
