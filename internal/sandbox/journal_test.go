package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// worker and locker are variables that make the test binary charge through the ledger that they name, or
// keep its file locked.
const worker, locker = "DUESDAY_TEST_LEDGER", "DUESDAY_TEST_LOCK"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(worker) != "":
		fmt.Println("error", work(os.Getenv(worker)))
		os.Exit(1)
	case os.Getenv(locker) != "":
		f, err := openFile(os.Getenv(locker))
		fmt.Println("locked", errors.Join(err, lock(f)))
		<-time.After(time.Hour) // until it is killed
		_ = f.Close()
	}
	os.Exit(m.Run())
}

// slowly has a gate before each sync of the ledger, counts them, and keeps what was on disk after each.
type slowly struct {
	gate   chan struct{}
	turn   atomic.Int32 // calls of which the file has a line before the latest sync
	syncs  atomic.Int32
	synced atomic.Pointer[string]
	fail   atomic.Pointer[error]
}

func slow(t *testing.T) (*Sandbox, *slowly) {
	t.Helper()
	file, w := ledgerFile(t), &slowly{gate: make(chan struct{})}
	w.synced.Store(new(string))
	s, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.out.sync = func() error {
		text := readFile(t, file)
		w.turn.Store(int32(strings.Count(text, `"key":"`)))
		<-w.gate
		w.syncs.Add(1)
		if err := w.fail.Load(); err != nil {
			return *err
		}
		w.synced.Store(&text)
		return nil
	}
	s.mu.Unlock()
	return s, w
}

func (w *slowly) onDisk(key string) bool {
	return strings.Contains(*w.synced.Load(), `"key":"`+key+`"`)
}

