package status_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
)

// rows returns the stored looks.
func (w *world) rows() (list []string) {
	w.t.Helper()
	for it, err := range w.store.Query(w.t.Context(), store.Query{Table: w.engine.Table, Partition: "ALARMS", Prefix: "LOOK#"}) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, it.Str(schema.SK)+" "+it.Str(schema.SeenDate))
	}
	return list
}

// TestWatch_Keeps: a process that serves stores its looks: the first, each that two looks in a row
// found to be another, and else one in ten minutes. Others tell by it what they cannot see, while
// it is fresh, its process holds the claim and has not stopped; then the part is unknown, and never
// ok.
func TestWatch_Keeps(t *testing.T) {
	w := newWorld(t)
	w.day(w.now.Add(-time.Hour))
	w.account("acct_a", w.now, "")
	w.answers(false, 0)
	serving := w.serving()
	w.in.Stripe = nil
	serving.Stripe = func(context.Context) (bool, time.Time) { return false, time.Time{} }
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		ctx, stop := context.WithCancel(t.Context())
		ticks := make(chan time.Time)
		watch := &status.Watch{In: serving, By: "7@host", After: func() <-chan time.Time { return ticks },
			Log: slog.New(slog.DiscardHandler)}
		go func() { _ = watch.Run(ctx) }()
		looks := func(n int) {
			for range n {
				synctest.Wait()
				w.now = w.now.Add(time.Minute)
				ticks <- time.Time{}
			}
			synctest.Wait()
		}
		tells := func(name string, state status.State, found string) {
			t.Helper()
			if c := w.check(name); c.State != state || !strings.HasPrefix(c.Text, found) {
				t.Errorf("%s is %s: %q, want %s: %q", name, c.State, c.Text, state, found)
			}
		}
		looks(0)
		first := w.rows()
		tells("serve", status.OK, "process 7@host, which ran the checks 0 s ago")
		tells("stripe", status.OK, "answers and accepts the key (process 7@host, 0 s ago)")
		looks(9)
		if got := w.rows(); !slices.Equal(got, first) {
			t.Errorf("stored %q after %q", got, first)
		}
		looks(1)
		if got := w.rows(); slices.Equal(got, first) || len(got) != 1 {
			t.Errorf("stored %q after %q", got, first)
		}
		serving.Stripe = func(context.Context) (bool, time.Time) { return true, time.Time{} }
		looks(1)
		tells("stripe", status.OK, "answers")
		looks(1)
		tells("stripe", status.Wrong, "Stripe refuses the key (process 7@host, 0 s ago)")
		w.now = w.now.Add(26 * time.Minute)
		tells("serve", status.Unknown, "process 7@host runs, but no process has run the checks since 2026-03-03 12:12 UTC")
		tells("stripe", status.Unknown, "only a running serve can check this; no process has run the checks since 2026-03-03 12:12 UTC")
		looks(1)
		stop()
		synctest.Wait()
		tells("serve", status.Wrong, "serve is not running, but both jobs are scheduled daily at 06:10 and 18:10; no process has run the checks since")
		tells("stripe", status.Unknown, "only a running serve can check this")
		w.claim("8@host")
		tells("serve", status.Unknown, "process 8@host runs, but no process has run the checks since")
	})
}

// TestWatch_Command: the command is run with each letter to the operator, also without an operator;
// and where the store cannot take the letter, once a day for each check.
func TestWatch_Command(t *testing.T) {
	w := newWorld(t)
	w.day(w.now.Add(-time.Hour))
	serving := w.serving()
	serving.Commands = true
	var told []string
	full := false
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ticks := make(chan time.Time)
		watch := &status.Watch{In: serving, By: "7@host", After: func() <-chan time.Time { return ticks },
			Log: slog.New(slog.DiscardHandler), Command: func(_ context.Context, l status.Letter) error {
				told = append(told, l.Subject)
				return errors.New("it failed")
			}, Tell: func(ctx context.Context, wrong []status.Check, well bool) (status.Letter, error) {
				if full && wrong != nil {
					<-hangs // it ignores its context
				}
				if full {
					return status.Letter{}, errors.New("no room")
				}
				return serving.Mail(ctx, wrong, well)
			}}
		go func() { _ = watch.Run(ctx) }()
		looks := func(n int, want ...string) {
			t.Helper()
			for range n {
				synctest.Wait()
				ticks <- time.Time{}
			}
			synctest.Wait()
			if !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
			told = nil
		}
		disk := func(free uint64) {
			synctest.Wait() // no look is under way
			serving.Disk = func(string) (uint64, uint64, error) { return free, 1 << 40, nil }
		}
		disk(0)
		looks(4, "Duesday: wrong: disk")
		disk(1 << 40)
		looks(4, "Duesday: all checks pass again")
		w.now = w.now.Add(25 * time.Hour)
		w.day(w.now.Add(-time.Hour))
		full = true
		disk(0)
		looks(4, "Duesday: wrong: disk")
		w.now = w.now.Add(25 * time.Hour)
		w.day(w.now.Add(-time.Hour))
		looks(4, "Duesday: wrong: disk")
		close(hangs)
		stop()
		synctest.Wait()
	})
}

