package httpapi_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

var update = flag.Bool("update", false, "write the golden file anew")

// emptyWorld answers with nouns that have no field set.
func emptyWorld() *world {
	w := newWorld()
	w.created, w.timeline = &tracking.Created{Purchase: &tracking.Purchase{}}, &tracking.Timeline{}
	w.purchases, w.payments = []*tracking.Purchase{{}}, []*tracking.Payment{{}}
	w.rows, w.events, w.jobs = []tracking.EventRow{{}}, []*tracking.Event{{}}, []tracking.WaitingJob{{}}
	w.accounts, w.rebuilt = []*tracking.ConnectedAccount{{}}, &tracking.Rebuilt{}
	return w
}

// A recorder notes the bodies of requests and answers.
type recorder struct{ bytes.Buffer }

// RoundTrip implements http.RoundTripper.
func (n *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	fmt.Fprintf(n, "\n%s %s\n", r.Method, r.URL.RequestURI())
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		fmt.Fprintf(n, "%s\n", body)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(text))
	fmt.Fprintf(n, "-> %d\n%s", response.StatusCode, text)
	return response, err
}

// TestViews_AreTheSameBytes: every body of a request and an answer, of nouns with all fields and
// with none, is as it was, and the values that both sides read of them are.
func TestViews_AreTheSameBytes(t *testing.T) {
	var got recorder
	for _, full := range []bool{true, false} {
		w, order, state, object := emptyWorld(), tracking.Order{Key: "k"}, tracking.PollState{}, tracking.Object{}
		if full {
			w = filledWorld()
			w.rebuilt = new(tracking.Rebuilt)
			for _, v := range []any{w.rebuilt, &order, &state, &object} {
				fill(v, kept...)
			}
			order.Key = "k"
		}
		server := w.serve(t)
		c, err := httpapi.NewClient(server.URL, secret.New(apiKey), &http.Client{Transport: &got})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		read := func(v any, err error) { fmt.Fprintf(&got, "= %s, %v\n", shownValue(v), err) }
		read(c.CreatePurchase(ctx, order))
		read(w.order, nil)
		read(collect(c.Purchases(ctx, account)))
		read(c.Timeline(ctx, "p1"))
		read(collect(c.Payments(ctx, account)))
		read(c.Payment(ctx, "acct_1", "pi_1"))
		read(collect(c.Events(ctx, tracking.EventQuery{})))
		read(collect(c.Waiting(ctx)))
		read(c.Event(ctx, "evt_1"))
		read(c.Rebuild(ctx, "acct_1"))
		read(c.Replay(ctx, "evt_1"))
		read(collect(c.ConnectedAccounts(ctx)))
		read(c.Register(ctx, account, "acct_1"))
		read(nil, c.SavePoll(ctx, "acct_1", state))
		read(w.poll, nil)
		read(c.Apply(ctx, "", object))
		read(w.object, nil)
		read(collect(c.Jobs(ctx)))
		for _, path := range []string{"/v1/purchases?account=", "/v1/payments?account="} { // not as lines
			r := authorized(t, http.MethodGet, server.URL+path+account, "")
			response, err := (&http.Client{Transport: &got}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
		}
	}
	const path = "testdata/views.golden"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("line %d of %d: got\n%s", i+1, len(lines), line)
		}
	}
	if got.Len() != len(want) {
		t.Errorf("got %d bytes, want %d", got.Len(), len(want))
	}
}