// TestJournal_SharesSyncs: while a sync lasts, other calls queue up, and the next sync has them all. A
// call is answered when its line is on disk.
func TestJournal_SharesSyncs(t *testing.T) {
	s, w := slow(t)
	var wg sync.WaitGroup
	const calls = 128
	for i := range calls {
		wg.Go(func() {
			r := request(t, i, 0, "")
			mustOpen(t, s, r)
			if !w.onDisk(r.Key) {
				t.Errorf("%s was answered before it was on disk", r.Key)
			}
		})
	}
	for waiting := 0; int(w.turn.Load())+waiting < calls || w.turn.Load() == 0; runtime.Gosched() { // for the first sync
		s.out.mu.Lock()
		waiting = len(s.out.queue)
		s.out.mu.Unlock()
	}
	close(w.gate)
	wg.Wait()
	if n := w.syncs.Load(); n != 2 {
		t.Errorf("%d syncs for %d answers, want 2: the first turn's, and one for all who waited", n, calls)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestJournal_FailedSync: after a failed sync nothing is answered, and the auditor sees what is known to
// be on disk.
func TestJournal_FailedSync(t *testing.T) {
	s, w := slow(t)
	close(w.gate)
	ref := mustOpen(t, s, request(t, 1, 0, "")).Ref
	gone := errors.New("disk is gone")
	w.fail.Store(&gone)
	for i := range 3 {
		r := processor.ConfirmRequest{Key: fmt.Sprint(i), Ref: ref, Method: "pm_card_visa"}
		if in, err := s.Confirm(t.Context(), r); !errors.Is(err, processor.ErrUnknown) || !errors.Is(err, gone) ||
			in != (processor.Intent{}) {
			t.Errorf("confirm: %+v, %v", in, err)
		}
	}
	if _, err := s.Lookup(t.Context(), ref); !errors.Is(err, processor.ErrUnknown) {
		t.Errorf("lookup of what may not be on disk: %v", err)
	}
	wantOutcomes(t, s, "opened")
	if err := s.Close(); !errors.Is(err, gone) {
		t.Errorf("close: %v", err)
	}
}

// TestJournal_SyncsWhatOthersLeft: a killed process may leave a line that it did not sync. No answer
// shows it before a sync.
func TestJournal_SyncsWhatOthersLeft(t *testing.T) {
	s, w := slow(t)
	close(w.gate)
	line := plain("pi_left", 1, "succeeded", "2026-03-01T09:00:00.000Z")
	appendTo(t, s.out.file.Name(), line)
	if in := mustLookup(t, s, "pi_left"); in.State != processor.Succeeded || w.syncs.Load() != 1 {
		t.Errorf("%+v after %d syncs", in, w.syncs.Load())
	}
	if mustLookup(t, s, "pi_left"); w.syncs.Load() != 1 {
		t.Errorf("%d syncs, though nothing was written", w.syncs.Load())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestJournal_OthersDied: a killed process leaves any part of a line. The next turn removes it, or
// completes a line that lacks its newline alone.
func TestJournal_OthersDied(t *testing.T) {
	line := plain("pi_left", 1, "opened", "2026-03-01T09:00:00.000Z")
	for size := 1; size < len(line); size++ {
		file := ledgerFile(t)
		s := openSandbox(t, file, Options{})
		pay(t, s, 1)
		before := readFile(t, file)
		appendTo(t, file, line[:size])
		pay(t, s, 2)
		want := before
		if size == len(line)-1 {
			want += line
		}
		if text := readFile(t, file); !strings.HasPrefix(text, want) || strings.Count(text, "\n") != strings.Count(want, "\n")+2 {
			t.Fatalf("cut at %d: file has\n%s", size, text)
		}
		s.Close()
	}
}

// TestJournal_Damaged: a process that meets a line which it cannot read, or a file that became shorter,
// answers nothing any more and names the reason. Nothing was executed.
func TestJournal_Damaged(t *testing.T) {
	for want, damage := range map[string]func(file string){
		"line 3: ": func(file string) { appendTo(t, file, "no line\n") },
		"shorter":  func(file string) { writeFile(t, file, "") },
	} {
		file := ledgerFile(t)
		s, err := Open(file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		in := pay(t, s, 1)
		damage(file)
		if _, err := s.Lookup(t.Context(), in.Ref); !errors.Is(err, processor.ErrNotExecuted) || !strings.Contains(err.Error(), want) {
			t.Errorf("lookup: %v, want %s", err, want)
		}
		if _, err := s.Lookup(t.Context(), in.Ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lookup again: %v, want %s", err, want)
		}
		if err := s.Close(); err == nil {
			t.Error("close has not told it")
		}
	}
	file := ledgerFile(t)
	writeFile(t, file, "no ledger\n{}\n")
	if _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("open: %v, want the line", err)
	}
}

// TestJournal_Stopped: while another process stands still with the lock, calls fail after ten seconds and
// were not executed. When it is gone, they go on.
func TestJournal_Stopped(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	file := ledgerFile(t)
	s := openSandbox(t, file, Options{})
	ref := mustOpen(t, s, request(t, 1, 0, "")).Ref
	events := make(chan event, 10)
	c := startProcess(t, locker+"="+file, events)
	if e := <-events; len(e.line) != 2 || e.line[1] != "<nil>" {
		t.Fatal(e.line)
	}
	began := time.Now()
	if _, err := s.Cancel(t.Context(), ref); !errors.Is(err, processor.ErrNotExecuted) || !errors.Is(err, ErrLocked) {
		t.Errorf("cancel: %v after %s", err, time.Since(began))
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if in := mustLookup(t, s, ref); in.State != processor.Opened {
		t.Errorf("%+v", in)
	}
}

// An event is a line of a process, or its end.
type event struct {
	of   *exec.Cmd
	line []string // nil: the end
}

func startProcess(t *testing.T, env string, events chan<- event) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe)
	c.Env = append(os.Environ(), env)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			events <- event{c, strings.Fields(lines.Text())}
		}
		_ = c.Wait() // it was killed
		events <- event{of: c}
	}()
	return c
}

// work charges for ever, and tells of each success.
func work(file string) error {
	ctx := context.Background()
	s, err := Open(file, Options{})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		ref, err := chargeOne(ctx, s, fmt.Sprint(os.Getpid()), n)
		if err != nil {
			return err
		}
		fmt.Println("done", ref)
	}
}

