package systemd_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/systemd"
)

// A manager is the other end of a notification socket.
type manager struct {
	*testing.T
	at   string
	conn *net.UnixConn
}

func newManager(t *testing.T, at string) *manager {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &manager{t, at, c}
}

// told returns the next notification.
func (m *manager) told() string {
	m.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		m.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := m.conn.Read(b)
	if err != nil {
		m.Fatal(err)
	}
	return string(b[:n])
}

// TestRun: the manager is told of the start, of each progress, and of the stop, and the watchdog is fed until the
// service has returned.
func TestRun(t *testing.T) {
	m := newManager(t, filepath.Join(t.TempDir(), "notify"))
	ctx, cancel := context.WithCancel(t.Context())
	ended, end, done := errors.New("ended"), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- systemd.Manager{Socket: m.at, Watchdog: "3000"}.Run(ctx, "serving", func(context.Context) bool { return true },
			func(err error) { t.Error(err) }, func(context.Context) error { <-end; return ended })
	}()
	if got := m.told(); got != "READY=1\nSTATUS=serving" {
		t.Errorf("first: %q", got)
	}
	if got := m.told(); got != "WATCHDOG=1" {
		t.Errorf("then: %q", got)
	}
	cancel()
	for got := ""; got != "STOPPING=1\nSTATUS=stopping"; {
		got = m.told()
	}
	if got := m.told(); got != "WATCHDOG=1" {
		t.Errorf("while the service stops: %q", got)
	}
	close(end)
	if err := <-done; !errors.Is(err, ended) {
		t.Errorf("the service's error is %v", err)
	}
}

// TestRun_NoProgress: a service that makes no progress, or whose progress cannot be found out, does not feed the watchdog.
func TestRun_NoProgress(t *testing.T) {
	for name, hangs := range map[string]bool{"none": false, "unknown": true} {
		m := newManager(t, "@"+t.Name()+name)
		asked := make(chan struct{}, 100)
		if err := (systemd.Manager{Socket: m.at, Watchdog: "3000"}).Run(t.Context(), "", func(ctx context.Context) bool {
			asked <- struct{}{}
			if hangs {
				<-ctx.Done()
			}
			return false
		}, func(err error) { t.Error(err) }, func(context.Context) error {
			<-asked
			if !hangs {
				<-asked
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		m.told() // READY
		if err := m.conn.SetReadDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		if n, err := m.conn.Read(make([]byte, 99)); err == nil {
			t.Errorf("%s: told %d more bytes", name, n)
		}
	}
}

// TestRun_NoManager: a process that no manager has started, or whose manager has gone, serves all the same.
func TestRun_NoManager(t *testing.T) {
	for _, m := range []systemd.Manager{{}, {Socket: filepath.Join(t.TempDir(), "nobody")}} {
		lost, served := 0, false
		err := m.Run(t.Context(), "", nil, func(error) { lost++ }, func(context.Context) error { served = true; return nil })
		if err != nil || !served || lost > 0 != (m.Socket != "") {
			t.Errorf("%+v: served %v, lost %d, %v", m, served, lost, err)
		}
	}
}

// TestRun_ManagerDoesNotRead: Run returns although nobody reads the socket, which is soon full.
func TestRun_ManagerDoesNotRead(t *testing.T) {
	m := newManager(t, filepath.Join(t.TempDir(), "notify"))
	ticks := make(chan bool)
	progress := func(ctx context.Context) bool {
		select {
		case ticks <- true:
		case <-ctx.Done():
		}
		return true
	}
	err := systemd.Manager{Socket: m.at, Watchdog: "3000"}.Run(t.Context(), "serving", progress, func(error) {},
		func(context.Context) error {
			for full := time.After(100 * time.Millisecond); ; {
				select {
				case <-ticks:
				case <-full: // of at most 11 datagrams by Linux's default
					return nil
				}
			}
		})
	if err != nil {
		t.Error(err)
	}
}
