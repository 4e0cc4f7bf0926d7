package sell

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// scripted returns a Tracker that the script answers.
func scripted(t *testing.T, s *apitest.Script) Tracker {
	t.Helper()
	return opened(t, api.Options{Key: secret.New(apitest.Key), Transport: s, Log: apitest.Log(t)})
}

// selling returns a Tracker of a fake with a memory.
func selling(t *testing.T, way http.RoundTripper) (Tracker, *stripefake.Fake) {
	t.Helper()
	base, fake := apitest.NewFake(t)
	return opened(t, api.Options{Key: secret.New("sk_test_duesday"), Base: base, Transport: way}), fake
}

func opened(t *testing.T, o api.Options) Tracker {
	t.Helper()
	o.Rate, o.Now = api.MaxRate, func() time.Time { return apitest.Now }
	c, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
	})
	return New(c)
}

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
					got, err = s.tracker.Object(t.Context(), at, tracking.KindPayment, want.ID)
				case tracking.KindSubscription:
					got, err = s.tracker.Object(t.Context(), at, tracking.KindSubscription, want.ID)
				case tracking.KindSchedule:
					got, err = s.tracker.Object(t.Context(), at, tracking.KindSchedule, want.ID)
				}
				if err != nil || !equal(got, want) {
					t.Errorf("%s at %q: got %+v, %v\nwant %+v", kind, at, got, err, want)
				}
			}
			for _, e := range s.paid() {
				got, err := s.tracker.Object(t.Context(), at, tracking.KindPayment, e.Intent)
				if err != nil || got.Tag != o.Tag || got.Invoice == "" || (got.Subscription == "") != (kind == tracking.Product) ||
					!got.InvoiceTold || !got.Fetched {
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
	return [...]any{o.Kind, o.ID, o.Status, o.Created, o.Tag, o.Fetched, o.Failed, o.Amount,
		o.Invoice + " " + o.Subscription + " " + o.Schedule, o.Customer, o.InvoiceTold}
}

// The tag is that of the payment, or of its invoice, or of the subscription as the invoice has
// it, or of the subscription now.
func TestFinder_Tags(t *testing.T) {
	const intent, invoice, snapshot, now = 1, 2, 4, 8
	tag := func(purchase string) string {
		return `{"` + tracking.MetaInstallation + `":"inst","` + tracking.MetaPurchase +
			`":"0198f2c0-0000-7000-8000-00000000000` + purchase + `","` + tracking.MetaKind + `":"subscription"}`
	}
	if_ := func(is bool, text string) string {
		if is {
			return text
		}
		return "{}"
	}
	for has := range 16 {
		replies := []apitest.Reply{
			apitest.OK(`{"object":"payment_intent","id":"pi_1","status":"succeeded","metadata":` +
				if_(has&intent > 0, tag("1")) + `}`),
			apitest.List(false, `{"object":"invoice_payment","id":"inpay_1","status":"paid","invoice":{"object":"invoice","id":"in_1","status":"paid","metadata":`+if_(has&invoice > 0, tag("2"))+
				`,"parent":{"type":"subscription_details","subscription_details":{"subscription":"sub_1","metadata":`+
				if_(has&snapshot > 0, tag("3"))+`}}}}`),
		}
		if has&(intent|invoice|snapshot) == 0 {
			replies = append(replies, apitest.OK(`{"object":"subscription","id":"sub_1","metadata":`+if_(has&now > 0, tag("4"))+
				`}`))
		}
		want := ""
		for i, part := range []int{intent, invoice, snapshot, now} {
			if has&part > 0 {
				want = "0198f2c0-0000-7000-8000-00000000000" + string(rune('1'+i))
				break
			}
		}
		got, err := scripted(t, apitest.NewScript(t, replies...)).Object(t.Context(), "acct_1", tracking.KindPayment, "pi_1")
		if err != nil || got.Tag.Purchase != want || got.Invoice != "in_1" || got.Subscription != "sub_1" ||
			!got.InvoiceTold || !got.Fetched {
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
	missing := apitest.Fails(404, apitest.Fields{"type": "invalid_request_error", "code": "resource_missing",
		"param": "intent", "message": "No such payment_intent"})
	tests := []struct {
		name    string
		replies []apitest.Reply
		want    string // invoice
		err     error
	}{
		{"the old path", []apitest.Reply{apitest.OK(pi + `,"invoice":"in_1"}`), apitest.OK(in("in_1"))}, "in_1", nil},
		{"the old path says none", []apitest.Reply{apitest.OK(pi + `,"invoice":null}`)}, "", nil},
		{"none", []apitest.Reply{apitest.OK(pi + `}`), apitest.List(false)}, "", nil},
		{"expanded", []apitest.Reply{apitest.OK(pi + `}`), apitest.List(false, part("1", in("in_1"), ""))}, "in_1", nil},
		{"not expanded", []apitest.Reply{apitest.OK(pi + `}`), apitest.List(false, part("1", `"in_1"`, "")),
			apitest.OK(in("in_1"))}, "in_1", nil},
		{"a deleted one", []apitest.Reply{apitest.OK(pi + `}`),
			apitest.List(false, part("1", `{"object":"invoice","id":"in_1","deleted":true}`, ""))}, "in_1", nil},
		{"several, on two pages", []apitest.Reply{apitest.OK(pi + `}`),
			apitest.List(true, part("1", in("in_1"), `"is_default":true,"status":"canceled",`)),
			apitest.List(false, part("2", in("in_2"), `"status":"paid",`), part("3", in("in_3"), ""))}, "in_2", nil},
		{"billing's own", []apitest.Reply{apitest.OK(pi +
			`,"metadata":{"duesday_installation":"i","duesday_account":"a","duesday_subscription":"s"}}`)}, "", nil},
		{"a legacy purchase", []apitest.Reply{apitest.OK(pi + `,"metadata":{"duesday_installation":"i","duesday_purchase":"` +
			testPurchase + `","duesday_purchase_kind":"legacy"}}`)}, "", nil},
		{"gone", []apitest.Reply{missing}, "", tracking.ErrGone},
		{"let go", []apitest.Reply{apitest.Fails(403,
			apitest.Fields{"type": "invalid_request_error", "code": "account_invalid"})}, "", tracking.ErrDisconnected},
		{"another one", []apitest.Reply{apitest.OK(`{"object":"payment_intent","id":"pi_2"}`)}, "", processor.ErrUnknown},
		{"no object", []apitest.Reply{apitest.OK(`[]`)}, "", processor.ErrUnknown},
		{"the permission is missing", []apitest.Reply{apitest.Fails(403,
			apitest.Fields{"type": "invalid_request_error", "message": "The key does not have the permission"})}, "",
			processor.ErrAccountRefused},
		{"the invoice is gone", []apitest.Reply{apitest.OK(pi + `}`), apitest.List(false, part("1", `"in_1"`, "")), missing},
			"", processor.ErrUnknown},
		{"the way is closed", []apitest.Reply{apitest.OK(pi + `}`), missing}, "", processor.ErrUnknown},
		{"what is no list", []apitest.Reply{apitest.OK(pi + `}`),
			apitest.OK(`{"object":"list2","data":[],"has_more":false}`)}, "", processor.ErrUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := scripted(t, apitest.NewScript(t, tt.replies...)).Object(t.Context(), "acct_1", tracking.KindPayment, "pi_1")
			apitest.WantError(t, tt.name, err, tt.err)
			if err == nil && (got.Invoice != tt.want || !got.InvoiceTold || !got.Fetched) {
				t.Errorf("got %+v, want the invoice %q", got, tt.want)
			}
		})
	}
	tracker := scripted(t, apitest.NewScript(t))
	for _, id := range []string{"", "sub_1", "pi_1/../x", "pi_"} {
		_, err := tracker.Object(t.Context(), "", tracking.KindPayment, id)
		apitest.WantError(t, id, err, tracking.ErrGone)
	}
}

func TestFinder_Connected(t *testing.T) {
	tracker, fake := selling(t, nil)
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
		apitest.WantError(t, at, tracker.Connected(t.Context(), at), tracking.ErrDisconnected)
		_, err := tracker.Object(t.Context(), at, tracking.KindSubscription, "sub_1") // is not sent
		apitest.WantError(t, at, err, tracking.ErrDisconnected)
	}
	if err := fake.Connect("acct_shop", ""); err != nil {
		t.Fatal(err)
	}
	if err := tracker.Connected(t.Context(), "acct_shop"); err != nil {
		t.Errorf("connected again: got %v", err)
	}
	_, err := tracker.Object(t.Context(), "acct_shop", tracking.KindSubscription, "sub_1")
	apitest.WantError(t, "after it", err, tracking.ErrGone)
	id, live, err := tracker.api.Own(t.Context())
	if id != stripefake.DefaultAccount || live || err != nil {
		t.Errorf("got %q, %t, %v", id, live, err)
	}
	if err := tracker.Connected(t.Context(), "shop"); err == nil {
		t.Error("what is no account is connected")
	}
}

// Secrets of intents come with every answer, and go nowhere but into Sale.ClientSecret.
func TestAsked_ShowsNoSecrets(t *testing.T) {
	s := apitest.NewScript(t, apitest.OKIntent(),
		apitest.Reply{Status: 200, Body: `{"client_secret":"pi_1_secret_Hush123"`})
	tracker := scripted(t, s)
	if _, err := tracker.api.Get(t.Context(), "", "/v1/payment_intents/pi_1",
		url.Values{"expand[]": {"latest_charge"}}); err != nil {
		t.Fatal(err)
	}
	if got := s.Requests()[0]; got.Method != http.MethodGet || got.Form.Get("expand[]") != "latest_charge" ||
		got.Header.Get("Idempotency-Key") != "" {
		t.Errorf("sent %+v", got)
	}
	_, _, err := tracker.api.Ask(t.Context(), http.MethodPost, "/v1/payment_intents/pi_1", "", "", nil)
	if apitest.WantError(t, "an answer that is cut off", err, processor.ErrUnknown); err != nil &&
		strings.Contains(err.Error(), "secret_") {
		t.Errorf("this shows a secret: %v", err)
	}
}

// TestFinder_Attached: a payment that the invoice has not made itself may be of a part of it.
func TestFinder_Attached(t *testing.T) {
	for _, tt := range []struct {
		link, invoice string
		want          bool
	}{
		{`"is_default":true,"status":"paid"`, `"status":"open"`, false},
		{`"is_default":false,"status":"paid"`, `"status":"open"`, true},
		{`"is_default":false,"status":"paid"`, `"status":"paid"`, false},
		{`"is_default":false,"status":"paid"`,
			`"status":"open","parent":{"subscription_details":{"subscription":"sub_1"}},"metadata":{"duesday_installation":"i","duesday_purchase":"` +
				testPurchase + `"}`, false},
	} {
		link := `{"object":"invoice_payment","id":"inpay_1",` + tt.link +
			`,"payment":{"type":"payment_intent","payment_intent":"pi_1"},"invoice":{"object":"invoice","id":"in_1",` + tt.invoice + `}}`
		intent := `{"object":"payment_intent","id":"pi_1","status":"succeeded"}`
		o, err := scripted(t, apitest.NewScript(t, apitest.OK(intent), apitest.List(false, link))).Object(t.Context(), "acct_1",
			tracking.KindPayment, "pi_1")
		if err != nil || o.Invoice != "in_1" || o.Attached != tt.want {
			t.Errorf("%s of %s: got %+v, %v", tt.link, tt.invoice, o, err)
		}
		listed := apitest.NewScript(t, apitest.List(false), apitest.List(false), apitest.List(false, link), apitest.List(false, intent),
			apitest.List(false))
		if err := scripted(t, listed).ListObjects(t.Context(), "acct_1", apitest.Now, func(o tracking.Object) error {
			if o.Attached != tt.want {
				t.Errorf("%s of %s, listed: got %+v", tt.link, tt.invoice, o)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}
