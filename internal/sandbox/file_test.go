package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

func ledgerFile(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.jsonl") }

func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFile_Fields(t *testing.T) {
	file, c := ledgerFile(t), newClock()
	s := openSandbox(t, file, Options{Now: c.Now})
	r := request(t, 4, 1, "pm_card_visa_chargeDeclinedLostCard")
	r.Amount = amount(t, "1200", "JPY")
	ref := mustOpen(t, s, r).Ref
	c.move(1500 * time.Microsecond)
	charge := mustConfirm(t, s, ref, "k1", r.Method).Latest

	// The lines are there before the sandbox closes: they were before the answers.
	want := fmt.Sprintf(`{"ref":%q,"account":"123","subscription":"456","sku":"789","period":4,"generation":1,"attempt":0,"amount":"1200","currency":"JPY","outcome":"opened","at":"2026-03-01T09:00:00.000Z","install":"i1","key":"open-4-1","method":"pm_card_visa_chargeDeclinedLostCard"}
{"ref":%q,"account":"123","subscription":"456","sku":"789","period":4,"generation":1,"attempt":1,"amount":"1200","currency":"JPY","outcome":"declined","at":"2026-03-01T09:00:00.001Z","install":"i1","key":"k1","method":"pm_card_visa_chargeDeclinedLostCard","charge":%q,"code":"lost_card","hard":true}
`, ref, ref, charge)
	if got := readFile(t, file); got != want {
		t.Errorf("file has\n%swant\n%s", got, want)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Replays, lookups, lists and calls with nothing to do write no line.
func TestFile_OneLinePerAnswer(t *testing.T) {
	file := ledgerFile(t)
	s := openSandbox(t, file, Options{})
	in := pay(t, s, 1)
	before := readFile(t, file)
	pay(t, s, 1)
	mustConfirm(t, s, in.Ref, "new key", "pm_card_visa")
	mustLookup(t, s, in.Ref)
	list(t, s, time.Time{})
	if _, err := s.Cancel(t.Context(), in.Ref); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, file); got != before || strings.Count(got, "\n") != 2 {
		t.Errorf("file has\n%s", got)
	}
}

func TestFile_CannotOpen(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "file")
	writeFile(t, taken, "")
	for _, name := range []string{filepath.Join(taken, "ledger"), t.TempDir(), "a\x00b"} {
		if _, err := Open(name, Options{}); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
}

// reopened writes the text to a file and opens it.
func reopened(t *testing.T, text string) *Sandbox {
	t.Helper()
	file := ledgerFile(t)
	writeFile(t, file, text)
	return openSandbox(t, file, Options{Now: newClock().Now})
}

func TestFile_TornTail(t *testing.T) {
	t.Parallel()
	file, c := ledgerFile(t), newClock()
	s := openSandbox(t, file, Options{Now: c.Now})
	pay(t, s, 1)
	pay(t, s, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text := readFile(t, file)
	whole := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	for size := whole; size <= len(text); size++ {
		if testing.Short() && size%5 != 0 && size < len(text)-1 {
			continue
		}
		writeFile(t, file, text[:size])
		s, err := Open(file, Options{Now: c.Now})
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		want, left := "opened succeeded opened", text[:whole]
		if size >= len(text)-1 { // but for the newline, it is all there
			want, left = "opened succeeded opened succeeded", text
		}
		wantOutcomes(t, s, want)
		if got := readFile(t, file); got != left {
			t.Fatalf("cut at %d: file has\n%s", size, got)
		}
		pay(t, s, 3)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(file, Options{Now: c.Now}); err != nil {
			t.Fatalf("cut at %d, then more: %v", size, err)
		}
		wantOutcomes(t, s, want+" opened succeeded")
		s.Close()
	}
	writeFile(t, file, text+strings.Repeat("\x00", 5000))
	wantOutcomes(t, openSandbox(t, file, Options{}), "opened succeeded opened succeeded")
}

// plain is a line with the documented fields alone.
func plain(ref string, period int, outcome, at string) string {
	return fmt.Sprintf(`{"ref":%q,"account":"123","subscription":"456","sku":"789","period":%d,"generation":0,"attempt":1,"amount":"12.99","currency":"EUR","outcome":%q,"at":%q}`+"\n",
		ref, period, outcome, at)
}

func TestFile_Malformed(t *testing.T) {
	good := plain("pi_1", 1, "opened", "2026-03-01T09:00:00.000Z")
	for name, bad := range map[string]string{
		"empty":     "\n",
		"no object": "null\n",
		"cut":       good[:20] + "\n",
		"two":       strings.TrimSpace(good) + good,
		"no ref":    plain("", 1, "opened", "2026-03-01T09:00:00.000Z"),
		"outcome":   plain("pi_2", 1, "paid", "2026-03-01T09:00:00.000Z"),
		"at":        plain("pi_2", 1, "opened", "yesterday"),
		"period":    plain("pi_2", -1, "opened", "2026-03-01T09:00:00.000Z"),
		"currency":  strings.Replace(good, "EUR", "???", 1),
		"amount":    strings.Replace(good, "12.99", "12.999", 1),
		"no amount": strings.Replace(good, "12.99", "0", 1),
		"number":    strings.Replace(good, `"12.99"`, "12.99", 1),
	} {
		file := ledgerFile(t)
		writeFile(t, file, good+bad+good)
		_, err := Open(file, Options{})
		if err == nil || !strings.Contains(err.Error(), file+", line 2: ") {
			t.Errorf("%s: %v, want an error that names the file and line 2", name, err)
		}
		if got := readFile(t, file); got != good+bad+good {
			t.Errorf("%s: a file that was not opened was changed", name)
		}
	}
}

func TestFile_LinesByHand(t *testing.T) {
	s := reopened(t, plain("pi_x", 1, "opened", "2026-02-01T09:00:00.000Z")+
		plain("pi_y", 2, "succeeded", "2026-02-03T10:00:00+01:00")+
		plain("pi_x", 1, "declined", "2026-02-01T10:00:00Z")+
		strings.TrimSpace(plain("pi_z", 3, "succeeded", "2026-02-02T09:00:00.000Z")))
	wantOutcomes(t, s, "opened succeeded declined succeeded")
	if got, want := list(t, s, time.Time{}), []int{3, 2}; !slices.Equal(got, want) {
		t.Errorf("list %v, want %v", got, want)
	}
	declined := mustLookup(t, s, "pi_x")
	if declined.State != processor.Declined || declined.Latest == "" {
		t.Errorf("%+v", declined)
	}
	if in := mustConfirm(t, s, "pi_x", "k", "pm_card_visa"); in.State != processor.Succeeded ||
		in.Latest == declined.Latest {
		t.Errorf("confirmed: %+v after %+v", in, declined)
	}
	if in := mustConfirm(t, s, "pi_y", "k2", "pm_card_visa"); in.Changed != time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC) {
		t.Errorf("charged again: %+v", in)
	}
}

func TestFile_DuplicateSuccess(t *testing.T) {
	file := ledgerFile(t)
	s := openSandbox(t, file, Options{Now: newClock().Now})
	in := pay(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(readFile(t, file), "\n")
	other := strings.Replace(lines[1], in.Ref, "pi_other", 1)
	differs := strings.Replace(lines[1], "12.99", "99.99", 1)
	s = reopened(t, lines[0]+lines[1]+lines[1]+other+differs)
	if got, want := list(t, s, time.Time{}), []int{1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("list %v, want every line of the file", got)
	}
	entries := slices.Collect(s.Entries())
	if len(entries) != 5 || entries[1] != entries[2] || entries[3].Ref != "pi_other" ||
		entries[4].Amount != amount(t, "99.99", "EUR") {
		t.Errorf("entries %+v", entries)
	}
	if got := mustLookup(t, s, in.Ref); got != in {
		t.Errorf("lookup %+v, want the first success %+v", got, in)
	}
}

// Money that was taken after a cancel, by hand: the state says so.
func TestFile_SuccessAfterCancel(t *testing.T) {
	at := "2026-02-01T09:00:00.000Z"
	s := reopened(t, plain("pi_x", 1, "canceled", at)+plain("pi_x", 1, "opened", at))
	if in := mustLookup(t, s, "pi_x"); in.State != processor.Canceled {
		t.Errorf("a canceled intent was moved: %+v", in)
	}
	s = reopened(t, plain("pi_x", 1, "canceled", at)+plain("pi_x", 1, "opened", at)+plain("pi_x", 1, "succeeded", at)+
		plain("pi_x", 1, "canceled", at))
	if in := mustLookup(t, s, "pi_x"); in.State != processor.Succeeded {
		t.Errorf("%+v", in)
	}
}

// Charges with ids of their own are kept, and new ones differ from them.
func TestFile_OddCharge(t *testing.T) {
	line := strings.Replace(plain("pi_x", 1, "declined", "2026-02-01T09:00:00.000Z"), "}",
		`,"charge":"ch_by_hand","method":"pm_sandbox_flaky"}`, 1)
	s := reopened(t, line)
	if in := mustLookup(t, s, "pi_x"); in.Latest != "ch_by_hand" {
		t.Errorf("%+v", in)
	}
	if in := mustConfirm(t, s, "pi_x", "k", methodFlaky); in.State != processor.Succeeded || in.Latest == "ch_by_hand" {
		t.Errorf("%+v", in)
	}
}

// A ref is not made twice: not after a restart, nor from a ledger that was put back.
func TestFile_RefsAreUnique(t *testing.T) {
	file := ledgerFile(t)
	seen := map[string]bool{}
	for i := range 5 {
		s := openSandbox(t, file, Options{})
		ref := mustOpen(t, s, request(t, i, 0, "")).Ref
		if seen[ref] || !strings.HasPrefix(ref, "pi_sandbox_") {
			t.Errorf("made %s again", ref)
		}
		seen[ref] = true
		s.Close()
		writeFile(t, file, "")
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(plain("pi_1", 1, "succeeded", "2026-03-01T09:00:00.000Z")))
	f.Add([]byte(`{"ref":"r","amount":"1","currency":"JPY","outcome":"declined","at":"2026-03-01T09:00:00Z","method":"pm_sandbox_flaky","charge":"ch_sandbox_r_2"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := newLedger()
		if l.restore(text) != nil {
			return
		}
		again, err := json.Marshal(recordOf(l.entry(0)))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.restore(again); err != nil || l.entry(0) != l.entry(1) {
			t.Errorf("%s came back as %+v, %v", again, l.entry(1), err)
		}
	})
}
