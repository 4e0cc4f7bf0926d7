package server

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/web"
)

// newDoor returns a listener's door. The server accepts as many connections as serve says.
func newDoor(t *testing.T) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &door{listener: l}
}

// answer accepts n connections and closes each when its client has.
func (d *door) answer(n int) {
	for range n {
		c, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.note(1)
		_, _ = io.Copy(io.Discard, c)
		d.note(-1)
		c.Close()
	}
}

// TestProgress: a server progresses while it accepts connections and its store replies, with errors too.
func TestProgress(t *testing.T) {
	d, asked := newDoor(t), 0
	s := &Server{o: Options{HTTP: httpapi.Options{Options: web.Options{
		Ready: func(context.Context) error { asked++; return errors.New("Stripe refuses the key") }}}}, doors: []*door{d, newDoor(t)}}
	go d.answer(2)
	go s.doors[1].answer(2)
	for range 2 {
		if !s.Progress(t.Context()) {
			t.Error("no progress")
		}
	}
	if asked != 2 {
		t.Errorf("the store was asked %d times", asked)
	}
}

// TestDoor_Stuck: a connection that nobody accepts is no progress. It stays so until a connection is accepted, also if no
// more connections can be made.
func TestDoor_Stuck(t *testing.T) {
	d := newDoor(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !d.accepts(ctx) {
		t.Error("no connection was made, and the server is said to be stuck")
	}
	ctx, cancel = context.WithCancel(t.Context())
	hung := make(chan bool, 1)
	go func() { hung <- d.accepts(ctx) }()
	c, err := d.listener.Accept() // the system has made it, and the loop that counts has not
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.Copy(io.Discard, c) // the client has the connection
	cancel()
	if <-hung {
		t.Error("a connection was not accepted, and the server is said to progress")
	}
	if d.accepts(ctx) {
		t.Error("no connection was made, and the stuck server is said to progress")
	}
	go d.answer(1)
	if !d.accepts(t.Context()) {
		t.Error("the server accepts again, and is said to be stuck")
	}
}

// TestDoor_Flooded: if the server accepts others and not the watchdog's connection, it is not stuck.
func TestDoor_Flooded(t *testing.T) {
	d := newDoor(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool, 1)
	go func() { done <- d.accepts(ctx) }()
	c, err := d.listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d.note(1) // somebody else's
	cancel()
	if !<-done {
		t.Error("a busy server is said to be stuck")
	}
}

// TestDoor_Gone: a listener whose address cannot be reached tells nothing about the server.
func TestDoor_Gone(t *testing.T) {
	d := newDoor(t)
	d.listener.Close()
	if !d.accepts(t.Context()) {
		t.Error("the address has gone, and the server is said to be stuck")
	}
}
