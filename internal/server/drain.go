package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/duesday/duesday/internal/outbox"
)

const (
	drainEvery = 3 * time.Second              // for rows now due, and rows of other processes
	drainGrace = commandLimit + 5*time.Second // for a drain under way once the server is to stop
)

// A drain empties one queue of the outbox again and again.
type drain struct {
	name string // in log messages
	see  string // the command that lists the queue
	run  func(context.Context) (outbox.Report, error)
	wake chan struct{}
	log  *slog.Logger
}

// repeat runs the drain at once, when it is woken, and every few seconds, until stop. A run
// under way at stop is finished unless ctx ends.
func (d *drain) repeat(ctx context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		r, err := d.run(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			d.log.Error("draining the "+d.name+" failed and is tried again", "error", err)
		case r.Failed+r.Dead > 0:
			d.log.Warn("some "+d.name+" could not be dealt with", "done", r.Delivered, "later", r.Failed, "given_up", r.Dead,
				"see", d.see)
		}
		select {
		case <-stop:
			return
		case <-d.wake:
		case <-tick.C:
		}
	}
}

// wakeAll passes each wake on to all drains, until stop. A drain woken already, and not begun, is
// not woken twice.
func wakeAll(stop <-chan struct{}, wake <-chan struct{}, drains ...chan<- struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-wake:
		}
		for _, c := range drains {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
