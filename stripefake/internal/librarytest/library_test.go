// Package librarytest points Stripe's own library at the fake. Its tests are apart from the fake's,
// so that a module that imports stripefake does not get that library in its go.sum.
package librarytest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/stripefake"
)

// clientOf returns Stripe's own library, pointed at the fake.
func clientOf(fake *stripefake.Server) *stripe.Client {
	config := &stripe.BackendConfig{URL: new(fake.URL), LeveledLogger: &stripe.LeveledLogger{},
		MaxNetworkRetries: new(int64(0))}
	return stripe.NewClient(fake.Key, stripe.WithBackends(stripe.NewBackendsWithConfig(config)))
}

// TestLibrary_thin: Stripe's own library reads thin events, their pages and their errors.
func TestLibrary_thin(t *testing.T) {
	fake := stripefake.StartWith(t, stripefake.Options{Events: stripefake.BothEvents})
	type delivery struct{ body, signature string }
	got := make(chan delivery, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- delivery{string(body), r.Header.Get("Stripe-Signature")}
	}))
	t.Cleanup(receiver.Close)
	if err := fake.SendWebhooks(receiver.URL); err != nil {
		t.Fatal(err)
	}
	client := clientOf(fake)
	for range 5 {
		if _, err := client.V1Customers.Create(t.Context(), &stripe.CustomerCreateParams{}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	created := stripe.RangeQueryParams{GreaterThan: 1}
	for e, err := range client.V2CoreEvents.List(t.Context(), &stripe.V2CoreEventListParams{Limit: new(int64(2)),
		Types: []*string{new("v1.customer.created")}, Created: &created}).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		base := e.(*stripe.V2CoreRawEvent)
		if base.Reason == nil || base.Reason.Request.ID == "" || base.Created.IsZero() {
			t.Errorf("got %+v, want its reason and time", base)
		}
		ids = append(ids, base.ID)
	}
	if len(ids) != 5 {
		t.Errorf("listed %v, want 5 events", ids)
	}
	_, err := client.V2CoreEvents.Retrieve(t.Context(), "evt_test_none", nil)
	if raw, ok := err.(*stripe.V2RawError); !ok || raw.Code != "not_found" || raw.HTTPStatusCode != http.StatusNotFound {
		t.Errorf("got %v, want a v2 error with the code not_found", err)
	}
	for thin := false; !thin; {
		d := <-got
		told, err := client.ParseEventNotification([]byte(d.body), d.signature, fake.WebhookSecret)
		if err != nil { // a snapshot
			continue
		}
		thin = true
		of := told.(*stripe.UnknownEventNotification)
		object, err := of.FetchRelatedObject(t.Context())
		if err != nil || of.RelatedObject.Type != "customer" || object.LastResponse.StatusCode != http.StatusOK {
			t.Errorf("got %+v, %v, want the customer", of.RelatedObject, err)
		}
	}
}
