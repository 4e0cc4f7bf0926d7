package status

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A metric is one family of Values.
type metric struct {
	name   string
	kind   prometheus.ValueType
	help   string
	labels []string
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// metrics lists every metric of the checks.
func metrics() []metric {
	kind := []string{"kind"} // a label named job is Prometheus's own
	return []metric{
		{"duesday_build_info", gauge, "The version of the program; always 1.", []string{"version"}},
		{"duesday_check_ok", gauge, "Whether a check of duesday status is all right: 1, or 0.", []string{"check"}},
		{"duesday_unfinished_dates", gauge, "Scheduled days on which a daily job has not completed.", nil},
		{"duesday_last_run_start_timestamp_seconds", gauge, "When the last run of a job began.", kind},
		{"duesday_last_run_end_timestamp_seconds", gauge, "When the last run of a job ended; absent before.", kind},
		{"duesday_last_run_periods", gauge, "The balance of the last run of a job.", []string{"kind", "outcome"}},
		{"duesday_waiting_periods", gauge, "Periods that wait, by the last completed payment run.", []string{"state"}},
		{"duesday_charging_enabled", gauge, "Whether charging is on: 1, or 0.", nil},
		{"duesday_outbox_oldest_age_seconds", gauge, "How long the oldest row of a queue has waited.", []string{"queue"}},
		{"duesday_outbox_dead_letters", gauge, "Rows of a queue that were given up, 1024 at most.", []string{"queue"}},
		{"duesday_accounts", gauge, "Connected accounts.", nil},
		{"duesday_accounts_unverified", gauge, "Connected accounts whose events are not verified for a day.", nil},
		{"duesday_accounts_verified_timestamp_seconds", gauge, "The time through which all accounts are verified.", nil},
		{"duesday_webhook_signature_failures_total", counter, "Wrong signatures at a webhook endpoint.", []string{"endpoint"}},
		{"duesday_processor_clock_offset_seconds", gauge, "How far the processor's clock is ahead of ours.", nil},
		{"duesday_disk_free_bytes", gauge, "Room on the disk of the store's folder.", nil},
		{"duesday_disk_size_bytes", gauge, "Size of the disk of the store's folder.", nil},
	}
}

// collector is the last look of a Watch as metrics.
type collector struct {
	last  func() []Check
	descs map[string]*prometheus.Desc
	kinds map[string]prometheus.ValueType
}

// NewRegistry returns a registry of the checks of the last look, of Go's runtime and of the process.
func NewRegistry(last func() []Check) *prometheus.Registry {
	c := &collector{last, map[string]*prometheus.Desc{}, map[string]prometheus.ValueType{}}
	for _, m := range metrics() {
		c.descs[m.name], c.kinds[m.name] = prometheus.NewDesc(m.name, m.help, m.labels, nil), m.kind
	}
	r := prometheus.NewRegistry()
	r.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Handler serves the registry's metrics.
func Handler(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, check := range c.last() {
		ok := 0.0
		if check.State == OK || check.State == Warning {
			ok = 1
		}
		for _, v := range append([]Value{{"duesday_check_ok", []string{check.Name}, ok}}, check.Values...) {
			m, err := prometheus.NewConstMetric(c.descs[v.Metric], c.kinds[v.Metric], v.Number, v.Labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(c.descs[v.Metric], err)
			}
			to <- m
		}
	}
}
