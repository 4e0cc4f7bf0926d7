package listen

import (
	"net"
	"sync"
)

// Counted returns the listener with its TCP connections counted: opened is called with 1 for each that it accepts,
// and with -1 when the connection is closed.
func Counted(l net.Listener, opened func(n int)) net.Listener { return counted{l, opened} }

type counted struct {
	net.Listener
	opened func(n int)
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	tcp, ok := conn.(*net.TCPConn)
	if err != nil || !ok {
		return conn, err
	}
	c.opened(1)
	return &countedConn{tcp, sync.OnceFunc(func() { c.opened(-1) })}, nil
}

// A countedConn has all methods of a TCP connection, of which net/http uses some.
type countedConn struct {
	*net.TCPConn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.TCPConn.Close()
}