// TestWatch_Beside: of two processes that serve one folder, one of which follows Stripe, each is
// heard: what that one finds is told by the others, and that all is well is not mailed before it is
// well there, too. If none follows Stripe that should, that is unknown. The looks of killed
// processes are forgotten by the next one that serves.
func TestWatch_Beside(t *testing.T) {
	w := newWorld(t)
	w.day(w.now.Add(-time.Hour))
	w.account("acct_a", w.now, "")
	w.set("operator", "ops@example.com")
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		ticks := map[string]chan time.Time{} // of the processes that serve
		serve := func(by string, in *status.Installation) func() {
			ctx, cancel := context.WithCancel(t.Context())
			tick := make(chan time.Time)
			ticks[by] = tick
			watch := &status.Watch{In: in, By: by, After: func() <-chan time.Time { return tick },
				Log: slog.New(slog.DiscardHandler), Tell: in.Mail}
			go func() { _ = watch.Run(ctx) }()
			synctest.Wait()
			return func() { cancel(); synctest.Wait(); delete(ticks, by) }
		}
		pass := func(minutes int) {
			for range minutes {
				w.now = w.now.Add(time.Minute)
				for _, by := range slices.Sorted(maps.Keys(ticks)) {
					ticks[by] <- time.Time{}
					synctest.Wait()
				}
			}
		}
		stripe := func(state status.State, found string) {
			t.Helper()
			if c := w.check("stripe"); c.State != state || !strings.HasPrefix(c.Text, found) {
				t.Errorf("%+v, want %s: %s", c, state, found)
			}
		}
		serving := func(found string) { // of a process that serves without Stripe
			t.Helper()
			got := ""
			for _, c := range w.serving().Look(t.Context()) {
				if c.Name == "stripe" {
					got = c.Text
				}
			}
			if got != found {
				t.Errorf("serve finds %q, want %q", got, found)
			}
		}
		first := serve("7@host", w.serving())
		defer first()
		stripe(status.Unknown, "no process that serves follows Stripe")
		serving("no process that serves follows Stripe")
		refused := true
		in := w.serving()
		in.Stripe = func(context.Context) (bool, time.Time) { return refused, time.Time{} }
		second := serve("8@host", in)
		pass(3)
		stripe(status.Wrong, "Stripe refuses the key (process 8@host")
		if got, want := w.subjects(), []string{"Duesday: wrong: stripe"}; !slices.Equal(got, want) {
			t.Errorf("mailed %q, want %q", got, want)
		}
		refused = false
		pass(3)
		stripe(status.OK, "answers and accepts the key (process 8@host")
		serving("")
		if got := w.subjects(); len(got) != 2 || got[1] != "Duesday: all checks pass again" {
			t.Errorf("mailed %q", got)
		}
		second()
		stripe(status.Unknown, "no process that serves follows Stripe")
		serving("no process that serves follows Stripe")
		w.commit(store.Put(w.engine.Table, store.NewItem(store.Attribute{Name: schema.PK, Value: store.S("ALARMS")},
			store.Attribute{Name: schema.SK, Value: store.S("LOOK#killed")})))
		first()
		defer serve("9@host", w.serving())()
		if got := w.rows(); len(got) != 1 || !strings.HasPrefix(got[0], "LOOK#9@host") {
			t.Errorf("there are %q", got)
		}
	})
}

// TestLook_OfOthers: the look of a process that has stopped says nothing about now, and nor does
// that of a process which was killed, as soon as another one holds the claim.
func TestLook_OfOthers(t *testing.T) {
	w := newWorld(t)
	claims := w.store
	w.in.Engine.Store = claims.Store // as on DynamoDB: nobody knows who serves
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		serve := func(by string) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			watch := &status.Watch{In: w.serving(), By: by, After: func() <-chan time.Time { return time.After(time.Hour) },
				Log: slog.New(slog.DiscardHandler)}
			go func() { _ = watch.Run(ctx) }()
			synctest.Wait()
			return func() { cancel(); synctest.Wait() }
		}
		tells := func(found string) {
			t.Helper()
			if c := w.check("serve"); !strings.HasPrefix(c.Text, found) {
				t.Errorf("%+v, want %s", c, found)
			}
		}
		first, second := serve("7@host"), serve("8@other")
		tells("process ")
		first()
		tells("process 8@other, which ran the checks 0 s ago")
		w.in.Engine.Store = claims
		w.claim("9@host")
		tells("process 9@host runs, but no process has run the checks since 2026-03-03 12:00 UTC")
		w.in.Engine.Store = claims.Store
		second()
		tells("both jobs are scheduled daily at 06:10 and 18:10, but no process has run the checks since 2026-03-03 12:00 UTC")
	})
}

// TestLook_TablesRarely: tables without an alarm are looked at again after Keep, also with a
// warning; with an alarm at each look.
func TestLook_TablesRarely(t *testing.T) {
	w := newWorld(t)
	looks, found := 0, [3][]string{}
	w.in.Keep = time.Hour
	w.in.Tables = func(context.Context) (wrong, weak, unknown []string, err error) {
		looks++
		return found[0], found[1], found[2], nil
	}
	for _, x := range []struct {
		what  string
		found [3][]string
		looks int // in two hours, of one in ten minutes
		state status.State
	}{{"well", [3][]string{}, 2, status.OK}, {"unprotected", [3][]string{nil, {"off"}, nil}, 2, status.Warning},
		{"not known", [3][]string{nil, nil, {"recovery?"}}, 12, status.Unknown},
		{"without an index", [3][]string{{"no index"}, nil, nil}, 12, status.Wrong}} {
		w.now = w.now.Add(time.Hour)
		looks, found = 0, x.found
		for range 12 {
			if c := w.check("tables"); c.State != x.state {
				t.Errorf("%s: %+v", x.what, c)
			}
			w.now = w.now.Add(10 * time.Minute)
		}
		if looks != x.looks {
			t.Errorf("%s: %d looks in two hours, want %d", x.what, looks, x.looks)
		}
	}
}
