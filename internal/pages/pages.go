package pages

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/secret"
)

// Keys sign people in, as key.Ring does.
type Keys interface {
	SignIn(ctx context.Context, text string) (secret.Text, *key.Key, error)
	Session(ctx context.Context, text string, person bool) (*key.Key, error)
	SignOut(ctx context.Context, text string) error
}

// Options configure a Handler. All fields but Hosts, Stripe and Secure are required.
type Options struct {
	API    http.Handler // of /v1, in this process
	Keys   Keys
	Hosts  []string // by which a browser may reach the pages, besides names of this machine
	Stripe string   // Stripe in words, if cards are charged there; "": the sandbox, which has no page for a new card
	Secure bool     // a proxy provides TLS, so cookies are for TLS alone
	Now    func() time.Time
	Log    *slog.Logger
}

// A Handler serves the pages.
type Handler struct {
	o     Options
	cross *http.CrossOriginProtection
	mux   *http.ServeMux
}

// New returns the handler.
func New(o Options) *Handler {
	h := &Handler{o: o, cross: http.NewCrossOriginProtection(), mux: http.NewServeMux()}
	for _, p := range all() {
		h.mux.HandleFunc("GET "+p.path, h.signedIn(p.show))
	}
	for _, l := range lists() {
		h.mux.HandleFunc("GET /"+l.name, h.signedIn(l.show))
	}
	for _, a := range actions() {
		h.mux.HandleFunc("GET "+a.path(), h.signedIn(a.ask))
		h.mux.HandleFunc("POST "+a.path(), h.signedIn(a.do))
	}
	h.mux.HandleFunc("GET /accounts/{account}/receipts/{number}/document", h.signedIn(document))
	h.mux.HandleFunc("GET "+SignInPath, h.signInForm)
	h.mux.HandleFunc("POST "+SignInPath, h.signIn)
	h.mux.HandleFunc("GET /search", h.signedIn(search))
	h.mux.HandleFunc("POST /sign-out", h.signedIn((*visit).signOut))
	h.mux.HandleFunc("GET "+staticPath+"{file}", serveStatic)
	h.mux.HandleFunc("/", h.signedIn(func(*visit) error { return errNoPage }))
	return h
}

// policy lets a page load its own stylesheet, script and nothing else, and lets nobody frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "strict-origin",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "X-Robots-Tag": "noindex, nofollow"} {
		w.Header().Set(name, value)
	}
	v := &visit{Handler: h, w: w, r: r}
	defer func() {
		if p := recover(); p != nil {
			h.o.Log.ErrorContext(r.Context(), "pages: a request panicked", "page", cmp.Or(r.Pattern, "none"), "stack", string(debug.Stack()))
			v.fail(errBroken)
		}
	}()
	if !h.answers(r.Host) {
		v.fail(errHost)
	} else if h.cross.Check(r) != nil {
		v.fail(errCross)
	} else {
		h.mux.ServeHTTP(w, r)
	}
}

// answers reports whether the pages are at the host, as a browser names it. A page elsewhere can point its own
// name at this machine, and must not reach the pages by it.
func (h *Handler) answers(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || slices.Contains(h.o.Hosts, host)
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(h.o.Hosts, func(own string) bool { return strings.EqualFold(own, host) })
}

// signedIn serves the page to whoever has signed in, and leads others to the form.
func (h *Handler) signedIn(show func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{Handler: h, w: w, r: r}
		if err := v.enter(); err != nil {
			v.fail(err)
		} else if v.key != nil {
			if err := show(v); err != nil {
				v.fail(err)
			}
		}
	}
}
