package stripe

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// What was sold is found by its payment, its subscription and its schedule, on either account.
func TestFinder_FollowsTheLinks(t *testing.T) {
	for _, at := range paidAt {
		for _, kind := range allKinds {
			s := open(t, at)
			o := s.order(kind, s.card("tok_visa"))
			if _, err := s.tracker.Sell(t.Context(), o, false); err != nil {
				t.Fatal(err)
			}
			s.fake.Advance(2 * time.Hour) // after which a split one is paid
			sale, err := s.tracker.Find(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range sale.Objects {
				var got tracking.Object
				var err error
				switch want.Kind {
				case tracking.KindPayment:
					got, err = s.tracker.Payment(t.Context(), at, want.ID)
				case tracking.KindSubscription:
					got, err = s.tracker.Subscription(t.Context(), at, want.ID)
				case tracking.KindSchedule:
					got, err = s.tracker.Schedule(t.Context(), at, want.ID)
				}
				if err != nil || !equal(got, want) {
					t.Errorf("%s at %q: got %+v, %v\nwant %+v", kind, at, got, err, want)
				}
			}
			for _, e := range s.paid() {
				got, err := s.tracker.Payment(t.Context(), at, e.Intent)
				if err != nil || got.Tag != o.Tag || got.Invoice == "" || (got.Subscription == "") != (kind == tracking.Product) || !got.InvoiceTold || !got.Seen {
					t.Errorf("%s at %q: got %+v, %v", kind, at, got, err)
				}
			}
		}
	}
}

// equal leaves out what has no members that compare.
func equal(a, b tracking.Object) bool {
	return len(a.Refunds) == len(b.Refunds) && key(a) == key(b)
}

func key(o tracking.Object) [11]any {
	return [...]any{o.Kind, o.ID, o.Status, o.Created, o.Tag, o.Seen, o.Failed, o.Amount, o.Invoice + " " + o.Subscription + " " + o.Schedule, o.Customer, o.InvoiceTold}
}

// The tag is that of the payment, or of its invoice, or of the subscription as the invoice has
// it, or of the subscription now.
func TestFinder_Tags(t *testing.T) {
	const intent, invoice, snapshot, now = 1, 2, 4, 8
	tag := func(purchase string) string {
		return `{"` + tracking.MetaInstallation + `":"inst","` + tracking.MetaPurchase + `":"0198f2c0-0000-7000-8000-00000000000` + purchase + `","` + tracking.MetaKind + `":"subscription"}`
	}
	if_ := func(is bool, text string) string {
		if is {
			return text
		}
		return "{}"
	}
	for has := range 16 {
		replies := []reply{
			ok(`{"object":"payment_intent","id":"pi_1","status":"succeeded","metadata":` + if_(has&intent > 0, tag("1")) + `}`),
			list(false, `{"object":"invoice_payment","id":"inpay_1","status":"paid","invoice":{"object":"invoice","id":"in_1","status":"paid","metadata":`+if_(has&invoice > 0, tag("2"))+
				`,"parent":{"type":"subscription_details","subscription_details":{"subscription":"sub_1","metadata":`+if_(has&snapshot > 0, tag("3"))+`}}}}`),
		}
		if has&(intent|invoice|snapshot) == 0 {
			replies = append(replies, ok(`{"object":"subscription","id":"sub_1","metadata":`+if_(has&now > 0, tag("4"))+`}`))
		}
		want := ""
		for i, part := range []int{intent, invoice, snapshot, now} {
			if has&part > 0 {
				want = "0198f2c0-0000-7000-8000-00000000000" + string(rune('1'+i))
				break
			}
		}
		got, err := processor(t, newScript(t, replies...)).Tracker().Payment(t.Context(), "acct_1", "pi_1")
		if err != nil || got.Tag.Purchase != want || got.Invoice != "in_1" || got.Subscription != "sub_1" || !got.InvoiceTold || !got.Seen {
			t.Errorf("%04b: got %+v, %v; want the purchase %q", has, got, err, want)
		}
	}
}

// The ways from a payment to its invoice, and what there is to say when they lead nowhere.
func TestFinder_WaysToTheInvoice(t *testing.T) {
	const pi = `{"object":"payment_intent","id":"pi_1","status":"succeeded"`
	part := func(id, invoice, more string) string {
		return `{"object":"invoice_payment","id":"inpay_` + id + `",` + more + `"invoice":` + invoice + `}`
	}
	in := func(id string) string { return `{"object":"invoice","id":"` + id + `"}` }
	missing := fails(404, fields{"type": "invalid_request_error", "code": "resource_missing", "param": "intent", "message": "No such payment_intent"})
	tests := []struct {
		name    string
		replies []reply
		want    string // invoice
		err     error
	}{
		{"the old path", []reply{ok(pi + `,"invoice":"in_1"}`), ok(in("in_1"))}, "in_1", nil},
		{"the old path says none", []reply{ok(pi + `,"invoice":null}`)}, "", nil},
		{"none", []reply{ok(pi + `}`), list(false)}, "", nil},
		{"expanded", []reply{ok(pi + `}`), list(false, part("1", in("in_1"), ""))}, "in_1", nil},
		{"not expanded", []reply{ok(pi + `}`), list(false, part("1", `"in_1"`, "")), ok(in("in_1"))}, "in_1", nil},
		{"a deleted one", []reply{ok(pi + `}`), list(false, part("1", `{"object":"invoice","id":"in_1","deleted":true}`, ""))}, "in_1", nil},
		{"several, on two pages", []reply{ok(pi + `}`), list(true, part("1", in("in_1"), `"is_default":true,"status":"canceled",`)), list(false, part("2", in("in_2"), `"status":"paid",`), part("3", in("in_3"), ""))}, "in_2", nil},
		{"billing's own", []reply{ok(pi + `,"metadata":{"duesday_installation":"i","duesday_account":"a","duesday_subscription":"s"}}`)}, "", nil},
		{"a legacy purchase", []reply{ok(pi + `,"metadata":{"duesday_installation":"i","duesday_purchase":"` + testPurchase + `","duesday_purchase_kind":"legacy"}}`)}, "", nil},
		{"gone", []reply{missing}, "", tracking.ErrGone},
		{"let go", []reply{fails(403, fields{"type": "invalid_request_error", "code": "account_invalid"})}, "", tracking.ErrDisconnected},
		{"another one", []reply{ok(`{"object":"payment_intent","id":"pi_2"}`)}, "", billing.ErrUnknown},
		{"no object", []reply{ok(`[]`)}, "", billing.ErrUnknown},
		{"the permission is missing", []reply{fails(403, fields{"type": "invalid_request_error", "message": "The key does not have the permission"})}, "", billing.ErrAccountRefused},
		{"the invoice is gone", []reply{ok(pi + `}`), list(false, part("1", `"in_1"`, "")), missing}, "", billing.ErrUnknown},
		{"the way is closed", []reply{ok(pi + `}`), missing}, "", billing.ErrUnknown},
		{"what is no list", []reply{ok(pi + `}`), ok(`{"object":"list2","data":[],"has_more":false}`)}, "", billing.ErrUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := processor(t, newScript(t, tt.replies...)).Tracker().Payment(t.Context(), "acct_1", "pi_1")
			wantError(t, tt.name, err, tt.err)
			if err == nil && (got.Invoice != tt.want || !got.InvoiceTold || !got.Seen) {
				t.Errorf("got %+v, want the invoice %q", got, tt.want)
			}
		})
	}
	tracker := processor(t, newScript(t)).Tracker()
	for _, id := range []string{"", "sub_1", "pi_1/../x", "pi_"} {
		_, err := tracker.Payment(t.Context(), "", id)
		wantError(t, id, err, tracking.ErrGone)
	}
}

