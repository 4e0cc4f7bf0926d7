package web

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/store"
)

// Options configure a Server. Everything is optional.
type Options struct {
	Routes []Route            // of /v1; none: no /v1
	Paths  map[string]Handler // other exact paths, which need no key
	Kinds  []Kind             // errors of the routes; the first match counts

	Keys      Keys     // of callers of /v1 and /metrics; nil: no key is valid
	CursorKey [32]byte // encrypts list cursors; the same in every process

	Store store.Store // contains the rows of idempotency keys; nil: no route calls Once
	Table string      // recurring payments table, which contains these rows

	Now   func() time.Time                // nil: time.Now
	Log   *slog.Logger                    // nil: no log
	Ready func(ctx context.Context) error // nil: always ready; a Lack is shown if there are Keys

	Metrics http.Handler // of /metrics, which needs a key; nil: no /metrics
	// Proxies are the addresses of proxies whose X-Forwarded-For is trusted. Otherwise, RemoteAddr counts.
	Proxies []netip.Prefix
	// Answered is called after each request, with its route's pattern. It may be nil.
	Answered func(route string, status int)
}

// A Server is the handler of all paths.
type Server struct {
	o       Options
	api     *http.ServeMux
	cross   *http.CrossOriginProtection
	left    atomic.Int64 // bytes of allBodies
	cursors cipher.AEAD
	refused refusals
	running running
}

// New returns a Server. It panics if two routes have the same pattern.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{o: o, cross: http.NewCrossOriginProtection(), refused: refusals{seen: map[string]int{}},
		running: running{ends: map[string]chan struct{}{}}}
	s.left.Store(allBodies)
	block, _ := aes.NewCipher(o.CursorKey[:]) // a valid length
	s.cursors, _ = cipher.NewGCMWithRandomNonce(block)
	s.api = s.mux()
	return s
}

// isAPI reports whether the path needs a key.
func isAPI(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/")
}

const (
	headerTimeout = 5 * time.Second  // of a request's header
	readTimeout   = 15 * time.Second // of a request
	writeTimeout  = time.Minute      // of a response, or of a part of a long one
	idleTimeout   = time.Minute      // of a connection
	maxHeader     = 16 << 10         // bytes of a request's header
)

// Serve calls listen.Serve with this package's timeouts and the given limits. Health checks do not need a
// request slot.
func Serve(ctx context.Context, l net.Listener, h http.Handler, limits listen.Limits, log *slog.Logger) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true}
	limits.Free = isHealth
	return listen.Serve(ctx, listen.Limit(l, server, limits), server, log)
}

func isHealth(r *http.Request) bool { return r.URL.Path == pathHealth || r.URL.Path == pathReady }
