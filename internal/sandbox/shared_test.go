package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/soaktest"
	"github.com/duesday/duesday/internal/socket"
)

const worker = "DUESDAY_TEST_LEDGER"

// TestMain lets the test binary be a process that charges through the ledger of the environment.
func TestMain(m *testing.M) {
	file := os.Getenv(worker)
	if file == "" {
		os.Exit(m.Run())
	}
	fmt.Println("error", work(file))
	os.Exit(1)
}

var sharing = Options{Version: "v1", Holder: "duesday test"}

func share(t testing.TB, file string, o Options) *shared {
	t.Helper()
	l, err := Share(t.Context(), file, o)
	if err != nil {
		t.Fatal(err)
	}
	return l.(*shared)
}

func (s *shared) holds() bool { return s.election.Holds() }

// sharedPair returns a client and its holder.
func sharedPair(t *testing.T, o Options) (client, holder *shared) {
	t.Helper()
	file := ledgerFile(t)
	o.Version, o.Holder = sharing.Version, sharing.Holder
	holder, client = share(t, file, o), share(t, file, o)
	if !holder.holds() || client.holds() {
		t.Fatal("the second process has taken the file")
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), holder.Close()); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(file + ".*"); len(left) != 0 || err != nil {
			t.Errorf("%v are left, %v", left, err)
		}
	})
	return client, holder
}

// chargeOne opens the numbered intent, which is the same in all processes, and confirms it until it
// has succeeded. It reports how many answers were lost.
func chargeOne(ctx context.Context, p billing.Processor, by string, n int) (ref string, unknown int, err error) {
	sum, err := parseAmount("12.99", "EUR")
	if err != nil {
		return "", 0, err
	}
	r := billing.OpenRequest{Key: fmt.Sprint("open-", n), Amount: sum, Method: "pm_card_visa",
		Tag: billing.Tag{Installation: "i1", Account: "123", Subscription: "456", SKU: "789", Period: n}}
	for try := 0; ; try++ {
		in, err := p.Open(ctx, r)
		if err == nil && in.State == billing.Opened {
			in, err = p.Confirm(ctx, billing.ConfirmRequest{Key: fmt.Sprint(by, n, "-", try), Ref: in.Ref, Method: r.Method})
		}
		if err == nil && in.State == billing.Succeeded {
			return in.Ref, unknown, nil
		}
		if !errors.Is(err, billing.ErrUnknown) {
			return "", unknown, fmt.Errorf("charge %d: %+v, %w", n, in, err)
		}
		unknown++
		if in.Ref != "" {
			if in, err = p.Lookup(ctx, in.Ref); err != nil {
				return "", unknown, fmt.Errorf("look up %d: %w", n, err)
			}
		}
	}
}

// work charges for ever, and tells of each success.
func work(file string) error {
	ctx := context.Background()
	l, err := Share(ctx, file, sharing)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		ref, unknown, err := chargeOne(ctx, l, fmt.Sprint(os.Getpid()), n)
		if err != nil {
			return err
		}
		fmt.Println("done", ref, l.(*shared).holds(), unknown)
	}
}

