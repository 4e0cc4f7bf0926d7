package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/key"
)

// A Route is a route of /v1. Without a Scope, it rejects every key.
type Route struct {
	Pattern   string // such as POST /v1/accounts/{account}/subscriptions
	Operation string // operationId in openapi.json, such as createSubscription
	Scope     key.Scope
	Merchants bool // whether keys that are bound to a merchant can call it
	Do        Handler
}

// A Handler sends the response, or returns an error that the Server sends.
type Handler func(w http.ResponseWriter, r *Request) error

// A Request is a request to a Server.
type Request struct {
	*http.Request // its context has a call.Call with the Actor, if there is a Key
	Key           *key.Key
	Server        *Server

	w     http.ResponseWriter
	body  []byte // set by Read
	form  any    // set by Read
	asked bool   // Values was called
}

type requestKey struct{}

type keyKey struct{}

// As returns a context whose requests to /v1 are the key's, without an Authorization header. The operator's
// pages call the API of their own process with it.
func As(ctx context.Context, k *key.Key) context.Context { return context.WithValue(ctx, keyKey{}, k) }

// Routes returns the routes of all packages.
func (s *Server) Routes() []Route { return s.o.Routes }

// mux returns the routes that need a key.
func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, to := range s.o.Routes {
		mux.HandleFunc(to.Pattern, func(w http.ResponseWriter, in *http.Request) {
			r := in.Context().Value(requestKey{}).(*Request)
			c := &call.Call{Actor: r.Key.Actor(), Table: s.o.Table, Now: s.o.Now, Expect: expected(in)}
			r.Request = in.WithContext(call.With(in.Context(), c)) // with the path's values
			err := allow(r.Key, to.Scope)
			if err == nil && r.Key.Merchant != "" && !to.Merchants {
				err = ErrMerchant
			}
			if err == nil && in.URL.RawQuery != "" {
				if in.Method == http.MethodGet || in.Method == http.MethodHead {
					w = &unasked{ResponseWriter: w, r: r}
				} else {
					_, err = r.Values()
				}
			}
			if err == nil {
				err = to.Do(w, r)
			}
			if err != nil {
				r.fail(w, err)
			}
		})
	}
	return mux
}

// expected returns the version in a change's If-Match header, or 0 if it accepts any. For a tag that Duesday
// never sends, expected returns -1, which no object has.
func expected(r *http.Request) int64 {
	tag := strings.Join(r.Header.Values("If-Match"), ", ")
	if tag == "" || tag == "*" || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return 0
	}
	version, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || version < 1 || tag != Tag(version) {
		return -1
	}
	return version
}

// Tag returns the version as an ETag.
func Tag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// serveAPI checks the key and calls the route's handler.
func (s *Server) serveAPI(w http.ResponseWriter, r *Request) (err error) {
	if err := s.cross.Check(r.Request); err != nil {
		s.Warn(r.Request, "cross_origin", "web: rejected a request from another origin")
		return errCross
	}
	if r.Key, _ = r.Context().Value(keyKey{}).(*key.Key); r.Key == nil {
		if r.Key, err = s.admit(w, r.Request); err != nil {
			return err
		}
	}
	if !isClean(r.URL.Path) {
		return errNoRoute
	}
	handler, pattern := s.api.Handler(r.Request)
	if pattern == "" {
		none := &refused{header: http.Header{}}
		handler.ServeHTTP(none, r.Request)
		if none.status != http.StatusMethodNotAllowed {
			return errNoRoute
		}
		return WrongMethod(w, none.header.Get("Allow"))
	}
	r.Pattern = pattern                                                                        // for the log
	s.api.ServeHTTP(w, r.Request.WithContext(context.WithValue(r.Context(), requestKey{}, r))) // sets the path's values
	return nil
}
