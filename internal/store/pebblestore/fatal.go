package pebblestore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// exitDiskFailure is EX_SOFTWARE, which a supervisor restarts. Reopening is the one
// way to find out what the disk holds.
const exitDiskFailure = 70

// A failure is the switch that a disk error throws, once. Between the error and the
// end of the process nothing may be answered that could be untrue.
type failure struct {
	once  sync.Once
	hook  func(error)
	begun atomic.Bool
	done  chan struct{} // closed when hook has returned, which it does in tests alone
	err   error         // set before done is closed
}

func newFailure(hook func(error)) *failure {
	if hook == nil {
		hook = func(err error) {
			fmt.Fprintf(os.Stderr, "duesday: the store has failed and the process must end; nothing that was confirmed is lost: %v\n", err)
			os.Exit(exitDiskFailure)
		}
	}
	return &failure{hook: hook, done: make(chan struct{})}
}

func (f *failure) fail(err error) {
	f.begun.Store(true)
	f.once.Do(func() {
		f.hook(err)
		f.err = err
		close(f.done)
	})
}

// A pebbleLog is what Pebble talks to.
type pebbleLog struct {
	log     *slog.Logger
	failure *failure
}

var _ pebble.Logger = pebbleLog{}

func (l pebbleLog) Infof(format string, args ...any) {} // every flush and compaction

func (l pebbleLog) Errorf(format string, args ...any) {
	l.log.Error("store", "event", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Fatalf never returns. Pebble calls it when a write or sync of its log or manifest
// has failed; when it returns, Pebble goes on as if that had succeeded, and a commit
// is reported durable that is not.
func (l pebbleLog) Fatalf(format string, args ...any) {
	l.failure.fail(errors.New(strings.TrimSpace(fmt.Sprintf(format, args...))))
	select {}
}

// events makes failures in the background, such as a full disk during a flush, end
// the process too: left alone Pebble tries again for ever, and commits stall.
func (l pebbleLog) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) { l.failure.fail(fmt.Errorf("in the background: %w", err)) },
		DiskSlow: func(info pebble.DiskSlowInfo) {
			l.log.Warn("store", "event", "slow disk", "path", info.Path, "duration", info.Duration)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			l.log.Warn("store", "event", "writes stalled", "reason", info.Reason)
		},
		WriteStallEnd: func() { l.log.Info("store", "event", "writes resumed") },
	}
}
