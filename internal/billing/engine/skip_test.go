package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
)

// TestSkipUntil: each period due before the day has a record, and those on the day or later are charged.
func TestSkipUntil(t *testing.T) {
	const skipped = "skipped: skipped by a person"
	tests := []struct {
		name   string
		method string
		run    string // a run on this day before; "": none
		until  string
		want   []string
		period int
		status billing.Status
	}{
		{"nothing before the day", "", "", "2024-01-31", nil, 0, billing.Active},
		{"all but that of the day", "", "", "2024-03-31", []string{"0 " + skipped, "1 " + skipped}, 2, billing.Active},
		{"also that of today", "", "", "2024-04-01", []string{"0 " + skipped, "1 " + skipped, "2 " + skipped}, 3, billing.Active},
		{"a live intent first", "pm_card_visa_chargeDeclined", "2024-01-31", "2024-03-01", []string{"0 " + skipped, "1 " + skipped}, 2,
			billing.Active},
		{"an unpaid authentication first", "pm_card_authenticationRequired", "2024-01-31", "2024-03-01",
			[]string{"0 " + skipped, "1 " + skipped}, 2, billing.Active},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
				if test.method != "" {
					n.Method = test.method
				}
			}))
			if test.run != "" {
				w.goTo(date(test.run))
				w.start().run(civil.Date{})
			}
			w.goTo(date("2024-03-31"))
			for range 2 { // the second time it changes nothing
				s, err := w.start().SkipUntil(context.Background(), n, date(test.until))
				mustNot(t, err)
				if got := w.unpaid(n); !slices.Equal(got, test.want) || s.Status != test.status || s.Period != test.period ||
					s.Open != nil || s.Requested != billing.RequestNone || !s.SkipUntil.IsZero() {
					t.Errorf("%q, want %q; %s", got, test.want, w.describe(n))
				}
			}
			if due, err := w.sub(n).Due(); err != nil || due.Before(date(test.until)) {
				t.Errorf("due on %s: %v", due, err)
			}
			w.report(t)
		})
	}
}

// TestSkipUntil_Refused: nothing is skipped ahead, or of a subscription that is not charged.
func TestSkipUntil_Refused(t *testing.T) {
	w := newWorld("2024-03-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	before := w.sub(n).Version
	_, err := w.start().SkipUntil(context.Background(), n, date("2024-04-02"))
	if wrong, is := errors.AsType[*billing.FieldError](err); !is || wrong.Field != "until" {
		t.Errorf("ahead: %v", err)
	}
	if v := w.sub(n).Version; v != before {
		t.Errorf("version %d, want %d", v, before)
	}
	_, err = w.start().Pause(context.Background(), n)
	mustNot(t, err)
	if _, err = w.start().SkipUntil(context.Background(), n, date("2024-03-01")); !errors.Is(err, billing.ErrState) {
		t.Errorf("paused: %v", err)
	}
	w.report(t)
}

// TestSkipUntil_Parked: a subscription parked for too many due periods goes on once no due one is left.
func TestSkipUntil_Parked(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.goTo(date("2024-08-15"))
	w.start().run(civil.Date{}) // three are charged, and the next one is parked
	s, err := w.start().SkipUntil(context.Background(), n, date("2024-06-30"))
	mustNot(t, err)
	if s.Status != billing.ParkedState || s.Period != 5 || w.ending(n, 5).Ending != billing.EndParked {
		t.Errorf("with two due periods left: %s", w.describe(n))
	}
	s, err = w.start().SkipUntil(context.Background(), n, date("2024-08-16"))
	mustNot(t, err)
	if s.Status != billing.Active || s.Period != 7 || len(w.unpaid(n)) != 4 {
		t.Errorf("%q; %s", w.unpaid(n), w.describe(n))
	}
	w.report(t)
}

// TestSkipUntil_DuringARun: a walk that meets a declined period again, because a request to skip it was interrupted in
// between and has moved its row to the next date, counts it once. It ends the period, or leaves it to the next run if the
// processor does not answer.
func TestSkipUntil_DuringARun(t *testing.T) {
	for _, answers := range []bool{true, false} {
		endings, lost := []string{"0 skipped"}, 9
		if !answers {
			endings, lost = nil, 99
		}
		w := newWorld("2024-01-31T23:00", planted{})
		n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_card_visa_chargeDeclined" }))
		p, asked := w.start(), false
		p.running.Store(true)
		var outcomes []engine.Outcome
		r, err := job.Payments(t.Context(), p.Engine, job.Options{Workers: 1,
			Each: func(r engine.Result) { outcomes = append(outcomes, r.Outcome) },
			Progress: func(int64) {
				defer func() { p.handled <- struct{}{} }()
				if asked {
					return
				}
				asked = true
				w.goTo(date("2024-02-01"))
				w.script.left = []scripted{{"lost", "cancel", lost}}
				_, err := w.start().SkipUntil(context.Background(), n, date("2024-02-01"))
				wantAny(t, err)
				if answers {
					w.script.left = nil
				}
			}})
		mustNot(t, err)
		equal(t, w.endings(n), endings)
		if r.Due() != 1 || r.Counts[engine.OutcomeRetry] != 1 || !slices.Equal(outcomes, []engine.Outcome{engine.OutcomeRetry}) {
			t.Errorf("%t: %v, due %d, %v", answers, r.Counts, r.Due(), outcomes)
		}
	}
}

// TestSkipUntil_Cut: with an intent that the bank still decides on, and more due periods than one commit
// takes, the request is cut at each of its steps. The next run and then the same request go on, and no
// due period before the day is charged, even if nobody asks again.
func TestSkipUntil_Cut(t *testing.T) {
	const weeks = 210
	for _, again := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			for point := 1; ; point++ {
				what := fmt.Sprintf("again: %t, lost: %t, point %d", again, lost, point)
				w := newWorld("2022-01-03T09:00", planted{})
				n := w.create(one("2022-01-03", func(n *billing.NewSubscription) {
					n.Interval, n.PaymentDay, n.Method = civil.Interval{N: 1, Unit: civil.Week}, 1, "pm_card_visa_chargeDeclined"
				}))
				w.start().run(civil.Date{})
				w.goTo(date("2026-01-05"))
				p := w.start(fault{point, !lost})
				_, err := p.SkipUntil(context.Background(), n, date("2026-01-06"))
				asked := w.sub(n).Requested == billing.RequestSkip || w.sub(n).Period > 0
				if again || !asked {
					_, err = w.start().SkipUntil(context.Background(), n, date("2026-01-06"))
					if err != nil && w.sub(n).Requested != billing.RequestSkip {
						t.Errorf("%s: %v", what, err)
					}
				}
				w.newMethod(n, "pm_card_visa")
				w.pass(time.Hour)
				w.start().run(civil.Date{})
				if s := w.sub(n); s.Period != weeks || s.Paid != 0 || s.Requested != billing.RequestNone || len(w.unpaid(n)) != weeks ||
					s.NextPayment != date("2026-01-12") || !s.SkipUntil.IsZero() {
					t.Errorf("%s: %d records, %d paid; %s (%v)", what, len(w.unpaid(n)), s.Paid, w.describe(n), err)
				}
				w.report(t)
				if !p.faults.struck() {
					break
				}
			}
		}
	}
}
