package maillog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

// A world is a store with an outbox whose mail ends in every way.
type world struct {
	testing.TB
	tables schema.Tables
	store  store.Store
	at     time.Time
	sent   map[string]int
	fail   map[string]error // by effect
	answer string
	not    map[string]bool // no longer needed
	during func()          // called in a delivery; may be nil
}

func newWorld(t testing.TB) *world {
	w := &world{TB: t, tables: schema.New("x-"), at: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), sent: map[string]int{},
		fail: map[string]error{}, not: map[string]bool{}, answer: "250 2.0.0 queued"}
	s, err := memstore.Open(w.tables.All(), func() time.Time { return w.at })
	w.must(err)
	t.Cleanup(func() { w.must(s.Close()) })
	w.store = s
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) Deliver(ctx context.Context, e outbox.Effect) error {
	if err := w.fail[e.ID]; err != nil && (e.Tries == 0 || errors.Is(err, outbox.ErrPermanent)) {
		return err
	}
	if w.sent[e.ID]++; w.during != nil {
		w.during()
	}
	outbox.Answer(ctx, w.answer)
	return nil
}

func (w *world) outbox(s store.Store) *outbox.Outbox {
	return outbox.New(s, w.tables.Outbox, func() time.Time { return w.at }, w,
		func(_ context.Context, e outbox.Effect) (bool, error) { return !w.not[e.ID], nil }).
		Recording(func(row store.Item, e outbox.Effect, o outbox.Outcome) []store.Write {
			return maillog.Record(w.tables.RecurringPayments.Name, w.at, row, e, o)
		})
}

func (w *world) log() *maillog.Log {
	return &maillog.Log{Store: w.store, Tables: w.tables, Now: func() time.Time { return w.at }}
}

// put writes a mail that was created some minutes after the start.
func (w *world) put(id, account string, minutes int, more map[string]string) outbox.Effect {
	w.Helper()
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
	e := outbox.Effect{ID: id, Kind: outbox.KindReminder, Due: at, Created: at, Data: map[string]string{outbox.DataAccount: account,
		outbox.DataEmail: account + "@example.com", outbox.DataSubscription: "s", outbox.DataPeriod: "0", outbox.DataAmount: "12.99"}}
	maps.Copy(e.Data, more)
	w.must(w.store.Commit(w.Context(), outbox.Write(w.tables.Outbox.Name, e)))
	return e
}

func (w *world) list(f maillog.Filter) (all []*maillog.Mail) {
	w.Helper()
	for m, err := range w.log().List(w.Context(), f, "") {
		w.must(err)
		if f.Keeps(m) {
			all = append(all, m)
		}
	}
	return all
}

// states returns the state of each ended mail, and fails the test if one is listed twice.
func (w *world) states() map[string]string {
	w.Helper()
	found := map[string]string{}
	for _, m := range w.list(maillog.Filter{}) {
		if found[m.ID] != "" {
			w.Errorf("%s is listed twice", m.ID)
		}
		found[m.ID] = m.State
	}
	return found
}

// fill puts mail that ends in every way.
func (w *world) fill() {
	for i, id := range []string{"good", "fails once", "never", "bounces", "unneeded"} {
		w.put(id, fmt.Sprint("acc", i), i, nil)
	}
	w.fail["fails once"] = errors.New("451 greylisted")
	w.fail["never"] = fmt.Errorf("%w: not an address", outbox.ErrPermanent)
	w.fail["bounces"] = &smtp.Bounce{Code: "550 5.1.1"}
	w.not["unneeded"] = true
}

var ends = map[string]string{"good": maillog.Sent, "fails once": maillog.Sent, "never": maillog.GivenUp, "bounces": maillog.Bounced,
	"unneeded": maillog.NotNeeded}

