package web

import (
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
	Routes []Route            // of /v1; none: there is no /v1
	Paths  map[string]Handler // other exact paths, which need no key
	Kinds  []Kind             // errors of the routes; the first match counts

	Keys      Keys     // of the callers of /v1 and /metrics; nil: nobody has one
	CursorKey [32]byte // encrypts the cursors of lists; the same in every process

	Store store.Store // with the rows of idempotency keys; nil: no route calls Once
	Table string      // recurring payments table, which has these rows

	Now   func() time.Time                // nil: time.Now
	Log   *slog.Logger                    // nil: nothing is logged
	Ready func(ctx context.Context) error // nil: ready as long as it runs; a Lack is shown if there are Keys

	Metrics http.Handler // of /metrics, which needs a key; nil: there is none
	// Proxies are the addresses of proxies whose X-Forwarded-For is true; else RemoteAddr counts.
	Proxies []netip.Prefix
	// Answered is told of each request from outside, by its route's pattern; nil: nobody is.
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
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
	writeTimeout  = time.Minute      // of an answer, or of a part of a long one
	idleTimeout   = time.Minute      // of a connection
	maxHeader     = 16 << 10         // bytes of a request's header
)

// Serve is listen.Serve within the limits of this package and the given ones. Health checks do not
// need a request slot.
func Serve(ctx context.Context, l net.Listener, h http.Handler, limits listen.Limits, log *slog.Logger) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true}
	limits.Free = isHealth
	return listen.Serve(ctx, listen.Limit(l, server, limits), server, log)
}

func isHealth(r *http.Request) bool { return r.URL.Path == pathHealth || r.URL.Path == pathReady }
