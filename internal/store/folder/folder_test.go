package folder_test

import (
	"bufio"
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

	"github.com/duesday/duesday/internal/soaktest"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
	"github.com/duesday/duesday/internal/store/link"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/store/storetest"
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
				done.Add(1)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	for done.Load() < 50 {
		time.Sleep(time.Millisecond)
	}
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
	for n := 0; ; n++ {
		pk := fmt.Sprint(os.Getpid(), "-", n)
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

// TestKill: of several processes at work the holder is killed, again and again. The others go on.
// What was done is there, and only a killed holder leaves something unknown.
func TestKill(t *testing.T) {
	programme := soaktest.Start(t)
	dir, exe := t.TempDir(), executable(t)
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 20))
	var mu sync.Mutex
	done, unknown, holder := map[string]bool{}, 0, 0
	var all sync.WaitGroup
	start := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), exe)
		c.Env = append(os.Environ(), worker+"="+dir)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				word, rest, _ := strings.Cut(lines.Text(), " ")
				pk, holds, _ := strings.Cut(rest, " ")
				mu.Lock()
				switch word {
				case "done":
					done[pk] = true
				case "unknown":
					unknown++
				default:
					t.Error(lines.Text())
				}
				if holds == "true" {
					holder = c.Process.Pid
				}
				mu.Unlock()
			}
			_ = c.Wait() // it was killed
		})
		return c
	}
	running := map[int]*exec.Cmd{}
	for range 3 {
		c := start()
		running[c.Process.Pid] = c
	}
	kills := soaktest.Cases(t, 0, 6, 300)
	for range kills {
		if !programme.Next() {
			break
		}
		before := 0
		for end := time.Now().Add(20 * time.Second); ; { // until work has gone on, with a holder alive
			mu.Lock()
			if before == 0 {
				before = len(done) + 20
			}
			ready := len(done) >= before && running[holder] != nil
			mu.Unlock()
			if ready {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the work does not go on")
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		mu.Lock()
		dead := holder
		mu.Unlock()
		_ = running[dead].Process.Kill()
		delete(running, dead)
		c := start()
		running[c.Process.Pid] = c
	}
	for _, c := range running {
		_ = c.Process.Kill()
	}
	all.Wait()
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

func executable(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
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
