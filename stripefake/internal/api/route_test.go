package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
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
			found, names, _ := r.find(method, path)
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

// TestRoute_Misread: a handler that reads a parameter which its route does not declare, or not as
// that type, is answered with a 500 instead of a silent zero. The tests that ask every route with
// every parameter find it.
func TestRoute_Misread(t *testing.T) {
	for read, want := range map[string]struct {
		do     func(*Call)
		status int
	}{
		"a text":           {func(c *Call) { c.Form.Str("name") }, 200},
		"a number":         {func(c *Call) { c.Num("amount") }, 200},
		"in brackets":      {func(c *Call) { c.Form.Sub("period").Str("start"); c.Num("period[start]") }, 200},
		"a flag":           {func(c *Call) { c.Flag("confirm") }, 200},
		"undeclared":       {func(c *Call) { c.Form.Str("nam") }, 500},
		"undeclared, asks": {func(c *Call) { c.Form.Has("customer") }, 500},
		"text as number":   {func(c *Call) { c.Num("name") }, 500},
		"number as flag":   {func(c *Call) { c.Flag("amount") }, 500},
		"no number":        {func(c *Call) { c.Num("limit") }, 500},
	} {
		route := on("POST", "/v1/test", "name amount:int confirm:bool period[start]:int", func(c *Call) (object, error) {
			want.do(c)
			return object{}, nil
		})
		f := New(Options{Now: time.Now, Real: time.Now, Keys: []Key{{Secret: "sk_test_a", Account: DefaultAccount}},
			Log: slog.New(slog.DiscardHandler), Resources: Resources{Routes: []Route{route}}})
		r := httptest.NewRequest("POST", "/v1/test", http.NoBody)
		r.Header.Set("Authorization", "Bearer sk_test_a")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != want.status {
			t.Errorf("%s: got %d %s, want %d", read, w.Code, w.Body, want.status)
		}
	}
}

// TestParam_OneOrNumber: such a parameter takes its words and whole numbers, and no word "int".
func TestParam_OneOrNumber(t *testing.T) {
	p := parseParams("ends:now|int")[0]
	for value, ok := range map[string]bool{"now": true, "5": true, "-5": true, "int": false, "later": false, "now|int": false} {
		if err := p.check(value); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
}
