package api

import (
	"slices"
	"strings"
	"testing"
)

// TestRouter: a literal wins over a name, in whatever order the routes are.
func TestRouter(t *testing.T) {
	routes := []Route{{Method: "GET", Path: "/v1/a/{id}"}, {Method: "GET", Path: "/v1/a/preview"},
		{Method: "POST", Path: "/v1/a/{id}/pay"}}
	for range 2 {
		r := newRouter(slices.Clone(routes))
		for ask, want := range map[string]string{
			"GET /v1/a/preview": "/v1/a/preview", "GET /v1/a/x": "/v1/a/{id}", "GET /v1/a/x/": "/v1/a/{id}",
			"POST /v1/a/x/pay": "/v1/a/{id}/pay",
			"GET /v1/a":        "", "GET /v1/a//": "", "POST /v1/a/x": "", "POST /v1/a/x/pay/y": "", "GET ": "",
		} {
			method, path, _ := strings.Cut(ask, " ")
			found, names := r.find(method, path)
			if found == nil {
				found = &Route{}
			}
			if found.Path != want {
				t.Errorf("%s: got %q, want %q", ask, found.Path, want)
			}
			if strings.Contains(want, "{") && names["id"] != "x" {
				t.Errorf("%s: got the id %q, want x", ask, names["id"])
			}
		}
		slices.Reverse(routes)
	}
}
