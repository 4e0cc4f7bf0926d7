package proof

import (
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

// conclude sets the state, and says why there was at most one charge.
func (p *Proof) conclude(now time.Time) {
	p.state(now)
	succeeded, live := p.charges()
	if p.contradiction(succeeded, live) {
		p.Alarm = true
		return
	}
	rest := "no other intent of the period is known"
	if len(p.Intents) > 1 {
		rest = "every other one of the period is cancelled, or was never confirmed"
	}
	const atMostOne = "An intent makes at most one charge, and "
	switch {
	case len(succeeded) == 1 && p.OpenPeriod != nil:
		p.Why = "There was one charge: " + succeeded[0].Ref + " has succeeded, and the next payment run writes its receipt. " +
			atMostOne + rest + "."
	case len(succeeded) == 1 && p.Expired:
		p.Why = fmt.Sprintf("There was one charge: the receipt has expired after %d months, and the processor shows one "+
			"success, %s. %s%s.", p.ReceiptMonths, succeeded[0].Ref, atMostOne, rest)
	case len(succeeded) == 1:
		p.Why = "There was one charge: " + succeeded[0].Ref + ", which the receipt names, has succeeded. " + atMostOne + rest + "."
		if len(p.Receipts) > 1 {
			p.Why += " A manual payment came on top of it: give one of them back."
		}
	case p.OpenPeriod != nil:
		p.Why = "There was no charge yet: " + p.OpenPeriod.Ref + " alone can succeed. " + atMostOne + rest + "."
	case p.Expired:
		p.Why = fmt.Sprintf("There was no charge: the processor shows no success. The receipt, which has expired after %d "+
			"months, was of a manual payment.", p.ReceiptMonths)
	case len(p.Intents) == 0:
		p.Why = "There was no charge: " + p.unpaid() + "; the processor shows no success, and no intent of the period is known."
	default:
		p.Why = "There was no charge: " + p.unpaid() + "; the processor shows no success, and every intent of the period is " +
			"cancelled, or was never confirmed."
	}
}

// state tells how far the period has come by the store.
func (p *Proof) state(now time.Time) {
	switch {
	case p.Ended != nil && p.Ended.Ending == billing.EndParked:
		p.State = State(billing.EndParked)
	case p.OpenPeriod != nil:
		p.State = Open
	case len(p.Receipts) > 0:
		p.State = Paid
	case p.Ended != nil:
		p.State = State(p.Ended.Ending)
	case p.Period < p.sub.Period:
		p.State = Lost
		if p.ReceiptMonths > 0 && !now.Before(p.paidAt().AddDate(0, p.ReceiptMonths, 0)) {
			p.State, p.Expired = Paid, true
		}
	case p.sub.Over():
		p.State = Unwanted
	default:
		p.State = Waiting
	}
}

// paidAt is the time of the charge or, without one, of the due date.
func (p *Proof) paidAt() time.Time {
	if succeeded, _ := p.charges(); len(succeeded) > 0 {
		return succeeded[0].Changed
	}
	return p.Due.In(time.UTC)
}

// contradiction reports, and says, why the store and the processor cannot both be right, or that there
// was more than one charge.
func (p *Proof) contradiction(succeeded []Intent, live int) bool {
	var refs []string
	for _, x := range succeeded {
		refs = append(refs, x.Ref)
	}
	for _, x := range p.Intents {
		if x.Missing {
			p.Why = "The processor does not know " + x.Ref + ", which the store names: it was another processor, or another account of it."
			return true
		}
	}
	charged := p.kind(billing.Charged)
	switch {
	case len(refs) > 1:
		p.Why = fmt.Sprintf("There were %d successful charges: %s. Refund all but one, and run verify.", len(refs),
			strings.Join(refs, ", "))
	case len(refs) == 1 && len(charged) == 0 && len(p.kind(billing.External)) > 0:
		p.Why = "The period was paid twice: by the charge " + refs[0] + " and by a manual payment. Give one of them back."
	case len(refs) == 1 && len(charged) == 0 && p.OpenPeriod == nil && !p.Expired:
		p.Why = "There was one charge, " + refs[0] + ", which the store does not have. Run reconcile."
	case len(refs) == 1 && len(charged) > 0 && charged[0].Charge != refs[0]:
		p.Why = "The receipt names " + charged[0].Charge + ", and the processor shows the charge " + refs[0] + ". Run verify."
	case len(refs) == 0 && len(charged) > 0:
		p.Why = "The receipt names " + charged[0].Charge + ", and the processor shows no success of it. Run verify."
	case p.State == Lost:
		p.Why = "The period is past, and there is neither a receipt, nor a record of its end, nor a charge. Run verify."
	case live > 0 && p.OpenPeriod == nil:
		p.Why = "An intent that is not bound to the period can still succeed. Run verify."
	default:
		return false
	}
	return true
}

// unpaid says what the store has of a period without a charge.
func (p *Proof) unpaid() string {
	switch {
	case len(p.Receipts) > 0:
		return "the period was paid outside"
	case len(p.Imported) > 0:
		return "a payment of that time came with the data"
	case p.Ended != nil && p.State == State(billing.EndParked):
		return "the period is parked, and a person decides"
	case p.Ended != nil:
		return "the period ended " + string(p.State)
	case p.State == Unwanted:
		return "the subscription is " + string(p.sub.Status)
	}
	return "no intent has been bound to the period yet"
}
