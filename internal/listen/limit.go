package listen

import (
	"net"
	"net/http"
	"sync"
)

// Limit has the server hold at most so many connections of the listener. One more closes the
// connection that has been without a request for the longest time, or waits for one to end. Limit
// sets ConnState of the server, which must serve the returned listener alone.
func Limit(l net.Listener, server *http.Server, most int) net.Listener {
	limited := &limiter{Listener: l, most: most, open: map[net.Conn]uint64{}}
	limited.changed.L = &limited.mu
	server.ConnState = limited.note
	return limited
}

// A limiter is a net.Listener.
type limiter struct {
	net.Listener
	most int

	mu      sync.Mutex
	changed sync.Cond           // a connection has ended or become idle, or the listener is closed
	open    map[net.Conn]uint64 // when it became idle, counted in turns; 0: it has a request
	turn    uint64
	closed  bool
}

func (l *limiter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) >= l.most && !l.closed {
		if idle := l.longestIdle(); idle != nil {
			l.open[idle] = 0             // closed once
			go func() { idle.Close() }() // the server notes that it has ended
		}
		l.changed.Wait()
	}
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *limiter) longestIdle() (c net.Conn) {
	for other, since := range l.open {
		if since > 0 && (c == nil || since < l.open[c]) {
			c = other
		}
	}
	return c
}

// note is http.Server.ConnState, called for a new connection before another one is accepted.
func (l *limiter) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		l.turn++
		l.open[c] = l.turn
	case http.StateActive:
		l.open[c] = 0
	case http.StateHijacked, http.StateClosed:
		delete(l.open, c)
	}
	l.changed.Signal()
}

func (l *limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.changed.Signal()
	return l.Listener.Close()
}
