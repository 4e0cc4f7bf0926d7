package stripetest

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// A call is a request, and a part of the problem that it has ("" is none).
type call struct {
	method, path, params string
	want                 string
}

// calls are requests that stripe-mock judges as this package does.
func calls() []call {
	return []call{
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&customer=cus_1&payment_method=pm_1&" +
			"metadata[duesday_period]=2026-09&description=x&confirm=false", ""},
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&payment_method_types[]=card&" +
			"payment_method_types[]=link&expand[0]=latest_charge", ""},
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&confirm=true&off_session=true&" +
			"payment_method_options[card][request_three_d_secure]=automatic", ""},
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&mandate_data[customer_acceptance][type]=offline&" +
			"application_fee_amount=5&off_session=recurring&confirm=true", ""},
		{"POST", "/v1/payment_intents", "amount=1000", "parameter currency is missing"},
		{"POST", "/v1/payment_intents", "amount=ten&currency=usd", `parameter amount is "ten", no integer`},
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&idempotency_key=x", "parameter idempotency_key is unknown"},
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&capture_method=later",
			`parameter capture_method is "later", not one of "automatic"`},
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&metadata=x", "parameter metadata is a text"},
		{"POST", "/v1/payment_intents/pi_1/confirm", "payment_method=pm_1&off_session=true&error_on_requires_action=true",
			""},
		{"POST", "/v1/payment_intents/pi_1/confirm", "payment_method=pm_1&off_session=perhaps", "parameter off_session is"},
		{"POST", "/v1/payment_intents/pi_1/confirm", "amount=5", "parameter amount is unknown"},
		{"POST", "/v1/payment_intents/pi_1/cancel", "cancellation_reason=abandoned", ""},
		{"POST", "/v1/payment_intents/pi_1/cancel", "cancellation_reason=bored", "parameter cancellation_reason is"},
		{"GET", "/v1/payment_intents", "customer=cus_1&created[gte]=1700000000&limit=100&starting_after=pi_1", ""},
		{"GET", "/v1/payment_intents", "created=1700000000", ""},
		{"GET", "/v1/payment_intents", "status=succeeded", "parameter status is unknown"},
		{"GET", "/v1/payment_intents/pi_1", "expand[]=latest_charge", ""},
		{"POST", "/v1/customers", "email=a@example.com&name=A&metadata[a]=b&invoice_settings[default_payment_method]=pm_1",
			""},
		{"POST", "/v1/payment_methods/pm_card_visa/attach", "customer=cus_1", ""},
		{"POST", "/v1/refunds", "payment_intent=pi_1&amount=5&reason=requested_by_customer", ""},
		{"POST", "/v1/refunds", "payment_intent=pi_1&reason=sorry", "parameter reason is"},
		{"POST", "/v1/checkout/sessions", "mode=setup&currency=usd&customer=cus_1&success_url=https://example.com/done&" +
			"payment_method_types[0]=card&setup_intent_data[metadata][a]=b", ""},
		{"POST", "/v1/checkout/sessions", "mode=attach", "parameter mode is"},
		{"POST", "/v1/setup_intents", "customer=cus_1&usage=off_session&automatic_payment_methods[enabled]=true", ""},
		{"POST", "/v1/setup_intents", "usage=always", "parameter usage is"},
		{"POST", "/v1/prices", "currency=usd&unit_amount=500&recurring[interval]=month&product_data[name]=Gold", ""},
		{"POST", "/v1/prices", "currency=usd&unit_amount=500&recurring[interval_count]=2&product=p",
			"parameter recurring[interval] is missing"},
		{"POST", "/v1/invoices", "customer=cus_1&auto_advance=false&collection_method=charge_automatically", ""},
		{"POST", "/v1/invoices", "customer=cus_1&auto_advance=no", "parameter auto_advance is"},
		{"POST", "/v1/invoiceitems", "customer=cus_1&amount=-5&currency=usd&invoice=in_1&period[start]=1&period[end]=2", ""},
		{"POST", "/v1/invoiceitems", "customer=cus_1&period[start]=1", "parameter period[end] is missing"},
		{"POST", "/v1/subscriptions", "customer=cus_1&items[0][price]=price_1&items[0][quantity]=2&" +
			"items[1][price]=price_2&billing_cycle_anchor=1800000000&proration_behavior=none", ""},
		{"DELETE", "/v1/subscriptions/sub_1", "invoice_now=false&prorate=false", ""},
		{"POST", "/v1/subscription_schedules", "customer=cus_1&start_date=now&phases[0][items][0][price]=price_1&" +
			"phases[0][duration][interval]=month&end_behavior=release", ""},
		{"POST", "/v1/subscription_schedules", "customer=cus_1&phases[0][currency]=usd",
			"parameter phases[0][items] is missing"},
		{"GET", "/v1/events", "created[gt]=1700000000&types[]=charge.refunded&types[]=charge.dispute.created", ""},
		{"POST", "/v1/webhook_endpoints",
			"url=https://example.com/hook&enabled_events[]=charge.refunded&enabled_events[]=*", ""},
		{"POST", "/v1/webhook_endpoints", "url=https://example.com/hook&enabled_events[]=charge.sneezed",
			"parameter enabled_events[0] is"},
		{"POST", "/v1/webhook_endpoints", "enabled_events[]=*", "parameter url is missing"},
		{"GET", "/v1/accounts/acct_1", "", ""},
		{"GET", "/v1/account", "", ""},
		{"GET", "/v1/disputes", "payment_intent=pi_1", ""},
		{"GET", "/v1/dispute", "", "no such path"},
		{"PUT", "/v1/disputes/dp_1", "", "not with this method"},
	}
}

