package folder

import (
	"net"
	"syscall"
	"testing"

	"github.com/duesday/duesday/internal/store/link"
)

// A full is a listener of a process with too many open files, for a moment.
type full struct {
	asked  int
	again  chan struct{}
	closed chan struct{}
}

func (l *full) Accept() (net.Conn, error) {
	if l.asked++; l.asked < 3 {
		return nil, syscall.EMFILE
	}
	close(l.again)
	<-l.closed
	return nil, net.ErrClosed
}

func (l *full) Close() error   { close(l.closed); return nil }
func (l *full) Addr() net.Addr { return nil }

// TestServe_Full: a holder that cannot accept a client serves the next ones.
func TestServe_Full(t *testing.T) {
	l := &full{again: make(chan struct{}), closed: make(chan struct{})}
	stop := serve(l, nil, link.Options{}, nil)
	<-l.again
	if err := stop(); err != nil {
		t.Error(err)
	}
}
