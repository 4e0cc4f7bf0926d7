package listen_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/listen"
)

// A limited server answers requests for /hold when they are told to, and those for /read after their body.
type limited struct {
	address string
	begun   chan struct{}
	answer  chan struct{}
	stop    func() error
}

func newLimited(t *testing.T, o listen.Limits) *limited {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &limited{address: l.Addr().String(), begun: make(chan struct{}), answer: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		switch r.URL.Path {
		case "/hold":
			s.begun <- struct{}{}
			<-s.answer
		case "/read":
			_, _ = io.Copy(io.Discard, r.Body)
		}
	})}
	o.Free = func(r *http.Request) bool { return r.URL.Path == "/free" }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- listen.Serve(ctx, listen.Limit(l, server, o), server, slog.New(slog.DiscardHandler)) }()
	s.stop = func() error {
		cancel()
		return <-done
	}
	return s
}

func (s *limited) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// get asks on the connection, and returns nil once it was answered.
func get(c net.Conn, path string) error {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: here\r\n\r\n", path); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		err = r.Body.Close()
	}
	return err
}

// TestLimit_IdleOnesGiveWay: each new connection finds a place, and an idle one loses it.
func TestLimit_IdleOnesGiveWay(t *testing.T) {
	var open atomic.Int64
	s := newLimited(t, listen.Limits{Connections: 2, Opened: func(n int) { open.Add(int64(n)) }})
	closed := make(chan error, 22)
	for i := range 22 {
		c := s.dial(t)
		if i > 0 { // the first is silent
			if err := get(c, "/"); err != nil {
				t.Fatal(err)
			}
		}
		go func() {
			_, err := c.Read(make([]byte, 1))
			closed <- err
		}()
	}
	for range 21 {
		if err := <-closed; !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want that the server has closed the connection", err)
		}
	}
	if n := open.Load(); n != 1 { // a share is one
		t.Errorf("%d connections are open", n)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestLimit_RequestsAreNotCutOff: connections with requests stay, and a new one waits for their end.
func TestLimit_RequestsAreNotCutOff(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 3})
	held, waits := make(chan error, 2), make(chan error, 1)
	for range 2 {
		c := s.dial(t)
		go func() { held <- get(c, "/hold") }()
		<-s.begun
	}
	third := s.dial(t)
	go func() { waits <- get(third, "/") }()
	s.answer <- struct{}{}
	for _, from := range []chan error{held, waits} {
		if err := <-from; err != nil {
			t.Error(err)
		}
	}
	s.answer <- struct{}{}
	if err := <-held; err != nil {
		t.Error(err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestLimit_Stop: a connection that waits for a place does not keep the server.
func TestLimit_Stop(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 1})
	held := make(chan error, 1)
	c := s.dial(t)
	go func() { held <- get(c, "/hold") }()
	<-s.begun
	waits := s.dial(t)
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	_, _ = waits.Read(make([]byte, 1)) // the server has closed it, or the listener before
	close(s.answer)
	if err := errors.Join(<-held, <-stopped); err != nil {
		t.Error(err)
	}
}

// ends reports whether the server closes the connection, whatever it sends before.
func ends(c net.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

const unread = "POST /read HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n1234"

// TestLimit_SlowReadersGiveWay: silent connections, half heads and half bodies lose their places in
// the order in which they began to wait, and every request is answered.
func TestLimit_SlowReadersGiveWay(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 6, Proxies: local}) // no share
	var slow []net.Conn
	for _, text := range []string{unread, "GET / HT", "", "POST /read HTTP/1.1\r\n", unread, unread} {
		c := s.dial(t)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	for i, c := range slow[:4] {
		if err := get(s.dial(t), "/"); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
		if err := ends(c); err != nil {
			t.Errorf("connection %d is still open: %v", i, err)
		}
	}
	if _, err := io.WriteString(slow[5], "56789"); err != nil {
		t.Fatal(err)
	}
	if r, err := http.ReadResponse(bufio.NewReader(slow[5]), nil); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("the last one was closed before its turn: %v", err)
	}
	slow[4].Close()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

