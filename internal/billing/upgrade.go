package billing

import (
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
)

// An Upgrade is a request to charge the period to be paid next on an earlier day, for another plan. The
// plan and the schedule stay as they are until the period is paid. Package upgrade decides what may be
// upgraded.
type Upgrade struct {
	Period     int
	Generation int // of the period's next intent
	SKU        string
	Amount     money.Amount // of one unit
	Day        civil.Date   // business day of the request, on which the period is then due
	Reason     string       // why it ended; "": it is marked, or its period is open
}

// UpgradePaid is the Reason of an upgrade in force.
const UpgradePaid = "paid"

func (u *Upgrade) attributes(c *codec) {
	c.amount(schema.Amount, "upgrade", &u.Amount)
	c.date(schema.DueDate, &u.Day)
	c.count(schema.Generation, &u.Generation, 0)
	c.number(schema.Period, &u.Period)
	text(c, schema.Reason, &u.Reason)
	always(c, schema.SKU, &u.SKU)
}

// Upgrading reports whether an upgrade of the period to be paid next is marked or open.
func (s *Subscription) Upgrading() bool {
	return s.Upgrade != nil && s.Upgrade.Reason == "" && s.Upgrade.Period == s.Period
}

// Beside reports whether the open period does not stand for the one to be paid next on its due date: it
// is a past one, or an upgrade. It has no retry days, and gives way when the next one is due.
func (s *Subscription) Beside() bool { return s.Open != nil && (s.Collecting() || s.Upgrading()) }

// EndUpgrade removes the mark of an upgrade. Its period stays, and its next intent has another
// generation.
func (s *Subscription) EndUpgrade(reason string) {
	if s.Upgrading() {
		u := *s.Upgrade
		u.Reason, u.Generation = reason, u.Generation+1
		s.Upgrade = &u
	}
}

// Upgraded puts the plan of the upgrade in force, from its period on, and begins the schedule on its day.
func (s *Subscription) Upgraded() {
	u := *s.Upgrade
	u.Reason = UpgradePaid
	s.SKU, s.Amount, s.Pending, s.Upgrade = u.SKU, u.Amount, nil, &u
	s.Anchor, s.AnchorPeriod, s.DueBefore = u.Day, u.Period, civil.Date{}
	s.PaymentDay = s.Schedule().OnAnchor().Day
}

// AfterUpgrade returns a copy of the subscription, as it is if the upgrade is paid.
func (s *Subscription) AfterUpgrade() *Subscription {
	after := *s
	after.Upgraded()
	return &after
}

// NextGeneration returns the generation of the next intent of the period to be paid next: an upgrade may
// have used some.
func (s *Subscription) NextGeneration() int {
	if s.Upgrade != nil && s.Upgrade.Period == s.Period {
		return s.Upgrade.Generation
	}
	return 0
}
