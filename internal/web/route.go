package web

import (
	"net/http"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/key"
)

// A Route is one of /v1. Its Scope has no default: without one, no key is enough.
type Route struct {
	Pattern   string // such as POST /v1/accounts/{account}/subscriptions
	Operation string // operation id in openapi.json, such as createSubscription
	Scope     key.Scope
	Merchants bool // whether keys that are bound to a merchant may call it
	Do        Handler
}

// A Handler answers a request, unless it returns an error.
type Handler func(w http.ResponseWriter, r *Request) error

// A Request is an admitted request.
type Request struct {
	*http.Request          // its context has a call.Call with the Actor
	Key           *key.Key // nil on a path that needs none
	Server        *Server

	w http.ResponseWriter
}

// mux has the routes behind the keys.
func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, to := range s.o.Routes {
		mux.HandleFunc(to.Pattern, func(w http.ResponseWriter, r *http.Request) {
			k := keyOf(r)
			err := allow(k, to.Scope)
			if err == nil && k.Merchant != "" && !to.Merchants {
				err = ErrMerchant
			}
			if err == nil {
				c := &call.Call{Actor: "key " + k.Name, Table: s.o.Table, Now: s.o.Now}
				err = to.Do(w, &Request{Request: r.WithContext(call.With(r.Context(), c)), Key: k, Server: s, w: w})
			}
			if err != nil {
				s.fail(w, r, err)
			}
		})
	}
	return mux
}
