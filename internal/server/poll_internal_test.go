package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/tracking"
)

// TestOwnLedger_Panic: a panic while an event is taken is the error of that event, and serve goes on.
func TestOwnLedger_Panic(t *testing.T) {
	if _, err := (ownLedger{log: slog.New(slog.DiscardHandler)}).Ingest(t.Context(), nil, tracking.Origin{}); err == nil || // it has no Service
		!strings.Contains(err.Error(), "taking the event panicked") {
		t.Errorf("got %v", err)
	}
}
