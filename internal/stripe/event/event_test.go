package event

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// documented are events in testdata, written by hand from the shapes that Stripe documents for
// each version, and the object that each is about. What they share is in TestDecodeEvent.
var documented = map[string]tracking.Object{
	"2020-08-27--payment_intent.succeeded": {Kind: "payment_intent", ID: "pi_1", Status: "succeeded",
		Created: api.Instant(1767225590), Amount: 1500, Currency: "USD",
		Customer: "cus_1", Invoice: "in_1", InvoiceTold: true},
	"2020-08-27--charge.refunded": {Kind: "charge", ID: "ch_1", Status: "succeeded", Created: api.Instant(1767225591),
		Tag: tagFor(tracking.Legacy), Amount: 1500, Currency: "JPY",
		Payment: "pi_1", Refunded: 800,
		Refunds: []tracking.Refund{{ID: "re_2", Amount: 500, Status: "pending"}, {ID: "re_1", Amount: 300}}},
	"2020-08-27--customer.subscription.deleted": {Kind: "subscription", ID: "sub_1", Status: "canceled",
		Created: api.Instant(1764547200), Tag: tagFor(tracking.Subscribe),
		Customer: "cus_1", Subscription: "sub_1"},
	"2022-11-15--invoice.paid": {Kind: "invoice", ID: "in_1", Status: "paid", Created: api.Instant(1767225580),
		Customer: "cus_1", Invoice: "in_1", Payment: "pi_1",
		Subscription: "sub_1"},
	"2022-11-15--invoice.created--alone": {Kind: "invoice", ID: "in_2", Status: "draft", Created: api.Instant(1767225580),
		Tag: tagFor(tracking.Product), Customer: "cus_1",
		Invoice: "in_2"},
	"2022-11-15--subscription_schedule.released": {Kind: "subscription_schedule", ID: "sub_sched_1", Status: "released",
		Created: api.Instant(1764547200),
		Tag:     tagFor(tracking.SplitPayment), Customer: "cus_1", Schedule: "sub_sched_1", Subscription: "sub_1"},
	"2022-11-15--charge.refund.updated": {Kind: "refund", ID: "re_1", Status: "failed", Created: api.Instant(1767225595),
		Amount: 500, Currency: "EUR", Payment: "pi_1",
		Refunds: []tracking.Refund{{ID: "re_1", Amount: 500, Status: "failed"}}},
	"2022-11-15--balance.available": {Kind: "balance"},
	"2024-04-10--invoice.payment_failed--expanded": {Kind: "invoice", ID: "in_1", Status: "open",
		Created: api.Instant(1767225580), Tag: tagFor(tracking.Subscribe),
		Customer: "cus_1", Invoice: "in_1", Payment: "pi_1", Subscription: "sub_1"},
	"2024-04-10--payment_intent.payment_failed": {Kind: "payment_intent", ID: "pi_1", Status: "requires_payment_method",
		Created: api.Instant(1767225590),
		Tag:     tracking.Tag{Installation: "inst", Charge: true, ChargeAccount: "acme", ChargeSubscription: "gold"},
		Failed:  true, Code: "lost_card", Amount: 1299, Currency: "GBP", Customer: "cus_1", InvoiceTold: true},
	"2024-04-10--charge.dispute.created": {Kind: "dispute", ID: "dp_1", Status: "warning_needs_response",
		Created: api.Instant(1767225599), Code: "product_not_received",
		Amount: 1500, Currency: "USD"},
	"2025-03-31.basil--invoice.paid--payments": {Kind: "invoice", ID: "in_1", Status: "paid",
		Created: api.Instant(1767225580), Tag: tagFor(tracking.Subscribe),
		Customer: "cus_1", Invoice: "in_1", Payment: "pi_paid", Subscription: "sub_1"},
	"2025-03-31.basil--invoice_payment.paid--expanded": {Kind: "invoice_payment", ID: "inpay_1", Status: "paid",
		Created: api.Instant(1767225594), Invoice: "in_1", Payment: "pi_1"},
	"2025-09-30.clover--payment_intent.processing": {Kind: "payment_intent", ID: "pi_1", Status: "processing",
		Created: api.Instant(1767225590), Tag: tagFor(tracking.Product),
		Amount: 1500, Currency: "EUR"},
	"2026-08-26.dahlia--customer.subscription.deleted": {Kind: "subscription", ID: "sub_1", Status: "canceled",
		Created: api.Instant(1764547200),
		Tag:     tagFor(tracking.SplitPayment), Code: "payment_failed", Customer: "cus_1", Subscription: "sub_1",
		Schedule: "sub_sched_1"},
	"2026-08-26.dahlia--account.application.deauthorized": {Kind: "application", ID: "ca_1"},
	"no-version--invoice.upcoming": {Kind: "invoice", Status: "draft",
		Created: api.Instant(1767225580), Customer: "cus_1", Subscription: "sub_1"},
	"thin--payment_intent.succeeded": {Kind: "payment_intent", ID: "pi_1", Thin: true},
}

