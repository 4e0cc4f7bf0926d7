package status_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/status"
)

// TestWatch_Log: a check that turns wrong is logged once, again a day later, and once when it is right
// again; a check that is wrong for one look is not logged.
func TestWatch_Log(t *testing.T) {
	w := newWorld(t)
	w.in.Serving = true
	w.day(w.now.Add(-time.Hour))
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		asked, ticks := 0, make(chan time.Time)
		watch := &status.Watch{In: w.in, By: "this one", After: func() <-chan time.Time { return ticks },
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			Tell: func(context.Context, []status.Check, bool) (status.Letter, error) {
				asked++
				return status.Letter{}, errors.New("no mail")
			}}
		go func() { _ = watch.Run(ctx) }()
		looks := func(n int, want ...string) {
			t.Helper()
			for range n {
				synctest.Wait()
				ticks <- time.Time{}
			}
			synctest.Wait()
			got := []string{}
			for line := range strings.Lines(log.String()) {
				_, what, _ := strings.Cut(line, "msg=")
				got = append(got, what)
			}
			log.Reset()
			if len(got) != len(want) {
				t.Fatalf("logged %q, want %q", got, want)
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("logged %q, want %q", got[i], want[i])
				}
			}
		}
		looks(2, "could not be notified")
		w.disk(0, 1)
		looks(1)
		w.disk(1<<40, 1<<40)
		looks(3)
		w.disk(0, 1)
		looks(5, "a check is wrong\" check=disk")
		w.now = w.now.Add(25 * time.Hour)
		w.day(w.now.Add(-time.Hour))
		looks(2, "a check is wrong\" check=disk")
		w.disk(1<<40, 1<<40)
		looks(3, "a check passes again\" check=disk")
		if asked < 10 || len(status.Alarms(watch.Last())) != 0 {
			t.Errorf("asked %d times; %+v", asked, watch.Last())
		}
		stop()
		synctest.Wait()
	})
}

// TestWatch_Claim: a watch claims the store while it runs, as soon as nobody else does.
func TestWatch_Claim(t *testing.T) {
	w := newWorld(t)
	release := w.claim("another serve")
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		watch := &status.Watch{In: w.serving(), By: "this one", After: func() <-chan time.Time { return time.After(time.Minute) },
			Log: slog.New(slog.DiscardHandler)}
		go func() { _ = watch.Run(ctx) }()
		for _, want := range []string{"process another serve", "process this one", "serve is not running"} {
			synctest.Wait()
			if c := w.check("serve"); !strings.HasPrefix(c.Text, want) {
				t.Errorf("%+v, want %s", c, want)
			}
			release()
			time.Sleep(time.Minute)
			if want != "process another serve" {
				stop()
			}
		}
		synctest.Wait()
	})
}
