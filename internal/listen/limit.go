package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits limit the resources that clients can occupy.
type Limits struct {
	Connections int                      // at a time; an address has a quarter of them
	Proxies     []netip.Prefix           // believed about whose request they forward
	Free        func(*http.Request) bool // requests that are answered while all slots are taken; nil: none
	Opened      func(n int)              // is told 1 of each connection, and -1 when it is closed; nil: nobody is
}

const (
	shares = 4 // one address may hold a quarter of the connections
	spare  = 8 // an eighth of the connections has no slot
	linger = 500 * time.Millisecond
)

// Limit returns a listener with at most o.Connections open connections, and configures the server
// for it. The server must serve only that listener.
//
// A request that has arrived completely has a slot until it is answered, and is not cut off. Limit
// can close any other connection. If there is one connection too many, it closes the connection
// that has waited longest for a request or for the rest of a request. If an address exceeds its
// share, Limit closes that address's slowest connection. It refuses no request.
//
// If the handler answers before the request has arrived completely, the connection is closed after
// the answer.
func Limit(l net.Listener, server *http.Server, o Limits) net.Listener {
	if o.Opened == nil {
		o.Opened = func(int) {}
	}
	slots := max(1, o.Connections-max(1, o.Connections/spare))
	limited := &limiter{Listener: l, o: o, next: server.Handler, share: max(1, o.Connections/shares),
		slots: make(chan struct{}, slots), open: map[net.Conn]*place{}, held: map[netip.Addr]int{}}
	limited.changed.L = &limited.mu
	server.Handler, server.ConnState, server.ConnContext = limited, limited.note, limited.context
	return limited
}

// A limiter is a net.Listener, and the handler of what arrives there.
type limiter struct {
	net.Listener
	o     Limits
	next  http.Handler
	share int
	slots chan struct{} // one for each request with a slot

	mu      sync.Mutex
	changed sync.Cond // a connection has ended or can be evicted, or the listener is closed
	open    map[net.Conn]*place
	held    map[netip.Addr]int // places by address
	turn    uint64
	closed  bool
}

// A place is what a connection takes.
type place struct {
	conn    net.Conn
	from    netip.Addr    // whose share it counts in; zero: nobody's
	since   uint64        // the turn since which it has waited for a request, or for the rest of one
	idle    bool          // it has had an answer, and no request since
	working bool          // its request had a slot, and the answer is not sent
	gone    chan struct{} // closed when it is evicted
	evicted bool
}

func (l *limiter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) >= l.o.Connections && !l.closed {
		if !l.evict(netip.Addr{}, nil) {
			l.changed.Wait()
		}
	}
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	p := &place{conn: c, gone: make(chan struct{})}
	l.wait(p)
	l.open[c] = p
	l.o.Opened(1)
	if at := addressOf(c.RemoteAddr().String()); !trusts(l.o.Proxies, at) {
		l.count(p, at)
	}
	return c, nil
}

func (l *limiter) wait(p *place) {
	l.turn++
	p.since = l.turn
}

// count has the place count in the share of the address, of nobody for the zero one.
func (l *limiter) count(p *place, from netip.Addr) {
	if p.from.IsValid() {
		if l.held[p.from]--; l.held[p.from] == 0 {
			delete(l.held, p.from)
		}
	}
	if p.from = sharer(from); p.from.IsValid() {
		if l.held[p.from]++; l.held[p.from] > l.share {
			l.evict(p.from, p)
		}
	}
}

// sharer returns the address whose share one counts in: the first of its /64, of an IPv6 address.
func sharer(ip netip.Addr) netip.Addr {
	if ip.Is6() {
		block, _ := ip.Prefix(64) // a valid length
		return block.Addr()
	}
	return ip
}

