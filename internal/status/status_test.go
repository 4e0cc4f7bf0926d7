package status_test

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A shared store keeps claims, as a folder does.
type shared struct {
	store.Store
	*store.Claims
}

// A world is an installation at a moment; made at 00:00 of the first of March, looked at on the third.
type world struct {
	t      *testing.T
	now    time.Time
	tables schema.Tables
	store  shared
	engine *engine.Engine
	in     *status.Installation
	first  int // declined for the first time, by the runs to come
}

func clockTime(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04", "2026-03-"+text)
	if err != nil {
		panic(err)
	}
	return at
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, tables: schema.New(schema.DefaultPrefix), now: clockTime("01 00:00")}
	now := func() time.Time { return w.now }
	mem, err := memstore.Open(w.tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	w.store = shared{mem, new(store.Claims)}
	settings := settings.Default()
	if err := errors.Join(settings.Set("daily", "06:10,18:10"), settings.Set("alarm-at", "20:00")); err != nil {
		t.Fatal(err)
	}
	w.engine, err = engine.Open(t.Context(), engine.Options{Store: w.store, Tables: w.tables, Now: now,
		Making: billing.MakeNew, Config: engine.Config{Settings: settings}, KeepSettings: true})
	if err != nil {
		t.Fatal(err)
	}
	w.in = &status.Installation{Engine: w.engine, Version: "v1", Folder: "data",
		Hint: func(command string) string { return "duesday " + command },
		Disk: func(string) (uint64, uint64, error) { return 50 << 30, 100 << 30, nil }}
	w.now = clockTime("03 12:00")
	return w
}

func (w *world) commit(writes ...store.Write) {
	w.t.Helper()
	if err := w.store.Commit(w.t.Context(), writes...); err != nil {
		w.t.Fatal(err)
	}
}

// run records a run of the job.
func (w *world) run(kind billing.Kind, begun, ended time.Time, completed bool, counts map[billing.Outcome]int) {
	w.t.Helper()
	r := &billing.Run{Kind: kind, ID: begun.Format(time.DateOnly) + "#" + billing.Stamp(begun) + "-ABCDEF", Started: begun,
		Seen: begun, Ended: ended, Completed: completed, Counts: counts, Declined: w.first}
	var err error
	if r.Date, err = parseDate(begun); err != nil {
		w.t.Fatal(err)
	}
	if !ended.IsZero() && !completed {
		r.Reason = "the bank is closed"
	}
	w.commit(r.Write(w.engine.Table))
}

// day records both runs of a moment.
func (w *world) day(begun time.Time) {
	for _, kind := range []billing.Kind{billing.Reminders, billing.Payments} {
		w.run(kind, begun, begun.Add(time.Minute), true, map[billing.Outcome]int{"paid": 3})
	}
}

func (w *world) effect(e outbox.Effect) {
	e.Kind, e.Created = outbox.KindReceipt, w.now.Add(-2*time.Hour)
	w.commit(outbox.Write(w.tables.Outbox.Name, e))
}

func (w *world) bury(queue outbox.Queue) {
	w.effect(outbox.Effect{Queue: queue, ID: "e", Due: w.now.Add(-time.Minute)})
	o := outbox.New(w.store, w.tables.Outbox, func() time.Time { return w.now }, refusing{}, nil).On(queue)
	if r, err := o.Drain(w.t.Context(), 1); err != nil || r.Dead != 1 {
		w.t.Fatal(r, err)
	}
}

// check returns the check of the name; the zero Check if there is none.
func (w *world) check(name string) status.Check {
	w.t.Helper()
	for _, c := range w.in.Look(w.t.Context()) {
		if (c.State != status.OK) != (c.Next != "") {
			w.t.Errorf("%+v: a check has a next step if, and only if, it is not ok", c)
		}
		if c.Name == name {
			return c
		}
	}
	return status.Check{}
}

