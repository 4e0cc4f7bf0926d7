package payout_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/stripefake"
)

const connected = "acct_one"

// A shop is a store of random subscriptions, and the fake that charges them and pays out.
type shop struct {
	*testing.T
	*rand.Rand
	e       *engine.Engine
	proc    processor.Charger
	fake    *stripefake.Fake
	hours   atomic.Int64 // since the beginning
	rates   map[string]float64
	payouts []string
	opened  []string // disputes
}

var began = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

func (s *shop) now() time.Time { return began.Add(time.Duration(s.hours.Load()) * time.Hour) }

// RoundTrip sends a request to the fake without a network.
func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.fake.ServeHTTP(w, r)
	return w.Result(), nil
}

func (s *shop) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

var shopCurrencies = []string{"EUR", "USD", "JPY", "KWD"}

func newShop(t *testing.T, seed uint64) *shop {
	s := &shop{T: t, Rand: rand.New(rand.NewPCG(seed, 29))}
	s.fake = stripefake.New(stripefake.Options{Now: s.now})
	t.Cleanup(func() { s.check(s.fake.Close()) })
	s.check(s.fake.Connect(connected, ""))
	if s.IntN(3) == 0 {
		s.rates = map[string]float64{"eur": 1.1}
	}
	p, err := stripe.New(stripe.Options{API: api.Options{Key: secret.New("sk_test_duesday"), Base: "http://fake.example", Now: s.now,
		Rate: api.MaxRate, Transport: s}})
	s.check(err)
	t.Cleanup(func() { s.check(p.Close()) })
	s.proc = p
	tables := schema.New("x-")
	mem, err := memstore.Open(tables.All(), s.now)
	s.check(err)
	s.e, err = engine.Open(t.Context(), engine.Options{Store: mem, Tables: tables, Processor: p, Now: s.now,
		Config: engine.DefaultConfig(), Making: billing.MakeNew, Log: slog.New(slog.DiscardHandler)})
	s.check(err)
	for i := range 6 {
		id, at, fee := fmt.Sprint("a", i), "", 0
		_, err := account.Create(t.Context(), s.e.Records, id, billing.Account{Email: id + "@example.com"})
		s.check(err)
		if i%3 == 2 {
			at, fee = connected, 250
		}
		cards := []string{"visa", "visa", "createDispute", "createDisputeInquiry", "pendingRefund", "refundFail", "visa_chargeDeclined"}
		_, err = s.e.Attach(t.Context(), id, billing.Attachment{Method: "pm_card_" + cards[s.IntN(len(cards))], Connected: &at, Fee: &fee})
		s.check(err)
		_, err = s.e.CreateSubscription(t.Context(), billing.NewSubscription{Account: id, ID: "1", SKU: "gym",
			Amount: apitest.Money(t, shopCurrencies[s.IntN(4)], 10*(100+s.Int64N(900))), PaymentDay: 1 + s.IntN(7),
			Interval: civil.Interval{N: 1, Unit: civil.Week}})
		s.check(err)
	}
	return s
}

// ask sends a request of another system with the same key.
func (s *shop) ask(at, path, form string) bool {
	r, err := http.NewRequestWithContext(s.Context(), "POST", "http://fake.example"+path, strings.NewReader(form))
	s.check(err)
	r.SetBasicAuth("sk_test_duesday", "")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if at != "" {
		r.Header.Set("Stripe-Account", at)
	}
	res, err := s.RoundTrip(r)
	s.check(err)
	_, err = io.Copy(io.Discard, res.Body)
	s.check(err)
	return res.StatusCode == http.StatusOK
}

// foreign is a charge of another system.
func (s *shop) foreign(at, currency string, amount int64) {
	if !s.ask(at, "/v1/payment_intents", fmt.Sprintf("amount=%d&currency=%s&payment_method_types[]=card&payment_method=pm_card_visa&confirm=true",
		amount, strings.ToLower(currency))) {
		s.Fatal("another system's charge failed")
	}
}

func (s *shop) receipts() (all []*billing.Receipt) {
	for r, err := range s.e.Receipts(s.Context()) {
		s.check(err)
		all = append(all, r)
	}
	return all
}

func (s *shop) payOut(at string) {
	s.payouts = append(s.payouts, s.fake.PayOut(stripefake.Payout{Account: at, Currency: "usd", Rates: s.rates})...)
}

