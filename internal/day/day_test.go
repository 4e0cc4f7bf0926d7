package day

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/schedule"
)

// A world is the jobs of a store without subscriptions.
type world struct {
	t        *testing.T
	mu       sync.Mutex // of all below, which a test changes while a day runs
	clock    *clock.Clock
	zone     string
	times    []string
	last     map[billing.Kind]billing.Run
	takes    time.Duration
	fail     func(billing.Kind) error // of a run; nil: none fails
	off      string                   // why charging is off
	mails    int
	beat     error
	broken   error    // of the settings
	lines    []string // what happened, by the clock in the zone
	log      bytes.Buffer
	running  int
	cut      int // runs that ctx ended
	forgets  bool
	finished bool // whether anybody is told
}

func newWorld(t *testing.T, text string) *world {
	c, err := clock.Parse(text, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, clock: c, zone: "Europe/Berlin", times: []string{"06:10"}, last: map[billing.Kind]billing.Run{},
		takes: 2 * time.Minute, finished: true}
}

// set changes the world of a day that runs.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) note(what string) {
	zone, _ := schedule.Zone(w.zone)
	w.lines = append(w.lines, w.clock.Now().In(zone).Format("01-02 15:04 ")+what)
}

func (w *world) Times(context.Context) (schedule.Times, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return schedule.Times{}, w.broken
	}
	return schedule.Parse(w.times, w.zone)
}
func (w *world) Last(_ context.Context, kind billing.Kind) (*billing.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return new(w.last[kind]), nil
}

func (w *world) Charging(context.Context) (bool, string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.off == "", w.off, nil
}

func (w *world) Mails(context.Context) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mails, nil
}

func (w *world) finish(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("heartbeat")
	if w.beat == nil {
		w.last[billing.Payments] = billing.Run{Started: w.last[billing.Payments].Started, Told: w.clock.Now()}
	}
	return w.beat
}

func (w *world) Run(ctx context.Context, kind billing.Kind) error {
	if err := w.begin(kind); err != nil {
		return err
	}
	begun := w.clock.Now()
	select {
	case <-ctx.Done():
	case <-w.clock.After(w.takes):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	if ctx.Err() != nil {
		w.cut++
	} else if !w.forgets {
		w.last[kind] = billing.Run{Started: begun}
	}
	return ctx.Err()
}

func (w *world) begin(kind billing.Kind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running > 0 {
		w.t.Error("two runs at a time")
	}
	if w.fail != nil {
		if err := w.fail(kind); err != nil {
			w.note(string(kind) + ": " + err.Error())
			return err
		}
	}
	w.note(string(kind))
	w.running++
	return nil
}

// live runs a day for so long, by the clock.
func (w *world) live(d time.Duration) {
	o := Options{Jobs: w, Clock: w.clock, Log: slog.New(slog.NewTextHandler(&w.log, nil))}
	if w.finished {
		o.Finished = w.finish
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- New(o).Run(ctx) }()
	<-w.clock.After(d)
	cancel()
	if err := <-done; err != nil {
		w.t.Error(err)
	}
}

func (w *world) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

func (w *world) want(what string, lines ...string) {
	w.t.Helper()
	if got := w.took(); !slices.Equal(got, lines) {
		w.t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// Two months with the change to summer time: each day both jobs once, reminders first, and a
// heartbeat; with the process stopped for days and started again in between.
func TestDay_TwoMonths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-03-01T03:00:00Z,1m/s") // 04:00 in Berlin
		w.live(time.Hour)                             // a fresh store runs at once
		w.want("at first", "03-01 04:00 reminders", "03-01 04:02 payments", "03-01 04:04 heartbeat")
		for day := range 61 {
			if day == 10 { // three days of standstill are one run
				<-w.clock.After(3 * 24 * time.Hour)
			}
			if day >= 10 && day < 13 {
				continue
			}
			w.live(24 * time.Hour)
			date := time.Date(2026, 3, 1+day, 0, 0, 0, 0, time.UTC).Format("01-02")
			if day == 13 {
				if lines := w.took(); len(lines) != 6 || !strings.HasPrefix(lines[0], "03-14 05:00 rem") {
					t.Errorf("after a standstill: %q", lines)
				}
				continue
			}
			w.want("day", date+" 06:10 reminders", date+" 06:12 payments", date+" 06:14 heartbeat")
		}
		if w.log.Len() > 0 {
			t.Error(w.log.String())
		}
	})
}