// TestLook holds each check right and wrong.
func TestLook(t *testing.T) {
	for _, test := range []struct {
		check, name string
		given       func(*world)
		state       status.State
		found       string
	}{
		{"tables", "of a folder", func(*world) {}, "", ""},
		{"tables", "whole", func(w *world) { w.tell(nil, nil, nil, nil) }, status.OK, "all tables are set up as required"},
		{"tables", "unprotected", func(w *world) { w.tell(nil, []string{"protection is off"}, nil, nil) }, status.Warning, "protection is off"},
		{"tables", "not to be asked", func(w *world) { w.tell(nil, []string{"off"}, []string{"recovery?"}, nil) }, status.Unknown,
			"recovery?; off"},
		{"tables", "without an index", func(w *world) { w.tell([]string{"no index"}, []string{"off"}, []string{"recovery?"}, nil) },
			status.Wrong, "no index; recovery?; off"},
		{"tables", "not described", func(w *world) { w.tell(nil, nil, nil, errGone) }, status.Unknown, "cannot be read: the disk is gone"},
		{"due", "yesterday, and nothing ever ran", func(w *world) { w.owed("02"); w.owed("03") }, status.Wrong,
			"1 due before today; no daily run has completed yet"},
		{"due", "today", func(w *world) { w.owed("03") }, status.OK, "no payment is overdue; 1 due today"},
		{"due", "after yesterday's run", func(w *world) { w.owed("02"); w.day(clockTime("02 06:10")) }, status.OK, "no payment is overdue"},
		{"due", "after an older run", func(w *world) { w.owed("02"); w.day(clockTime("01 06:10")) }, status.Wrong,
			"1 due before today; the last completed run began 2026-03-01 06:10 UTC"},
		{"due", "since the last look", func(w *world) { w.check("due"); w.owed("02"); w.now = w.now.Add(time.Hour) }, status.Wrong,
			"1 due before today; no daily run has completed yet"},
		{"days", "times set a minute ago", func(w *world) { w.retime(time.Minute) }, status.OK,
			"no daily run of payments has completed yet: 0 not finished yet"},
		{"days", "times set an hour ago", func(w *world) { w.retime(61 * time.Minute) }, status.Wrong,
			"no daily run of payments has completed yet: 0 not finished, 0 late"},
		{"days", "never, of a new store", func(w *world) { w.now = clockTime("01 00:59") }, status.OK,
			"no daily run of payments has completed yet"},
		{"payments", "refused", func(w *world) {
			w.day(clockTime("03 06:10"))
			w.refuse(errors.New("the clock is wrong"))
		}, status.Wrong, "refused since 2026-03-03 12:00 UTC: the clock is wrong; completed 2026-03-03 06:10 UTC: 3 due, 3 paid"},
		{"payments", "refused, and never run", func(w *world) { w.refuse(errors.New("the clock is wrong")) }, status.Wrong,
			"refused since 2026-03-03 12:00 UTC: the clock is wrong; has never run"},
		{"payments", "taken again", func(w *world) { w.refuse(errors.New("the clock is wrong")); w.refuse(nil) }, status.OK,
			"has never run"},
		{"payments", "a day with none paid", func(w *world) { w.declined(12, 0); w.declined(8, 1) }, status.Wrong,
			"none of 20 payments succeeded on 2026-03-03"},
		{"payments", "a day with some paid", func(w *world) { w.declined(30, 0); w.day(clockTime("03 07:10")) }, status.OK, "completed"},
		{"payments", "a day of retries", func(w *world) {
			w.run(billing.Payments, clockTime("03 06:10"), clockTime("03 06:11"), true, map[billing.Outcome]int{"retry": 90, "failed": 30})
		}, status.OK, "completed"},
		{"payments", "a day with few tried", func(w *world) { w.declined(19, 0) }, status.OK, "completed"},
		{"accounts", "refused, and never read", func(w *world) {
			w.account("acct_a", w.now, "")
			w.account("acct_b", time.Time{}, "refused")
		}, status.Wrong, "1 of 2 not verified, for example acct_b is never read: refused; 2 connected, 1 never read, 1 failed at the last poll"},
		{"accounts", "failed once", func(w *world) { w.account("acct_a", w.now.Add(-6*time.Hour), "500") }, status.OK,
			"1 connected, 0 never read, 1 failed at the last poll"},
		{"accounts", "failed for long", func(w *world) { w.account("acct_a", w.now.Add(-8*time.Hour), "500") }, status.Wrong,
			"1 of 1 not verified, for example acct_a is verified through 2026-03-03 04:00 UTC: 500"},
		{"accounts", "disconnected", func(w *world) { w.left("acct_a", 23*time.Hour) }, status.Wrong,
			"0 connected, 0 never read, 0 failed at the last poll; 1 disconnected, such as acct_a"},
		{"accounts", "disconnected long ago", func(w *world) { w.left("acct_a", 25*time.Hour) }, status.OK, "0 connected"},
		{"webhooks", "the poller covers", func(w *world) { w.polled(3, 61*time.Minute) }, status.Wrong,
			"/hooks/stripe has received no webhook for 61 min, but the poller found 3 events"},
		{"webhooks", "two were lost", func(w *world) { w.polled(2, 61*time.Minute) }, status.OK, "every endpoint receives"},
		{"webhooks", "the poller was first", func(w *world) { w.polled(3, 61*time.Minute); w.signed(true, time.Hour) }, status.OK,
			"every endpoint receives"},
		{"webhooks", "made before serve began", func(w *world) {
			w.in.Endpoints = &status.Endpoints{Since: w.now}
			w.polled(3, 61*time.Minute)
		}, status.OK, "every endpoint receives"},
		{"mail", "into a folder by default", func(w *world) { w.in.Post, w.in.Unsent = "not sent: in ./m", true }, status.Warning,
			"nothing is late; not sent: in ./m"},
		{"mail", "through a server", func(w *world) { w.in.Post = "sent through s" }, status.OK, "nothing is late; sent through s"},
		{"clock", "before the last run's end", func(w *world) {
			w.commit(store.Update(w.engine.Table, billing.MetaKey, store.NewItem(store.Attribute{Name: schema.EndedDate,
				Value: store.S(billing.Stamp(w.now.Add(time.Hour)))}), nil))
		}, status.Wrong, "the clock shows 2026-03-03 12:00 UTC, but the last run ended at 2026-03-03 13:00 UTC"},
		{"stripe", "not known", func(*world) {}, status.OK, ""},
		{"stripe", "right", func(w *world) { w.answers(false, 0) }, status.OK, "answers and accepts the key"},
		{"stripe", "refused", func(w *world) { w.answers(true, 0) }, status.Wrong, "Stripe refuses the key"},
		{"stripe", "hangs", func(w *world) { w.answers(false, 14*time.Minute) }, status.OK, "accepts the key, but did not answer 14 min ago"},
		{"stripe", "has hung", func(w *world) { w.answers(false, 15*time.Minute) }, status.Wrong, "Stripe has not answered for 15 min"},
		{"store", "right", func(*world) {}, status.OK, "format 7; duesday v1"},
		{"store", "of an older format", func(w *world) {
			w.commit(store.Update(w.engine.Table, billing.MetaKey, store.NewItem(store.Attribute{Name: schema.Format, Value: store.Int(6)}), nil))
		}, status.OK, "format 6; duesday v1"},
		{"store", "unreadable", func(w *world) { w.in.Engine.Store = &broken{} }, status.Unknown, "cannot be read: the disk is gone"},
		{"store", "moved", func(w *world) {
			w.commit(store.Update(w.engine.Table, billing.MetaKey, store.NewItem(store.Attribute{Name: schema.Moved,
				Value: store.S("pebble:./other")}), nil))
		}, status.Wrong, "this store was moved to pebble:./other and is no longer live"},
		{"serve", "nobody", func(*world) {}, status.Wrong, "serve is not running, but both jobs are scheduled daily at 06:10 and 18:10"},
		{"serve", "somebody", func(w *world) { w.claim("7@host") }, status.Unknown,
			"process 7@host runs, but no process has run the checks yet"},
		{"serve", "this one", func(w *world) { w.claim("7@host"); w.in.Serving = true }, status.OK, "process 7@host"},
		{"serve", "no times", func(w *world) { w.set("daily", "") }, status.OK, "serve is not running, and no times are set"},
		{"serve", "without claims", func(w *world) { w.in.Engine.Store = w.store.Store }, status.Wrong,
			"both jobs are scheduled daily at 06:10 and 18:10, but no process has run the checks yet"},
		{"serve", "without claims or times", func(w *world) { w.set("daily", ""); w.in.Engine.Store = w.store.Store }, status.OK,
			"not known, because processes on this store do not see each other; no process has run the checks yet"},
		{"days", "finished", func(w *world) { w.day(clockTime("02 18:10")) }, status.OK,
			"all days are finished up to 2026-03-03 06:10 UTC; next run at 2026-03-03 18:10 UTC"},
		{"days", "in time", func(w *world) { w.day(clockTime("02 18:10")); w.now = clockTime("03 19:59") }, status.OK,
			"1 not finished yet"},
		{"days", "too late", func(w *world) { w.day(clockTime("02 18:10")); w.now = clockTime("03 20:00") }, status.Wrong,
			"1 not finished, 1 late"},
		{"days", "one job alone", func(w *world) {
			w.day(clockTime("02 18:10"))
			w.now = clockTime("03 21:00")
			w.run(billing.Payments, clockTime("03 18:10"), clockTime("03 18:11"), true, nil)
		}, status.Wrong, "1 not finished, 1 late"},
		{"days", "never", func(*world) {}, status.Wrong,
			"no daily run of payments has completed yet: 2 not finished, 2 late"},
		{"days", "without an alarm", func(w *world) { w.set("alarm-at", ""); w.day(clockTime("01 18:10")) }, status.Wrong,
			"1 not finished, 1 late"},
		{"payments", "never", func(*world) {}, status.OK, "has never run"},
		{"payments", "completed", func(w *world) { w.day(clockTime("03 06:10")) }, status.OK,
			"completed 2026-03-03 06:10 UTC: 3 due, 3 paid"},
		{"payments", "ended", func(w *world) {
			w.run(billing.Payments, clockTime("03 06:10"), clockTime("03 06:11"), false, map[billing.Outcome]int{"failed": 1})
		}, status.Wrong, "ended 2026-03-03 06:11 UTC without completing (the bank is closed): 1 due, 1 failed"},
		{"reminders", "broken off", func(w *world) {
			w.run(billing.Reminders, clockTime("03 06:10"), time.Time{}, false, map[billing.Outcome]int{"sent": 5})
		}, status.Wrong, "broken off, started 2026-03-03 06:10 UTC: 5 due, 5 written to the outbox"},
		{"waiting", "customers", func(w *world) {
			w.run(billing.Payments, clockTime("03 06:10"), clockTime("03 06:11"), true, map[billing.Outcome]int{"pending": 2})
		}, status.OK, "2 pending; the customer or the processor must act"},
		{"waiting", "a person", func(w *world) {
			w.run(billing.Payments, clockTime("03 06:10"), clockTime("03 06:11"), true, map[billing.Outcome]int{"parked": 1})
			w.run(billing.Payments, clockTime("03 07:10"), time.Time{}, false, nil)
		}, status.Wrong, "1 parked, 0 pending"},
		{"charging", "on", func(*world) {}, status.OK, "on"},
		{"charging", "off", func(w *world) { w.charging("prices are checked") }, status.Wrong, "off: prices are checked"},
		{"mail", "nothing", func(*world) {}, status.OK, "nothing is late"},
		{"mail", "to come", func(w *world) { w.effect(outbox.Effect{ID: "e", Due: w.now.Add(time.Hour)}) }, status.OK,
			"nothing is late"},
		{"mail", "a moment ago", func(w *world) { w.effect(outbox.Effect{ID: "e", Due: w.now.Add(-time.Minute)}) }, status.OK,
			"the oldest row has waited for 60 s"},
		{"mail", "late", func(w *world) { w.effect(outbox.Effect{ID: "e", Due: w.now.Add(-61 * time.Minute)}) }, status.Wrong,
			"the oldest row has waited for 61 min"},
		{"mail", "put off again and again", func(w *world) {
			w.effect(outbox.Effect{ID: "e", Due: w.now.Add(time.Hour), Tries: 4})
		}, status.Wrong, "the oldest row has waited for 2 h"},
		{"mail", "given up", func(w *world) { w.bury(outbox.Mail) }, status.Wrong, "1 given up"},
		{"jobs", "given up", func(w *world) { w.bury(outbox.Actions) }, status.Wrong, "1 given up"},
		{"events", "given up elsewhere", func(w *world) { w.bury(outbox.Mail) }, status.OK, "nothing is late"},
		{"accounts", "none", func(*world) {}, status.OK, ""},
		{"accounts", "verified", func(w *world) { w.account("acct_a", w.now.Add(-23*time.Hour), "") }, status.OK,
			"1 connected, all verified through 2026-03-02 13:00 UTC"},
		{"accounts", "not verified", func(w *world) {
			w.account("acct_a", w.now.Add(-time.Hour), "")
			w.account("acct_b", w.now.Add(-25*time.Hour), "Stripe is away")
		}, status.Wrong,
			"1 of 2 not verified, for example acct_b is verified through 2026-03-02 11:00 UTC: Stripe is away; 2 connected, 0 never read"},
		{"webhooks", "nothing is followed", func(*world) {}, status.OK, ""},
		{"webhooks", "good", func(w *world) { w.signed(true, 0); w.signed(false, 10*time.Minute) }, status.OK, "every endpoint receives"},
		{"webhooks", "failing", func(w *world) { w.signed(false, 2*time.Hour); w.signed(false, time.Minute) }, status.Wrong,
			"/hooks/stripe has received no good signature for 2 h"},
		{"webhooks", "a stranger's", func(w *world) {
			w.signed(false, 2*time.Hour)
			w.signed(false, time.Minute)
			w.in.Endpoints.Polled = true
		}, status.Warning, "/hooks/stripe has received no good signature for 2 h, but no event was missed"},
		{"webhooks", "failing, and events are missed", func(w *world) {
			w.signed(false, 2*time.Hour)
			w.signed(false, time.Minute)
			w.in.Endpoints.Polled = true
			w.in.Endpoints.Found("/hooks/stripe", w.now, w.now)
		}, status.Wrong, "/hooks/stripe has received no good signature for 2 h"},
		{"webhooks", "good again", func(w *world) {
			w.signed(false, 2*time.Hour)
			w.signed(false, time.Minute)
			w.signed(true, 0)
		}, status.OK, "every endpoint receives"},
		{"clock", "not known", func(w *world) { w.ahead(0, false) }, status.OK, ""},
		{"clock", "agrees", func(w *world) { w.ahead(-5*time.Minute, true) }, status.OK, "agrees with the processor's clock"},
		{"clock", "behind", func(w *world) { w.ahead(-6*time.Minute, true) }, status.Wrong, "differs from the processor's clock by 6 min"},
		{"folder", "ours", func(*world) {}, status.OK, "only this user can write"},
		{"folder", "its group's", func(w *world) {
			w.in.Folder = w.t.TempDir()
			if err := os.Chmod(w.in.Folder, 0o770); err != nil {
				w.t.Fatal(err)
			}
		}, status.Warning, "its group can write /"},
		{"folder", "elsewhere", func(w *world) { w.in.Folder = "" }, status.OK, ""},
		{"disk", "room", func(*world) {}, status.OK, "50.0 of 100.0 GiB free"},
		{"disk", "a large one", func(w *world) { w.disk(49<<30, 1000<<30) }, status.Wrong, "49.0 of 1000.0 GiB free"},
		{"disk", "a small one", func(w *world) { w.disk(1<<29, 2<<30) }, status.Wrong, "0.5 of 2.0 GiB free"},
		{"disk", "elsewhere", func(w *world) { w.in.Folder = "" }, status.OK, ""},
	} {
		t.Run(test.check+" "+test.name, func(t *testing.T) {
			w := newWorld(t)
			test.given(w)
			c := w.check(test.check)
			if c.Text != "" && c.State != test.state || !strings.HasPrefix(c.Text, test.found) || (c.Text == "") != (test.found == "") {
				t.Errorf("%+v, want %s, %q", c, test.state, test.found)
			}
		})
	}
}

