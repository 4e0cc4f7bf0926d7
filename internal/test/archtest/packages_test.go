package archtest

import (
	"flag"
	"fmt"
	"go/doc"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write docs/internals/packages.md again")

const packagesPage = "docs/internals/packages.md"

const packagesIntro = `# Packages

This page lists every package with the first sentence of its doc comment, for anyone who looks for
the place of a piece of code. ` + "`go test ./internal/test/archtest -update`" + ` writes the page from the source,
so change the doc comments and not the page.

The page says nothing about imports. The table ` + "`layers`" + ` in
[import_test.go](../../internal/test/archtest/import_test.go) lists the packages that each package may
import, and a test enforces it. [The overview](overview.md) draws the layers.
`

// summary returns what the package does, from its doc comment's first sentence: without
// "Package x" and a following "is" or "has", and with a capital.
func (p *pkg) summary() string {
	for _, f := range p.files {
		if f.Doc == nil {
			continue
		}
		text := new(doc.Package).Synopsis(f.Doc.Text())
		if m := starts.FindString(text); m != "" {
			text = text[len(m):]
		}
		for _, verb := range []string{"is ", "has "} {
			text = strings.TrimPrefix(text, verb)
		}
		first, size := utf8.DecodeRuneInString(text)
		return strings.ReplaceAll(string(unicode.ToUpper(first))+text[size:], "|", `\|`)
	}
	return ""
}

// packageTables returns the page that lists the packages: those of the product, then those that
// serve only tests.
func packageTables(s *source) string {
	var b strings.Builder
	b.WriteString(packagesIntro)
	for _, table := range []struct {
		name  string
		tests bool
	}{{"The product", false}, {"Tests", true}} {
		fmt.Fprintf(&b, "\n## %s\n\n| Package | Purpose |\n|---|---|\n", table.name)
		for _, p := range s.packages {
			if p.isTest() == table.tests {
				fmt.Fprintf(&b, "| [`%s`](../../%s) | %s |\n", p.dir, p.dir, p.summary())
			}
		}
	}
	return b.String()
}

// TestPackagesPage holds docs/internals/packages.md to the packages' doc comments.
func TestPackagesPage(t *testing.T) {
	planted, err := parse(map[string]string{
		"internal/mail/p.go":     "// Package mail is mail|letters. It does not send.\npackage mail",
		"internal/mailtest/p.go": "// Package mailtest gives tests a\n// mail server.\npackage mailtest",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"| [`internal/mail`](../../internal/mail) | Mail\\|letters. |\n\n## Tests",
		"| [`internal/mailtest`](../../internal/mailtest) | Gives tests a mail server. |\n"} {
		if got := packageTables(planted); !strings.Contains(got, row) {
			t.Errorf("the planted packages are not in their tables:\ngot\n%s\nwant\n%s", got, row)
		}
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	name, got := filepath.Join(root, filepath.FromSlash(packagesPage)), packageTables(s)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is stale: run go test ./internal/test/archtest -update", packagesPage)
	}
}
