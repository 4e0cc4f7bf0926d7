package httpapi

import (
	"log/slog"
	"net/http/httptest"
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
