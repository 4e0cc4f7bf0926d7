package sell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// A crash is what befalls one request of a sale.
type crash string

const (
	diesBefore   crash = "dies before"   // the process, before the request left
	diesAfter    crash = "dies after"    // the process, when the request was carried out
	breaksBefore crash = "breaks before" // the connection; of a POST, as the others are sent again
	breaksAfter  crash = "breaks after"
	fails500     crash = "500" // not carried out, and repeated under the key
	lies500      crash = "500 and done"
)

// A crasher is a way to the fake on which one request has a crash.
type crasher struct {
	t    *testing.T
	next http.RoundTripper
	fake *stripefake.Fake

	mu    sync.Mutex
	left  int // until the crash; guarded by mu
	crash crash
	die   context.CancelFunc
	sent  []string // guarded by mu

	instead func(*http.Request) *apitest.Reply // answers in the fake's place, unless it returns nil; or nil
}

func (c *crasher) arm(at int, how crash, die context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.crash, c.die, c.sent = at, how, die, nil
}

func (c *crasher) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// RoundTrip implements http.RoundTripper. Requests come one after the other here.
func (c *crasher) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, api.Endpoint(r.Method, r.URL.Path))
	if c.instead != nil {
		if a := c.instead(r); a != nil {
			return (&apitest.Script{T: c.t, Replies: []apitest.Reply{*a}}).RoundTrip(r)
		}
	}
	c.left--
	if c.left != 0 || r.Method == http.MethodGet && c.crash != diesBefore && c.crash != diesAfter {
		return c.next.RoundTrip(r)
	}
	switch c.crash {
	case diesBefore:
		c.die()
		return nil, context.Canceled
	case breaksBefore:
		return nil, io.ErrUnexpectedEOF
	case fails500, lies500:
		faults := stripefake.Faults{Errors: 1}
		if c.crash == lies500 {
			faults = stripefake.Faults{LateErrors: 1}
		}
		if err := c.fake.SetFaults(faults); err != nil {
			return nil, err
		}
		defer func() { _ = c.fake.SetFaults(stripefake.Faults{}) }() // none are always right
		return c.next.RoundTrip(r)
	}
	resp, err := c.next.RoundTrip(r.Clone(context.WithoutCancel(r.Context())))
	if err != nil {
		return nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	if c.crash == diesAfter {
		c.die()
		return nil, context.Canceled
	}
	return nil, io.ErrUnexpectedEOF
}

const testPurchase = "0198f2c0-1111-7222-8333-444455556666"

// A shop sells at a fake with a memory.
type shop struct {
	*testing.T
	tracker Tracker
	fake    *stripefake.Fake
	way     *crasher
	at      string
	monthly string // price of 30.00 a month
	once    string // price of 15.00
}

