package folder_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
	"github.com/duesday/duesday/internal/store/link"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
)

const worker = "DUESDAY_TEST_FOLDER"

// TestMain lets the test binary be a process that works in the folder named by the environment.
func TestMain(m *testing.M) {
	dir := os.Getenv(worker)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := work(dir); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

var tables = []store.Table{{Name: "t", PartitionKey: "pk"}}

func options(tables []store.Table, now func() time.Time) folder.Options {
	return folder.Options{Version: "v1", Options: pebblestore.Options{Tables: tables, Names: []string{"pk", "sk"}, Now: now,
		Create: true, CacheBytes: 1 << 20, Holder: "duesday test"}}
}

func open(t *testing.T, dir string, o folder.Options) *folder.Store {
	t.Helper()
	s, err := folder.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestContract holds the client of a holder to the contract, on a real disk, in a soak. Package link
// holds a client to it in each run, over a store in memory.
func TestContract(t *testing.T) {
	if programme := soaktest.Start(t); !soaktest.On() || !programme.Next() {
		t.Skip("DUESDAY_SOAK=1 plays it")
	}
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		dir := t.TempDir()
		holder, client := open(t, dir, options(tables, now)), open(t, dir, options(tables, now))
		if !holder.Holds() || client.Holds() {
			t.Fatal("the second process has taken the folder")
		}
		t.Cleanup(func() {
			if err := holder.Close(); err != nil {
				t.Error(err)
			}
		})
		return client
	})
}

func itemAt(pk string) store.Item {
	return store.NewItem(store.Attribute{Name: "pk", Value: store.S(pk)})
}

