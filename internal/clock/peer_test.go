package clock

import (
	"net/http"
	"testing"
	"time"
)

func TestPeer(t *testing.T) {
	sent := at(t, "2026-11-22T10:00:00.5Z")
	for _, c := range []struct {
		what, date, age string
		took            time.Duration
		ahead           time.Duration
		unknown         bool
	}{
		{what: "the same second", date: "Sun, 22 Nov 2026 10:00:00 GMT", took: time.Millisecond},
		{what: "the second of a slow answer", date: "Sun, 22 Nov 2026 10:20:00 GMT", took: time.Hour},
		{what: "ahead", date: "Sun, 22 Nov 2026 10:06:01 GMT", took: 500 * time.Millisecond, ahead: 6 * time.Minute},
		{what: "behind", date: "Fri, 20 Nov 2026 09:59:59 GMT", took: time.Hour,
			ahead: -48*time.Hour - 500*time.Millisecond},
		{what: "our clock went back meanwhile", date: "Sun, 22 Nov 2026 09:00:00 GMT", took: -time.Hour,
			ahead: -time.Hour + 500*time.Millisecond},
		{what: "no date", unknown: true},
		{what: "a strange date", date: "noon", unknown: true},
		{what: "an answer of a cache", date: "Fri, 20 Nov 2026 10:00:00 GMT", age: "172800", unknown: true},
	} {
		var p Peer
		h := http.Header{}
		h.Set("Date", c.date)
		if c.age != "" {
			h.Set("Age", c.age)
		}
		p.Note(h, sent, sent.Add(c.took))
		ahead, shown := p.Ahead()
		if ahead != c.ahead || shown.IsZero() != c.unknown || !c.unknown && !shown.Equal(sent.Add(c.took)) {
			t.Errorf("%s: %s at %s; want %s", c.what, ahead, shown, c.ahead)
		}
	}
}