// TestLook_Unreadable: a store that cannot be read is one unknown check, and no others.
func TestLook_Unreadable(t *testing.T) {
	w := newWorld(t)
	w.in.Engine.Store = &broken{}
	if all := w.in.Look(t.Context()); len(all) != 1 || all[0].Name != "store" {
		t.Errorf("%+v", all)
	}
}

// TestLook_Hangs: a part that does not answer is unknown after ten seconds, also when it ignores
// its context, and is not asked again before it has. The other parts are looked at.
func TestLook_Hangs(t *testing.T) {
	w := newWorld(t)
	w.in.Serving = true
	w.day(w.now.Add(-time.Hour))
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		answer := make(chan struct{})
		w.in.Disk = func(string) (uint64, uint64, error) { asked.Add(1); <-answer; return 50 << 30, 100 << 30, nil }
		begun := time.Now()
		for range 3 {
			all := w.in.Look(t.Context())
			if c := all[len(all)-1]; c.Name != "disk" || c.State != status.Unknown || c.Text != "no answer within 10 s" ||
				len(status.Alarms(all)) != 1 || len(all) < 10 {
				t.Errorf("%+v", all)
			}
		}
		if took := time.Since(begun); asked.Load() != 1 || took != 10*time.Second {
			t.Errorf("asked %d times in %s", asked.Load(), took)
		}
		close(answer)
		synctest.Wait()
		if all := w.in.Look(t.Context()); len(status.Alarms(all)) != 0 {
			t.Errorf("%+v", all)
		}
	})
	w.in.Engine.Store = hanging{w.store}
	synctest.Test(t, func(t *testing.T) {
		if all := w.in.Look(t.Context()); len(all) != 1 || all[0].Name != "store" || all[0].State != status.Unknown {
			t.Errorf("%+v", all)
		}
	})
}
