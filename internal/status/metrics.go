package status

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/duesday/duesday/internal/billing/engine"
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
		{"duesday_check_ok", gauge, "Whether a check of duesday status passes: 1 or 0.", []string{"check"}},
		{lookMetric, gauge, "When these checks last ran.", nil},
		{"duesday_look_duration_seconds", gauge, "How long the checks took.", nil},
		{"duesday_overdue_payments", gauge, "Payments due before today that no completed run has handled; at most 10000.", nil},
		{"duesday_unfinished_dates", gauge, "Scheduled days on which a daily job has not completed.", nil},
		{"duesday_last_run_start_timestamp_seconds", gauge, "When the last run of a job began.", kind},
		{"duesday_last_run_end_timestamp_seconds", gauge, "When the last run of a job ended; absent until then.", kind},
		{"duesday_last_completed_run_start_timestamp_seconds", gauge, "When the last completed run of a job began.", kind},
		{"duesday_last_completed_run_end_timestamp_seconds", gauge, "When the last completed run of a job ended.", kind},
		{"duesday_last_run_periods", gauge, "Periods in the last run of a job, by outcome.", []string{"kind", "outcome"}},
		{"duesday_waiting_periods", gauge, "Periods that wait, according to the last completed payment run.", []string{"state"}},
		{"duesday_charging_enabled", gauge, "Whether charging is on: 1 or 0.", nil},
		{"duesday_outbox_oldest_age_seconds", gauge, "How long the oldest row of a queue has waited.", []string{"queue"}},
		{"duesday_outbox_dead_letters", gauge, "Dead letters of a queue; at most 1024.", []string{"queue"}},
		{"duesday_accounts", gauge, "Connected accounts.", nil},
		{"duesday_accounts_unverified", gauge, "Connected accounts whose events have not been verified for a day.", nil},
		{"duesday_accounts_failed", gauge, "Connected accounts whose last poll failed.", nil},
		{"duesday_accounts_disconnected", gauge, "Accounts that are disconnected at Stripe.", nil},
		{"duesday_accounts_verified_timestamp_seconds", gauge, "The time through which all accounts are verified.", nil},
		{"duesday_webhook_signature_failures_total", counter, "Wrong signatures at a webhook endpoint.", []string{"endpoint"}},
		{"duesday_processor_clock_offset_seconds", gauge, "How far the processor's clock is ahead of this machine's.", nil},
		{"duesday_disk_free_bytes", gauge, "Free space on the disk that holds the store's folder.", nil},
		{"duesday_disk_size_bytes", gauge, "Size of the disk that holds the store's folder.", nil},
	}
}

// collector is the last look of a Watch as metrics.
type collector struct {
	last  func() []Check
	descs map[string]*prometheus.Desc
	kinds map[string]prometheus.ValueType
}

// errNoMetric is returned for a value that metrics does not list.
var errNoMetric = errors.New("a check reports a value for an unknown metric")

// Meters count the work of one process. They are safe for concurrent use.
type Meters struct {
	payments, amounts, events, requests *prometheus.CounterVec
	lag                                 *prometheus.HistogramVec
	open                                prometheus.Gauge
}

// NewMeters returns meters that show zero.
func NewMeters() *Meters {
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Meters{
		payments: count("duesday_payments_total", "Periods handled by this process's payment runs.", "outcome"),
		amounts: count("duesday_payment_minor_units_total", "Amounts of the periods handled by this process's payment runs, in minor units.",
			"outcome", "currency"),
		events:   count("duesday_events_total", "Events that a webhook endpoint accepted, by sender.", "endpoint", "source"),
		requests: count("duesday_http_requests_total", "HTTP requests answered.", "route", "code"),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "duesday_event_lag_seconds",
			Help: "Time from an event's creation at Stripe until Duesday stored it.", Buckets: []float64{1, 5, 30, 120, 600, 3600,
				21600, 86400}}, []string{"source"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "duesday_http_open_connections", Help: "Open HTTP connections."}),
	}
	for _, o := range engine.Outcomes() {
		m.payments.WithLabelValues(string(o)) // a rate needs a value before the first
	}
	return m
}

// Payment counts the result of a period.
func (m *Meters) Payment(r engine.Result) {
	m.payments.WithLabelValues(string(r.Outcome)).Inc()
	if code := r.Amount.Currency().Code(); code != "" {
		m.amounts.WithLabelValues(string(r.Outcome), code).Add(float64(max(0, r.Amount.Minor())))
	}
}

// Event counts an event that the endpoint accepted. It also records the event's lag, unless created is
// zero because the event was already stored.
func (m *Meters) Event(endpoint string, polled bool, created, now time.Time) {
	source := "webhook"
	if polled {
		source = "poll"
	}
	if m.events.WithLabelValues(endpoint, source).Inc(); !created.IsZero() {
		m.lag.WithLabelValues(source).Observe(max(0, now.Sub(created).Seconds()))
	}
}

// Request counts an answered request to the route's pattern.
func (m *Meters) Request(route string, code int) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
}

// Opened counts connections that were opened, or with -1 closed.
func (m *Meters) Opened(n int) { m.open.Add(float64(n)) }

// NewRegistry returns a registry of the checks of the last look, the meters, Go's runtime and the process.
func NewRegistry(last func() []Check, m *Meters) *prometheus.Registry {
	c := &collector{last, map[string]*prometheus.Desc{}, map[string]prometheus.ValueType{}}
	for _, m := range metrics() {
		c.descs[m.name], c.kinds[m.name] = prometheus.NewDesc(m.name, m.help, m.labels, nil), m.kind
	}
	r := prometheus.NewRegistry()
	r.MustRegister(c, m.payments, m.amounts, m.events, m.requests, m.lag, m.open, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
			if c.descs[v.Metric] == nil {
				to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errNoMetric), errNoMetric)
				continue
			}
			m, err := prometheus.NewConstMetric(c.descs[v.Metric], c.kinds[v.Metric], v.Number, v.Labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(c.descs[v.Metric], err)
			}
			to <- m
		}
	}
}