func open(t *testing.T, at string) *shop {
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	s := &shop{T: t, way: &crasher{t: t, next: own}, at: at}
	s.tracker, s.fake = selling(t, s.way)
	s.way.fake = s.fake
	if at != "" {
		if err := s.fake.Connect(at, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.monthly = s.make("prices", "currency=usd&unit_amount=3000&recurring[interval]=month&product_data[name]=Course")
	s.once = s.make("prices", "currency=usd&unit_amount=1500&product_data[name]=Book")
	return s
}

// make is somebody else's request; it returns the id of what was made.
func (s *shop) make(path, form string) string {
	s.Helper()
	values, err := url.ParseQuery(form)
	if err != nil {
		s.Fatal(err)
	}
	raw, _, err := s.tracker.api.Ask(s.Context(), http.MethodPost, "/v1/"+path, s.at, "", values)
	if err != nil {
		s.Fatal(err)
	}
	id, err := api.IDIn(raw)
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// card makes a payment method that nobody has yet.
func (s *shop) card(token string) string {
	s.Helper()
	return s.make("payment_methods", "type=card&card[token]="+token)
}

func (s *shop) order(kind tracking.Kind, card string) tracking.Order {
	o := tracking.Order{Kind: kind, At: s.at, Tag: tracking.Tag{Installation: "inst", Purchase: testPurchase, Kind: kind},
		Email: "buyer@example.com", Name: "A Buyer", PaymentMethod: card, Description: "Course"}
	switch kind {
	case tracking.Subscribe:
		o.Price = s.monthly
	case tracking.SplitPayment:
		o.Price, o.Payments = s.monthly, 3
	default:
		o.Amount, o.Currency = 1299, "USD"
	}
	if kind == tracking.Legacy {
		o.PaymentMethod = ""
	}
	return o
}

// there returns what the list has that is not void or canceled.
func (s *shop) there(path string) (list []string) {
	s.Helper()
	query := url.Values{}
	if path == "subscriptions" {
		query.Set("status", "all")
	}
	for raw, err := range s.tracker.api.Rows(s.Context(), s.at, "/v1/"+path, query, nil) {
		if err != nil {
			s.Fatal(err)
		}
		var o struct{ ID, Status string }
		if err := json.Unmarshal(raw, &o); err != nil {
			s.Fatal(err)
		}
		if o.Status != "void" && o.Status != "canceled" {
			list = append(list, o.ID+" "+o.Status)
		}
	}
	return list
}

// paid returns the charges that have succeeded.
func (s *shop) paid() (list []stripefake.Entry) {
	for e := range s.fake.Ledger() {
		if e.Type == "charge" {
			list = append(list, e)
		}
	}
	return list
}

// check holds what is at Stripe against one purchase that went as far as the card lets it, and
// the sale against both.
func (s *shop) check(o tracking.Order, card string, sale tracking.Sale, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("got %v", err)
	}
	type outcome struct {
		objects string
		counts  map[string]int
		amount  int64
	}
	want := map[tracking.Kind]outcome{
		tracking.Legacy:  {"payment_intent", map[string]int{"payment_intents": 1, "invoices": 0, "customers": 0}, 0},
		tracking.Product: {"payment_intent", map[string]int{"payment_intents": 1, "invoices": 1, "customers": 1}, 1299},
		tracking.Subscribe: {"subscription payment_intent",
			map[string]int{"payment_intents": 1, "invoices": 1, "subscriptions": 1, "customers": 1}, 3000},
		tracking.SplitPayment: {"subscription_schedule subscription",
			map[string]int{"invoices": 1, "subscriptions": 1, "subscription_schedules": 1, "customers": 1}, 3000},
	}[o.Kind]
	isDeclined := card != "tok_visa"
	if isDeclined {
		want = outcome{"payment_intent", map[string]int{"payment_intents": 0, "invoices": 0, "customers": 1}, 0}
	}
	var kinds []string
	for _, got := range sale.Objects {
		kinds = append(kinds, got.Kind)
		if !got.Fetched || got.Tag != o.Tag || got.Failed != isDeclined {
			s.Errorf("got the object %+v", got)
		}
	}
	if got := strings.Join(kinds, " "); got != want.objects &&
		!(o.Kind == tracking.SplitPayment && got == want.objects+" payment_intent") {
		s.Errorf("got the objects %q, want %q", got, want.objects)
	}
	isLegacy := o.Kind == tracking.Legacy
	if (sale.Declined != "") != isDeclined || sale.Action || sale.ClientSecret.IsZero() == isLegacy ||
		(sale.Customer == "") != isLegacy {
		s.Errorf("got %+v", sale)
	}
	if o.Kind == tracking.SplitPayment {
		s.fake.Advance(2 * time.Hour) // its first invoice is a draft until then
	}
	for path, n := range want.counts {
		if got := s.there(path); len(got) != n {
			s.Errorf("%d %s, want %d: %v", len(got), path, n, got)
		}
	}
	switch charges := s.paid(); {
	case want.amount == 0 && len(charges) > 0, want.amount > 0 && (len(charges) != 1 || charges[0].Amount != want.amount):
		s.Errorf("got the charges %+v, want one over %d", charges, want.amount)
	}
}

// A sale that crashes at any request, in any way, and is taken up again at once, after the
// keys are forgotten, or after a look by somebody else, ends as one that does not crash. A share
// of the cases: each request and crash, and of what comes then one. DUESDAY_SOAK=1 plays all.
func TestSell_CrashesAnywhere(t *testing.T) {
	t.Parallel()
	cases, programme := 0, soaktest.Start(t)
	for _, kind := range []tracking.Kind{tracking.Legacy, tracking.Product, tracking.Subscribe, tracking.SplitPayment} {
		for _, card := range []string{"tok_visa", "tok_chargeCustomerFail"} {
			if card != "tok_visa" && kind != tracking.Product {
				continue // of the others a decline takes no request more
			}
			cases += crashedSales(t, programme, kind, card)
		}
	}
	t.Logf("%d crashes", cases)
}

// crashedSales has every request of one sale crash, and returns how many cases that are.
func crashedSales(t *testing.T, programme *soaktest.Programme, kind tracking.Kind, card string) (cases int) {
	plain := open(t, "")
	o := plain.order(kind, plain.card(card))
	plain.way.arm(0, "", nil)
	sale, err := plain.tracker.Sell(t.Context(), o, false)
	requests := plain.way.requests()
	plain.check(o, card, sale, err)
	turn := 0
	for at, request := range requests {
		turn++ // so that what comes then changes from request to request
		for k, how := range []crash{diesBefore, diesAfter, breaksBefore, breaksAfter, fails500, lies500} {
			if strings.HasPrefix(request, "GET ") && how != diesBefore && how != diesAfter {
				continue
			}
			for i, then := range []string{"at once", "after 25 h", "found first", "twice"} {
				if (turn+k)%4 != i && !soaktest.On() {
					continue
				}
				if !programme.Next() {
					return cases
				}
				cases++
				t.Run(fmt.Sprintf("%s/%s/%d %s/%s/%s", kind, card, at+1, request, how, then), func(t *testing.T) {
					crashedSale(t, kind, card, how, then, at+1)
				})
			}
		}
	}
	return cases
}

func crashedSale(t *testing.T, kind tracking.Kind, card string, how crash, then string, at int) {
	s := open(t, "")
	o := s.order(kind, s.card(card))
	sell := func(again bool) error {
		ctx, die := context.WithCancel(t.Context())
		defer die()
		s.way.arm(at, how, die)
		_, err := s.tracker.Sell(ctx, o, again)
		if errors.Is(err, tracking.ErrOrder) || errors.Is(err, tracking.ErrDisconnected) {
			t.Fatalf("the crash was called %v", err)
		}
		return err
	}
	if err := sell(false); err == nil &&
		!strings.HasSuffix(s.way.requests()[at-1], "/pay") { // that is looked at by itself
		t.Errorf("nothing crashed: %v", s.way.requests())
	}
	switch then {
	case "after 25 h":
		s.fake.Advance(25 * time.Hour)
	case "twice": // the second attempt has the same happen to a request
		_ = sell(true) // is looked at by what it left
	case "found first":
		s.way.arm(0, "", nil)
		if _, err := s.tracker.Find(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.way.requests() {
			if !strings.HasPrefix(r, "GET ") {
				t.Errorf("to look sent %s", r)
			}
		}
	}
	s.way.arm(0, "", nil)
	sale, err := s.tracker.Sell(t.Context(), o, true)
	s.check(o, card, sale, err)
	found, err := s.tracker.Find(t.Context(), o)
	if err != nil || len(found.Objects) < len(sale.Objects) || found.Customer != sale.Customer ||
		(found.Declined == "") != (sale.Declined == "") {
		t.Errorf("sold %+v, and found %+v, %v", sale, found, err)
	}
}
