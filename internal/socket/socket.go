// Package socket connects the processes of one user to the process that holds a shared lock, over a Unix
// socket. The holder writes its name and the socket's path to a small file. The package does not lock,
// does not elect the holder, and does not know the protocol of the connections.
//
// Clients read the socket's path from the file and never derive it, because a socket whose path would be
// too long for the system is in a private folder instead. After a holder is killed, its socket refuses
// connections until the next holder replaces or removes it.
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
	"sync"
	"time"
)

// longest is the longest path of a socket on every system.
const longest = 100

// private is where the folders of sockets with too long paths begin.
func private() string { return filepath.Join(os.TempDir(), "duesday-") }

// Clear removes the private folder and socket of a killed holder, if it had one.
func Clear(path string) {
	if isPrivate(path) {
		_, _ = os.Remove(path), os.Remove(filepath.Dir(path)) // they are in nobody's way
	}
}

func isPrivate(path string) bool {
	dir := filepath.Dir(path)
	return path == filepath.Join(dir, "socket") && filepath.Dir(dir) == filepath.Dir(private()) && strings.HasPrefix(dir, private())
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

// looksEvery is how often a listener looks whether others still find it.
const looksEvery = 250 * time.Millisecond

// A listener listens at a path, and removes the folder that it has made for it.
type listener struct {
	post Post
	made string      // "": no folder
	held fs.FileInfo // of what is held; another file or folder may get its name
	stop chan struct{}

	mu     sync.Mutex
	now    *net.UnixListener
	socket fs.FileInfo // of the socket at its path
	file   fs.FileInfo // of the holder's file
	closed bool
}

// Listen listens at p.Socket, a path of Path, for connections of this user, and writes p.File. If
// someone removes or replaces the socket or the file, the listener puts it back within a second, unless
// something else has the name of what is held. The caller has the lock: a socket there is a dead one.
// A private folder is made for its owner alone, and removed by Close.
func Listen(p Post) (net.Listener, error) {
	l := &listener{post: p, stop: make(chan struct{})}
	if isPrivate(p.Socket) {
		l.made = filepath.Dir(p.Socket)
	}
	var err error
	if l.held, err = os.Stat(p.Held); err != nil {
		return nil, err
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	if err := l.write(); err != nil {
		return nil, errors.Join(err, l.end())
	}
	go l.keep()
	return l, nil
}

// open makes the socket.
func (l *listener) open() (err error) {
	path := l.post.Socket
	if l.made != "" {
		err = os.Mkdir(l.made, 0o700) // fails if somebody has made it
	} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	own := net.ListenConfig{Control: keep}
	made, err := own.Listen(context.Background(), "unix", path)
	if err == nil {
		made.(*net.UnixListener).SetUnlinkOnClose(false) // another's may be there by then
		if err = os.Chmod(path, 0o600); err == nil {
			l.socket, err = os.Lstat(path)
		}
		if err == nil {
			l.now = made.(*net.UnixListener)
			return nil
		}
		err = errors.Join(err, made.Close(), os.Remove(path))
	}
	if l.made != "" {
		err = errors.Join(err, os.Remove(l.made))
	}
	return err
}

func (l *listener) write() (err error) {
	if err = l.post.Write(); err == nil {
		l.file, err = os.Lstat(l.post.File)
	}
	return err
}

// end stops listening, and removes the socket, if it is this listener's, and the folder made for it.
func (l *listener) end() error {
	err := l.now.Close()
	if isSame(l.post.Socket, l.socket) {
		err = errors.Join(err, os.Remove(l.post.Socket))
	}
	if l.made != "" {
		if rerr := os.Remove(l.made); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// isSame reports whether the file at the path is the one described, unchanged.
func isSame(path string, was fs.FileInfo) bool {
	is, err := os.Lstat(path)
	return err == nil && was != nil && os.SameFile(is, was) && is.Mode() == was.Mode() && is.Size() == was.Size() &&
		is.ModTime().Equal(was.ModTime())
}

// keep puts back what is gone. While that fails, as on a full disk, it tries again.
func (l *listener) keep() {
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(looksEvery):
		}
		l.mu.Lock()
		if held, err := os.Stat(l.post.Held); !l.closed && err == nil && os.SameFile(held, l.held) {
			l.look()
		}
		l.mu.Unlock()
	}
}

func (l *listener) look() {
	if !isSame(l.post.Socket, l.socket) {
		if l.made != "" {
			_, _ = os.Remove(l.post.Socket), os.Remove(l.made)
		}
		last := l.now
		if l.open() == nil {
			_ = last.Close() // Accept goes on with the new one
		}
	}
	if !isSame(l.post.File, l.file) {
		_ = l.write()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		now := l.present()
		conn, err := now.Accept()
		if err == nil || now == l.present() {
			return conn, err
		}
	}
}

func (l *listener) present() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.present().Addr() }

// Close implements net.Listener. It leaves the holder's file.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	close(l.stop)
	return l.end()
}

// Dial connects to the socket.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", path)
}
