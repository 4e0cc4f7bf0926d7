package sell

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/tracking"
)

var (
	allKinds = []tracking.Kind{tracking.Legacy, tracking.Product, tracking.Subscribe,
		tracking.SplitPayment} // in the order of the diagrams
	paidAt = []string{"", "acct_shop"} // our own account, and a connected one
)

func TestSell_EveryKindOnEveryAccount(t *testing.T) {
	for _, at := range paidAt {
		for _, kind := range allKinds {
			t.Run(string(kind)+" at "+at, func(t *testing.T) {
				s := open(t, at)
				o := s.order(kind, s.card("tok_visa"))
				sale, err := s.tracker.Sell(t.Context(), o, false)
				s.check(o, "tok_visa", sale, err)
				links(t, sale)
				for _, e := range s.paid() {
					if want := at; want != "" && e.Account != want {
						t.Errorf("the charge is %s's", e.Account)
					}
				}
				again, err := s.tracker.Sell(t.Context(), o, true)
				s.check(o, "tok_visa", again, err)
				if secret := sale.ClientSecret.Reveal(); again.ClientSecret.Reveal() != secret || kind == tracking.Legacy &&
					!strings.HasPrefix(secret, sale.Objects[0].ID+"_") {
					t.Errorf("got the secret of another intent")
				}
			})
		}
	}
}

// links holds the links of what was sold against each other.
func links(t *testing.T, sale tracking.Sale) {
	t.Helper()
	var sub, schedule string
	for _, o := range sale.Objects {
		switch o.Kind {
		case tracking.KindSubscription:
			if sub = o.ID; o.Schedule != schedule || o.Customer != sale.Customer || o.Status != "active" {
				t.Errorf("got the subscription %+v", o)
			}
		case tracking.KindSchedule:
			if schedule = o.ID; o.Subscription == "" {
				t.Errorf("got the schedule %+v", o)
			}
		case tracking.KindPayment:
			if o.Subscription != sub || !o.InvoiceTold || (o.Invoice == "") != (o.Tag.Kind == tracking.Legacy) {
				t.Errorf("got the payment %+v", o)
			}
		}
	}
}

// What a buyer's bank does to a sale, and what is left of it.
func TestSell_Banks(t *testing.T) {
	tests := []struct {
		name     string
		kind     tracking.Kind
		card     string
		declined string // that the reason begins with
		action   bool
		invoice  string // its status
		last     string // status of the last object
	}{
		{"a product is declined", tracking.Product, "tok_chargeCustomerFail", "generic_decline: ", false, "void",
			"requires_payment_method"},
		{"a subscription is declined", tracking.Subscribe, "tok_chargeCustomerFail", "generic_decline: ", false, "open",
			"requires_payment_method"},
		{"a product waits for the buyer", tracking.Product, "tok_threeDSecure2Required", "", true, "open", "requires_action"},
		{"a subscription waits for the buyer", tracking.Subscribe, "tok_threeDSecure2Required", "", true, "open",
			"requires_action"},
		{"a product whose buyer is asked since they are there", tracking.Product,
			"tok_authenticationRequiredSetupForOffSession", "", true, "open", "requires_action"},
		{"refused when attached", tracking.Product, "tok_chargeDeclinedInsufficientFunds", "insufficient_funds: ", false, "",
			""},
		{"refused when attached to subscribe", tracking.Subscribe, "tok_chargeDeclinedInsufficientFunds",
			"insufficient_funds: ", false, "", ""},
		{"refused when attached to split", tracking.SplitPayment, "tok_chargeDeclinedInsufficientFunds",
			"insufficient_funds: ", false, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, "acct_shop")
			o := s.order(tt.kind, s.card(tt.card))
			for _, again := range []bool{false, true, true} {
				sale, err := s.tracker.Sell(t.Context(), o, again)
				if err != nil || !strings.HasPrefix(sale.Declined, tt.declined) || (sale.Declined == "") != (tt.declined == "") ||
					sale.Action != tt.action || sale.ClientSecret.IsZero() == tt.action {
					t.Errorf("again %t: got %+v, %v", again, sale, err)
				}
				apitest.Hush(t, sale.Declined)
				if tt.last == "" {
					if len(sale.Objects) > 0 || sale.Customer == "" {
						t.Errorf("got %+v", sale)
					}
				} else if last := sale.Objects[len(sale.Objects)-1]; last.Kind != tracking.KindPayment ||
					last.Failed != (tt.declined != "") ||
					last.Status != tt.last && !(again && tt.invoice == "void" && last.Status == "canceled") || last.Invoice == "" {
					t.Errorf("again %t: got the payment %+v", again, last)
				}
			}
			var status []string
			for raw, err := range s.tracker.api.Rows(t.Context(), s.at, "/v1/invoices", url.Values{}, nil) {
				if err != nil {
					t.Fatal(err)
				}
				o, err := event.DecodeObject(raw)
				if err != nil {
					t.Fatal(err)
				}
				status = append(status, o.Status)
			}
			if got := strings.Join(status, " "); got != tt.invoice {
				t.Errorf("the invoices are %q, want %q", got, tt.invoice)
			}
			if got := s.paid(); len(got) > 0 {
				t.Errorf("was paid: %+v", got)
			}
		})
	}
}

