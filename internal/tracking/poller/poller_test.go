package poller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/tracking"
	"pgregory.net/rapid"
)

func equalLists(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestRound_SendsWhatIsMissingOldestFirst(t *testing.T) {
	for _, unsorted := range []bool{false, true} {
		sendsWhatIsMissing(t, unsorted)
	}
}

func sendsWhatIsMissing(t *testing.T, unsorted bool) {
	t.Helper()
	w := newPollWorld("acct_own", "acct_a", "acct_b")
	w.unsorted = unsorted
	at := func(ago time.Duration) time.Time { return pollStart.Add(-ago) }
	w.happen("acct_a", at(40*day), 0) // gone from Stripe
	first := w.happen("acct_a", at(29*day), 0)
	for i := range 7 {
		e := w.happen("acct_a", at(time.Hour), 0) // all in one second: they are sent as they were made
		if i%2 == 0 {
			w.stored[e.id] = e
		}
	}
	late := w.happen("acct_a", at(2*time.Hour), 0) // listed by when it was made
	ours := w.happen("acct_own", at(time.Minute), 0)
	r := w.round(t, w.poller(func(o *Options) { o.Parallel = 1 }), false)
	slices.SortStableFunc(w.sent, func(a, b string) int { return strings.Compare(a[:10], b[:10]) }) // by account
	equalLists(t, "sent", w.sent, []string{first.id, late.id, "evt_acct_a_003", "evt_acct_a_005", "evt_acct_a_007",
		ours.id})
	want := Report{Accounts: 3, Listed: 10, Missing: 6, Sent: 6, Through: pollStart}
	if fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
	w.stripe = w.stripe.Add(time.Hour)
	if r := w.round(t, w.poller(), true); r.Missing != 0 || r.Listed == 0 {
		t.Errorf("again: got %+v, want nothing missing", r)
	}
}

// TestRound_AFailureIsOneAccounts checks that a failed account keeps its mark and reports the
// error, and that the other accounts continue.
func TestRound_AFailureIsOneAccounts(t *testing.T) {
	for _, op := range []string{"list", "send", "reply", "save", "events"} {
		t.Run(op, func(t *testing.T) {
			w := newPollWorld("acct_a", "acct_b")
			p := w.poller()
			w.round(t, p, false)
			w.stripe = w.stripe.Add(3 * day) // far enough for the account index, which fails for one alone
			for i := range 4 {
				for _, a := range []string{"acct_a", "acct_b"} {
					e := w.happen(a, w.stripe.Add(time.Duration(i-5)*time.Minute), 0)
					if i == 1 {
						w.stored[e.id] = e
					}
				}
			}
			w.fail = func(failing, account string) error {
				if failing == op && account == "acct_a" &&
					(op != "send" || len(w.sent) > 0 && slices.Contains(w.sent, "evt_acct_a_000")) {
					return errors.New("out of order, with whsec_abcdefghijklmnop")
				}
				return nil
			}
			r := w.round(t, p, false)
			if r.Accounts != 2 || r.Failed != 1 || len(r.Failures) != 1 || r.Failures[0].StripeAccount != "acct_a" ||
				!strings.Contains(r.Failures[0].Error, "out of order") {
				t.Errorf("got %+v", r)
			}
			if strings.Contains(fmt.Sprint(r, w.saves), "abcdefghijklmnop") {
				t.Errorf("a secret is told: %+v", r)
			}
			if !r.Through.Equal(pollStart) || !w.state("acct_a").Through.Equal(pollStart) ||
				!w.state("acct_b").Through.Equal(w.stripe) {
				t.Errorf("through %v, a %+v, b %+v", r.Through, w.state("acct_a"), w.state("acct_b"))
			}
			if told := w.state("acct_a").Error != ""; told == (op == "save") || w.state("acct_b").Error != "" {
				t.Errorf("a %+v, b %+v", w.state("acct_a"), w.state("acct_b"))
			}
			w.fail = nil
			w.stripe = w.stripe.Add(10 * time.Minute)
			r = w.round(t, p, false)
			if r.Failed != 0 || !r.Through.Equal(w.stripe) || w.state("acct_a").Error != "" || len(w.stored) != len(w.events) {
				t.Errorf("once it works: got %+v", r)
			}
		})
	}
}

// TestRound_HoldsNoMoreThanItMay checks that a round with too many missing events sends the oldest
// ones, advances the mark, and lists the rest again.
func TestRound_HoldsNoMoreThanItMay(t *testing.T) {
	for name, limit := range map[string]func(*Options){"by number": func(o *Options) { o.Batch = 4 },
		"by size": func(*Options) {}} {
		t.Run(name, func(t *testing.T) {
			w := newPollWorld("acct_a")
			var want []string
			for i := range 2*leastHeld + 50 {
				e := w.happen("acct_a", pollStart.Add(-10*day+time.Duration(i/3)*time.Hour/2), 0)
				if i%5 == 0 {
					w.stored[e.id] = e
				} else {
					want = append(want, e.id)
				}
			}
			p := w.poller(limit)
			p.maxHeld = 1
			most := int64(0)
			w.between = func(string) { most = max(most, p.held.Load()) }
			r := w.round(t, p, false)
			equalLists(t, "sent", w.sent, want)
			if r.Sent != len(want) || r.Missing != len(want) || !r.Through.Equal(pollStart) {
				t.Errorf("got %+v", r)
			}
			size := int64(len(want[0]))
			if limit := leastHeld * size; most > limit || name == "by number" && most != 4*size {
				t.Errorf("%d bytes were held, want at most %d", most, limit)
			}
			if n := len(w.saves); n < len(want)/leastHeld ||
				!slices.IsSortedFunc(w.saves, func(a, b tracking.PollState) int { return a.Through.Compare(b.Through) }) {
				t.Errorf("%d marks: %v", n, w.saves)
			}
		})
	}
}

// TestRound_OneSecond has more events in one second than the poller may hold. The poller sends
// nothing twice, even if the account index does not show the sent events yet.
func TestRound_OneSecond(t *testing.T) {
	for _, blind := range []bool{false, true} {
		w := newPollWorld("acct_a")
		for range 7 {
			w.happen("acct_a", pollStart.Add(-time.Hour), 0)
		}
		w.blind = blind
		r := w.round(t, w.poller(func(o *Options) { o.Batch = 2 }), false)
		if r.Failed != 0 || r.Sent != 7 || !r.Through.Equal(pollStart) {
			t.Errorf("got %+v", r)
		}
	}
}

// TestRound_NoEnd checks that an account's round ends even if, within one second, events keep
// arriving by themselves just before the poller sends them.
func TestRound_NoEnd(t *testing.T) {
	w := newPollWorld("acct_a")
	for range 6 {
		w.happen("acct_a", pollStart.Add(-time.Hour), 0)
	}
	n := 0
	w.between = func(string) {
		if n++; n%3 == 0 { // the list has been read
			for _, e := range w.events[2*(n/3-1) : 2*(n/3)] {
				w.stored[e.id] = e
			}
		}
	}
	p := w.poller(func(o *Options) { o.Batch = 2 })
	if r := w.round(t, p, false); r.Failed != 1 || r.Sent != 0 ||
		!strings.Contains(r.Failures[0].Error, "in one second") ||
		!w.state("acct_a").Through.Equal(pollStart.Add(-time.Hour)) {
		t.Errorf("got %+v, %+v", r, w.state("acct_a"))
	}
	w.between = nil
	if r := w.round(t, p, true); r.Failed != 0 || r.Sent != 2 || !r.Through.Equal(pollStart) {
		t.Errorf("got %+v", r)
	}
}

// TestRound_ClockFarBehind checks that a round sends nothing twice although a slow clock makes it
// read too little of the time index.
func TestRound_ClockFarBehind(t *testing.T) {
	w := newPollWorld("acct_a")
	p := w.poller(func(o *Options) { o.Batch = 1 })
	w.round(t, p, false)
	at := pollStart.Add(-time.Hour) // where the window begins
	e, missing := w.happen("acct_a", at, 0), w.happen("acct_a", at, 0)
	w.stored[e.id] = e
	w.skew, w.stripe = -2*day, pollStart.Add(time.Minute)
	w.state("acct_a").Checked = pollStart.Add(w.skew)
	if r := w.round(t, p, true); r.Failed != 0 || r.Sent != 1 || w.sent[0] != missing.id {
		t.Errorf("got %+v", r)
	}
}

// TestRound_WhoeverIsBehindComesFirst checks the order of the accounts, which makes a round useful
// even if it ends early.
func TestRound_WhoeverIsBehindComesFirst(t *testing.T) {
	w := newPollWorld("acct_a", "acct_b", "acct_c")
	w.state("acct_a").Through, w.state("acct_b").Through = pollStart.Add(-day), pollStart.Add(-2*day)
	w.round(t, w.poller(func(o *Options) { o.Parallel = 1 }), true)
	equalLists(t, "asked", w.asked, []string{"acct_c", "acct_b", "acct_a"})
}

// TestRound_WhatComesMeanwhile checks that a round does not send an event that arrives by itself
// while the list is read.
func TestRound_WhatComesMeanwhile(t *testing.T) {
	for _, ago := range []time.Duration{time.Minute, 5 * day} {
		w := newPollWorld("acct_a")
		p := w.poller()
		w.round(t, p, false)
		w.stripe = w.stripe.Add(6 * day)
		w.state("acct_a").Through = w.stripe.Add(-ago)
		for range 5 {
			w.happen("acct_a", w.stripe.Add(-ago/2), 0)
		}
		w.between = func(string) { w.stored[w.events[1].id] = w.events[1] }
		if r := w.round(t, p, true); r.Missing != 4 || r.Sent != 4 {
			t.Errorf("%v ago: got %+v", ago, r)
		}
	}
}

func TestRound_Windows(t *testing.T) {
	noon := pollStart
	for name, c := range map[string]struct {
		through, checked, now, want time.Time
	}{
		"a new account":                {want: time.Unix(0, 0), now: noon},
		"one of the same day":          {noon, noon, noon.Add(10 * time.Minute), noon.Add(-time.Hour)},
		"the first of a day":           {noon, noon, dayOf(noon).Add(day), noon.Add(-day)},
		"the first, late in the day":   {noon, noon, dayOf(noon).Add(2*day - 1), noon.Add(-day)},
		"the first, after a long time": {noon, noon, noon.Add(9 * day), noon.Add(-day)},
		"a round begun the day before": {dayOf(noon).Add(5 * time.Second), dayOf(noon).Add(-time.Second), noon,
			dayOf(noon).Add(-day)},
		"our clock is ahead":           {noon, noon.Add(5 * day), noon.Add(5 * day), noon.Add(-time.Hour)},
		"ahead, the first of its day":  {noon, noon.Add(4 * day), noon.Add(5 * day), noon.Add(-day)},
		"our clock is behind":          {noon, noon.Add(-5 * day), noon.Add(-5 * day), noon.Add(-time.Hour)},
		"behind, the first of its day": {noon, noon.Add(-6 * day), noon.Add(-5 * day), dayOf(noon).Add(-6 * day)},
	} {
		r := &round{p: newPollWorld().poller(), now: c.now}
		if got := r.since(&tracking.ConnectedAccount{Polled: tracking.PollState{Through: c.through,
			Checked: c.checked}}); !got.Equal(c.want) {
			t.Errorf("%s: since %v, want %v", name, got, c.want)
		}
	}
}

// TestRound_AFailedFirstRoundOfADay checks that the next round goes back as far as the failed one.
func TestRound_AFailedFirstRoundOfADay(t *testing.T) {
	w := newPollWorld("acct_a")
	p := w.poller()
	w.round(t, p, false)
	w.stripe = w.stripe.Add(day)
	w.fail = func(op, _ string) error {
		if op == "list" {
			return errors.New("down")
		}
		return nil
	}
	for i, want := range []time.Time{pollStart.Add(-day), pollStart.Add(-day), w.stripe.Add(10 * time.Minute).Add(-time.Hour)} {
		if i > 0 {
			w.stripe, w.fail = w.stripe.Add(10*time.Minute), nil
		}
		w.round(t, p, true)
		if got := w.since["acct_a"]; !got.Equal(want) {
			t.Errorf("round %d: since %v, want %v", i, got, want)
		}
	}
}

// TestRound_ReadsWhatIsStoredOnce checks that a round reads the stored events of all accounts once
// through the time index, and does not read them if Stripe lists nothing. It reads an account that
// is far behind through the account index.
func TestRound_ReadsWhatIsStoredOnce(t *testing.T) {
	w := newPollWorld()
	for i := range 20 {
		w.register(fmt.Sprintf("acct_%02d", i))
	}
	p := w.poller()
	w.round(t, p, false)
	w.stripe = w.stripe.Add(10 * time.Minute)
	w.round(t, p, true)
	if len(w.queries) != 0 {
		t.Errorf("nothing had happened, and it asked %v", w.queries)
	}
	for i := range 20 {
		e := w.happen(fmt.Sprintf("acct_%02d", i), w.stripe, 0)
		w.stored[e.id] = e
	}
	w.stripe = w.stripe.Add(10 * time.Minute)
	w.round(t, p, true)
	if len(w.queries) != 1 || w.queries[0].StripeAccount != "" ||
		!w.queries[0].From.Equal(w.stripe.Add(-10*time.Minute-time.Hour)) || !w.queries[0].To.Equal(w.stripe.Add(time.Hour)) {
		t.Errorf("in the day: got %v, want one query over all accounts", w.queries)
	}
	w.queries, w.stripe = nil, w.stripe.Add(14*time.Hour) // 2 o'clock
	w.round(t, p, true)
	if len(w.queries) != 3 || !w.queries[0].From.Equal(pollStart.Add(20*time.Minute-day)) ||
		!w.queries[0].To.Equal(dayOf(pollStart)) || !w.queries[2].From.Equal(dayOf(w.stripe)) {
		t.Errorf("the first of a day: got %v, want three days over all accounts", w.queries)
	}
	w.state("acct_00").Through = time.Time{}
	w.state("acct_01").Through = w.stripe.Add(-4 * day)
	w.queries = nil
	w.stripe = w.stripe.Add(8 * time.Minute)
	w.round(t, p, true)
	if len(w.queries) != 2 || w.queries[0].StripeAccount+w.queries[1].StripeAccount == "" {
		t.Errorf("two are behind: got %v, want a query for each", w.queries)
	}
	for _, q := range w.queries {
		if q.To.Sub(q.From) != spanLength {
			t.Errorf("got %v, want %v", q, spanLength)
		}
	}
}

func TestRound_QuietAccountsWait(t *testing.T) {
	w := newPollWorld()
	for i := range 200 {
		w.register(fmt.Sprintf("acct_%03d", i))
	}
	p := w.poller()
	w.round(t, p, false)
	for quiet := 1; quiet < 9; quiet++ {
		wait := min(10*time.Minute<<quiet, 6*time.Hour)
		early, late := 6*time.Hour, time.Duration(0)
		for _, a := range w.accounts {
			s := a.Polled
			if s.Quiet != quiet {
				t.Fatalf("%s: quiet %d, want %d", a.StripeAccount, s.Quiet, quiet)
			}
			early, late = min(early, s.Next.Sub(s.Checked)), max(late, s.Next.Sub(s.Checked))
		}
		if early < wait/2 || early > wait*6/10 || late > wait || late < wait*9/10 {
			t.Errorf("quiet for %d: they wait from %v to %v, want all of %v to %v", quiet, early, late, wait/2, wait)
		}
		w.stripe = w.stripe.Add(wait/2 - time.Second)
		if r := w.round(t, p, false); r.Accounts != 0 || r.Skipped != 200 {
			t.Errorf("quiet for %d, too early: got %+v", quiet, r)
		}
		w.stripe = w.stripe.Add(wait/2 + time.Second)
		if r := w.round(t, p, false); r.Accounts != 200 || r.Skipped != 0 {
			t.Errorf("quiet for %d: got %+v", quiet, r)
		}
	}
	old := w.happen("acct_new", w.stripe.Add(-20*day), 0)
	w.stored[old.id] = old
	w.register("acct_new")
	if w.round(t, p, true); w.state("acct_new").Quiet != 1 {
		t.Errorf("a new account, in which something happened long ago: got %+v, want it to be quiet", w.state("acct_new"))
	}
	e := w.happen("acct_007", w.stripe, 0)
	w.stored[e.id] = e // came by itself
	for i, want := range []int{0, 1, 2} {
		w.stripe = w.stripe.Add(10 * time.Minute)
		w.round(t, p, true)
		if s := w.state("acct_007"); s.Quiet != want || i == 0 && s.Next.After(w.stripe.Add(10*time.Minute)) {
			t.Errorf("round %d after an event: %+v, want quiet %d", i, s, want)
		}
	}
	w.state("acct_008").Quiet = math.MaxInt - 1 // a poller elsewhere has told so
	if w.round(t, p, true); w.state("acct_008").Next.After(w.stripe.Add(6 * time.Hour)) {
		t.Errorf("quiet for ever: %+v", w.state("acct_008"))
	}
	w.state("acct_009").Next = w.stripe.Add(365 * day) // a clock was wrong
	if r := w.round(t, p, false); r.Accounts != 1 {
		t.Errorf("a wait longer than any: got %+v", r)
	}
}

func TestRound_LongUnpolled(t *testing.T) {
	w := newPollWorld("acct_a", "acct_b", "acct_c")
	var log bytes.Buffer
	p := w.poller(func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.round(t, p, false)
	w.stripe = w.stripe.Add(21 * day)
	down := errors.New("down")
	w.fail = func(op, account string) error {
		if op == "list" && account != "acct_c" {
			return down
		}
		return nil
	}
	if w.round(t, p, true); !strings.Contains(log.String(), "more than 20 days") ||
		!strings.Contains(log.String(), "accounts=2 oldest=acct_a") {
		t.Errorf("after 21 days: logged %s", &log)
	}
	w.stripe = w.stripe.Add(11 * day)
	w.happen("acct_a", w.stripe.Add(-31*day), 0)
	found := w.happen("acct_a", w.stripe.Add(-29*day), 0)
	w.objects["acct_a"] = []tracking.Object{{ID: "pi_1"}, {ID: "pi_2", Status: "changed"}}
	log.Reset()
	gap := Gap{"acct_a", pollStart, w.stripe.Add(-30 * day), 1}
	w.fail = func(op, account string) error {
		if op == "apply" && account == "acct_a/pi_1" {
			return down
		}
		return nil
	}
	if r := w.round(t, p, true); r.Failed != 1 || len(r.Lost) != 2 || !slices.Contains(r.Lost, gap) || r.Sent != 1 ||
		w.sent[0] != found.id || !r.Through.Equal(pollStart) {
		t.Errorf("the objects cannot be compared: got %+v, want %+v", r, gap)
	}
	if strings.Count(log.String(), "are lost") != 2 || !strings.Contains(log.String(), "stripe_account=acct_a") {
		t.Errorf("logged %s", &log)
	}
	w.fail = nil
	gap.Changed = 1
	if r := w.round(t, p, true); r.Failed != 0 || !slices.Equal(r.Lost, []Gap{gap}) || r.Sent != 0 ||
		!r.Through.Equal(w.stripe) {
		t.Errorf("got %+v, want %+v", r, gap)
	}
	if s, since := w.state("acct_a").Swept, w.swept["acct_a"]; !s.Equal(w.stripe) || !since.Equal(pollStart.Add(-30*day)) {
		t.Errorf("swept %v from %v: want the objects from before the gap", s, since)
	}
	if r := w.round(t, p, true); len(r.Lost) != 0 {
		t.Errorf("told twice: %+v", r)
	}
}

func TestRound_Disconnected(t *testing.T) {
	w := newPollWorld("acct_a", "acct_b", "acct_c")
	w.accounts[2].Status, w.accounts[2].Updated = tracking.Disconnected, pollStart.Add(-time.Hour)
	w.fail = func(op, account string) error {
		if op == "list" && account == "acct_a" {
			return fmt.Errorf("asked: %w", tracking.ErrDisconnected)
		}
		return nil
	}
	r := w.round(t, w.poller(), true)
	if r.Accounts != 2 || r.Failed != 1 || r.Failures[0].StripeAccount != "acct_a" || slices.Contains(w.asked, "acct_c") {
		t.Errorf("got %+v, asked %v", r, w.asked)
	}
	waits := func() time.Duration {
		s := w.state("acct_a")
		if !strings.Contains(s.Error, tracking.ErrDisconnected.Error()) {
			t.Errorf("got %+v", s)
		}
		return s.Next.Sub(w.stripe)
	}
	if wait := waits(); wait <= 0 || wait > 20*time.Minute {
		t.Errorf("after one refusal it waits for %v", wait)
	}
	for range 8 {
		w.round(t, w.poller(), true)
	}
	if wait := waits(); wait < 3*time.Hour || wait > 6*time.Hour {
		t.Errorf("after nine refusals it waits for %v", wait)
	}
}

// TestRound_CutShort checks that an interrupted round saves nothing, and that the next round lists
// the partly read accounts again.
func TestRound_CutShort(t *testing.T) {
	for op, n := range map[string]int{"list": 3, "send": 2, "events": 1, "save": 1, "accounts": 2} {
		t.Run(op, func(t *testing.T) {
			w := newPollWorld("acct_a", "acct_b")
			for range 10 {
				w.happen("acct_a", pollStart.Add(-time.Hour), 0)
			}
			w.alone, w.stored["evt_acct_a_000"] = true, w.events[0]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.fail = func(failing, _ string) error {
				if failing == op {
					if n--; n == 0 {
						cancel()
					}
				}
				return ctx.Err()
			}
			_, err := w.poller(func(o *Options) { o.Parallel = 1 }).Round(ctx, true)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			w.check(t)
			if s := w.state("acct_a"); *s != (tracking.PollState{}) {
				t.Errorf("saved %+v", s)
			}
			w.fail = nil
			if r := w.round(t, w.poller(), true); r.Failed != 0 || len(w.stored) != 10 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestRound_NoRegistry(t *testing.T) {
	w := newPollWorld("acct_a")
	w.fail = func(string, string) error { return errors.New("down") }
	for _, do := range []func(*Poller) error{
		func(p *Poller) error { _, err := p.Round(t.Context(), true); return err },
		func(p *Poller) error { _, err := p.Sweep(t.Context(), true); return err },
	} {
		if err := do(w.poller()); err == nil || !strings.Contains(err.Error(), "down") {
			t.Errorf("got %v", err)
		}
	}
}

// TestRounds_FindEveryEvent checks that the poller stores every event that Stripe still lists,
// whatever fails, whenever rounds run, however late Stripe lists an event, and whatever our clock
// shows. The poller never sends a stored event, and no mark passes a missing event.
func TestRounds_FindEveryEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newPollWorld("acct_own", "acct_a")
		p := w.poller(func(o *Options) {
			o.Batch = rapid.IntRange(1, 8).Draw(t, "batch")
			o.Parallel = rapid.IntRange(1, 3).Draw(t, "parallel")
		})
		w.unsorted = rapid.Bool().Draw(t, "unsorted")
		lost := map[string]bool{}
		percent := map[string]int{}
		for _, op := range []string{"list", "events", "send", "reply", "save"} {
			percent[op] = rapid.SampledFrom([]int{0, 5, 30}).Draw(t, op)
		}
		faults := dice(rapid.Uint64().Draw(t, "seed"), percent)
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				w.stripe = w.stripe.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, 7 * time.Second, 10 * time.Minute,
					time.Hour, 11 * time.Hour, 3 * day, 12 * day}).Draw(t, "time"))
				for _, e := range w.events { // what nobody asked for in 30 days
					lost[e.id] = lost[e.id] || !e.created.After(w.stripe.Add(-stripeKeeps))
				}
			},
			"events": func(t *rapid.T) {
				a := rapid.SampledFrom(w.accounts).Draw(t, "account").StripeAccount
				for range rapid.IntRange(1, 12).Draw(t, "events") {
					late := time.Duration(0)
					if rapid.IntRange(0, 5).Draw(t, "late") == 0 {
						late = time.Duration(rapid.Int64Range(0, int64(time.Hour-2*time.Second)).Draw(t, "by"))
					}
					if e := w.happen(a, w.stripe, late); rapid.Bool().Draw(t, "comes") {
						w.stored[e.id] = e
					}
				}
			},
			"clock": func(t *rapid.T) {
				w.skew = rapid.SampledFrom([]time.Duration{0, time.Minute, -time.Hour, 5 * time.Hour, -3 * day, 4 * day,
					40 * day}).Draw(t, "skew")
			},
			"account": func(t *rapid.T) {
				if len(w.accounts) < 5 {
					w.register("acct_" + string(rune('a'+len(w.accounts))))
				}
			},
			"round": func(t *rapid.T) {
				w.fail = faults
				defer func() { w.fail = nil }()
				if _, err := p.Round(context.Background(), rapid.Bool().Draw(t, "all")); err != nil {
					t.Fatal(err)
				}
			},
			"crash": func(t *rapid.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				n := rapid.IntRange(1, 30).Draw(t, "at")
				w.fail = func(string, string) error {
					if n--; n == 0 {
						cancel()
					}
					return ctx.Err()
				}
				defer func() { w.fail = nil }()
				if _, err := p.Round(ctx, true); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				w.check(t)
				if held := p.held.Load(); held != 0 {
					t.Fatalf("%d bytes are held", held)
				}
			},
		})
		w.stripe = w.stripe.Add(time.Hour) // all is listed by then
		if r, err := p.Round(context.Background(), true); err != nil || r.Failed != 0 {
			t.Fatalf("without faults: got %+v, %v", r, err)
		}
		w.check(t)
		for _, e := range w.events {
			if _, ok := w.stored[e.id]; !ok && !lost[e.id] && e.created.After(w.stripe.Add(-stripeKeeps)) {
				t.Errorf("%s of %v never came, at %v", e.id, e.created, w.stripe)
			}
		}
		seen := map[string]bool{}
		for _, id := range w.sent {
			if seen[id] {
				t.Errorf("%s was taken twice", id)
			}
			seen[id] = true
		}
	})
}