var local = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// TestLimit_Share: an address above its share loses its own slowest connection, and no other address does.
func TestLimit_Share(t *testing.T) {
	for name, tt := range map[string]struct {
		proxies []netip.Prefix
		from    string // of the connections
		head    string // of the caller with too many
	}{
		"connections":                    {nil, "127.0.0.2", ""},
		"requests behind a proxy":        {local, "127.0.0.1", "X-Forwarded-For: 6.6.6.6, 203.0.113.9\r\n"},
		"requests of a /64":              {local, "127.0.0.1", "X-Forwarded-For: 2001:db8:1:2:%x::\r\n"},
		"connections beside the proxy's": {local, "127.0.0.3", "X-Forwarded-For: 10.0.0.%d\r\n"},
	} {
		s := newLimited(t, listen.Limits{Connections: 12, Proxies: tt.proxies}) // a share is 3
		others := []net.Conn{s.dial(t), s.dial(t), s.dial(t)}
		var own []net.Conn
		for i := range 5 {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(tt.from)}}
			c, err := dialer.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			head := tt.head
			if strings.Contains(head, "%") {
				head = fmt.Sprintf(head, i)
			}
			if _, err := fmt.Fprintf(c, "POST /hold HTTP/1.1\r\nHost: here\r\n%sContent-Length: 4\r\n\r\n12", head); err != nil {
				t.Fatal(err)
			}
			<-s.begun
			own = append(own, c)
		}
		for i, c := range own[:2] {
			if err := ends(c); err != nil {
				t.Errorf("%s: connection %d: %v", name, i, err)
			}
		}
		for range 5 {
			s.answer <- struct{}{}
		}
		for _, c := range own[2:] {
			if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.StatusCode != http.StatusOK {
				t.Errorf("%s: a connection within the share was closed: %v", name, err)
			}
		}
		for _, c := range others {
			if err := get(c, "/"); err != nil {
				t.Errorf("%s: a connection of another address was closed: %v", name, err)
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestLimit_ShareRefusesNothing: requests that have arrived are answered, however many of one
// address there are.
func TestLimit_ShareRefusesNothing(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 12})
	held := make(chan error, 9)
	for range cap(held) {
		c := s.dial(t)
		go func() { held <- get(c, "/hold") }()
		<-s.begun
	}
	for range cap(held) {
		s.answer <- struct{}{}
		if err := <-held; err != nil {
			t.Error(err)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestLimit_Free: while all slots are taken, free requests are answered, and a slot that is given
// back goes to one that waits.
func TestLimit_Free(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 8}) // seven slots
	held, waits := make(chan error, 7), make(chan error, 1)
	for range cap(held) {
		c := s.dial(t)
		go func() { held <- get(c, "/hold") }()
		<-s.begun
	}
	for range 20 {
		if err := get(s.dial(t), "/free"); err != nil {
			t.Fatal(err)
		}
	}
	c := s.dial(t)
	go func() { waits <- get(c, "/hold") }()
	s.answer <- struct{}{}
	<-s.begun
	for range cap(held) {
		s.answer <- struct{}{}
	}
	for range cap(held) {
		if err := <-held; err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(<-waits, s.stop()); err != nil {
		t.Error(err)
	}
}

// TestLimit_EarlyAnswer: an answer that does not wait for the body closes the connection, long before the
// time for a request is over. A caller that goes on sending gets the answer.
func TestLimit_EarlyAnswer(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 2})
	for _, text := range []string{"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n",
		"GET /free HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n1",
		"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("a", 200_000)} {
		c := s.dial(t)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != http.StatusOK || !r.Close {
			t.Errorf("%.40q: got %+v, %v; want an answer with Connection: close", text, r, err)
		}
		if err := ends(c); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	c := s.dial(t) // one whose body arrives keeps its connection
	for range 3 {
		if _, err := io.WriteString(c, unread+"56789"); err != nil {
			t.Fatal(err)
		}
		if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.Close {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestLimit_EvictedOnesTakeNoPlace: a handler that does not notice the end of its connection keeps
// nobody out.
func TestLimit_EvictedOnesTakeNoPlace(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 4, Proxies: local}) // no share
	for range 4 {
		if _, err := io.WriteString(s.dial(t), strings.Replace(unread, "/read", "/hold", 1)); err != nil {
			t.Fatal(err)
		}
		<-s.begun
	}
	for range 8 {
		if err := get(s.dial(t), "/"); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		s.answer <- struct{}{}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestLimit_EvictedBeforeItsContext: a connection may be evicted before the server asks for its context.
func TestLimit_EvictedBeforeItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("was asked") })}
	limited := listen.Limit(l, server, listen.Limits{Connections: 1})
	defer limited.Close()
	var conns [2]net.Conn
	for i := range conns {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if conns[i], err = limited.Accept(); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	r := httptest.NewRequestWithContext(server.ConnContext(t.Context(), conns[0]), "GET", "/", nil)
	server.Handler.ServeHTTP(httptest.NewRecorder(), r)
}

// TestLimit_AnsweredOnesGiveWay: one that was answered before its request had arrived has no claim
// on more time.
func TestLimit_AnsweredOnesGiveWay(t *testing.T) {
	s := newLimited(t, listen.Limits{Connections: 2, Proxies: local}) // no share
	answered, silent := s.dial(t), s.dial(t)
	if _, err := io.WriteString(answered, strings.Replace(unread, "/read", "/", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(answered), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{s.dial(t), silent} {
		if err := get(c, "/"); err != nil {
			t.Error(err)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}
