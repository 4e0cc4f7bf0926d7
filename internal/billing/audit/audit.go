// Package audit compares a store's records with the processor's ledger. It reads both and does not
// change either.
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Report is the result of an audit.
type Report struct {
	OK            bool
	Subscriptions int
	Receipts      int // of charges
	Charges       int // successful, at the processor
	Imported      int // receipts of imported data
	External      int // receipts of manual payments
	Open          int // periods being charged
	Parked        int // subscriptions waiting for a person
	Others        int // charges of other installations, not compared
	Refunds       int // records of refunds, in any state
	Disputes      int // records of disputes, in any state
	Problems      []Problem
}

// A Problem is one disagreement, or one record that contradicts another.
type Problem struct {
	Kind         string
	Account      string
	Subscription string
	Period       int
	Detail       string
}

// An auditor gathers store and ledger, then compares them.
type auditor struct {
	*billing.Records
	proc          billing.Processor
	receiptMonths int
	now           time.Time
	subs          map[billing.Name]*audited
	emails        map[string]string // by account
	mixed         map[string]bool   // accounts whose subscriptions may have other addresses
	charges       map[periodOf][]billing.Intent
	charged       map[string]bool // connected accounts of which the store has a receipt
	blind         map[string]bool // connected accounts refusing our requests
	from          civil.Date      // the oldest date of a walk
	reversals     reversals
	result        Report
}

type periodOf struct {
	billing.Name // without SKU
	period       int
}

// audited is the summary of one subscription.
type audited struct {
	next     int // its period to be paid next; -1: no item
	status   billing.Status
	open     string // reference of the bound intent
	created  time.Time
	schedule civil.Schedule

	indexed  bool
	email    string
	receipts map[int][]billing.Receipt
	ended    map[int]billing.Ending
}

// Verify audits the whole store against the processor's ledger. No period may be charged twice and
// none skipped. Every receipt must have its charge, and every charge its receipt, unless the
// receipt has expired and its period is past. Every run must balance, and every charged
// subscription must be in the index. Verify scans, and changes nothing.
func Verify(ctx context.Context, e *billing.Records, proc billing.Processor, receiptMonths int) (*Report, error) {
	a := &auditor{Records: e, proc: proc, receiptMonths: receiptMonths, now: e.Now(),
		subs: map[billing.Name]*audited{}, emails: map[string]string{}, mixed: map[string]bool{},
		charged: map[string]bool{}, blind: map[string]bool{}, charges: map[periodOf][]billing.Intent{},
		reversals: reversals{byRef: map[string]*billing.ReversalRecord{}, byID: map[string]*billing.ReversalRecord{},
			asked: map[string]string{}}}
	var err error
	if a.from, err = e.WalkStart(ctx, billing.Payments); err != nil {
		return nil, err
	}
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
		if err != nil {
			return nil, err
		}
		a.add(it)
	}
	places, err := a.Places(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.listCharges(ctx, places); err != nil {
		return nil, err
	}
	a.compareCharges()
	a.compareSubscriptions(ctx)
	if err := a.compareReversals(ctx, places); err != nil {
		return nil, err
	}
	slices.SortFunc(a.result.Problems, func(x, y Problem) int { return strings.Compare(x.sortKey(), y.sortKey()) })
	a.result.OK = len(a.result.Problems) == 0
	return &a.result, nil
}

func (p *Problem) sortKey() string {
	return fmt.Sprint(p.Account, "/", p.Subscription, " ", p.Period, p.Kind)
}

// listCharges gathers the successes of the processor at every place.
func (a *auditor) listCharges(ctx context.Context, places []string) error {
	for _, at := range places {
		all, err := billing.AskAll(ctx, a.proc.List, billing.ListRequest{At: at})
		switch {
		case billing.Refuses(at, err):
			if a.blind[at] = true; !a.charged[at] {
				continue
			}
			a.problem("refused account", billing.Name{}, 0, "%s refuses to be asked: its charges were not looked at", at)
		case err != nil:
			return fmt.Errorf("listing the processor's charges: %w", err)
		}
		for _, in := range all {
			a.addCharge(in)
		}
	}
	return nil
}

func (a *auditor) addCharge(in billing.Intent) {
	switch {
	case in.State != billing.Succeeded:
		return
	case in.Tag.Installation != a.Opened.Installation && (in.Tag.Installation != "" || in.Tag.Account == ""):
		a.result.Others++
		return
	}
	a.result.Charges++
	k := periodOf{billing.Name{Account: in.Tag.Account, ID: in.Tag.Subscription}, in.Tag.Period}
	a.charges[k] = append(a.charges[k], in)
}

func (a *auditor) problem(kind string, n billing.Name, period int, format string, args ...any) {
	a.result.Problems = append(a.result.Problems,
		Problem{Kind: kind, Account: n.Account, Subscription: n.ID, Period: period, Detail: fmt.Sprintf(format, args...)})
}