// A caller who does not say that it sells again has the keys alone, until one of them tells only
// that something went wrong: then it is looked at what that was.
func TestSell_TwiceForTheFirstTime(t *testing.T) {
	for _, kind := range allKinds {
		s := open(t, "")
		o := s.order(kind, s.card("tok_visa"))
		last := map[tracking.Kind]int{tracking.Legacy: 1, tracking.Product: 5, tracking.Subscribe: 5,
			tracking.SplitPayment: 6}[kind] // the request that makes it
		s.way.arm(last, lies500, nil)
		_, err := s.tracker.Sell(t.Context(), o, false)
		if got := s.way.requests(); len(got) != last || !strings.HasPrefix(got[last-1], "POST ") {
			t.Fatalf("sent %v", got)
		}
		apitest.WantError(t, string(kind), err, processor.ErrUnknown)
		s.way.arm(0, "", nil)
		sale, err := s.tracker.Sell(t.Context(), o, false)
		s.check(o, "tok_visa", sale, err)
	}
}

// Where there are two of a purchase, which Duesday does not make, the one counts that was paid.
func TestFind_TakesTheFurthest(t *testing.T) {
	s := open(t, "")
	o := s.order(tracking.Legacy, "")
	form := "amount=1299&currency=usd&payment_method_types[]=card&metadata[" + tracking.MetaInstallation +
		"]=inst&metadata[" + tracking.MetaPurchase + "]=" + testPurchase
	s.make("payment_intents", form)
	paid := s.make("payment_intents", form+"&confirm=true&payment_method=pm_card_visa")
	s.make("payment_intents", form)
	s.make("payment_intents", strings.Replace(form, "=inst", "=another", 1)+"&confirm=true&payment_method=pm_card_visa")
	sale, err := s.tracker.Find(t.Context(), o)
	if err != nil || len(sale.Objects) != 1 || sale.Objects[0].ID != paid {
		t.Errorf("got %+v, %v; want %s", sale, err, paid)
	}
}

// A buyer who authenticates has paid; one who does not is declined when the sale is taken up
// again.
func TestSell_TheBuyerAuthenticates(t *testing.T) {
	for _, ok := range []bool{true, false} {
		s := open(t, "")
		o := s.order(tracking.Product, s.card("tok_threeDSecure2Required"))
		sale, err := s.tracker.Sell(t.Context(), o, false)
		if err != nil || !sale.Action {
			t.Fatalf("got %+v, %v", sale, err)
		}
		if err := s.fake.Authenticate(sale.Objects[0].ID, ok); err != nil {
			t.Fatal(err)
		}
		sale, err = s.tracker.Sell(t.Context(), o, true)
		if err != nil || sale.Action || (sale.Declined == "") != ok ||
			len(s.paid()) != len(sale.Objects)*map[bool]int{true: 1}[ok] {
			t.Errorf("authenticated %t: got %+v, %v", ok, sale, err)
		}
	}
}

