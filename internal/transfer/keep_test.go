package transfer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRemoveOldest: the oldest backups of this store go, and nothing else: not the one that was just made, even by a
// clock that is behind, no backup of another store, no folder that is not a finished backup, and no file.
func TestRemoveOldest(t *testing.T) {
	into := t.TempDir()
	add := func(name, installation string, made time.Time) string {
		t.Helper()
		at := filepath.Join(into, name)
		b, err := json.Marshal(Manifest{Format: backupFormat, Made: made, Installation: installation})
		if err == nil {
			err = os.MkdirAll(at, 0o700)
		}
		if err == nil && installation != "" {
			err = os.WriteFile(filepath.Join(at, manifestFile), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	day := func(n int) time.Time { return time.Date(2026, 3, n, 6, 0, 0, 0, time.UTC) }
	for n := range 6 {
		add(day(n+2).Format(nameForm), "ours", day(n+2))
	}
	made := add(day(1).Format(nameForm), "ours", day(1))
	for _, name := range []string{"20260101T060000Z", "20260102T060000Z.removed", "20260103T060000Z", "mine"} {
		add(name, map[string]string{"20260101T060000Z": "theirs", "mine": "ours"}[name], day(1))
	}
	if err := os.WriteFile(filepath.Join(into, "20260104T060000Z"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removed, err := removeOldest(into, made, "ours", 4)
	if err != nil || len(removed) != 3 || filepath.Base(removed[0]) != "20260302T060000Z" {
		t.Errorf("removed %q, %v", removed, err)
	}
	list, err := os.ReadDir(into)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range list {
		left = append(left, e.Name())
	}
	want := "20260101T060000Z 20260103T060000Z 20260104T060000Z 20260301T060000Z 20260305T060000Z 20260306T060000Z 20260307T060000Z mine"
	if slices.Sort(left); strings.Join(left, " ") != want {
		t.Errorf("left %q", left)
	}
	if removed, err := removeOldest(into, made, "ours", 1); err != nil || len(removed) != 3 {
		t.Errorf("removed %q, %v", removed, err)
	}
}