func TestDecodeEvent(t *testing.T) {
	for name, body := range documentedBodies(t) {
		version, typ, _ := strings.Cut(name, "--")
		typ, _, _ = strings.Cut(typ, "--")
		want := tracking.Event{ID: "evt_1Duesday", Type: typ, APIVersion: version, Created: api.Instant(1767225600),
			Object:       documented[name],
			Subscription: documented[name].Subscription}
		switch version {
		case "thin":
			want.APIVersion, want.ToldType, want.Twin = "", "v1."+typ, "evt_1Snapshot"
			want.Created = want.Created.Add(250 * time.Millisecond)
		case "no-version":
			want.APIVersion = ""
		}
		if strings.Contains(string(body), "acct_1Shop") {
			want.StripeAccount, want.Live = "acct_1Shop", true
		}
		got, err := Decode(body)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, want)
		}
	}
}

// TestDecodeEvent_thin: which account, type, object and twin a thin event names.
func TestDecodeEvent_thin(t *testing.T) {
	const most = `{"id":"evt_test_65R","object":"v2.core.event","created":"2026-01-31T12:00:00.5Z","livemode":false,`
	about := func(kind, id string) tracking.Object { return tracking.Object{Kind: kind, ID: id, Thin: true} }
	for rest, want := range map[string]tracking.Event{
		`"type":"v1.customer.subscription.updated","related_object":{"url":"/v1/anywhere","type":"subscription","id":"sub_1"},"context":"acct_1","snapshot_event":"evt_2"`: {
			Type: "customer.subscription.updated", ToldType: "v1.customer.subscription.updated", Twin: "evt_2",
			StripeAccount: "acct_1", Subscription: "sub_1", Object: about("subscription", "sub_1")},
		`"type":"v1.account.application.deauthorized","related_object":null,"context":"acct_1","snapshot_event":null`: {
			Type: "account.application.deauthorized", ToldType: "v1.account.application.deauthorized",
			StripeAccount: "acct_1", Object: about("", "")},
		`"type":"v2.core.account[identity].updated","related_object":{"id":"acct_2","type":"v2.core.account"},"context":"acct_platform/acct_2"`: {
			Type: "v2.core.account[identity].updated", StripeAccount: "acct_2", Object: about("v2.core.account", "acct_2")},
		`"type":"v1.refund.created","related_object":{"id":"../x","type":"refund"},"context":"org_1","snapshot_event":"../y"`: {
			Type: "refund.created", ToldType: "v1.refund.created", StripeAccount: "org_1", Object: about("refund", "")},
		`"type":"v1.refund.created","related_object":[],"context":"","snapshot_event":7`: {
			Type: "refund.created", ToldType: "v1.refund.created", Object: about("", "")},
	} {
		want.ID, want.Created = "evt_test_65R", time.Date(2026, 1, 31, 12, 0, 0, 500_000_000, time.UTC)
		if got, err := Decode([]byte(most + rest + "}")); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", rest, err, got, want)
		}
	}
}

func documentedBodies(t testing.TB) map[string][]byte {
	t.Helper()
	bodies := map[string][]byte{}
	paths, err := filepath.Glob("testdata/events/*.json")
	if err != nil || len(paths) != len(documented) {
		t.Fatalf("%d files, %v; want %d", len(paths), err, len(documented))
	}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bodies[strings.TrimSuffix(filepath.Base(path), ".json")] = body
	}
	return bodies
}

