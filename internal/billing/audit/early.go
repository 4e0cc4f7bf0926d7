package audit

import (
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/money"
)

// compareEarly compares the sums of a time before the store was made. Only a manual payment may be dated
// so early: its receipt is there, unless it may have expired. Anything else has no record that could have.
func (a *auditor) compareEarly() {
	made := a.Opened.Created.Add(-sumsMargin)
	for k, kept := range a.early {
		got, at := a.sums[k], time.Unix(k.at, 0).UTC()
		manual := k.kind == report.Outside || k.kind == report.Recovered
		waits := a.waits[k]
		if got == kept || got.minor == kept.minor+waits.minor && !got.over || !at.Before(made) || k.at >= a.sumsFrom().Unix() || manual && a.sumsFrom().After(made) {
			continue
		}
		if sum := report.SumAt(k.kind, at, money.New(got.minor, k.currency)); waits == (total{}) && !got.over {
			a.result.Corrections = append(a.result.Corrections, report.Correction{Sum: sum, Was: a.earlyItems[sum.Key()]})
		}
		a.problem(sumDiffers, billing.Name{}, 0, "%s of the 15 minutes from %s UTC, before the store was made: the store keeps "+
			"%s, and its records add up to %s", k.kind, at.Format("2006-01-02 15:04"), money.New(kept.minor, k.currency),
			money.New(got.minor, k.currency))
	}
}
