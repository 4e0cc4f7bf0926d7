package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/duesday/duesday/internal/listen"
)

const (
	headerTimeout = 5 * time.Second  // of a request's header
	readTimeout   = 15 * time.Second // of a request
	writeTimeout  = time.Minute      // of an answer, or of a part of a long one
	idleTimeout   = time.Minute      // of a connection
	maxHeader     = 16 << 10         // bytes of a request's header
)

// Serve serves the handler as listen.Serve does, within the limits of this package.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	return listen.Serve(ctx, l, &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  idleTimeout, MaxHeaderBytes: maxHeader}, log)
}