// TestCrashAtEveryCommit: whichever commit of the drain is lost, before or after it has landed, each mail has one
// record in the end, and no mail has one before its end.
func TestCrashAtEveryCommit(t *testing.T) {
	for name, hook := range map[string]func(int, storetest.Phase) storetest.Hook{"crash": storetest.CrashAt, "lost": storetest.LoseReply} {
		for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
			t.Run(fmt.Sprint(name, phase), func(t *testing.T) {
				hits := 0
				for n := 1; ; n++ {
					w := newWorld(t)
					w.fill()
					faulty := storetest.NewFaulty(w.store)
					faulty.Hook = hook(n, phase)
					for range 2 {
						_, _ = w.outbox(faulty).Drain(t.Context(), 1)
						w.at = w.at.Add(time.Minute)
					}
					for id := range w.states() {
						if w.waits(id) {
							t.Errorf("commit %d: %s waits, and has a record", n, id)
						}
					}
					for range 2 {
						_, err := w.outbox(w.store).Drain(t.Context(), 1)
						w.must(err)
						w.at = w.at.Add(time.Minute)
					}
					if got := w.states(); fmt.Sprint(got) != fmt.Sprint(ends) {
						t.Fatalf("commit %d: %v, want %v", n, got, ends)
					}
					if faulty.Commits() < n {
						break
					}
					hits++
				}
				if hits < 5 {
					t.Errorf("only %d commits were hit", hits)
				}
			})
		}
	}
}

// TestCrashAtEveryCommit_FindsALostRecord: a drain that records in a commit of its own loses a record.
func TestCrashAtEveryCommit_FindsALostRecord(t *testing.T) {
	w := newWorld(t)
	w.fill()
	faulty := storetest.NewFaulty(w.store)
	faulty.Hook = storetest.CrashAt(1, storetest.After)
	apart := outbox.New(faulty, w.tables.Outbox, func() time.Time { return w.at }, w, nil) // the planted bug: the record comes later
	_, _ = apart.Drain(t.Context(), 1)
	_, err := w.outbox(w.store).Drain(t.Context(), 1)
	w.must(err)
	if got := w.states(); len(got) == len(ends) {
		t.Error("no record was lost")
	}
}

// waits reports whether the mail is in the queue, and is no dead letter.
func (w *world) waits(id string) bool {
	for e, err := range w.outbox(w.store).Waiting(w.Context()) {
		w.must(err)
		if e.ID == id && !e.Dead {
			return true
		}
	}
	return false
}

// TestReplay: a mail that was given up, replayed and sent has one record, which tells its latest end.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	e := w.put("never", "a", 0, nil)
	w.fail["never"] = fmt.Errorf("%w: no", outbox.ErrPermanent)
	o := w.outbox(w.store)
	for _, want := range []string{maillog.GivenUp, maillog.Waiting, maillog.Sent} {
		switch want {
		case maillog.Waiting:
			delete(w.fail, "never")
			w.must(o.Replay(t.Context(), e.ID))
		default:
			_, err := o.Drain(t.Context(), 1)
			w.must(err)
		}
		all := w.list(maillog.Filter{})
		if len(all) != 1 || all[0].State != want {
			t.Fatalf("%+v, want one that is %s", all, want)
		}
		m, err := w.log().Find(t.Context(), all[0].MailID)
		if err != nil || m.State != want {
			t.Errorf("found %+v, %v, want %s", m, err, want)
		}
	}
}

// TestGone: a mail whose row an erasure deletes while it is being sent has no record, which would have the address again.
func TestGone(t *testing.T) {
	w := newWorld(t)
	e := w.put("good", "a", 0, nil)
	w.during = func() {
		w.must(w.store.Commit(t.Context(), store.Delete(w.tables.Outbox.Name, w.tables.Outbox.KeyOf(outbox.Write("", e).Item))))
	}
	_, err := w.outbox(w.store).Drain(t.Context(), 1)
	w.must(err)
	if w.sent["good"] != 1 || len(w.states()) != 0 {
		t.Errorf("sent %v, recorded %v", w.sent, w.states())
	}
}

// TestHeld: a held mail is found, and has a record after an operator drops it.
func TestHeld(t *testing.T) {
	w := newWorld(t)
	w.put("old", "a", 0, nil)
	o := w.outbox(w.store)
	if _, err := o.Decide(t.Context(), func(outbox.Effect) (outbox.Fate, error) { return outbox.Hold, nil }); err != nil {
		t.Fatal(err)
	}
	held := w.list(maillog.Filter{State: maillog.Held})
	if len(held) != 1 || len(w.states()) != 0 {
		t.Fatalf("held: %v, ended: %v", held, w.states())
	}
	if m, err := w.log().Find(t.Context(), held[0].MailID); err != nil || m.State != maillog.Held {
		t.Errorf("found %+v, %v", m, err)
	}
	_, err := o.On(outbox.Held).Decide(t.Context(), func(outbox.Effect) (outbox.Fate, error) { return outbox.Drop, nil })
	w.must(err)
	if got := w.states(); got["old"] != maillog.Dropped {
		t.Errorf("%v", got)
	}
}

