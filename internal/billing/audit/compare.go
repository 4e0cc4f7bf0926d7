package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// An otherName is another installation that has charged a subscription of this store.
type otherName struct {
	*audited
	installation string
}

type otherCharges struct {
	count  int
	ref    string // of the first
	period int    // of the same
}

// compareCharges looks at the processor's successes at each place. A list that broke begins again.
func (a *auditor) compareCharges(ctx context.Context, places []string) error {
	for _, at := range places {
		others, count := a.others, a.result.Others
		_, err := processor.Ask(ctx, func() (none struct{}, err error) {
			a.others, a.result.Others = maps.Clone(others), count
			for in, err := range a.proc.List(ctx, processor.ListRequest{At: at}) {
				if err != nil {
					return none, err
				}
				if a.step(); in.State == processor.Succeeded {
					a.addCharge(ctx, in)
				}
			}
			return none, nil
		})
		switch {
		case processor.Refuses(at, err):
			if a.blind[at] = true; a.charged[at] {
				a.problem("refused account", billing.Name{}, 0, "%s refuses requests, so its charges were not checked", at)
			}
		case err != nil:
			return fmt.Errorf("listing the processor's charges: %w", err)
		}
	}
	for x, o := range a.others {
		a.problem("charged by another installation", a.nameOf(x.audited), o.period,
			"installation %s has charged it (charges: %d, the first %s): was this store lost and created again? If that is intended: "+
				"duesday charging on --accept-other-installation %s", x.installation, o.count, o.ref, x.installation)
	}
	return nil
}

// ours reports whether the charge is this installation's. One without an installation, but with an
// account, is of an old ledger.
func (a *auditor) ours(in *processor.Intent) bool {
	return in.Tag.Installation == a.Opened.Installation || in.Tag.Installation == "" && in.Tag.Account != ""
}

// addCharge looks for the receipt of a success. A list may show it twice.
func (a *auditor) addCharge(ctx context.Context, in processor.Intent) {
	n, period := billing.TaggedName(in.Tag), in.Tag.Period
	s := a.find(n)
	known := s != nil
	switch {
	case !a.ours(&in):
		a.addOther(&in, s)
		return
	case !known:
		s = a.sub(n)
	}
	found, ended, before := a.markOf(s, &in)
	if found.seen {
		return
	}
	found.seen = true
	a.result.Charges++
	if amount := a.amounts[in.Ref]; amount != nil {
		*amount = in.Amount
	}
	if before {
		a.problem("charged twice", n, period, "%s of %s succeeded in addition to another charge", in.Ref, in.Amount)
	}
	receipt := money.New(found.minor, found.currency)
	switch {
	case found.kind != receiptOfCharge:
		a.addUnsettled(ctx, s, &in, known, ended)
	case receipt != in.Amount:
		a.problem("amounts differ", n, period, "charged %s, receipt says %s", in.Amount, receipt)
	case in.Price != "" && uint32(a.hash(in.Price)) != found.price:
		a.problem("price differs", n, period, "the receipt has another quantity, discount or tax than its charge, which the processor "+
			"has as %s", in.Price)
	}
}

// markOf returns the mark of the charge, and makes it if there is none. ended: the period has a record
// that it ended unpaid; before: it has another success.
func (a *auditor) markOf(s *audited, in *processor.Intent) (found *mark, ended, before bool) {
	ref := a.hash(in.Ref)
	for i := range s.marks {
		switch m := &s.marks[i]; {
		case int(m.period) != in.Tag.Period:
		case m.ref == ref && (m.kind == receiptOfCharge || m.kind == chargeAlone):
			found = m
		default:
			ended, before = ended || m.kind == recordOfEnd, before || m.seen
		}
	}
	if found == nil {
		s.marks = append(s.marks, mark{kind: chargeAlone, ref: ref, sku: a.once(in.Tag.SKU), period: int32(in.Tag.Period),
			minor: in.Amount.Minor(), currency: in.Amount.Currency()})
		found = &s.marks[len(s.marks)-1]
	}
	return found, ended, before
}

