package main

import (
	"encoding/json"
	"os"
	"strings"
	"time"
)

// sbom writes what the binary contains, in CycloneDX: its modules and Go's standard library, as the
// binary itself lists them.
func (t target) sbom(name string) error {
	component := func(kind, name, version string) map[string]string {
		url := "pkg:golang/" + strings.ToLower(name) + "@" + version
		return map[string]string{"type": kind, "bom-ref": url, "name": name, "version": version, "purl": url}
	}
	list := []map[string]string{component("library", "std", strings.TrimPrefix(t.info.GoVersion, "go"))}
	for _, m := range t.info.Deps {
		list = append(list, component("library", m.Path, m.Version))
	}
	text, err := json.MarshalIndent(map[string]any{"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": list,
		"metadata": map[string]any{"timestamp": t.time.Format(time.RFC3339),
			"component": component("application", t.info.Main.Path, t.info.Main.Version)}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
