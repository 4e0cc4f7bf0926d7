package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func (k *killedStore) remove(names ...string) {
	for _, name := range names {
		if err := os.RemoveAll(k.path(name)); err != nil {
			k.t.Error(err)
		}
	}
}

func (k *killedStore) has(name string) bool {
	_, err := os.Stat(k.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.t.Error(err)
	}
	return err == nil
}

// killBackup kills a backup. What it leaves is a whole backup, or refused as none.
func (k *killedStore) killBackup() {
	to := k.fresh("backup")
	k.kill("backup", k.command("store", "backup", "--to", k.path(to)))
	k.restorable(to)
	if !k.has(to) {
		k.whole(k.command("store", "backup", "--to", k.path(to)))
	}
	k.restored(to, k.fresh("restored"))
	k.remove(to)
}

// restorable holds that the folder is either a whole backup or refused as one, also where it is
// unfinished.
func (k *killedStore) restorable(to string, allowed ...string) {
	k.t.Helper()
	into := k.fresh("restored")
	if k.has(to) {
		k.restored(to, into, allowed...)
	}
	for _, half := range []string{to, to + ".unfinished", to + ".unfinished/store"} {
		if k.has(half) && !k.has(half+"/BACKUP.json") {
			c := k.commandOn(into, "store", "restore", "--from", k.path(half))
			out, err := c.Output()
			if err == nil || c.ProcessState.ExitCode() != exitFailed || !strings.Contains(fmt.Sprint(c.Stderr), "not a finished backup") || k.has(into) {
				k.t.Errorf("a half backup was restored: %v\n%s%s", err, c.Stderr, out)
			}
		}
	}
}

// later is what an audit finds in a store that was copied during a run: what the run has charged since.
const later = "charge without a receipt"

// restored restores the backup, and removes the clean store that it makes.
func (k *killedStore) restored(from, into string, allowed ...string) {
	k.t.Helper()
	k.whole(k.commandOn(into, "store", "restore", "--from", k.path(from)))
	k.clean(into, "a restore", allowed...)
	k.remove(into)
}

// killRestore kills restores of a backup to a new folder. What they leave is a whole store or none.
func (k *killedStore) killRestore() {
	from, into := k.fresh("backup"), k.fresh("restored")
	k.whole(k.command("store", "backup", "--to", k.path(from)))
	for range 1 + k.random.IntN(2) {
		hit := k.kill("restore", k.commandOn(into, "store", "restore", "--from", k.path(from)))
		if k.has(into) {
			k.clean(into, "a killed restore")
			k.remove(into)
		} else if !hit {
			k.t.Error("a restore has made nothing")
		} else if k.has(into + ".restoring") {
			c := k.commandOn(into, "account", "create", "x", "--email", "x@example.com")
			out, err := c.Output()
			if said := fmt.Sprint(c.Stderr); err == nil || c.ProcessState.ExitCode() != exitFailed ||
				!strings.Contains(said, "a restore to it") || !strings.Contains(said, " store restore --store") {
				k.t.Errorf("beside a killed restore: %v\n%s%s", err, said, out)
			}
		}
	}
	k.restored(from, into)
	k.remove(from)
}

// killReplace puts a backup of the store in its place, under kills.
func (k *killedStore) killReplace() {
	from := k.fresh("backup")
	k.whole(k.command("store", "backup", "--to", k.path(from)))
	k.kill("replace", k.command("store", "restore", "--replace", "--from", k.path(from)))
	if !k.has("store") { // killed between the two renames
		c := k.command("verify")
		if out, err := c.Output(); err == nil || !strings.Contains(fmt.Sprint(c.Stderr), "a restore to it") {
			k.t.Errorf("a store that is not there: %v\n%s%s", err, c.Stderr, out)
		}
		k.whole(k.command("store", "restore", "--replace", "--from", k.path(from)))
	}
	k.clean("store", "a restore in its place")
	k.whole(k.command("reconcile"), exitPerson)
	k.whole(k.command("charging", "on"))
	k.whole(k.command("outbox", "release"))
	k.remove(from)
}

// killRaise kills processes that raise the store of an older build.
func (k *killedStore) killRaise() {
	archives, err := filepath.Glob("testdata/older/*.tar.gz")
	if err != nil || len(archives) == 0 {
		k.t.Fatal(archives, err)
	}
	at := k.path(k.fresh("older"))
	if err := os.Mkdir(at, 0o700); err != nil {
		k.t.Fatal(err)
	}
	unpackTo(k.t, archives[k.random.IntN(len(archives))], at)
	verify := func() *exec.Cmd {
		c := process(k.t, []string{"DUESDAY_CLOCK=2026-11-23T10:00:00Z"}, "verify", "--store", "pebble:"+filepath.Join(at, "store"),
			"--processor", "sandbox:"+filepath.Join(at, "ledger.jsonl"))
		c.Stderr = new(bytes.Buffer)
		return c
	}
	for range 2 {
		k.kill("raise", verify())
	}
	if out := k.whole(verify()); !strings.Contains(out, "The audit is clean") || !strings.Contains(out, "subscriptions  60") {
		k.t.Errorf("%s after a killed raise: %s", at, out)
	}
	if err := os.RemoveAll(at); err != nil {
		k.t.Error(err)
	}
}

// killHolder kills the process that has the store open while another one waits for its backup.
func (k *killedStore) killHolder() {
	run, to := k.command("run", "payments"), k.fresh("backup")
	ended := make(chan bool)
	go func() { ended <- k.kill("holder", run) }()
	backup := k.command("store", "backup", "--to", k.path(to))
	out, err := backup.Output()
	<-ended
	if err != nil && backup.ProcessState.ExitCode() != exitFailed {
		k.t.Errorf("backup: %v\n%s%s", err, backup.Stderr, out)
	}
	k.restorable(to, later)
	k.remove(to, to+".unfinished")
}

// TestHalfRestore_IsNamed: where a restore was interrupted, every command names it and how to
// repeat it, also through a link to the store, which stays.
func TestHalfRestore_IsNamed(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"pebble:./duesday-data", "pebble:./link"} {
		c := newFolder(t)
		c.must("store", "create")
		c.must("store", "backup", "--to", "backup")
		if err := errors.Join(os.Rename(c.path("duesday-data"), c.path("aside")), os.Mkdir(c.path("duesday-data.restoring"), 0o700),
			os.Symlink("duesday-data", c.path("link"))); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"verify", "store create", "store describe", "store backup --to b", "account create a --email a@example.com", "charging on"} {
			r := c.run(append(strings.Fields(line), "--store", store)...)
			equal(t, line, r.code, exitFailed)
			contains(t, r.errors, "there is no store at "+store+", because a restore to it is running or was interrupted",
				"run it again: duesday store restore ", "--from FOLDER, or delete duesday-data.restoring")
		}
		c.must("store", "restore", "--from", "backup", "--store", store)
		c.must("verify")
		if said := c.must("store", "describe", "--store", "pebble:./link"); strings.Contains(said, "files   1\n") {
			t.Errorf("only the link is described:\n%s", said)
		}
	}
}
