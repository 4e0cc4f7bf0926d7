//go:build !windows

package folder_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
)

// TestStopped: a holder that stands still, as after Ctrl-Z, fails its clients within 10 seconds and
// is named. When it goes on, so do they.
func TestStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), executable(t))
	c.Env = append(os.Environ(), worker+"="+dir)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasSuffix(lines.Text(), "true") {
	}
	client := open(t, dir, options(tables, nil))
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	fails := func(what string, err error, began time.Time) {
		t.Helper()
		if took := time.Since(began); took > 10*time.Second || !errors.Is(err, store.ErrLocked) ||
			!strings.Contains(err.Error(), fmt.Sprintf("pid %d", c.Process.Pid)) {
			t.Errorf("%s: %v after %s; want ErrLocked with the pid %d", what, err, took, c.Process.Pid)
		}
	}
	var began time.Time
	for err = store.ErrNotFound; errors.Is(err, store.ErrNotFound); { // until the signal has come
		began = time.Now()
		_, err = client.Get(t.Context(), "t", store.Key{PK: "x"})
	}
	fails("Get", err, began)
	began = time.Now()
	_, err = folder.Open(t.Context(), dir, options(tables, nil))
	fails("Open", err, began)
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "t", store.Key{PK: "x"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get = %v after the holder has gone on", err)
	}
	if err := errors.Join(client.Close(), c.Process.Kill()); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // until it has ended
	}
	_ = c.Wait() // it was killed
}