// eventWith is a good event with this object.
func eventWith(object string) string {
	return `{"id":"evt_1","object":"event","type":"a.b","created":5,"livemode":false,"api_version":"` +
		stripefake.NewestVersion + `","data":{"object":` + object + `}}`
}

func TestDecodeEvent_refuses(t *testing.T) {
	change := func(from, to string) string {
		good := eventWith(`{"object":"refund","metadata":{"secret":"MARK"}}`)
		if strings.Count(good, from) != 1 {
			t.Fatalf("%q is in it %d times", from, strings.Count(good, from))
		}
		return strings.Replace(good, from, to, 1)
	}
	thin := `{"id":"evt_1","object":"v2.core.event","type":"v2.a","created":"2026-01-31T12:00:00Z"}`
	if e, err := Decode([]byte(thin)); err != nil || e.Live || e.StripeAccount != "" || e.Object.Kind != "" {
		t.Errorf("a thin event that is about nothing: %+v, %v", e, err)
	}
	for body, says := range map[string]string{
		"": "must be a JSON object", "null": "must be a JSON object", "[]": "must be a JSON object", `"evt_1"`: "must be a JSON object",
		"\xef\xbb\xbf{}": "must be a JSON object",
		"{}":             "object must be", "{": "incomplete", `{"a":1,}`: "incomplete", `{"a" 1}`: "incomplete",
		`{a:1}`: "incomplete", `{"a":01}`: "incomplete",
		eventWith(`{}`) + "x": "incomplete", eventWith(`{}`) + "{}": "incomplete", eventWith(`{}`)[:80]: "incomplete",
		eventWith(`{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"):           "nested too deep",
		eventWith(`{"a":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000) + "}"): "nested too deep",
		eventWith(`{"a":"` + "\n" + `"}`): "incomplete", eventWith(`{"a":"\x"}`): "incomplete",
		eventWith(`{"a":"\u12g4"}`): "incomplete", eventWith(`{"a":-}`): "incomplete",
		change(`"event"`, `"MARK"`): "object must be", change(`"event"`, `{"MARK":1}`): "object must be",
		change(`"event"`, `"list"`): "object must be",
		change(`"evt_1"`, `"MARK"`): "id must be evt_", change(`"evt_1"`, `7`): "id must be",
		change(`"evt_1"`, `"evt_"`): "id must be", change(`"evt_1"`, `"evt_a/b"`): "id must be",
		change(`"evt_1"`, `"evt_`+strings.Repeat("a", 300)+`"`): "id must be",
		change(`"a.b"`, `null`):                                 "type must be", change(`"a.b"`, `"MARK"`): "type must be",
		change(`"a.b"`, `"a b"`): "type must be", change(`"a.b"`, `""`): "type must be",
		change(`:5,`, `:0,`): "created must be Unix", change(`:5,`, `:-5,`): "created must be",
		change(`:5,`, `:5.5,`): "created must be", change(`:5,`, `:1e99999,`): "created must be",
		change(`:5,`, `:99999999999999999999999,`): "created must be", change(`:5,`, `:"MARK",`): "created must be",
		change(`:5,`, `:253402300800,`): "created must be",
		change(`false`, `"MARK"`):       "livemode must be", change(`"livemode":false,`, ``): "livemode must be",
		change(`false`, `null`):                 "livemode must be",
		change(`"id"`, `"account":"MARK","id"`): "account must be", change(`"id"`, `"account":7,"id"`): "account must be",
		change(`"id"`, `"account":"","id"`):   "account must be",
		change(`{"object":{`, `{"objects":{`): "data.object must be", change(`"data"`, `"date"`): "data.object must be",
		eventWith(`null`): "data.object must be", eventWith(`[{}]`): "data.object must be",
		strings.Replace(thin, "2026", "MARK", 1): "created must be a time",
		strings.Replace(thin, "v2.a", "v1.a", 1): "livemode must be",
	} {
		_, err := Decode([]byte(body))
		if !errors.Is(err, tracking.ErrBody) || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "MARK") {
			t.Errorf("%.120s: got %v, want %q", body, err, says)
		}
	}
	whole := eventWith(`{"a":"\u00e4\n","b":[true,false,null,-1.5e+3,{"c":""}]}`)
	for cut := range len(whole) {
		if _, err := Decode([]byte(whole[:cut])); !errors.Is(err, tracking.ErrBody) {
			t.Errorf("cut off behind %s: got %v", whole[:cut], err)
		}
	}
	for _, fine := range []string{whole, change(`"id"`, `"account":null,"id"`), change(`"a.b"`, "\t\"a.b\"\r\n "),
		change(`"id"`, `"id":{},"\u0069d"`)} {
		if e, err := Decode([]byte(fine)); err != nil || e.ID != "evt_1" || e.StripeAccount != "" {
			t.Errorf("%s: got %+v, %v", fine, e, err)
		}
	}
}

