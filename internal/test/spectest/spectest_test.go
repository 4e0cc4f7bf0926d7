package spectest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/web"
)

// openapi.json is OpenAPI 3.1, and each of its examples is an instance of its schema.
func TestSpec_Valid(t *testing.T) {
	s := New(t)
	if !s.Doc.IsOpenAPI31OrLater() {
		t.Errorf("the version is %s", s.Doc.OpenAPI)
	}
	if err := s.Doc.Validate(context.Background()); err != nil {
		t.Error(err)
	}
	n := 0
	check := func(at string, c openapi3.Content) {
		for kind, m := range c {
			for name, e := range m.Examples {
				n++
				if err := m.Schema.Value.VisitJSON(e.Value.Value, formats(), openapi3.MultiErrors()); err != nil {
					t.Errorf("%s %s, example %s: %v", at, kind, name, err)
				}
				if text, _ := json.Marshal(e.Value.Value); noNull(text, http.Header{"Content-Type": {"json"}}) != nil {
					t.Errorf("%s %s, example %s: it contains null", at, kind, name)
				}
			}
		}
	}
	for path, item := range s.Doc.Paths.Map() {
		for method, op := range item.Operations() {
			at := method + " " + path
			if op.RequestBody != nil {
				check(at, op.RequestBody.Value.Content)
				if before := n; method != "DELETE" && len(op.RequestBody.Value.Content["application/json"].Examples) == 0 {
					t.Errorf("%s: the body has no example (%d)", at, before)
				}
			}
			answered := 0
			for status, r := range op.Responses.Map() {
				before := n
				check(at+" "+status, r.Value.Content)
				answered += n - before
			}
			if answered == 0 && op.Responses.Status(204) == nil {
				t.Errorf("%s: no answer has an example", at)
			}
		}
	}
	for _, item := range s.Doc.Webhooks {
		check("webhook", item.Post.RequestBody.Value.Content)
	}
	if n < 90 {
		t.Errorf("there are only %d examples", n)
	}
}

const problem = `{"type":"/docs#error-%s","title":%q,"status":%d,"code":%q,"request_id":"req_1"}`

// Each planted difference is found.
func TestWrap_Differences(t *testing.T) {
	s := New(t)
	account := `{"id":"123","version":1,"email":"ada@example.com","time_zone":"UTC","created_at":"2027-01-10T09:00:00.000Z"%s}`
	notFound := fmt.Sprintf(problem, "not_found", "There is no such object", 404, "not_found")
	for _, x := range []struct {
		name, method, path, asked string
		status                    int
		answer, want              string // want "": no difference
	}{
		{"fits", "GET", "/v1/accounts/123", "", 200, fmt.Sprintf(account, ""), ""},
		{"undocumented member", "GET", "/v1/accounts/123", "", 200, fmt.Sprintf(account, `,"secret":"x"`), "secret"},
		{"null", "GET", "/v1/accounts/123", "", 200, fmt.Sprintf(account, `,"name":null`), "null"},
		{"missing member", "GET", "/v1/accounts/123", "", 200, `{"id":"123"}`, "email"},
		{"time without milliseconds", "GET", "/v1/accounts/123", "", 200, strings.Replace(fmt.Sprintf(account, ""), ".000Z", "Z", 1), "created_at"},
		{"undocumented status", "GET", "/v1/accounts/123", "", 418, notFound, "status is not supported"},
		{"problem", "GET", "/v1/accounts/123", "", 404, notFound, ""},
		{"another status", "GET", "/v1/accounts/123", "", 412, fmt.Sprintf(problem, "version", "The object has changed", 412, "version"), "status is not supported"},
		{"unknown code", "GET", "/v1/accounts/123", "", 404, fmt.Sprintf(problem, "gone", "Gone", 404, "gone"), "gone"},
		{"another title", "GET", "/v1/accounts/123", "", 404, fmt.Sprintf(problem, "not_found", "Nothing here", 404, "not_found"), "Nothing here"},
		{"code of another operation", "GET", "/v1/accounts/123", "", 404, fmt.Sprintf(problem, "key", codeTitle(t, s, "key"), 404, "key"), "not among"},
		{"no such operation", "GET", "/v1/nothing", "", 200, `{}`, "no such operation"},
		{"no such path", "GET", "/v1/nothing", "", 404, fmt.Sprintf(problem, "no_route", codeTitle(t, s, "no_route"), 404, "no_route"), ""},
		{"accepted although refused", "PATCH", "/v1/accounts/123", `{"colour":"red"}`, 200, fmt.Sprintf(account, ""), "colour"},
		{"unknown parameter", "GET", "/v1/accounts/123?limit=3", "", 200, fmt.Sprintf(account, ""), "limit"},
		{"parameter of another form", "GET", "/v1/runs?kind=none", "", 200, `{"data":[],"has_more":false}`, "kind"},
		{"elsewhere", "GET", "/healthz", "", 200, `{"status":null}`, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			found := &recorder{TB: t}
			h := s.Wrap(found, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = r.Body.Read(make([]byte, 1000))
				w.Header().Set("Request-Id", "req_1")
				w.Header().Set("Cache-Control", "no-store")
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Content-Type", "application/json")
				if x.status >= 400 {
					w.Header().Set("Content-Type", problemType)
				}
				w.WriteHeader(x.status)
				_, _ = w.Write([]byte(x.answer))
			}))
			r := httptest.NewRequest(x.method, x.path, strings.NewReader(x.asked))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(httptest.NewRecorder(), r)
			if (x.want == "") != (found.text == "") || !strings.Contains(found.text, x.want) {
				t.Errorf("got %q, want %q", found.text, x.want)
			}
		})
	}
}

func codeTitle(t *testing.T, s *Spec, code string) string {
	t.Helper()
	all := s.Doc.Components.Schemas["Problem"].Value.Extensions["x-codes"].(map[string]any)
	return all[code].(map[string]any)["title"].(string)
}

// A recorder keeps errors instead of failing the test.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Error(args ...any) { r.text += fmt.Sprint(args...) }

func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) + "\n" }

// A route that openapi.json does not have, or has otherwise, is found, and so is an operation without one.
func TestRoutes_Differences(t *testing.T) {
	s := New(t)
	for _, x := range []struct {
		route web.Route
		whole bool
		want  string
	}{
		{web.Route{Operation: "getAccount", Pattern: "GET /v1/accounts/{id}", Scope: key.Read}, false, ""},
		{web.Route{Operation: "getAccount", Pattern: "GET /v1/accounts/{id}", Scope: key.Write}, false, "getAccount"},
		{web.Route{Operation: "getAccount", Pattern: "PUT /v1/accounts/{id}", Scope: key.Read}, false, "getAccount"},
		{web.Route{Operation: "getAccount", Pattern: "GET /v1/accounts/{id}", Scope: key.Read, Merchants: true}, false, "getAccount"},
		{web.Route{Operation: "dropAccount", Pattern: "GET /v1/accounts/{id}", Scope: key.Read}, false, "no operation dropAccount"},
		{web.Route{Operation: "getAccount", Pattern: "GET /v1/accounts/{id}", Scope: key.Read}, true, "createRefund of openapi.json has no route"},
	} {
		found := &recorder{TB: t}
		s.Routes(found, []web.Route{x.route}, x.whole)
		if (x.want == "") != (found.text == "") || !strings.Contains(found.text, x.want) {
			t.Errorf("%+v: got %q", x.route, found.text)
		}
	}
}
