package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	toldRefusals  = 5 // of a kind in a minute, each with its line in the log
	refusalMinute = time.Minute
)

// refusals count the requests that were refused within a minute, by kind.
type refusals struct {
	mu   sync.Mutex
	seen map[string]int
}

// warn logs a refused request. Of one kind in a minute it logs the first few, and at its end how many
// more there were: strangers do not fill the disk.
func (s *server) warn(r *http.Request, kind, text string, args ...any) {
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
		s.o.Log.WarnContext(r.Context(), text, append([]any{"remote", s.remote(r)}, args...)...)
	}
}

// remote returns the address of the caller: the nearest one that is not a trusted proxy's, as these
// tell it in X-Forwarded-For. What others write there is ignored.
func (s *server) remote(r *http.Request) string {
	at := r.RemoteAddr
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.trusts(at) {
			break
		}
		if hop = strings.TrimSpace(hop); !addressOf(hop).IsValid() {
			break // the proxy has not told
		}
		at = hop
	}
	return at
}

func (s *server) trusts(at string) bool {
	ip := addressOf(at)
	return slices.ContainsFunc(s.o.Proxies, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// addressOf reads an address with or without a port; the zero one if the text is none.
func addressOf(text string) netip.Addr {
	if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return ip.Unmap()
	}
	at, _ := netip.ParseAddrPort(text)
	return at.Addr().Unmap()
}
