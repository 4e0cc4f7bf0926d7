package payout_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

const installation = "inst1"

var now = time.Date(2026, 4, 30, 12, 0, 0, 0, time.UTC)

// A bank is a processor that pays out what the test says.
type bank struct {
	processor.Charger
	payouts map[string][]processor.Payout // by place
	settled map[string][]processor.Transaction
	fails   map[string]error // by place, or by payout
}

// then yields the list, and the error after its first half.
func then[T any](list []T, err error) iter.Seq2[T, error] {
	if err == nil {
		return sequence.Of(list)
	}
	return func(yield func(T, error) bool) {
		for _, v := range list[:len(list)/2] {
			if !yield(v, nil) {
				return
			}
		}
		yield(*new(T), err)
	}
}

func (b *bank) Payouts(_ context.Context, r processor.ListRequest) iter.Seq2[processor.Payout, error] {
	arrived := slices.DeleteFunc(slices.Clone(b.payouts[r.At]), func(p processor.Payout) bool { return p.Arrival.In(time.UTC).Before(r.Since) })
	return then(arrived, b.fails["at "+r.At])
}

func (b *bank) Settled(_ context.Context, _, id string) iter.Seq2[processor.Transaction, error] {
	return then(b.settled[id], b.fails[id])
}

func eur(minor int64) money.Amount {
	c, _ := money.ParseCurrency("EUR")
	return money.New(minor, c)
}

// entry returns a transaction; a charge has a fee of 10 and is this store's.
func entry(kind processor.TransactionKind, ref string, gross int64) processor.Transaction {
	t := processor.Transaction{ID: "txn_" + string(kind) + ref, Kind: kind, Type: string(kind), Ref: ref, Created: now.AddDate(0, 0, -25),
		Gross: eur(gross), Net: eur(gross), Fee: eur(0)}
	if kind == processor.SettledCharge {
		t.Tag = processor.Tag{Installation: installation, Account: "1"}
		t.Fee, t.Net, t.Charged = eur(-10), eur(gross-10), eur(gross)
	}
	return t
}

func receipt(charge string, amount int64, daysAgo int) *billing.Receipt {
	return &billing.Receipt{Name: billing.Name{Account: "1", SKU: "news", ID: "1"}, SKU: "news", Kind: billing.Charged,
		Processed: now.AddDate(0, 0, -daysAgo), Amount: eur(amount), Charge: charge}
}

// A scene is a store's receipts and a processor's payouts.
type scene struct {
	*testing.T
	bank
	receipts []*billing.Receipt
	query    payout.Query
	places   []string
	damage   bool // the second receipt
}

func newScene(t *testing.T) *scene {
	return &scene{T: t, bank: bank{payouts: map[string][]processor.Payout{}, settled: map[string][]processor.Transaction{},
		fails: map[string]error{}}, query: payout.Query{From: civil.Of(now.AddDate(0, 0, -29)), Days: 14}}
}

// pays adds a payout of the transactions.
func (s *scene) pays(at, id string, state string, list ...processor.Transaction) *processor.Payout {
	sum := int64(0)
	for _, t := range list {
		sum += t.Net.Minor()
	}
	s.settled[id] = list
	s.payouts[at] = append(s.payouts[at], processor.Payout{At: at, ID: id, Amount: eur(sum), State: state, Returned: state == "failed",
		Arrival: civil.Of(now.AddDate(0, 0, -20))})
	return &s.payouts[at][len(s.payouts[at])-1]
}

