package server

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// inMemory carries requests to a handler of this process.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, r)
	return answer.Result(), r.Context().Err()
}

// TestPoller_DayBoundaries: all webhooks are lost around several midnights. The poller of serve finds
// every event by its own timer within the longest wait of a quiet account, wherever the machine's clock
// stands beside Stripe's, and also if it is set right, or wrong, meanwhile.
func TestPoller_DayBoundaries(t *testing.T) {
	const day = 24 * time.Hour
	for name, ahead := range map[string][]time.Duration{"level": {0}, "behind": {-26 * time.Hour}, "ahead": {26 * time.Hour},
		"set": {0, 26 * time.Hour, -26 * time.Hour, 3 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var skew atomic.Int64
				skew.Store(int64(ahead[0]))
				machine := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
				fake := stripefake.New(stripefake.Options{Connected: []string{"acct_shop"}})
				defer fake.Close()
				client, err := api.New(api.Options{Key: secret.New("sk_test_duesday"), Base: "http://localhost", Now: machine,
					Transport: inMemory{fake}})
				if err != nil {
					t.Fatal(err)
				}
				tables, stripe := schema.New(""), sell.New(client)
				s, err := memstore.Open(tables.All(), machine)
				if err != nil {
					t.Fatal(err)
				}
				service, err := tracking.Open(t.Context(), tracking.Options{Store: s, Tables: tables, Installation: "test",
					Own: stripefake.DefaultAccount, Now: machine, Decode: event.Decode, Finder: stripe, Seller: stripe})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := service.Register(t.Context(), "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58", "acct_shop"); err != nil {
					t.Fatal(err)
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				var told atomic.Int64
				taken := func(h httpapi.Hook, polled bool, _ tracking.Verdict) {
					if told.Add(1); h.Path != ConnectPath || !polled {
						t.Errorf("told of an event of %s, polled %v", h.Path, polled)
					}
				}
				served, err := New(Options{Service: service, Lister: stripe, Hooks: l, PollEvery: 10 * time.Minute, Now: machine,
					HTTP: httpapi.Options{Taken: taken}})
				if err != nil {
					t.Fatal(err)
				}
				go func() { _ = served.poller.Run(t.Context()) }() // returns none
				midnight := time.Now().UTC().Truncate(day)
				for i := range 4 {
					midnight = midnight.Add(day)
					for _, at := range []time.Duration{-time.Second, 0, time.Second} {
						time.Sleep(time.Until(midnight.Add(at)))
						r := httptest.NewRequest("POST", "/v1/payment_intents", strings.NewReader("amount=500&currency=eur"))
						r.Header.Set("Authorization", "Bearer sk_test_duesday")
						r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
						r.Header.Set("Stripe-Account", "acct_shop")
						fake.ServeHTTP(httptest.NewRecorder(), r)
					}
					skew.Store(int64(ahead[(i+1)%len(ahead)]))
					time.Sleep(7 * time.Hour)
					var got, want []string
					for _, e := range fake.Events("acct_shop", false, stripefake.NewestVersion) {
						want = append(want, e.ID)
					}
					for e, err := range service.Events(t.Context(), tracking.EventQuery{From: time.Unix(0, 0)}) {
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, e.ID)
					}
					slices.Sort(got)
					slices.Sort(want)
					if !slices.Equal(got, want) || len(want) < 3*(i+1) || int(told.Load()) < len(got) {
						t.Errorf("%s: stored %q\nof %q, told of %d", midnight, got, want, told.Load())
					}
				}
			})
		})
	}
}
