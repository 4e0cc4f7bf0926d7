package stripe

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
)

// watched is a log in which no secret may be.
type watched struct{ t *testing.T }

func (w *watched) Enabled(context.Context, slog.Level) bool { return true }

func (w *watched) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += fmt.Sprintf(" %s=%+v", a.Key, a.Value)
		return true
	})
	hush(w.t, text)
	return nil
}

func (w *watched) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w *watched) WithGroup(string) slog.Handler      { return w }
