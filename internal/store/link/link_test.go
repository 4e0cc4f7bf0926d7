package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

// TestContract holds a client to the contract, over a Unix socket.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		held, err := memstore.Open(tables, now)
		if err != nil {
			t.Fatal(err)
		}
		o := link.Options{Version: "1", Tables: tables, Names: []string{"pk", "sk", "state"}}
		l := listen(t)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		served := make(chan struct{})
		go func() {
			defer close(served)
			conn, err := l.Accept()
			if err == nil {
				_ = link.Serve(ctx, conn, held, o) // ends with the test
			}
		}()
		conn, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := link.Connect(ctx, conn, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cancel()
			<-served
			_ = held.Close() // a test may have closed it
		})
		return c
	})
}

// listen returns a listener on a socket with a short path.
func listen(t *testing.T) net.Listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "link")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), os.RemoveAll(dir) })
	return l
}

var tables = []store.Table{{Name: "t", PartitionKey: "pk"}}

func options() link.Options {
	return link.Options{Version: "v1.2.3", Tables: tables, Names: []string{"pk"}}
}

func itemAt(pk string) store.Item {
	return store.NewItem(store.Attribute{Name: "pk", Value: store.S(pk)})
}

func openMemory(t testing.TB) *memstore.Store {
	t.Helper()
	s, err := memstore.Open(tables, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A short connection ends after so many bytes in each direction.
type short struct {
	net.Conn
	left atomic.Int64
}

func (s *short) Write(b []byte) (int, error) {
	if n := s.left.Add(-int64(len(b))); n < 0 {
		whole := max(0, len(b)+int(n))
		_, _ = s.Conn.Write(b[:whole]) // what has left before the cut
		return whole, errors.Join(errors.New("cut"), s.Conn.Close())
	}
	return s.Conn.Write(b)
}

// TestCut cuts the connection at every byte that a client sends, and at every one that the holder
// sends, while the client commits. A commit that is done has landed, and one that was not sent has
// not.
func TestCut(t *testing.T) {
	const commits = 3
	for _, side := range []string{"client", "holder"} {
		seen := map[string]int{}
		for at := int64(1); ; at++ {
			whole := false
			synctest.Test(t, func(t *testing.T) {
				held := openMemory(t)
				near, far := net.Pipe()
				cut := &short{Conn: near}
				client, holder := net.Conn(cut), far
				if side == "holder" {
					cut.Conn = far
					client, holder = near, cut
				}
				cut.left.Store(at)
				served := make(chan error, 1)
				go func() { served <- link.Serve(context.Background(), holder, held, options()) }()
				c, err := link.Connect(t.Context(), client, options())
				if err != nil {
					seen["greeting"]++
					<-served
					return
				}
				whole = true
				for i := range commits {
					err := c.Commit(t.Context(), store.Put("t", itemAt(fmt.Sprint(i)), store.Absent()))
					synctest.Wait()
					_, missing := held.Get(t.Context(), "t", store.Key{PK: fmt.Sprint(i)})
					switch {
					case err == nil && missing != nil:
						t.Errorf("cut of the %s after %d bytes: commit %d is done and has not landed", side, at, i)
					case err == nil:
						continue
					case errors.Is(err, store.ErrUnknown) && missing == nil:
						seen["landed"]++
					case errors.Is(err, store.ErrUnknown):
						seen["lost"]++
					case errors.Is(err, link.ErrLost) && missing == nil:
						t.Errorf("cut of the %s after %d bytes: commit %d was not sent and has landed", side, at, i)
					case !errors.Is(err, link.ErrLost):
						t.Errorf("cut of the %s after %d bytes: %v", side, at, err)
					default:
						seen["unsent"]++
					}
					whole = false
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				<-served
			})
			if whole {
				break
			}
		}
		t.Logf("%s: %v", side, seen)
		if seen["greeting"] == 0 || seen["landed"]+seen["lost"] == 0 || seen["unsent"] == 0 {
			t.Errorf("%s: not every kind of cut was met: %v", side, seen)
		}
	}
}

// TestSilence: a holder that stands still, and a client that takes nothing, are given up.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		served := make(chan error, 1)
		stuck := &stopped{Store: openMemory(t), hold: make(chan struct{})}
		frozen := &still{Conn: far, ice: make(chan struct{})}
		go func() { served <- link.Serve(context.Background(), frozen, stuck, options()) }()
		c, err := link.Connect(t.Context(), near, options())
		if err != nil {
			t.Fatal(err)
		}
		// A slow commit of a holder that beats is waited for.
		go func() {
			time.Sleep(time.Minute)
			close(stuck.hold)
		}()
		if err := c.Commit(t.Context(), store.Put("t", itemAt("a"))); err != nil {
			t.Errorf("a slow commit: %v", err)
		}
		close(frozen.ice)
		begun := time.Now()
		if _, err := c.Get(t.Context(), "t", store.Key{PK: "a"}); !errors.Is(err, link.ErrLost) {
			t.Errorf("Get from a holder that stands still: %v", err)
		}
		if err := c.Commit(t.Context(), store.Put("t", itemAt("b"))); !errors.Is(err, link.ErrLost) {
			t.Errorf("Commit after it: %v, want ErrLost", err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it was noticed after %s", took)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
}

// TestFullWire: a holder that beats and takes no more requests is given up too.
func TestFullWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		served := make(chan error, 1)
		busy := &stopped{Store: openMemory(t), hold: make(chan struct{})}
		go func() { served <- link.Serve(context.Background(), far, busy, options()) }()
		c, err := link.Connect(t.Context(), near, options())
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", 1000) // all of them together fit into no buffer
		var calls sync.WaitGroup
		for i := range 600 {
			calls.Go(func() {
				err := c.Commit(t.Context(), store.Put("t", itemAt(fmt.Sprint(long, i))))
				if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, link.ErrLost) {
					t.Errorf("commit %d: %v", i, err)
				}
			})
		}
		begun := time.Now()
		calls.Wait()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it was noticed after %s", took)
		}
		close(busy.hold)
		<-served
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// stopped is a store whose commits wait.
type stopped struct {
	store.Store
	hold chan struct{}
}

func (s *stopped) Commit(ctx context.Context, writes ...store.Write) error {
	<-s.hold
	return s.Store.Commit(ctx, writes...)
}

// still is a connection of a process that stands still once ice is closed: nothing is sent.
type still struct {
	net.Conn
	ice chan struct{}
}

func (s *still) Write(b []byte) (int, error) {
	select {
	case <-s.ice:
		return len(b), nil
	default:
		return s.Conn.Write(b)
	}
}

// TestEnd: a holder that stops serving while clients commit answers what it has carried out. Whatever
// else was asked is ErrLost, and has not landed: nothing is unknown.
func TestEnd(t *testing.T) {
	for i := range 200 {
		synctest.Test(t, func(t *testing.T) {
			held := openMemory(t)
			near, far := net.Pipe()
			ctx, end := context.WithCancel(context.Background())
			defer end()
			served := make(chan error, 1)
			go func() { served <- link.Serve(ctx, far, held, options()) }()
			c, err := link.Connect(t.Context(), near, options())
			if err != nil {
				t.Fatal(err)
			}
			var done, lost atomic.Int64
			var work sync.WaitGroup
			for worker := range 4 {
				work.Go(func() {
					for n := 0; ; n++ {
						if int(done.Load()) >= i {
							end()
						}
						pk := fmt.Sprint(worker, "-", n)
						err := c.Commit(t.Context(), store.Put("t", itemAt(pk), store.Absent()))
						_, missing := held.Get(t.Context(), "t", store.Key{PK: pk})
						switch {
						case err == nil && missing == nil:
							done.Add(1)
						case errors.Is(err, link.ErrLost) && !errors.Is(err, store.ErrUnknown) && missing != nil:
							lost.Add(1)
							return
						default:
							t.Errorf("commit %s: %v, and then %v", pk, err, missing)
							return
						}
					}
				})
			}
			work.Wait()
			if err := <-served; !errors.Is(err, context.Canceled) {
				t.Errorf("Serve: %v", err)
			}
			if lost.Load() != 4 || c.Close() != nil {
				t.Errorf("%d were lost", lost.Load())
			}
		})
	}
}

// TestGreeting: a client of another version, with other tables or by another clock is refused by name,
// one without a clock is told the holder's, and one that stays gets the store.
func TestGreeting(t *testing.T) {
	const clock = "2026-01-01T00:00:00Z,1s/s,2026-11-22T10:00:00Z"
	for _, c := range []struct {
		change func(holder, client *link.Options)
		want   error
		says   string
	}{
		{func(_, c *link.Options) { c.Version = "v1.2.4" }, link.ErrVersion, `v1.2.3, this process is "v1.2.4"`},
		{func(_, c *link.Options) { c.Names = append(c.Names, "sk") }, link.ErrVersion, "v1.2.3"},
		{func(_, c *link.Options) { c.Clock = clock }, link.ErrClock, "the machine's, this process's clock is " + clock},
		{func(h, c *link.Options) { h.Clock, c.Clock = clock, "2026-01-02" }, link.ErrClock, "this process's clock is 2026-01-02"},
		{func(h, c *link.Options) { c.Lasting = true }, link.ErrHandOver, "handing"},
		{func(h, c *link.Options) { h.Lasting, c.Lasting = true, true }, nil, ""},
		{func(h, c *link.Options) { h.Clock, c.Clock = clock, clock }, nil, clock},
		{func(h, c *link.Options) { h.Clock, h.Lasting = clock, true }, nil, clock},
	} {
		h, o := options(), options()
		c.change(&h, &o)
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- link.Serve(t.Context(), far, openMemory(t), h) }()
		client, err := link.Connect(t.Context(), near, o)
		if c.want == nil {
			if err != nil || client.Clock() != c.says {
				t.Fatalf("%+v at %+v: %v", o, h, err)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			<-served
			continue
		}
		if !errors.Is(err, c.want) || client != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Connect = %v, %v; want %v with %q", client, err, c.want, c.says)
		}
		if err := <-served; !errors.Is(err, c.want) {
			t.Errorf("Serve = %v, want %v", err, c.want)
		}
	}
}

// FuzzServe: no bytes of a client can panic the holder, or change what they do not commit.
func FuzzServe(f *testing.F) {
	f.Add([]byte{0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 5, 2, 1})
	f.Add([]byte{0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 't', 2, 'a'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- link.Serve(context.Background(), far, openMemory(t), options()) }()
		c, err := link.Connect(t.Context(), &prefixed{Conn: near, more: sent}, options())
		if err == nil {
			_, _ = c.Get(t.Context(), "t", store.Key{PK: "a"}) // after the bytes, it may be too late for it
			_ = c.Close()
		}
		<-served
	})
}

// prefixed sends more bytes after the first frame.
type prefixed struct {
	net.Conn
	more []byte
	sent bool
}

func (p *prefixed) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	if err == nil && !p.sent {
		p.sent = true
		_, err = p.Conn.Write(p.more)
	}
	return n, err
}