// addUnsettled reports a success without a receipt, unless something explains it. known: its
// subscription is in the store.
func (a *auditor) addUnsettled(ctx context.Context, s *audited, in *processor.Intent, known, ended bool) {
	n, period := billing.TaggedName(in.Tag), in.Tag.Period
	past := period < int(s.next)
	switch {
	case a.opens[s] == opening{in.Ref, period}:
		// The next run settles it.
	case (!known || !past) && a.hasMoved(ctx, in):
		// A run has charged it since its item was read.
	case ended && past && a.isCollected(ctx, in):
		a.opens[s] = opening{in.Ref, period} // since its record was read
	case !known:
		a.problem("charge without a subscription", n, period, "%s", in.Ref)
	case past && !ended && a.expired(s, period, in.Changed):
		// Its receipt has expired.
	default:
		a.problem("charge without a receipt", n, period, "%s of %s", in.Ref, in.Amount)
	}
}

// hasMoved reports whether the subscription is past the charge's period now, or has it bound.
func (a *auditor) hasMoved(ctx context.Context, in *processor.Intent) bool {
	now, err := a.Load(ctx, billing.TaggedName(in.Tag))
	return err == nil && (now.Period > in.Tag.Period || now.Open != nil && now.Open.Ref == in.Ref)
}

// addOther counts a success of another installation, for the subscription s of this store, or nil.
func (a *auditor) addOther(in *processor.Intent, s *audited) {
	a.result.Others++
	if s == nil || a.Opened.Accepts(in.Tag.Installation) {
		return
	}
	name := otherName{s, in.Tag.Installation}
	o := a.others[name]
	if o.count++; o.count == 1 {
		o.ref, o.period = in.Ref, in.Tag.Period
	}
	a.others[name] = o
}

// compareSubscriptions looks for every bound intent at the processor. It checks every receipt for
// its charge, and every period below the next one for its end.
func (a *auditor) compareSubscriptions(ctx context.Context) {
	for s := range a.each() {
		n := a.nameOf(s)
		if s.next < 0 {
			if alone := func(m mark) bool { return m.kind != chargeAlone }; slices.ContainsFunc(s.marks, alone) {
				a.problem("receipt without a subscription", n, 0, "%d periods", len(s.marks))
			}
			continue
		}
		if open, is := a.opens[s]; is && open.ref != "" {
			a.compareOpen(ctx, n, open)
		}
		a.comparePeriods(s, n)
		a.checkPastDue(s, n)
		acc, ok := a.accounts[a.hash(n.Account)]
		switch {
		case !ok:
			a.problem("subscription without its account", n, int(s.next), "no account item")
		case acc.email != s.email && !acc.mixed:
			a.problem("copy of the address differs", n, int(s.next), "set the account's email address again")
		case s.zone != 0 && acc.zone != s.zone && !acc.mixed:
			a.problem("time zone differs", n, int(s.next), "its time zone differs from its account's; set the "+
				"account's again (duesday account update --time-zone)")
		}
	}
}

// compareOpen looks for the bound intent of the subscription's open period.
func (a *auditor) compareOpen(ctx context.Context, n billing.Name, open opening) {
	next := open.period
	in, err := a.proc.Lookup(ctx, open.ref)
	switch {
	case errors.Is(err, processor.ErrNoIntent):
		a.problem("unknown to the processor", n, next, "payment intent %s is open in the store; "+
			"check that this is the ledger or account that charged for this store", open.ref)
	case err == nil && in.Tag.Account != "" && (in.Tag.Account != n.Account || in.Tag.Subscription != n.ID ||
		in.Tag.Period != next):
		a.problem("open intent differs", n, next, "payment intent %s is open in the store, but belongs to %s/%s period %d",
			open.ref, in.Tag.Account, in.Tag.Subscription, in.Tag.Period)
	}
}

