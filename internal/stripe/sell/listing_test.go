package sell

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

func eventFields(id string, changes ...apitest.Fields) string {
	return apitest.Object(apitest.Fields{"id": id, "object": "event", "created": 1000, "type": "payment_intent.succeeded",
		"data": apitest.Fields{"object": apitest.Fields{"id": "pi_1"}}}, changes...)
}

func TestListEvents(t *testing.T) {
	date := func(t time.Time) map[string]string { return map[string]string{"Date": t.Format(http.TimeFormat)} }
	on := func(r apitest.Reply, header map[string]string) apitest.Reply {
		r.Header = header
		return r
	}
	earlier, later := apitest.Now.Add(-time.Minute), apitest.Now.Add(time.Hour)
	tests := []struct {
		name    string
		at      string
		replies []apitest.Reply
		want    string // ids and accounts
		now     time.Time
		err     error
	}{
		{"two pages", "acct_1", []apitest.Reply{on(apitest.List(true, eventFields("evt_3"), eventFields("evt_2")),
			date(earlier)), on(apitest.List(false, eventFields("evt_1")), date(later))},
			"evt_3 acct_1, evt_2 acct_1, evt_1 acct_1", earlier, nil},
		{"our own account", "", []apitest.Reply{on(apitest.List(false, eventFields("evt_1")), date(earlier))}, "evt_1 ",
			earlier, nil},
		{"none", "acct_1", []apitest.Reply{on(apitest.List(false), date(earlier))}, "", earlier, nil},
		{"Stripe's clock is ahead", "acct_1", []apitest.Reply{on(apitest.List(false), date(later))}, "", apitest.Now, nil},
		{"no clock", "acct_1", []apitest.Reply{apitest.List(false)}, "", apitest.Now, nil},
		{"a strange clock", "acct_1", []apitest.Reply{on(apitest.List(false), map[string]string{"Date": "noon"})}, "",
			apitest.Now, nil},
		{"the account is told", "acct_1",
			[]apitest.Reply{on(apitest.List(false, eventFields("evt_1", apitest.Fields{"account": "acct_1"})), date(earlier))},
			"evt_1 acct_1", earlier, nil},
		{"the account is null", "acct_1",
			[]apitest.Reply{on(apitest.List(false, eventFields("evt_1", apitest.Fields{"account": nil})), date(earlier))},
			"evt_1 acct_1", earlier, nil},
		{"another account", "acct_1", []apitest.Reply{apitest.List(false,
			eventFields("evt_1", apitest.Fields{"account": "acct_2"}))}, "", time.Time{}, processor.ErrUnknown},
		{"something else", "acct_1", []apitest.Reply{apitest.List(false, apitest.Object(apitest.ChargeFields("ch_1")))}, "",
			time.Time{}, processor.ErrUnknown},
		{"a page that leads back", "acct_1",
			[]apitest.Reply{apitest.List(true, eventFields("evt_1")), apitest.List(true, eventFields("evt_1"))},
			"evt_1 acct_1, evt_1 acct_1", time.Time{}, processor.ErrUnknown},
		{"a page that leads nowhere", "acct_1", []apitest.Reply{apitest.List(true)}, "", time.Time{}, processor.ErrUnknown},
		{"let go", "acct_1", []apitest.Reply{apitest.Fails(403,
			apitest.Fields{"type": "invalid_request_error", "code": "account_invalid"})}, "", time.Time{},
			tracking.ErrDisconnected},
		{"no account", "shop", nil, "", time.Time{}, processor.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.NewScript(t, tt.replies...)
			var got []string
			now, err := scripted(t, s).ListEvents(t.Context(), tt.at, time.Unix(900, 5e8), func(e poller.RawEvent) error {
				var body struct {
					ID, Account string
					Data        struct{ Object struct{ ID string } }
				}
				if err := json.Unmarshal(e.Body, &body); err != nil || body.ID != e.ID || body.Data.Object.ID != "pi_1" ||
					!e.Created.Equal(time.Unix(1000, 0)) {
					t.Errorf("got %+v, %v", e, err)
				}
				got = append(got, e.ID+" "+body.Account)
				return nil
			})
			apitest.WantError(t, tt.name, err, tt.err)
			if strings.Join(got, ", ") != tt.want || !now.Equal(tt.now) {
				t.Errorf("got %q at %v, want %q at %v", got, now, tt.want, tt.now)
			}
			for i, r := range s.Requests() {
				if want := map[bool]string{true: "evt_2"}[i > 0 && tt.want[:5] == "evt_3"]; r.Form.Get("created[gte]") != "900" ||
					r.Form.Get("limit") != "100" || want != "" && r.Form.Get("starting_after") != want {
					t.Errorf("asked for %v", r.Form)
				}
			}
		})
	}
	stop := errors.New("enough")
	_, err := scripted(t, apitest.NewScript(t,
		apitest.List(true, eventFields("evt_2"), eventFields("evt_1")))).ListEvents(t.Context(), "", time.Time{},
		func(poller.RawEvent) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want what each returned", err)
	}
}

