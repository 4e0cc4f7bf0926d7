package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/key"
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
		s := New(Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		r := httptest.NewRequest("POST", "/hooks/stripe", nil)
		for minute, tt := range []struct {
			refused int
			more    string
		}{{1000, "and_more=995 "}, {5, ""}, {0, ""}, {6, "and_more=1 "}} {
			for range tt.refused {
				s.Warn(r, "signature", "refused an event")
			}
			s.Warn(r, "body", "refused an event")
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

// refusing refuses each key for the reason that is its text.
type refusing struct{}

func (refusing) Find(_ context.Context, text string) (*key.Key, error) {
	id, why, _ := strings.Cut(text, " ")
	return nil, &key.Refusal{ID: id, Why: why, Known: why == "it is revoked"}
}

// TestRefusals_ByReason: unknown keys of any number do not hide that revoked ones are used, each of them.
func TestRefusals_ByReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(lines, 1000)
		h := New(Options{Metrics: http.NotFoundHandler(), Keys: refusing{}, Log: slog.New(slog.NewTextHandler(log, nil))})
		ask := func(key string) {
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Authorization", "Bearer "+key)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		for i := range 50 {
			ask(fmt.Sprintf("dd_%d it does not exist", i))
		}
		for range 50 {
			ask("dd_a it is revoked")
		}
		ask("dd_b it is revoked")
		if len(log) != 5+5+1 {
			t.Errorf("%d lines, want 5 of unknown keys, 5 of a revoked one and 1 of another", len(log))
		}
		<-time.After(time.Minute)
	})
}
