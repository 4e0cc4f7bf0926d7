package browsertest

import (
	"os"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/test/npmtest"
)

// axe finds what keeps people from using a page.
var axe = npmtest.Package{Spec: "axe-core@4.14.1", File: "axe-core-4.14.1.tgz",
	Sum: "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5"}

// readAxe returns axe's script.
var readAxe = sync.OnceValues(func() (script string, err error) {
	err = axe.Each(func(name string, content []byte) error {
		if name == "axe.min.js" {
			script = string(content)
		}
		return nil
	})
	return script, err
})

// runAxe runs axe in the page, and returns a line for each serious or critical violation.
const runAxe = `const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"], elementRef: false}).then(r => done(r.violations
  .filter(v => v.impact === "serious" || v.impact === "critical")
  .map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(" | "))),
  e => done(["axe failed: " + e]));`

// Barriers returns the serious and critical violations that axe finds in the page as it is shown. Without axe the
// test is skipped, and under CI=true it fails.
func (b *Browser) Barriers() (all []string) {
	b.t.Helper()
	script, err := readAxe()
	if err != nil && os.Getenv("CI") != "true" {
		b.t.Skipf("SKIPPED, NOT TESTED with axe: %v", err)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if there, _ := b.Run("return typeof axe === 'object'").(bool); !there {
		b.Run(strings.TrimSpace(script))
	}
	for _, line := range b.call("POST", "/execute/async", map[string]any{"script": runAxe, "args": []any{}}).([]any) {
		all = append(all, line.(string))
	}
	return all
}
