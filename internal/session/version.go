package session

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/duesday/duesday/internal/screen"
)

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
