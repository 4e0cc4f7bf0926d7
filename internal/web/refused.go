package web

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/listen"
)

const (
	toldRefusals  = 5 // of a kind that are logged in a minute
	refusalMinute = time.Minute
)

// refusals counts the requests that were rejected within a minute, by kind.
type refusals struct {
	mu   sync.Mutex
	seen map[string]int
}

// Warn logs a rejected request. In each minute it logs the first few requests of a kind, and then the number
// of further ones, so strangers cannot fill the disk.
func (s *Server) Warn(r *http.Request, kind, text string, args ...any) {
	f := &s.refused
	f.mu.Lock()
	f.seen[kind]++
	n := f.seen[kind]
	f.mu.Unlock()
	if n == 1 {
		time.AfterFunc(refusalMinute, func() {
			f.mu.Lock()
			more := f.seen[kind] - toldRefusals
			delete(f.seen, kind)
			f.mu.Unlock()
			if more > 0 {
				s.o.Log.LogAttrs(context.Background(), slog.LevelWarn, text, slog.String("kind", kind), slog.Int("and_more", more),
					slog.Duration("within", refusalMinute))
			}
		})
	}
	if n <= toldRefusals {
		s.o.Log.WarnContext(r.Context(), text, append([]any{"remote", listen.Caller(r, s.o.Proxies)}, args...)...)
	}
}
