package sell

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
	"github.com/duesday/duesday/stripefake"
)

func thinFields(id string, changes ...apitest.Fields) string {
	return apitest.Object(apitest.Fields{"id": id, "object": "v2.core.event", "created": "2026-01-31T12:00:00.5Z",
		"livemode": false, "type": "v1.payment_intent.succeeded", "context": nil,
		"related_object": apitest.Fields{"id": "pi_1", "type": "payment_intent"}}, changes...)
}

// thinPage is a page of version 2.
func thinPage(next string, rows ...string) apitest.Reply {
	link, _ := json.Marshal(next)
	if next == "" {
		link = []byte("null")
	}
	return apitest.Reply{Status: http.StatusOK, Body: `{"data":[` + strings.Join(rows, ",") + `],"next_page_url":` +
		string(link) + `,"previous_page_url":null}`}
}

func TestListThin(t *testing.T) {
	refused := func(status int, code string) []apitest.Reply {
		return []apitest.Reply{{Status: status, Body: `{"error":{"code":"` + code + `","message":"not for you"}}`}}
	}
	of := func(context any) string { return thinFields("evt_1", apitest.Fields{"context": context}) }
	const more = "https://elsewhere.example/v2/core/events?page=p2&limit=100"
	for _, tt := range []struct {
		name    string
		at      string
		replies []apitest.Reply
		want    string // ids and accounts
		err     error
	}{
		{"two pages", "acct_1", []apitest.Reply{thinPage(more, thinFields("evt_3"), thinFields("evt_2")),
			thinPage("", thinFields("evt_1"))}, "evt_3 acct_1, evt_2 acct_1, evt_1 acct_1", nil},
		{"our own account", "", []apitest.Reply{thinPage("", of(nil))}, "evt_1 ", nil},
		{"none", "acct_1", []apitest.Reply{thinPage("")}, "", nil},
		{"the context is told", "acct_1", []apitest.Reply{thinPage("", of("acct_1"))}, "evt_1 acct_1", nil},
		{"the context is a path", "acct_1", []apitest.Reply{thinPage("", of("org_1/acct_1"))}, "evt_1 acct_1", nil},
		{"another account", "acct_1", []apitest.Reply{thinPage("", of("acct_2"))}, "", processor.ErrUnknown},
		{"another form", "acct_1", []apitest.Reply{thinPage("", eventFields("evt_1"))}, "", processor.ErrUnknown},
		{"no list", "acct_1", []apitest.Reply{{Status: 200, Body: `{"object":"list"}`}}, "", processor.ErrUnknown},
		{"a page that leads back", "acct_1", []apitest.Reply{thinPage(more, of(nil)), thinPage(more, of(nil))},
			"evt_1 acct_1, evt_1 acct_1", processor.ErrUnknown},
		{"a page that leads nowhere", "acct_1", []apitest.Reply{thinPage("/v2/core/events", of(nil))}, "evt_1 acct_1",
			processor.ErrUnknown},
		{"no access", "acct_1", refused(403, "forbidden"), "", poller.ErrNoThin},
		{"no version 2", "", refused(404, "not_found"), "", poller.ErrNoThin},
		{"another parameter", "", refused(400, "invalid_fields"), "", poller.ErrNoThin},
		{"too many at once", "", []apitest.Reply{refused(429, "rate_limit_exceeded")[0], thinPage("", of(nil))}, "evt_1 ", nil},
		{"no account", "shop", nil, "", processor.ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.NewScript(t, tt.replies...)
			var got []string
			err := scripted(t, s).ListThin(t.Context(), tt.at, time.Unix(900, 5e8), func(e poller.RawEvent) error {
				told, err := event.Decode(e.Body)
				if err != nil || told.ID != e.ID || told.Object.ID != "pi_1" || !told.Created.Equal(e.Created) ||
					e.Created.Nanosecond() != 5e8 {
					t.Errorf("got %+v, %v", e, err)
				}
				got = append(got, e.ID+" "+told.StripeAccount)
				return nil
			})
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || strings.Join(got, ", ") != tt.want {
				t.Errorf("got %q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
			for i, r := range s.Requests() {
				first := r.Form.Get("created[gte]") == "1970-01-01T00:15:00Z"
				if r.Path != "/v2/core/events" || r.Header.Get("Stripe-Context") != tt.at || r.Header.Get("Stripe-Account") != "" ||
					r.Form.Get("limit") != "100" || r.Form.Get("page") != "p2" && !first {
					t.Errorf("request %d: %s %v %v", i, r.Path, r.Form, r.Header)
				}
			}
		})
	}
}

// TestListThin_OfTheFake: all its thin events are listed, newest first, and what each names is
// found.
func TestListThin_OfTheFake(t *testing.T) {
	for _, at := range paidAt {
		s := open(t, at)
		if err := s.fake.SetEvents(stripefake.ThinEvents); err != nil {
			t.Fatal(err)
		}
		if _, err := s.tracker.Sell(t.Context(), s.order(tracking.Product, s.card("tok_visa")), false); err != nil {
			t.Fatal(err)
		}
		intent := s.paid()[0].Intent
		s.make("refunds", "payment_intent="+intent+"&amount=1")
		if _, err := s.fake.Dispute(intent, ""); err != nil {
			t.Fatal(err)
		}
		for i := range 120 { // more than a page
			s.make("customers", fmt.Sprintf("email=buyer%d@example.com", i))
		}
		kinds, last, n := map[string]tracking.Object{}, time.Time{}, 0
		err := s.tracker.ListThin(t.Context(), at, apitest.Now, func(e poller.RawEvent) error {
			told, err := event.Decode(e.Body)
			if err != nil || told.StripeAccount != at || !last.IsZero() && told.Created.After(last) {
				t.Errorf("got %+v, %v", told, err)
			}
			last = told.Created
			kinds[told.Object.Kind] = told.Object
			n++
			return nil
		})
		if err != nil || n < 120 {
			t.Errorf("%d events, %v", n, err)
		}
		for _, kind := range []string{tracking.KindInvoice, tracking.KindCharge, tracking.KindRefund, tracking.KindDispute} {
			got, err := s.tracker.Object(t.Context(), at, kind, kinds[kind].ID)
			if err != nil || got.Kind != kind || got.ID != kinds[kind].ID || got.Status == "" || !got.Fetched ||
				kind != tracking.KindInvoice && got.Payment == "" {
				t.Errorf("%s %s: %+v, %v", kind, kinds[kind].ID, got, err)
			}
			if _, err := s.tracker.Object(t.Context(), at, kind, kinds[kind].ID+"x"); !errors.Is(err, tracking.ErrGone) {
				t.Errorf("%s of nobody: %v", kind, err)
			}
		}
	}
}
