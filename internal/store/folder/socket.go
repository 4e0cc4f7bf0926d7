package folder

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
)

// longest is the longest path of a socket on every system.
const longest = 100

// socketOf returns the path of the socket to be made: in the store's folder, or in a new private
// folder if that path is too long. Clients read it from HOLDER.
func socketOf(dir string) (string, error) {
	const name = "duesday.sock"
	dir, err := filepath.Abs(dir)
	path := filepath.Join(dir, name)
	if len(path) > longest {
		path = filepath.Join(os.TempDir(), "duesday-"+rand.Text(), name)
	}
	return path, err
}

// A listener listens at a path, and removes the folder that it has made for it.
type listener struct {
	net.Listener
	made string // "": none
}

// listen listens at the path of a socket of the store's folder. The caller has the folder's lock, so
// a socket there is a dead one. A folder of another name is made, for its owner alone.
func listen(dir, path string) (*listener, error) {
	l := &listener{}
	var err error
	if l.made = filepath.Dir(path); sameFolder(dir, l.made) {
		l.made = ""
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = os.Mkdir(l.made, 0o700) // fails if somebody has made it
	}
	if err != nil {
		return nil, err
	}
	if l.Listener, err = net.Listen("unix", path); err != nil && l.made != "" {
		err = errors.Join(err, os.Remove(l.made))
	}
	return l, err
}

func sameFolder(a, b string) bool {
	a, err := filepath.Abs(a)
	return err == nil && a == b
}

// Close stops listening, and removes the socket and the folder made for it.
func (l *listener) Close() error {
	err := l.Listener.Close()
	if l.made != "" {
		err = errors.Join(err, os.Remove(l.made))
	}
	return err
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// serve serves the store to everybody who connects, until stop is called. stop returns when the
// clients have their answers. handOver is called when a process that stays has asked for the folder.
func serve(l *listener, held store.Store, o link.Options, handOver func()) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			work.Go(func() {
				if errors.Is(link.Serve(ctx, conn, held, o), link.ErrHandOver) { // the client hears of the others
					go handOver() // it waits for this work
				}
			})
		}
	})
	return func() error {
		err := l.Close()
		cancel()
		work.Wait()
		return err
	}
}
