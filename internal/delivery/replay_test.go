package delivery

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// TestReplay: one message, a range, and all since a time are sent again under their ids, and the answer says
// how far a replay reaches.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	e := w.create(r.URL)
	x := w.sender()
	began := w.clock()
	for i := range 10 { // one a day
		w.cause(fmt.Sprint(i), "period.paid")
		w.drain(x)
		w.pass(24 * time.Hour)
	}
	all := w.messages(Filter{Endpoint: e.ID})
	if len(all) != 10 {
		t.Fatal(len(all))
	}
	days := func(n int) time.Time { return began.AddDate(0, 0, n) }
	for name, x2 := range map[string]struct {
		f    Filter
		want int
	}{
		"one":       {Filter{ID: all[3].ID}, 1},
		"since":     {Filter{From: days(4)}, 6},
		"range":     {Filter{From: days(2), Until: days(5)}, 3},
		"nothing":   {Filter{From: days(20)}, 0},
		"endpoint":  {Filter{Endpoint: e.ID, From: days(9)}, 1},
		"all":       {Filter{From: start}, 10},
		"delivered": {Filter{State: Delivered}, 10},
		"failed":    {Filter{State: Failed}, 0},
	} {
		was := len(r.requests())
		n, reaches, err := w.Replay(t.Context(), x2.f)
		if n != x2.want || err != nil || !reaches.Equal(w.clock().AddDate(0, 0, -30)) {
			t.Errorf("%s: %d, %s, %v", name, n, reaches, err)
		}
		w.drain(x)
		for _, got := range r.requests()[was:] {
			if !slices.ContainsFunc(all, func(m *Message) bool { return m.ID == got.id() && x2.f.selects(m) || x2.f.ID == got.id() }) {
				t.Errorf("%s: sent %s", name, got.id())
			}
		}
		if sent := len(r.requests()) - was; sent != x2.want {
			t.Errorf("%s: sent %d", name, sent)
		}
	}
	if _, _, err := w.Replay(t.Context(), Filter{ID: "msg_unknown"}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if _, _, err := w.Replay(t.Context(), Filter{Endpoint: "ep_unknown", From: start}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	w.pass(31 * 24 * time.Hour)
	if n, _, err := w.Replay(t.Context(), Filter{From: start}); n != 0 || err != nil {
		t.Error("expired messages:", n, err)
	}
}

// TestReplay_Waiting: a message that waits is sent at once if it is named.
func TestReplay_Waiting(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	e := w.create("http://127.0.0.1:1")
	w.cause("a", "period.paid")
	x := w.sender()
	for range 4 {
		w.drain(x)
		w.pass(time.Hour)
	}
	if _, err := w.Update(t.Context(), e.ID, Change{URL: &r.URL}); err != nil {
		t.Fatal(err)
	}
	m := w.messages(Filter{})[0]
	if !m.Due.After(w.clock()) {
		t.Fatal(m.Due)
	}
	if n, _, err := w.Replay(t.Context(), Filter{ID: m.ID}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	x.mu.Lock()
	clear(x.lanes) // as another process
	x.mu.Unlock()
	w.drain(x)
	if got := r.requests(); len(got) != 1 || got[0].id() != m.ID {
		t.Error(got)
	}
}

// TestMessages_AfterDeleted: a list goes on after a place of an endpoint that was deleted meanwhile.
func TestMessages_AfterDeleted(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	for range 3 {
		w.create(r.URL)
	}
	w.cause("a", "period.paid")
	w.drain(w.sender())
	all := w.messages(Filter{})
	if err := w.Delete(t.Context(), all[1].Endpoint); err != nil {
		t.Fatal(err)
	}
	var rest []string
	for m, err := range w.Messages(t.Context(), Filter{}, all[1].Place) {
		if err != nil {
			t.Fatal(err)
		}
		rest = append(rest, m.ID)
	}
	if !slices.Equal(rest, []string{all[2].ID}) {
		t.Error(rest)
	}
}

// TestMessages_After: a list goes on after any place.
func TestMessages_After(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	for range 2 {
		w.create(r.URL)
	}
	w.create("http://127.0.0.1:1")
	x := w.sender()
	for i := range 5 {
		w.cause(fmt.Sprint(i), "period.paid")
		w.drain(x)
		w.pass(time.Second)
	}
	all := w.messages(Filter{})
	if len(all) != 15 {
		t.Fatal(len(all))
	}
	for i, m := range all {
		n := 0
		for got, err := range w.Messages(t.Context(), Filter{}, m.Place) {
			if n++; err != nil || got.ID != all[i+n].ID {
				t.Fatal(i, n, err)
			}
		}
		if n != len(all)-i-1 {
			t.Error(i, n)
		}
	}
}

// TestReplay_Paused: a replay that is refused for a paused endpoint has replayed nothing, whichever endpoint it
// is. A replay for another endpoint is not refused.
func TestReplay_Paused(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	ends := [2]*Endpoint{w.create(r.URL), w.create(r.URL)}
	x := w.sender()
	w.cause("1", "period.paid")
	w.drain(x)
	for i, e := range ends {
		for _, paused := range []bool{true, false} {
			if _, err := w.Update(t.Context(), e.ID, Change{Paused: &paused}); err != nil {
				t.Fatal(err)
			}
			if !paused {
				continue
			}
			if n, _, err := w.Replay(t.Context(), Filter{From: start}); n != 0 || !errors.Is(err, ErrState) || len(w.messages(Filter{State: Waiting})) > 0 {
				t.Errorf("%d messages were replayed: %v", n, err)
			}
			if n, _, err := w.Replay(t.Context(), Filter{Endpoint: ends[1-i].ID}); n != 1 || err != nil {
				t.Errorf("the other endpoint: %d, %v", n, err)
			}
			w.drain(x)
		}
	}
}
