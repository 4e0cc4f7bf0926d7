package stripe

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

func eventFields(id string, changes ...fields) string {
	return object(fields{"id": id, "object": "event", "created": 1000, "type": "payment_intent.succeeded", "data": fields{"object": fields{"id": "pi_1"}}}, changes...)
}

func TestListEvents(t *testing.T) {
	date := func(t time.Time) map[string]string { return map[string]string{"Date": t.Format(http.TimeFormat)} }
	on := func(r reply, header map[string]string) reply {
		r.header = header
		return r
	}
	earlier, later := testNow.Add(-time.Minute), testNow.Add(time.Hour)
	tests := []struct {
		name    string
		at      string
		replies []reply
		want    string // ids and accounts
		now     time.Time
		err     error
	}{
		{"two pages", "acct_1", []reply{on(list(true, eventFields("evt_3"), eventFields("evt_2")), date(earlier)), on(list(false, eventFields("evt_1")), date(later))},
			"evt_3 acct_1, evt_2 acct_1, evt_1 acct_1", earlier, nil},
		{"our own account", "", []reply{on(list(false, eventFields("evt_1")), date(earlier))}, "evt_1 ", earlier, nil},
		{"none", "acct_1", []reply{on(list(false), date(earlier))}, "", earlier, nil},
		{"Stripe's clock is ahead", "acct_1", []reply{on(list(false), date(later))}, "", testNow, nil},
		{"no clock", "acct_1", []reply{list(false)}, "", testNow, nil},
		{"a strange clock", "acct_1", []reply{on(list(false), map[string]string{"Date": "noon"})}, "", testNow, nil},
		{"the account is told", "acct_1", []reply{on(list(false, eventFields("evt_1", fields{"account": "acct_1"})), date(earlier))}, "evt_1 acct_1", earlier, nil},
		{"the account is null", "acct_1", []reply{on(list(false, eventFields("evt_1", fields{"account": nil})), date(earlier))}, "evt_1 acct_1", earlier, nil},
		{"another account", "acct_1", []reply{list(false, eventFields("evt_1", fields{"account": "acct_2"}))}, "", time.Time{}, billing.ErrUnknown},
		{"something else", "acct_1", []reply{list(false, object(chargeFields("ch_1")))}, "", time.Time{}, billing.ErrUnknown},
		{"a page that leads back", "acct_1", []reply{list(true, eventFields("evt_1")), list(true, eventFields("evt_1"))}, "evt_1 acct_1, evt_1 acct_1", time.Time{}, billing.ErrUnknown},
		{"a page that leads nowhere", "acct_1", []reply{list(true)}, "", time.Time{}, billing.ErrUnknown},
		{"let go", "acct_1", []reply{fails(403, fields{"type": "invalid_request_error", "code": "account_invalid"})}, "", time.Time{}, tracking.ErrDisconnected},
		{"no account", "shop", nil, "", time.Time{}, billing.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, tt.replies...)
			var got []string
			now, err := processor(t, s).Tracker().ListEvents(t.Context(), tt.at, time.Unix(900, 5e8), func(e poller.RawEvent) error {
				var body struct {
					ID, Account string
					Data        struct{ Object struct{ ID string } }
				}
				if err := json.Unmarshal(e.Body, &body); err != nil || body.ID != e.ID || body.Data.Object.ID != "pi_1" || !e.Created.Equal(time.Unix(1000, 0)) {
					t.Errorf("got %+v, %v", e, err)
				}
				got = append(got, e.ID+" "+body.Account)
				return nil
			})
			wantError(t, tt.name, err, tt.err)
			if strings.Join(got, ", ") != tt.want || !now.Equal(tt.now) {
				t.Errorf("got %q at %v, want %q at %v", got, now, tt.want, tt.now)
			}
			for i, r := range s.requests() {
				if want := map[bool]string{true: "evt_2"}[i > 0 && tt.want[:5] == "evt_3"]; r.form.Get("created[gte]") != "900" || r.form.Get("limit") != "100" || want != "" && r.form.Get("starting_after") != want {
					t.Errorf("asked for %v", r.form)
				}
			}
		})
	}
	stop := errors.New("enough")
	_, err := processor(t, newScript(t, list(true, eventFields("evt_2"), eventFields("evt_1")))).Tracker().ListEvents(t.Context(), "", time.Time{}, func(poller.RawEvent) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want what each returned", err)
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
		now, err := s.tracker.ListEvents(t.Context(), at, testNow, func(e poller.RawEvent) error {
			var body struct{ ID, Account string }
			if err := json.Unmarshal(e.Body, &body); err != nil || body.ID != e.ID || body.Account != at || last != "" && e.ID >= last {
				t.Errorf("got %s after %s, of %q, %v", e.ID, last, body.Account, err)
			}
			last = e.ID
			n++
			return nil
		})
		if n < 120 || err != nil || now.After(testNow) {
			t.Errorf("%d events until %v, %v", n, now, err)
		}
		if _, err := s.tracker.ListEvents(t.Context(), at, testNow.Add(time.Second), func(e poller.RawEvent) error {
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
		since := testNow.Add(-time.Hour)
		err := s.tracker.ListObjects(t.Context(), at, since, func(o tracking.Object) error {
			got[o.Kind]++
			var want tracking.Object
			var err error
			switch o.Kind {
			case tracking.KindSubscription:
				want, err = s.tracker.Subscription(t.Context(), at, o.ID)
			case tracking.KindSchedule:
				want, err = s.tracker.Schedule(t.Context(), at, o.ID)
			case tracking.KindPayment:
				want, err = s.tracker.Payment(t.Context(), at, o.ID)
			}
			if err != nil || !equal(o, want) {
				t.Errorf("listed %+v\nfound %+v, %v", o, want, err)
			}
			return nil
		})
		// Two of each subscription, by now: the first payment and a renewal.
		if want := (map[string]int{tracking.KindSubscription: 2, tracking.KindSchedule: 1, tracking.KindPayment: 7}); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
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
	tag := fields{tracking.MetaInstallation: "inst", tracking.MetaPurchase: testPurchase, tracking.MetaKind: "subscription"}
	s := newScript(t,
		list(false, object(fields{"object": "subscription", "id": "sub_1", "status": "canceled", "metadata": tag})),
		list(false),
		list(false, object(fields{"object": "invoice_payment", "id": "inpay_1", "payment": fields{"type": "payment_intent", "payment_intent": "pi_1"}, "invoice": fields{
			"object": "invoice", "id": "in_1", "parent": fields{"subscription_details": fields{"subscription": "sub_1"}}}})),
		list(false, object(fields{"object": "payment_intent", "id": "pi_1", "status": "succeeded"}), object(fields{"object": "payment_intent", "id": "pi_2"})))
	var got []string
	err := processor(t, s).Tracker().ListObjects(t.Context(), "", time.Unix(9000, 0), func(o tracking.Object) error {
		got = append(got, strings.Join([]string{o.ID, o.Invoice, o.Subscription, o.Tag.Purchase}, " "))
		return nil
	})
	if want := []string{"sub_1  sub_1 " + testPurchase, "pi_1 in_1 sub_1 " + testPurchase, "pi_2   "}; err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for i, want := range []string{"limit=100&status=all", "created[gte]=9000&limit=100", "created[gte]=5400&expand[]=data.invoice&limit=100", "created[gte]=9000&limit=100"} {
		values, err := url.ParseQuery(want)
		if got := s.requests()[i]; err != nil || got.form.Encode() != values.Encode() {
			t.Errorf("%s was asked for with %v, want %s", got.path, got.form, want)
		}
	}
}

func TestListObjects_Errors(t *testing.T) {
	closed := fails(403, fields{"type": "invalid_request_error", "code": "account_invalid"})
	none := list(false)
	for n := range 4 {
		replies := append([]reply{none, none, none}[:n:n], closed)
		err := processor(t, newScript(t, replies...)).Tracker().ListObjects(t.Context(), "acct_1", testNow, func(tracking.Object) error { return nil })
		wantError(t, fmt.Sprintf("list %d", n), err, tracking.ErrDisconnected)
	}
	stop := errors.New("enough")
	for _, reply := range []reply{list(true, `{"object":"subscription","id":"sub_1"}`)} {
		if err := processor(t, newScript(t, reply)).Tracker().ListObjects(t.Context(), "", testNow, func(tracking.Object) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v, want what each returned", err)
		}
	}
	err := processor(t, newScript(t, list(false, `{"object":"invoice","id":"in_1"}`))).Tracker().ListObjects(t.Context(), "", testNow, func(tracking.Object) error { return nil })
	wantError(t, "something else", err, billing.ErrUnknown)
}
