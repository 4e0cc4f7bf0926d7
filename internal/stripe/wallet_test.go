package stripe

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

func cardFields(id, customer string, changes ...fields) string {
	f := fields{"id": id, "object": "payment_method", "type": "card", "livemode": false, "created": 3000,
		"card": fields{"brand": "visa", "last4": "4242", "exp_month": 12, "exp_year": 2030}}
	if customer != "" {
		f["customer"] = customer
	}
	return object(f, changes...)
}

func customerFields(changes ...fields) reply {
	return ok(object(fields{"id": "cus_1", "object": "customer", "livemode": false}, changes...))
}

var wantCard = billing.Card{Method: "pm_1", Brand: "visa", Last4: "4242", Expires: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), Made: instant(3000)}

func TestMakeCustomer(t *testing.T) {
	s := newScript(t, customerFields())
	got, err := processor(t, s).MakeCustomer(t.Context(), billing.CustomerRequest{Key: "dd_c", At: "acct_1", Installation: "inst", Account: "acme", Email: "a@example.com"})
	if err != nil || got != "cus_1" {
		t.Errorf("got %q, %v", got, err)
	}
	want := url.Values{"email": {"a@example.com"}, "metadata[duesday_installation]": {"inst"}, "metadata[duesday_account]": {"acme"}}
	if r := s.requests()[0]; r.path != "/v1/customers" || r.form.Encode() != want.Encode() || r.header.Get("Idempotency-Key") != "dd_c" || r.header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("sent %s %v %v", r.path, r.form, r.header)
	}
}

func TestAttach(t *testing.T) {
	notFound := fails(404, fields{"type": "invalid_request_error", "code": "resource_missing", "param": "id"})
	byDefault := customerFields(fields{"invoice_settings": fields{"default_payment_method": "pm_1"}})
	tests := []struct {
		name, method string
		replies      []reply
		err          error
		sends        string
	}{
		{"the customer's already", "pm_1", []reply{customerFields(), ok(cardFields("pm_1", "cus_1"))}, nil, "GET GET"},
		{"nobody's", "pm_1", []reply{customerFields(), ok(cardFields("pm_1", "")), ok(cardFields("pm_1", "cus_1"))}, nil, "GET GET POST"},
		{"another's", "pm_1", []reply{customerFields(), ok(cardFields("pm_1", "cus_2"))}, billing.ErrInvalid, "GET GET"},
		{"declined when attached", "pm_1", []reply{customerFields(), ok(cardFields("pm_1", "")), fails(402, cardError("card_declined", "", "", "", nil))}, billing.ErrInvalid, "GET GET POST"},
		{"the default", "", []reply{byDefault, ok(cardFields("pm_1", "cus_1"))}, nil, "GET GET"},
		{"the newest", "", []reply{customerFields(), list(true, cardFields("pm_0", "cus_1", fields{"created": 9})), list(false, cardFields("pm_1", "cus_1"))}, nil, "GET GET GET"},
		{"no card", "", []reply{customerFields(), list(false)}, billing.ErrInvalid, "GET GET"},
		{"no customer", "pm_1", []reply{notFound}, billing.ErrInvalid, "GET"},
		{"a deleted customer", "pm_1", []reply{customerFields(fields{"deleted": true})}, billing.ErrInvalid, "GET"},
		{"no method", "pm_1", []reply{customerFields(), notFound}, billing.ErrInvalid, "GET GET"},
		{"what is no method", "../x", []reply{customerFields()}, billing.ErrInvalid, "GET"},
		{"live", "pm_1", []reply{customerFields(), ok(cardFields("pm_1", "cus_1", fields{"livemode": true}))}, billing.ErrRefused, "GET GET"},
		{"no answer", "pm_1", []reply{customerFields(), ok(cardFields("pm_1", "")), {}}, billing.ErrUnknown, "GET GET POST"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, tt.replies...)
			got, err := processor(t, s).Attach(t.Context(), billing.Payer{At: "acct_1", Customer: "cus_1"}, tt.method)
			if !errors.Is(err, tt.err) || err == nil && got != wantCard {
				t.Errorf("got %+v, %v", got, err)
			}
			var sends []string
			for _, r := range s.requests() {
				if sends = append(sends, r.method); r.header.Get("Stripe-Account") != "acct_1" {
					t.Errorf("%s went to the account %q", r.path, r.header.Get("Stripe-Account"))
				}
			}
			if strings.Join(sends, " ") != tt.sends {
				t.Errorf("sent %v, want %s", sends, tt.sends)
			}
		})
	}
	if _, err := processor(t, newScript(t)).Attach(t.Context(), billing.Payer{}, "pm_1"); !errors.Is(err, billing.ErrInvalid) {
		t.Errorf("without a customer: got %v", err)
	}
}

