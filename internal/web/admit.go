package web

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/key"
)

// Keys finds callers' API keys.
type Keys interface {
	// Find returns the valid key with the text, or key.ErrRefused, whose message is only for the log.
	Find(ctx context.Context, text string) (*key.Key, error)
}

var (
	errMissingKey = &Problem{Status: http.StatusUnauthorized, Code: codeKey, Detail: "the request needs an API key: Authorization: Bearer KEY"}
	errWrongKey   = &Problem{Status: http.StatusUnauthorized, Code: codeKey,
		Detail: "the API key is not valid on this server; send Authorization: Bearer KEY"}
	errCross = &Problem{Status: http.StatusForbidden, Code: "cross_origin", Detail: "a web page from another origin cannot call this API"}
)

// isClean reports whether the mux would not redirect the path, and whether its values can be those of a key.
func isClean(p string) bool {
	return path.Clean(p) == p && !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return !isValue(part) })
}

const maxValue = 500 // bytes; no stored ID, address or other value that a request can name is longer

// isValue reports whether the text of a path or query can name something that is stored.
func isValue(text string) bool { return len(text) <= maxValue && utf8.ValidString(text) }

// admit returns the request's key. All invalid keys get the same response, and the log contains the reason.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*key.Key, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	k, err, refusal := (*key.Key)(nil), key.ErrRefused, errWrongKey
	switch {
	case scheme == "":
		refusal = errMissingKey
	case strings.EqualFold(scheme, "Bearer") && s.o.Keys != nil:
		k, err = s.o.Keys.Find(r.Context(), strings.TrimLeft(text, " "))
	}
	if err == nil {
		return k, nil
	}
	if !errors.Is(err, key.ErrRefused) { // the store failed
		return nil, err
	}
	kind := codeKey + ": " + err.Error()
	if e, ok := errors.AsType[*key.Refusal](err); ok {
		if kind = codeKey + ": " + e.Why; e.Known { // otherwise, strangers could create kinds
			kind += ": " + e.ID
		}
	}
	s.Warn(r, kind, "web: rejected a request without a valid API key", "code", codeKey, "error", Shown(err.Error()))
	w.Header().Set("WWW-Authenticate", "Bearer")
	return nil, refusal
}

// allow returns an error if the key's scope does not include the route's.
func allow(k *key.Key, scope key.Scope) error {
	if k != nil && k.Scope.Includes(scope) {
		return nil
	}
	return Problemf(http.StatusForbidden, "scope", "this request needs an API key with scope %s", scope)
}

// serveMetrics requires a key, because the metrics show the business figures of all merchants.
func (s *Server) serveMetrics(w http.ResponseWriter, r *Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return WrongMethod(w, "GET, HEAD")
	}
	k, err := s.admit(w, r.Request)
	if err == nil {
		err = allow(k, key.Read)
	}
	if err == nil && k.Merchant != "" {
		err = ErrMerchant
	}
	if err == nil {
		s.o.Metrics.ServeHTTP(w, r.Request)
	}
	return err
}