// chargeOne opens the numbered intent, which is the same in all processes, and confirms it.
func chargeOne(ctx context.Context, s *Sandbox, by string, n int) (ref string, err error) {
	sum, err := parseAmount("12.99", "EUR")
	if err != nil {
		return "", err
	}
	r := processor.OpenRequest{Key: fmt.Sprint("open-", n), Amount: sum, Method: "pm_card_visa",
		Tag: processor.Tag{Installation: "i1", Account: "123", Subscription: "456", SKU: "789", Period: n}}
	in, err := s.Open(ctx, r)
	if err == nil {
		in, err = s.Confirm(ctx, processor.ConfirmRequest{Key: fmt.Sprint(by, n), Ref: in.Ref, Method: r.Method})
	}
	if err == nil && in.State != processor.Succeeded {
		err = fmt.Errorf("charge %d is %s", n, in.State)
	}
	return in.Ref, err
}

// TestJournal_Kill: three processes charge the same intents through one file, and any of them is killed,
// again and again. Each intent succeeds once, and each success that was answered is in the ledger.
func TestJournal_Kill(t *testing.T) {
	programme := soaktest.Start(t)
	file, events := filepath.Join(t.TempDir(), "ledger.jsonl"), make(chan event)
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 21))
	done, running := map[string]bool{}, map[*exec.Cmd]bool{}
	take := func() {
		select {
		case e := <-events:
			switch {
			case e.line == nil:
				delete(running, e.of)
			case e.line[0] == "done":
				done[e.line[1]] = true
			default:
				t.Error(e.line)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the work does not go on")
		}
	}
	start := func() { running[startProcess(t, worker+"="+file, events)] = true }
	for range 3 {
		start()
	}
	for range soaktest.Cases(t, 2, 6, 300) {
		if !programme.Next() {
			break
		}
		for goal := len(done) + 20 + random.IntN(20); len(done) < goal; {
			take()
		}
		for c := range running {
			_ = c.Process.Kill()
			for running[c] {
				take()
			}
			break // any one: the order is random
		}
		start()
	}
	for c := range running {
		_ = c.Process.Kill()
	}
	for len(running) > 0 {
		take()
	}
	t.Logf("%d intents charged", len(done))
	checkSuccesses(t, file, done)
}

// checkSuccesses wants one success of each ref in the file, and no other two of one intent.
func checkSuccesses(t *testing.T, file string, done map[string]bool) {
	t.Helper()
	s, successes := openSandbox(t, file, Options{}), map[string]int{}
	for e := range s.Entries() {
		if e.State == processor.Succeeded {
			successes[e.Ref]++
		}
	}
	for ref, n := range successes {
		if n != 1 {
			t.Errorf("%d successes of %s", n, ref)
		}
	}
	for ref := range done {
		if successes[ref] != 1 {
			t.Errorf("%s was charged, and is not in the ledger", ref)
		}
	}
}

// TestFile_Owner: another user's file is refused, and nothing is made in another user's folder.
func TestFile_Owner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "new", "ledger.jsonl")
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		if _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), "uid 12345") {
			t.Errorf("Open = %v, want the owner", err)
		}
		if err := os.Mkdir(filepath.Dir(file), 0o700); (err == nil) != (round == 0) {
			t.Errorf("the folder was made, %v", err)
		}
		writeFile(t, file, "") // and then the file is there, and its owner counts
		if err := errors.Join(os.Chown(file, 12345, 12345), os.Chown(dir, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Chown(file, 0, 0), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	a, b := openSandbox(t, link, Options{}), openSandbox(t, file, Options{}) // two names of one file
	in := pay(t, a, 1)
	if got := mustLookup(t, b, in.Ref); got != in {
		t.Errorf("%+v, want %+v", got, in)
	}
}