// TestRun checks that a round runs immediately and then every interval, measured from the start of
// the previous round. It also checks that a round runs sooner while the registry cannot be read,
// and that sweeps run in between.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPollWorld("acct_a")
		start := time.Now()
		w.stripe = start.Add(365 * day) // marks are not what this is about
		w.objects["acct_a"] = []tracking.Object{{ID: "sub_1"}}
		var got []string
		note := func(what string) { got = append(got, fmt.Sprint(what, " ", time.Since(start))) }
		w.fail = func(op, _ string) error {
			switch {
			case op == "accounts" && time.Since(start) < 90*time.Second:
				note("down")
				return errors.New("down")
			case op == "save":
				note("saved")
			case op == "apply":
				note("sweep")
				time.Sleep(15 * time.Minute) // longer than an interval
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		p := w.poller(func(o *Options) { o.Now, o.MaxQuiet = nil, 10*time.Minute })
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(40 * time.Minute)
		cancel()
		running.Wait()
		if got, want := time.Since(start), 40*time.Minute; got != want {
			t.Errorf("it ended after %v, want %v", got, want)
		}
		equalLists(t, "what was done", got, []string{
			"down 0s", "down 0s", "down 1m0s", "down 1m0s", // a round and a sweep
			"saved 2m0s", "sweep 2m0s", "saved 17m0s", // the sweep takes longer than an interval
			"saved 17m0s", "saved 27m0s", "saved 37m0s",
		})
	})
}

