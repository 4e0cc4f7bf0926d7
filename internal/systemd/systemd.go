// Package systemd reports a service's state to systemd, in the protocol of sd_notify(3): that the
// service is ready, that it stops, and, for the watchdog, that it still makes progress.
//
// It does not read the environment, and does not decide what progress is: the caller does.
package systemd

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Manager is the service manager that has started the process. The zero Manager is none.
type Manager struct {
	Socket   string // $NOTIFY_SOCKET: a path, or an abstract address that begins with @; "": no manager
	Watchdog string // $WATCHDOG_USEC: microseconds after which the manager ends a silent service; "": never
}

// Run reports that the service is ready, with the status that systemctl shows, and runs it. Run
// reports the beginning of the stop when ctx ends. It feeds the watchdog three times in its period
// while progress returns true, until the service has returned. A call of progress that does not
// return feeds it no more. lost receives the error if the manager cannot be told, which only matters
// to a manager that waits for it.
func (m Manager) Run(ctx context.Context, status string, progress func(context.Context) bool, lost func(error),
	service func(context.Context) error) error {
	if m.Socket == "" {
		return service(ctx)
	}
	if err := m.tell("READY=1", "STATUS="+status); err != nil {
		lost(err)
	}
	defer context.AfterFunc(ctx, func() { _ = m.tell("STOPPING=1", "STATUS=stopping") })()
	feeding, stop := context.WithCancel(context.WithoutCancel(ctx)) // a stop takes time too
	var fed sync.WaitGroup
	defer fed.Wait()
	defer stop()
	if period, _ := strconv.ParseInt(m.Watchdog, 10, 64); period > 0 {
		fed.Go(func() {
			ticks := time.NewTicker(time.Duration(period) * time.Microsecond / 3)
			defer ticks.Stop()
			for {
				select {
				case <-feeding.Done():
					return
				case <-ticks.C:
				}
				if progress(feeding) {
					_ = m.tell("WATCHDOG=1") // the next one may arrive
				}
			}
		})
	}
	return service(ctx)
}

// tell sends the assignments in one datagram. A manager that has stopped reading does not hold the
// service up: once its socket is full, tell gives up after a second.
func (m Manager) tell(lines ...string) error {
	c, err := net.Dial("unixgram", m.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = c.Write([]byte(strings.Join(lines, "\n")))
	return err
}
