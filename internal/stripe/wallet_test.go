package stripe

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
)

func cardFields(id, customer string, changes ...apitest.Fields) string {
	f := apitest.Fields{"id": id, "object": "payment_method", "type": "card", "livemode": false, "created": 3000,
		"card": apitest.Fields{"brand": "visa", "last4": "4242", "exp_month": 12, "exp_year": 2030}}
	if customer != "" {
		f["customer"] = customer
	}
	return apitest.Object(f, changes...)
}

func customerFields(changes ...apitest.Fields) apitest.Reply {
	return apitest.OK(apitest.Object(apitest.Fields{"id": "cus_1", "object": "customer", "livemode": false}, changes...))
}

var wantCard = processor.Card{Method: "pm_1", Brand: "visa", Last4: "4242",
	Expires: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), Made: api.Instant(3000)}

func TestMakeCustomer(t *testing.T) {
	s := apitest.NewScript(t, customerFields())
	got, err := scripted(t, s).MakeCustomer(t.Context(),
		processor.CustomerRequest{Key: "dd_c", At: "acct_1", Installation: "inst", Account: "acme", Email: "a@example.com"})
	if err != nil || got != "cus_1" {
		t.Errorf("got %q, %v", got, err)
	}
	want := url.Values{"email": {"a@example.com"}, "metadata[duesday_installation]": {"inst"},
		"metadata[duesday_account]": {"acme"}}
	if r := s.Requests()[0]; r.Path != "/v1/customers" || r.Form.Encode() != want.Encode() ||
		r.Header.Get("Idempotency-Key") != "dd_c" || r.Header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("sent %s %v %v", r.Path, r.Form, r.Header)
	}
}

func TestAttach(t *testing.T) {
	notFound := apitest.Fails(404,
		apitest.Fields{"type": "invalid_request_error", "code": "resource_missing", "param": "id"})
	byDefault := customerFields(apitest.Fields{"invoice_settings": apitest.Fields{"default_payment_method": "pm_1"}})
	tests := []struct {
		name, method string
		replies      []apitest.Reply
		err          error
		sends        string
	}{
		{"the customer's already", "pm_1", []apitest.Reply{customerFields(), apitest.OK(cardFields("pm_1", "cus_1"))}, nil,
			"GET GET"},
		{"nobody's", "pm_1", []apitest.Reply{customerFields(), apitest.OK(cardFields("pm_1", "")),
			apitest.OK(cardFields("pm_1", "cus_1"))}, nil, "GET GET POST"},
		{"another's", "pm_1", []apitest.Reply{customerFields(), apitest.OK(cardFields("pm_1", "cus_2"))}, processor.ErrInvalid,
			"GET GET"},
		{"declined when attached", "pm_1",
			[]apitest.Reply{customerFields(), apitest.OK(cardFields("pm_1", "")),
				apitest.Fails(402, cardError("card_declined", "", "", "", nil))}, processor.ErrInvalid, "GET GET POST"},
		{"the default", "", []apitest.Reply{byDefault, apitest.OK(cardFields("pm_1", "cus_1"))}, nil, "GET GET"},
		{"the newest", "", []apitest.Reply{customerFields(),
			apitest.List(true, cardFields("pm_0", "cus_1", apitest.Fields{"created": 9})),
			apitest.List(false, cardFields("pm_1", "cus_1"))}, nil, "GET GET GET"},
		{"no card", "", []apitest.Reply{customerFields(), apitest.List(false)}, processor.ErrInvalid, "GET GET"},
		{"no customer", "pm_1", []apitest.Reply{notFound}, processor.ErrInvalid, "GET"},
		{"a deleted customer", "pm_1", []apitest.Reply{customerFields(apitest.Fields{"deleted": true})}, processor.ErrInvalid,
			"GET"},
		{"no method", "pm_1", []apitest.Reply{customerFields(), notFound}, processor.ErrInvalid, "GET GET"},
		{"what is no method", "../x", []apitest.Reply{customerFields()}, processor.ErrInvalid, "GET"},
		{"live", "pm_1", []apitest.Reply{customerFields(),
			apitest.OK(cardFields("pm_1", "cus_1", apitest.Fields{"livemode": true}))}, processor.ErrRefused, "GET GET"},
		{"no answer", "pm_1", []apitest.Reply{customerFields(), apitest.OK(cardFields("pm_1", "")), {}}, processor.ErrUnknown,
			"GET GET POST"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.NewScript(t, tt.replies...)
			got, err := scripted(t, s).Attach(t.Context(), processor.Payer{At: "acct_1", Customer: "cus_1"}, tt.method)
			if !errors.Is(err, tt.err) || err == nil && got != wantCard {
				t.Errorf("got %+v, %v", got, err)
			}
			var sends []string
			for _, r := range s.Requests() {
				if sends = append(sends, r.Method); r.Header.Get("Stripe-Account") != "acct_1" {
					t.Errorf("%s went to the account %q", r.Path, r.Header.Get("Stripe-Account"))
				}
			}
			if strings.Join(sends, " ") != tt.sends {
				t.Errorf("sent %v, want %s", sends, tt.sends)
			}
		})
	}
	if _, err := scripted(t, apitest.NewScript(t)).Attach(t.Context(), processor.Payer{}, "pm_1"); !errors.Is(err,
		processor.ErrInvalid) {
		t.Errorf("without a customer: got %v", err)
	}
}

