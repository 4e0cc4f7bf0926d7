package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestListen: only the owner can reach a socket, in its own folder or in a private one. Nothing is
// left of it, and a dead socket is in nobody's way.
func TestListen(t *testing.T) {
	for _, name := range []string{"a.sock", strings.Repeat("a", 100)} {
		dir := t.TempDir()
		path, err := Path(dir, name)
		if err != nil || len(path) > longest {
			t.Fatalf("%s, %v", path, err)
		}
		if private := len(name) == 100; private != (filepath.Dir(path) != dir) {
			t.Errorf("%s for %s in %s", path, name, dir)
		}
		if filepath.Dir(path) == dir { // a killed holder's
			dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			dead.SetUnlinkOnClose(false)
			dead.Close()
			if _, err := Dial(t.Context(), path); err == nil {
				t.Error("a dead socket was reached")
			}
		}
		l, err := Listen(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || filepath.Dir(path) != dir && info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if _, err := Listen("elsewhere", path); err == nil {
			t.Error("a folder that is there was taken as a private one")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for _, gone := range []string{path, filepath.Dir(path)} {
			if _, err := os.Stat(gone); gone != dir && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left, %v", gone, err)
			}
		}
	}
}

// TestClear: of a killed holder's socket, the private folder is removed, and nothing else.
func TestClear(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.sock", strings.Repeat("a", 100)} {
		path, err := Path(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Listen(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		killed := l.(*listener).Listener.(*net.UnixListener)
		killed.SetUnlinkOnClose(false)
		if err := killed.Close(); err != nil {
			t.Fatal(err)
		}
		Clear(path)
		if _, err := os.Stat(filepath.Dir(path)); (err == nil) != (filepath.Dir(path) == dir) {
			t.Errorf("the folder of %s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "a.sock")); err != nil {
		t.Error(err)
	}
	victim := filepath.Join(os.TempDir(), filepath.Base(filepath.Dir(dir))+"-victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(victim)
	way, err := os.MkdirTemp("", "duesday-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(way)
	for _, path := range []string{way + "/../" + filepath.Base(victim), victim} {
		if Clear(path); os.Chmod(victim, 0o600) != nil {
			t.Errorf("%s was removed", path)
		}
	}
}

func TestHolder(t *testing.T) {
	var text strings.Builder
	if err := WriteHolder(&text, "duesday \"run\"\n", "/a/b.sock"); err != nil {
		t.Fatal(err)
	}
	who, at := ReadHolder(strings.NewReader(text.String()))
	if want := fmt.Sprintf("\"duesday \\\"run\\\"\\n\" (pid %d on host ", os.Getpid()); !strings.HasPrefix(who, want) ||
		at != "/a/b.sock" {
		t.Errorf("%s at %q, want %s", who, at, want)
	}
	for n := range text.Len() { // it is being written
		if who, at := ReadHolder(strings.NewReader(text.String()[:n])); at != "" {
			t.Errorf("%d bytes: %s at %q", n, who, at)
		}
	}
	if who, at := ReadHolder(strings.NewReader(strings.Repeat("x", 2000) + "\n/a\n")); who != Unnamed || at != "" {
		t.Errorf("%s at %q of no holder's file", who, at)
	}
}
