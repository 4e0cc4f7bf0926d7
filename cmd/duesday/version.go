package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionView struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  want(),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if p.cfg.JSON {
				return p.object(v)
			}
			p.say("duesday %s", v.text())
			return nil
		},
	}
}

// text is the version for people.
func (v versionView) text() string {
	revision := v.Revision
	if v.Modified {
		revision += " (modified)"
	}
	return v.Version + prefixed(", ", revision) + ", " + v.Go + ", " + v.Platform
}

// buildVersion returns the version written into the binary by the Go toolchain.
func buildVersion() versionView {
	v := versionView{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