// TestHandOver: processes come and go, the holder too, while others read and commit. Nothing fails,
// nothing is unknown, and what is done stays.
func TestHandOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a", 90)) // too long for a socket
	first := open(t, dir, options(tables, nil))
	var done, elections atomic.Int64
	fifty := make(chan struct{})
	var all sync.WaitGroup
	for w := range 3 {
		s := open(t, dir, options(tables, nil))
		all.Go(func() {
			for n := range 200 {
				pk := fmt.Sprint(w, "-", n)
				if err := s.Commit(t.Context(), store.Put("t", itemAt(pk), store.Absent())); err != nil {
					t.Errorf("commit %s: %v", pk, err)
				}
				if n%20 == 19 { // ends, perhaps as the holder, and comes back
					if s.Holds() {
						elections.Add(1)
					}
					if err := s.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
					s = open(t, dir, options(tables, nil))
				}
				if _, err := s.Get(t.Context(), "t", store.Key{PK: pk}); err != nil {
					t.Errorf("get %s: %v", pk, err)
				}
				if rows := count(t, s); rows < n+1 {
					t.Errorf("%d rows after %d commits", rows, n+1)
				}
				if done.Add(1) == 50 {
					close(fifty)
				}
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	<-fifty
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	last := open(t, dir, options(tables, nil))
	if rows := count(t, last); rows != 600 {
		t.Errorf("%d rows, want 600", rows)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	if elections.Load() == 0 {
		t.Error("no holder but the first has ended")
	}
}

func count(t *testing.T, s store.Store) (rows int) {
	seen := map[string]bool{}
	for it, err := range s.Scan(t.Context(), store.Scan{Table: "t"}) {
		if err != nil {
			t.Errorf("Scan: %v", err)
		}
		if pk := it.Str("pk"); seen[pk] {
			t.Errorf("%s is there twice", pk)
		} else {
			seen[pk] = true
		}
		rows++
	}
	return rows
}

// work commits for ever, and says of each commit whether it is done or unknown.
func work(dir string) error {
	ctx := context.Background()
	s, err := folder.Open(ctx, dir, options(tables, nil))
	if err != nil {
		return err
	}
	begun := time.Now().UnixNano() // a pid may come again
	for n := 0; ; n++ {
		pk := fmt.Sprint(os.Getpid(), ".", begun, "-", n)
		err := s.Commit(ctx, store.Put("t", itemAt(pk), store.Absent()))
		switch {
		case err == nil:
			fmt.Println("done", pk, s.Holds())
		case errors.Is(err, store.ErrUnknown):
			fmt.Println("unknown", pk, false)
		default:
			return err
		}
	}
}

// An event is a line of a process of work, or its end.
type event struct {
	of    *exec.Cmd
	word  string // done, unknown or error; "" for the end
	pk    string
	holds bool
}

// start starts a process of work in the folder. Its events come over the channel.
func start(t *testing.T, dir string, events chan<- event) *exec.Cmd {
	c := exec.CommandContext(t.Context(), executable(t))
	c.Env = append(os.Environ(), worker+"="+dir)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			pk, holds, _ := strings.Cut(rest, " ")
			events <- event{c, word, pk, holds == "true"}
		}
		_ = c.Wait() // it was killed
		events <- event{of: c}
	}()
	return c
}

// TestKill: of several processes at work the holder is killed, again and again. The others go on.
// What was done is there, and only a killed holder leaves something unknown.
func TestKill(t *testing.T) {
	programme := soaktest.Start(t)
	dir, events := t.TempDir(), make(chan event)
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 20))
	var holder *exec.Cmd
	done, running, unknown := map[string]bool{}, map[*exec.Cmd]bool{}, 0
	take := func() {
		select {
		case e := <-events:
			switch e.word {
			case "":
				delete(running, e.of)
			case "done":
				if done[e.pk] = true; e.holds {
					holder = e.of
				}
			case "unknown":
				unknown++
			default:
				t.Error(e.word, e.pk)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the work does not go on")
		}
	}
	for range 3 {
		running[start(t, dir, events)] = true
	}
	for range soaktest.Cases(t, 0, 6, 300) {
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
		running[start(t, dir, events)] = true
	}
	for c := range running {
		_ = c.Process.Kill()
	}
	for len(running) > 0 {
		take()
	}
	s := open(t, dir, options(tables, nil))
	for pk := range done {
		if _, err := s.Get(t.Context(), "t", store.Key{PK: pk}); err != nil {
			t.Errorf("%s was done: %v", pk, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d commits done, %d unknown", len(done), unknown)
}

// TestQuery: the holder ends while a client is in the middle of a list. The list goes on where it
// was, up to its limit.
func TestQuery(t *testing.T) {
	declared := []store.Table{{Name: "t", PartitionKey: "pk", SortKey: "sk",
		Indexes: []store.Index{{Name: "i", PartitionKey: "kind", SortKey: "rank"}}}}
	dir, rows := t.TempDir(), 700 // several pages
	var writes []store.Write
	first := open(t, dir, options(declared, nil))
	for n := range rows {
		it := itemAt("p")
		it.Set("sk", store.S(fmt.Sprintf("%04d", n)))
		it.Set("kind", store.S("k"))
		it.Set("rank", store.S(fmt.Sprintf("%04d", n)))
		if writes = append(writes, store.Put("t", it)); len(writes) == 100 {
			if err := first.Commit(t.Context(), writes...); err != nil {
				t.Fatal(err)
			}
			writes = nil
		}
	}
	for _, q := range []store.Query{{Partition: "p"}, {Partition: "p", Limit: 600}, {Partition: "p", Reverse: true},
		{Partition: "k", Index: "i"}, {Partition: "k", Index: "i", Limit: 300, Reverse: true}} {
		q.Table = "t"
		client, n := open(t, dir, options(declared, nil)), 0
		for it, err := range client.Query(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			want := n
			if q.Reverse {
				want = rows - 1 - n
			}
			if got := it.Str("sk"); got != fmt.Sprintf("%04d", want) {
				t.Fatalf("%+v: row %s, want %04d", q, got, want)
			}
			if n++; n == 100 {
				if err := first.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if want := cmp.Or(q.Limit, rows); n != want || !client.Holds() {
			t.Errorf("%+v: %d rows, want %d; holder %t", q, n, want, client.Holds())
		}
		first = client
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

func executable(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// TestLasting: a process that stays gets the folder from one that does not, in the middle of its work.
// The other goes on as a client. Between two that stay, the first one keeps it.
func TestLasting(t *testing.T) {
	dir := t.TempDir()
	short := open(t, dir, options(tables, nil))
	stays := options(tables, nil)
	stays.Lasting = true
	lost, _, err := short.Claim(t.Context(), "run", "short")
	if err != nil {
		t.Fatal(err)
	}
	opened, begun, ended := make(chan *folder.Store, 1), make(chan struct{}), make(chan struct{})
	go func() {
		<-begun
		s, err := folder.Open(t.Context(), dir, stays)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	go func() {
		defer close(ended)
		for n := range 400 {
			if n == 100 {
				close(begun)
			}
			if err := short.Commit(t.Context(), store.Put("t", itemAt(fmt.Sprint(n)), store.Absent())); err != nil {
				t.Errorf("commit %d: %v", n, err)
			}
			if rows := count(t, short); rows != n+1 {
				t.Errorf("%d rows after %d commits", rows, n+1)
			}
		}
	}()
	lasting := <-opened
	<-ended
	<-lost
	if lasting == nil || !lasting.Holds() || short.Holds() {
		t.Fatal("the folder was not handed over")
	}
	second := open(t, dir, stays)
	if second.Holds() || !lasting.Holds() || count(t, second) != 400 {
		t.Error("the folder was handed over to a second one that stays")
	}
	for _, s := range []*folder.Store{lasting, short, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClock: all processes of a folder live by the first one's test clock, also after its end.
func TestClock(t *testing.T) {
	dir, real := t.TempDir(), time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	now := func() time.Time { return real }
	o := options(tables, now)
	o.Clock = "2026-01-01,1h/s,2026-11-22T09:59:00Z"
	first := open(t, dir, o)
	client := open(t, dir, options(tables, now))
	other := options(tables, now)
	other.Clock = "2026-01-01,1h/s,2026-11-22T09:59:01Z"
	if _, err := folder.Open(t.Context(), dir, other); !errors.Is(err, link.ErrClock) || !strings.Contains(err.Error(), other.Clock) {
		t.Errorf("another clock: %v, want ErrClock", err)
	}
	it, want := itemAt("a"), time.Date(2026, 1, 3, 12, 0, 0, 0, time.UTC)
	if err := client.Commit(t.Context(), store.Put("t", it)); err != nil {
		t.Error(err)
	}
	for range 2 {
		if got := client.Clock().Now(); !got.Equal(want) {
			t.Errorf("the client's clock shows %s, want %s", got, want)
		}
		if !client.Holds() {
			if err := first.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := count(t, client); n != 1 {
			t.Errorf("%d rows", n)
		}
	}
	if _, err := folder.Open(t.Context(), dir, other); !client.Holds() || !errors.Is(err, link.ErrClock) {
		t.Errorf("another clock at the next holder: %v, want ErrClock", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestClock_Changes: a process that has lived by one clock refuses a holder with another one.
func TestClock_Changes(t *testing.T) {
	dir := t.TempDir()
	first, client := open(t, dir, options(tables, nil)), open(t, dir, options(tables, nil))
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	o := options(tables, nil)
	o.Clock = "2026-01-01,1h/s,2026-11-22T09:59:00Z"
	test := open(t, dir, o)
	if _, err := client.Get(t.Context(), "t", store.Key{PK: "x"}); !errors.Is(err, link.ErrClock) {
		t.Errorf("Get = %v at a holder with a test clock, want ErrClock", err)
	}
	if now := client.Clock().Now(); time.Since(now).Abs() > time.Hour {
		t.Errorf("the clock has changed to %s", now)
	}
	if err := test.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(t.Context(), "t", store.Key{PK: "x"}); !errors.Is(err, store.ErrNotFound) || !client.Holds() {
		t.Errorf("Get = %v once the folder is free", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestUnserved: a process that has the folder for itself is named after a moment.
func TestUnserved(t *testing.T) {
	dir := t.TempDir()
	alone, err := pebblestore.Open(dir, options(tables, nil).Options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Open(t.Context(), dir, options(tables, nil)); !errors.Is(err, store.ErrLocked) ||
		!strings.Contains(err.Error(), fmt.Sprintf(`"duesday test" (pid %d`, os.Getpid())) {
		t.Errorf("Open = %v, want ErrLocked with the holder", err)
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}

	// Calls at the same time learn of it at the same time.
	first, client := open(t, dir, options(tables, nil)), open(t, dir, options(tables, nil))
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if alone, err = pebblestore.Open(dir, options(tables, nil).Options); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	begun := time.Now()
	for range 30 {
		calls.Go(func() {
			if _, err := client.Get(t.Context(), "t", store.Key{PK: "x"}); !errors.Is(err, store.ErrLocked) {
				t.Errorf("Get = %v, want ErrLocked", err)
			}
		})
	}
	calls.Wait()
	if took := time.Since(begun); took > 15*time.Second { // one after the other: 30
		t.Errorf("30 calls took %s", took)
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(t.Context(), "t", store.Key{PK: "x"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get = %v once the folder is free", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestVersion: a process of another version is refused at once, and named.
func TestVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, options(tables, nil))
	o := options(tables, nil)
	o.Version = "v2"
	if _, err := folder.Open(t.Context(), dir, o); !errors.Is(err, link.ErrVersion) || !strings.Contains(err.Error(), "v2") {
		t.Errorf("Open = %v, want ErrVersion", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFound: a client finds the holder though someone has removed its socket and edited HOLDER, and a
// file of a killed holder names nobody while another process has the folder.
func TestFound(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	holder := open(t, link, options(tables, nil))
	at, file := filepath.Join(dir, "duesday.sock"), filepath.Join(dir, "HOLDER")
	written, err := os.ReadFile(file)
	if err == nil {
		err = errors.Join(os.Remove(at), os.WriteFile(file, []byte("santa (pid 1)\n"+at+"\n"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	if client := open(t, dir, options(tables, nil)); client.Holds() {
		t.Error("there are two holders")
	} else if err := errors.Join(client.Close(), holder.Close()); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, written, 0o600); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	release, err := pebblestore.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Open(t.Context(), dir, options(tables, nil)); !errors.Is(err, store.ErrLocked) ||
		!strings.Contains(err.Error(), "in use by another process;") {
		t.Errorf("got %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// TestEverybodys: a folder that everybody may write is refused before a file is made in it, to the
// process that would hold it and to a client of the holder.
func TestEverybodys(t *testing.T) {
	dir, held := t.TempDir(), t.TempDir()
	holder := open(t, held, options(tables, nil))
	for _, dir := range []string{dir, held} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := folder.Open(t.Context(), dir, options(tables, nil)); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := pebblestore.Open(dir, options(tables, nil).Options); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if err := holder.Close(); err != nil {
		t.Error(err)
	}
}
