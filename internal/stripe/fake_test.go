package stripe

import (
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/stripefake"
)

// stateful returns a Processor of a fake with a memory, each request and answer of which is
// held against Stripe's specification.
func stateful(t *testing.T, change ...func(*Options)) (*Processor, *stripefake.Fake) {
	t.Helper()
	base, fake := apitest.NewFake(t)
	o := Options{API: api.Options{Key: secret.New("sk_test_duesday"), Base: base, Rate: api.MaxRate,
		Now: func() time.Time { return apitest.Now }}}
	return newProcessor(t, o, change...), fake
}

// customer makes a customer with the card and returns the request for an intent.
func customer(t *testing.T, p *Processor, at, method string) processor.OpenRequest {
	t.Helper()
	id, err := p.MakeCustomer(t.Context(),
		processor.CustomerRequest{Key: "dd_c" + t.Name(), At: at, Installation: "inst", Account: "acme",
			Email: "a@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	r := processor.OpenRequest{Key: "dd_o" + t.Name(), Tag: testTag, Amount: apitest.USD(t, 1299),
		Payer: processor.Payer{At: at, Customer: id, Fee: 100}}
	if at == "" {
		r.Payer.Fee = 0
	}
	card, err := p.Attach(t.Context(), r.Payer, method)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Attach(t.Context(), r.Payer, ""); err != nil || again != card {
		t.Errorf("the newest card: got %+v, %v; want %+v", again, err, card)
	}
	r.Method = card.Method
	return r
}

func charged(t *testing.T, p *Processor, r processor.OpenRequest) (processor.Intent, processor.ConfirmRequest) {
	t.Helper()
	r.Price = `{"tax":"inclusive"}`
	in, err := p.Open(t.Context(), r)
	if err != nil || in.State != processor.Opened || in.Latest != "" || in.Tag != testTag || in.Price != r.Price {
		t.Fatalf("opened %+v, %v", in, err)
	}
	c := processor.ConfirmRequest{Key: "dd_k1" + t.Name(), Ref: in.Ref, Method: r.Method, Attempt: 1}
	if in, err = p.Confirm(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	later, err := p.Lookup(t.Context(), c.Ref)
	if told := in.Changed; err == nil {
		in.Changed = later.Changed
		if later != in || told.Sub(later.Changed).Abs() > time.Second {
			t.Errorf("the confirm told %+v, %v\nand the look-up %+v", in, told, later)
		}
	} else {
		t.Error(err)
	}
	return in, c
}

func TestFake_ALife(t *testing.T) {
	p, fake := stateful(t, withPage)
	if err := fake.Connect("acct_shop", ""); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"", "acct_shop"} {
		t.Run("at "+at, func(t *testing.T) {
			in, c := charged(t, p, customer(t, p, at, "pm_card_visa"))
			if in.State != processor.Succeeded || in.Latest == "" || in.Amount != apitest.USD(t, 1299) ||
				!in.Changed.Equal(apitest.Now) {
				t.Errorf("got %+v", in)
			}
			c.Key += "again"
			if again, err := p.Confirm(t.Context(), c); err != nil || again != in {
				t.Errorf("confirmed once more: got %+v, %v", again, err)
			}
			if again, err := p.Cancel(t.Context(), in.Ref); err != nil || again != in {
				t.Errorf("canceled after it: got %+v, %v", again, err)
			}
			back, err := p.Refund(t.Context(),
				processor.RefundRequest{Key: "dd_r" + at, ID: "r1", Ref: in.Ref, Amount: apitest.USD(t, 300),
					Reason: processor.RequestedByCustomer, Tag: testTag})
			if err != nil || back.State != processor.ReversalSucceeded || back.Ref != in.Ref || back.Tag != testTag ||
				back.Request != "r1" || back.Amount != apitest.USD(t, 300) {
				t.Errorf("refunded: got %+v, %v", back, err)
			}
			_, err = p.Refund(t.Context(),
				processor.RefundRequest{Key: "dd_s" + at, ID: "r2", Ref: in.Ref, Amount: apitest.USD(t, 1000), Tag: testTag})
			apitest.WantError(t, "more than is left", err, processor.ErrInvalid)
			if _, err := fake.Dispute(strings.TrimPrefix(in.Ref, at+"/"), "fraudulent"); err != nil {
				t.Fatal(err)
			}
			all, err := p.ReversalsOf(t.Context(), in.Ref)
			if err != nil || len(all) != 2 || all[0] != back || all[1].Kind != processor.Disputed ||
				all[1].State != processor.ReversalPending || all[1].Tag != testTag || all[1].Ref != in.Ref {
				t.Errorf("returns: got %+v, %v", all, err)
			}
			n := 0
			for r, err := range p.Reversals(t.Context(), processor.ListRequest{At: at, Since: apitest.Now}) {
				if n++; err != nil || r != all[n-1] {
					t.Errorf("listed: got %+v, %v; want %+v", r, err, all[n-1])
				}
			}
			for got, err := range p.List(t.Context(), processor.ListRequest{At: at, Since: apitest.Now}) {
				if n++; err != nil || got != in {
					t.Errorf("listed: got %+v, %v; want %+v", got, err, in)
				}
			}
			if n != 3 {
				t.Errorf("%d were listed, want two returns and an intent", n)
			}
		})
	}
}

func TestFake_Declines(t *testing.T) {
	for method, want := range map[string]processor.Intent{
		"pm_sandbox_decline_insufficient_funds": {State: processor.Declined, Code: "insufficient_funds"},
		"pm_sandbox_decline_stolen_card":        {State: processor.Declined, Code: "stolen_card", Hard: true},
		"pm_sandbox_decline_do_not_honor":       {State: processor.Declined, Code: "do_not_honor"},
		"pm_usBankAccount_success":              {State: processor.Processing, Debit: true},
	} {
		t.Run(method, func(t *testing.T) {
			p, _ := stateful(t)
			r := customer(t, p, "", "pm_card_visa")
			card, err := p.Attach(t.Context(), r.Payer, method)
			if err != nil {
				t.Fatal(err)
			}
			r.Method = card.Method
			first, c := charged(t, p, r)
			if first.State != want.State || first.Code != want.Code || first.Hard != want.Hard || first.Debit != want.Debit ||
				first.Latest == "" {
				t.Errorf("got %+v, want %+v", first, want)
			}
			if want.State != processor.Declined {
				return
			}
			c.Key += "next"
			if second, err := p.Confirm(t.Context(), c); err != nil || second.State != processor.Declined ||
				second.Latest == first.Latest {
				t.Errorf("the next attempt: got %+v, %v", second, err)
			}
			if got, err := p.Cancel(t.Context(), c.Ref); err != nil || got.State != processor.Canceled {
				t.Errorf("canceled: got %+v, %v", got, err)
			}
		})
	}
}

func TestFake_Authentication(t *testing.T) {
	p, fake := stateful(t, withPage)
	in, c := charged(t, p, customer(t, p, "", "pm_card_authenticationRequired"))
	if in.State != processor.RequiresAction || in.Link == "" || in.Latest == "" {
		t.Fatalf("got %+v", in)
	}
	if err := fake.Authenticate(c.Ref, true); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Lookup(t.Context(), c.Ref); err != nil || got.State != processor.Succeeded {
		t.Errorf("authenticated: got %+v, %v", got, err)
	}
	succeeded := 0
	for e := range fake.Ledger() {
		if e.Type == "charge" {
			succeeded++
		}
	}
	if succeeded != 1 {
		t.Errorf("%d charges have succeeded, want 1", succeeded)
	}
}

// A payment method that is not there is a no of that attempt, noted on the intent.
func TestFake_NoSuchMethod(t *testing.T) {
	p, _ := stateful(t)
	r := customer(t, p, "", "pm_card_visa")
	r.Method = "pm_nobodys"
	in, _ := charged(t, p, r)
	if in.State != processor.Declined || !in.Hard || in.Code != "resource_missing" || in.Latest == "" {
		t.Errorf("got %+v", in)
	}
}

func TestFake_RefusesOneAccountAlone(t *testing.T) {
	p, fake := stateful(t)
	for _, at := range []string{"acct_a", "acct_b"} {
		if err := fake.Connect(at, ""); err != nil {
			t.Fatal(err)
		}
	}
	r := customer(t, p, "acct_a", "pm_card_visa")
	if err := fake.Disconnect("acct_a"); err != nil {
		t.Fatal(err)
	}
	_, err := p.Open(t.Context(), r)
	apitest.WantError(t, "a disconnected account", err, processor.ErrAccountRefused)
	if got, _ := charged(t, p, customer(t, p, "acct_b", "pm_card_visa")); got.State != processor.Succeeded {
		t.Errorf("the other account: got %+v", got)
	}
	if err := fake.Revoke("sk_test_duesday"); err != nil {
		t.Fatal(err)
	}
	_, err = p.Lookup(t.Context(), "acct_b/pi_1")
	apitest.WantError(t, "a revoked key", err, processor.ErrRefused)
	_, err = p.Identity(t.Context())
	apitest.WantError(t, "a revoked key", err, processor.ErrRefused)
}

func TestFake_CardsByLink(t *testing.T) {
	p, _ := stateful(t, withPage)
	if got, err := p.Identity(t.Context()); err != nil || got != "stripe "+stripefake.DefaultAccount+" test" {
		t.Errorf("got %q, %v", got, err)
	}
	r := customer(t, p, "", "pm_card_visa")
	asked := processor.LinkRequest{Key: "dd_l", Payer: r.Payer, Installation: "inst", Account: "acme", Currency: "USD"}
	link, err := p.CardLink(t.Context(), asked)
	if err != nil || link.URL == "" || !link.Expires.After(apitest.Now) {
		t.Errorf("got %+v, %v", link, err)
	}
	if again, err := p.CardLink(t.Context(), asked); err != nil || again != link {
		t.Errorf("repeated: got %+v, %v", again, err)
	}
	asked.Currency = "EUR" // the account has got its first subscription
	if later, err := p.CardLink(t.Context(), asked); err != nil || later.URL == link.URL {
		t.Errorf("repeated when the currency has changed: got %+v, %v", later, err)
	}
	asked.Payer = customer(t, p, "", "pm_card_visa").Payer
	if other, err := p.CardLink(t.Context(), asked); err != nil || other.URL == link.URL {
		t.Errorf("repeated for another customer: got %+v, %v", other, err)
	}
	for s, err := range p.Setups(t.Context(), processor.ListRequest{Since: apitest.Now}) {
		t.Errorf("nobody has given a card: got %+v, %v", s, err)
	}
}