func TestDay_FailedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-10-24T22:30:00Z")
		w.times = []string{"02:30", "18:10"}
		w.live(time.Minute * 10)
		w.took()
		w.fail = func(kind billing.Kind) error {
			if kind == billing.Payments {
				return errors.New("no")
			}
			return nil
		}
		w.live(3 * time.Hour) // 02:30 comes twice on this day
		first := []string{"10-25 02:30 reminders", "10-25 02:32 payments: no", "10-25 02:33 payments: no",
			"10-25 02:38 payments: no", "10-25 02:53 payments: no", "10-25 02:08 payments: no", "10-25 02:23 payments: no",
			"10-25 02:38 payments: no"}
		w.want("failing", first...)
		if n := strings.Count(w.log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d log lines of one problem:\n%s", n, &w.log)
		}
		w.fail = nil
		w.live(20 * time.Hour) // a new process tries at once; the day is finished with its last time
		w.want("mended", "10-25 02:40 payments", "10-25 18:10 reminders", "10-25 18:12 payments", "10-25 18:14 heartbeat")
	})
}

func TestDay_PanicsAndRunsWithoutRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-01-01T12:00:00Z")
		w.fail = func(kind billing.Kind) error { panic(kind) }
		w.live(3 * time.Minute)
		w.fail, w.forgets = nil, true
		w.live(3 * time.Minute)
		w.want("runs", "01-01 13:03 reminders", "01-01 13:05 payments")
		if log := w.log.String(); !strings.Contains(log, "panic: payments") || !strings.Contains(log, "its end was not recorded") {
			t.Error(log)
		}
	})
}

func TestDay_WaitsWhileChargingIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-01-01T12:00:00Z")
		w.off = "restored"
		done := make(chan struct{})
		go func() { defer close(done); w.live(50 * time.Hour) }()
		<-w.clock.After(49 * time.Hour)
		w.want("off", "01-01 13:00 reminders", "01-02 06:10 reminders", "01-03 06:10 reminders")
		w.set(func() { w.off = "" })
		<-done
		w.want("on", "01-03 14:00 payments", "01-03 14:02 heartbeat")
		if n := strings.Count(w.log.String(), "charging is off: restored"); n != 1 {
			t.Errorf("said %d times", n)
		}
	})
}

func TestDay_SettingsChangeMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-01-01T12:00:00Z")
		w.times = nil
		done := make(chan struct{})
		go func() { defer close(done); w.live(30 * time.Hour) }()
		<-w.clock.After(time.Hour)
		w.want("without times")
		w.set(func() { w.times, w.zone = []string{"14:30"}, "UTC" })
		<-w.clock.After(time.Minute)
		w.want("at once, without any run", "01-01 13:00 reminders")
		<-w.clock.After(time.Hour)
		w.took()
		w.set(func() { w.broken = errors.New("damaged") })
		<-w.clock.After(time.Hour)
		w.want("damaged")
		w.set(func() { w.broken, w.times = nil, []string{"15:00", "16:20"} })
		<-w.clock.After(10 * time.Minute)
		w.want("a time that has passed since", "01-01 15:01 reminders", "01-01 15:03 payments")
		<-w.clock.After(2 * time.Hour)
		w.want("the other", "01-01 16:20 reminders", "01-01 16:22 payments", "01-01 16:24 heartbeat")
		<-done
	})
}

