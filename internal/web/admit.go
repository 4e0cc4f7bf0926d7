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

// Keys are the keys of callers.
type Keys interface {
	// Find returns the valid key of the text, or key.ErrRefused, whose text is for the log.
	Find(ctx context.Context, text string) (*key.Key, error)
}

var (
	errMissingKey = &Problem{Status: http.StatusUnauthorized, Code: codeKey, Detail: "the request needs an API key: Authorization: Bearer KEY"}
	errWrongKey   = &Problem{Status: http.StatusUnauthorized, Code: codeKey,
		Detail: "the API key is not valid on this server; send Authorization: Bearer KEY"}
	errCross = &Problem{Status: http.StatusForbidden, Code: "cross_origin", Detail: "pages from another origin cannot call this API"}
)

// isClean reports whether the mux would not redirect the path, and whether its values can be those of a key.
func isClean(p string) bool {
	return path.Clean(p) == p && !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return !isValue(part) })
}

const maxValue = 500 // bytes; no stored ID, address or other value that a request can name is longer

// isValue reports whether the text of a path or query can name something that is stored.
func isValue(text string) bool { return len(text) <= maxValue && utf8.ValidString(text) }

// admit returns the key of a request. All invalid keys get the same answer; the log has the reason.
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
	if !errors.Is(err, key.ErrRefused) { // the store does not answer
		return nil, err
	}
	kind := codeKey + ": " + err.Error()
	if e, ok := errors.AsType[*key.Refusal](err); ok {
		if kind = codeKey + ": " + e.Why; e.Known { // else strangers would choose the kinds
			kind += ": " + e.ID
		}
	}
	s.Warn(r, kind, "web: refused a request without a valid API key", "code", codeKey, "error", Shown(err.Error()))
	w.Header().Set("WWW-Authenticate", "Bearer")
	return nil, refusal
}

// allow refuses a key whose scope does not include that of the route.
func allow(k *key.Key, scope key.Scope) error {
	if k != nil && k.Scope.Includes(scope) {
		return nil
	}
	return Problemf(http.StatusForbidden, "scope", "this request needs an API key with scope %s", scope)
}

// serveMetrics shows no secret and no customer, but the numbers of the business, of all merchants.
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