// An event asked for is as it is listed.
func TestEvent(t *testing.T) {
	gone := apitest.Fails(404, apitest.Fields{"type": "invalid_request_error", "code": "resource_missing"})
	for _, tt := range []struct {
		name, at string
		reply    apitest.Reply
		err      error
	}{
		{"thin", "", apitest.Reply{Status: 200, Body: thinFields("evt_1")}, nil},
		{"thin, of a connected account", "acct_1", apitest.Reply{Status: 200, Body: thinFields("evt_1")}, nil},
		{"thin, of another account", "acct_1", apitest.Reply{Status: 200,
			Body: thinFields("evt_1", apitest.Fields{"context": "acct_2"})}, processor.ErrUnknown},
		{"thin, none", "acct_1", apitest.Reply{Status: 404, Body: `{"error":{"code":"not_found","message":"none"}}`},
			tracking.ErrGone},
		{"of ours", "", apitest.Reply{Status: 200, Body: eventFields("evt_1")}, nil},
		{"of a connected account", "acct_1", apitest.Reply{Status: 200, Body: eventFields("evt_1")}, nil},
		{"another one", "acct_1", apitest.Reply{Status: 200, Body: eventFields("evt_2")}, processor.ErrUnknown},
		{"of another account", "acct_1", apitest.Reply{Status: 200, Body: eventFields("evt_1", apitest.Fields{"account": "acct_2"})},
			processor.ErrUnknown},
		{"none", "acct_1", gone, tracking.ErrGone},
		{"no account", "shop", apitest.Reply{}, processor.ErrInvalid},
	} {
		replies := []apitest.Reply{tt.reply}
		if tt.reply.Status == 0 { // nothing is asked
			replies = nil
		}
		thin, s, account := strings.HasPrefix(tt.name, "thin"), apitest.NewScript(t, replies...), `"account":"`+tt.at+`"`
		body, err := scripted(t, s).Event(t.Context(), tt.at, "evt_1", thin)
		apitest.WantError(t, tt.name, err, tt.err)
		for _, r := range s.Requests() {
			if want := map[bool]string{false: "/v1/events/evt_1", true: "/v2/core/events/evt_1"}[thin]; r.Path != want {
				t.Errorf("%s: asked for %s", tt.name, r.Path)
			}
		}
		if thin {
			account = `"context":"` + tt.at + `"`
		}
		if err == nil && (!strings.Contains(string(body), `"evt_1"`) ||
			strings.Contains(string(body), account) != (tt.at != "")) {
			t.Errorf("%s: got %s", tt.name, body)
		}
	}
}

