package main

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestModes: whatever the umask, every file is for its owner alone: store, ledger, mail, export and
// backup. (Sockets are package socket's.)
func TestModes(t *testing.T) {
	for _, umask := range []string{"000", "022", "077"} {
		dir := t.TempDir()
		book := dueBook(t, filepath.Join(dir, "book.csv"), 0, 0, 3, 1, "pm_card_visa") // of the person
		command := func(args ...string) *exec.Cmd {
			c := process(t, []string{"TMPDIR=" + dir}, append(args, "--store", "pebble:"+filepath.Join(dir, "new", "store"),
				"--processor", "sandbox:"+filepath.Join(dir, "new", "ledger.jsonl"), "--mail", filepath.Join(dir, "mail"))...)
			c.Args = append([]string{"sh", "-c", "umask " + umask + `; exec "$0" "$@"`, c.Path}, c.Args[1:]...)
			c.Path = "/bin/sh"
			return c
		}
		mustRun(t, command("import", book))
		mustRun(t, command("run", "payments"))
		mustRun(t, command("export", "subscriptions", "--out", filepath.Join(dir, "out.csv")))
		mustRun(t, command("store", "backup", "--to", filepath.Join(dir, "backup")))
		kinds := map[string]int{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == dir || path == book {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if info.Mode().Perm() != want {
				t.Errorf("umask %s: %s is %v", umask, strings.TrimPrefix(path, dir), info.Mode())
			}
			kinds[filepath.Ext(path)]++
			return nil
		})
		if err != nil || kinds[".sst"] == 0 || kinds[".log"] == 0 || kinds[".eml"] == 0 || kinds[".jsonl"] != 1 ||
			kinds[".csv"] != 1 {
			t.Errorf("umask %s: %v, %v", umask, kinds, err)
		}
	}
}