func (a *auditor) unreadable(noun string, key store.Key, reason any) {
	a.problem("unreadable "+noun, billing.Name{Account: billing.AccountOf(key.PK)}, 0, "%s: %v", key.SK, reason)
}

func (a *auditor) sub(n billing.Name) *audited {
	n.SKU = ""
	s := a.subs[n]
	if s == nil {
		s = &audited{next: -1, receipts: map[int][]billing.Receipt{}, ended: map[int]billing.Ending{}}
		a.subs[n] = s
	}
	return s
}

// earliest returns a time before the period's payment, by the present schedule.
func (s *audited) earliest(period int) time.Time {
	if due, err := s.schedule.Due(period); err == nil {
		return due.AddDays(-2).In(time.UTC) // far east of Greenwich the day begins earlier than in UTC
	}
	return s.created
}

// add gathers one item.
func (a *auditor) add(it store.Item) {
	key := billing.KeyOf(it)
	switch n, isSub := billing.NameOf(key); {
	case key.PK == billing.SettingsKey.PK:
		a.addSettings(key, it)
	case isSub:
		s, err := billing.DecodeSubscription(it)
		if err != nil {
			a.problem("unreadable subscription", n, 0, "%v", err)
			return
		}
		a.addSubscription(s)
	case strings.HasPrefix(key.SK, billing.SubPrefix):
		a.unreadable("subscription", store.Key{PK: key.PK, SK: secret.MaskCards(key.SK)}, "want "+billing.SubscriptionForm)
	case key.SK == billing.AccountSK:
		acc := billing.DecodeAccount(it)
		a.emails[acc.ID], a.mixed[acc.ID] = acc.Email, acc.Mixed
		if acc.Copying {
			a.problem("unfinished address change", billing.Name{Account: acc.ID}, 0, "set the address again to finish it")
		}
	case strings.HasPrefix(key.SK, billing.RecPrefix):
		gather(a, "receipt", it, billing.DecodeReceipt, a.addReceipt)
	case billing.IsReversal(it):
		gather(a, "refund", it, billing.DecodeReversal, a.addReversal)
	case strings.HasPrefix(key.SK, billing.PerPrefix):
		gather(a, "period", it, billing.DecodePeriod,
			func(p *billing.EndedPeriod) { a.sub(p.Name).ended[p.Period] = p.Ending })
	case strings.HasPrefix(key.PK, "RUN#") && key.SK != billing.WatermarkSK:
		a.addRun(key, it)
	}
}

// addSettings checks the settings. A change of the time after which a receipt expires does not
// change receipts that there are: what may have expired by an older setting need not be there.
func (a *auditor) addSettings(key store.Key, it store.Item) {
	if key == billing.SettingsKey {
		if _, err := billing.DecodeSettings(it); err != nil {
			a.problem("unreadable settings", billing.Name{}, 0, "%v", err)
		}
		return
	}
	months, err := strconv.Atoi(it.Get(schema.Before).Map().Str("receipt-months"))
	if err == nil && months > 0 && (a.receiptMonths == 0 || months < a.receiptMonths) {
		a.receiptMonths = months
	}
}

// gather adds a readable item.
func gather[T any](a *auditor, noun string, it store.Item, decode func(store.Item) (*T, error), add func(*T)) {
	v, err := decode(it)
	if err != nil {
		a.unreadable(noun, billing.KeyOf(it), err)
		return
	}
	add(v)
}

func (a *auditor) addSubscription(s *billing.Subscription) {
	a.result.Subscriptions++
	k := a.sub(s.Name)
	if k.next >= 0 {
		a.problem("two subscriptions of one id", s.Name, s.Period, "SKU %s is another one", s.SKU)
	}
	k.next, k.status, k.created, k.email = s.Period, s.Status, s.Created, s.Email
	k.schedule = s.Schedule()
	k.indexed = !s.NextPayment.IsZero() && !s.NextPayment.Before(a.from) && s.Raw.Has(schema.LastPaymentDate) &&
		a.Walks(s.Raw.Str(schema.NextPaymentDate))
	if s.Installments > 0 && s.Paid > s.Installments {
		a.problem("too many installments", s.Name, s.Period, "%d of %d were paid", s.Paid, s.Installments)
	}
	if s.Open != nil {
		a.result.Open++
		k.open = s.Open.Ref
		if s.Open.Period != s.Period {
			a.problem("open period out of step", s.Name, s.Period, "period %d is open", s.Open.Period)
		}
	}
	if s.Status == billing.ParkedState {
		a.result.Parked++
	}
}

func (a *auditor) addReceipt(r *billing.Receipt) {
	switch r.Kind {
	case billing.Imported:
		a.result.Imported++
		return
	case billing.External:
		a.result.External++
	default:
		a.result.Receipts++
	}
	if at, _, connected := strings.Cut(r.Charge, "/"); connected {
		a.charged[at] = true
	}
	r.Raw = nil
	s := a.sub(r.Name)
	s.receipts[r.Period] = append(s.receipts[r.Period], *r)
}