// All events of the fake are listed, newest first, and decode as those that it sends.
func TestListEvents_OfTheFake(t *testing.T) {
	for _, at := range paidAt {
		s := open(t, at)
		for i := range 120 {
			s.make("customers", fmt.Sprintf("email=buyer%d@example.com", i))
		}
		last, n := "", 0
		now, err := s.tracker.ListEvents(t.Context(), at, apitest.Now, func(e poller.RawEvent) error {
			var body struct{ ID, Account string }
			if err := json.Unmarshal(e.Body, &body); err != nil || body.ID != e.ID || body.Account != at || last != "" &&
				e.ID >= last {
				t.Errorf("got %s after %s, of %q, %v", e.ID, last, body.Account, err)
			}
			last = e.ID
			n++
			return nil
		})
		if n < 120 || err != nil || now.After(apitest.Now) {
			t.Errorf("%d events until %v, %v", n, now, err)
		}
		if _, err := s.tracker.ListEvents(t.Context(), at, apitest.Now.Add(time.Second), func(e poller.RawEvent) error {
			t.Errorf("%s is before the time that was asked for", e.ID)
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// What the list of objects tells of each is what asking for it would.
func TestListObjects_AsTheFinderHasThem(t *testing.T) {
	for _, at := range paidAt {
		s := open(t, at)
		for i, kind := range allKinds {
			o := s.order(kind, s.card("tok_visa"))
			o.Tag.Purchase = fmt.Sprintf("0198f2c0-0000-7000-8000-%012d", i)
			if _, err := s.tracker.Sell(t.Context(), o, false); err != nil {
				t.Fatal(err)
			}
		}
		cus := s.make("customers", "email=other@example.com")
		s.make("payment_intents", "amount=500&currency=usd&customer="+cus)
		s.fake.Advance(40 * 24 * time.Hour)
		got := map[string]int{}
		since := apitest.Now.Add(-time.Hour)
		err := s.tracker.ListObjects(t.Context(), at, since, func(o tracking.Object) error {
			got[o.Kind]++
			var want tracking.Object
			var err error
			switch o.Kind {
			case tracking.KindSubscription:
				want, err = s.tracker.Object(t.Context(), at, tracking.KindSubscription, o.ID)
			case tracking.KindSchedule:
				want, err = s.tracker.Object(t.Context(), at, tracking.KindSchedule, o.ID)
			case tracking.KindPayment:
				want, err = s.tracker.Object(t.Context(), at, tracking.KindPayment, o.ID)
			}
			if err != nil || !equal(o, want) {
				t.Errorf("listed %+v\nfound %+v, %v", o, want, err)
			}
			return nil
		})
		// Two of each subscription, by now: the first payment and a renewal.
		if want := (map[string]int{tracking.KindSubscription: 2, tracking.KindSchedule: 1,
			tracking.KindPayment: 7}); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("at %q: got %v, %v; want %v", at, got, err, want)
		}
		clear(got)
		if err := s.tracker.ListObjects(t.Context(), at, s.fake.Now(), func(o tracking.Object) error {
			got[o.Kind]++
			return nil
		}); err != nil || got[tracking.KindSubscription] != 2 || len(got) != 1 {
			t.Errorf("nothing is newer than now, but every subscription is told: got %v, %v", got, err)
		}
	}
}

// What is asked for, and the tag of a subscription that its invoice does not repeat.
func TestListObjects_Asks(t *testing.T) {
	tag := apitest.Fields{tracking.MetaInstallation: "inst", tracking.MetaPurchase: testPurchase,
		tracking.MetaKind: "subscription"}
	s := apitest.NewScript(t,
		apitest.List(false, apitest.Object(apitest.Fields{"object": "subscription", "id": "sub_1", "status": "canceled",
			"metadata": tag})),
		apitest.List(false),
		apitest.List(false, apitest.Object(apitest.Fields{"object": "invoice_payment", "id": "inpay_1",
			"payment": apitest.Fields{"type": "payment_intent", "payment_intent": "pi_1"}, "invoice": apitest.Fields{
				"object": "invoice", "id": "in_1",
				"parent": apitest.Fields{"subscription_details": apitest.Fields{"subscription": "sub_1"}}}})),
		apitest.List(false, apitest.Object(apitest.Fields{"object": "payment_intent", "id": "pi_1", "status": "succeeded"}),
			apitest.Object(apitest.Fields{"object": "payment_intent", "id": "pi_2"})),
		apitest.List(false, apitest.Object(apitest.Fields{"object": "dispute", "id": "du_1", "status": "won"})))
	var got []string
	err := scripted(t, s).ListObjects(t.Context(), "", time.Unix(9000, 0), func(o tracking.Object) error {
		got = append(got, strings.Join([]string{o.ID, o.Invoice, o.Subscription, o.Tag.Purchase}, " "))
		return nil
	})
	if want := []string{"sub_1  sub_1 " + testPurchase, "pi_1 in_1 sub_1 " + testPurchase, "pi_2   ",
		"du_1   "}; err != nil ||
		strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for i, want := range []string{"limit=100&status=all", "created[gte]=9000&limit=100",
		"created[gte]=5400&expand[]=data.invoice&limit=100", "created[gte]=9000&limit=100"} {
		values, err := url.ParseQuery(want)
		if got := s.Requests()[i]; err != nil || got.Form.Encode() != values.Encode() {
			t.Errorf("%s was asked for with %v, want %s", got.Path, got.Form, want)
		}
	}
}

func TestListObjects_Errors(t *testing.T) {
	closed := apitest.Fails(403, apitest.Fields{"type": "invalid_request_error", "code": "account_invalid"})
	none := apitest.List(false)
	for n := range 4 {
		replies := append([]apitest.Reply{none, none, none}[:n:n], closed)
		err := scripted(t, apitest.NewScript(t, replies...)).ListObjects(t.Context(), "acct_1", apitest.Now,
			func(tracking.Object) error { return nil })
		apitest.WantError(t, fmt.Sprintf("list %d", n), err, tracking.ErrDisconnected)
	}
	stop := errors.New("enough")
	for _, reply := range []apitest.Reply{apitest.List(true, `{"object":"subscription","id":"sub_1"}`)} {
		if err := scripted(t, apitest.NewScript(t, reply)).ListObjects(t.Context(), "", apitest.Now,
			func(tracking.Object) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v, want what each returned", err)
		}
	}
	err := scripted(t, apitest.NewScript(t,
		apitest.List(false, `{"object":"invoice","id":"in_1"}`))).ListObjects(t.Context(), "", apitest.Now,
		func(tracking.Object) error { return nil })
	apitest.WantError(t, "something else", err, processor.ErrUnknown)
}
