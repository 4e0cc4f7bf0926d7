package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// unfinishedAge is a refund's longest wait for an answer: longer than most outages of a processor.
const unfinishedAge = time.Hour

// reversals are the records of refunds and disputes.
type reversals struct {
	records []*billing.ReversalRecord
	byRef   map[string]*billing.ReversalRecord // by the processor's id
	byID    map[string]*billing.ReversalRecord
	asked   map[string]string                    // the processor's id by the request
	charges map[uint64][]*billing.ReversalRecord // by the hash of the charge's reference
}

// addReversal gathers one item REF#….
func (a *auditor) addReversal(r *billing.ReversalRecord) {
	a.sums.add(report.OfReversal(r, nil)...)
	all := &a.reversals
	if all.byID[r.ReversalID] != nil || r.Ref != "" && all.byRef[r.Ref] != nil {
		a.problem("two records for one refund", r.Name, r.Period, "%s, %s", r.ReversalID, r.Ref)
	}
	all.records = append(all.records, r)
	all.byID[r.ReversalID] = r
	a.amounts[r.Charge] = new(money.Amount)
	all.charges[a.hash(r.Charge)] = append(all.charges[a.hash(r.Charge)], r)
	if r.Ref != "" {
		all.byRef[r.Ref] = r
	}
	if r.Kind == processor.Disputed {
		a.result.Disputes++
	} else {
		a.result.Refunds++
	}
}

// compareReversals compares reversals here with the processor's, and refunds with their charges.
func (a *auditor) compareReversals(ctx context.Context, places []string) error {
	a.compareRefunds()
	proc, ok := a.proc.(processor.Refunder)
	if !ok {
		return nil
	}
	shown := map[string]bool{}
	for _, at := range places {
		all, err := processor.AskAll(ctx, proc.Reversals, processor.ListRequest{At: at})
		switch {
		case processor.Refuses(at, err):
			if !a.blind[at] {
				a.problem("refused account", billing.Name{}, 0, "%s refuses requests, so its refunds were not checked", at)
			}
			a.blind[at] = true
		case err != nil:
			return fmt.Errorf("listing the processor's refunds and disputes: %w", err)
		}
		for _, r := range all {
			shown[r.ID] = true
			a.compareReversal(r)
		}
	}
	for _, r := range a.reversals.records {
		at, _, _ := strings.Cut(r.Charge, "/") // a reference begins with its connected account
		if r.Ref != "" && r.Counts() && !shown[r.Ref] && !a.blind[at] {
			a.problem("refund unknown to the processor", r.Name, r.Period, "%s %s of %s is %s here", r.Kind, r.Ref, r.Amount,
				r.State)
		}
	}
	return nil
}

// compareRefunds reports refunds without a timely answer, or beyond their charge.
func (a *auditor) compareRefunds() {
	refunded := map[string]int64{}
	for _, r := range a.reversals.records {
		if r.State == processor.ReversalRequested && a.now.Sub(r.Created) > unfinishedAge {
			a.problem("unfinished refund", r.Name, r.Period,
				"%s of %s was requested at %s; the next payment run continues it",
				r.ReversalID, r.Amount, billing.Stamp(r.Created))
		}
		if r.Kind != processor.Refunded || !r.Counts() {
			continue
		}
		before, total := refunded[r.Charge], *a.amounts[r.Charge]
		refunded[r.Charge] += r.Amount.Minor()
		if known := !total.Currency().IsZero(); known && before <= total.Minor() && refunded[r.Charge] > total.Minor() {
			a.problem("refunded more than charged", r.Name, r.Period, "%s of %s", r.Charge, total)
		}
	}
}

// compareReversal looks for the record of a processor's reversal, if its subscription is here.
func (a *auditor) compareReversal(shown processor.Reversal) {
	n, period := billing.Name{Account: shown.Tag.Account, ID: shown.Tag.Subscription}, shown.Tag.Period
	if shown.Tag.Installation != a.Opened.Installation || a.find(n) == nil {
		return
	}
	stands := shown.State != processor.ReversalFailed && shown.State != processor.ReversalCanceled
	if first := a.reversals.asked[shown.Request]; billing.IsRefundID(shown.Request) && stands {
		if first != "" && first != shown.ID {
			a.problem("refunded twice", n, period, "%s was requested once, but the processor shows %s and %s", shown.Request, first, shown.ID)
		}
		a.reversals.asked[shown.Request] = shown.ID
	}
	r, asked := a.reversals.byRef[shown.ID], a.reversals.byID[shown.Request]
	waits := asked != nil && asked.Ref == "" && asked.State == processor.ReversalRequested // the next look records it
	switch {
	case r != nil && r.Amount != shown.Amount:
		a.problem("amounts differ", n, period, "%s %s is %s, but its record says %s", shown.Kind, shown.ID, shown.Amount,
			r.Amount)
	case r == nil && !waits:
		a.problem("refund not recorded", n, period, "%s %s of %s is %s at the processor; the next payment run records it",
			shown.Kind, shown.ID, shown.Amount, shown.State)
	}
}

// noteOverpaid notes the overpayments, except those of periods whose charge is reversed whole.
func (a *auditor) noteOverpaid() {
	returned := map[Problem]bool{}
	for _, r := range a.reversals.records {
		if reversal.Of(a.reversals.charges[a.hash(r.Charge)], r.Charge, *a.amounts[r.Charge]) == reversal.Reversed {
			returned[Problem{Account: r.Account, Subscription: r.ID, Period: r.Period}] = true
		}
	}
	for _, p := range a.overpaid {
		if !returned[Problem{Account: p.Account, Subscription: p.Subscription, Period: p.Period}] {
			a.result.Notes = append(a.result.Notes, p)
		}
	}
}

// paidAgain reports whether the receipts of the period are that of a charge that was reversed whole, and
// that of a manual payment recorded afterwards. If the money of the charge has come back, both payments
// stand, and a note says so. The receipt of the charge may have expired.
func (a *auditor) paidAgain(n billing.Name, period int, marks []mark) bool {
	var charge, manual *mark
	for i := range marks {
		switch m := &marks[i]; m.kind {
		case receiptOfCharge, chargeAlone:
			if charge != nil {
				return false
			}
			charge = m
		case receiptOfPerson:
			if manual != nil {
				return false
			}
			manual = m
		}
	}
	if charge == nil || manual == nil {
		return false
	}
	list := a.reversals.charges[charge.ref]
	if len(list) == 0 {
		return false
	}
	standing := reversal.Of(list, list[0].Charge, money.New(charge.minor, charge.currency))
	if standing == reversal.Reinstated {
		a.result.Notes = append(a.result.Notes, Problem{Kind: "overpaid", Account: n.Account, Subscription: n.ID, Period: period,
			Detail: fmt.Sprintf("its charge was reversed, a manual payment of %s was recorded, and the money of the charge came back; "+
				"return one of the payments", money.New(manual.minor, manual.currency))})
	}
	return standing != reversal.Kept
}