func (s *scene) report() (*payout.Report, error) {
	s.Helper()
	tables := schema.New("x-")
	mem, err := memstore.Open(tables.All(), func() time.Time { return now })
	if err != nil {
		s.Fatal(err)
	}
	e := billing.NewRecords(mem, tables, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	meta := billing.ItemAt(store.Key{PK: billing.MetaPK, SK: billing.MetaPK})
	meta.Set(schema.Installation, store.S(installation))
	writes := []store.Write{store.Put(e.Table, meta)}
	for _, at := range s.places {
		writes = append(writes, e.RegisterPlace(processor.Payer{At: at})...)
	}
	for i, r := range s.receipts {
		r.Period = i
		it := r.Item()
		if s.damage && i == 1 {
			it.Set(schema.ProcessedAmount, store.S("much"))
		}
		writes = append(writes, store.Put(e.Table, it))
	}
	if err := mem.Commit(s.Context(), writes...); err != nil {
		s.Fatal(err)
	}
	return payout.Make(s.Context(), e, &s.bank, s.query)
}

// want compares the report's lists with texts.
func (s *scene) want(unreceipted, unsettled, gaps string) *payout.Report {
	s.Helper()
	r, err := s.report()
	if err != nil {
		s.Fatal(err)
	}
	var a, b, c []string
	for _, l := range r.Unreceipted {
		a = append(a, l.Ref+": "+l.Problem)
	}
	for _, u := range r.Unsettled {
		b = append(b, u.Ref+": "+u.Problem)
	}
	for _, g := range r.Gaps {
		c = append(c, g.At+" "+g.ID+": "+g.Hidden)
	}
	for i, got := range []string{strings.Join(a, "; "), strings.Join(b, "; "), strings.Join(c, "; ")} {
		if want := []string{unreceipted, unsettled, gaps}[i]; got != want {
			s.Errorf("list %d: got %q, want %q", i, got, want)
		}
	}
	for _, p := range r.Payouts {
		sum := p.Unlisted.Minor()
		for _, kind := range []processor.TransactionKind{"charge", "refund", "dispute", "fee", "other"} {
			sum += p.Sum(kind).Minor()
		}
		if sum != p.Amount.Minor() {
			s.Errorf("%s: the parts are %d, not %s", p.ID, sum, p.Amount)
		}
	}
	return r
}

func TestMake(t *testing.T) {
	s := newScene(t)
	other := entry(processor.SettledCharge, "pi_9", 500)
	other.Tag = processor.Tag{}
	s.pays("", "po_1", "paid", entry(processor.SettledCharge, "pi_1", 1000), entry(processor.SettledRefund, "pi_1", -300),
		entry(processor.SettledDispute, "pi_0", -100), entry(processor.SettledRefund, "pi_8", -50), other)
	s.receipts = []*billing.Receipt{receipt("pi_1", 1000, 25), receipt("pi_0", 100, 200), receipt("pi_2", 700, 3), receipt("pi_3", 700, 40)}
	r := s.want("", "", "")
	for part, minor := range map[processor.TransactionKind]int64{"charge": 1000, "refund": -300, "dispute": -100, "other": 450, "fee": -20} {
		if got := r.Payouts[0].Sum(part); got != eur(minor) {
			t.Errorf("%s: got %s, want %s", part, got, eur(minor))
		}
	}
}

// TestMake_Lists: what must be listed is, and nothing else.
func TestMake_Lists(t *testing.T) {
	s := newScene(t)
	old := entry(processor.SettledCharge, "pi_old", 100)
	old.Created = now.AddDate(0, -7, 0)
	s.pays("", "po_1", "in_transit", entry(processor.SettledCharge, "pi_1", 1000), entry(processor.SettledCharge, "pi_2", 1000), old)
	s.receipts = []*billing.Receipt{receipt("pi_2", 999, 25), receipt("pi_3", 700, 15), receipt("pi_4", 700, 13)}
	r := s.want("pi_1: no receipt; pi_2: receipt of 9.99 EUR", "pi_3: in no payout", "")
	if got := r.Payouts[0].Lines[2].Problem; got != "the receipt may have expired" {
		t.Errorf("the old charge: %q", got)
	}
	s.query.Until = civil.Of(now.AddDate(0, 0, -21)) // the payout arrives later, and still tells of its charges
	if r := s.want("", "", ""); len(r.Payouts) != 0 {
		t.Errorf("%d payouts, want 0", len(r.Payouts))
	}
}

// TestMake_Returned: a receipt in a failed payout is in none, until another has its money.
func TestMake_Returned(t *testing.T) {
	s := newScene(t)
	s.pays("", "po_1", "failed", entry(processor.SettledCharge, "pi_1", 1000))
	s.receipts = []*billing.Receipt{receipt("pi_1", 1000, 25)}
	s.want("", "pi_1: only in po_1, which failed", "")
	back := entry(processor.SettledOther, "po_1", 990)
	s.pays("", "po_2", "paid", back)
	s.want("", "", "")
}

// TestMake_Gaps: whatever is not told is named, and no receipt is missing because of it.
func TestMake_Gaps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"a page is missing":   {func(s *scene) { s.fails["po_1"] = processor.ErrUnknown }, " po_1: its transactions could not be listed: "},
		"no list of payouts":  {func(s *scene) { s.fails["at "] = processor.ErrUnknown }, " : the payouts could not be listed: "},
		"a manual payout":     {func(s *scene) { s.payouts[""][0].Hidden = "manual" }, " po_1: manual"},
		"an entry is missing": {func(s *scene) { s.settled["po_1"] = s.settled["po_1"][1:] }, " po_1: its transactions leave 9.90 EUR unexplained"},
		"an entry twice": {func(s *scene) { s.settled["po_1"][1] = s.settled["po_1"][0] },
			" po_1: transaction txn_chargepi_1 is listed twice, or "},
		"another currency": {func(s *scene) {
			c, _ := money.ParseCurrency("USD")
			s.settled["po_1"][1].Net = money.New(990, c)
		}, " po_1: transaction txn_chargepi_2 is listed twice, or "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.pays("", "po_1", "paid", entry(processor.SettledCharge, "pi_1", 1000), entry(processor.SettledCharge, "pi_2", 1000))
			s.receipts = []*billing.Receipt{receipt("pi_1", 1000, 25), receipt("pi_2", 1000, 25), receipt("pi_3", 1000, 25)}
			c.change(s)
			r, err := s.report()
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Gaps) != 1 || !strings.HasPrefix(r.Gaps[0].At+" "+r.Gaps[0].ID+": "+r.Gaps[0].Hidden, c.want) {
				t.Errorf("gaps %+v, want %q", r.Gaps, c.want)
			}
			if len(r.Unsettled) > 0 || r.Untold == 0 {
				t.Errorf("missing: %v, and %d in doubt", r.Unsettled, r.Untold)
			}
		})
	}
}

