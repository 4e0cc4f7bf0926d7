package stripefake

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStranger: a module whose tests import stripefake needs no other module: neither in its go.mod
// and go.sum, nor from a proxy, nor in its vendor folder. go mod tidy also reads the tests of the packages
// that a module imports, so they import no other module either: internal/librarytest has the tests that do.
func TestStranger(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/shop\n\ngo 1.26.0\n\nrequire github.com/duesday/duesday v0.0.0\n\n"+
		"replace github.com/duesday/duesday => "+root+"\n")
	write("shop_test.go", "package shop\n\nimport (\n\t\"testing\"\n\n\t\"github.com/duesday/duesday/stripefake\"\n)\n\n"+
		"func TestShop(t *testing.T) { stripefake.Start(t) }\n")
	play := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod -modcacherw", "GOWORK=off",
			"GOMODCACHE="+filepath.Join(dir, "cache"))
		text, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, text)
		}
		return string(text)
	}
	play("mod", "tidy")
	if sums, err := os.ReadFile(filepath.Join(dir, "go.sum")); err == nil && len(sums) > 0 {
		t.Errorf("go.sum must be empty (got %s)", sums)
	}
	if mod := play("mod", "edit", "-json"); strings.Count(mod, `"Version"`) != 1 {
		t.Errorf("go.mod must require this module only (got %s)", mod)
	}
	play("vet", "./...")
	play("mod", "vendor")
	others, err := filepath.Glob(filepath.Join(dir, "vendor", "*", "*"))
	if err != nil || len(others) != 1 {
		t.Errorf("vendor must have this module only (got %v, %v)", others, err)
	}
}
