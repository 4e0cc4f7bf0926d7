package stripefake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

const (
	readTimeout  = 30 * time.Second // of a request
	writeTimeout = time.Minute      // of an answer, beside what a request has to wait
	idleTimeout  = 5 * time.Minute  // of a connection
	graceTime    = 20 * time.Second // for what has begun, once the server is to stop
	maxHeader    = 64 << 10         // bytes of a request's header
)

// Serve serves the fake until ctx ends, then finishes what has begun, within 20 seconds, and
// returns nil. It closes the listener, and leaves the fake open. Whoever reaches the
// listener can use it and control it.
func Serve(ctx context.Context, l net.Listener, f *Fake, log *slog.Logger) error {
	server := &http.Server{
		Handler: f, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: api.MaxLatency + writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
		defer cancel()
		err := server.Shutdown(grace)
		if err != nil {
			err = errors.Join(fmt.Errorf("requests were cut off %v after the stop: %w", graceTime, err), server.Close())
		}
		stopped <- err
	})
	err := server.Serve(l)
	if cancel() { // it ended by itself
		return errors.Join(err, server.Close())
	}
	return <-stopped
}
