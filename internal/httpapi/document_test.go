package httpapi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocument_HasEveryRouteAndCode reads them out of the source: what callers read has to name each.
func TestDocument_HasEveryRouteAndCode(t *testing.T) {
	var pages strings.Builder
	for _, name := range []string{"../../docs/api.md", "../../docs/tracking.md", "../openapi/openapi.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	conventions, err := filepath.Glob("../web/*.go")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`"((?:GET|POST|PUT|DELETE) /[^"]*)"`)
	code := regexp.MustCompile(`(?:http\.Status\w+, (?:Code: )?|code\w+\s*= |Status\w+, Code: )"([a-z_]+)"`)
	found := map[string]bool{}
	for _, name := range append(files, conventions...) {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "doc.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range append(route.FindAllStringSubmatch(string(text), -1),
			code.FindAllStringSubmatch(string(text), -1)...) {
			found[x[1]] = true
			word := x[1][strings.LastIndexByte(x[1], ' ')+1:] // a route's path
			if !strings.Contains(pages.String(), "`"+word+"`") && !strings.Contains(pages.String(), `"`+word+`"`) {
				t.Errorf("%s: no page names %s", name, x[1])
			}
		}
	}
	if !found["POST /v1/purchases"] || !found["GET /v1/payments"] || !found["unregistered"] || !found["unknown"] ||
		!found["signature"] || len(found) < 28 {
		t.Errorf("this finds %d routes and codes only, and tells nothing: %v", len(found), found)
	}
}
