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
	"testing"
	"time"

	"github.com/duesday/duesday/internal/listen"
)

// A limited server holds two connections. Requests for /hold are answered when they are told to.
type limited struct {
	address string
	begun   chan struct{}
	answer  chan struct{}
	stop    func() error
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &limited{address: l.Addr().String(), begun: make(chan struct{}), answer: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		if r.URL.Path == "/hold" {
			s.begun <- struct{}{}
			<-s.answer
		}
	})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- listen.Serve(ctx, listen.Limit(l, server, 2), server, slog.New(slog.DiscardHandler)) }()
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
	s := newLimited(t)
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
	for range 20 {
		if err := <-closed; !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want that the server has closed the connection", err)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestLimit_RequestsAreNotCutOff: connections with requests stay, and a new one waits for their end.
func TestLimit_RequestsAreNotCutOff(t *testing.T) {
	s := newLimited(t)
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
	s := newLimited(t)
	held := make(chan error, 2)
	for range 2 {
		c := s.dial(t)
		go func() { held <- get(c, "/hold") }()
		<-s.begun
	}
	waits := s.dial(t)
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	_, _ = waits.Read(make([]byte, 1)) // the server has closed it, or the listener before
	close(s.answer)
	for range 2 {
		if err := <-held; err != nil {
			t.Error(err)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
