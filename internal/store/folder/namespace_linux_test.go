package folder_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKilledAsPID1: a process that is pid 1 of its namespace, as in a container, is killed while it
// holds the folder. The next one, pid 1 too, takes it at once, though HOLDER names pid 1 still.
func TestKilledAsPID1(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		c := exec.CommandContext(t.Context(), executable(t))
		c.Env = append(os.Environ(), worker+"="+dir)
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
			c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
			c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); errors.Is(err, syscall.EPERM) {
			t.Skip("this system lets nobody make a namespace of processes")
		} else if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		held := false
		for !held && lines.Scan() {
			held = strings.HasSuffix(lines.Text(), "true")
		}
		if !held {
			t.Error("the folder was not taken")
		}
		holder, err := os.ReadFile(filepath.Join(dir, "HOLDER"))
		if err != nil || !strings.Contains(string(holder), "(pid 1 on host ") ||
			!strings.Contains(string(holder), ", namespace pid:[") || !strings.Contains(string(holder), ", boot ") {
			t.Errorf("HOLDER is %q, %v", holder, err)
		}
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // until it has ended
		}
		_ = c.Wait() // it was killed
	}
}
