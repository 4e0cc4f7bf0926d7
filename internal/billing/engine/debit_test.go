package engine_test

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// TestDebit_HasRetryDaysOfItsOwn: a bank debit that is returned at once is not tried again as a card is.
func TestDebit_HasRetryDaysOfItsOwn(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_sandbox_debit")))
	w.start().run(civil.Date{})
	var days []string
	answer := func(on string) {
		t.Helper()
		w.goTo(date(on))
		mustNot(t, w.box.Finish(w.sub(n).Open.Ref, false))
		w.start().run(civil.Date{})
		if o := w.sub(n).Open; o != nil {
			days = append(days, o.Retry.String())
		}
	}
	answer("2024-02-07") // the first decline
	w.goTo(date("2024-02-13"))
	w.start().run(civil.Date{})
	if o := w.sub(n).Open; o.State != "" || len(o.Attempts) != 1 {
		t.Errorf("tried before its day: %s", w.describe(n))
	}
	w.goTo(date("2024-02-14"))
	w.start().run(civil.Date{})
	if o := w.sub(n).Open; o.State != processor.Processing || o.Attempt != 2 {
		t.Errorf("not tried on its day: %s", w.describe(n))
	}
	answer("2024-02-20")
	w.goTo(date("2024-02-21"))
	w.start().run(civil.Date{})
	answer("2024-02-27")
	equal(t, days, []string{"2024-02-14", "2024-02-21"})
	if s := w.sub(n); s.Status != billing.PastDue || s.Period != 1 {
		t.Errorf("in the end: %s", w.describe(n))
	}
	w.report(t)
}

// TestDebit_Deadline: after 14 business days without an answer, each run counts the period as new, and it
// still settles as soon as the bank answers.
func TestDebit_Deadline(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_sandbox_debit")))
	run := func() (r engine.Result) {
		t.Helper()
		mustNot(t, w.start().Collect(t.Context(), n, engine.Pass{Since: w.now().AddDate(0, 0, -1)}, func(x engine.Result) { r = x }))
		return r
	}
	w.start().run(civil.Date{})
	var late []string
	for w.today().Before(date("2024-02-24")) {
		w.tomorrow()
		if r := run(); r.New || strings.Contains(r.Reason, "14 business days") {
			late = append(late, w.today().String())
			if !r.New || r.Outcome != engine.OutcomePending || !strings.Contains(r.Reason, "14 business days") {
				t.Errorf("%s: %+v", w.today(), r)
			}
		}
	}
	equal(t, late, []string{"2024-02-21", "2024-02-22", "2024-02-23", "2024-02-24"})
	rep := w.start().run(civil.Date{})
	if !rep.NeedsPerson() {
		t.Errorf("the run needs nobody: %+v", rep)
	}
	mustNot(t, w.box.Finish(w.sub(n).Open.Ref, true))
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Period != 1 || s.Paid != 1 {
		t.Errorf("in the end: %s", w.describe(n))
	}
	w.report(t)
}
