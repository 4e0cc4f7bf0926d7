package stripefake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// An exampleT takes the place of *testing.T, which an example does not have.
type exampleT struct{ cleanups []func() }

func (t *exampleT) Helper()                           {}
func (t *exampleT) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *exampleT) end() {
	for _, f := range t.cleanups {
		f()
	}
}

// An object is a JSON object that Stripe's API returns.
type object map[string]any

// post sends a form to the fake, as Stripe's libraries do. Your tests use such a library instead.
func post(fake *stripefake.Server, path, form string) object {
	r, err := http.NewRequest(http.MethodPost, fake.URL+path, strings.NewReader(form))
	if err != nil {
		return object{"error": err.Error()}
	}
	r.SetBasicAuth(fake.Key, "")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return object{"error": "the connection broke"}
	}
	defer res.Body.Close()
	var o object
	if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
		return object{"error": err.Error()}
	}
	return o
}

// Start a fake in a test, and point any Stripe library at its URL with its key. The package's
// README shows this with Stripe's library for Go.
func ExampleStart() {
	t := &exampleT{} // in a test: func TestShop(t *testing.T)
	defer t.end()

	fake := stripefake.Start(t)

	customer := post(fake, "/v1/customers", "email=ada@example.com")
	fmt.Println(customer["object"], customer["email"])
	// Output:
	// customer ada@example.com
}

// Make a customer pay with a test card, and read what moved in the ledger.
func ExampleFake_Ledger() {
	t := &exampleT{}
	defer t.end()
	fake := stripefake.Start(t)

	intent := post(fake, "/v1/payment_intents", "amount=1299&currency=eur&payment_method=pm_card_visa"+
		"&confirm=true&return_url=https://example.com/thanks")
	fmt.Println(intent["status"])

	for entry := range fake.Ledger() {
		fmt.Println(entry.Type, entry.Amount, entry.Currency, entry.Status)
	}
	// Output:
	// succeeded
	// charge 1299 eur succeeded
}

// Decline a card: Stripe's test payment methods decide the outcome.
func ExampleStart_declinedCard() {
	t := &exampleT{}
	defer t.end()
	fake := stripefake.Start(t)

	answer := post(fake, "/v1/payment_intents", "amount=1299&currency=eur&confirm=true"+
		"&payment_method=pm_card_visa_chargeDeclinedInsufficientFunds&return_url=https://example.com/thanks")
	declined := answer["error"].(map[string]any)
	fmt.Println(declined["code"], declined["decline_code"])
	// Output:
	// card_declined insufficient_funds
}

// Advance a test clock, so that its customer's subscription renews.
func ExampleStart_testClock() {
	t := &exampleT{}
	defer t.end()
	fake := stripefake.Start(t)

	at := func(day string) int64 {
		when, _ := time.Parse(time.DateOnly, day)
		return when.Unix()
	}
	clock := post(fake, "/v1/test_helpers/test_clocks", fmt.Sprint("frozen_time=", at("2026-01-31")))
	customer := post(fake, "/v1/customers", fmt.Sprint("payment_method=pm_card_visa&test_clock=", clock["id"],
		"&invoice_settings[default_payment_method]=pm_card_visa"))
	price := post(fake, "/v1/prices", "currency=eur&unit_amount=500&recurring[interval]=month&product_data[name]=Gold")
	post(fake, "/v1/subscriptions", fmt.Sprint("customer=", customer["id"], "&items[0][price]=", price["id"]))

	post(fake, fmt.Sprint("/v1/test_helpers/test_clocks/", clock["id"], "/advance"),
		fmt.Sprint("frozen_time=", at("2026-03-15")))

	for entry := range fake.Ledger() {
		fmt.Println(entry.At.Format(time.DateOnly), entry.Amount, entry.Currency)
	}
	// Output:
	// 2026-01-31 500 eur
	// 2026-02-28 500 eur
}

// Receive webhooks. Check their signature with fake.WebhookSecret as in production.
func ExampleServer_SendWebhooks() {
	t := &exampleT{}
	defer t.end()
	fake := stripefake.Start(t)

	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct{ Type string }
		body, _ := io.ReadAll(r.Body)
		err := json.Unmarshal(body, &event)
		fmt.Println(event.Type, r.Header.Get("Stripe-Signature") != "", err)
	}))
	defer receiver.Close()
	if err := fake.SendWebhooks(receiver.URL); err != nil {
		fmt.Println(err)
	}

	post(fake, "/v1/customers", "email=ada@example.com")
	waiting, err := fake.Flush(context.Background()) // returns when the fake has tried every webhook
	fmt.Println(waiting, err)
	// Output:
	// customer.created true <nil>
	// 0 <nil>
}

// Move the fake's own clock, which all customers without a test clock follow.
func ExampleFake_Advance() {
	t := &exampleT{}
	defer t.end()
	start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	fake := stripefake.StartWith(t, stripefake.Options{Now: func() time.Time { return start }})

	fake.Advance(31 * 24 * time.Hour)
	fmt.Println(fake.Now().Format(time.DateOnly))
	// Output:
	// 2026-03-03
}

// Lose the answer of a request that Stripe carries out: the client sees an error, and the money moves.
func ExampleFake_SetFaults() {
	t := &exampleT{}
	defer t.end()
	fake := stripefake.Start(t)

	if err := fake.SetFaults(stripefake.Faults{LostReplies: 1}); err != nil {
		fmt.Println(err)
	}
	answer := post(fake, "/v1/payment_intents", "amount=1299&currency=eur&payment_method=pm_card_visa"+
		"&confirm=true&return_url=https://example.com/thanks")
	fmt.Println(answer["error"])
	for entry := range fake.Ledger() {
		fmt.Println(entry.Type, entry.Amount, entry.Currency, entry.Status)
	}
	// Output:
	// the connection broke
	// charge 1299 eur succeeded
}

// Make the next request to an endpoint fail, to test how your code handles the error.
func ExampleFake_FailNext() {
	t := &exampleT{}
	defer t.end()
	fake := stripefake.Start(t)

	if err := fake.FailNext("POST /v1/customers", http.StatusTooManyRequests, "", 1); err != nil {
		fmt.Println(err)
	}
	for range 2 {
		answer := post(fake, "/v1/customers", "email=ada@example.com")
		failed, _ := answer["error"].(map[string]any)
		fmt.Println(answer["object"], failed["code"])
	}
	// Output:
	// <nil> rate_limit
	// customer <nil>
}

// Assert on the requests that your code sent.
func ExampleFake_Requests() {
	t := &exampleT{}
	defer t.end()
	fake := stripefake.Start(t)

	post(fake, "/v1/customers", url.Values{"metadata[order]": {"1001"}}.Encode())
	for _, r := range fake.Requests() {
		fmt.Println(r.Method, r.Path, r.Form.Get("metadata[order]"), r.Status)
	}
	// Output:
	// POST /v1/customers 1001 200
}