// move does something that changes the balance. Moves that are refused, such as a second refund of the whole
// amount, are part of the programme.
func (s *shop) move() {
	all := s.receipts()
	if len(all) == 0 {
		return
	}
	r := all[s.IntN(len(all))]
	at, intent, found := strings.Cut(r.Charge, "/")
	if !found {
		at, intent = "", r.Charge
	}
	part := 10 * (1 + s.Int64N(r.Amount.Minor()/10))
	switch s.IntN(9) {
	case 0:
		_, _, _ = s.e.Refunds().Refund(s.Context(), refund.Order{Name: r.Name, Period: r.Period, Amount: money.New(part, r.Amount.Currency())})
	case 1:
		s.ask(at, "/v1/refunds", fmt.Sprintf("payment_intent=%s&amount=%d", intent, part))
	case 2:
		if id, err := s.fake.Dispute(intent, ""); err == nil {
			s.opened = append(s.opened, id)
		}
	case 3:
		if len(s.opened) > 0 {
			id := s.opened[s.IntN(len(s.opened))]
			if s.IntN(3) == 0 {
				_ = s.fake.AppealDispute(id)
			} else {
				_ = s.fake.CloseDispute(id, []string{"won", "lost"}[s.IntN(2)])
			}
		}
	case 4:
		s.foreign([]string{"", connected}[s.IntN(2)], shopCurrencies[s.IntN(4)], 5000)
	case 5, 6:
		s.payOut("")
	case 7:
		s.payOut(connected)
	case 8:
		if len(s.payouts) > 0 {
			_ = s.fake.FailPayout(s.payouts[s.IntN(len(s.payouts))])
		}
	}
}

// live runs the shop for six weeks, and pays everything out.
func (s *shop) live() {
	for range 42 {
		_, err := job.Payments(s.Context(), s.e, job.Options{Workers: 2})
		s.check(err)
		for range s.IntN(3) {
			s.move()
		}
		s.hours.Add(24)
	}
	_, err := job.Payments(s.Context(), s.e, job.Options{Workers: 2}) // it records the last refunds and disputes
	s.check(err)
	for _, at := range []string{"", connected} {
		for _, currency := range shopCurrencies { // so that no balance is negative
			s.foreign(at, currency, 99_999_990)
		}
		s.payOut(at)
	}
	s.hours.Add(20 * 24)
}

func (s *shop) report(p processor.Charger) *payout.Report {
	r, err := payout.Make(s.Context(), s.e.Records, p, payout.Query{From: civil.Of(began), Days: payout.Settled})
	s.check(err)
	return r
}

// sums adds up amounts by a key, such as what, where and in which currency.
type sums map[string]int64

func (x sums) add(amount int64, key ...any) { x[fmt.Sprintln(key...)] += amount }

func (s *shop) compare(what string, got, want sums) {
	s.Helper()
	zero := func(_ string, n int64) bool { return n == 0 }
	maps.DeleteFunc(got, zero)
	maps.DeleteFunc(want, zero)
	if !maps.Equal(got, want) {
		s.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// ledger adds up the fake's ledger: by Stripe account and currency of the payouts, and of this store by the
// currency that customers pay in.
func (s *shop) ledger() (parts, own sums) {
	parts, own = sums{}, sums{}
	for x := range s.fake.Ledger() {
		at, currency, rate := strings.TrimPrefix(x.Account, stripefake.DefaultAccount), strings.ToUpper(x.Currency), 1.0
		if r, converts := s.rates[x.Currency]; converts {
			currency, rate = "USD", r
		}
		kind, amount := x.Type, x.Amount
		switch {
		case x.Type == "charge":
		case x.Status == "failed" || x.Status == "canceled" || x.Status == "won" || strings.HasPrefix(x.Status, "warning_"):
			amount = 0
		default:
			amount = -amount
		}
		own.add(amount*min(1, int64(len(x.Metadata["duesday_installation"]))), kind, strings.ToUpper(x.Currency))
		if x.Metadata["duesday_installation"] == "" {
			kind = "other"
		}
		parts.add(int64(math.Round(float64(amount)*rate)), kind, at, currency)
	}
	return parts, own
}

// TestRandom: receipts, the processor's ledger and the payouts are the same to the minor unit.
func TestRandom(t *testing.T) {
	for seed := range soaktest.Seeds(t, 4, 1000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the requests' rate needs no time
				s := newShop(t, seed)
				s.live()
				r := s.report(s.proc)
				if len(r.Unreceipted)+len(r.Unsettled)+len(r.Gaps)+r.Untold > 0 {
					t.Fatalf("%d charges without a receipt, %d receipts without a payout, %+v, %d in doubt", len(r.Unreceipted),
						len(r.Unsettled), r.Gaps, r.Untold)
				}
				s.agree(r)
				s.plant()
			})
		})
	}
}

