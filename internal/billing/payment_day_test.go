package billing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/civil"
)

func day(t interface{ Fatal(...any) }, text string) civil.Date {
	d, err := civil.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Of many changes of the payment day before one due date the last one counts, as if it were the
// only one. It moves the date by less than a month, and only with Early to before it.
func TestChangeDay_TheLastOneCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.IntRange(1, 31)
		due := day(t, "2026-03-01").AddDays(rapid.IntRange(0, 400).Draw(t, "due"))
		today := due.AddDays(-rapid.IntRange(-40, 40).Draw(t, "ahead"))
		once := &Subscription{Status: Active, Interval: Monthly, Anchor: due, AnchorPeriod: 4, Period: 4,
			PaymentDay: due.Day()}
		s := new(*once)
		if rapid.Bool().Draw(t, "open") {
			s.Period, s.Open = 3, &OpenPeriod{Period: 3}
		}
		var c Change
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			c = Change{PaymentDay: new(days.Draw(t, "day")), Early: rapid.Bool().Draw(t, "early")}
			if err := s.ChangeTerms(c, today); err != nil {
				t.Fatal(err)
			}
		}
		if err := once.ChangeTerms(c, today); err != nil {
			t.Fatal(err)
		}
		later := s.Anchor.DaysSince(due)
		early := c.Early && s.Anchor.After(today)
		if s.Anchor != once.Anchor || s.AnchorPeriod != 4 || later > 30 || later < 0 && !early {
			t.Fatalf("%s, %d days after %s; the last change alone: %s", s.Anchor, later, due, once.Anchor)
		}
	})
}

// TestChangeDay_WhileOpen: the schedule begins after the open period, whose plan and date are known all the same.
func TestChangeDay_WhileOpen(t *testing.T) {
	due := day(t, "2026-03-15")
	s := &Subscription{Status: Active, Interval: Monthly, Anchor: due, PaymentDay: 15, Open: &OpenPeriod{Due: due}}
	if err := s.ChangeTerms(Change{PaymentDay: new(20)}, due); err != nil {
		t.Fatal(err)
	}
	if _, begins, err := s.Begins(); begins != day(t, "2026-04-20") || err != nil {
		t.Errorf("begins on %s, %v", begins, err)
	}
	if next := s.Upcoming(2); len(next) != 2 || next[0].Due != due || next[1].Due != day(t, "2026-04-20") {
		t.Errorf("upcoming: %+v", next)
	}
}

func TestChangeDay_Early(t *testing.T) {
	for _, c := range []struct{ today, due, want string }{
		{"2026-03-09", "2026-03-15", "2026-03-10"}, // the day after today
		{"2026-03-10", "2026-03-15", "2026-04-10"}, // today is not ahead
		{"2026-03-20", "2026-03-15", "2026-04-10"},
		{"2026-02-09", "2026-03-10", "2026-03-10"}, // it is the due date already
	} {
		due := day(t, c.due)
		s := &Subscription{Status: Active, Interval: Monthly, Anchor: due, PaymentDay: due.Day()}
		if err := s.ChangeTerms(Change{PaymentDay: new(10), Early: true}, day(t, c.today)); err != nil {
			t.Fatal(err)
		}
		if due, err := s.Due(); err != nil || due.String() != c.want {
			t.Errorf("on %s, due %s: %s, %v; want %s", c.today, c.due, due, err, c.want)
		}
	}
}
