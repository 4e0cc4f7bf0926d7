// Package customer serves customers by signed links: the documents of their payments, and the
// customer's page.
//
// It knows no keys, sessions and routes of the API. A GET changes nothing.
package customer

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/store"
)

const (
	fresh   = 5 * time.Second // the settings are used again, so that guesses at links cost no reads
	maxBody = 16 << 10        // bytes of a form
)

// Billing is the part of an engine that does what customers ask for.
type Billing interface {
	Cancel(ctx context.Context, n billing.Name, atPeriodEnd bool) (*billing.Subscription, error)
	KeepOwn(ctx context.Context, account string) ([]billing.Name, error)
	Cards() *wallet.Cards
}

// A Handler serves the customers' pages. It answers every request that it does not serve in the
// same way, so that nobody learns what exists.
type Handler struct {
	records *billing.Records
	billing Billing
	log     *slog.Logger
	cross   *http.CrossOriginProtection

	mu   sync.Mutex
	last *rules // as they were read last; nil: not yet
}

// rules are what the settings say about links.
type rules struct {
	settings.Settings
	documents *document.Links
	passes    *portal.Passes
	read      time.Time
}

// New returns the handler for the store. The customer's page does what is asked for through b.
func New(r *billing.Records, b Billing, log *slog.Logger) *Handler {
	return &Handler{records: r, billing: b, log: log, cross: http.NewCrossOriginProtection()}
}

// A reply is a page, or a redirect.
type reply struct {
	status int
	text   []byte
	policy string // of the page; "": that of a document
	to     string // of a redirect
	cookie *http.Cookie
}

// A refusal is the status with which the page for unknown links is sent.
type refusal int

func (r refusal) Error() string { return http.StatusText(int(r)) }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	language, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	a, err := h.answer(r)
	if errors.Is(err, store.ErrNotFound) {
		err = refusal(http.StatusNotFound)
	}
	if refused, is := errors.AsType[refusal](err); is {
		if refused == http.StatusMethodNotAllowed && posts(r.URL.Path) {
			w.Header().Set("Allow", "GET, HEAD, POST")
		} else if refused == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		a = reply{status: int(refused)}
		a.text, err = document.Missing(language)
	} else if err != nil {
		if r.Context().Err() == nil {
			h.log.WarnContext(r.Context(), "a customer's page could not be shown", "error", err)
		}
		a = reply{status: http.StatusServiceUnavailable}
		a.text, err = document.Unavailable(language)
	}
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	a.send(w)
}

// posts reports whether a form may be sent to the path.
func posts(path string) bool { return strings.HasPrefix(path, portal.Path) || actions[path] != nil }

// answer returns the reply to the request. It returns a refusal or store.ErrNotFound for everything
// that is not served.
func (h *Handler) answer(r *http.Request) (reply, error) {
	post := r.Method == http.MethodPost && posts(r.URL.Path)
	if !post && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return reply{}, refusal(http.StatusMethodNotAllowed)
	}
	now, err := h.current(r.Context())
	if err != nil {
		return reply{}, err
	}
	if r.URL.RawQuery != "" || !now.documents.Serves(r.Host) {
		return reply{}, store.ErrNotFound
	}
	if post && (h.cross.Check(r) != nil || r.ParseForm() != nil) {
		return reply{}, refusal(http.StatusForbidden)
	}
	if token, ok := strings.CutPrefix(r.URL.Path, document.Path); ok {
		return h.document(r.Context(), now, token)
	}
	if token, ok := strings.CutPrefix(r.URL.Path, portal.Path); ok {
		return h.visit(r, now, post, token, portal.Page, portal.Card)
	}
	c, err := r.Cookie(cookieName)
	if err != nil || !post && r.URL.Path != pagePath {
		return reply{}, store.ErrNotFound
	}
	return h.visit(r, now, post, c.Value, portal.Session)
}

// document returns the document of the link's token.
func (h *Handler) document(ctx context.Context, now *rules, token string) (reply, error) {
	account, id, ok := now.documents.Open(token)
	if !ok {
		return reply{}, store.ErrNotFound
	}
	receipt, err := document.Find(ctx, h.records, account, id)
	if err != nil {
		return reply{}, err
	}
	d, err := document.Of(ctx, h.records, receipt)
	if err != nil {
		return reply{}, err
	}
	text, err := d.HTML()
	return reply{status: http.StatusOK, text: text}, err
}

func (h *Handler) current(ctx context.Context) (*rules, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.records.Now(); h.last == nil || now.Before(h.last.read) || now.Sub(h.last.read) >= fresh {
		s, err := settings.Read(ctx, h.records)
		if err != nil {
			return nil, err
		}
		opened := &h.records.Opened
		h.last = &rules{s, document.NewLinks(&s, opened.Salt), portal.NewPasses(&s, opened.LinkKey), now}
	}
	return h.last, nil
}

// Protect sets the headers of a document: nobody stores, lists, frames or forwards it, and it runs
// nothing.
func Protect(h http.Header) {
	for name, value := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": document.Policy(),
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow",
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"} {
		h.Set(name, value)
	}
}

func (a *reply) send(w http.ResponseWriter) {
	Protect(w.Header())
	if a.policy != "" {
		w.Header().Set("Content-Security-Policy", a.policy)
		w.Header().Set("Referrer-Policy", "strict-origin") // the host alone: with no-referrer, older browsers do not say where a form comes from
	}
	if a.cookie != nil {
		http.SetCookie(w, a.cookie)
	}
	if a.to != "" {
		w.Header().Set("Location", a.to)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.text)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.text) // the customer may be gone
}
