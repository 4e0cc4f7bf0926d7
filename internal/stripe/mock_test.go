package stripe

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/test/stripetest"
)

// Every request that Duesday sends is one of Stripe's: by the specification, which the
// handler holds each against, and by stripe-mock, which keeps nothing and answers with
// fixtures: so an answer that does not fit the question is no failure here.
func TestEveryRequestIsStripes(t *testing.T) {
	t.Parallel()
	mock, err := url.Parse(stripetest.Mock(t))
	if err != nil {
		t.Fatal(err)
	}
	var sent sync.Map
	proxy := httputil.NewSingleHostReverseProxy(mock)
	proxy.ModifyResponse = func(resp *http.Response) error {
		sent.Store(api.Endpoint(resp.Request.Method, resp.Request.URL.Path), nil)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s: status %d", resp.Request.Method, resp.Request.URL.Path, resp.StatusCode)
		}
		return nil
	}
	server := httptest.NewServer(stripetest.Load(t).WatchRequests(t, proxy))
	defer server.Close()
	p, err := New(Options{API: api.Options{Key: secret.New("sk_test_123"), Base: server.URL, Rate: api.MaxRate},
		ReturnURL: "https://example.com/back"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	for _, at := range []string{"", "acct_1"} {
		payer := processor.Payer{At: at, Customer: "cus_1", Fee: 100}
		own := ref{at, "pi_1"}.String()
		tag := testTag
		_, err = p.Open(ctx, processor.OpenRequest{Key: "dd_1", Tag: tag, Amount: apitest.USD(t, 1099), Method: "pm_1",
			Payer: payer})
		note(err)
		_, err = p.Confirm(ctx, processor.ConfirmRequest{Key: "dd_2", Ref: own, Method: "pm_1"})
		note(err)
		_, err = p.authenticate(ctx, ref{at, "pi_1"}, processor.ConfirmRequest{Key: "dd_3", Ref: own, Method: "pm_1"},
			&api.Error{Verdict: api.Action})
		note(err)
		_, err = p.leaveNote(ctx, ref{at, "pi_1"}, newNote("dd_4", noteHard, "resource_missing"), new(sdk.PaymentIntent))
		note(err)
		_, err = p.Lookup(ctx, own)
		note(err)
		_, err = p.Cancel(ctx, own)
		note(err)
		r := processor.ListRequest{At: at, Customer: "cus_1", Since: time.Unix(1_700_000_000, 0),
			Until: time.Unix(1_800_000_000, 0)}
		for _, err := range p.List(ctx, r) {
			note(err)
		}
		_, err = p.MakeCustomer(ctx, processor.CustomerRequest{Key: "dd_5", At: at, Installation: "i", Account: "a",
			Email: "a@example.com"})
		note(err)
		_, err = p.Attach(ctx, payer, "pm_1")
		note(err)
		_, err = p.Attach(ctx, payer, "")
		note(err)
		_, err = p.newest(ctx, payer)
		note(err)
		_, err = p.Card(ctx, at, "pm_1")
		note(err)
		_, err = p.CardLink(ctx, processor.LinkRequest{Key: "dd_6", Payer: payer, Installation: "i", Account: "a",
			Subscription: "s", Currency: "EUR"})
		note(err)
		for _, err := range p.Setups(ctx, r) {
			note(err)
		}
		_, err = p.Refund(ctx, processor.RefundRequest{Key: "dd_7", ID: "r1", Ref: own, Amount: apitest.USD(t, 100),
			Reason: processor.RequestedByCustomer, Tag: tag})
		note(err)
		_, err = p.ReversalsOf(ctx, own)
		note(err)
		for _, err := range p.Reversals(ctx, r) {
			note(err)
		}
		for _, err := range p.Payouts(ctx, processor.ListRequest{At: at, Since: r.Since}) {
			note(err)
		}
		for _, err := range p.Settled(ctx, at, "po_1") {
			note(err)
		}
	}
	_, err = p.Identity(ctx)
	note(err)
	note(p.CheckConnected(ctx, "acct_1"))
	for _, err := range p.Connected(ctx) {
		note(err)
	}
	for _, err := range errs {
		if errors.Is(err, processor.ErrRefused) || errors.Is(err, processor.ErrAccountRefused) ||
			errors.Is(err, processor.ErrNotExecuted) || errors.Is(err, processor.ErrNoIntent) {
			t.Errorf("stripe-mock did not take it: %v", err)
		}
	}
	for _, want := range []string{"POST /v1/payment_intents", "POST /v1/payment_intents/{id}",
		"POST /v1/payment_intents/{id}/confirm", "POST /v1/payment_intents/{id}/cancel",
		"GET /v1/payment_intents", "GET /v1/payment_intents/{id}", "POST /v1/customers", "GET /v1/customers/{id}",
		"GET /v1/payment_methods", "GET /v1/payment_methods/{id}",
		"POST /v1/payment_methods/{id}/attach", "POST /v1/checkout/sessions", "GET /v1/setup_intents", "POST /v1/refunds",
		"GET /v1/refunds", "GET /v1/disputes", "GET /v1/payouts", "GET /v1/balance_transactions", "GET /v1/account", "GET /v1/accounts"} {
		if _, was := sent.LoadAndDelete(want); !was {
			t.Errorf("%s was never sent", want)
		}
	}
	for what := range sent.Range {
		t.Errorf("%s was sent, and is not in the list", what)
	}
}