// TestRecord: a record has the attempts and the server's answer without secrets, and expires after 90 days.
func TestRecord(t *testing.T) {
	w := newWorld(t)
	const key = "sk_live_51Habcdefghijklmnopqrstuvwx"
	w.answer = "250 accepted for " + key + " and 4242 4242 4242 4242 " + strings.Repeat("x", 1000)
	w.put("good", "a", 0, map[string]string{outbox.DataEmail: "\"><script>alert(1)</script>\r\nBcc: eve@example.com"})
	w.put("fails", "a", 1, nil)
	w.fail["fails"] = fmt.Errorf("%w: 554 refused with %s", outbox.ErrPermanent, key)
	_, err := w.outbox(w.store).Drain(t.Context(), 1)
	w.must(err)
	for it, err := range w.store.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		w.must(err)
		if text := it.Str(schema.Answer); text == "" || strings.Contains(text, key) || strings.Contains(text, "4242 4242 4242 4242") || len(text) > 400 {
			t.Errorf("the answer is %q", text)
		}
		if want := w.at.Add(-time.Hour).AddDate(0, 0, maillog.Days); time.Unix(it.Int(schema.TTL), 0).Sub(want).Abs() > time.Hour {
			t.Errorf("it expires at %s, want %s", time.Unix(it.Int(schema.TTL), 0), want)
		}
	}
	for _, m := range w.list(maillog.Filter{Account: "a"}) {
		if m.Tries != 1 || m.Ended != w.at {
			t.Errorf("%+v", m)
		}
	}
	w.at = w.at.AddDate(0, 0, maillog.Days+1)
	if got := w.states(); len(got) != 0 {
		t.Errorf("after 90 days: %v", got)
	}
}

// TestRecord_Large: of a mail with too much data, only what names it is kept.
func TestRecord_Large(t *testing.T) {
	w := newWorld(t)
	w.put("large", "a", 0, map[string]string{"more": strings.Repeat("x", 100<<10)})
	_, err := w.outbox(w.store).Drain(t.Context(), 1)
	w.must(err)
	all := w.list(maillog.Filter{})
	if len(all) != 1 || all[0].Data[outbox.DataEmail] == "" || len(all[0].Data) != 4 {
		t.Fatalf("%+v", all)
	}
	if all[0].HasText() {
		t.Error("it has a text")
	}
}

// TestList: the records of several months and shards come newest first, from each place on, by account and by time.
func TestList(t *testing.T) {
	w := newWorld(t)
	w.at = time.Date(2026, 5, 20, 9, 0, 0, 0, time.UTC)
	var ids []string
	for i := range 300 {
		ids = append(ids, w.put(fmt.Sprintf("mail %03d", i), fmt.Sprint("acc", i%7), i*60*6, nil).ID)
	}
	w.put("too old", "acc1", -60*24*30, nil)
	_, err := w.outbox(w.store).Drain(t.Context(), 1)
	w.must(err)
	slices.Reverse(ids)
	var got []string
	for place := ""; ; {
		n := 0
		for m, err := range w.log().List(t.Context(), maillog.Filter{}, place) {
			w.must(err)
			if got, place = append(got, m.ID), m.Place; n == 6 {
				break
			}
			n++
		}
		if n == 0 {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("listed %d: %v", len(got), got)
	}
	from, to := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	if of := w.list(maillog.Filter{From: from, To: to}); len(of) != 40 {
		t.Errorf("%d mails of ten days, want 40", len(of))
	}
	of := w.list(maillog.Filter{Account: "acc3"})
	for _, m := range of {
		if found, err := w.log().Find(t.Context(), m.MailID); err != nil || found.ID != m.ID {
			t.Errorf("found %+v, %v", found, err)
		}
	}
	if len(of) != 43 {
		t.Errorf("%d mails of an account, want 43", len(of))
	}
	for _, id := range []string{"", "mail_", "mail_17723520000000", "mail_1772352000000z123", "receipt-1", "mail_9999999999999f12"} {
		if _, err := w.log().Find(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
