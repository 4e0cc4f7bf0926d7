package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// An Audit is what Verify found.
type Report struct {
	OK            bool
	Subscriptions int
	Receipts      int // of charges
	Charges       int // successful, at the processor
	Imported      int // receipts that came with the data
	External      int // receipts of payments taken outside
	Open          int // periods being charged
	Parked        int // subscriptions that wait for a person
	Foreign       int // charges of other installations, not looked at
	Refunds       int // records of them, in whatever state
	Disputes      int // likewise
	Problems      []Problem
}

// A Problem is one thing that must not be.
type Problem struct {
	Kind         string
	Account      string
	Subscription string
	Period       int
	Detail       string
}

// audit gathers store and ledger, then compares them.
type auditor struct {
	*billing.Records
	proc          billing.Processor
	receiptMonths int
	now           time.Time
	subs          map[billing.Name]*audited
	emails        map[string]string // by account
	mixed         map[string]bool   // accounts whose subscriptions may have other addresses
	charges       map[periodOf][]billing.Intent
	blind         map[string]bool // connected accounts that refuse to be asked
	from          civil.Date      // the oldest date that a run looks at
	reversals     auditedReversals
	result        Report
}

type periodOf struct {
	billing.Name // without SKU
	period       int
}

// audited is what the audit keeps of one subscription.
type audited struct {
	next     int // its period to be paid next
	status   billing.Status
	open     string // bound reference
	created  time.Time
	schedule civil.Schedule

	indexed  bool
	email    string
	receipts map[int][]billing.Receipt
	ended    map[int]billing.Ending
}

// Verify audits the whole store against the processor's ledger: no period charged twice,
// none skipped, every receipt has its charge and every charge its receipt (or, once that has
// expired, its period is past), every run balances, and every subscription that is to be
// charged is in the index that finds it. It scans, and changes nothing.
func Verify(ctx context.Context, e *billing.Records, proc billing.Processor, receiptMonths int) (*Report, error) {
	a := &auditor{Records: e, proc: proc, receiptMonths: receiptMonths, now: e.Now(), subs: map[billing.Name]*audited{}, emails: map[string]string{}, mixed: map[string]bool{}, blind: map[string]bool{}, charges: map[periodOf][]billing.Intent{}}
	var err error
	if a.from, err = e.WalkStart(ctx, billing.Payments); err != nil {
		return nil, err
	}
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
		if err != nil {
			return nil, err
		}
		a.take(it)
	}
	if err := a.list(ctx); err != nil {
		return nil, err
	}
	a.compareCharges()
	a.compareSubscriptions(ctx)
	if err := a.compareReversals(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(a.result.Problems, func(x, y Problem) int {
		return strings.Compare(fmt.Sprint(x.Account, "/", x.Subscription, " ", x.Period, x.Kind), fmt.Sprint(y.Account, "/", y.Subscription, " ", y.Period, y.Kind))
	})
	a.result.OK = len(a.result.Problems) == 0
	return &a.result, nil
}

// list sorts in the successes of the processor, at every place that the store has charged at.
func (a *auditor) list(ctx context.Context) error {
	places, err := a.Places(ctx)
	if err != nil {
		return err
	}
	for _, at := range places {
		all, err := a.successesAt(ctx, at)
		switch {
		case at != "" && (errors.Is(err, billing.ErrAccountRefused) || errors.Is(err, billing.ErrInvalid)):
			if a.blind[at] = true; !a.chargedAt(at) {
				continue
			}
			a.problem("refused account", billing.Name{}, 0, "%s refuses to be asked: its charges were not looked at", at)
		case err != nil:
			return fmt.Errorf("listing the processor's charges: %w", err)
		}
		for _, in := range all {
			a.charge(in)
		}
	}
	return nil
}

// chargedAt reports whether the store has a receipt of a charge at the connected account.
func (a *auditor) chargedAt(at string) bool {
	for _, s := range a.subs {
		for _, receipts := range s.receipts {
			for _, r := range receipts {
				if strings.HasPrefix(r.Charge, at+"/") {
					return true
				}
			}
		}
	}
	return false
}

