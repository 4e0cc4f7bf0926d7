// Package listen serves HTTP on a listener until its context ends, and then shuts down. It does not open
// the listener, and does not know the handler.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// grace is the time that requests under way have once the server is to stop.
const grace = 20 * time.Second

// NewServer returns a server for the owner's own programs. Reading a request may take 30 seconds,
// and writing the answer may take the given time. A connection may be idle for five minutes, which
// is longer than clients keep idle connections.
func NewServer(h http.Handler, answer time.Duration) *http.Server {
	const read, idle, header = 30 * time.Second, 5 * time.Minute, 64 << 10
	return &http.Server{Handler: h, ReadHeaderTimeout: read, ReadTimeout: read, WriteTimeout: answer, IdleTimeout: idle,
		MaxHeaderBytes: header}
}

// Serve serves until ctx ends, gives running requests up to 20 seconds to finish, and returns nil.
// It returns an error if requests were cut off, or if the listener fails before ctx ends. It closes
// the listener. Serve logs the errors of connections.
func Serve(ctx context.Context, l net.Listener, server *http.Server, log *slog.Logger) error {
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		err := server.Shutdown(limited)
		if err != nil {
			err = errors.Join(fmt.Errorf("requests were still running %v after the stop, so they were cut off: %w", grace, err), server.Close())
		}
		stopped <- err
	})
	err := server.Serve(l)
	if cancel() { // the listener failed
		return errors.Join(err, server.Close())
	}
	return <-stopped
}
