package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestExactlyOnce_Upgrade is the programme of TestExactlyOnce_EveryCrashPoint for an upgrade: long before
// the next due date, or on the day before it.
func TestExactlyOnce_Upgrade(t *testing.T) {
	t.Parallel()
	everyCrashPoint(t, upgradeNow().checked(25))
}

// upgradeNow is the share of go test.
func upgradeNow() sampling {
	return sampling{part: 8, each: 5, waits: 3, least: 1500, seed: 1, now: true}
}

// titaniumNow is the plan of an upgrade.
func titaniumNow() upgrade.Order { return upgrade.Order{SKU: new("titanium"), Amount: new(usd(3999))} }

// payFirst has period 0 paid, and then gives the outcome's card. On 10 February, or on the 28th, the day
// before period 1 is due, a person upgrades.
func (c *crash) payFirst() {
	c.w.start().run(civil.Date{})
	c.w.goTo(date("2024-02-10"))
	if c.last {
		c.w.goTo(date("2024-02-28"))
	}
	if _, err := c.w.start().UpdateSubscription(context.Background(), c.name, billing.Change{Method: &c.outcome.method}); err != nil {
		c.w.violate("method: %v", err)
	}
	for n := range 24 {
		if n > 0 { // by whichever plan: upgraded holds it
			delete(c.w.amounts, fmt.Sprintf("ACC#a1/s1/%d", n))
		}
	}
}

// askUpgrade upgrades under one key, until its answer has come.
func (c *crash) askUpgrade(p *process) {
	before := c.w.sub(c.name)
	a, err := p.UpgradeNow(c.w.keyed(context.Background(), "upgrade"), c.name, titaniumNow())
	c.refused(p, err)
	due, _ := before.Due()
	if err == nil && !a.Repeated && (a.Offer.DueBefore != due || a.Offer.Days != due.DaysSince(c.w.today()) ||
		a.Offer.Period != before.Period || a.Offer.Day != c.w.today()) {
		c.w.violate("offer %+v of %s", a.Offer, c.w.describe(c.name))
	}
}

// upgraded: the plan, the dates and the amounts are all of them the new ones from one paid period on, or
// all of them are as they were.
func (c *crash) upgraded() {
	if !c.upgrade {
		return
	}
	s := c.w.sub(c.name)
	if s.Upgrade != nil && s.Upgrade.Reason == "" {
		c.w.violate("the upgrade is still under way: %s", c.w.describe(c.name))
	}
	c.holdUpgrades(s)
	if c.request != nil {
		return
	}
	paid := s.SKU == "titanium"
	switch c.outcome.name {
	case "pays", "hard decline, the fallback pays":
		if !paid && len(c.first) == 0 {
			c.w.violate("not upgraded: %s, %+v", c.w.describe(c.name), s.Upgrade)
		}
	case "soft decline", "hard decline", "unknown token", "unknown token, the fallback is declined", "never authenticates", "processing, bounces":
		if paid {
			c.w.violate("upgraded: %s", c.w.describe(c.name))
		}
	}
}

// holdUpgrades holds the subscription against its receipts: each one up to the upgrade says the old plan, and
// each one from it on the new one, on the dates of the schedule that begins with the upgrade.
func (c *crash) holdUpgrades(s *billing.Subscription) {
	w := c.w
	from := -1
	plans := map[int]string{}
	for r, err := range w.start().GetReceiptsByAccount(context.Background(), "a1") {
		if err != nil || r.Kind == billing.Overpayment {
			continue
		}
		plans[r.Period] = r.SKU
		if r.SKU == "titanium" && (from < 0 || r.Period < from) {
			from = r.Period
		}
	}
	if from < 0 {
		w.happened(moveNotUpgraded)
		if s.SKU == "titanium" || c.request == nil && s.Amount != usd(1299) {
			w.violate("no receipt says titanium, and the plan is %s, %s", s.SKU, s.Amount)
		}
		return
	}
	w.happened(moveUpgraded)
	for r, err := range w.start().GetReceiptsByAccount(context.Background(), "a1") {
		if err != nil {
			w.violate("%v", err)
			continue
		}
		if old := r.Period < from; old != (r.SKU != "titanium") {
			w.violate("period %d is of %s, and titanium begins with %d", r.Period, r.SKU, from)
		}
		if r.Period != from {
			continue
		}
		anchor := civil.Schedule{Anchor: r.Due, From: from, Day: r.Due.Day(), Interval: billing.Monthly}
		next, _ := anchor.Due(s.Period)
		got, err := s.Schedule().Due(s.Period)
		if c.request == nil && (err != nil || got != next) {
			w.violate("upgraded on %s, but period %d is due on %s, want %s", r.Due, s.Period, got, next)
		}
		if c.request == nil && r.Amount != usd(3999) { // else the spy knows what it costs
			w.violate("the upgrade cost %s", r.Amount)
		}
	}
}

