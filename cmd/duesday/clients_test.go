package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/openapi"
)

// client copies the sources of a client program to a folder of its own, with openapi.json.
func client(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), []byte(openapi.Text()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// do runs a program in the folder, and returns what it prints.
func do(t *testing.T, dir string, program ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program[0], program[1:]...)
	c.Dir = dir
	out, err := c.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Logf("%s: %s%s", strings.Join(program, " "), out, e.Stderr)
	}
	return string(out), err
}

// pays runs a client program against duesday serve with the sandbox. It signs a customer up and pays the
// period that is due.
func pays(c *cli, dir string, program ...string) {
	t := c.t
	t.Helper()
	v, stop := c.serveBy(c.clock.Now)
	key := c.object(exitDone, "key", "create", "client", "--scope", "charge")["key"].(string)
	out, err := do(t, dir, append(program, v.APIBase, key, strconv.Itoa(c.clock.Now().UTC().Day()))...)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "paid", decode(t, out), any(map[string]any{"outcome": "paid", "receipts": []any{[]any{1299.0, "EUR"}}}))
	equal(t, "exit", stop().code, exitDone)
	c.must("verify")
}

// lacks skips the test because a tool cannot be had, except under CI.
func lacks(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip("SKIPPED: " + what)
}

// TestClients_Go: oapi-codegen generates a client that compiles and pays. testdata/client-go/go.mod pins it.
func TestClients_Go(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a generated client")
	}
	c := newCLI(t)
	dir := client(t, "client-go")
	if _, err := do(t, dir, "go", "mod", "download"); err != nil {
		lacks(t, "the Go module proxy did not give oapi-codegen")
	}
	if err := os.Mkdir(filepath.Join(dir, "duesday"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][]string{{"tool", "oapi-codegen", "-config", "generate.yaml", "openapi.json"}, {"build", "-o", "client", "."}} {
		if _, err := do(t, dir, append([]string{"go"}, step...)...); err != nil {
			t.Fatal(err)
		}
	}
	pays(c, dir, filepath.Join(dir, "client"))
}

// TestClients_TypeScript: openapi-typescript generates types with which a program of openapi-fetch compiles,
// and the program pays. testdata/client-ts/package-lock.json pins all three.
func TestClients_TypeScript(t *testing.T) {
	if testing.Short() {
		t.Skip("it fetches packages and compiles a generated client")
	}
	c := newCLI(t)
	for _, tool := range []string{"npm", "node"} {
		if _, err := exec.LookPath(tool); err != nil {
			lacks(t, "there is no "+tool)
		}
	}
	dir := client(t, "client-ts")
	if _, err := do(t, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"); err != nil {
		lacks(t, "npm ci did not work")
	}
	for _, step := range [][]string{{"openapi-typescript", "openapi.json", "-o", "schema.d.ts"}, {"tsc"}} {
		if _, err := do(t, dir, append([]string{"npx", "--no-install"}, step...)...); err != nil {
			t.Fatal(err)
		}
	}
	pays(c, dir, "node", filepath.Join("built", "main.js"))
}