// comparePeriods checks the marks of each period, and that none below the next one is without any.
func (a *auditor) comparePeriods(s *audited, n billing.Name) {
	slices.SortFunc(s.marks, func(x, y mark) int { return cmp.Compare(x.period, y.period) })
	period := 0 // all before it are checked
	for first, m := range s.marks {
		at := int(m.period)
		if first > 0 && s.marks[first-1].period == m.period {
			continue
		}
		end := first + 1
		for end < len(s.marks) && s.marks[end].period == m.period {
			end++
		}
		a.skipped(s, n, period, min(at, int(s.next)))
		a.comparePeriod(s, n, at, s.marks[first:end])
		period = max(period, at+1)
	}
	a.skipped(s, n, period, int(s.next))
	a.compareInstallments(s, n)
	past, is := a.opens[s]
	if is = is && past.period < int(s.next); is && !slices.ContainsFunc(s.marks, func(m mark) bool {
		return m.kind == recordOfEnd && int(m.period) == past.period
	}) {
		a.problem("collected without a record", n, past.period, "no record says that the period ended unpaid")
	}
}

// mostSkipped bounds the periods of one gap that are looked at.
const mostSkipped = 1000

// skipped reports the periods from..until-1, which have no mark, unless their receipts may be gone.
func (a *auditor) skipped(s *audited, n billing.Name, from, until int) {
	first := until
	for first > max(from, until-mostSkipped) && !a.expired(s, first-1, s.earliest(first-1)) {
		first--
	}
	if first < until {
		a.problem("period skipped", n, first, "%d periods are neither paid nor ended; the next period is %d", until-first,
			s.next)
	}
}

// comparePeriod checks the marks of one period.
func (a *auditor) comparePeriod(s *audited, n billing.Name, period int, marks []mark) {
	next := int(s.next)
	var count [chargeAlone + 1]int
	for _, m := range marks {
		count[m.kind]++
		due, err := s.due(period)
		if err == nil && !m.due.IsZero() && m.due != due && m.kind != recordOfParking { // its day may have changed
			a.problem("due dates differ", n, period, "it was due on %s, but the schedule says %s", m.due, due)
		}
		if m.kind == receiptOfCharge && !m.seen && !a.blind[a.placed[m.ref]] {
			a.problem("receipt without a charge", n, period, "no successful charge at the processor matches its receipt of %s",
				money.New(m.minor, m.currency))
		}
	}
	status := billing.Status(a.texts[s.status])
	receipts := count[receiptOfCharge] + count[receiptOfPerson]
	paid := receipts+count[chargeAlone] > 0
	if again := a.paidAgain(n, period, marks); receipts > 1 && !again {
		a.problem("two receipts", n, period, "%d receipts for one period", receipts)
	}
	switch ended := count[recordOfEnd] > 0; {
	case period >= next && receipts > 0:
		a.problem("receipt for a future period", n, period, "the next period is %d", next)
	case period < 0 || period >= next && ended || period > next && count[recordOfParking] > 0:
		a.problem("record for a future period", n, period, "the next period is %d", next)
	case period == next && count[recordOfParking] > 0 && status != billing.ParkedState:
		a.problem("parked period", n, period, "it waits for an operator, but the subscription is %s", status)
	case period < next && count[recordOfParking] > 0:
		a.problem("period left parked", n, period, "the next period is %d", next)
	case ended && receipts == 0 && a.opens[s].period == period && a.charges(s, marks):
		// The next run settles it.
	case ended && paid:
		a.problem("paid and ended", n, period, "it has a payment, but also a record that it ended without one")
	}
}

// isCollected reports whether a past period is open now with the charge, or has no record any more.
func (a *auditor) isCollected(ctx context.Context, in *processor.Intent) bool {
	now, err := a.Load(ctx, billing.TaggedName(in.Tag))
	if err != nil || now.Open != nil && now.Open.Ref == in.Ref {
		return err == nil
	}
	_, err = a.Store.Get(ctx, a.Table, billing.PeriodKey(now.Name, in.Tag.Period))
	return errors.Is(err, store.ErrNotFound)
}

// charges reports whether the only charge among the marks is that of the subscription's bound intent.
func (a *auditor) charges(s *audited, marks []mark) bool {
	ref := a.opens[s].ref
	return ref != "" && !slices.ContainsFunc(marks, func(m mark) bool { return m.kind == chargeAlone && m.ref != a.hash(ref) })
}
