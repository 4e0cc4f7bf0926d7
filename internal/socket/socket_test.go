package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
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
		post := Post{Held: dir, File: filepath.Join(dir, "HOLDER"), Holder: "test", Socket: path}
		l, err := Listen(post)
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
		if filepath.Dir(path) != dir {
			if _, err := Listen(post); err == nil {
				t.Error("a folder that is there was taken as a private one")
			}
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
		l, err := Listen(Post{Held: dir, File: filepath.Join(dir, "HOLDER"), Socket: path})
		if err != nil {
			t.Fatal(err)
		}
		close(l.(*listener).stop)
		if err := l.(*listener).now.Close(); err != nil {
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

// TestHolder: what a holder has written is read, and nothing of what someone has edited, or copied from
// another folder, or made in its place.
func TestHolder(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	post := Post{Held: dir, File: filepath.Join(dir, "HOLDER"), Holder: "duesday \"run\"\n", Socket: "/a/b.sock"}
	if err := post.Write(); err != nil {
		t.Fatal(err)
	}
	who, at := ReadHolder(post.File, dir)
	if want := fmt.Sprintf("\"duesday \\\"run\\\"\\n\" (pid %d on host ", os.Getpid()); !strings.HasPrefix(who, want) ||
		at != "/a/b.sock" {
		t.Errorf("%s at %q, want %s", who, at, want)
	}
	post.since = post.since.Add(-time.Hour)
	if err := post.Write(); err != nil { // puts it back
		t.Fatal(err)
	}
	if who, _ := ReadHolder(post.File, dir); !strings.Contains(who, post.since.UTC().Format(time.RFC3339)) {
		t.Errorf("%s, and it holds the folder since %s", who, post.since)
	}
	if who, at := ReadHolder(post.File, other); who != Unnamed || at != "" {
		t.Errorf("%s at %q has another folder", who, at)
	}
	text, err := os.ReadFile(post.File)
	if err != nil {
		t.Fatal(err)
	}
	edited := []string{strings.Repeat("x", 2000) + "\n/a\n", "santa\n/a/b.sock\n", string(text) + " ",
		strings.Replace(string(text), "pid ", "pid 1", 1), strings.Replace(string(text), "/a/b", "/a/c", 1)}
	for n := range text { // it is being written
		edited = append(edited, string(text[:n]))
	}
	for _, text := range edited {
		if err := os.WriteFile(post.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if who, at := ReadHolder(post.File, dir); who != Unnamed || at != "" {
			t.Errorf("%q: %s at %q", text, who, at)
		}
	}
	if err := errors.Join(os.Remove(post.File), syscall.Mkfifo(post.File, 0o600)); err != nil {
		t.Fatal(err)
	}
	if who, at := ReadHolder(post.File, dir); who != Unnamed || at != "" {
		t.Errorf("%s at %q of a pipe", who, at)
	}
	if err := post.Write(); err != nil {
		t.Error(err)
	}
}

// TestPutBack: whatever someone does to the socket and to the holder's file, others soon find the
// holder by them again, unless the folder has gone away or has become another.
func TestPutBack(t *testing.T) {
	for _, name := range []string{"a.sock", strings.Repeat("a", 100)} {
		dir := filepath.Join(t.TempDir(), "held")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path, err := Path(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		post := Post{Held: dir, File: filepath.Join(dir, "HOLDER"), Holder: "test", Socket: path}
		l, err := Listen(post)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				conn.Close()
			}
		}()
		for what, spoil := range map[string]func() error{
			"socket removed":  func() error { return os.Remove(path) },
			"socket replaced": func() error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
			"socket closed":   func() error { return os.Chmod(path, 0) },
			"socket moved":    func() error { return os.Rename(path, filepath.Join(dir, "moved")) },
			"file removed":    func() error { return os.Remove(post.File) },
			"file edited":     func() error { return os.WriteFile(post.File, []byte("santa\n/a\n"), 0o600) },
			"file a folder":   func() error { return errors.Join(os.Remove(post.File), os.Mkdir(post.File, 0o700)) },
			"file a pipe":     func() error { return errors.Join(os.Remove(post.File), syscall.Mkfifo(post.File, 0o600)) },
			"file a link":     func() error { return errors.Join(os.Remove(post.File), os.Symlink("/etc/passwd", post.File)) },
			"both":            func() error { return errors.Join(os.Remove(path), os.Remove(post.File)) },
		} {
			if err := spoil(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			found := func() bool {
				_, at := ReadHolder(post.File, dir)
				conn, err := Dial(t.Context(), at)
				if err == nil {
					err = conn.Close()
				}
				l := l.(*listener)
				l.mu.Lock()
				defer l.mu.Unlock()
				return err == nil && at == path && isSame(path, l.socket)
			}
			for end := time.Now().Add(20 * time.Second); !found(); <-time.After(looksEvery / 10) {
				if time.Now().After(end) {
					t.Fatalf("%s: not put back", what)
				}
			}
		}
		_ = os.Remove(filepath.Join(dir, "moved"))
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * looksEvery)
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("a new folder has %v, %v", list, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-served
	}
}

// TestCheckFolder: a folder and the files in it are this user's alone, whatever name leads there. What is
// refused names the command that mends it, and that command does.
func TestCheckFolder(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string // "": it is taken
	}{
		"as made":       {func(string) error { return nil }, ""},
		"readable":      {func(dir string) error { return os.Chmod(dir, 0o755) }, ""},
		"group":         {func(dir string) error { return os.Chmod(dir, 0o775) }, ""},
		"folder":        {func(dir string) error { return os.Chmod(dir, 0o707) }, "chmod o-w"},
		"sticky folder": {func(dir string) error { return os.Chmod(dir, 0o777|fs.ModeSticky) }, "your own folder"},
		"file":          {func(dir string) error { return os.Chmod(filepath.Join(dir, "000001.log"), 0o602) }, "chmod -R o-w"},
		"files": {func(dir string) error {
			second := filepath.Join(dir, "000002.log")
			return errors.Join(os.WriteFile(second, nil, 0o600), os.Chmod(second, 0o666),
				os.Chmod(filepath.Join(dir, "000001.log"), 0o666))
		}, "chmod -R o-w"},
		"folder below":     {func(dir string) error { return os.Mkdir(filepath.Join(dir, "mail"), 0o777) }, ""},
		"link to a folder": {func(dir string) error { return os.Symlink(t.TempDir(), filepath.Join(dir, "mail")) }, ""},
		"link to a file":   {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "000002.log")) }, "is a link"},
		"link to nothing":  {func(dir string) error { return os.Symlink("/none", filepath.Join(dir, "HOLDER")) }, "is a link"},
		"other's folder":   {func(dir string) error { return os.Chown(dir, 12345, 12345) }, "uid 12345"},
		"other's file": {func(dir string) error { return os.Chown(filepath.Join(dir, "000001.log"), 12345, 12345) },
			"sudo chown -R"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, link := filepath.Join(t.TempDir(), "a user's store"), filepath.Join(t.TempDir(), "link")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "000001.log"), nil, 0o600),
				os.Symlink(dir, link)); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(dir); err != nil {
				if os.Geteuid() != 0 {
					t.Skip("only root can give files away: ", err)
				}
				t.Fatal(err)
			}
			for _, path := range []string{dir, link} {
				err := CheckFolder(path, Everybody)
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want %q", path, err, c.want)
				}
				mend := regexp.MustCompile(`ch(mod|own) .*`).FindString(fmt.Sprint(err))
				if mend != "" && path == link {
					if out, err := exec.CommandContext(t.Context(), "sh", "-c", mend).CombinedOutput(); err != nil {
						t.Errorf("%s, %v", out, err)
					}
					if err := CheckFolder(path, Everybody); err != nil {
						t.Error(err)
					}
				}
			}
			if name == "group" && CheckFolder(dir, Group) == nil {
				t.Error("its group is not seen")
			}
		})
	}
	if err := CheckFolder(filepath.Join(t.TempDir(), "none"), Everybody); err != nil {
		t.Error(err)
	}
}
