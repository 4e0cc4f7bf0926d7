package clock

import (
	"net/http"
	"sync/atomic"
	"time"
)

// A Peer is the clock of a server, as its answers show it. The zero Peer has shown nothing. It is
// safe for concurrent use.
type Peer struct {
	last atomic.Pointer[comparison]
}

type comparison struct {
	ahead time.Duration
	at    time.Time
}

// Note compares the Date of an answer with the span from sending to receiving, by our clock: a slow
// answer is no difference. An answer without a Date, or from a cache (Age), shows nothing.
func (p *Peer) Note(h http.Header, sent, received time.Time) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil || h.Get("Age") != "" {
		return
	}
	var ahead time.Duration
	switch next := at.Add(time.Second); { // a Date is in whole seconds
	case at.After(received):
		ahead = at.Sub(received.Round(0))
	case next.Before(sent):
		ahead = next.Sub(sent.Round(0))
	}
	p.last.Store(&comparison{ahead, received.Round(0)})
}

// Ahead returns how far the server's clock was ahead of ours when its last answer came, at that
// time of our clock; a zero time before one.
func (p *Peer) Ahead() (ahead time.Duration, at time.Time) {
	if c := p.last.Load(); c != nil {
		return c.ahead, c.at
	}
	return 0, time.Time{}
}