// checkSuccesses wants one success of each ref in the file, and no other two of one intent.
func checkSuccesses(t *testing.T, file string, done map[string]bool) {
	t.Helper()
	s, successes := openSandbox(t, file, sharing), map[string]int{}
	for e := range s.Entries() {
		if e.State == billing.Succeeded {
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
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// An event is a line of a worker, or its end.
type event struct {
	of   *exec.Cmd
	line []string // nil: the end
}

func startWorker(t *testing.T, file string, events chan<- event) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe)
	c.Env = append(os.Environ(), worker+"="+file)
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

// TestShared_Kill: three processes charge the same intents through one file, and the holder is
// killed, again and again. Every intent succeeds once, and each success that was answered is in the
// ledger.
func TestShared_Kill(t *testing.T) {
	programme := soaktest.Start(t)
	file, events := filepath.Join(t.TempDir(), strings.Repeat("l", 90)), make(chan event) // too long for a socket
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 21))
	var holder *exec.Cmd
	done, running, unknown := map[string]bool{}, map[*exec.Cmd]bool{}, 0
	take := func() {
		select {
		case e := <-events:
			switch {
			case e.line == nil:
				delete(running, e.of)
			case e.line[0] == "done":
				done[e.line[1]] = true
				if e.line[2] == "true" {
					holder = e.of
				}
				if e.line[3] != "0" {
					unknown++
				}
			default:
				t.Error(e.line)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the work does not go on")
		}
	}
	for range 3 {
		running[startWorker(t, file, events)] = true
	}
	for range soaktest.Cases(t, 2, 6, 300) {
		if !programme.Next() {
			break
		}
		for goal := len(done) + 20 + random.IntN(20); len(done) < goal || !running[holder]; {
			take()
		}
		_ = holder.Process.Kill()
		for running[holder] {
			take()
		}
		running[startWorker(t, file, events)] = true
	}
	for c := range running {
		_ = c.Process.Kill()
	}
	for len(running) > 0 {
		take()
	}
	t.Logf("%d intents charged; %d answers lost", len(done), unknown)
	if err := share(t, file, sharing).Close(); err != nil { // which clears the last one's socket
		t.Error(err)
	}
	checkSuccesses(t, file, done)
}

// TestShared_HandOver: processes come and go in order, the holder too, while others charge and list.
// Nothing fails, and no answer is lost.
func TestShared_HandOver(t *testing.T) {
	file := ledgerFile(t)
	first := share(t, file, sharing)
	var all sync.WaitGroup
	var mu sync.Mutex
	done, elections, begun := map[string]bool{}, 0, make(chan struct{})
	var count atomic.Int64
	for w := range 3 {
		s := share(t, file, sharing)
		all.Go(func() {
			for n := range 60 {
				ref, unknown, err := chargeOne(t.Context(), s, fmt.Sprint("w", w), w*1000+n)
				if err != nil || unknown != 0 {
					t.Errorf("charge %d: %d answers lost, %v", n, unknown, err)
				}
				if rows := len(list(t, s, time.Time{})); rows < n+1 {
					t.Errorf("%d successes after %d", rows, n+1)
				}
				mu.Lock()
				done[ref] = true
				if n%10 == 9 && s.holds() {
					elections++
				}
				mu.Unlock()
				if n%10 == 9 { // ends, perhaps as the holder, and comes back
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					s = share(t, file, sharing)
				}
				if count.Add(1) == 20 {
					close(begun)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	<-begun
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if len(done) != 180 || elections == 0 {
		t.Errorf("%d charges, %d holders have ended; want 180, and some", len(done), elections)
	}
	checkSuccesses(t, file, done)
}

// A dying ledger closes its file in the middle of a list, as a killed holder's.
type dying struct{ *Sandbox }

func (d dying) List(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Intent, error] {
	return breakOff(d.Sandbox, d.Sandbox.List(ctx, r))
}

func (d dying) Reversals(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Reversal, error] {
	return breakOff(d.Sandbox, d.Sandbox.Reversals(ctx, r))
}

func breakOff[T any](s *Sandbox, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for v, err := range all {
			if n++; n == 25 {
				break
			}
			if !yield(v, err) {
				return
			}
		}
		var none T
		yield(none, errors.Join(asLost(billing.ErrUnknown), s.Close()))
	}
}

// TestShared_List: the holder dies in the middle of a list. The list goes on where it was.
func TestShared_List(t *testing.T) {
	file, c := ledgerFile(t), newClock()
	o := sharing
	o.Now = c.Now
	first := share(t, file, o)
	for n := range 600 {
		in := pay(t, first, n)
		if n%10 == 0 { // ten of an instant
			c.move(time.Millisecond)
			if _, err := first.Refund(t.Context(), billing.RefundRequest{Key: fmt.Sprint("r", n), ID: fmt.Sprint(n),
				Ref: in.Ref, Amount: in.Amount}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := func(list func(*shared) []int, rows int, want func(int) int) {
		t.Helper()
		box := openSandbox(t, file, o)
		s := &shared{file: file, o: o}
		died := false
		s.election = s.elections(func() (*session, error) {
			if died {
				return s.hold()
			}
			died = true
			return &session{Shared: dying{box}, Holder: "the dead", End: func() error { return nil }}, nil
		})
		got := list(s)
		for i, period := range got {
			if period != want(i) {
				t.Fatalf("element %d is of period %d", i, period)
			}
		}
		if len(got) != rows || !s.holds() {
			t.Errorf("%d elements, want %d; holder %t", len(got), rows, s.holds())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	again(func(s *shared) []int { return list(t, s, time.Time{}) }, 600,
		func(i int) int { return i })
	again(func(s *shared) []int {
		return gather(t, s.Reversals(t.Context(), billing.ListRequest{}), func(r billing.Reversal) int { return r.Tag.Period })
	}, 60, func(i int) int { return i * 10 })
}

// TestShared_LongList: a holder does not wait for the end of a list that a client reads slowly. The
// list goes on at the next holder.
func TestShared_LongList(t *testing.T) {
	file, n := ledgerFile(t), 20_000 // more than HTTP sends ahead
	var text strings.Builder
	for i := range n {
		text.WriteString(plain(fmt.Sprint("pi_", i), i, "succeeded", "2026-03-01T09:00:00Z"))
	}
	writeFile(t, file, text.String())
	holder, client := share(t, file, sharing), share(t, file, sharing)
	next := 0
	for in, err := range client.List(t.Context(), billing.ListRequest{}) {
		if err != nil || in.Tag.Period != next {
			t.Fatalf("element %d: %+v, %v", next, in, err)
		}
		if next++; next == 100 {
			if err := holder.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if next != n || !client.holds() {
		t.Errorf("%d of %d elements, holder %t", next, n, client.holds())
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func gather[T any](t *testing.T, all iter.Seq2[T, error], number func(T) int) (numbers []int) {
	t.Helper()
	for v, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, number(v))
	}
	return numbers
}

// TestShared_Stopped: a holder that stands still, as after Ctrl-Z, fails its clients within 10
// seconds and is named. When it goes on, so do they.
func TestShared_Stopped(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	file, events := ledgerFile(t), make(chan event)
	c := startWorker(t, file, events)
	for (<-events).line[2] != "true" {
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for (<-events).line != nil {
		}
	}()
	client := share(t, file, sharing)
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	fails := func(what string, want error, call func() error) {
		t.Helper()
		began := time.Now()
		err := call()
		if took := time.Since(began); took > 10*time.Second || !errors.Is(err, want) ||
			!strings.Contains(err.Error(), fmt.Sprintf("pid %d", c.Process.Pid)) {
			t.Errorf("%s: %v after %s; want %v with the pid %d", what, err, took, want, c.Process.Pid)
		}
	}
	fails("Cancel", billing.ErrUnknown, func() (err error) {
		for err == nil { // until the signal has come
			_, err = client.Cancel(t.Context(), "pi_none")
			if errors.Is(err, billing.ErrNoIntent) {
				err = nil
			}
		}
		return err
	})
	fails("Lookup", billing.ErrNotExecuted, func() error {
		_, err := client.Lookup(t.Context(), "pi_none")
		return err
	})
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Lookup(t.Context(), "pi_none"); !errors.Is(err, billing.ErrNoIntent) {
		t.Errorf("Lookup = %v after the holder has gone on", err)
	}
	if err := errors.Join(client.Close(), c.Process.Kill()); err != nil {
		t.Error(err)
	}
	<-ended
}

// TestShared_Differs: a process of another version or with other parameters is refused at once, and
// told of the difference.
func TestShared_Differs(t *testing.T) {
	file := ledgerFile(t)
	s := share(t, file, sharing)
	for _, x := range []struct {
		o    Options
		want []string
	}{
		{Options{Version: "v2"}, []string{"Duesday v1", "this is v2", `"duesday test" (pid `}},
		{Options{Version: "v1", Latency: time.Second}, []string{"latency 0s", "latency 1s", fmt.Sprint("pid ", os.Getpid())}},
		{Options{Version: "v1", LostRate: 0.5, Seed: 1}, []string{"lost 0.5", "seed 1"}},
	} {
		_, err := Share(t.Context(), file, x.o)
		if !errors.Is(err, ErrHolder) {
			t.Errorf("%+v: %v", x.o, err)
			continue
		}
		for _, want := range x.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: want %s in it", err, want)
			}
		}
	}
	client := share(t, file, sharing)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again := share(t, file, Options{Version: "v2", Latency: time.Microsecond}) // nobody holds it
	if _, err := client.Lookup(t.Context(), "x"); !errors.Is(err, ErrHolder) || !errors.Is(err, billing.ErrNotExecuted) {
		t.Errorf("of a client, whose next holder is another version: %v", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := again.Lookup(t.Context(), "x"); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestShared_Damaged: everybody is told of a file that cannot be read.
func TestShared_Damaged(t *testing.T) {
	file := ledgerFile(t)
	writeFile(t, file, "no ledger\n{}\n")
	for range 2 {
		if _, err := Share(t.Context(), file, sharing); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("Share = %v, want the line", err)
		}
	}
	if left, err := filepath.Glob(file + ".*"); len(left) != 0 || err != nil {
		t.Errorf("%v are left, %v", left, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Remove(file), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	a, b := share(t, link, sharing), share(t, file, sharing) // two names of one file
	pay(t, b, 1)
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// TestShared_Owner: another user's file is refused, and nothing is made in another user's folder.
func TestShared_Owner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "new", "ledger.jsonl")
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		if _, err := Share(t.Context(), file, sharing); err == nil || !strings.Contains(err.Error(), "uid 12345") {
			t.Errorf("Share = %v, want the owner", err)
		}
		if made, err := filepath.Glob(file + ".*"); len(made) != 0 || err != nil {
			t.Errorf("%v were made, %v", made, err)
		}
		if err := os.Mkdir(filepath.Dir(file), 0o700); (err == nil) != (round == 0) {
			t.Errorf("the folder was made, %v", err)
		}
		writeFile(t, file, "") // and then the file is there, and its owner counts
		if err := errors.Join(os.Chown(file, 12345, 12345), os.Chown(dir, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&socket.Post{Held: file, File: file + holderEnding, Socket: "/a.sock"}).Write(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/a.sock", ""} {
		if who, at := (&shared{file: file}).holder(); at != want {
			t.Errorf("%s is at %q, want %q", who, at, want)
		}
		if err := os.Chown(file+holderEnding, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
}
