package takeover

import (
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// Dates returns the first two due dates of ours.
func Dates(theirs processor.Subscription, zone string) (first, second civil.Date) {
	first, day := dates(theirs, func(t time.Time) civil.Date { return billing.TodayIn(zone, t) })
	second, _ = civil.Schedule{Anchor: first, Day: day, Interval: theirs.Interval}.Due(1)
	return first, second
}
