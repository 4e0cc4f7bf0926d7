package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestServe_LimitFlags(t *testing.T) {
	c := newCLI(t)
	for flags, want := range map[string]string{
		"--max-connections 0":                 "--max-connections must be 1 or more (got 0)",
		"--max-connections 2000000000":        "must be at most ",
		"--trusted-proxy proxy.internal":      `--trusted-proxy must be an address or a CIDR block, such as 10.0.0.7 or 10.0.0.0/8 (got "proxy.internal")`,
		"--trusted-proxy 10.0.0.0/33":         `--trusted-proxy must be an address or a CIDR block, such as 10.0.0.7 or 10.0.0.0/8 (got "10.0.0.0/33")`,
		"--trusted-proxy ::ffff:10.0.0.0/104": `--trusted-proxy must be an address or a CIDR block, such as 10.0.0.7 or 10.0.0.0/8 (got "::ffff:10.0.0.0/104")`,
	} {
		r := c.run(append([]string{"serve"}, strings.Fields(flags)...)...)
		if r.code != exitUsage || !strings.Contains(r.errors, want) {
			t.Errorf("%s: exit %d, %s", flags, r.code, r.errors)
		}
	}
}

// TestServe_ManyConnections: more idle connections than the process may open files leave the store its
// own, and new callers are answered.
func TestServe_ManyConnections(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	store := "pebble:" + dir + "/data"
	serve := exec.Command("sh", "-c", `ulimit -n 300; exec "$0" "$@"`, self, "serve", "--create", "--json", "--api=", "--pages=", "--listen",
		"127.0.0.1:0", "--store", store, "--processor", "sandbox:"+dir+"/ledger", "--mail", dir+"/mail")
	serve.Env = append(os.Environ(), envProduct+"=1")
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	address := decode(t, line).(map[string]any)["address"].(string)
	for i := range 420 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 { // kept alive; the others never send anything
			fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
		}
	}
	// A backup flushes and copies the store, in the process that holds it.
	mustRun(t, process(t, nil, "store", "backup", "--to", dir+"/backup", "--store", store))
	r, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Errorf("/readyz: got %d", r.StatusCode)
	}
	if err := serve.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Error(err)
	}
}
