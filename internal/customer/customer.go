// Package customer serves customers by signed links: the documents of their payments.
//
// It knows no keys, sessions and routes of the API, and changes nothing.
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
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/store"
)

// fresh is for how long the settings are used again, so that guesses at links cost no reads.
const fresh = 5 * time.Second

// A Handler serves the customers' pages. It answers every request that it does not serve in the
// same way, so that nobody learns what exists.
type Handler struct {
	records *billing.Records
	log     *slog.Logger

	mu    sync.Mutex
	read  time.Time // when links were read
	links *document.Links
}

// New returns the handler for the store.
func New(r *billing.Records, log *slog.Logger) *Handler { return &Handler{records: r, log: log} }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	language, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		send(w, http.StatusMethodNotAllowed, language, document.Missing)
		return
	}
	d, err := h.find(r.Context(), r)
	switch {
	case err == nil:
		send(w, http.StatusOK, "", func(string) ([]byte, error) { return d.HTML() })
	case errors.Is(err, store.ErrNotFound):
		send(w, http.StatusNotFound, language, document.Missing)
	default:
		if r.Context().Err() == nil {
			h.log.WarnContext(r.Context(), "a customer's page could not be shown", "error", err)
		}
		send(w, http.StatusServiceUnavailable, language, document.Unavailable)
	}
}

// find returns the document of the link, or store.ErrNotFound.
func (h *Handler) find(ctx context.Context, r *http.Request) (*document.Document, error) {
	links, err := h.current(ctx)
	if err != nil {
		return nil, err
	}
	token, ok := strings.CutPrefix(r.URL.Path, document.Path)
	if !ok || r.URL.RawQuery != "" || !links.Serves(r.Host) {
		return nil, store.ErrNotFound
	}
	account, id, ok := links.Open(token)
	if !ok {
		return nil, store.ErrNotFound
	}
	receipt, err := document.Find(ctx, h.records, account, id)
	if err != nil {
		return nil, err
	}
	return document.Of(ctx, h.records, receipt)
}

func (h *Handler) current(ctx context.Context) (*document.Links, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.records.Now(); h.links == nil || now.Before(h.read) || now.Sub(h.read) >= fresh {
		s, err := settings.Read(ctx, h.records)
		if err != nil {
			return nil, err
		}
		h.links, h.read = document.NewLinks(&s, h.records.Opened.Salt), now
	}
	return h.links, nil
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

func send(w http.ResponseWriter, status int, language string, page func(string) ([]byte, error)) {
	text, err := page(language)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	Protect(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the customer may be gone
}