// successesAt lists all charges of one place. A listing that breaks off is begun anew.
func (a *auditor) successesAt(ctx context.Context, at string) (all []billing.Intent, err error) {
	for range billing.MaxSends {
		all, err = all[:0], nil
		for in, lerr := range a.proc.List(ctx, billing.ListRequest{At: at}) {
			if err = lerr; err != nil {
				break
			}
			if in.State == billing.Succeeded {
				all = append(all, in)
			}
		}
		if err == nil || billing.Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return all, err
}

func (a *auditor) charge(in billing.Intent) {
	if in.Tag.Installation != a.Opened.Installation && (in.Tag.Installation != "" || in.Tag.Account == "") {
		a.result.Foreign++
		return
	}
	a.result.Charges++
	k := periodOf{billing.Name{Account: in.Tag.Account, ID: in.Tag.Subscription}, in.Tag.Period}
	a.charges[k] = append(a.charges[k], in)
}

func (a *auditor) problem(kind string, n billing.Name, period int, format string, args ...any) {
	a.result.Problems = append(a.result.Problems, Problem{Kind: kind, Account: n.Account, Subscription: n.ID, Period: period, Detail: fmt.Sprintf(format, args...)})
}

func (a *auditor) sub(n billing.Name) *audited {
	n.SKU = ""
	s := a.subs[n]
	if s == nil {
		s = &audited{next: -1}
		a.subs[n] = s
	}
	return s
}

// about returns a time that the period's payment was not taken before, as far as the
// schedule still tells.
func (s *audited) about(period int) time.Time {
	if due, err := s.schedule.Due(period); err == nil {
		return due.AddDays(-2).In(time.UTC) // far east of Greenwich it is paid before the day begins here
	}
	return s.created
}

// take sorts one item in.
func (a *auditor) take(it store.Item) {
	key := billing.KeyOf(it)
	switch n, isSub := billing.NameOf(key); {
	case isSub:
		s, err := billing.DecodeSubscription(it)
		if err != nil {
			a.problem("unreadable subscription", n, 0, "%v", err)
			return
		}
		a.takeSubscription(s)
	case strings.HasPrefix(key.SK, billing.SubPrefix):
		a.problem("unreadable subscription", billing.Name{Account: billing.AccountOf(key.PK)}, 0, "%s: want %s", secret.MaskCards(key.SK), billing.SubscriptionForm)
	case key.SK == billing.AccountSK:
		acc := billing.DecodeAccount(it)
		a.emails[acc.ID] = acc.Email
		if acc.Mixed {
			a.mixed[acc.ID] = true
		}
		if acc.Copying {
			a.problem("unfinished address change", billing.Name{Account: acc.ID}, 0, "set the address again to finish it")
		}
	case strings.HasPrefix(key.SK, billing.RecPrefix):
		r, err := billing.DecodeReceipt(it)
		if err != nil {
			a.problem("unreadable receipt", billing.Name{Account: billing.AccountOf(key.PK)}, 0, "%s: %v", key.SK, err)
			return
		}
		a.takeReceipt(r)
	case billing.IsReversal(it):
		a.takeReversal(it)
	case strings.HasPrefix(key.SK, billing.PerPrefix):
		p, err := billing.DecodePeriod(it)
		if err != nil {
			a.problem("unreadable period", billing.Name{Account: billing.AccountOf(key.PK)}, 0, "%s: %v", key.SK, err)
			return
		}
		s := a.sub(p.Name)
		if s.ended == nil {
			s.ended = map[int]billing.Ending{}
		}
		s.ended[p.Period] = p.Ending
	case strings.HasPrefix(key.PK, "RUN#") && key.SK != billing.WatermarkSK:
		a.takeRun(key, it)
	}
}

func (a *auditor) takeSubscription(s *billing.Subscription) {
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

func (a *auditor) takeReceipt(r *billing.Receipt) {
	switch r.Kind {
	case billing.Imported:
		a.result.Imported++
		return
	case billing.External:
		a.result.External++
	default:
		a.result.Receipts++
	}
	r.Raw = nil
	s := a.sub(r.Name)
	if s.receipts == nil {
		s.receipts = map[int][]billing.Receipt{}
	}
	s.receipts[r.Period] = append(s.receipts[r.Period], *r)
}

// takeRun holds a run to its balance.
func (a *auditor) takeRun(key store.Key, it store.Item) {
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

// compareCharges holds every success to one per period, to its receipt and to its amount.
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
		// Taken, and about to be settled by the next run: parked in plain sight, not lost.
	case k.period < s.next && a.expired(in.Changed) && s.ended[k.period] == "":
	default:
		a.problem("charge without a receipt", k.Name, k.period, "%s of %s", in.Ref, in.Amount)
	}
}

// expired reports whether a receipt of that time may have expired by now.
func (a *auditor) expired(processed time.Time) bool {
	months := a.receiptMonths
	return months > 0 && !processed.AddDate(0, months, 0).After(a.now)
}

// compareSubscriptions holds every receipt to its charge, and every period below the next
// one to an end.
func (a *auditor) compareSubscriptions(ctx context.Context) {
	for n, s := range a.subs {
		a.compareOpen(ctx, n, s)
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

// compareOpen asks the processor for the intent that is bound: it must know it.
func (a *auditor) compareOpen(ctx context.Context, n billing.Name, s *audited) {
	if s.open == "" {
		return
	}
	if _, err := a.proc.Lookup(ctx, s.open); errors.Is(err, billing.ErrNoIntent) {
		a.problem("unknown to the processor", n, s.next, "payment intent %s is open here; is this the ledger, or the account, that the store was charged with?", s.open)
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
		if r.Kind == billing.Charged && !slices.ContainsFunc(a.charges[periodOf{n, period}], func(in billing.Intent) bool { return in.Ref == r.Charge }) {
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
	case ending == "" && !paid && !a.expired(s.about(period)):
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
