package status_test

import (
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/status"
)

var (
	sampleForm = regexp.MustCompile(`^([a-z_:][a-z0-9_:]*)(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? ([^ ]+)$`)
	metaForm   = regexp.MustCompile(`^# (HELP|TYPE) ([a-z_:][a-z0-9_:]*) (.+)$`)
)

// parse reads the text format strictly: each family once, with HELP, TYPE and then its samples, each once.
func parse(t *testing.T, text string) (samples map[string]float64, types map[string]string) {
	t.Helper()
	samples, types = map[string]float64{}, map[string]string{}
	helped, family := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		if m := metaForm.FindStringSubmatch(line); m != nil {
			if m[1] == "HELP" && helped[m[2]] || m[1] == "TYPE" && (!helped[m[2]] || types[m[2]] != "") {
				t.Errorf("%s: once more, or out of order", line)
			}
			if helped[m[2]] = true; m[1] == "TYPE" {
				family, types[m[2]] = m[2], m[3]
			}
			continue
		}
		m := sampleForm.FindStringSubmatch(line)
		if m == nil || !whole {
			t.Fatalf("%q is no sample", line)
		}
		base := m[1]
		if types[family] == "histogram" || types[family] == "summary" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
		}
		value, err := strconv.ParseFloat(m[5], 64)
		if _, twice := samples[m[1]+m[2]]; base != family || twice || err != nil {
			t.Errorf("%q: of family %s, twice %v, %v", line, family, twice, err)
		}
		if strings.HasSuffix(family, "_total") != (types[family] == "counter") {
			t.Errorf("%s is a %s", family, types[family])
		}
		samples[m[1]+m[2]] = value
	}
	return samples, types
}

// TestExposition: what /metrics answers is strictly in the text format, has every metric that the
// pages name, Go's and the process's, and the meters' numbers.
func TestExposition(t *testing.T) {
	w, meters := newWorld(t), status.NewMeters()
	w.day(clockTime("03 06:10"))
	w.account("acct_a", w.now.Add(-time.Hour), `it said "no"`+"\n")
	w.left("acct_b", time.Hour)
	w.bury(outbox.Mail)
	w.signed(false, 0)
	w.ahead(time.Second, true)
	dollar, err := money.ParseCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		meters.Payment(engine.Result{Name: billing.Name{Account: "a"}, Outcome: engine.OutcomePaid, Amount: money.New(1299, dollar)})
	}
	meters.Payment(engine.Result{Outcome: engine.OutcomeUnreadable})
	meters.Event("/hooks/stripe", true, w.now.Add(-10*time.Second), w.now)
	meters.Event("/hooks/stripe", false, time.Time{}, w.now)
	meters.Request("GET /v1/events", 200)
	meters.Opened(1)
	answer := httptest.NewRecorder()
	last := w.in.Look(t.Context())
	status.Handler(status.NewRegistry(func() []status.Check { return last }, meters)).ServeHTTP(answer,
		httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	samples, types := parse(t, answer.Body.String())
	for sample, want := range map[string]float64{
		`duesday_payments_total{outcome="paid"}`:                               2,
		`duesday_payment_minor_units_total{currency="USD",outcome="paid"}`:     2598,
		`duesday_payments_total{outcome="unreadable"}`:                         1,
		`duesday_events_total{endpoint="/hooks/stripe",source="poll"}`:         1,
		`duesday_events_total{endpoint="/hooks/stripe",source="webhook"}`:      1,
		`duesday_event_lag_seconds_count{source="poll"}`:                       1,
		`duesday_event_lag_seconds_sum{source="poll"}`:                         10,
		`duesday_http_requests_total{code="200",route="GET /v1/events"}`:       1,
		`duesday_http_open_connections`:                                        1,
		`duesday_look_timestamp_seconds`:                                       float64(w.now.Unix()),
		`duesday_overdue_payments`:                                             0,
		`duesday_accounts_disconnected`:                                        1,
		`duesday_last_completed_run_end_timestamp_seconds{kind="payments"}`:    float64(clockTime("03 06:11").Unix()),
		`duesday_last_completed_run_start_timestamp_seconds{kind="reminders"}`: float64(clockTime("03 06:10").Unix()),
	} {
		if got, there := samples[sample]; !there || got != want {
			t.Errorf("%s %v, %v, want %v", sample, got, there, want)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if types[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	for name := range types { // each is documented
		if strings.HasPrefix(name, "duesday_") && !strings.Contains(operating(t), "`"+name) {
			t.Errorf("docs/operating.md has no %s", name)
		}
	}
}

// TestExposition_Parse: the parser refuses what Prometheus would.
func TestExposition_Parse(t *testing.T) {
	for i, text := range []string{"a 1\n", "# TYPE a gauge\na 1\n", "# HELP a x\n# TYPE a gauge\na 1\na 1\n",
		"# HELP a x\n# TYPE a counter\na 1\n", "# HELP a x\n# TYPE a gauge\na{b=\"c\nd\"} 1\n", "# HELP a x\n# TYPE a gauge\na one\n"} {
		inner := new(testing.T)
		done := make(chan bool)
		go func() {
			defer close(done)
			parse(inner, text)
		}()
		<-done
		if !inner.Failed() {
			t.Errorf("%d: %q was taken", i, text)
		}
	}
}
