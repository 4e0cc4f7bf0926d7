package billingapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/outlook"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

const (
	overviewDays   = 90        // with sums, today the last
	overviewMonths = 24        // with recurring revenue
	pastAge        = time.Hour // after which the sums of past days are read again, for late ones
)

// A past holds the sums of the days before today.
type past struct {
	zone      string
	today     civil.Date
	read      time.Time
	days      []*report.Day
	illegible int
}

// overview shows the day, the sums of the last 90 days, and the latest outlook. It reads neither subscriptions nor
// receipts.
func (s *server) overview(w http.ResponseWriter, r *web.Request) error {
	ctx, e := r.Context(), s.Engine
	if _, err := r.Values(); err != nil {
		return err
	}
	now, err := settings.Read(ctx, e.Records)
	if err != nil {
		return err
	}
	zone, err := civil.Zone(now.TimeZone)
	if err != nil {
		return err
	}
	read := e.Now()
	today := civil.Today(read, zone)
	waiting, err := outbox.New(e.Store, e.Tables.Outbox, e.Now, nil, nil).Backlog(ctx, 16)
	if err != nil {
		return err
	}
	asOf := read
	if !waiting.Oldest.IsZero() && waiting.Oldest.Before(asOf) {
		asOf = waiting.Oldest
	}
	before, err := s.pastDays(ctx, now.TimeZone, zone, today)
	if err != nil {
		return err
	}
	days, illegible, err := report.Days(ctx, e.Records, zone, today, today)
	if err != nil {
		return err
	}
	runs, err := job.Latest(ctx, e, billing.Payments, 1)
	if err != nil {
		return err
	}
	v := view.Object{"as_of", asOf, "time_zone", now.TimeZone, "date", today}
	if len(runs) > 0 {
		v = append(v, "run", viewRun(runs[0]))
	}
	ran, err := s.ran(ctx, zone, today)
	if err != nil {
		return err
	}
	if len(ran) > 0 {
		sum, err := job.Sum(ran)
		if err != nil {
			return err
		}
		v = append(v, "runs_today", len(ran), "payments_today", viewRun(sum))
	}
	v = append(v, "days", view.List(slices.Concat(before.days, days), viewDay), "past_as_of", before.read, "complete", before.illegible+illegible == 0)
	outlooks, err := outlook.Latest(ctx, e.Records, overviewMonths)
	if err != nil {
		return err
	}
	if len(outlooks) == 0 {
		return show(w, append(v, "outlook_missing", "no_pass"), nil)
	}
	return show(w, append(v, "outlook", viewOutlook(outlooks)), nil)
}

// ran returns the payment runs of today in the zone, the most recently started first. A run without a date of its own
// has the UTC day as its date, and is of the day on which it started.
func (s *server) ran(ctx context.Context, zone *time.Location, today civil.Date) ([]*job.Report, error) {
	runs, err := job.Since(ctx, s.Engine, billing.Payments, today.AddDays(-1))
	return slices.DeleteFunc(runs, func(r *job.Report) bool {
		day := r.Date
		if day == civil.Of(r.Started) {
			day = civil.Today(r.Started, zone)
		}
		return day != today
	}), err
}

// pastDays returns the sums of the days before today, which it keeps for an hour.
func (s *server) pastDays(ctx context.Context, name string, zone *time.Location, today civil.Date) (*past, error) {
	now := s.Engine.Now()
	if p := s.past.Load(); p != nil && p.zone == name && p.today == today && !now.Before(p.read) && now.Sub(p.read) < pastAge {
		return p, nil
	}
	p := &past{zone: name, today: today, read: now}
	var err error
	if p.days, p.illegible, err = report.Days(ctx, s.Engine.Records, zone, today.AddDays(1-overviewDays), today.AddDays(-1)); err != nil {
		return nil, err
	}
	s.past.Store(p)
	return p, nil
}

func viewDay(d *report.Day) view.Object {
	v := view.Object{"date", d.Date, "currency", d.Currency.Code()}
	for _, kind := range report.Kinds {
		v = append(v, string(kind), d.At(kind))
	}
	return v
}

// viewOutlook returns the recurring revenue of each month, and the expected charges of the latest pass.
func viewOutlook(list []*outlook.Outlook) view.Object {
	recurring := view.List(list, func(o *outlook.Outlook) view.Object {
		return view.Object{"month", o.Month(), "as_of", o.AsOf, "amounts", view.Sums(slices.Values(o.Recurring))}
	})
	o := list[0]
	return view.Object{"as_of", o.AsOf, "time_zone", cmp.Or(o.Zone, "UTC"), "subscriptions", o.Subscriptions, "unreadable?", o.Unreadable, "recurring", recurring,
		"expected", view.List(o.Expected, view.Expected)}
}