func TestCard(t *testing.T) {
	sepa := apitest.Object(apitest.Fields{"id": "pm_2", "object": "payment_method", "type": "sepa_debit", "created": 1,
		"sepa_debit": apitest.Fields{"last4": "3000"}})
	s := apitest.NewScript(t, apitest.OK(cardFields("pm_1", "cus_1")), apitest.OK(sepa), apitest.OK(`{}`))
	p := scripted(t, s)
	if got, err := p.Card(t.Context(), "", "pm_1"); err != nil || got != wantCard {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := p.Card(t.Context(), "", "pm_2"); err != nil ||
		got != (processor.Card{Method: "pm_2", Brand: "sepa_debit", Last4: "3000", Made: api.Instant(1)}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := p.Card(t.Context(), "", "pm_3"); err == nil {
		t.Errorf("of nothing: got %+v", got)
	}
	_, err := p.Card(t.Context(), "", "4242424242424242")
	apitest.WantError(t, "a card's number", err, processor.ErrInvalid)
}

func TestCardLink(t *testing.T) {
	r := processor.LinkRequest{Key: "dd_l", Payer: processor.Payer{At: "acct_1", Customer: "cus_1"}, Installation: "inst",
		Account: "acme", Subscription: "sub", Currency: "EUR"}
	if _, err := scripted(t, apitest.NewScript(t)).CardLink(t.Context(), r); !errors.Is(err, processor.ErrInvalid) ||
		!strings.Contains(err.Error(), "return_url") {
		t.Errorf("without an address to come back to: got %v", err)
	}
	s := apitest.NewScript(t, apitest.OK(`{"id":"cs_1","object":"checkout.session","url":"https://checkout.example/c","expires_at":8000}`), apitest.OK(`{}`))
	p := scripted(t, s, withPage)
	got, err := p.CardLink(t.Context(), r)
	if err != nil || got != (processor.CardLink{URL: "https://checkout.example/c", Expires: api.Instant(8000)}) {
		t.Errorf("got %+v, %v", got, err)
	}
	want := url.Values{"mode": {"setup"}, "customer": {"cus_1"}, "currency": {"eur"},
		"success_url": {"https://example.com/back"}}
	for name, value := range map[string]string{"installation": "inst", "account": "acme", "subscription": "sub"} {
		want.Set("metadata[duesday_"+name+"]", value)
		want.Set("setup_intent_data[metadata][duesday_"+name+"]", value)
	}
	if sent := s.Requests()[0]; sent.Path != "/v1/checkout/sessions" || sent.Form.Encode() != want.Encode() ||
		sent.Header.Get("Idempotency-Key") == "" || sent.Header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("sent %s %v", sent.Path, sent.Form)
	}
	if got, err := p.CardLink(t.Context(), r); !errors.Is(err, processor.ErrUnknown) {
		t.Errorf("no page: got %+v, %v", got, err)
	}
}

func TestSetups(t *testing.T) {
	setup := func(id string, changes ...apitest.Fields) string {
		return apitest.Object(apitest.Fields{"id": id, "object": "setup_intent", "status": "succeeded", "livemode": false,
			"customer": "cus_1",
			"payment_method": apitest.Fields{"id": "pm_1", "object": "payment_method", "type": "card", "created": 3000,
				"card": apitest.Fields{"brand": "visa", "last4": "4242", "exp_month": 12, "exp_year": 2030}},
			"metadata": apitest.Fields{"duesday_installation": "inst", "duesday_account": "acme"}}, changes...)
	}
	s := apitest.NewScript(t, apitest.List(true, setup("seti_0", apitest.Fields{"payment_method": "pm_0"}),
		setup("seti_00", apitest.Fields{"payment_method": nil}), setup("seti_1"),
		setup("seti_2", apitest.Fields{"status": "requires_payment_method"})),
		apitest.List(false, setup("seti_3", apitest.Fields{"metadata": apitest.Fields{}})))
	var got []processor.Setup
	for x, err := range scripted(t, s).Setups(t.Context(),
		processor.ListRequest{At: "acct_1", Since: time.Unix(50, 0), Until: time.Unix(60, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, x)
	}
	want := processor.Setup{ID: "seti_1", At: "acct_1", Customer: "cus_1", Installation: "inst", Account: "acme",
		Card: wantCard}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if r := s.Requests()[0]; r.Path != "/v1/setup_intents" || r.Form.Get("created[gte]") != "50" ||
		r.Form.Get("created[lt]") != "60" || r.Form.Get("expand[]") != "data.payment_method" {
		t.Errorf("sent %s %v", r.Path, r.Form)
	}
}
