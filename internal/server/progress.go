package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// patience is the time that a listener has to accept a connection, and the store to reply.
const patience = 20 * time.Second

// A door is a listener with what it serves.
type door struct {
	listener net.Listener
	handler  http.Handler
	opened   func(n int)  // as Options.Opened
	accepted atomic.Int64 // connections
	stuck    bool         // a connection was not accepted, and none has been since
}

// note counts what listen.Limits.Opened is told.
func (d *door) note(n int) {
	if d.accepted.Add(int64(max(n, 0))); d.opened != nil {
		d.opened(n)
	}
}

// accepts reports whether the server still accepts connections. It only reports false if a
// connection was made and neither it nor anyone else's was accepted in the meantime. If no
// connection can be made, because strangers hold all that the system makes, or because the
// listener's address has gone from this machine, the last answer stands: a restart would not help.
func (d *door) accepts(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := d.accepted.Load()
	at, _ := localAddress(d.listener.Addr()) // New has parsed it
	c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		defer c.Close()
		if half, ok := c.(*net.TCPConn); ok {
			_ = half.CloseWrite() // the server then closes the connection
		}
		_, _ = io.Copy(io.Discard, c) // until the server has closed it, for whatever reason
	}
	if now := d.accepted.Load(); err == nil || now > before {
		d.stuck = now == before
	}
	return !d.stuck
}

// Progress reports whether the server accepts connections on every listener, after the store has
// replied. An error is a reply. If the store does not reply at all, Progress does not return. It
// does not depend on runs, requests or deliveries, which may take as long as they need. Only one
// goroutine may call it, while Run runs.
func (s *Server) Progress(ctx context.Context) bool {
	if s.o.HTTP.Ready != nil {
		limited, cancel := context.WithTimeout(ctx, patience)
		_ = s.o.HTTP.Ready(limited)
		cancel()
	}
	all := true
	for _, d := range s.doors {
		all = d.accepts(ctx) && all
	}
	return all
}