func TestSell_WhoseMethodItIs(t *testing.T) {
	s := open(t, "")
	mine, card := s.make("customers", "email=buyer@example.com"), s.card("tok_visa")
	s.make("payment_methods/"+card+"/attach", "customer="+mine)
	o := s.order(tracking.Product, card)
	sale, err := s.tracker.Sell(t.Context(), o, false)
	s.check(o, "tok_visa", sale, err)
	if sale.Customer != mine {
		t.Errorf("sold to %s, want the customer with the address, %s", sale.Customer, mine)
	}
	other := s.make("customers", "email=other@example.com")
	o = s.order(tracking.Subscribe, card)
	o.Customer = other
	_, err = s.tracker.Sell(t.Context(), o, false)
	apitest.WantError(t, "the method of another customer", err, tracking.ErrOrder)
	if got := s.there("subscriptions"); len(got) > 0 {
		t.Errorf("made %v", got)
	}
}

// Among customers with the same address those of Duesday come first, and of these the oldest.
func TestSell_WhichCustomer(t *testing.T) {
	s := open(t, "")
	o := s.order(tracking.Product, s.card("tok_visa"))
	s.make("customers", "email=Buyer@example.com")
	ours := "email=buyer@example.com&metadata[" + tracking.MetaInstallation + "]="
	var want []string
	for _, form := range []string{"email=buyer@example.com", "email=buyer@example.com", ours + "other", ours + "inst",
		ours + "inst"} {
		want = append(want, s.make("customers", form))
	}
	want = []string{want[3], want[4], want[0], want[1], want[2]}
	tagged := s.make("customers", ours+"inst&metadata["+tracking.MetaPurchase+"]="+testPurchase)
	want = append([]string{tagged}, want...)
	sale, err := s.tracker.order(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := sale.customers(t.Context())
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, %v\nwant %v", got, err, want)
	}
}

// Without an address, who was made is found by the purchase.
func TestSell_WithoutAnAddress(t *testing.T) {
	for _, kind := range allKinds[1:] {
		s := open(t, "")
		o := s.order(kind, s.card("tok_visa"))
		o.Email = ""
		if _, err := s.tracker.Sell(t.Context(), o, false); err != nil {
			t.Fatal(err)
		}
		s.fake.Advance(25 * time.Hour)
		sale, err := s.tracker.Sell(t.Context(), o, true)
		s.check(o, "tok_visa", sale, err)
	}
}

// An invoice of the same customer that is made in between draws nothing in.
func TestSell_LeavesOtherInvoicesAlone(t *testing.T) {
	s := open(t, "")
	cus := s.make("customers", "email=buyer@example.com")
	s.make("invoiceitems", "customer="+cus+"&amount=777&currency=usd") // what the buyer owes for something else
	o := s.order(tracking.Product, s.card("tok_visa"))
	sale, err := s.tracker.Sell(t.Context(), o, false)
	s.check(o, "tok_visa", sale, err)
}

func TestSell_ByPrice(t *testing.T) {
	s := open(t, "")
	o := s.order(tracking.Product, s.card("tok_visa"))
	o.Amount, o.Currency, o.Price = 0, "", s.once
	sale, err := s.tracker.Sell(t.Context(), o, false)
	if got := s.paid(); err != nil || len(sale.Objects) != 1 || len(got) != 1 || got[0].Amount != 1500 {
		t.Errorf("got %+v, %v, and the charges %+v", sale, err, got)
	}
}

// The makers of plans choose their ids: Stripe is asked for each as it is.
func TestSell_PriceOfAnyForm(t *testing.T) {
	for _, price := range []string{"gold21323", "plan_1", "gold.monthly:v2", "50%?x=1#a"} {
		for _, kind := range []tracking.Kind{tracking.Subscribe, tracking.SplitPayment} {
			s := open(t, "")
			o := s.order(kind, s.card("tok_visa"))
			o.Price = price
			if _, err := s.tracker.Sell(t.Context(), o, false); err == nil || !strings.Contains(err.Error(), price) {
				t.Errorf("%s: %v; want Stripe's error that names %s", kind, err, price)
			}
			if o.Key = "order-1"; o.Check() != nil {
				t.Errorf("%s: %v", price, o.Check())
			}
		}
	}
}

