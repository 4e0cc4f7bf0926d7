package httpapi_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/web"
)

// lines are a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestRefusals_OfWebhooks: unsigned events of any number and form do not hide forged or stale ones.
// Nothing that callers choose makes another reason.
func TestRefusals_OfWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(lines, 1000)
		now := time.Now()
		secrets := []secret.Text{secret.New("whsec_ours")}
		h := httpapi.New(httpapi.Options{Hooks: []httpapi.Hook{{Path: "/hooks/stripe", Secrets: secrets}},
			Verify:  event.Verify,
			Options: web.Options{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(log, nil))}})
		forged := event.Sign([]byte("{}"), secret.New("whsec_other"), now)
		stale := event.Sign([]byte("{}"), secrets[0], now.Add(-time.Hour))
		for i := range 50 {
			for _, signature := range []string{"", strings.Repeat("t=1,", i+2) + "v1=", fmt.Sprintf("a%d", i), forged, stale} {
				r := httptest.NewRequest("POST", "/hooks/stripe", strings.NewReader("{}"))
				if signature != "" {
					r.Header.Set("Stripe-Signature", signature)
				}
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
		counts := map[string]int{}
		for len(log) > 0 {
			text := <-log
			for _, reason := range []string{"the Stripe-Signature header is missing", "must have exactly one time t", "must be t=", "does not match this body",
				"too old"} {
				if strings.Contains(text, reason) {
					counts[reason]++
				}
			}
			counts["all"]++
		}
		if counts["all"] != 25 || len(counts) != 6 {
			t.Errorf("%v, want 5 lines of each reason", counts)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if len(log) != 5 {
			t.Errorf("%d lines say how many more, want 5", len(log))
		}
	})
}
