package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
)

// longest is the longest path of a socket on every system.
const longest = 100

// checkOwner refuses a folder of another user: its files would become this user's.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("store %s belongs to the user with uid %d, and this process runs as uid %d: run it as the "+
			"owner", dir, owner.Uid, os.Geteuid())
	}
	return nil
}

// socketIn returns the path of the socket to be made: in the store's folder, or in a new private
// folder if that path is too long. Clients read it from HOLDER. remove removes the new folder.
func socketIn(dir string) (path string, remove func() error, err error) {
	const name = "duesday.sock"
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	if path = filepath.Join(dir, name); len(path) <= longest {
		return path, func() error { return nil }, nil
	}
	short, err := os.MkdirTemp("", "duesday-")
	return filepath.Join(short, name), func() error { return os.Remove(short) }, err
}

// listen listens at the path. The caller has the folder's lock, so a socket there is a dead one.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// serve serves the store to everybody who connects, until stop is called. stop returns when the
// clients have their answers.
func serve(l net.Listener, held store.Store, o link.Options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			work.Go(func() { _ = link.Serve(ctx, conn, held, o) }) // the client hears of its errors
		}
	})
	return func() {
		_ = l.Close() // and so removes the socket
		cancel()
		work.Wait()
	}
}
