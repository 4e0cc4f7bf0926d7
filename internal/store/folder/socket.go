package folder

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
)

const acceptEvery = 20 * time.Millisecond // while the system lets this process accept nobody

// serve serves the store to everybody who connects, until stop is called. stop returns when the
// clients have their answers. handOver is called when a process that stays has asked for the folder.
func serve(l net.Listener, held store.Store, o link.Options, handOver func()) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // such as too many open files: it passes
				select {
				case <-time.After(acceptEvery):
					continue
				case <-ctx.Done():
					return
				}
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
