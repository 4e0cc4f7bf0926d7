// Package session is one invocation of the command: its settings, clock and log, the store, engine,
// processor and mail that it opens (need by need), and the builders, flags and hints that commands of every
// family use.
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
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store/storeurl"
)

// A Program is one invocation: its streams, its clock and its flags.
type Program struct {
	*screen.Screen
	Dir   string // where relative paths begin; "": in the folder of the process
	Stdin io.Reader
	Now   func() time.Time

	Clock    *clock.Clock                 // a test clock, whose Now is now once a store is open; nil: none
	LogClock *atomic.Pointer[clock.Clock] // a test clock that lines of the log show beside the machine's; nil: none
	follows  bool                         // the clock was taken from the processor's, and is compared with it
	Lasting  bool                         // the process stays: a short one leaves it the folder
	cache    int64                        // bytes of the store's cache; 0: the setting's

	Flag    func(name string) string // the text of a global flag
	Config  config.Config            // from flags and env, once the command line has been understood
	Command string                   // "duesday run payments", for messages
	Name    string                   // as a person calls this program
	Umask   string                   // command of sh for the one that a person's commands begin with
	Working bool                     // the command line was understood: errors are failures from here on
}

// New returns the program of one invocation, which reads the machine's clock by now.
func New(env func(string) string, stdin io.Reader, stdout, stderr io.Writer, now func() time.Time) *Program {
	return &Program{Stdin: stdin, Screen: screen.New(stdout, stderr, env),
		Now: now, Command: "duesday", Name: "duesday", LogClock: new(atomic.Pointer[clock.Clock])}
}

// Path returns the path of a file that a flag, an argument or a setting names.
func (p *Program) Path(name string) string {
	if p.Dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return p.Dir + "/" + name
}

// Setting returns a variable of the environment, with the path of a secret's file.
func (p *Program) Setting(name string) string {
	if strings.HasSuffix(name, config.InFile) {
		return p.Path(p.Env(name))
	}
	return p.Env(name)
}

// Place returns the place of the store that the settings name.
func (p *Program) Place() (storeurl.Place, error) {
	place, err := p.PlaceOf(p.Config.Store)
	return place, screen.Invalid(err)
}

// PlaceOf returns the place of a store's URL.
func (p *Program) PlaceOf(url string) (storeurl.Place, error) {
	place, err := storeurl.Parse(url)
	place.Folder = p.Path(place.Folder)
	return place, err
}

// TablesAt returns the tables of the store at the place. Invalid names are a usageError.
func TablesAt(place storeurl.Place) (schema.Tables, error) {
	t := schema.Named(cmp.Or(place.Prefix, schema.DefaultPrefix), place.RecurringTable)
	if err := t.CheckNames(); err != nil {
		return schema.Tables{}, screen.Usagef("store: prefix and recurring_table: %w", err)
	}
	return t, nil
}

// folder returns the path of the store's folder, or "".
func (p *Program) folder() string { return p.Path(FolderOf(p.Config.Store)) }

// FolderOf returns the folder of a pebble: store, or "".
func FolderOf(url string) string {
	if dir, ok := strings.CutPrefix(url, "pebble:"); ok {
		return dir
	}
	return ""
}

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

// A Version describes the binary.
type Version struct {
	Number, Revision, Time string
	Modified               bool
}

// Platform is the operating system and architecture of the binary.
const Platform = runtime.GOOS + "/" + runtime.GOARCH

// Text returns the version on one line.
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