// What costs nothing, or what the buyer's credit pays, has no payment: the invoice says that it is paid.
func TestSell_NothingToPay(t *testing.T) {
	s := open(t, "")
	o := s.order(tracking.Product, s.card("tok_visa"))
	o.Amount, o.Currency, o.Price = 0, "", s.make("prices", "currency=usd&unit_amount=0&product_data[name]=Sample")
	for _, again := range []bool{false, true} {
		sale, err := s.tracker.Sell(t.Context(), o, again)
		if err != nil || len(sale.Objects) != 1 || sale.Objects[0].Kind != tracking.KindInvoice ||
			sale.Objects[0].Status != "paid" || sale.Objects[0].Tag != o.Tag || sale.Declined != "" {
			t.Errorf("again %t: got %+v, %v", again, sale, err)
		}
	}
}

// A split purchase is asked for as many payments as it was ordered with, and no more.
func TestSell_SplitEnds(t *testing.T) {
	s := open(t, "")
	o := s.order(tracking.SplitPayment, s.card("tok_visa"))
	sale, err := s.tracker.Sell(t.Context(), o, false)
	if err != nil {
		t.Fatal(err)
	}
	s.fake.Advance(200 * 24 * time.Hour)
	if got := s.paid(); len(got) != o.Payments {
		t.Errorf("%d payments, want %d: %+v", len(got), o.Payments, got)
	}
	schedule, err := s.tracker.Object(t.Context(), "", tracking.KindSchedule, sale.Objects[0].ID)
	if err != nil || schedule.Status != "completed" || schedule.Tag != o.Tag ||
		schedule.Subscription != sale.Objects[1].ID {
		t.Errorf("got %+v, %v", schedule, err)
	}
	found, err := s.tracker.Find(t.Context(), o)
	if err != nil || len(found.Objects) != 3 || found.Objects[1].Status != "canceled" ||
		found.Objects[1].Schedule != schedule.ID || found.Declined != "" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// A subscription that its schedule has let go of does not name it any more.
func TestFind_LinksTheSchedule(t *testing.T) {
	s := apitest.NewScript(t, apitest.OK(`{"object":"subscription","id":"sub_1","status":"active","schedule":null,"latest_invoice":null}`))
	sale := &sale{t: scripted(t, s), o: tracking.Order{Kind: tracking.SplitPayment}}
	got, err := sale.scheduled(t.Context(),
		[]byte(`{"object":"subscription_schedule","id":"sub_sched_1","status":"released","released_subscription":"sub_1"}`))
	if err != nil || len(got.Objects) != 2 || got.Objects[0].Subscription != "sub_1" ||
		got.Objects[1].Schedule != "sub_sched_1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSell_BadOrders(t *testing.T) {
	s := open(t, "acct_shop")
	n := 0
	for name, change := range map[string]func(*tracking.Order){
		"no such price": func(o *tracking.Order) {
			o.Kind, o.Price, o.Amount = tracking.Subscribe,
				"price_nobodys", 0
		},
		"no such price of a product": func(o *tracking.Order) { o.Price, o.Amount = "price_nobodys", 0 },
		"no such price to split": func(o *tracking.Order) {
			o.Kind, o.Price, o.Payments, o.Amount = tracking.SplitPayment, "price_nobodys", 3, 0
		},
		"subscribing to a single": func(o *tracking.Order) {
			o.Kind, o.Price, o.Amount = tracking.Subscribe, s.once,
				0
		},
		"a single price in parts": func(o *tracking.Order) {
			o.Kind, o.Price, o.Payments,
				o.Amount = tracking.SplitPayment, s.once, 3, 0
		},
		"no such customer":              func(o *tracking.Order) { o.Customer = "cus_nobody" },
		"no such customer of an intent": func(o *tracking.Order) { o.Kind, o.Customer = tracking.Legacy, "cus_nobody" },
		"no such method":                func(o *tracking.Order) { o.PaymentMethod = "pm_nobodys" },
		"no address":                    func(o *tracking.Order) { o.Email = "nobody" },
		"too little":                    func(o *tracking.Order) { o.Amount = 3 },
		"too little of an intent":       func(o *tracking.Order) { o.Kind, o.Amount = tracking.Legacy, 3 },
		"no currency":                   func(o *tracking.Order) { o.Currency = "XXX" },
		"a method that is a path":       func(o *tracking.Order) { o.PaymentMethod = "pm_1/detach" },
		"a price that is a path": func(o *tracking.Order) {
			o.Kind, o.Price, o.Payments,
				o.Amount = tracking.SplitPayment, "../x", 3, 0
		},
		"a customer that is a path": func(o *tracking.Order) { o.Customer = "cus_1/x" },
		"no account":                func(o *tracking.Order) { o.At = "shop" },
		"an amount and a price":     func(o *tracking.Order) { o.Price = s.once },
		"no kind":                   func(o *tracking.Order) { o.Kind = "barter" },
		"no id":                     func(o *tracking.Order) { o.Tag.Purchase = "" },
		"too long an address":       func(o *tracking.Order) { o.Email = "a@" + strings.Repeat("b", 600) + ".com" },
	} {
		o := s.order(tracking.Product, s.card("tok_visa"))
		n++
		o.Tag.Purchase = fmt.Sprintf("0198f2c0-1111-7222-8333-%012d", n) // each has its own keys
		change(&o)
		if o.Kind == tracking.Subscribe || o.Kind == tracking.SplitPayment || o.Price == "price_nobodys" {
			o.Currency = ""
		}
		for _, again := range []bool{false, true} {
			sale, err := s.tracker.Sell(t.Context(), o, again)
			apitest.WantError(t, name, err, tracking.ErrOrder)
			if len(sale.Objects) > 0 {
				t.Errorf("%s: got %+v", name, sale)
			}
		}
	}
	for _, path := range []string{"invoices", "subscriptions", "subscription_schedules", "payment_intents"} {
		if got := s.there(path); len(got) > 0 {
			t.Errorf("%s are left: %v", path, got)
		}
	}
}

// What Stripe says of a payment without trying it leaves nothing that somebody could pay later;
// but for what says nothing.
func TestSell_PaymentsThatAreNotTried(t *testing.T) {
	tests := []struct {
		name  string
		path  string
		reply apitest.Reply
		err   error
		left  int // invoices
	}{
		{"a wrong request", "/pay", apitest.Fails(400,
			apitest.Fields{"type": "invalid_request_error", "message": "This cannot pay that."}), tracking.ErrOrder, 0},
		{"a wrong item", "/invoiceitems",
			apitest.Fails(400, apitest.Fields{"type": "invalid_request_error", "code": "tax_id_invalid", "message": "No."}),
			tracking.ErrOrder, 0},
		{"what cannot be finalized", "/finalize",
			apitest.Fails(400, apitest.Fields{"type": "invalid_request_error", "code": "customer_tax_location_invalid",
				"message": "No."}), tracking.ErrOrder, 0},
		{"what stays a draft", "/finalize", apitest.OK(`{"object":"invoice","id":"in_other","status":"draft"}`),
			processor.ErrUnknown, 1},
		{"a mode that the account has not", "/pay",
			apitest.Fails(403, apitest.Fields{"type": "invalid_request_error", "code": "testmode_charges_only",
				"message": "Activate it."}), processor.ErrRefused, 1},
		{"a decline without a charge", "/pay",
			apitest.Fails(402, apitest.Fields{"type": "card_error", "code": "card_decline_rate_limit_exceeded",
				"message": "Too often."}), nil, 0},
		{"a key that has another request", "/pay",
			apitest.Fails(400, apitest.Fields{"type": "idempotency_error", "message": "Keys."}), processor.ErrInvalid, 1},
		{"what is no invoice", "/pay", apitest.OK(`{"object":"invoice"}`), processor.ErrUnknown, 1},
		{"another invoice", "/pay", apitest.OK(`{"object":"invoice","id":"in_other","status":"paid"}`), processor.ErrUnknown,
			1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, "")
			o := s.order(tracking.Product, s.card("tok_visa"))
			s.way.instead = func(r *http.Request) *apitest.Reply {
				if !strings.HasSuffix(r.URL.Path, tt.path) {
					return nil
				}
				return &tt.reply
			}
			sale, err := s.tracker.Sell(t.Context(), o, false)
			if apitest.WantError(t, tt.name, err, tt.err); tt.err == nil && (sale.Declined == "" || !sale.Objects[0].Failed) ||
				tt.err != tracking.ErrOrder && errors.Is(err, tracking.ErrOrder) {
				t.Errorf("got %+v, %v", sale, err)
			}
			if got := s.there("invoices"); len(got) != tt.left || len(s.paid()) > 0 {
				t.Errorf("left %v, want %d", got, tt.left)
			}
			s.way.instead = nil
			if tt.left == 0 {
				return
			}
			sale, err = s.tracker.Sell(t.Context(), o, true)
			s.check(o, "tok_visa", sale, err)
		})
	}
}

