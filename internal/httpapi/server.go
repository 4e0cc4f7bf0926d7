package httpapi

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// An Inbox ingests events with a valid signature.
type Inbox interface {
	// Ingest returns nil when the event is durable, and tracking.ErrBody when it is none. The
	// body is the caller's again once Ingest has returned nil.
	Ingest(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error)
}

// A Shop creates purchases, and returns purchases and payments.
type Shop interface {
	CreatePurchase(ctx context.Context, o tracking.Order) (*tracking.Created, error)
	Purchases(ctx context.Context, account string, after tracking.Mark) iter.Seq2[*tracking.Purchase, error]
	Timeline(ctx context.Context, purchase string) (*tracking.Timeline, error)
	Payments(ctx context.Context, account string, after tracking.Mark) iter.Seq2[*tracking.Payment, error]
	Payment(ctx context.Context, stripeAccount, id string) (*tracking.Payment, error)
}

// Options configure a server. All fields are required unless their comments say otherwise.
type Options struct {
	Inbox Inbox // needed with Hooks
	// Shop and Record are what /v1 is about; nil: there is no /v1.
	Shop   Shop
	Record Record

	// Verify returns an error unless the form and time of the header are right; check, one unless one of
	// the secrets has signed the body. The errors are shown to the sender. Needed with Hooks.
	Verify func(header string, secrets []secret.Text, now time.Time) (check func(body []byte) (which int, err error),
		err error)
	Hooks []Hook // may be none
	Poll  Poll   // zero: the hooks take Stripe's events alone

	Keys      Keys     // of the callers of /v1 and /metrics; nil: nobody has one
	CursorKey [32]byte // encrypts the cursors of lists; the same in every process

	Now   func() time.Time                // nil: time.Now
	Log   *slog.Logger                    // nil: nothing is logged
	Ready func(ctx context.Context) error // nil: ready as long as it runs; a Lack is shown if there are Keys

	Metrics http.Handler // of /metrics, which needs a key; nil: there is none
	// Proxies are the addresses of proxies whose X-Forwarded-For is true; else RemoteAddr counts.
	Proxies []netip.Prefix
	// Signed is told of each signature at a hook; nil: nobody is.
	Signed func(path string, good bool)
	// Taken is told of each event that a hook has taken; polled: from a poller. nil: nobody is.
	Taken func(h Hook, polled bool, v tracking.Verdict)
	// Answered is told of each request from outside, by its route's pattern; nil: nobody is.
	Answered func(route string, status int)
}

const (
	maxEvent  = 1 << 20 // bytes of an event
	maxForm   = 256 << 10
	maxPooled = 64 << 10 // bytes of a buffer kept for the next event
)

type server struct {
	o       Options
	hooks   map[string]*hook // by path
	api     *http.ServeMux
	cross   *http.CrossOriginProtection
	bodies  sync.Pool    // of *bytes.Buffer
	left    atomic.Int64 // bytes of allBodies
	cursors cipher.AEAD  // nil without /v1
	refused refusals
}

// New returns the handler of all routes.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{o: o, hooks: map[string]*hook{}, api: http.NewServeMux(), cross: http.NewCrossOriginProtection(),
		refused: refusals{seen: map[string]int{}}}
	s.left.Store(allBodies)
	for _, h := range o.Hooks {
		secrets := slices.Clone(h.Secrets)
		if !o.Poll.Given.IsZero() {
			secrets = append(secrets, o.Poll.Given)
		}
		s.hooks[h.Path] = &hook{h, secrets}
	}
	if o.Shop != nil {
		block, _ := aes.NewCipher(o.CursorKey[:]) // a valid length
		s.cursors, _ = cipher.NewGCMWithRandomNonce(block)
		s.api = s.routes()
	}
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
