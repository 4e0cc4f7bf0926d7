package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/duesday/duesday/internal/screen"
)

// A version describes the binary.
type version struct {
	number, revision, time string
	modified               bool
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

func (v version) text() string {
	revision := v.revision
	if v.modified {
		revision += " (modified)"
	}
	return v.number + screen.Prefixed(", ", revision) + ", " + runtime.Version() + ", " + platform
}

func buildVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version{number: "(devel)"}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return version{cmp.Or(info.Main.Version, "(devel)"), settings["vcs.revision"], settings["vcs.time"],
		settings["vcs.modified"] == "true"}
}
