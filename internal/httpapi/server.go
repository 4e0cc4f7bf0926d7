package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 5 * time.Second  // of a request's header
	readTimeout   = 15 * time.Second // of a request
	writeTimeout  = time.Minute      // of an answer, or of a part of a long one
	idleTimeout   = time.Minute      // of a connection
	graceTime     = 20 * time.Second // for what has begun, once the server is to stop
	maxHeader     = 16 << 10         // bytes of a request's header
)

// Serve serves until ctx ends, then finishes what has begun, within 20 seconds, and returns
// nil. It closes the listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
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
