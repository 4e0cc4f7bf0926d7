// Command client signs a customer up and pays one period, with the client that oapi-codegen generates into
// the folder duesday.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/google/uuid"

	"duesday.example/client/duesday"
)

func main() {
	day, err := strconv.Atoi(os.Args[3])
	if err == nil {
		err = run(context.Background(), os.Args[1], os.Args[2], day)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, key string, day int) error {
	api, err := duesday.NewClientWithResponses(url, duesday.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		return err
	}
	account, subscription := "go", "gym"
	_, err = must(api.CreateAccountWithResponse(ctx, &duesday.CreateAccountParams{IdempotencyKey: uuid.NewString()},
		duesday.NewAccount{Id: account, Email: "go@example.com"}))
	if err != nil {
		return err
	}
	method := "pm_card_visa"
	_, err = must(api.AttachPaymentMethodWithResponse(ctx, account, &duesday.AttachPaymentMethodParams{IdempotencyKey: uuid.NewString()},
		duesday.PaymentMethod{PaymentMethod: &method}))
	if err != nil {
		return err
	}
	made, err := must(api.CreateSubscriptionWithResponse(ctx, account, &duesday.CreateSubscriptionParams{IdempotencyKey: uuid.NewString()},
		duesday.NewSubscription{Id: subscription, Sku: "GYM", Amount: 1299, Currency: "EUR", PaymentDay: &day}))
	if err != nil {
		return err
	}
	charged, err := must(api.ChargePeriodWithResponse(ctx, account, subscription, made.JSON201.Period,
		&duesday.ChargePeriodParams{IdempotencyKey: uuid.NewString()}, duesday.ChargeRequest{}))
	if err != nil {
		return err
	}
	receipts, err := must(api.GetReceiptsByAccountWithResponse(ctx, &duesday.GetReceiptsByAccountParams{Account: &account}))
	if err != nil {
		return err
	}
	var paid [][]any
	for _, r := range receipts.JSON200.Data {
		paid = append(paid, []any{r.Amount, r.Currency})
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"outcome": charged.JSON200.Results[0].Outcome, "receipts": paid})
}

type answer interface {
	StatusCode() int
	GetBody() []byte
}

// must returns the answer, or its problem as an error.
func must[T answer](r T, err error) (T, error) {
	if err == nil && r.StatusCode() >= http.StatusMultipleChoices {
		err = fmt.Errorf("%d: %s", r.StatusCode(), r.GetBody())
	}
	return r, err
}
