package poller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
	"github.com/duesday/duesday/stripefake"
)

// The previous poller polled 860 connected accounts one after the other. It took 323.8 s for two
// hours with 19 events.
const (
	fleetAccounts = 860
	fleetLatency  = 380 * time.Millisecond
	fleetRate     = 25 // requests a second to one endpoint, over all accounts
	fleetBusy     = 19 // accounts in which something happened in the last minutes
	fleetLimit    = 40 * time.Second
)

// A fleet is a Stripe with many connected accounts, and a store with some of their events.
type fleet struct {
	fake    *stripefake.Fake
	handler http.Handler

	mu       sync.Mutex
	accounts []*tracking.ConnectedAccount // guarded by mu
	stored   map[string]poller.RawEvent   // by account and id; guarded by mu
	missing  map[string]bool              // by id; guarded by mu
	wrong    int                          // events that were sent and are stored; guarded by mu
	answered map[int]int                  // requests by status; guarded by mu
	last     []time.Time                  // requests that were let in in the last second; guarded by mu
}

// newFleet creates the accounts, each with events from hours ago and some with current events. One
// event of every tenth account never arrived.
func newFleet(tb testing.TB) *fleet {
	tb.Helper()
	f := &fleet{stored: map[string]poller.RawEvent{}, missing: map[string]bool{}, answered: map[int]int{}}
	f.handler = http.HandlerFunc(f.limit)
	var ids []string
	for i := range fleetAccounts {
		ids = append(ids, fmt.Sprintf("acct_%03d", i))
		f.accounts = append(f.accounts, &tracking.ConnectedAccount{StripeAccount: ids[i], Status: tracking.Connected})
	}
	f.fake = stripefake.New(stripefake.Options{Connected: ids})
	now := f.fake.Now()
	for _, ago := range []time.Duration{26 * time.Hour, 9 * time.Hour, 3 * time.Hour, time.Minute} {
		f.fake.SetNow(now.Add(-ago))
		for i, a := range f.accounts {
			if ago > time.Minute || i < fleetBusy {
				f.happen(tb, a.StripeAccount, i%10 == 0 && ago == 9*time.Hour)
			}
		}
	}
	f.fake.SetNow(now)
	if err := f.fake.SetFaults(stripefake.Faults{Latency: fleetLatency, Rate: fleetRate}); err != nil {
		tb.Fatal(err)
	}
	return f
}

// happen creates an event of the account and stores it unless it is lost.
func (f *fleet) happen(tb testing.TB, account string, lost bool) {
	tb.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/customers", nil)
	r.Header.Set("Authorization", "Bearer sk_test_duesday")
	r.Header.Set("Stripe-Account", account)
	w := httptest.NewRecorder()
	f.fake.ServeHTTP(w, r)
	events := f.fake.Events(account, false, "")
	if w.Code != http.StatusOK || len(events) == 0 {
		tb.Fatalf("a customer of %s: status %d %s", account, w.Code, w.Body)
	}
	e := events[len(events)-1]
	if lost {
		f.missing[e.ID] = true
	} else {
		f.stored[account+"/"+e.ID] = poller.RawEvent{ID: e.ID, Created: e.Created}
	}
}