func (c call) values(t *testing.T) (query, form url.Values) {
	t.Helper()
	values, err := url.ParseQuery(c.params)
	if err != nil {
		t.Fatal(err)
	}
	if c.method == "GET" {
		return values, nil
	}
	return nil, values
}

func (c call) check(t *testing.T) {
	t.Helper()
	query, form := c.values(t)
	got := Load(t).CheckRequest(c.method, c.path, query, form)
	switch {
	case c.want == "" && len(got) > 0:
		t.Errorf("%s %s %s: got %q, want no problem", c.method, c.path, c.params, got)
	case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
		t.Errorf("%s %s %s: got %q, want %q alone", c.method, c.path, c.params, got, c.want)
	}
}

// TestBothJudgesAgree: on these requests the specification, read by this package, says what
// stripe-mock says.
func TestBothJudgesAgree(t *testing.T) {
	base := Mock(t)
	for _, c := range calls() {
		c.check(t)
		query, form := c.values(t)
		q, err := http.NewRequestWithContext(t.Context(), c.method, base+c.path+"?"+query.Encode(),
			strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer sk_test_123")
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if accepted := response.StatusCode == http.StatusOK; accepted != (c.want == "") {
			t.Errorf("%s %s %s: stripe-mock says %d; want problem %q\n%s", c.method, c.path, c.params, response.StatusCode,
				c.want, said)
		}
	}
}

// TestStricterThanTheMock: what stripe-mock lets through and Stripe refuses, such as names
// that it does not know below the first level.
func TestStricterThanTheMock(t *testing.T) {
	intent := "amount=1000&currency=usd&"
	long := strings.Repeat("ü", 501)
	var many []string
	for i := range 51 {
		many = append(many, "metadata[k"+strings.Repeat("x", i%39)+string(rune('a'+i/39))+"]=v")
	}
	for _, c := range []call{
		{"POST", "/v1/customers", "invoice_settings[default_method]=pm_1", "parameter invoice_settings[default_method] " +
			"is unknown"},
		{"POST", "/v1/subscriptions", "customer=cus_1&items[0][price_id]=price_1", "parameter items[0][price_id] is unknown"},
		{"GET", "/v1/events", "created[since]=1700000000", "parameter created[since] is unknown"},
		{"POST", "/v1/payment_intents", "amount=1000&currency=usd&automatic_payment_methods[enabled]=true&" +
			"automatic_payment_methods[on]=true", "parameter automatic_payment_methods[on] is unknown"},
		{"POST", "/v1/payment_intents", intent + "customer=", "parameter customer is empty"},
		{"POST", "/v1/payment_intents", intent + "metadata[a]=", ""}, // removes the key
		{"POST", "/v1/payment_intents", intent + "metadata[a]=" + long, "parameter metadata[a] has more than 500"},
		{"POST", "/v1/payment_intents", intent + "metadata[a]=" + long[:1000], ""},
		{"POST", "/v1/payment_intents", intent + "metadata[" + strings.Repeat("k", 41) + "]=v", "key of more than 40"},
		{"POST", "/v1/payment_intents", intent + "metadata[a][b]=v", "metadata is flat"},
		{"POST", "/v1/payment_intents", intent + strings.Join(many, "&"), "parameter metadata has 51 keys"},
		{"POST", "/v1/payment_intents", intent + strings.Join(many[1:], "&"), ""},
		{"POST", "/v1/payment_intents", intent + "description=" + strings.Repeat("x", 1001),
			"parameter description has 1001 characters"},
		{"POST", "/v1/payment_intents", "amount=1000&currency=USD", "parameter currency is"},
		{"POST", "/v1/payment_intents", intent + "shipping=", "parameter shipping is"},
		{"POST", "/v1/payment_intents/pi_1", "shipping=", ""}, // unsets it
		{"POST", "/v1/payment_intents", "amount=1e3&currency=usd", "no integer"},
		{"POST", "/v1/payment_intents", intent + "amount[]=1", "parameter amount[]: given in two ways"},
		{"POST", "/v1/payment_intents", intent + "confirm=true&confirm=true", "given 2 times"},
		{"POST", "/v1/payment_intents", intent + "shipping[name=x", "brackets"},
		{"POST", "/v1/payment_intents", intent + "payment_method_types=card", "parameter payment_method_types is not a list"},
		{"POST", "/v1/payment_intents", intent + "payment_method_types[x]=card",
			"parameter payment_method_types is not a list"},
		{"POST", "/v1/payment_intents", intent + "payment_method_types[01]=card",
			"parameter payment_method_types is not a list"},
		{"POST", "/v1/subscriptions", "customer=c&items[7][price]=p&items[5][x]=y&items[10][price]=q",
			"parameter items[5][x] is unknown"},
		{"POST", "/v1/prices", "currency=usd&unit_amount_decimal=0.5x&product=p", "no decimal"},
		{"GET", "/v1/payment_intents", "limit=101", "parameter limit: 101 is not from 1 to 100"},
		{"GET", "/v1/payment_intents", "limit=0", "parameter limit"},
		{"GET", "/v1/payment_intents", "expand[]=data.customer&expand[]=data.latest_charge.balance_transaction", ""},
		{"GET", "/v1/payment_intents", "expand[]=customer", `"customer" cannot be expanded`},
		{"GET", "/v1/payment_intents", "expand[]=data", `"data" cannot be expanded`},
		{"GET", "/v1/payment_intents/pi_1", "expand[]=charges", "cannot be expanded"},
		{"GET", "/v1/payment_intents/pi_1", "expand[]=amount", "cannot be expanded"},
		{"GET", "/v1/payment_intents/pi_1", "expand[]=last_payment_error", "cannot be expanded"},
		{"GET", "/v1/payment_intents/pi_1", "expand[]=a.b.c.d.e", "more than 4 deep"},
		{"GET", "/v1/invoices/in_1", "expand[]=payments.data.payment.payment_intent", ""},
		{"GET", "/v1/subscriptions/sub_1", "expand[]=latest_invoice.payments", ""},
		{"POST", "/v1/invoices/in_1/finalize", "expand[]=confirmation_secret", ""},
		{"GET", "/v1/subscriptions/sub_1", "expand[]=latest_invoice.confirmation_secret", ""},
		{"GET", "/v1/invoices/in_1", "expand[]=status_transitions", "cannot be expanded"},
		{"GET", "/v1/payment_intents/pi_1", "expand[]=confirmation_secret", "cannot be expanded"},
		{"GET", "/v1/customers/cus_1", "expand[]=invoice_settings.default_payment_method&expand[]=sources", ""},
	} {
		c.check(t)
	}
}

func TestParametersGoWhereStripeLooks(t *testing.T) {
	spec := Load(t)
	some := url.Values{"customer": {"cus_1"}}
	if got := spec.CheckRequest("POST", "/v1/setup_intents", some, url.Values{"usage": {"x"}}); len(got) != 2 ||
		got[0] != "parameters of a POST belong into its body" {
		t.Errorf("a POST with a query: %q", got)
	}
	if got := spec.CheckRequest("GET", "/v1/setup_intents", nil, some); !slices.Equal(got,
		[]string{"parameter customer is unknown to Stripe"}) {
		t.Errorf("a GET with a body: %q", got)
	}
	for _, where := range [][2]url.Values{{{"prorate": {"true"}}, nil}, {nil, {"prorate": {"true"}}}} {
		if got := spec.CheckRequest("DELETE", "/v1/subscriptions/sub_1", where[0], where[1]); got != nil {
			t.Errorf("a DELETE: %q", got)
		}
	}
}

func TestFixedPathsGoBeforeNames(t *testing.T) {
	spec := Load(t)
	for path, want := range map[string]string{
		"/v1/customers/search": "/v1/customers/search",
		"/v1/customers/cus_1":  "/v1/customers/{customer}",
		"/v1/customers/":       "/v1/customers/",
		// Only a POST is known to this one.
		"/v1/invoices/create_preview": "/v1/invoices/{invoice}",
	} {
		if _, got, _ := spec.find("GET", path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if _, template, problem := spec.find("PATCH",
		"/v1/customers/cus_1/sources/card_1"); problem != "Stripe knows the path, but not with this method" {
		t.Errorf("got %q %q", template, problem)
	}
}
