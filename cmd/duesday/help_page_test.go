package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/manual"
)

// TestHelpPage holds docs/cli.md to the help. go test ./cmd/duesday -run TestHelpPage -update writes it.
func TestHelpPage(t *testing.T) {
	p := newProgram(func(string) string { return "" }, nil, nil, nil, nil)
	page := markdown(p.root(), "This page has the help of every command, as `duesday help COMMAND` prints it, written by\n"+
		"`go test ./cmd/duesday -run TestHelpPage -update`. `duesday man FOLDER` writes the same as man pages.")
	const path = "../../docs/cli.md"
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(old) != page {
		t.Error("docs/cli.md is not what the help says; run go test ./cmd/duesday -run TestHelpPage -update")
	}
}

func TestMarkdown(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "Do things"}
	leaf := &cobra.Command{Use: "pay FILE", Short: "Pay", Example: "  tool pay a.csv\n  tool pay 'b|c'", Run: func(*cobra.Command, []string) {}}
	leaf.Flags().String("to", "", "`A|B` of <somebody>\nin *two* lines")
	leaf.Flags().Int("days", 7, "`DAYS` to wait")
	root.AddCommand(leaf, &cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}})
	page := markdown(root, "All of them.")
	for _, want := range []string{"# Commands\n\nAll of them.\n", "\n## tool pay\n\nPay.\n", "```\ntool pay FILE [flags]\n```",
		"| `--days DAYS` | DAYS to wait (default 7) |", `| A\|B of \<somebody> in \*two\* lines |`, "```sh\ntool pay a.csv\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") {
		t.Error("a hidden command is listed")
	}
}

// markdown returns one page with a section for each command below root, after the introduction.
func markdown(root *cobra.Command, introduction string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands\n\n%s\n", introduction)
	for c := range manual.Commands(root) {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
		if !c.HasSubCommands() {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", c.UseLine())
		}
		for paragraph := range strings.SplitSeq(c.Long, "\n\n") {
			if strings.Contains("\n"+paragraph, "\n ") { // a list or a table
				fmt.Fprintf(&b, "\n```text\n%s\n```\n", paragraph)
			} else if paragraph != "" {
				fmt.Fprintf(&b, "\n%s\n", plainText.Replace(paragraph))
			}
		}
		if c.Example != "" && strings.TrimSpace(c.Example) != c.CommandPath() {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", manual.Unindent(c.Example))
		}
		if list := manual.Flags(c); len(list) > 0 {
			b.WriteString("\n| Flag | Meaning |\n|---|---|\n")
			for _, f := range list {
				fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimSpace(f.Name+" "+f.Value), cellText.Replace(f.Usage))
			}
		}
	}
	return b.String()
}

// plainText escapes what Markdown would read as HTML or as emphasis, and cellText also a table's border.
var (
	plainText = strings.NewReplacer("<", `\<`, "*", `\*`)
	cellText  = strings.NewReplacer("<", `\<`, "*", `\*`, "|", `\|`, "\n", " ")
)
