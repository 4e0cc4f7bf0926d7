package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// twins are a sandbox that is closed and opened again at any point and one in memory
// that never is. Refs differ between them, so answers are compared with the ref as the
// number of the intent.
type twins struct {
	t     *rapid.T
	file  string
	o     Options
	both  [2]*Sandbox // the one with the file, the one without
	refs  [2][]string
	known [2]map[string]int
	sums  []money.Amount
}

// same holds the answers of both against each other.
func (w *twins) same(what string, do func(s *Sandbox, refs []string) (processor.Intent, error)) {
	var got [2]string
	for i, s := range w.both {
		in, err := do(s, w.refs[i])
		if _, ok := w.known[i][in.Ref]; !ok && in.Ref != "" {
			w.known[i][in.Ref] = len(w.refs[i])
			w.refs[i] = append(w.refs[i], in.Ref)
		}
		got[i] = w.plain(i, in) + fmt.Sprint(kind(err))
	}
	if got[0] != got[1] {
		w.t.Fatalf("%s: the reopened answers\n%s, its twin\n%s", what, got[0], got[1])
	}
}

// plain shows an intent without what differs between twins.
func (w *twins) plain(i int, in processor.Intent) string {
	number := w.known[i][in.Ref]
	in.Latest = strings.TrimPrefix(in.Latest, chargePrefix+strings.TrimPrefix(in.Ref, refPrefix))
	in.Ref = fmt.Sprint("intent ", number)
	return fmt.Sprintf("%+v ", in)
}

func kind(err error) error {
	for _, k := range []error{processor.ErrUnknown, processor.ErrInvalid, processor.ErrNoIntent} {
		if errors.Is(err, k) {
			return k
		}
	}
	return err
}

func (w *twins) reopen() {
	if err := w.both[0].Close(); err != nil {
		w.t.Fatal(err)
	}
	if torn := rapid.SampledFrom([]string{"", `{"ref":"pi_torn","acc`, "\x00\x00"}).Draw(w.t, "torn"); torn != "" {
		f, err := os.OpenFile(w.file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			w.t.Fatal(err)
		}
		f.Close()
	}
	s, err := Open(w.file, w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.both[0] = s
}

func (w *twins) step() {
	t := w.t
	key := fmt.Sprint("key", rapid.IntRange(0, 12).Draw(t, "key"))
	method := rapid.SampledFrom([]string{"pm_card_visa", "pm_card_visa_chargeDeclined",
		"pm_card_chargeDeclinedExpiredCard",
		"pm_card_authenticationRequired", "pm_sandbox_processing", methodFlaky, methodFlaky, methodTimeout, "pm_x"}).Draw(t,
		"method")
	number := rapid.IntRange(0, 8).Draw(t, "intent")
	ref := func(refs []string) string {
		if number < len(refs) {
			return refs[number]
		}
		return "pi_none"
	}
	switch op := rapid.IntRange(0, 9).Draw(t, "op"); op {
	case 0, 1:
		r := processor.OpenRequest{Key: key, Method: method, Price: rapid.SampledFrom([]string{"", `{"tax":"<>"}`}).Draw(t, "price"), Amount: rapid.SampledFrom(w.sums).Draw(t, "amount"),
			Tag: processor.Tag{Installation: "i", Account: rapid.SampledFrom([]string{"", "a", "é<&>\u2028"}).Draw(t, "account"),
				Period: number}}
		w.same("open", func(s *Sandbox, _ []string) (processor.Intent, error) { return s.Open(t.Context(), r) })
	case 2, 3, 4, 5:
		w.same("confirm", func(s *Sandbox, refs []string) (processor.Intent, error) {
			return s.Confirm(t.Context(), processor.ConfirmRequest{Key: key, Ref: ref(refs), Method: method, Attempt: number})
		})
	case 6:
		w.same("cancel", func(s *Sandbox, refs []string) (processor.Intent, error) { return s.Cancel(t.Context(), ref(refs)) })
	case 7:
		w.same("authenticate", func(s *Sandbox, refs []string) (processor.Intent, error) {
			return processor.Intent{}, s.Authenticate(ref(refs))
		})
	case 8:
		ok := rapid.Bool().Draw(t, "ok")
		w.same("finish", func(s *Sandbox, refs []string) (processor.Intent, error) {
			return processor.Intent{}, s.Finish(ref(refs), ok)
		})
	case 9:
		w.reopen()
	}
}

// check compares all that can be asked.
func (w *twins) check(since time.Time) {
	for i := range w.refs[0] {
		w.same("lookup", func(s *Sandbox, refs []string) (processor.Intent, error) { return s.Lookup(w.t.Context(), refs[i]) })
	}
	var lists, ledgers [2][]string
	for i, s := range w.both {
		for in, err := range s.List(w.t.Context(), processor.ListRequest{Since: since}) {
			lists[i] = append(lists[i], w.plain(i, in)+fmt.Sprint(err))
		}
		for e := range s.Entries() {
			e.Latest = strings.TrimPrefix(e.Latest, chargePrefix+strings.TrimPrefix(e.Ref, refPrefix))
			e.Ref = fmt.Sprint(w.known[i][e.Ref])
			ledgers[i] = append(ledgers[i], fmt.Sprintf("%+v", e))
		}
	}
	if !slices.Equal(lists[0], lists[1]) {
		w.t.Fatalf("the reopened lists\n%s\nits twin\n%s", strings.Join(lists[0], "\n"), strings.Join(lists[1], "\n"))
	}
	if !slices.Equal(ledgers[0], ledgers[1]) {
		w.t.Fatalf("the reopened has\n%s\nits twin\n%s", strings.Join(ledgers[0], "\n"), strings.Join(ledgers[1], "\n"))
	}
}

func TestReopen_SameState(t *testing.T) {
	t.Parallel()
	sums := []money.Amount{amount(t, "12.99", "EUR"), amount(t, "1", "JPY"), amount(t, "92233720368547758.07", "USD"),
		amount(t, "0.001", "KWD")}
	dir, run := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		run++
		w := &twins{t: t, o: Options{Now: c.Now}, sums: sums, known: [2]map[string]int{{}, {}},
			file: filepath.Join(dir, fmt.Sprint(run))}
		for i, file := range []string{w.file, ""} {
			s, err := Open(file, w.o)
			if err != nil {
				t.Fatal(err)
			}
			w.both[i] = s
		}
		defer func() { w.both[0].Close() }()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c.move(time.Duration(rapid.IntRange(-2, 30).Draw(t, "hours")) * time.Hour)
			w.step()
		}
		since := c.Now().Add(-time.Duration(rapid.IntRange(0, 400).Draw(t, "since")) * time.Hour)
		w.check(since)
		w.reopen()
		w.check(since)
		atMostOne(t, w.both[0])
	})
}

// atMostOne is the sandbox's whole point: no ref succeeds twice.
func atMostOne(t rapid.TB, s *Sandbox) {
	count := map[string]int{}
	for e := range s.Entries() {
		if e.State == processor.Succeeded {
			count[e.Ref]++
		}
		if count[e.Ref] > 1 {
			t.Fatalf("%s succeeded twice", e.Ref)
		}
	}
}
