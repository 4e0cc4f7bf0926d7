// Package session provides what one invocation of the command needs: its settings, clock and log,
// and the store, engine, processor and mail that it opens on demand. It also provides the builders,
// flags and hints that all command families share.
//
// It does not know any command, and decides nothing about money.
package session

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/web"
)

// A Program is one invocation, with its streams, clock and flags.
type Program struct {
	*screen.Screen
	Dir   string // base of relative paths; "" for the process's working directory
	Stdin io.Reader
	Now   func() time.Time

	// Clock is a test clock, or nil. Once a store is open, Now reads this clock.
	Clock *clock.Clock
	// LogClock holds the test clock whose time is added to log lines, or nil.
	LogClock *atomic.Pointer[clock.Clock]
	follows  bool  // Clock started at the processor's time and is compared with it
	Lasting  bool  // a long-lived process; short-lived ones leave the folder to it
	cache    int64 // bytes of the store's cache; 0 for the setting's value

	Flag    func(name string) string // returns the text of a global flag
	Config  config.Config            // from flags and environment, once the command line is parsed
	Command string                   // "duesday run payments", for messages
	Name    string                   // the program's name, as the user typed it
	Umask   string                   // sh command that restores the user's umask for user commands
	Working bool                     // the command line is valid, so later errors are failures
}

// New returns the program for one invocation. The function now reads the machine's clock.
func New(env func(string) string, stdin io.Reader, stdout, stderr io.Writer, now func() time.Time) *Program {
	return &Program{Stdin: stdin, Screen: screen.New(stdout, stderr, env),
		Now: now, Command: "duesday", Name: "duesday", LogClock: new(atomic.Pointer[clock.Clock])}
}

// Path resolves the path of a file that a flag, an argument or a setting names.
func (p *Program) Path(name string) string {
	if p.Dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return p.Dir + "/" + name
}

// Setting returns the value of an environment variable. If the variable names a secret's file,
// Setting resolves the path.
func (p *Program) Setting(name string) string {
	if strings.HasSuffix(name, config.InFile) {
		return p.Path(p.Env(name))
	}
	return p.Env(name)
}

// Place returns the configured store's place.
func (p *Program) Place() (storeurl.Place, error) {
	place, err := p.PlaceOf(p.Config.Store)
	return place, screen.Invalid(err)
}

// PlaceOf parses a store URL and returns its place.
func (p *Program) PlaceOf(url string) (storeurl.Place, error) {
	place, err := storeurl.Parse(url)
	place.Folder = p.Path(place.Folder)
	return place, err
}

// TablesAt returns the tables of the store at the place. It returns a UsageError if a table name is
// invalid.
func TablesAt(place storeurl.Place) (schema.Tables, error) {
	t := schema.Named(cmp.Or(place.Prefix, schema.DefaultPrefix), place.RecurringTable)
	if err := t.CheckNames(); err != nil {
		return schema.Tables{}, screen.Usagef("store: prefix and recurring_table: %w", err)
	}
	return t, nil
}

// folder returns the path of the store's folder, or "" if the store is not in a folder.
func (p *Program) folder() string { return p.Path(FolderOf(p.Config.Store)) }

// FolderOf returns the folder in a pebble: URL, or "" for any other URL.
func FolderOf(url string) string {
	if dir, ok := strings.CutPrefix(url, "pebble:"); ok {
		return dir
	}
	return ""
}

// Logger returns a logger that writes to standard error, with secrets removed. It drops messages
// below the configured level. Messages about an HTTP request include the request ID.
func (p *Program) Logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: p.Config.LogLevel, ReplaceAttr: inSeconds}
	var h slog.Handler = slog.NewTextHandler(p.Err, options)
	if p.LogJSON {
		h = slog.NewJSONHandler(p.Err, options)
	}
	return slog.New(requestLog{secret.Handler(h), p.LogClock})
}

// inSeconds formats durations as numbers of seconds, in both the text and the JSON log.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// A Stray receives what libraries write to Go's standard logger.
type Stray struct{ *Program }

// Write logs the text as a warning.
func (s Stray) Write(text []byte) (int, error) {
	s.Logger().Warn(strings.TrimSpace(string(text)))
	return len(text), nil
}

// A requestLog adds the context's request ID to log records. If there is a test clock, it adds the
// test clock's time, too.
type requestLog struct {
	slog.Handler
	clock *atomic.Pointer[clock.Clock]
}

func (l requestLog) Handle(ctx context.Context, r slog.Record) error {
	if id := web.RequestID(ctx); id != "" {
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

// A Version describes the binary.
type Version struct {
	Number, Revision, Time string
	Modified               bool
}

// Platform is the binary's operating system and architecture.
const Platform = runtime.GOOS + "/" + runtime.GOARCH

// Text returns the version as one line.
func (v Version) Text() string {
	revision := v.Revision
	if v.Modified {
		revision += " (modified)"
	}
	return v.Number + screen.Prefixed(", ", revision) + ", " + runtime.Version() + ", " + Platform
}

// BuildVersion returns the version of the running binary.
func BuildVersion() Version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version{Number: "(devel)"}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return Version{cmp.Or(info.Main.Version, "(devel)"), settings["vcs.revision"], settings["vcs.time"],
		settings["vcs.modified"] == "true"}
}
