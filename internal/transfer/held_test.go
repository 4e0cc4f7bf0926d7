package transfer_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store/link"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/transfer"
)

// A slow holder makes a part of a copy. The rest comes after end.
type slow struct {
	*pebblestore.Store
	end func()
}

func (s *slow) Checkpoint(_ context.Context, to string) error {
	err := errors.Join(os.Mkdir(to, 0o700), os.WriteFile(filepath.Join(to, "000001.sst"), []byte("half"), 0o600))
	s.end()
	return err
}

// TestBackup_HalfMade: the holder is gone in the middle of the copy, or takes too long. The error says
// so, nothing is left, and the next try makes the backup.
func TestBackup_HalfMade(t *testing.T) {
	for name, want := range map[string]string{"killed": "ended before the copy was complete", "slow": "too late"} {
		t.Run(name, func(t *testing.T) {
			f, tried := newFolder(t), make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			served := serveHalf(f, func(conn net.Conn) {
				if name == "killed" {
					_ = conn.Close()
					return
				}
				cancel(errors.New("too late"))
				<-tried
			})
			_, err := transfer.Backup(ctx, f.Folders, f.path("store"), f.path("backup"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Backup = %v, want %q", err, want)
			}
			close(tried)
			<-served
			if got := f.names(); got != "store" {
				t.Errorf("left: %s", got)
			}
			if m := f.backup("backup"); m.Installation == "" {
				t.Errorf("%+v", m)
			}
		})
	}
}

// serveHalf holds the store for one client, whose copy is half made when end is called. The channel is
// closed when the folder is free again.
func serveHalf(f *folder, end func(net.Conn)) (served <-chan struct{}) {
	socket := filepath.Join(f.t.TempDir(), "s")
	o := pebblestore.Options{Tables: f.Tables.All(), Names: f.Names, Now: f.Now, CacheBytes: 32 << 20, Socket: socket}
	s, err := pebblestore.Open(f.path("store"), o)
	if err != nil {
		f.t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		f.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		conn, err := l.Accept()
		if err == nil {
			half := &slow{s, func() { end(conn) }}
			_ = link.Serve(f.t.Context(), conn, half, link.Options{Tables: o.Tables, Names: o.Names}) // it was cut
		}
		if err := errors.Join(err, l.Close(), s.Close()); err != nil {
			f.t.Error(err)
		}
	}()
	return over
}