func TestSell_AccountsThatRefuse(t *testing.T) {
	s := open(t, "acct_shop")
	orders := map[tracking.Kind]tracking.Order{}
	for _, kind := range allKinds {
		orders[kind] = s.order(kind, s.card("tok_visa"))
	}
	if err := s.fake.Disconnect("acct_shop"); err != nil {
		t.Fatal(err)
	}
	for kind, o := range orders {
		for _, again := range []bool{false, true} {
			_, err := s.tracker.Sell(t.Context(), o, again)
			apitest.WantError(t, string(kind), err, tracking.ErrDisconnected)
		}
		_, err := s.tracker.Find(t.Context(), o)
		apitest.WantError(t, string(kind), err, tracking.ErrDisconnected)
	}
	if err := s.fake.Revoke("sk_test_duesday"); err != nil {
		t.Fatal(err)
	}
	o := orders[tracking.Legacy]
	o.At = ""
	_, err := s.tracker.Sell(t.Context(), o, false)
	if apitest.WantError(t, "a revoked key", err, processor.ErrRefused); errors.Is(err, tracking.ErrOrder) ||
		errors.Is(err, tracking.ErrDisconnected) || !errors.Is(err, tracking.ErrStripeKey) {
		t.Errorf("a revoked key is called %v", err)
	}
}

