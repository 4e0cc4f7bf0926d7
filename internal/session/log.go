package session

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
)

// Logger writes messages of the level and above to standard error, without secrets. A message about a
// request has its id.
func (p *Program) Logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: p.Config.LogLevel, ReplaceAttr: inSeconds}
	var h slog.Handler = slog.NewTextHandler(p.Err, options)
	if p.LogJSON {
		h = slog.NewJSONHandler(p.Err, options)
	}
	return slog.New(requestLog{secret.Handler(h), p.LogClock})
}

// inSeconds has durations as numbers of seconds, in both forms of the log.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// A Stray takes what libraries write to Go's standard logger.
type Stray struct{ *Program }

// Write logs the text as a warning.
func (s Stray) Write(text []byte) (int, error) {
	s.Logger().Warn(strings.TrimSpace(string(text)))
	return len(text), nil
}

// A requestLog adds the id of the request in the context, and the time of a test clock beside the
// machine's.
type requestLog struct {
	slog.Handler
	clock *atomic.Pointer[clock.Clock]
}

func (l requestLog) Handle(ctx context.Context, r slog.Record) error {
	if id := httpapi.RequestID(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("request", id))
	}
	if c := l.clock.Load(); c != nil {
		r = r.Clone()
		r.AddAttrs(slog.Time("test_clock", c.Now()))
	}
	return l.Handler.Handle(ctx, r)
}

func (l requestLog) WithAttrs(as []slog.Attr) slog.Handler {
	return requestLog{l.Handler.WithAttrs(as), l.clock}
}

func (l requestLog) WithGroup(name string) slog.Handler {
	return requestLog{l.Handler.WithGroup(name), l.clock}
}
