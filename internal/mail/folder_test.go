package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/outbox"
)

func newFolder(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := NewFolder(dir, writer(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func deliver(t *testing.T, f *Folder, e outbox.Effect) {
	t.Helper()
	if err := f.Deliver(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

const day = "2023-06-28" // of the sample effects

// files returns the names in the folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFolder_RepetitionReplaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "mail")
	f := newFolder(t, dir)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there before the first mail: %v", err)
	}
	e := sample(outbox.KindReceipt)
	deliver(t, f, e)
	e.Tries = 1
	deliver(t, f, e)
	dir = filepath.Join(dir, day)
	names := files(t, dir)
	if len(names) != 1 || names[0] != name(e)+".eml" {
		t.Fatalf("files %q", names)
	}
	got, err := os.ReadFile(filepath.Join(dir, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "\r\nMessage-ID: <"+strings.TrimSuffix(names[0], ".eml")+"@duesday>\r\n") {
		t.Errorf("the file is not called as its message:\n%s", got)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o700,
		filepath.Join(dir, names[0]): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

func TestFolder_IDsStayInside(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "mail")
	f := newFolder(t, dir)
	ids := append(hostile(), "../x", "../../etc/passwd", "/etc/passwd", "a/b", `a\b`, "con", strings.Repeat("x", 5000), "")
	for _, id := range ids {
		e := sample(outbox.KindReminder)
		e.ID = id
		deliver(t, f, e)
	}
	names := files(t, filepath.Join(dir, day))
	if len(names) != len(ids) {
		t.Errorf("%d files, want %d", len(names), len(ids))
	}
	for _, n := range names {
		if len(n) > 64 || strings.ContainsAny(n, `/\: `) || strings.HasPrefix(n, ".") {
			t.Errorf("file name %q", n)
		}
	}
	if got := files(t, outside); len(got) != 1 {
		t.Errorf("outside of the folder: %q", got)
	}
}

func TestFolder_DoesNotFollowALink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e := sample(outbox.KindReceipt)
	if err := os.Mkdir(filepath.Join(dir, day), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, day, name(e)+".eml")); err != nil {
		t.Skip(err)
	}
	deliver(t, newFolder(t, dir), e)
	if got, err := os.ReadFile(outside); err != nil || string(got) != "mine" {
		t.Errorf("a file outside was written: %q, %v", got, err)
	}
}

func TestFolder_ComesBackAfterItWasDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mail")
	f := newFolder(t, dir)
	deliver(t, f, sample(outbox.KindReceipt))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	deliver(t, f, sample(outbox.KindReminder))
	if got := files(t, filepath.Join(dir, day)); len(got) != 1 {
		t.Errorf("files %q", got)
	}
}

func TestFolder_FailureLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	e := sample(outbox.KindReceipt)
	if err := os.MkdirAll(filepath.Join(dir, day, name(e)+".eml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Deliver(t.Context(), e); err == nil || errors.Is(err, outbox.ErrPermanent) {
		t.Errorf("name taken by a folder: %v, want an error that may pass", err)
	}
	e.Kind = "telegram"
	if err := f.Deliver(t.Context(), e); !errors.Is(err, outbox.ErrPermanent) {
		t.Errorf("unknown kind: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Deliver(ctx, sample(outbox.KindReminder)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got := files(t, filepath.Join(dir, day)); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}

	taken := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{taken, filepath.Join(taken, "below")} {
		if err := newFolder(t, path).Deliver(t.Context(), sample(outbox.KindReceipt)); err == nil {
			t.Errorf("%s: a file is no folder, and no error", path)
		}
	}
}

func TestFolder_Concurrent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mail")
	f := newFolder(t, dir)
	const n = 40
	var workers sync.WaitGroup
	for w := range 4 { // every effect twice
		workers.Go(func() {
			for i := range n / 2 {
				e := sample(Kinds()[i%8])
				e.ID = fmt.Sprintf("%d-%d", w%2, i)
				if err := f.Deliver(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	dir = filepath.Join(dir, day)
	names := files(t, dir)
	if len(names) != n {
		t.Errorf("%d files, want %d", len(names), n)
	}
	for _, n := range names {
		message, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		checkForm(t, message)
	}
}

func TestFolder_ADayOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	e := sample(outbox.KindReceipt)
	for range 2 {
		deliver(t, f, e)
		e.Created, e.ID = e.Created.AddDate(0, 0, 1), e.ID+"x"
	}
	if got := files(t, dir); !slices.Equal(got, []string{"2023-06-28", "2023-06-29"}) {
		t.Errorf("folders %q", got)
	}
}

func TestNewWriter_Refuses(t *testing.T) {
	if _, err := NewFolder("", writer(t)); err == nil {
		t.Error("a folder without a name is taken")
	}
	for _, from := range []string{"nobody", "a@b, c@d", "A <a@b>\r\nBcc: c@d"} {
		if _, err := NewWriter(writer(t).templates, settings.Settings{Sender: from}); err == nil {
			t.Errorf("sender %q is taken", from)
		}
	}
	m, err := writerOf(t, settings.Settings{}).Message(sample(outbox.KindReceipt))
	if err != nil || m.From != "<billing@localhost>" || bytes.Contains(m.Bytes, []byte("Reply-To")) {
		t.Errorf("without settings: %v, %s", err, m.Bytes)
	}
}

// TestFolder_Leftovers: the temporary files of killed processes go with the next delivery into their
// folder. Those that may still be written, and files of others, stay.
func TestFolder_Leftovers(t *testing.T) {
	dir := t.TempDir()
	e := sample(outbox.KindReceipt)
	deliver(t, newFolder(t, dir), e)
	dated := filepath.Join(dir, day)
	info, err := os.Stat(filepath.Join(dated, name(e)+".eml"))
	if err != nil {
		t.Fatal(err)
	}
	now := info.ModTime()
	stays := map[string]bool{".a.eml.X.tmp": false, ".b.eml.Y.tmp": true, "c.tmp": true, ".d": true}
	for file := range stays {
		at := now.Add(-2 * leftover)
		if file == ".b.eml.Y.tmp" {
			at = now
		}
		path := filepath.Join(dated, file)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	deliver(t, newFolder(t, dir), e)
	for file, stays := range stays {
		if _, err := os.Stat(filepath.Join(dated, file)); (err == nil) != stays {
			t.Errorf("%s: %v", file, err)
		}
	}
}