func TestDay_RunsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-01-01T05:00:00Z")
		w.last = map[billing.Kind]billing.Run{billing.Reminders: {Started: w.clock.Now(), Told: w.clock.Now()}, billing.Payments: {Started: w.clock.Now(), Told: w.clock.Now()}}
		other := time.Time{}
		w.fail = func(kind billing.Kind) error {
			if kind == billing.Payments {
				if other.IsZero() {
					other = w.clock.Now()
				} else if w.clock.Now().Sub(other) > 20*time.Second {
					w.last[kind] = billing.Run{Started: other} // completed there
				}
				return ErrElsewhere
			}
			return nil
		}
		w.live(time.Hour)
		lines := w.took()
		if len(lines) < 4 || lines[len(lines)-1] != "01-01 06:12 heartbeat" || w.log.Len() > 0 {
			t.Errorf("%s\n%s", strings.Join(lines, "\n"), &w.log)
		}
	})
}

// A run elsewhere that does not end is told of once, when the job is an hour overdue.
func TestDay_StuckElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-01-01T05:00:00Z")
		w.last = map[billing.Kind]billing.Run{billing.Reminders: {Started: w.clock.Now(), Told: w.clock.Now()}, billing.Payments: {Started: w.clock.Now(), Told: w.clock.Now()}}
		w.fail = func(kind billing.Kind) error {
			if kind == billing.Payments {
				return fmt.Errorf("%w: run 7 in process 4@host", ErrElsewhere)
			}
			return nil
		}
		w.live(time.Hour)
		early := w.log.Len()
		w.live(4 * time.Hour)
		if n := strings.Count(w.log.String(), "run 7 in process 4@host"); n != 1 || early > 0 {
			t.Errorf("told %d times\n%s", n, &w.log)
		}
	})
}

// A stop ends a run; a later process runs it anew.
func TestDay_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-01-01T05:00:00Z")
		w.live(3 * time.Minute)
		w.live(3 * time.Minute)
		w.want("stopped in payments", "01-01 06:00 reminders", "01-01 06:02 payments", "01-01 06:03 payments",
			"01-01 06:05 heartbeat")
		if w.cut != 1 || w.log.Len() > 0 {
			t.Error(w.cut, w.log.String())
		}
	})
}

func TestDay_Heartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "2026-01-01T05:00:00Z")
		w.mails, w.beat = 1, errors.New("503")
		done := make(chan struct{})
		go func() { defer close(done); w.live(30 * time.Hour) }()
		<-w.clock.After(time.Hour)
		w.want("with mail", "01-01 06:00 reminders", "01-01 06:02 payments", "01-01 06:10 reminders", "01-01 06:12 payments")
		w.set(func() { w.mails = 0 })
		<-w.clock.After(time.Hour)
		var want []string
		for n := range maxTold {
			want = append(want, fmt.Sprintf("01-01 07:0%d heartbeat", n))
		}
		w.want("in vain", want...)
		w.set(func() { w.beat = nil })
		<-done
		w.want("the next day", "01-02 06:10 reminders", "01-02 06:12 payments", "01-02 06:14 heartbeat")
	})
}

func TestHeartbeat(t *testing.T) {
	asked, status := 0, http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.WriteHeader(status)
	}))
	beat, err := Heartbeat(s.URL + "/ping/secret")
	if err != nil {
		t.Fatal(err)
	}
	if err := beat(t.Context()); err != nil || asked != 1 {
		t.Error(err, asked)
	}
	status = http.StatusInternalServerError
	failed := beat(t.Context())
	s.Close()
	for _, err := range []error{failed, beat(t.Context())} {
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
	for _, address := range []string{"", "hc.example", "http://hc.example/x", "ftp://127.0.0.1/x", "https://u:p@hc.example",
		"https://", "http://[::1", "http://10.0.0.1"} {
		if _, err := Heartbeat(address); err == nil {
			t.Errorf("%s: want an error", address)
		}
	}
	for _, address := range []string{"https://hc.example/x?y", "http://localhost:1", "http://[::1]:1/x"} {
		if _, err := Heartbeat(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