// agree compares the report with the ledger, and the store with both.
func (s *shop) agree(r *payout.Report) {
	parts, own := s.ledger()
	got := sums{}
	for _, p := range r.Payouts {
		currency := p.Amount.Currency().Code()
		left := p.Amount.Minor()
		for _, kind := range []processor.TransactionKind{"charge", "refund", "dispute", "fee", "other"} {
			left -= p.Sum(kind).Minor()
			if kind != processor.SettledFee {
				got.add(p.Sum(kind).Minor(), kind, p.At, currency)
			}
		}
		if left != 0 || !p.Unlisted.IsZero() {
			s.Errorf("%s: %d of %s is not explained", p.ID, left, p.Amount)
		}
		if p.Returned { // a later payout has it as other
			got.add(-p.Amount.Minor(), "other", p.At, currency)
		}
	}
	s.compare("payouts", got, parts)
	stored, charges := sums{}, sums{}
	for _, x := range s.receipts() {
		stored.add(x.Amount.Minor(), "charge", x.Amount.Currency().Code())
		charges.add(x.Amount.Minor(), x.Amount.Currency().Code())
	}
	for x, err := range s.e.ReversalRecords(s.Context()) {
		if s.check(err); x.Counts() {
			stored.add(-x.Amount.Minor(), x.Kind, x.Amount.Currency().Code())
		}
	}
	s.compare("receipts, refunds and disputes", stored, own)
	months, err := s.e.Report(s.Context(), report.Query{From: civil.Of(began), Days: 1, Progress: func(int64) {}})
	s.check(err)
	collected := sums{}
	for _, m := range months.Months {
		collected.add(m.Sums[report.Collected].Minor(), m.Sums[report.Collected].Currency().Code())
	}
	s.compare("the monthly report", collected, charges)
}

// A liar is the processor with answers changed by a test.
type liar struct {
	processor.Charger
	processor.Settler
	hides   string // the payout whose last transaction is missing
	fails   bool   // with an error
	refuses string // the connected account
}

func (l liar) Payouts(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Payout, error] {
	if l.refuses != "" && l.refuses == r.At {
		return sequence.Fail[processor.Payout](processor.ErrAccountRefused)
	}
	return l.Settler.Payouts(ctx, r)
}

func (l liar) Settled(ctx context.Context, at, id string) iter.Seq2[processor.Transaction, error] {
	all, err := processor.Gather(l.Settler.Settled(ctx, at, id))
	if err == nil && l.hides == id {
		if all = all[:len(all)-1]; l.fails {
			err = processor.ErrUnknown
		}
	}
	return then(all, err)
}

// plant plants one fault after another, and expects that the report has it and nothing else.
func (s *shop) plant() {
	all := s.receipts()
	if len(all) == 0 {
		s.Fatal("a shop without receipts")
	}
	lost := all[s.IntN(len(all))]
	stored := lost.Item()
	say := func(what string, p processor.Charger, want ...string) {
		s.Helper()
		r := s.report(p)
		var got []string
		for _, l := range r.Unreceipted {
			got = append(got, l.Ref+" "+l.Problem)
		}
		for _, l := range r.Unsettled {
			got = append(got, l.Ref+" "+l.Problem)
		}
		for _, p := range r.Gaps {
			got = append(got, "gap at "+p.At+" "+p.ID)
		}
		if !slices.Equal(got, want) {
			s.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	put := func(r billing.Receipt) {
		s.Helper()
		s.check(s.e.Store.Commit(s.Context(), store.Put(s.e.Table, r.Item())))
	}
	remove := func(it store.Item) {
		s.Helper()
		s.check(s.e.Store.Commit(s.Context(), store.Delete(s.e.Table, billing.KeyOf(it))))
	}
	remove(stored)
	say("a lost receipt", s.proc, lost.Charge+" no receipt")
	other := *lost
	other.Amount = money.New(lost.Amount.Minor()+1, lost.Amount.Currency())
	put(other)
	say("another amount", s.proc, lost.Charge+" receipt of "+other.Amount.String())
	put(*lost)
	extra := *lost
	extra.Period, extra.Charge = 77, "pi_none"
	put(extra)
	say("a receipt without a charge", s.proc, "pi_none in no payout")

	settler := s.proc.(processor.Settler)
	full := s.report(s.proc).Payouts
	hidden := full[s.IntN(len(full))]
	for len(hidden.Lines) == 0 || hidden.Lines[len(hidden.Lines)-1].Net.IsZero() {
		hidden = full[s.IntN(len(full))]
	}
	want := []string{"gap at " + hidden.At + " " + hidden.ID}
	if hidden.At != "" { // the extra receipt is on our own account
		want = append([]string{"pi_none in no payout"}, want...)
	}
	for _, fails := range []bool{false, true} {
		say("a missing page", liar{Charger: s.proc, Settler: settler, hides: hidden.ID, fails: fails}, want...)
	}
	say("a connected account", liar{Charger: s.proc, Settler: settler, refuses: connected}, "pi_none in no payout", "gap at "+connected+" ")
	remove(extra.Item())
	say("all is well again", s.proc)
}
