package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOlderStores: the stores of older builds open, and lose nothing. Each archive is named by the
// commit of its build, which was killed in the third run over 60 subscriptions: periods are open, to
// be tried again, pending and bound, and mail waits. From 4fd0b73 on two purchases are followed. 020c1b9
// also has the settings in the store, a plan that is pending, and a failed period that was charged later.
func TestOlderStores(t *testing.T) {
	archives, err := filepath.Glob("testdata/older/*.tar.gz")
	if err != nil || len(archives) < 3 {
		t.Fatal(archives, err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			c := newCLI(t)
			c.clock.Set(time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC))
			unpackTo(t, archive, c.dir)
			c.env["DUESDAY_STORE"], c.env["DUESDAY_PROCESSOR"] = "pebble:store", "sandbox:ledger.jsonl"

			r := c.run("verify") // raises it
			equal(t, "verify", r.code, exitDone)
			contains(t, r.errors, "upgraded to a newer format", "before-")
			contains(t, r.out, "subscriptions  60")
			contains(t, c.must("outbox", "list"), " due, 0 later")
			c.must("subscription", "create", "wire/1", "--email", "wire@example.com", "--sku", "wire", "--amount", "5", "--currency", "USD",
				"--payment-day", "3", "--start-date", "2028-01-01", "--collection", "manual") // which only newer formats allow
			contains(t, c.must("subscription", "list", "--sku", "wire"), "wire/1")
			contains(t, c.must("account", "list", "--email", "WIRE@example.com"), "wire")
			contains(t, strings.Join(strings.Fields(c.must("store", "describe", "--count")), " "), "lookup row 122") // of 61 accounts and subscriptions
			if t.Name() != "TestOlderStores/6cecea7" {
				purchases := c.list("purchase", "list", "--account", "0b0e7a1e-3f43-4d0e-9a55-7d0c0c0a0a01")
				equal(t, "purchases", len(purchases), 2)
			}
			equal(t, "run", c.run("run", "payments").code, exitPerson)
			charges := "charges        17"
			if strings.HasSuffix(t.Name(), "020c1b9") {
				charges = "charges        18"
				contains(t, c.must("subscription", "show", "1000/1"), "platinum")
			}
			contains(t, c.must("verify"), "The audit is clean", charges)
			c.clock.Set(time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC))
			equal(t, "next month's run", c.run("run", "payments").code, exitPerson)
			contains(t, c.must("verify"), "The audit is clean")
			copies, err := filepath.Glob(c.path("store/before-*"))
			if err != nil || len(copies) != 1 {
				t.Fatalf("copies %v, %v", copies, err)
			}
			equal(t, "check", c.run("store", "check", "--store", "pebble:"+copies[0]).code, exitDone)
		})
	}
}

// unpackTo writes the files of the archive into the folder.
func unpackTo(t *testing.T, archive, folder string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatal(err)
		case h.FileInfo().IsDir():
			err = os.MkdirAll(filepath.Join(folder, h.Name), 0o700)
		default:
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(filepath.Join(folder, h.Name), content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamage: what is damaged is named in one line with the next step, by every command, and by store
// check in whole; a backup of it is refused.
func TestDamage(t *testing.T) {
	c := newCLI(t)
	c.clock.Set(time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC))
	unpackTo(t, "testdata/older/b4e95a8.tar.gz", c.dir)
	c.env["DUESDAY_STORE"], c.env["DUESDAY_PROCESSOR"] = "pebble:store", "sandbox:ledger.jsonl"
	equal(t, "raise", c.run("verify").code, exitDone)
	contains(t, c.must("store", "check"), "is undamaged")
	c.must("store", "backup", "--to", "backup")

	tables, err := filepath.Glob(c.path("store/*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	size := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	largest := slices.MaxFunc(tables, func(a, b string) int { return int(size(a) - size(b)) })
	content := []byte(c.read(largest))
	content[len(content)/4] ^= 0x55
	if err := os.Remove(largest); err != nil { // the backup has another link to it
		t.Fatal(err)
	}
	c.file(largest, string(content))

	r := c.run("store", "check")
	equal(t, "check", r.code, exitDamage)
	contains(t, r.out, "is damaged", filepath.Base(largest), "checksum mismatch")
	for _, line := range []string{"verify", "subscription list", "store backup --to other"} {
		r := c.run(strings.Fields(line)...)
		equal(t, line, r.code, exitDamage)
		contains(t, r.errors, "the store is damaged", "duesday store check")
		if strings.Count(r.errors, "\n") != 1 {
			t.Errorf("%s: more than one line:\n%s", line, r.errors)
		}
	}
	if _, err := os.Stat(c.path("other")); err == nil {
		t.Error("a damaged store was backed up")
	}

	marker, err := filepath.Glob(c.path("store/marker.manifest.*"))
	if err != nil || len(marker) != 1 || os.Remove(marker[0]) != nil {
		t.Fatal(marker, err)
	}
	for _, line := range []string{"verify", "account create 1 --email a@example.com", "store create", "store describe"} {
		r := c.run(strings.Fields(line)...)
		equal(t, line, r.code, exitDamage)
	}
	restored := c.run("store", "restore", "--from", "backup", "--replace")
	equal(t, "restore", restored.code, exitPerson) // someone must find out which accounts were erased
	contains(t, restored.errors, "accounts that were erased in it are not erased again; repeat account erase for each")
	contains(t, c.must("subscription", "list"), "1000/1")
}
