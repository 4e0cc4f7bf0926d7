package spectest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Examples sends examples from openapi.json to a handler, one for each call of Send.
type Examples struct {
	Spec    *Spec
	Handler http.Handler
	Key     func(scope string) string // returns an API key of the scope
	Scopes  map[string]string         // scopes of examples that need more than their operation's, such as createRun/verify
	Instead map[string]string         // replacements for IDs in examples, which the server generates
	Values  map[string]string         // values of path and required query parameters; ?NAME: of an optional one

	sent map[string]bool
}

// Send sends the named example of the operation's body, or no body if the name is "". It returns the
// response, which must be a success and match openapi.json.
func (e *Examples) Send(t testing.TB, operation, example string) map[string]any {
	t.Helper()
	method, path, op := e.Spec.find(operation)
	if op == nil {
		t.Fatalf("openapi.json has no operation %s", operation)
	}
	var asked []byte
	if body := op.RequestBody; example != "" {
		x := body.Value.Content["application/json"].Examples[example]
		if x == nil {
			t.Fatalf("%s has no example %s", operation, example)
		}
		asked, _ = json.Marshal(x.Value.Value)
		for from, to := range e.Instead {
			asked = bytes.ReplaceAll(asked, []byte(from), []byte(to))
		}
	}
	query := url.Values{}
	for _, p := range op.Parameters {
		value, ok := e.Values[p.Value.Name]
		optional, given := e.Values["?"+p.Value.Name]
		switch in := p.Value.In; {
		case in == openapi3.ParameterInPath && ok:
			path = strings.Replace(path, "{"+p.Value.Name+"}", url.PathEscape(value), 1)
		case in == openapi3.ParameterInQuery && ok && p.Value.Required:
			query.Set(p.Value.Name, value)
		case in == openapi3.ParameterInQuery && given:
			query.Set(p.Value.Name, optional)
		case (in == openapi3.ParameterInPath || in == openapi3.ParameterInQuery) && p.Value.Required:
			t.Fatalf("%s: parameter %s has no value", operation, p.Value.Name)
		}
	}
	r := httptest.NewRequest(method, path+"?"+query.Encode(), bytes.NewReader(asked))
	r.Header.Set("Authorization", "Bearer "+e.Key(cmp.Or(e.Scopes[operation+"/"+example], (*op.Security)[0]["apiKey"][0])))
	if asked != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if e.sent == nil {
		e.sent = map[string]bool{}
	}
	if op.Parameters.GetByInAndName(openapi3.ParameterInHeader, "Idempotency-Key") != nil {
		r.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", operation, len(e.sent)))
	}
	w := httptest.NewRecorder()
	e.Spec.Wrap(t, e.Handler).ServeHTTP(w, r)
	if w.Code >= http.StatusMultipleChoices {
		t.Errorf("%s, example %q: %d %s", operation, example, w.Code, w.Body)
	}
	e.sent[operation+"/"+example] = true
	var answer map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &answer) // a deletion has no response body
	return answer
}

// Rest returns the examples, and the operations without a body, that were not sent.
func (e *Examples) Rest() []string {
	all := map[string]bool{}
	for _, item := range e.Spec.Doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody == nil {
				all[op.OperationID+"/"] = true
				continue
			}
			for name := range op.RequestBody.Value.Content["application/json"].Examples {
				all[op.OperationID+"/"+name] = true
			}
		}
	}
	maps.DeleteFunc(all, func(name string, _ bool) bool { return e.sent[name] })
	return slices.Sorted(maps.Keys(all))
}

// find returns an operation by its ID.
func (s *Spec) find(id string) (method, path string, op *openapi3.Operation) {
	for path, item := range s.Doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == id {
				return method, path, op
			}
		}
	}
	return "", "", nil
}
