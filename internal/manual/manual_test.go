package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func tree() *cobra.Command {
	root := &cobra.Command{Use: "tool", Short: "Do things"}
	leaf := &cobra.Command{Use: "pay FILE", Short: "Pay", Example: "  tool pay a.csv\n  tool pay 'b|c'",
		Long: ".hidden begins with a dot.\n'quoted' begins with a quote.\n\nA back\\slash stays, as does --flag, and … too.", Run: func(*cobra.Command, []string) {}}
	leaf.Flags().String("to", "", "`A|B` of <somebody>\nin *two* lines")
	leaf.Flags().Int("days", 7, "`DAYS` to wait")
	root.AddCommand(leaf, &cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}})
	return root
}

func TestPages(t *testing.T) {
	pages := Pages(tree(), "1.2.3")
	if len(pages) != 2 {
		t.Fatalf("%d pages", len(pages))
	}
	page := pages["tool-pay.1"]
	for _, want := range []string{`.TH "TOOL\-PAY" 1 "" "tool 1.2.3"`, "\n\\&.hidden begins", "\n\\&'quoted'", `back\eslash`, `and \[u2026] too`, `\-\-flag`,
		"\\fB\\-\\-days\\fR \\fIDAYS\\fR\nDAYS to wait (default 7)", "\\fBtool\\fR(1)"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

// The system's own formatter accepts the pages without a warning, where there is one.
func TestPagesFormat(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("groff is not installed: the man pages are not formatted")
	}
	dir := t.TempDir()
	for name, page := range Pages(tree(), "1.2.3") {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-z", path).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
