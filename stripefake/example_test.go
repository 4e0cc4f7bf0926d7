package stripefake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/stripefake"
)

// clientOf returns Stripe's own library, pointed at the fake.
func clientOf(fake *stripefake.Server) *stripe.Client {
	config := &stripe.BackendConfig{URL: new(fake.URL), LeveledLogger: &stripe.LeveledLogger{},
		MaxNetworkRetries: new(int64(0))}
	return stripe.NewClient(fake.Key, stripe.WithBackends(stripe.NewBackendsWithConfig(config)))
}

// An exampleT stands for the *testing.T of a test: an example has none.
type exampleT struct{ cleanups []func() }

func (t *exampleT) Helper()                           {}
func (t *exampleT) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *exampleT) end() {
	for _, f := range t.cleanups {
		f()
	}
}

// pay charges the card once and returns the payment intent's state.
func pay(client *stripe.Client, card string, amount int64) (string, error) {
	intent, err := client.V1PaymentIntents.Create(context.Background(), &stripe.PaymentIntentCreateParams{
		Amount: new(amount), Currency: new("eur"), PaymentMethod: new(card), Confirm: new(true),
		ReturnURL: new("https://example.com/thanks"),
	})
	if err != nil {
		return "", err
	}
	return string(intent.Status), nil
}

func ExampleStart() {
	t := &exampleT{} // in a test: func TestPay(t *testing.T)
	defer t.end()

	fake := stripefake.Start(t)
	client := clientOf(fake)

	fmt.Println(pay(client, "pm_card_visa", 1299))

	_, err := pay(client, "pm_card_visa_chargeDeclinedInsufficientFunds", 1299)
	if declined, ok := errors.AsType[*stripe.Error](err); ok {
		fmt.Println(declined.Code, declined.DeclineCode)
	}
	// Output:
	// succeeded <nil>
	// card_declined insufficient_funds
}

func ExampleServer_SendWebhooks() {
	t := &exampleT{}
	defer t.end()

	fake := stripefake.Start(t)
	client := clientOf(fake)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		event, err := client.ConstructEvent(body, r.Header.Get("Stripe-Signature"), fake.WebhookSecret)
		fmt.Println(event.Type, err)
	}))
	defer receiver.Close()
	if err := fake.SendWebhooks(receiver.URL); err != nil {
		fmt.Println(err)
	}

	if _, err := client.V1Customers.Create(context.Background(),
		&stripe.CustomerCreateParams{Email: new("ada@example.com")}); err != nil {
		fmt.Println(err)
	}
	waiting, err := fake.Flush(context.Background()) // returns when every webhook has been tried
	fmt.Println(waiting, err)
	// Output:
	// customer.created <nil>
	// 0 <nil>
}

func ExampleFake_SetFaults() {
	t := &exampleT{}
	defer t.end()

	fake := stripefake.Start(t)
	client := clientOf(fake)

	// Stripe carries the request out, and its answer is lost.
	if err := fake.SetFaults(stripefake.Faults{LostReplies: 1}); err != nil {
		fmt.Println(err)
	}
	_, err := pay(client, "pm_card_visa", 1299)
	fmt.Println("failed:", err != nil)

	// The ledger shows that the money has moved.
	for entry := range fake.Ledger() {
		fmt.Println(entry.Type, entry.Amount, entry.Currency, entry.Status)
	}
	// Output:
	// failed: true
	// charge 1299 eur succeeded
}

func ExampleFake_Advance() {
	t := &exampleT{}
	defer t.end()

	ctx, start := context.Background(), time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	fake := stripefake.StartWith(t, stripefake.Options{Now: func() time.Time { return start }})
	client := clientOf(fake)

	customer, err := client.V1Customers.Create(ctx, &stripe.CustomerCreateParams{PaymentMethod: new("pm_card_visa"),
		InvoiceSettings: &stripe.CustomerCreateInvoiceSettingsParams{DefaultPaymentMethod: new("pm_card_visa")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	price, err := client.V1Prices.Create(ctx, &stripe.PriceCreateParams{Currency: new("eur"), UnitAmount: new(int64(500)),
		Recurring:   &stripe.PriceCreateRecurringParams{Interval: new("month")},
		ProductData: &stripe.PriceCreateProductDataParams{Name: new("Gold")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.V1Subscriptions.Create(ctx, &stripe.SubscriptionCreateParams{Customer: &customer.ID,
		Items: []*stripe.SubscriptionCreateItemParams{{Price: &price.ID}}}); err != nil {
		fmt.Println(err)
		return
	}
	fake.Advance(60 * 24 * time.Hour) // two renewals, each at its own time
	for entry := range fake.Ledger() {
		fmt.Println(entry.At.Format(time.DateOnly), entry.Amount, entry.Currency)
	}
	// Output:
	// 2026-01-31 500 eur
	// 2026-02-28 500 eur
	// 2026-03-31 500 eur
}
