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

// exitDiskFailure is EX_SOFTWARE, after which a supervisor restarts the process. Only reopening
// shows the content of the disk.
const exitDiskFailure = 70

// A failure is the first error of the disk. Between the error and the end of the process no
// answer may be given that could be untrue.
type failure struct {
	once  sync.Once
	hook  func(error)
	begun atomic.Bool
	done  chan struct{} // closed after hook has returned, in tests alone
	err   error         // set before done is closed
}

func newFailure(hook func(error)) *failure {
	if hook == nil {
		hook = func(err error) {
			fmt.Fprintf(os.Stderr,
				"duesday: the store has failed and the process must end; nothing that was confirmed is lost: %v\n", err)
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

// A pebbleLog is the logger of Pebble.
type pebbleLog struct {
	log     *slog.Logger
	failure *failure
}

var _ pebble.Logger = pebbleLog{}

func (l pebbleLog) Infof(format string, args ...any) {} // every flush and compaction

func (l pebbleLog) Errorf(format string, args ...any) {
	l.log.Error("store", "event", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Fatalf never returns. Pebble calls it after a failed write or sync of its log or manifest. If
// it returned, Pebble would go on as after a success and report a commit durable that is not.
func (l pebbleLog) Fatalf(format string, args ...any) {
	l.failure.fail(errors.New(strings.TrimSpace(fmt.Sprintf(format, args...))))
	select {}
}

// events ends the process after a failure in the background, such as a full disk during a
// flush: Pebble would otherwise try again for ever, and commits would stall.
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
