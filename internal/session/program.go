package session

import (
	"cmp"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
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
