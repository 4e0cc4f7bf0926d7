package pebblestore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

const holdStore = "DUESDAY_TEST_HOLD_STORE"

// TestMain lets the test binary be the second process: it opens the store that the
// environment names, says so, and holds it until its input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv(holdStore)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Open(dir, Options{Tables: crashTables(), Holder: "duesday run payments", tune: small})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	o := Options{Tables: crashTables(), Create: true}
	if err := openTest(t, dir, o).Close(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.CommandContext(t.Context(), exe)
	holder.Env = append(os.Environ(), holdStore+"="+dir)
	holder.Stderr = os.Stderr
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the second process says %q, %v", line, err)
	}

	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil { // the lock on the folder itself decides
		t.Fatal(err)
	}
	_, err = Open(dir, o)
	if !errors.Is(err, store.ErrLocked) {
		t.Fatalf("Open of a store in use: %v, want ErrLocked", err)
	}
	for _, want := range []string{
		"store " + dir + ` is in use by "duesday run payments"`, fmt.Sprintf("pid %d on host ", holder.Process.Pid),
		"; wait until it ends, or stop it",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not contain %q", err, want)
		}
	}

	_ = in.Close()
	if err := holder.Wait(); err != nil {
		t.Errorf("the second process: %v", err)
	}
	if err := openTest(t, dir, o).Close(); err != nil {
		t.Error(err)
	}
}

// Pebble's lock is the process's, and a folder has many names.
func TestSecondOpenInOneProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	o := Options{Tables: crashTables(), Create: true, Holder: "this test"}
	s := openTest(t, dir, o)
	for _, name := range []string{dir, link, ".", dir + "/../" + filepath.Base(dir)} {
		if second, err := Open(name, o); !errors.Is(err, store.ErrLocked) || second != nil {
			t.Errorf("Open(%q) of an open store: %v, want ErrLocked", name, err)
		} else if !strings.Contains(err.Error(), `"this test" (pid `) {
			t.Errorf("Open(%q) does not say who holds the store: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := openTest(t, link, o).Close(); err != nil {
		t.Error(err)
	}

	// A .. after a link is the parent of the folder that the link names, as for the operating system.
	below, other := filepath.Join(dir, "below"), filepath.Join(t.TempDir(), "store")
	for _, folder := range []string{below, other} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(filepath.Dir(other), "current")
	if err := os.Symlink(below, current); err != nil {
		t.Fatal(err)
	}
	away := o
	away.Create = false
	if err := openTest(t, current+"/..", away).Close(); err != nil {
		t.Error(err)
	}
	if made, err := os.ReadDir(filepath.Dir(other)); err != nil || len(made) != 2 {
		t.Errorf("beside the link: %v, %v; want current and store alone", made, err)
	}

	mem := vfs.NewMem()
	s = openTest(t, "store", Options{FS: mem, Create: true})
	if _, err := Open("store", Options{FS: mem, Create: true}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("Open of an open store in memory: %v, want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
