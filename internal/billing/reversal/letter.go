package reversal

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// Letter returns the operator's mail about a dispute that has reached its state. parked reports
// whether the subscription is parked because of it. The days are those of the zone.
func Letter(r *billing.ReversalRecord, merchant, zone string, parked bool) (subject, text string) {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	period := fmt.Sprintf("period %d of subscription %s/%s", r.Period, r.Account, r.ID)
	command := fmt.Sprintf("%s/%s --period %d", r.Account, r.ID, r.Period)
	due := ""
	if !r.Evidence.IsZero() {
		due = billing.TodayIn(zone, r.Evidence).String()
	}
	switch r.State {
	case processor.ReversalSucceeded:
		subject = fmt.Sprintf("%s was taken back", r.Amount.Format())
		say("The customer's bank took back the payment of %s: a dispute is lost, or a bank debit was returned.", period)
	case processor.ReversalFailed:
		subject = fmt.Sprintf("a dispute about %s is won", r.Amount.Format())
		say("The dispute about the payment of %s is won, so the merchant keeps the money.", period)
	case processor.ReversalCanceled:
		subject = fmt.Sprintf("a dispute about %s is closed", r.Amount.Format())
		say("The dispute about the payment of %s is closed, and no money was taken back.", period)
	default:
		subject = fmt.Sprintf("a dispute about %s", r.Amount.Format())
		say("The customer's bank disputes the payment of %s.", period)
		if due != "" {
			subject += ", evidence is due by " + due
		}
	}
	say("\n  amount    %s\n  reason    %s\n  dispute   %s\n  charge    %s", r.Amount.Format(), cmp.Or(r.Reason, "not known"), r.ReversalID, r.Charge)
	if due != "" && !r.State.Final() {
		say("  evidence  due by %s (%s)", due, billing.Stamp(r.Evidence))
	}
	say("")
	switch {
	case r.State == processor.ReversalSucceeded && parked:
		say("The subscription is parked, so nothing more is charged until you decide: duesday subscription resume %s/%s, charge, skip "+
			"or cancel.", r.Account, r.ID)
		fallthrough
	case r.State == processor.ReversalSucceeded:
		say("Duesday does not charge the period again. If the customer pays in another way, record that: duesday receipt create %s", command)
	case r.State == processor.ReversalFailed:
		say("If you recorded another payment of the period meanwhile, return one of them: duesday prove %s", command)
	case !r.State.Final():
		say("Submit your evidence, or accept the dispute, at the processor. To see all records: duesday prove %s", command)
	}
	if merchant != "" {
		merchant = " (" + merchant + ")"
	}
	return "Duesday" + merchant + ": " + subject, b.String()
}
