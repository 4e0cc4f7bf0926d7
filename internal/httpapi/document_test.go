package httpapi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocument_HasEveryRouteAndCode reads them out of the source: the page that callers read has
// to name each.
func TestDocument_HasEveryRouteAndCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
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
			if !strings.Contains(string(page), "`"+x[1]) {
				t.Errorf("%s: docs/http.md does not name %s", name, x[1])
			}
		}
	}
	if !found["POST /v1/purchases"] || !found["GET /v1/payments"] || !found["unregistered"] || !found["unknown"] ||
		!found["signature"] || len(found) < 28 {
		t.Errorf("this finds %d routes and codes only, and tells nothing: %v", len(found), found)
	}
}