// seeUpgrade: the commit that writes the receipt of an upgraded period puts its plan and a schedule from its day
// in force, and no other commit does. An upgrade that ends otherwise uses up its generation.
func (s *spy) seeUpgrade(name string, was, is store.Item, all []store.Write) {
	u, now := was.Get(schema.Upgrade).Map(), is.Get(schema.Upgrade).Map()
	if u == nil || u.Has(schema.Reason) || s.w.foreign {
		return
	}
	n, receipt := u.Int(schema.Period), store.Item(nil)
	for _, w := range all {
		if w.Op == store.OpPut && strings.HasPrefix(w.Item.Str(schema.SK), "REC#") && w.Item.Int(schema.Period) == n && !w.Item.Has(schema.Kind) {
			receipt = w.Item
		}
	}
	paid := receipt != nil && was.Get(schema.OpenPeriod).Map().Int(schema.Generation) == u.Int(schema.Generation)
	switch {
	case !paid && now.Str(schema.Reason) == billing.UpgradePaid,
		!paid && (is.Str(schema.SKU) == u.Str(schema.SKU) && was.Str(schema.SKU) != is.Str(schema.SKU)):
		s.w.violate("%s: the upgrade of period %d is in force without its receipt", name, n)
	case paid && (is.Str(schema.Anchor) != u.Str(schema.DueDate) || is.Int(schema.AnchorPeriod) != n):
		s.w.violate("%s: period %d was upgraded on %s, and its schedule begins on %s with period %d", name, n, u.Str(schema.DueDate),
			is.Str(schema.Anchor), is.Int(schema.AnchorPeriod))
	case paid && (is.Str(schema.SKU) != u.Str(schema.SKU) || receipt.Str(schema.SKU) != u.Str(schema.SKU) ||
		receipt.Str(schema.DueDate) != u.Str(schema.DueDate) || is.Has(schema.Pending)):
		s.w.violate("%s: period %d was upgraded to %s, and %v says otherwise", name, n, u.Str(schema.SKU), receipt)
	case !paid && now.Has(schema.Reason) && (now.Int(schema.Generation) <= u.Int(schema.Generation) ||
		is.Str(schema.Anchor) != was.Str(schema.Anchor) || is.Str(schema.PaymentAmount) != was.Str(schema.PaymentAmount)):
		s.w.violate("%s: period %d, not upgraded, has the generation of its upgrade, or another plan or date", name, n)
	}
}

// upgrades plays an upgrade that is paid, and one that is declined, cut at each point.
func upgrades(p planted) []string {
	for point := range 30 {
		for _, method := range []string{"pm_card_visa", "pm_card_visa_chargeDeclinedLostCard"} {
			w, n := upgradable(p)
			w.newMethod(n, method)
			if _, err := w.start(fault{point, true}).UpgradeNow(context.Background(), n, titaniumNow()); err != nil {
				w.start().run(civil.Date{})
			}
			w.tomorrow()
			w.start().run(civil.Date{})
			if v := w.audit(); len(v) > 0 {
				return v
			}
		}
	}
	return nil
}

// upgradable is a world on 10 February with a subscription that has paid its first period, and whose next one is
// due on the 29th.
func upgradable(p planted, change ...func(*billing.NewSubscription)) (*world, billing.Name) {
	w := newWorld("2024-01-31T09:00", p)
	n := w.create(one("2024-01-31", change...))
	w.start().run(civil.Date{})
	w.goTo(date("2024-02-10"))
	return w, n
}

// upgradeOf is the upgrade of a subscription's item with that reason.
func upgradeOf(it store.Item, reason string) store.Item {
	if u := it.Get(schema.Upgrade).Map(); isSub(it) && u != nil && u.Str(schema.Reason) == reason {
		return u.Clone()
	}
	return nil
}

func keepsAnchor(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		if w.Op == store.OpPut && upgradeOf(w.Item, billing.UpgradePaid) != nil && w.Item.Int(schema.AnchorPeriod) > 0 {
			w.Item.Set(schema.Anchor, store.S("2024-01-31"))
			w.Item.Set(schema.PaymentDay, store.S("31"))
			w.Item.Remove(schema.AnchorPeriod)
		}
		return w
	}}
}

func upgradesAtOnce(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		if u := upgradeOf(w.Item, ""); w.Op == store.OpPut && u != nil && w.Item.Has(schema.OpenPeriod) {
			w.Item.Set(schema.SKU, store.S(u.Str(schema.SKU)))
		}
		return w
	}}
}

func keepsGeneration(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		if u := upgradeOf(w.Item, "declined: lost_card"); w.Op == store.OpPut && u != nil {
			u.Remove(schema.Generation)
			w.Item.Set(schema.Upgrade, store.M(u))
		}
		return w
	}}
}

// upgrading is the simulation's request for an upgrade.
const upgrading = 23

// upgrade upgrades a subscription now, half of the time under a key of the day.
func (s *simulation) upgrade(p *process, n billing.Name, rng *rand.Rand) error {
	ctx := context.Background()
	if rng.IntN(2) == 0 {
		ctx = s.w.keyed(ctx, fmt.Sprint("upgrade ", n, s.w.today()))
	}
	a, err := p.UpgradeNow(ctx, n, upgrade.Order{SKU: new(pick(rng, "platinum", "titanium")), Amount: new(usd(100 + rng.Int64N(9900)))})
	if err == nil && !a.Repeated && a.Subscription.Upgrade != nil {
		s.did["upgrade "+string(upgrade.StateOf(a.Subscription))]++
	}
	return err
}
