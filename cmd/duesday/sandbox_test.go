package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/soaktest"
)

// serve runs duesday sandbox until stop, which returns what it printed besides its first
// line, and its exit code.
func (c *cli) serve(args ...string) (first string, stop func() result) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	read, write := io.Pipe()
	var errors strings.Builder
	p := newProgram(func(name string) string { return c.env[name] }, strings.NewReader(""), write, &errors,
		c.clock.Now)
	done := make(chan int, 1)
	go func() {
		done <- p.run(ctx, append([]string{"sandbox"}, args...))
		write.Close()
	}()
	out := bufio.NewReader(read)
	first, err := out.ReadString('\n')
	if err != nil {
		cancel()
		c.t.Fatalf("duesday sandbox %s: exit %d, %s", strings.Join(args, " "), <-done, errors.String())
	}
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(out)
		rest <- string(text)
	}()
	return first, sync.OnceValue(func() result {
		cancel()
		code := <-done
		return result{code, <-rest, errors.String()}
	})
}

func (c *cli) serveJSON(args ...string) (url string, stop func() result) {
	c.t.Helper()
	first, stop := c.serve(append(args, "--listen", "127.0.0.1:0", "--json")...)
	c.t.Cleanup(func() { stop() })
	v := decode(c.t, first).(map[string]any)
	equal(c.t, "processor", v["processor"], fmt.Sprint("sandbox:http://", v["address"]))
	return v["processor"].(string), stop
}

// TestSandbox_Shared has two stores charge through one ledger, at the same time: one by the server's
// address, one by the file that the server holds.
func TestSandbox_Shared(t *testing.T) {
	c := newCLI(t)
	url, stop := c.serveJSON()
	const file = "sandbox:./duesday-sandbox.jsonl"
	var wg sync.WaitGroup
	for name, url := range map[string]string{"a": url, "b": file} {
		folder := []string{"--store", "pebble:./" + name, "--mail", "./" + name + "-mail", "--processor", url}
		c.must(append([]string{"import", c.file(name+".csv", smallBook)}, folder...)...)
		wg.Go(func() {
			r := c.run(append([]string{"run", "payments", "--json"}, folder...)...)
			var o map[string]any
			if err := json.Unmarshal([]byte(r.out), &o); err != nil || r.code != exitPerson {
				t.Errorf("%s: exit %d, %s%s", name, r.code, r.out, r.errors)
				return
			}
			equal(t, name, members(o, "due", "paid", "retry", "failed", "pending"), []any{5, 2, 1, 1, 1})
		})
	}
	wg.Wait()
	for _, name := range []string{"a", "b"} {
		for _, url := range []string{url, file} {
			verify := []string{"verify", "--store", "pebble:./" + name, "--processor", url}
			audit := c.object(exitFailed, verify...)
			equal(t, "audit of "+name, members(audit, "ok", "receipts", "charges", "foreign"), []any{false, 2, 2, 2})
			for _, x := range audit["problems"].([]any) {
				equal(t, "problem", x.(map[string]any)["kind"], "charged by another installation")
			}
			equal(t, "reconcile", c.object(exitDone, "reconcile", "--store", "pebble:./"+name, "--processor", url)["adopted"], 0)
		}
	}
	r := c.run("verify", "--store", "pebble:./a", "--processor", file+"?lost=0.1")
	if r.code != exitFailed {
		t.Errorf("other parameters than the holder's: exit %d, %s", r.code, r.out)
	}
	contains(t, r.errors, "cannot be shared", "duesday sandbox", "lost 0.1")
	equal(t, "stop", stop(), result{code: exitDone})
	if n := strings.Count(c.read("duesday-sandbox.jsonl"), `"outcome":"succeeded"`); n != 4 {
		t.Errorf("%d charges in the ledger, want 4", n)
	}
	r = c.run("run", "payments", "--store", "pebble:./a", "--processor", url)
	if r.code != exitFailed {
		t.Errorf("a run without its processor: exit %d, %s", r.code, r.out)
	}
	contains(t, r.errors, "no sandbox is served at "+strings.TrimPrefix(url, "sandbox:"))
	equal(t, "the file is free again", c.object(exitFailed, "verify", "--store", "pebble:./a")["charges"], 2)
}

