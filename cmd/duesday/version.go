package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/duesday/duesday/internal/screen"
)

// A version describes the binary.
type version struct {
	Number, Revision, Time string
	Modified               bool
}

const Platform = runtime.GOOS + "/" + runtime.GOARCH

func (v version) Text() string {
	revision := v.Revision
	if v.Modified {
		revision += " (modified)"
	}
	return v.Number + screen.Prefixed(", ", revision) + ", " + runtime.Version() + ", " + Platform
}

func BuildVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version{Number: "(devel)"}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return version{cmp.Or(info.Main.Version, "(devel)"), settings["vcs.revision"], settings["vcs.time"],
		settings["vcs.modified"] == "true"}
}
