package engine_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/stripefake"
)

// newPipedBank is newStripeBank over pipes, for a bubble of synctest: the client's rests between two
// sends take no time there.
func newPipedBank(t testing.TB, w *world, faults stripefake.Faults) *stripeBank {
	w.reopens = faults.Errors+faults.LateErrors > 0
	b := &stripeBank{t: t, fake: stripefake.New(stripefake.Options{Now: w.now, Faults: faults})}
	pipes := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	b.server = &httptest.Server{Listener: pipes, Config: &http.Server{Handler: b.fake}}
	b.server.Start()
	b.client = &http.Client{Transport: &http.Transport{DialContext: pipes.dial}}
	b.connect(api.Options{Base: b.server.URL, Now: w.now, Transport: b.client.Transport})
	return b
}

// pipes are a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
