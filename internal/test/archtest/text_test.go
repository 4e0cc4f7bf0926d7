package archtest

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// openEnds are promises that nobody keeps track of. One with an issue's number may stay.
var openEnds = regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X|` + "HA" + `CK)\b(\(#[0-9]+\):)?`)

func naked(s *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				for _, m := range openEnds.FindAllStringSubmatch(c.Text, -1) {
					if m[2] == "" {
						found = append(found, s.at(f, c.Pos(), "a naked %s: do it, or write %s(#12): with an issue's number", m[1], m[1]))
					}
				}
			}
		}
	}
	return found
}

func TestNoNakedOpenEnds(t *testing.T) {
	check(t, naked, nil,
		plant{"internal/mail/p.go", "package p\n// " + "TO" + "DO: later", "a naked"},
		plant{"internal/mail/p.go", "package p\n// " + "FIX" + "ME(me)", "a naked"})
}

// machinePath matches the name of a folder that only one machine has. It is put
// together from parts, so that this file does not trip over itself.
var machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_.~/-])(/(` +
	strings.Join([]string{"ho" + "me", "Us" + "ers", "ro" + "ot", "wo" + "rk", "work" + "space"}, "|") +
	`)/[A-Za-z0-9._-]+|[A-Z]:\\` + "Us" + `ers\\)`)

func machinePaths(name, text string) (found []violation) {
	for number, line := range strings.Split(text, "\n") {
		if m := machinePath.FindString(line); m != "" {
			found = append(found, violation{file: name, line: number + 1,
				text: "the path " + strings.TrimSpace(m) + " is of one machine"})
		}
	}
	return found
}

// texts yields every text file of the project, documents among them.
func texts(t *testing.T) iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		root, err := moduleRoot()
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			switch {
			case d.IsDir() && (d.Name() == ".git" || isLeftOver(relative)):
				return filepath.SkipDir
			case !d.Type().IsRegular() || d.Name() == ".git" || isLeftOver(relative): // .git is a file in a worktree
				return nil
			}
			text, err := os.ReadFile(name)
			if err == nil && utf8.Valid(text) && !yield(filepath.ToSlash(relative), string(text)) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoMachinePaths(t *testing.T) {
	for _, planted := range []string{"cd " + "/ho" + "me/ada/duesday", "open(\"" + "/wo" + "rk/main\")",
		"`C:\\" + "Us" + "ers\\ada`"} {
		if len(machinePaths("planted", planted)) == 0 {
			t.Errorf("a planted machine path was not reported: %s", planted)
		}
	}
	files := 0
	for name, text := range texts(t) {
		files++
		for _, v := range machinePaths(name, text) {
			t.Error(v)
		}
	}
	if files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
}

var document = regexp.MustCompile(`\b(docs/([a-z0-9-]+/)*[a-z0-9-]+|[A-Z]{4,})\.md\b`)

// TestDocumentsThatAreNamedExist: in documents and comments, by their names from the root.
func TestDocumentsThatAreNamedExist(t *testing.T) {
	if !slices.Equal(document.FindAllString("see docs/internals/store.md, and (README.md)", -1),
		[]string{"docs/internals/store.md", "README.md"}) {
		t.Error("planted names were not found")
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts(t) {
		for _, named := range document.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(named))); err != nil {
				t.Errorf("%s names %s, which is not there", name, named)
			}
		}
	}
}

// isLeftOver reports whether the name at the root is what .gitignore keeps out: a store
// that the demo made, a profile.
func isLeftOver(relative string) bool {
	return relative == "duesday" || relative == ".cache" || strings.HasPrefix(relative, "duesday-") ||
		strings.HasPrefix(relative, "coverage.") || relative == "profiles" ||
		strings.HasSuffix(relative, ".prof") || strings.HasSuffix(relative, ".test")
}
