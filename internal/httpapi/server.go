package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// An Inbox ingests events with a valid signature.
type Inbox interface {
	// Ingest returns nil once the event is durable, or tracking.ErrBody if the body is not an event. The
	// caller can reuse the body once Ingest has returned nil.
	Ingest(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error)
}

// A Shop creates purchases and finds purchases and payments.
type Shop interface {
	CreatePurchase(ctx context.Context, o tracking.Order) (*tracking.Created, error)
	Purchases(ctx context.Context, account string, after tracking.Mark) iter.Seq2[*tracking.Purchase, error]
	Timeline(ctx context.Context, purchase string) (*tracking.Timeline, error)
	Payments(ctx context.Context, account string, after tracking.Mark) iter.Seq2[*tracking.Payment, error]
	Payment(ctx context.Context, stripeAccount, id string) (*tracking.Payment, error)
}

// Options configures a server. New adds this package's routes, paths and kinds to web.Options.
type Options struct {
	web.Options

	Inbox Inbox // required with Hooks
	// Shop, Record and Backend serve the routes. Without a Shop, each route of this package responds that Stripe is not
	// followed, or does not exist if there are no routes of other packages.
	Shop    Shop
	Record  Record
	Backend Backend
	// Import imports the Stripe account and returns the report's view. Required with Backend.
	Import func(ctx context.Context, stripeAccount string, plan, fulfil bool) (view.Object, error)

	// Verify returns an error if the header's form or time is invalid. check returns an error if none of the
	// secrets signed the body, and otherwise the secret's index. Senders see the errors. Required with Hooks.
	Verify func(header string, secrets []secret.Text, now time.Time) (check func(body []byte) (which int, err error),
		err error)
	Hooks []Hook
	Poll  Poll // zero: the hooks only accept Stripe's events

	// Signed is called with the result of each signature check at a hook. It may be nil.
	Signed func(path string, good bool)
	// Taken is called for each event that a hook has stored. polled means that a poller sent it. It may be nil.
	Taken func(h Hook, polled bool, v tracking.Verdict)
}

const (
	maxEvent  = 1 << 20  // bytes of an event
	maxPooled = 64 << 10 // bytes of a buffer that is kept for the next event
)

type server struct {
	o      Options
	bodies sync.Pool // of *bytes.Buffer
}

// New returns the handler of all paths.
func New(o Options) *web.Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &server{o: o}
	all := o.Options
	all.Kinds = slices.Concat(all.Kinds, kinds)
	if all.Paths = maps.Clone(all.Paths); all.Paths == nil {
		all.Paths = map[string]web.Handler{}
	}
	for _, h := range o.Hooks {
		secrets := slices.Clone(h.Secrets)
		if !o.Poll.Given.IsZero() {
			secrets = append(secrets, o.Poll.Given)
		}
		all.Paths[h.Path] = func(w http.ResponseWriter, r *web.Request) error { return s.take(w, r, &hook{h, secrets}) }
	}
	if !o.Poll.Given.IsZero() {
		all.Paths[PollPath] = s.servePoll
	}
	if o.Shop == nil {
		s.o.Shop = struct{ Shop }{}
	}
	if own := s.routes(); o.Shop != nil || len(o.Routes) > 0 {
		for i := range own {
			if o.Shop == nil {
				own[i].Do = func(http.ResponseWriter, *web.Request) error { return errNotFollowed }
			}
		}
		all.Routes = slices.Concat(all.Routes, own)
	}
	return web.New(all)
}

func (s *server) buffer() *bytes.Buffer {
	if b, ok := s.bodies.Get().(*bytes.Buffer); ok {
		return b
	}
	return new(bytes.Buffer)
}

// recycle keeps the buffer for the next event, unless a large event has grown it.
func (s *server) recycle(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		s.bodies.Put(b)
	}
}
