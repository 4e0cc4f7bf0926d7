package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/status"
)

// TestMetrics: every number of every check is a metric, under a name that Prometheus's own linter likes.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.day(clockTime("03 06:10"))
	w.bury(outbox.Mail)
	w.account("acct_a", w.now.Add(-time.Hour), "")
	w.signed(false, 0)
	w.ahead(time.Second, true)
	r := status.NewRegistry(func() []status.Check { return w.in.Look(t.Context()) }, status.NewMeters())
	problems, err := testutil.GatherAndLint(r)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var name strings.Builder
			name.WriteString(f.GetName())
			for _, l := range m.Label {
				name.WriteString(" " + l.GetValue())
			}
			got[name.String()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{"duesday_check_ok mail": 0, "duesday_check_ok disk": 1,
		"duesday_build_info v1": 1, "duesday_unfinished_dates": 0, "duesday_last_run_periods payments paid": 3,
		"duesday_charging_enabled": 1, "duesday_outbox_dead_letters mail": 1, "duesday_outbox_dead_letters jobs": 0,
		"duesday_accounts": 1, "duesday_accounts_unverified": 0, "duesday_disk_free_bytes": 50 << 30,
		"duesday_webhook_signature_failures_total /hooks/stripe": 1, "duesday_processor_clock_offset_seconds": 1,
		"duesday_last_run_start_timestamp_seconds payments": 1772518200} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s = %v, %v, want %v", name, value, there, want)
		}
	}
}
