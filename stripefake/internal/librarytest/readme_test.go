package librarytest

import (
	"os"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/stripefake"
)

func TestPay(t *testing.T) {
	fake := stripefake.Start(t) // stops when the test ends
	client := stripe.NewClient(fake.Key, stripe.WithBackends(
		stripe.NewBackendsWithConfig(&stripe.BackendConfig{URL: &fake.URL})))

	// Your code runs here with the client. This is one payment:
	_, err := client.V1PaymentIntents.Create(t.Context(), &stripe.PaymentIntentCreateParams{
		Amount: new(int64(1299)), Currency: new("usd"), PaymentMethod: new("pm_card_visa"),
		Confirm: new(true), ReturnURL: new("https://example.com"),
	})
	if err != nil {
		t.Fatal(err)
	}

	for entry := range fake.Ledger() {
		t.Log(entry.Type, entry.Amount, entry.Currency, entry.Status)
	}
}

// TestReadme: the README shows TestPay as it is here.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(source), "func TestPay")
	body, _, _ := strings.Cut(from, "\n}\n")
	if !strings.Contains(string(readme), "func TestPay"+body+"\n}\n") {
		t.Error("README.md does not show TestPay as it is in this file")
	}
}