func TestCard(t *testing.T) {
	sepa := object(fields{"id": "pm_2", "object": "payment_method", "type": "sepa_debit", "created": 1, "sepa_debit": fields{"last4": "3000"}})
	s := newScript(t, ok(cardFields("pm_1", "cus_1")), ok(sepa), ok(`{}`))
	p := processor(t, s)
	if got, err := p.Card(t.Context(), "", "pm_1"); err != nil || got != wantCard {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := p.Card(t.Context(), "", "pm_2"); err != nil || got != (billing.Card{Method: "pm_2", Brand: "sepa_debit", Last4: "3000", Made: instant(1)}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := p.Card(t.Context(), "", "pm_3"); err == nil {
		t.Errorf("of nothing: got %+v", got)
	}
	_, err := p.Card(t.Context(), "", "4242424242424242")
	wantError(t, "a card's number", err, billing.ErrInvalid)
}

func TestCardLink(t *testing.T) {
	r := billing.LinkRequest{Key: "dd_l", Payer: billing.Payer{At: "acct_1", Customer: "cus_1"}, Installation: "inst", Account: "acme", Subscription: "sub", Currency: "EUR"}
	if _, err := processor(t, newScript(t)).CardLink(t.Context(), r); !errors.Is(err, billing.ErrInvalid) || !strings.Contains(err.Error(), "return_url") {
		t.Errorf("without an address to come back to: got %v", err)
	}
	s := newScript(t, ok(`{"id":"cs_1","object":"checkout.session","url":"https://checkout.example/c","expires_at":8000}`), ok(`{}`))
	p := processor(t, s, withPage)
	got, err := p.CardLink(t.Context(), r)
	if err != nil || got != (billing.CardLink{URL: "https://checkout.example/c", Expires: instant(8000)}) {
		t.Errorf("got %+v, %v", got, err)
	}
	want := url.Values{"mode": {"setup"}, "customer": {"cus_1"}, "currency": {"eur"}, "success_url": {"https://example.com/back"}}
	for name, value := range map[string]string{"installation": "inst", "account": "acme", "subscription": "sub"} {
		want.Set("metadata[duesday_"+name+"]", value)
		want.Set("setup_intent_data[metadata][duesday_"+name+"]", value)
	}
	if sent := s.requests()[0]; sent.path != "/v1/checkout/sessions" || sent.form.Encode() != want.Encode() || sent.header.Get("Idempotency-Key") == "" || sent.header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("sent %s %v", sent.path, sent.form)
	}
	if got, err := p.CardLink(t.Context(), r); !errors.Is(err, billing.ErrUnknown) {
		t.Errorf("no page: got %+v, %v", got, err)
	}
}

func TestSetups(t *testing.T) {
	setup := func(id string, changes ...fields) string {
		return object(fields{"id": id, "object": "setup_intent", "status": "succeeded", "livemode": false, "customer": "cus_1",
			"payment_method": fields{"id": "pm_1", "object": "payment_method", "type": "card", "created": 3000, "card": fields{"brand": "visa", "last4": "4242", "exp_month": 12, "exp_year": 2030}},
			"metadata":       fields{"duesday_installation": "inst", "duesday_account": "acme"}}, changes...)
	}
	s := newScript(t, list(true, setup("seti_0", fields{"payment_method": "pm_0"}), setup("seti_00", fields{"payment_method": nil}), setup("seti_1"),
		setup("seti_2", fields{"status": "requires_payment_method"})), list(false, setup("seti_3", fields{"metadata": fields{}})))
	var got []billing.Setup
	for x, err := range processor(t, s).Setups(t.Context(), billing.ListRequest{At: "acct_1", Since: time.Unix(50, 0), Until: time.Unix(60, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, x)
	}
	want := billing.Setup{ID: "seti_1", At: "acct_1", Customer: "cus_1", Installation: "inst", Account: "acme", Card: wantCard}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if r := s.requests()[0]; r.path != "/v1/setup_intents" || r.form.Get("created[gte]") != "50" || r.form.Get("created[lt]") != "60" || r.form.Get("expand[0]") != "data.payment_method" {
		t.Errorf("sent %s %v", r.path, r.form)
	}
}