func TestFinder_Connected(t *testing.T) {
	p, fake := stateful(t)
	tracker := p.Tracker()
	if err := fake.Connect("acct_shop", ""); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"", "acct_shop", stripefake.DefaultAccount} {
		if err := tracker.Connected(t.Context(), at); err != nil {
			t.Errorf("%q: got %v", at, err)
		}
	}
	if err := fake.Disconnect("acct_shop"); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"acct_shop", "acct_nobodys"} {
		wantError(t, at, tracker.Connected(t.Context(), at), tracking.ErrDisconnected)
		_, err := tracker.Subscription(t.Context(), at, "sub_1") // is not sent
		wantError(t, at, err, tracking.ErrDisconnected)
	}
	if err := fake.Connect("acct_shop", ""); err != nil {
		t.Fatal(err)
	}
	if err := tracker.Connected(t.Context(), "acct_shop"); err != nil {
		t.Errorf("connected again: got %v", err)
	}
	_, err := tracker.Subscription(t.Context(), "acct_shop", "sub_1")
	wantError(t, "after it", err, tracking.ErrGone)
	id, live, err := p.Own(t.Context())
	if id != stripefake.DefaultAccount || live || err != nil {
		t.Errorf("got %q, %t, %v", id, live, err)
	}
	if err := tracker.Connected(t.Context(), "shop"); err == nil {
		t.Error("what is no account is connected")
	}
}

// Secrets of intents come with every answer, and go nowhere but into Sale.ClientSecret.
func TestAsked_ShowsNoSecrets(t *testing.T) {
	s := newScript(t, okIntent(), reply{status: 200, body: `{"client_secret":"pi_1_secret_Hush123"`})
	tracker := processor(t, s).Tracker()
	if _, err := tracker.get(t.Context(), "", "/v1/payment_intents/pi_1", url.Values{"expand[]": {"latest_charge"}}); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[0]; got.method != http.MethodGet || got.form.Get("expand[]") != "latest_charge" || got.header.Get("Idempotency-Key") != "" {
		t.Errorf("sent %+v", got)
	}
	_, _, err := tracker.ask(t.Context(), http.MethodPost, "/v1/payment_intents/pi_1", "", "", nil)
	if wantError(t, "an answer that is cut off", err, billing.ErrUnknown); err != nil && strings.Contains(err.Error(), "secret_") {
		t.Errorf("this shows a secret: %v", err)
	}
}
