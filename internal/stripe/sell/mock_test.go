package sell

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// Every request of a Tracker is one of Stripe's: as TestEveryRequestIsStripes has it of the
// others. Where the answers of stripe-mock, which has no memory, lead no further, the step is
// asked for by itself.
func TestEveryRequestOfTrackingIsStripes(t *testing.T) {
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
	c, err := api.New(api.Options{Key: secret.New("sk_test_123"), Base: server.URL, Rate: api.MaxRate})
	if err != nil {
		t.Fatal(err)
	}
	ctx, tracker := t.Context(), New(c)
	var errs []error
	note := func(_ any, err error) { errs = append(errs, err) }
	for _, at := range []string{"", "acct_1"} {
		note(tracker.Object(ctx, at, tracking.KindPayment, "pi_1"))
		note(tracker.invoiceOf(ctx, at, "pi_1"))
		note(tracker.Object(ctx, at, tracking.KindSubscription, "sub_1"))
		note(tracker.Object(ctx, at, tracking.KindSchedule, "sub_sched_1"))
		note(tracker.Object(ctx, at, tracking.KindInvoice, "in_1"))
		note(tracker.Object(ctx, at, tracking.KindCharge, "ch_1"))
		note(tracker.Object(ctx, at, tracking.KindRefund, "re_1"))
		note(tracker.Object(ctx, at, tracking.KindDispute, "dp_1"))
		note(nil, tracker.Connected(ctx, at))
		note(tracker.ListEvents(ctx, at, apitest.Now, func(poller.RawEvent) error { return nil }))
		note(nil, tracker.ListObjects(ctx, at, apitest.Now, func(tracking.Object) error { return nil }))
		note(tracker.links(ctx, at, apitest.Now, apitest.Now.Add(time.Hour)))
		note(nil, tracker.ListFollowed(ctx, at, apitest.Now, apitest.Now, apitest.Now.Add(time.Hour), func(tracking.Object, string) error { return nil }))
		for _, kind := range allKinds {
			for _, customer := range []string{"", "cus_1"} {
				for _, email := range []string{"", "a@example.com"} {
					o := tracking.Order{Kind: kind, At: at, Tag: tracking.Tag{Installation: "i", Purchase: testPurchase, Kind: kind},
						Customer: customer, Email: email, Name: "A",
						Description: "D", PaymentMethod: "pm_1", Price: "price_1", Payments: 3}
					if kind == tracking.Legacy || kind == tracking.Product {
						o.Price, o.Amount, o.Currency = "", 1299, "EUR"
					}
					note(tracker.Sell(ctx, o, false))
					note(tracker.Sell(ctx, o, true))
					note(tracker.Find(ctx, o))
					s, err := tracker.order(o)
					if err != nil {
						t.Fatal(err)
					}
					b := bill{Object: tracking.Object{ID: "in_1", Customer: "cus_1", Status: "draft"}, method: "pm_1"}
					who := payer{"cus_1", "pm_1"}
					note(s.customer(ctx))
					note(s.post(ctx, "attach", "/v1/payment_methods/pm_1/attach", url.Values{"customer": {who.customer}}))
					note(s.post(ctx, "invoice", "/v1/invoices", s.invoiceForm(who)))
					note(s.finalize(ctx, b))
					note(s.pay(ctx, b))
					note(s.close(ctx, b))
					note(nil, s.discard(ctx, b, nil))
					note(s.lookUp(ctx, "in_1"))
					s.o.Price, s.o.Payments = "price_1", 3
					note(s.post(ctx, "subscription", "/v1/subscriptions", s.subscriptionForm(who)))
					note(s.post(ctx, "schedule", "/v1/subscription_schedules", s.scheduleForm(who, term{"month", 2})))
					note(s.split(ctx))
				}
			}
		}
	}
	for _, err := range errs {
		if errors.Is(err, processor.ErrRefused) || errors.Is(err, processor.ErrNotExecuted) ||
			errors.Is(err, tracking.ErrDisconnected) {
			t.Errorf("stripe-mock did not take it: %v", err)
		}
	}
	for _, want := range []string{"GET /v1/payment_intents/{id}", "GET /v1/invoice_payments", "GET /v1/subscriptions/{id}",
		"GET /v1/subscription_schedules/{id}", "GET /v1/account",
		"GET /v1/charges/{id}", "GET /v1/refunds/{id}", "GET /v1/disputes/{id}", "GET /v1/disputes", "GET /v1/refunds",
		"GET /v1/events", "GET /v1/subscriptions", "GET /v1/subscription_schedules", "GET /v1/payment_intents",
		"GET /v1/customers", "GET /v1/invoices", "GET /v1/invoices/{id}",
		"GET /v1/payment_methods/{id}", "GET /v1/prices/{id}", "POST /v1/payment_intents", "POST /v1/customers",
		"POST /v1/payment_methods/{id}/attach", "POST /v1/invoices",
		"POST /v1/invoiceitems", "POST /v1/invoices/{id}/pay", "POST /v1/invoices/{id}/void",
		"POST /v1/invoices/{id}/finalize", "DELETE /v1/invoices/{id}", "POST /v1/subscriptions",
		"POST /v1/subscription_schedules"} {
		if _, was := sent.LoadAndDelete(want); !was {
			t.Errorf("%s was never sent", want)
		}
	}
	for what := range sent.Range {
		t.Errorf("%s was sent, and is not in the list", what)
	}
}