// TestDecodeEvent_tolerates: a member of the object that cannot be used is zero, and the rest
// is there.
func TestDecodeEvent_tolerates(t *testing.T) {
	const id = `"object":"payment_intent","id":"pi_1",`
	base := tracking.Object{Kind: "payment_intent", ID: "pi_1"}
	with := func(change func(o *tracking.Object)) tracking.Object {
		o := base
		change(&o)
		return o
	}
	for object, want := range map[string]tracking.Object{
		`{}`: {}, `{"object":7,"id":{"id":"pi_1"}}`: {}, `{"object":"a b","id":"../x"}`: {},
		`{` + id + `"amount":"5","currency":"euro","status":5,"created":"x","customer":[],"invoice":7,"metadata":[1],"last_payment_error":"x"}`:                                base,
		`{` + id + `"amount":9223372036854775808,"currency":"e1r","created":-1,"customer":{"id":7},"metadata":"x","last_payment_error":[{"code":"x"}],"invoice":{"a":"in_1"}}`: base,
		`{` + id + `"amount":922337203685477570,"currency":"eur"}`:                                                                        with(func(o *tracking.Object) { o.Amount, o.Currency = 922337203685477570, "EUR" }),
		`{` + id + `"amount":-5,"metadata":null}`:                                                                                         with(func(o *tracking.Object) { o.Amount = -5 }),
		`{` + id + `"amount":5.0,"invoice":null}`:                                                                                         with(func(o *tracking.Object) { o.InvoiceTold = true }),
		`{` + id + `"invoice":"in_1","invoice":null}`:                                                                                     with(func(o *tracking.Object) { o.InvoiceTold = true }),
		`{` + id + `"status":"succeeded","last_payment_error":{"code":"x"}}`:                                                              with(func(o *tracking.Object) { o.Status = "succeeded" }),
		`{` + id + `"status":"canceled","last_payment_error":{"code":"x"}}`:                                                               with(func(o *tracking.Object) { o.Status, o.Failed, o.Code = "canceled", true, "x" }),
		`{` + id + `"last_payment_error":{}}`:                                                                                             with(func(o *tracking.Object) { o.Failed = true }),
		`{"object":"charge","refunds":{"data":[{"id":"re_1"}],"data":[{"status":"x"},7,{"id":"re_2"}]}}`:                                  {Kind: "charge", Refunds: []tracking.Refund{{ID: "re_2"}}},
		`{"status":"a\u00e4","id":"pi_\u0031","customer":{"metadata":{"id":"x"},"id":"cus_1","a":{"id":"no"}},"object":"payment_intent"}`: with(func(o *tracking.Object) { o.Customer = "cus_1" }),
	} {
		e, err := Decode([]byte(eventWith(object)))
		if err != nil || !reflect.DeepEqual(e.Object, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", object, err, e.Object, want)
		}
	}
	for _, value := range []string{"{}", "[]", `{"a":[{}]}`} {
		many := strings.Repeat(value+",", 2*maxNesting)
		if e, err := Decode([]byte(eventWith(`{"many":[` + many + `0],` + id + `"a":1}`))); err != nil ||
			!reflect.DeepEqual(e.Object, base) {
			t.Errorf("many of %s: %+v, %v", value, e.Object, err)
		}
	}
	failed := strings.Replace(eventWith(`{`+id+`"a":1}`), "a.b", "payment_intent.payment_failed", 1)
	if e, err := Decode([]byte(failed)); err != nil || !e.Object.Failed {
		t.Errorf("its type says that it failed: got %+v, %v", e, err)
	}
}