// The demo lives through its months with the server's ledger as with a file.
func TestSandbox_Demo(t *testing.T) {
	c := newCLI(t)
	url, _ := c.serveJSON("--processor", "sandbox:./sub/ledger.jsonl?latency=1us")
	o := c.object(exitDone, "demo", "--accounts", "20", "--months", "1", "--processor", url)
	equal(t, "demo", members(o, "ok", "processor"), []any{true, url})
	c.read("sub/ledger.jsonl")
}

func TestSandbox_SaysHowToUseIt(t *testing.T) {
	c := newCLI(t)
	first, stop := c.serve("--listen", "127.0.0.1:0", "--processor", "sandbox:")
	contains(t, first, "sandbox: is served at 127.0.0.1:", "use it with --processor sandbox:http://127.0.0.1:")
	equal(t, "stop", stop(), result{code: exitDone})

	first, stop = c.serve("--listen", ":0", "--processor", "sandbox:")
	contains(t, first, "--processor sandbox:http://localhost:")
	contains(t, stop().errors, "no password")
}

func TestSandbox_Wrong(t *testing.T) {
	c := newCLI(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, x := range []struct {
		line, want string
		code       int
	}{
		{"sandbox extra", "takes no argument", exitUsage},
		{"sandbox --listen 12121", "--listen \"12121\": want HOST:PORT", exitUsage},
		{"sandbox --processor sandbox:http://127.0.0.1:1", "wants the ledger's file", exitUsage},
		{"sandbox --processor sandbox:x?lost=2", "a rate from 0 to 1", exitUsage},
		{"sandbox --listen " + taken.Addr().String(), "in use", exitFailed},
		{"demo --store mem: --processor sandbox:http://127.0.0.1:1?lost=1", "parameters belong to the server", exitUsage},
		{"demo --store mem: --processor sandbox:http://127.0.0.1", "want sandbox:http://HOST:PORT", exitUsage},
		{"demo --store mem: --processor http://127.0.0.1:1", "sandbox:http://HOST:PORT", exitUsage},
	} {
		r := c.run(strings.Fields(x.line)...)
		if r.code != x.code || r.out != "" {
			t.Errorf("duesday %s: exit %d, %s%s", x.line, r.code, r.out, r.errors)
		}
		contains(t, r.errors, x.want)
	}
}

// TestSandbox_KillNine has two processes charge through the ledger of a third, one by its address and
// one by the file. The third is killed with SIGKILL at random moments, whether it holds the file or not,
// and started again. In the end every subscription is charged exactly once.
func TestSandbox_KillNine(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 10))
	many := soaktest.Cases(t, 0, killSubscriptions*2/5, killSubscriptions)
	ledger := filepath.Join(dir, "ledger.jsonl")
	server, address := startServer(t, ledger, "127.0.0.1:0")
	stores := []string{"a", "b"}
	command := func(store string, args ...string) *exec.Cmd {
		processor := map[string]string{"a": "sandbox:http://" + address, "b": "sandbox:" + ledger}[store]
		c := process(t, nil, append(args, "--json", "--store", "pebble:"+filepath.Join(dir, store),
			"--processor", processor, "--mail", filepath.Join(dir, store+"-mail"))...)
		c.Stderr = nil
		return c
	}
	for i, store := range stores {
		mustRun(t, command(store, "import",
			dueBook(t, filepath.Join(dir, fmt.Sprint(i, ".csv")), 3, i, many, 2, "pm_card_visa",
				"pm_sandbox_timeout")))
	}
	for range 3 {
		var wg sync.WaitGroup
		for _, store := range stores {
			wg.Go(func() { _ = command(store, "run", "payments").Run() }) // with or without success
		}
		timer := time.AfterFunc(time.Duration(20+random.IntN(many*2/5))*time.Millisecond, func() { _ = server.Process.Kill() })
		_ = server.Wait()
		timer.Stop()
		wg.Wait()
		server, address = startServer(t, ledger, address)
	}
	for _, store := range stores {
		mustRun(t, command(store, "run", "payments"))
		mustRun(t, command(store, "verify"))
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server, interrupted: %v", err)
	}
	checkLedger(t, ledger, many)
}

// startServer starts a process and waits until it says where it can be reached.
func startServer(t *testing.T, ledger, listen string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	c := process(t, env, "sandbox", "--json", "--listen", listen, "--processor", "sandbox:"+ledger)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	var v struct{ Address string }
	if err := json.NewDecoder(out).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return c, v.Address
}
