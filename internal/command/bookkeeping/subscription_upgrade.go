package bookkeeping

import (
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// upgrade charges the next period now for the new plan. Without yes, it only shows what it would charge,
// and which days the customer would give away. If the customer has not paid, it sets the exit code to
// ExitPerson.
func (p *program) upgrade(ctx context.Context, s *session.Session, old *billing.Subscription, o upgrade.Order, yes bool) error {
	if !yes {
		f, sub, err := s.Engine.OfferUpgrade(ctx, old.Name, o)
		if err != nil {
			return err
		}
		p.sayOffer(&f)
		p.Say("nothing is charged yet, so add --yes to charge it")
		return p.JSON(view.Upgraded(old, engine.Upgraded{Offer: f, Subscription: sub}))
	}
	a, err := s.Engine.UpgradeNow(ctx, old.Name, o)
	p.Deliver(ctx, s)
	if err != nil {
		return session.NotFound(err, "subscription "+old.Name.String())
	}
	if a.Repeated {
		p.Say("the key was already used, so no other upgrade is made")
	} else {
		p.sayOffer(&a.Offer)
	}
	p.sayResults(a.Results)
	sub := a.Subscription
	if sub.Upgrade != nil && upgrade.StateOf(sub) != upgrade.Charged {
		p.Code = screen.ExitPerson
	}
	p.sayChanged(old, sub, "is "+statusNote(sub))
	return p.JSON(view.Upgraded(old, a))
}

func (p *program) sayOffer(f *upgrade.Offer) {
	p.Say("period %d, due %s: %s today for %s", f.Period, f.DueBefore, f.Amount.Format(), f.SKU)
	p.Say("  given away: %s of the paid period; period %d is due on %s", screen.Plural(f.Days, "day"), f.Period+1, f.Next)
	p.sayReplaced(f.Replaces, "")
}

// upgradeText returns the subscription's last upgrade as text for human readers.
func upgradeText(s *billing.Subscription) string {
	u := s.Upgrade
	if u == nil {
		return ""
	}
	state := string(upgrade.StateOf(s))
	if u.Reason != "" && u.Reason != billing.UpgradePaid {
		state = "not upgraded: " + u.Reason
	}
	return u.SKU + " for " + u.Amount.Format() + " on " + u.Day.String() + ", " + state
}

// takeoverText returns from where the subscription was taken over, and whether it waits for that one's end.
func takeoverText(s *billing.Subscription) string {
	k := s.Takeover
	switch {
	case k == nil:
		return ""
	case s.Held():
		return fmt.Sprintf("%s: charged here once %s has ended, from %s on", k.Stage, k.From, k.Boundary.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s: from %s", k.Stage, k.From)
}
