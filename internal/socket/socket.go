// Package socket lets the processes of one user meet, where only one of them can hold what all of
// them use, such as a folder or a file. The process with the lock, the holder, serves the others on
// a Unix socket, and names itself and the socket in a small file. The package does not lock, does
// not elect the holder, and does not know what crosses the connection.
//
// Clients read the path of the socket where the holder has written it, and never derive it: a private
// folder has the socket if its path is too long for the system. The socket of a killed holder refuses
// connections until the next one replaces or clears it.
package socket

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// longest is the longest path of a socket on every system.
const longest = 100

// private is where the folders of sockets with too long paths begin.
func private() string { return filepath.Join(os.TempDir(), "duesday-") }

// Clear removes the socket of a killed holder, if it has a private folder, and the folder.
func Clear(path string) {
	dir := filepath.Dir(path)
	if path == filepath.Join(dir, "socket") && filepath.Dir(dir) == filepath.Dir(private()) &&
		strings.HasPrefix(dir, private()) {
		_, _ = os.Remove(path), os.Remove(dir) // they are in nobody's way
	}
}

// Path returns the path for a socket: in the folder, or in a new private one if that is too long.
func Path(dir, name string) (string, error) {
	dir, err := filepath.Abs(dir)
	path := filepath.Join(dir, name)
	if len(path) > longest {
		path = filepath.Join(private()+rand.Text(), "socket")
	}
	return path, err
}

// A listener listens at a path, and removes the folder that it has made for it.
type listener struct {
	net.Listener
	made string // "": none
}

// Listen listens at a path of Path for connections of this user. The caller has the lock: a socket
// there is a dead one. Another folder than dir is made for its owner alone, and removed by Close.
func Listen(dir, path string) (net.Listener, error) {
	l := &listener{made: filepath.Dir(path)}
	dir, err := filepath.Abs(dir)
	switch {
	case err != nil:
	case l.made == dir:
		l.made = ""
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	default:
		err = os.Mkdir(l.made, 0o700) // fails if somebody has made it
	}
	if err != nil {
		return nil, err
	}
	own := net.ListenConfig{Control: keep}
	l.Listener, err = own.Listen(context.Background(), "unix", path)
	if err == nil {
		if err = os.Chmod(path, 0o600); err == nil {
			return l, nil
		}
		err = errors.Join(err, l.Listener.Close())
	}
	if l.made != "" {
		err = errors.Join(err, os.Remove(l.made))
	}
	return nil, err
}

// Close stops listening, and removes the socket and the folder made for it.
func (l *listener) Close() error {
	err := l.Listener.Close()
	if l.made != "" {
		err = errors.Join(err, os.Remove(l.made))
	}
	return err
}

// Dial connects to the socket.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", path)
}