// evict closes the connection that has waited longest, of the address unless that is zero, but not
// the given one. It reports whether there is one. Its place is free at once: the server may take
// half a second, or a handler's time, to notice.
func (l *limiter) evict(from netip.Addr, but *place) bool {
	var slowest *place
	for _, p := range l.open {
		if p != but && !p.working && (!from.IsValid() || p.from == from) && (slowest == nil || p.since < slowest.since) {
			slowest = p
		}
	}
	if slowest == nil {
		return false
	}
	l.drop(slowest)
	return true
}

func (l *limiter) drop(p *place) {
	l.leave(p)
	p.evicted = true
	close(p.gone)
	go func() { p.conn.Close() }()
}

func (l *limiter) leave(p *place) {
	l.count(p, netip.Addr{})
	delete(l.open, p.conn)
	l.o.Opened(-1)
}

// note is http.Server.ConnState.
func (l *limiter) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.open[c]
	switch {
	case p == nil:
	case state == http.StateHijacked || state == http.StateClosed:
		l.leave(p)
	case state == http.StateIdle || state == http.StateActive && p.idle:
		l.wait(p)
		p.idle = state == http.StateIdle
		p.working = p.working && !p.idle
		if p.idle && l.held[p.from] > l.share { // while it worked, nothing of its address could give way
			l.drop(p)
		}
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

type placeKey struct{}

func (l *limiter) context(ctx context.Context, c net.Conn) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return context.WithValue(ctx, placeKey{}, l.open[c])
}

// A request is the body of one, on a place.
type request struct {
	io.ReadCloser

	l       *limiter
	p       *place
	header  http.Header // of the answer
	free    bool
	arrived bool // completely
}

func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, _ := r.Context().Value(placeKey{}).(*place)
	if p == nil { // evicted before the server asked for its context
		return
	}
	x := &request{ReadCloser: r.Body, l: l, p: p, header: w.Header(), free: l.o.Free != nil && l.o.Free(r)}
	if trusts(l.o.Proxies, addressOf(r.RemoteAddr)) {
		if at := addressOf(Caller(r, l.o.Proxies)); !trusts(l.o.Proxies, at) { // else the proxy has not told
			l.mu.Lock()
			l.count(p, at)
			l.mu.Unlock()
			defer func() {
				l.mu.Lock()
				l.count(p, netip.Addr{})
				l.mu.Unlock()
			}()
		}
	}
	defer x.end()
	if r.Body != http.NoBody {
		x.header.Set("Connection", "close") // if the answer begins before the request has arrived
		r = r.WithContext(r.Context())      // the server looks at the body of its own
		r.Body = x
	} else if x.arrive() != nil {
		return
	}
	l.next.ServeHTTP(w, r)
}

var errEvicted = errors.New("the server closed this connection to serve others")

// arrive notes that the request has arrived completely, and waits for a slot.
func (x *request) arrive() error {
	x.header.Del("Connection")
	if x.arrived = true; x.free {
		return nil
	}
	select {
	case x.l.slots <- struct{}{}:
	case <-x.p.gone:
		return errEvicted
	}
	x.l.mu.Lock()
	defer x.l.mu.Unlock()
	if x.p.evicted {
		<-x.l.slots
		return errEvicted
	}
	x.p.working = true
	return nil
}

// end gives the slot back. The rest of the request has a moment to arrive, so that its sender gets
// the answer.
func (x *request) end() {
	if c := x.p.conn; !x.arrived {
		time.AfterFunc(linger, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	}
	x.l.mu.Lock()
	defer x.l.mu.Unlock()
	if x.p.working { // until note hears that the answer is sent
		<-x.l.slots
	}
	if x.arrived { // the answer is still to be sent; else the rest of the request gets no more time
		x.l.wait(x.p)
	}
	x.l.changed.Signal()
}

// Read reads the body.
func (x *request) Read(b []byte) (int, error) {
	n, err := x.ReadCloser.Read(b)
	if err == io.EOF && !x.arrived {
		if evicted := x.arrive(); evicted != nil {
			err = evicted
		}
	}
	return n, err
}
