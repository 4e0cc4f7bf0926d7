package httpapi

import (
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lines are a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestRefusals_AreSampled: the first few of a kind in a minute, and then their number.
func TestRefusals_AreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(lines, 100)
		s := New(Options{Log: slog.New(slog.NewTextHandler(log, nil))}).(*server)
		r := httptest.NewRequest("POST", "/hooks/stripe", nil)
		for minute, tt := range []struct {
			refused int
			more    string
		}{{1000, "and_more=995 "}, {5, ""}, {0, ""}, {6, "and_more=1 "}} {
			for range tt.refused {
				s.warn(r, "signature", "refused an event")
			}
			s.warn(r, "body", "refused an event")
			if got, want := len(log), min(tt.refused, 5)+1; got != want {
				t.Errorf("minute %d: %d lines at once, want %d", minute, got, want)
			}
			for len(log) > 0 {
				<-log
			}
			<-time.After(time.Minute)
			synctest.Wait()
			if tt.more == "" && len(log) == 0 {
				continue
			}
			if text := <-log; !strings.Contains(text, "kind=signature "+tt.more) || len(log) > 0 {
				t.Errorf("minute %d: got %s and %d lines more, want %s", minute, text, len(log), tt.more)
			}
		}
	})
}

func TestRemote(t *testing.T) {
	s := New(Options{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}).(*server)
	for _, tt := range []struct {
		at   string
		told []string
		want string
	}{
		{"192.0.2.1:99", []string{"203.0.113.9"}, "192.0.2.1:99"}, // no proxy of ours
		{"10.1.2.3:99", nil, "10.1.2.3:99"},
		{"10.1.2.3:99", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[::ffff:10.1.2.3]:99", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[fd00::1]:99", []string{"2001:db8::5"}, "2001:db8::5"},
		{"10.1.2.3:99", []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9"}, // the caller's own words
		{"10.1.2.3:99", []string{"6.6.6.6", "203.0.113.9, 10.9.9.9"}, "203.0.113.9"},
		{"10.1.2.3:99", []string{"203.0.113.9:4711"}, "203.0.113.9:4711"},
		{"10.1.2.3:99", []string{"[2001:db8::5]"}, "[2001:db8::5]"},
		{"10.1.2.3:99", []string{"10.9.9.9"}, "10.9.9.9"},
		{"10.1.2.3:99", []string{"203.0.113.9, a\nline"}, "10.1.2.3:99"},
		{"10.1.2.3:99", []string{""}, "10.1.2.3:99"},
		{"pipe", []string{"203.0.113.9"}, "pipe"},
	} {
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = tt.at, tt.told
		if got := s.remote(r); got != tt.want {
			t.Errorf("%s, %q: got %s, want %s", tt.at, tt.told, got, tt.want)
		}
	}
}