// addRun checks the balance of a run.
func (a *auditor) addRun(key store.Key, it store.Item) {
	counts := it.Get(schema.Counts).Map()
	sum := int64(0)
	for _, c := range counts {
		if c.Name != "due" {
			n, _ := c.Value.Int64()
			sum += n
		}
	}
	if due := counts.Int("due"); due != sum {
		a.problem("run does not balance", billing.Name{}, 0, "%s %s: due %d, outcomes %d", key.PK, key.SK, due, sum)
	}
}

// compareCharges checks each success: it must be the only one of its period and have its receipt.
func (a *auditor) compareCharges() {
	for k, charges := range a.charges {
		if len(charges) > 1 {
			a.problem("charged twice", k.Name, k.period, "%d successful charges: %s", len(charges), refs(charges))
		}
		s := a.subs[k.Name]
		if s == nil || s.next < 0 {
			a.problem("charge without a subscription", k.Name, k.period, "%s", refs(charges))
			continue
		}
		for _, in := range charges {
			a.compareCharge(k, s, in)
		}
	}
}

func (a *auditor) compareCharge(k periodOf, s *audited, in billing.Intent) {
	for _, r := range s.receipts[k.period] {
		if r.Kind == billing.Charged && r.Charge == in.Ref {
			if r.Amount != in.Amount {
				a.problem("amounts differ", k.Name, k.period, "charged %s, receipt says %s", in.Amount, r.Amount)
			}
			return
		}
	}
	switch {
	case s.open == in.Ref && k.period == s.next:
		// The next run settles it.
	case k.period < s.next && a.expired(in.Changed) && s.ended[k.period] == "":
		// Its receipt has expired.
	default:
		a.problem("charge without a receipt", k.Name, k.period, "%s of %s", in.Ref, in.Amount)
	}
}

// expired reports whether a receipt of that time may have expired.
func (a *auditor) expired(processed time.Time) bool {
	months := a.receiptMonths
	return months > 0 && !processed.AddDate(0, months, 0).After(a.now)
}

// compareSubscriptions looks for every bound intent at the processor. It checks every receipt for
// its charge, and every period below the next one for its end.
func (a *auditor) compareSubscriptions(ctx context.Context) {
	for n, s := range a.subs {
		if s.open != "" {
			if _, err := a.proc.Lookup(ctx, s.open); errors.Is(err, billing.ErrNoIntent) {
				a.problem("unknown to the processor", n, s.next, "payment intent %s is open here; "+
					"is this the ledger, or the account, that the store was charged with?", s.open)
			}
		}
		if s.next < 0 {
			a.problem("receipt without a subscription", n, 0, "%d periods", len(s.receipts)+len(s.ended))
			continue
		}
		for period, receipts := range s.receipts {
			a.compareReceipts(n, s, period, receipts)
		}
		for period := range s.next {
			a.comparePeriod(n, s, period)
		}
		if !s.indexed && (s.status == billing.Active || s.status == billing.ParkedState || s.open != "") {
			a.problem("never charged", n, s.next, "%s, but without a NextPaymentDate that a run looks at", s.status)
		}
		if email, ok := a.emails[n.Account]; ok && email != s.email && !a.mixed[n.Account] {
			a.problem("copy of the address differs", n, s.next, "set the account's address again")
		} else if !ok {
			a.problem("subscription without its account", n, s.next, "no account item")
		}
	}
}

func (a *auditor) compareReceipts(n billing.Name, s *audited, period int, receipts []billing.Receipt) {
	if len(receipts) > 1 {
		a.problem("two receipts", n, period, "%d receipts for one period", len(receipts))
	}
	if period >= s.next {
		a.problem("receipt of a period to come", n, period, "the next period is %d", s.next)
	}
	for _, r := range receipts {
		if at, _, _ := strings.Cut(r.Charge, "/"); a.blind[at] {
			continue
		}
		known := slices.ContainsFunc(a.charges[periodOf{n, period}],
			func(in billing.Intent) bool { return in.Ref == r.Charge })
		if r.Kind == billing.Charged && !known {
			a.problem("receipt without a charge", n, period, "%s of %s", r.Charge, r.Amount)
		}
	}
}

func (a *auditor) comparePeriod(n billing.Name, s *audited, period int) {
	paid := len(s.receipts[period]) > 0 || len(a.charges[periodOf{n, period}]) > 0
	switch ending := s.ended[period]; {
	case ending == billing.EndParked:
		a.problem("period left parked", n, period, "the next period is %d", s.next)
	case ending != "" && paid:
		a.problem("paid and ended", n, period, "it has a payment, and a record that says %s", ending)
	case ending == "" && !paid && !a.expired(s.earliest(period)):
		a.problem("period skipped", n, period, "neither paid nor ended; the next period is %d", s.next)
	}
}

func refs(charges []billing.Intent) string {
	list := make([]string, len(charges))
	for i, in := range charges {
		list[i] = in.Ref
	}
	return strings.Join(list, ", ")
}
