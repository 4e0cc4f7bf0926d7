package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// envProduct makes the test binary behave as the product.
const envProduct = "DUESDAY_TEST_PRODUCT"

const envCache = "DUESDAY_CACHE"

// testCache is the cache of commands of tests in MiB: small in go test, and "", the default, in make check
// and in the soak. At the default, each command that opens a store allocates a log of 70 MB, and a file
// system in memory, such as /tmp on many systems, clears all of it.
func testCache() string {
	if soaktest.Checked() {
		return ""
	}
	return "32"
}

func TestMain(m *testing.M) {
	if os.Getenv(envProduct) != "" {
		main() // does not return
	}
	if ahead, err := time.ParseDuration(os.Getenv(envAhead)); err == nil {
		os.Exit(productAhead(ahead))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // at its default the collector was a quarter of the CPU
	}
	for _, pair := range dynamotest.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		os.Setenv(name, value)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0))) // most tests wait, for a server or a disk
	}
	os.Exit(m.Run())
}

// process returns a command of the product in a process of its own, with the environment of the
// test and these variables.
func process(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(append(os.Environ(), envProduct+"=1", envCache+"="+testCache()), env...)
	c.Stderr = os.Stderr
	return c
}

// mustRun runs the command to its end.
func mustRun(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if out, err := c.Output(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args[1:], err, out)
	}
}

// killed runs the command, kills it with SIGKILL once it is time, and reports whether that hit it.
func killed(t *testing.T, c *exec.Cmd, itIsTime func() bool) bool {
	t.Helper()
	hit, err := strike(t, c, itIsTime)
	if err != nil {
		t.Fatalf("%v: %v", c.Args[1:], err)
	}
	return hit
}

// strike is killed for a command that may fail: it returns the error of one that was not hit. It
// asks every other millisecond.
func strike(t *testing.T, c *exec.Cmd, itIsTime func() bool) (hit bool, err error) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if itIsTime() {
				_ = c.Process.Kill()
				return
			}
		}
	})
	err = c.Wait()
	close(ended)
	watching.Wait()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return true, nil
	}
	return false, err
}

// after reports whether so much time has passed since the call of after.
func after(d time.Duration) func() bool {
	begun := time.Now()
	return func() bool { return time.Since(begun) >= d }
}

// grown reports whether the file has so many bytes more than at the call of grown.
func grown(file string, bytes int64) func() bool {
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := size()
	return func() bool { return size() >= before+bytes }
}

// dueBook writes a book of n subscriptions that fell due so many days ago, with the methods in
// turn, from the first number on in steps.
func dueBook(t *testing.T, file string, daysAgo, first, n, step int, methods ...string) string {
	t.Helper()
	due := time.Now().UTC().AddDate(0, 0, -daysAgo)
	var csv strings.Builder
	csv.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date\n")
	for i := first; i < n; i += step {
		fmt.Fprintf(&csv, "a%d,a%d@example.com,s%d,gold,9.99,USD,%d,%s,%s\n", i, i, i, due.Day(),
			methods[i/step%len(methods)], due.Format(time.DateOnly))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
