package main

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// A version describes the binary.
type version struct {
	number, revision, time string
	modified               bool
}

func (p *program) versionCommand() *cobra.Command {
	return leaf("version", "Print the version", func(context.Context, []string) error {
		v := buildVersion()
		p.say("duesday %s", v.text())
		return p.json(object{"version", v.number, "revision?", v.revision, "time?", v.time, "modified?", v.modified,
			"go", runtime.Version(), "platform", platform})
	})
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

// text is the version for people.
func (v version) text() string {
	revision := v.revision
	if v.modified {
		revision += " (modified)"
	}
	return v.number + prefixed(", ", revision) + ", " + runtime.Version() + ", " + platform
}

// buildVersion returns the version written into the binary by the Go toolchain.
func buildVersion() version {
	v := version{number: "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.number = cmp.Or(info.Main.Version, v.number)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.revision = s.Value
		case "vcs.time":
			v.time = s.Value
		case "vcs.modified":
			v.modified = s.Value == "true"
		}
	}
	return v
}