// limit applies Stripe's limit for one endpoint over all accounts, before the fake applies its own
// limit for each account.
func (f *fleet) limit(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	f.mu.Lock()
	f.last = slices.DeleteFunc(f.last, func(t time.Time) bool { return now.Sub(t) >= time.Second })
	full := len(f.last) >= fleetRate
	if !full {
		f.last = append(f.last, now)
	}
	f.mu.Unlock()
	status := &statusWriter{w, http.StatusOK}
	if full {
		status.Header().Set("Content-Type", "application/json")
		status.WriteHeader(http.StatusTooManyRequests)
		_, _ = status.Write([]byte(`{"error":{"type":"invalid_request_error","code":"rate_limit","message":"Request rate limit exceeded."}}`)) // else the client has gone
	} else {
		f.fake.ServeHTTP(status, r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered[status.status]++
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (f *fleet) ConnectedAccounts(context.Context) iter.Seq2[*tracking.ConnectedAccount, error] {
	return func(yield func(*tracking.ConnectedAccount, error) bool) {
		f.mu.Lock()
		list := slices.Clone(f.accounts)
		f.mu.Unlock()
		for _, a := range list {
			if !yield(new(*a), nil) {
				return
			}
		}
	}
}

func (f *fleet) Events(_ context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error] {
	return func(yield func(tracking.EventRow, error) bool) {
		f.mu.Lock()
		var list []tracking.EventRow
		for key, e := range f.stored {
			if strings.HasPrefix(key, q.StripeAccount) && !e.Created.Before(q.From) && e.Created.Before(q.To) {
				list = append(list, tracking.EventRow{ID: e.ID, At: e.Created})
			}
		}
		f.mu.Unlock()
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (f *fleet) SavePoll(_ context.Context, account string, p tracking.PollState) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, a := range f.accounts {
		if a.StripeAccount == account {
			changed := *a
			changed.Polled = p
			f.accounts[i] = &changed
			return nil
		}
	}
	return tracking.ErrUnregistered
}

func (f *fleet) Apply(context.Context, string, tracking.Object) (bool, error) {
	return false, errors.New("nobody sweeps here")
}

func (f *fleet) Ingest(_ context.Context, body []byte, from tracking.Origin) (v tracking.Verdict, err error) {
	var e struct {
		ID      string
		Account string
		Created int64
	}
	if err := json.Unmarshal(body, &e); err != nil || !from.Connect {
		return v, fmt.Errorf("sent %q to the endpoint of our own account: %w", body, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.missing[e.ID] {
		f.wrong++
	}
	delete(f.missing, e.ID)
	f.stored[e.Account+"/"+e.ID] = poller.RawEvent{ID: e.ID, Created: time.Unix(e.Created, 0)}
	return v, nil
}

// A fleetResult is the cost of two rounds.
type fleetResult struct {
	full, quiet             time.Duration
	requests, quietRequests int // that were sent
	refused                 int // with 429
}

// poll runs a round over all accounts, and another one ten minutes later without new events.
func (f *fleet) poll(tb testing.TB, o api.Options) (r fleetResult) {
	tb.Helper()
	o.Key, o.Rate, o.Now = secret.New("sk_test_duesday"), fleetRate, f.fake.Now
	client, err := api.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	defer client.Close()
	p := poller.New(poller.Options{Ledger: f, Lister: sell.New(client), Now: f.fake.Now})
	round := func(least, most, missing int) (time.Duration, int) {
		tb.Helper()
		before, start := f.requests(), time.Now()
		report, err := p.Round(tb.Context(), false)
		took := time.Since(start)
		if err != nil || report.Failed != 0 || report.Accounts < least || report.Accounts > most ||
			report.Missing != missing || report.Sent != missing {
			tb.Errorf("got %+v, %v; want %d to %d accounts and %d missing", report, err, least, most, missing)
		}
		return took, f.requests() - before
	}
	r.full, r.requests = round(fleetAccounts, fleetAccounts, fleetAccounts/10)
	f.fake.Advance(10 * time.Minute)
	r.quiet, r.quietRequests = round(fleetBusy, fleetAccounts/10, 0) // those that wait for the shortest time, too
	if r.refused = f.answered[http.StatusTooManyRequests]; len(f.missing) != 0 || f.wrong != 0 {
		tb.Errorf("%d events are missing still, and %d were sent that are stored", len(f.missing), f.wrong)
	}
	if r.full >= fleetLimit {
		tb.Errorf("the full round took %v, want less than %v", r.full, fleetLimit)
	}
	return r
}

func (f *fleet) requests() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, requests := range f.answered {
		n += requests
	}
	return n
}

// inProcess passes requests to a handler without a network, so that tests can use simulated time.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// TestPoll860 runs the round of BenchmarkPoll860 in simulated time.
func TestPoll860(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		r := f.poll(t, api.Options{Base: "http://localhost", Transport: inProcess{f.handler}})
		if r.requests != fleetAccounts || r.refused != 0 || r.quiet > r.full/8 {
			t.Errorf("got %+v", r)
		}
		if err := f.fake.Close(); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkPoll860 runs a round in real time. Use -benchtime 1x.
func BenchmarkPoll860(b *testing.B) {
	for b.Loop() {
		f := newFleet(b)
		server := httptest.NewServer(f.handler)
		r := f.poll(b, api.Options{Base: server.URL})
		server.Close()
		if err := f.fake.Close(); err != nil {
			b.Error(err)
		}
		b.ReportMetric(r.full.Seconds(), "s/full-round")
		b.ReportMetric(r.quiet.Seconds(), "s/quiet-round")
		b.ReportMetric(float64(r.requests), "requests/full-round")
		b.ReportMetric(float64(r.quietRequests), "requests/quiet-round")
		b.ReportMetric(float64(r.refused), "429s")
	}
}