// TestRound_AsksWhoMayBeBack checks that the poller asks a disconnected account again after a
// while, whether or not an event reported its reconnection.
func TestRound_AsksWhoMayBeBack(t *testing.T) {
	w := newPollWorld("acct_a", "acct_b")
	w.accounts[0].Status, w.accounts[0].Updated = tracking.Disconnected, pollStart.Add(-6*time.Hour)
	w.accounts[1].Status, w.accounts[1].Updated = tracking.Disconnected, pollStart.Add(-5*time.Hour)
	if r := w.round(t, w.poller(), false); r.Accounts != 1 || !slices.Contains(w.asked, "acct_a") {
		t.Errorf("got %+v, asked %v", r, w.asked)
	}
}

// TestRun_Divided runs one poller for the rounds and another one for the sweeps. The second one
// compares the objects after events were lost.
func TestRun_Divided(t *testing.T) {
	for _, sweeps := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newPollWorld("acct_a")
			w.stripe = time.Now().Add(365 * day)
			w.state("acct_a").Through = w.stripe.Add(-40 * day)
			w.objects["acct_a"] = []tracking.Object{{ID: "sub_1"}}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			p := w.poller(func(o *Options) { o.NoRounds, o.NoSweeps = sweeps, !sweeps })
			running.Go(func() { _ = p.Run(ctx) }) // returns nil
			<-time.After(time.Hour)
			cancel()
			running.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if (len(w.since) == 0) != sweeps || (len(w.applied) == 0) == sweeps {
				t.Errorf("sweeps %v: asked %v, applied %v", sweeps, w.asked, w.applied)
			}
			if s := w.state("acct_a"); s.Swept.IsZero() == sweeps || s.Through.Equal(w.stripe) == sweeps {
				t.Errorf("sweeps %v: got %+v", sweeps, s)
			}
		})
	}
}
