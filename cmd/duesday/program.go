package main

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

// A program is one invocation: its streams, its clock and its flags.
type program struct {
	*screen.Screen
	env   func(string) string
	dir   string // where relative paths begin; "": in the folder of the process
	stdin io.Reader
	now   func() time.Time

	clock    *clock.Clock                 // a test clock, whose Now is now once a store is open; nil: none
	logClock *atomic.Pointer[clock.Clock] // a test clock that lines of the log show beside the machine's; nil: none
	follows  bool                         // the clock was taken from the processor's, and is compared with it
	lasting  bool                         // the process stays: a short one leaves it the folder
	cache    int64                        // bytes of the store's cache; 0: the setting's

	flag    func(name string) string // the text of a global flag
	cfg     config.Config            // from flags and env, once the command line has been understood
	command string                   // "duesday run payments", for messages
	name    string                   // as a person calls this program
	umask   string                   // command of sh for the one that a person's commands begin with
	working bool                     // the command line was understood: errors are failures from here on
}

func newProgram(env func(string) string, stdin io.Reader, stdout, stderr io.Writer, now func() time.Time) *program {
	return &program{env: env, stdin: stdin, Screen: screen.New(stdout, stderr, env),
		now: now, command: "duesday", name: "duesday", logClock: new(atomic.Pointer[clock.Clock])}
}

// path returns the path of a file that a flag, an argument or a setting names.
func (p *program) path(name string) string {
	if p.dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return p.dir + "/" + name
}

// setting returns a variable of the environment, with the path of a secret's file.
func (p *program) setting(name string) string {
	if strings.HasSuffix(name, config.InFile) {
		return p.path(p.env(name))
	}
	return p.env(name)
}

func (p *program) place() (storeurl.Place, error) {
	place, err := p.placeOf(p.cfg.Store)
	return place, screen.Invalid(err)
}

func (p *program) placeOf(url string) (storeurl.Place, error) {
	place, err := storeurl.Parse(url)
	place.Folder = p.path(place.Folder)
	return place, err
}

// tablesAt returns the tables of the store at the place. Invalid names are a usageError.
func tablesAt(place storeurl.Place) (schema.Tables, error) {
	t := schema.Named(cmp.Or(place.Prefix, schema.DefaultPrefix), place.RecurringTable)
	if err := t.CheckNames(); err != nil {
		return schema.Tables{}, screen.Usagef("store: prefix and recurring_table: %w", err)
	}
	return t, nil
}

// folder returns the path of the store's folder, or "".
func (p *program) folder() string { return p.path(folderOf(p.cfg.Store)) }

// folderOf returns the folder of a pebble: store, or "".
func folderOf(url string) string {
	if dir, ok := strings.CutPrefix(url, "pebble:"); ok {
		return dir
	}
	return ""
}