func TestObjectOf(t *testing.T) {
	got, err := DecodeObject([]byte(` {"object":"refund","id":"re_1","amount":5,"payment_intent":"pi_1"} `))
	want := tracking.Object{Kind: "refund", ID: "re_1", Amount: 5, Payment: "pi_1",
		Refunds: []tracking.Refund{{ID: "re_1", Amount: 5}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "null", "[]", `{"id":"re_1"}`, `{"object":"refund"`, `{"object":"refund"} {}`,
		"<html>"} {
		if o, err := DecodeObject([]byte(bad)); !errors.Is(err, tracking.ErrBody) {
			t.Errorf("%s: got %+v, %v", bad, o, err)
		}
	}
}

func TestTag(t *testing.T) {
	const installed = `"duesday_installation":"inst"`
	for metadata, want := range map[string]tracking.Tag{
		`{}`: {}, `null`: {}, `{"duesday_purchase":"` + eventPurchase + `","duesday_purchase_kind":"legacy"}`: {},
		`{` + installed + `}`: {Installation: "inst"},
		`{` + installed + `,"duesday_purchase":"` + strings.ToUpper(eventPurchase) +
			`"}`: {Installation: "inst", Purchase: eventPurchase},
		`{` + installed + `,"duesday_purchase_kind":"gift","duesday_purchase":"` + eventPurchase +
			`","duesday_subscription":"s"}`: {Installation: "inst", Purchase: eventPurchase},
		`{` + installed + `,"duesday_purchase":"x","duesday_purchase_kind":"legacy","duesday_subscription":"s"}`: {Installation: "inst"},
		`{` + installed + `,"duesday_purchase":"` + strings.Replace(eventPurchase, "-", "0", 1) +
			`"}`: {Installation: "inst"},
		`{` + installed + `,"duesday_purchase":"` + strings.Replace(eventPurchase, "0", "g", 1) +
			`"}`: {Installation: "inst"},
		`{"duesday_subscription":"gold","duesday_account":"acme",` + installed +
			`}`: {Installation: "inst", Charge: true, ChargeAccount: "acme", ChargeSubscription: "gold"},
		`{"duesday_subscription":"gold","duesday_account":"acme"}`: {},
	} {
		o, err := DecodeObject([]byte(`{"metadata":` + metadata + `,"object":"refund"}`))
		if err != nil || o.Tag != want {
			t.Errorf("%s: got %+v, %v, want %+v", metadata, o.Tag, err, want)
		}
	}
}

// TestDecode_PaymentRecord: an invoice paid by a record of a payment outside Stripe has no payment intent.
func TestDecode_PaymentRecord(t *testing.T) {
	o, err := DecodeObject([]byte(`{"id":"in_1","object":"invoice","status":"paid","amount_paid_off_stripe":1500,
		"payments":{"object":"list","data":[{"id":"inpay_1","object":"invoice_payment","is_default":true,"status":"paid",
		"payment":{"type":"payment_record","payment_record":"prec_1"}}]}}`))
	if err != nil || o.Payment != "" || o.Status != "paid" || o.Invoice != "in_1" {
		t.Errorf("got %+v, %v", o, err)
	}
}

// TestDecode_PartPaid: an open invoice is of the payment that it has made, though another one is paid.
func TestDecode_PartPaid(t *testing.T) {
	for status, want := range map[string]string{"open": "pi_own", "paid": "pi_part"} {
		o, err := DecodeObject([]byte(`{"id":"in_1","object":"invoice","payments":{"object":"list","data":[
			{"object":"invoice_payment","is_default":false,"status":"paid","payment":{"payment_intent":"pi_part"}},
			{"object":"invoice_payment","is_default":true,"status":"open","payment":{"payment_intent":"pi_own"}}]},
			"status":"` + status + `"}`))
		if err != nil || o.Payment != want {
			t.Errorf("%s: got %+v, %v, want %s", status, o, err, want)
		}
	}
}
