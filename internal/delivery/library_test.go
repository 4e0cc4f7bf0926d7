package delivery

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/npmtest"
)

// The library of Standard Webhooks and what it needs, as npm packages with their sums.
var library = map[string]npmtest.Package{
	"standardwebhooks": {Spec: "standardwebhooks@1.1.1", File: "standardwebhooks-1.1.1.tgz",
		Sum: "6c26d7f5913216458fb11cfb065dcdb90509a219b01927afff286beef85a18f95ce007c8aeca4845ae9c3d306e23522d9ab4c327877f4b6842b1f7b8faf4069d"},
	"@stablelib/base64": {Spec: "@stablelib/base64@1.0.1", File: "stablelib-base64-1.0.1.tgz",
		Sum: "d5b9cf42a4b14ae737222e8c841caca160a0e7c8fdeda523b82499ac64a60f136ab72b488b493cbad51e9c0c1364de15e665d7606b15508f73781ab2fa304e49"},
	"fast-sha256": {Spec: "fast-sha256@1.3.0", File: "fast-sha256-1.3.0.tgz",
		Sum: "9f5d5118ffe5ad610523f6d677280bc6123ea557a8d59608570bef3e45bb6b397facecbe1771d8459d8ae73784f669a4850a69caff6c405c7424cf5469b9e93d"},
}

// judge verifies each request of its standard input, and prints the ids of those that hold.
const judge = `
const { Webhook } = require("standardwebhooks");
for (const r of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  try {
    new Webhook(r.secret).verify(r.body, r.headers);
    console.log(r.name + " verified");
  } catch (e) {
    console.log(r.name + " " + e.message);
  }
}`

// TestLibrary: the library of the project Standard Webhooks verifies what an endpoint receives, also during
// a rotation, and nothing that was changed.
func TestLibrary(t *testing.T) {
	dir := installLibrary(t)
	w := newWorld(t)
	w.pass(time.Since(w.clock())) // the library compares the timestamp with this machine's clock
	r := newReceiver(t, nil)
	e := w.create(r.URL)
	w.pass(-10 * time.Second)
	x := w.sender()
	w.cause("a", "period.paid")
	w.drain(x)
	rotated, err := w.Rotate(t.Context(), e.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	w.cause("b", "period.failed")
	w.drain(x)
	type signed struct {
		Name    string            `json:"name"`
		Secret  string            `json:"secret"`
		Body    string            `json:"body"`
		Headers map[string]string `json:"headers"`
	}
	of := func(name string, n int, secret string) signed {
		got, headers := r.requests()[n], map[string]string{}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			headers[name] = got.Get(name)
		}
		return signed{name, secret, got.body, headers}
	}
	changed := of("changed", 0, e.Secret.Reveal())
	changed.Body = strings.Replace(changed.Body, "2", "3", 1)
	input, err := json.Marshal([]signed{of("first", 0, e.Secret.Reveal()), of("old", 1, e.Secret.Reveal()), of("new", 1, rotated.Secret.Reveal()),
		of("early", 0, rotated.Secret.Reveal()), changed})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("node", "-e", judge)
	c.Dir, c.Stdin = dir, bytes.NewReader(input)
	out, err := c.CombinedOutput()
	want := "first verified\nold verified\nnew verified\nearly No matching signature found\nchanged No matching signature found\n"
	if err != nil || string(out) != want {
		t.Errorf("got %s, %v; want %s", out, err, want)
	}
}

// installLibrary returns a folder in which Node finds the library. Without npm the test is skipped; under
// CI=true it fails.
func installLibrary(t *testing.T) (dir string) {
	dir = t.TempDir()
	_, err := exec.LookPath("node")
	for name, p := range library {
		if err == nil {
			err = install(p, filepath.Join(dir, "node_modules", name))
		}
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("SKIPPED, NOT TESTED with the library of Standard Webhooks: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// install unpacks the package into the folder.
func install(p npmtest.Package, to string) error {
	return p.Each(func(name string, content []byte) error {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o600)
	})
}