// TestMake_Connected: a connected account that does not answer hides no receipt of another.
func TestMake_Connected(t *testing.T) {
	s := newScene(t)
	s.places = []string{"acct_a", "acct_b"}
	s.pays("acct_a", "po_1", "paid", entry(processor.SettledCharge, "acct_a/pi_1", 1000))
	s.receipts = []*billing.Receipt{receipt("acct_a/pi_1", 1000, 25), receipt("acct_a/pi_2", 1000, 25), receipt("acct_b/pi_3", 1000, 25)}
	s.fails["at acct_b"] = processor.ErrAccountRefused
	r := s.want("", "acct_a/pi_2: in no payout", "acct_b : the payouts could not be listed: "+processor.ErrAccountRefused.Error())
	if r.Untold != 1 || r.Payouts[0].At != "acct_a" {
		t.Errorf("%d in doubt, %+v", r.Untold, r.Payouts)
	}
}

func TestMake_Refuses(t *testing.T) {
	s := newScene(t)
	s.fails["at "] = processor.ErrRefused
	if _, err := s.report(); !errors.Is(err, processor.ErrRefused) {
		t.Errorf("refused credentials: got %v", err)
	}
	s.receipts = nil
	if _, err := payout.Make(t.Context(), nil, s.Charger, s.query); !errors.Is(err, payout.ErrNone) {
		t.Errorf("no settler: got %v", err)
	}
}

// TestMake_Early: a receipt's first day may begin before the bank's.
func TestMake_Early(t *testing.T) {
	s := newScene(t)
	s.pays("", "po_1", "paid", entry(processor.SettledCharge, "pi_1", 1000)).Arrival = s.query.From.AddDays(-1)
	s.receipts = []*billing.Receipt{receipt("pi_1", 1000, 29)}
	if r := s.want("", "", ""); len(r.Payouts) > 0 {
		t.Errorf("%d payouts, want 0", len(r.Payouts))
	}
}

// TestMake_GapElsewhere: a payout outside the days of the report only matters if it may have a receipt that is
// missing.
func TestMake_GapElsewhere(t *testing.T) {
	s := newScene(t)
	s.pays("", "po_1", "paid", entry(processor.SettledCharge, "pi_1", 1000))
	later := s.pays("", "po_2", "paid")
	later.Hidden, later.Arrival = "manual", civil.Of(now.AddDate(0, 0, -5))
	s.receipts = []*billing.Receipt{receipt("pi_1", 1000, 25)}
	s.query.Until = civil.Of(now.AddDate(0, 0, -15))
	s.want("", "", "")
	s.receipts = append(s.receipts, receipt("pi_2", 1000, 20))
	s.want("", "", " po_2: manual")
}

// TestMake_Unreadable: an item that another tool has damaged makes the report incomplete. It hides no payout, so
// other receipts are still missing, wherever they are in the store, and its charge may have a receipt.
func TestMake_Unreadable(t *testing.T) {
	s := newScene(t)
	s.pays("", "po_1", "paid", entry(processor.SettledCharge, "pi_1", 1000))
	s.receipts = []*billing.Receipt{receipt("pi_2", 1000, 25), receipt("pi_1", 1000, 25), receipt("pi_3", 1000, 25)}
	s.damage = true
	r, err := s.report()
	if err == nil && (len(r.Unsettled) != 2 || r.Untold != 0 || len(r.Unreceipted) != 1 || r.Unreceipted[0].Problem != "no receipt that can be read") {
		t.Errorf("missing %v, %d in doubt, charges %+v", r.Unsettled, r.Untold, r.Unreceipted)
	}
	if err != nil || len(r.Gaps) != 1 || !strings.HasPrefix(r.Gaps[0].Hidden, "item ACC#1 REC#") {
		t.Errorf("got %+v, %v", r, err)
	}
}