// TestSell_PaidOutsideStripe: the invoice of such a sale is paid, and its cancelled payment is no decline.
func TestSell_PaidOutsideStripe(t *testing.T) {
	s := open(t, "")
	o := s.order(tracking.Product, s.card("tok_threeDSecure2Required"))
	sale, err := s.tracker.Sell(t.Context(), o, false)
	if err != nil || !sale.Action {
		t.Fatalf("got %+v, %v", sale, err)
	}
	s.make("invoices/"+sale.Objects[0].Invoice+"/pay", "paid_out_of_band=true")
	sale, err = s.tracker.Sell(t.Context(), o, true)
	if err != nil || sale.Declined != "" || sale.Action || len(sale.Objects) != 2 || sale.Objects[0].Status != "canceled" ||
		sale.Objects[1].Kind != tracking.KindInvoice || sale.Objects[1].Status != "paid" {
		t.Errorf("got %+v, %v", sale, err)
	}
}

// TestSell_PartPaid: a part that is paid for an open invoice is not the sale's payment.
func TestSell_PartPaid(t *testing.T) {
	s := open(t, "")
	o := s.order(tracking.Product, s.card("tok_threeDSecure2Required"))
	first, err := s.tracker.Sell(t.Context(), o, false)
	if err != nil || !first.Action {
		t.Fatalf("got %+v, %v", first, err)
	}
	card := s.make("payment_methods/pm_card_visa/attach", "customer="+first.Customer)
	part := s.make("payment_intents", "amount=500&currency=usd&confirm=true&payment_method_types[0]=card&customer="+
		first.Customer+"&payment_method="+card)
	s.make("invoices/"+first.Objects[0].Invoice+"/attach_payment", "payment_intent="+part)
	found, err := s.tracker.Find(t.Context(), o)
	if err != nil || !found.Action || len(found.Objects) != 1 || found.Objects[0].ID != first.Objects[0].ID {
		t.Errorf("got %+v, %v; want %s, which still waits for the buyer", found, err, first.Objects[0].ID)
	}
}
