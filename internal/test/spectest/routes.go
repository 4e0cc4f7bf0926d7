package spectest

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/web"
)

// pathValue matches a parameter in a pattern. Parameter names do not matter.
var pathValue = regexp.MustCompile(`\{[^}]*\}`)

// Routes fails the test if the routes' patterns, operation IDs, scopes or use by merchants' keys differ from
// openapi.json. If whole is false, openapi.json may contain more operations.
func (s *Spec) Routes(t testing.TB, routes []web.Route, whole bool) {
	t.Helper()
	type fact struct {
		pattern, scope string
		merchants      bool
	}
	described := map[string]fact{}
	for path, item := range s.Doc.Paths.Map() {
		for method, op := range item.Operations() {
			described[op.OperationID] = fact{method + " " + pathValue.ReplaceAllString(path, "{}"), (*op.Security)[0]["apiKey"][0],
				op.Extensions["x-merchant-keys"] == true}
		}
	}
	for _, r := range routes {
		f := fact{pathValue.ReplaceAllString(r.Pattern, "{}"), string(r.Scope), r.Merchants}
		if got, ok := described[r.Operation]; !ok {
			t.Errorf("openapi.json has no operation %s, %s", r.Operation, r.Pattern)
		} else if got != f {
			t.Errorf("%s: the route is %v, and openapi.json has %v", r.Operation, f, got)
		}
		delete(described, r.Operation)
	}
	if whole {
		for _, id := range slices.Sorted(maps.Keys(described)) {
			t.Errorf("the operation %s of openapi.json has no route", id)
		}
	}
}

// Route returns the operation's route in openapi.json.
func (s *Spec) Route(id string) web.Route {
	method, path, op := s.find(id)
	return web.Route{Pattern: method + " " + path, Operation: id, Scope: key.Scope((*op.Security)[0]["apiKey"][0]),
		Merchants: op.Extensions["x-merchant-keys"] == true}
}
