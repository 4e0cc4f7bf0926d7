package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/processor"
)

// conclude sets the state, and says why there was at most one charge.
func (p *Proof) conclude(now time.Time) {
	p.state(now)
	if p.Why = p.contradiction(); p.Why != "" {
		p.Alarm = true
		return
	}
	succeeded, _ := p.charges()
	alone, every := "the period has no other known intent.", "the period has no known intent."
	if len(p.Intents) > 1 {
		alone = "every other intent for the period is canceled or was never confirmed."
	}
	if len(p.Intents) > 0 {
		every = "every intent for the period is canceled or was never confirmed."
	}
	alone = " An intent makes at most one charge, and " + alone
	switch {
	case len(succeeded) > 0 && p.OpenPeriod != nil:
		p.Why = "There was one charge: " + succeeded[0] + " has succeeded, and the next payment run writes its receipt." +
			alone
	case len(succeeded) > 0 && p.Expired:
		p.Why = fmt.Sprintf("There was one charge: the receipt has expired after %d months, and the processor shows one "+
			"success, %s.%s%s", p.ReceiptMonths, succeeded[0], alone, p.back())
	case len(succeeded) > 0 && len(p.kind(billing.Charged)) == 0:
		p.Why = "There was one charge: " + succeeded[0] + ", whose receipt has expired, has succeeded." + alone + p.back()
	case len(succeeded) > 0:
		p.Why = "There was one charge: " + succeeded[0] + ", which the receipt names, has succeeded." + alone + p.back()
	case p.OpenPeriod.ByWire():
		p.Why = fmt.Sprintf("There was no charge: the customer pays the period by wire, before %s. Nothing is charged for it, and %s",
			p.OpenPeriod.PayBy, every)
	case p.OpenPeriod != nil:
		p.Why = "There was no charge yet: " + p.OpenPeriod.Ref + " alone can succeed." + alone
	case p.Expired:
		p.Why = fmt.Sprintf("There was no charge: the processor shows no success. The receipt, which has expired after %d "+
			"months, was for a manual payment.", p.ReceiptMonths)
	default:
		p.Why = "There was no charge: " + p.unpaid() + "; the processor shows no success, and " + every
	}
}

// back tells what has become of the successful charge: reversed, or not the only payment.
func (p *Proof) back() string {
	switch {
	case p.reversed() && p.manual():
		return " The whole charge was reversed, and the manual payment settles the period."
	case p.reversed():
		return " The whole charge was reversed, so the customer has the money back."
	case p.manual():
		return " A manual payment came in addition: return one of them."
	}
	return ""
}

// manual reports whether the period has the receipt of a manual payment.
func (p *Proof) manual() bool {
	return len(p.kind(billing.External))+len(p.kind(billing.Overpayment)) > 0
}

// reversed reports whether the customer has the whole amount of the period's successful charge back.
func (p *Proof) reversed() bool {
	return slices.ContainsFunc(p.Intents, func(x Intent) bool {
		return x.State == processor.Succeeded && reversal.Of(p.Reversals, x.Ref, x.Amount) == reversal.Reversed
	})
}

// state tells how far the period has come by the store.
func (p *Proof) state(now time.Time) {
	paidAt := p.Due.In(time.UTC)
	for _, x := range p.Intents {
		if x.State == processor.Succeeded {
			paidAt = x.Changed
		}
	}
	switch {
	case p.Ended != nil && p.Ended.Ending == billing.EndParked:
		p.State = State(billing.EndParked)
	case p.OpenPeriod != nil:
		p.State = Open
	case len(p.Receipts) > len(p.kind(billing.Overpayment)): // one that settled the period
		p.State = Paid
	case p.Ended != nil:
		p.State = State(p.Ended.Ending)
	case p.Period < p.sub.Period && p.ReceiptMonths > 0 && !now.Before(paidAt.AddDate(0, p.ReceiptMonths, 0)):
		p.State, p.Expired = Paid, true
	case p.Period < p.sub.Period:
		p.State = Lost
	case p.sub.Over():
		p.State = Unwanted
	default:
		p.State = Waiting
	}
	if p.State == Paid && p.reversed() && !p.manual() {
		p.State = Reversed
	}
}

// charges returns the successful intents, and whether one that is not bound may still succeed. One
// that was only opened moves no money: only a bound intent is confirmed.
func (p *Proof) charges() (succeeded []string, loose bool) {
	for _, x := range p.Intents {
		switch x.State {
		case processor.Succeeded:
			succeeded = append(succeeded, x.Ref)
		case processor.Declined, processor.Processing, processor.RequiresAction:
			loose = p.OpenPeriod == nil
		}
	}
	return succeeded, loose
}

// contradiction says why store and processor disagree, or that there were two charges; "": neither.
func (p *Proof) contradiction() string {
	for _, x := range p.Intents {
		if x.Missing {
			return "The processor does not know " + x.Ref + ", which the store names: it was another processor, or another " +
				"account of it."
		}
	}
	succeeded, loose := p.charges()
	ref, receipt := strings.Join(succeeded, ", "), ""
	for _, x := range p.kind(billing.Charged) {
		receipt = cmp.Or(receipt, x.Charge)
	}
	switch {
	case len(succeeded) > 1:
		return fmt.Sprintf("There were %d successful charges: %s. Refund all but one, and run verify.", len(succeeded), ref)
	case ref != "" && receipt == "" && p.reversed() && len(p.kind(billing.External)) > 0:
		return ""
	case ref != "" && receipt == "" && len(p.kind(billing.External)) > 0:
		return "The period was paid twice: by charge " + ref + " and by a manual payment. Return one of them."
	case ref != "" && receipt == "" && p.OpenPeriod == nil && !p.Expired:
		return "There was one charge, " + ref + ", which is missing in the store. Run reconcile."
	case ref != "" && receipt != "" && receipt != ref:
		return "The receipt names " + receipt + ", but the processor shows charge " + ref + ". Run verify."
	case ref == "" && receipt != "":
		return "The receipt names " + receipt + ", but the processor shows no such successful charge. Run verify."
	case p.State == Lost:
		return "The period is past, but it has no receipt, no record of its end and no charge. Run verify."
	case loose:
		return "An intent that is not bound to the period can still succeed. Run verify."
	}
	return ""
}

// unpaid says what the store has of a period without a charge.
func (p *Proof) unpaid() string {
	switch {
	case len(p.Receipts) > 0:
		return "the period has a manual payment"
	case len(p.Imported) > 0:
		return "an imported payment covers that time"
	case p.State == State(billing.EndParked):
		return "the period is parked until an operator decides"
	case p.Ended != nil:
		return "the period ended " + string(p.State)
	case p.State == Unwanted:
		return "the subscription is " + string(p.sub.Status)
	}
	return "no intent has been bound to the period yet"
}
