package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// unfinishedAge is how long a refund may be recorded and not answered: longer than a command
// takes, and than most of a processor's bad hours.
const unfinishedAge = time.Hour

// auditedReturns is what the audit keeps of refunds and disputes.
type auditedReversals struct {
	records []*billing.ReversalRecord
	byRef   map[string]*billing.ReversalRecord // by the processor's id
	byID    map[string]*billing.ReversalRecord
	asked   map[string]string // the processor's id by the request
}

// takeReturn sorts in one item REF#….
func (a *auditor) takeReversal(it store.Item) {
	r, err := billing.DecodeReversal(it)
	if err != nil {
		a.problem("unreadable refund", billing.Name{Account: billing.AccountOf(billing.KeyOf(it).PK)}, 0, "%s: %v", billing.KeyOf(it).SK, err)
		return
	}
	switch k := &a.reversals; {
	case k.byRef == nil:
		k.byRef, k.byID = map[string]*billing.ReversalRecord{}, map[string]*billing.ReversalRecord{}
	case k.byID[r.ReversalID] != nil || r.Ref != "" && k.byRef[r.Ref] != nil:
		a.problem("two records of one refund", r.Name, r.Period, "%s, %s", r.ReversalID, r.Ref)
	}
	a.reversals.records = append(a.reversals.records, r)
	a.reversals.byID[r.ReversalID] = r
	if r.Ref != "" {
		a.reversals.byRef[r.Ref] = r
	}
	if r.Kind == billing.Disputed {
		a.result.Disputes++
	} else {
		a.result.Refunds++
	}
}

// compareReturns holds the records of refunds and disputes against the processor's, in both
// directions, and refunds against what was charged.
func (a *auditor) compareReversals(ctx context.Context) error {
	charged := map[string]money.Amount{}
	for _, list := range a.charges {
		for _, in := range list {
			charged[in.Ref] = in.Amount
		}
	}
	refunded := map[string]int64{}
	for _, r := range a.reversals.records {
		if r.State == billing.ReversalRequested && a.now.Sub(r.Created) > unfinishedAge {
			a.problem("unfinished refund", r.Name, r.Period, "%s of %s was asked for at %s: the next payment run goes on with it", r.ReversalID, r.Amount, billing.Stamp(r.Created))
		}
		if r.Kind != billing.Refunded || !r.Counts() {
			continue
		}
		was, total, known := refunded[r.Charge], charged[r.Charge], false
		known = !total.Currency().IsZero()
		refunded[r.Charge] += r.Amount.Minor()
		if most := total.Minor(); known && was <= most && refunded[r.Charge] > most {
			a.problem("refunded more than charged", r.Name, r.Period, "%s of %s", r.Charge, total)
		}
	}
	proc, ok := a.proc.(billing.Refunder)
	if !ok {
		return nil
	}
	places, err := a.Places(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	a.reversals.asked = map[string]string{}
	for _, at := range places {
		for r, err := range proc.Reversals(ctx, billing.ListRequest{At: at}) {
			switch {
			case at != "" && (errors.Is(err, billing.ErrAccountRefused) || errors.Is(err, billing.ErrInvalid)):
				if !a.blind[at] {
					a.problem("refused account", billing.Name{}, 0, "%s refuses to be asked: its refunds were not looked at", at)
				}
				a.blind[at] = true
			case err != nil:
				return fmt.Errorf("listing the processor's refunds and disputes: %w", err)
			default:
				seen[r.ID] = true
				a.compareReversal(r)
			}
		}
	}
	for _, r := range a.reversals.records {
		at, _, _ := strings.Cut(r.Charge, "/") // where connected accounts are, refs say at which
		if r.Ref != "" && r.Counts() && !seen[r.Ref] && !a.blind[at] {
			a.problem("refund unknown to the processor", r.Name, r.Period, "%s %s of %s is %s here", r.Kind, r.Ref, r.Amount, r.State)
		}
	}
	return nil
}

// compareReturn looks for the record of what the processor shows of a subscription of this
// store's.
func (a *auditor) compareReversal(seen billing.Reversal) {
	n := billing.Name{Account: seen.Tag.Account, ID: seen.Tag.Subscription}
	if s := a.subs[n]; seen.Tag.Installation != a.Opened.Installation || s == nil || s.next < 0 {
		return
	}
	if first := a.reversals.asked[seen.Request]; billing.IsRefundID(seen.Request) && seen.State != billing.ReversalFailed && seen.State != billing.ReversalCanceled {
		if first != "" && first != seen.ID {
			a.problem("refunded twice", n, seen.Tag.Period, "%s was asked for once: %s and %s", seen.Request, first, seen.ID)
		}
		a.reversals.asked[seen.Request] = seen.ID
	}
	switch r, asked := a.reversals.byRef[seen.ID], a.reversals.byID[seen.Request]; {
	case r != nil && r.Amount != seen.Amount:
		a.problem("amounts differ", n, seen.Tag.Period, "%s %s is %s, its record says %s", seen.Kind, seen.ID, seen.Amount, r.Amount)
	case r == nil && (asked == nil || asked.Ref != "" || asked.State != billing.ReversalRequested): // else it is about to be found
		a.problem("refund not recorded", n, seen.Tag.Period, "%s %s of %s is %s at the processor: the next payment run records it", seen.Kind, seen.ID, seen.Amount, seen.State)
	}
}
