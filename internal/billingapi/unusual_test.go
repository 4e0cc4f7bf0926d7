package billingapi_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/duesday/duesday/internal/billingapi"
	"github.com/duesday/duesday/internal/test/spectest"
)

// TestRoutes_UnusualBodies: a route carries out a body that means the same as a usual one. It refuses an unknown
// member and a wrong type by name. No body is a failure of the server, and no value comes back.
func TestRoutes_UnusualBodies(t *testing.T) {
	statuses := map[int]int{}
	for _, to := range billingapi.Routes(billingapi.Options{}) {
		method, path := splitPattern(to.Pattern)
		w := newWorld(t)
		op := w.spec.Doc.Paths.Find(strings.TrimPrefix(to.Pattern, method+" ")).GetOperation(method)
		if op.RequestBody == nil {
			continue
		}
		begin := func() {
			w = newWorld(t)
			w.signUp(visa)
			w.must("POST", subscription+"/charge", `{}`)
		}
		kind := op.RequestBody.Value.Content["application/json"]
		members := slices.Sorted(maps.Keys(kind.Schema.Value.Properties))
		for _, name := range slices.Sorted(maps.Keys(kind.Examples)) {
			usual := 0
			begin()
			for i, u := range spectest.UnusualBodies(kind.Examples[name].Value.Value.(map[string]any), members) {
				if testing.Short() && i%5 > 0 && !u.Same {
					continue
				}
				if u.Same && usual != 0 {
					begin()
				}
				a := w.ask("admin", method, path, fmt.Sprint("unusual ", i), u.Text)
				if usual == 0 {
					usual = a.status
				}
				statuses[a.status]++
				named := slices.ContainsFunc(strings.Split(a.names(), " "), func(n string) bool {
					return n == u.Member || strings.HasPrefix(n, u.Member+"/")
				})
				unknown, schema := u.Member == "#", kind.Schema.Value.Properties[u.Member]
				if a.status >= 500 || u.Same && a.status != usual || unknown && !named || schema != nil && !u.IsOf(schema.Value) && !named ||
					a.body["code"] == "field" && a.names() == "" {
					t.Errorf("%s %s %.300s: %d %s, and the usual one %d", to.Operation, name, u.Text, a.status, a.text, usual)
				}
			}
		}
	}
	t.Log(statuses)
}

// TestRoutes_UnusualParameters: no parameter, in the query or in the path, is a failure of the server.
func TestRoutes_UnusualParameters(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("POST", subscription+"/charge", `{}`)
	for _, to := range billingapi.Routes(billingapi.Options{}) {
		pattern := to.Pattern
		method, path := splitPattern(pattern)
		op := w.spec.Doc.Paths.Find(strings.TrimPrefix(pattern, method+" ")).GetOperation(method)
		for _, p := range op.Parameters {
			in := p.Value.In
			if in != openapi3.ParameterInPath && in != openapi3.ParameterInQuery {
				continue
			}
			for i, value := range []string{"", " ", "\x00", "\xff", "1e2", "-0", "-1", "+1", "01", "9223372036854775808", "İ", "\u202e", "../..", "%00", "null",
				"2027-02-30", "0000-01-01", "9999-12-31", "10000-01-01", "0000-00", "9999-12", "#", "a#b", strings.Repeat("é", 2000)} {
				to, body, key := path+"?"+p.Value.Name+"="+url.QueryEscape(value), "", ""
				if in == openapi3.ParameterInPath {
					_, to, _ = strings.Cut(strings.Replace(pattern, "{"+p.Value.Name+"}", url.PathEscape(value), 1), " ")
					_, to = splitPattern(" " + to)
				}
				if method != "GET" && method != "DELETE" {
					body, key = `{}`, fmt.Sprint(op.OperationID, p.Value.Name, i)
				}
				if a := w.ask("admin", method, to, key, body); a.status >= 500 || a.status == 422 && a.names() == "" {
					t.Errorf("%s %s=%.60q: %d %s", op.OperationID, p.Value.Name, value, a.status, a.text)
				}
			}
		}
	}
}
