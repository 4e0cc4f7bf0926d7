package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	quoted    = regexp.MustCompile("`([^`\n]+)`")
	namedTest = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)[A-Z_]\w*$`)
	namedPart = regexp.MustCompile(`^([a-z]\w*)\.([A-Z]\w*)(?:\(\))?$`)
	namedPath = regexp.MustCompile(`^[\w-]+(?:/[\w.-]+)+/?$|^\w+\.go$`)
)

// A nameIndex has the names that a page may use.
type nameIndex struct {
	tests, folders map[string]bool
	declared       map[string]bool // mail.Folder
	paths          map[string]bool // mail/folder.go, folder.go
}

func indexOf(texts map[string]string) *nameIndex {
	declaration := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var |const |\t)([A-Z]\w*)`)
	n := &nameIndex{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for file, text := range texts {
		for part := file; part != "."; part = path.Dir(part) {
			for from := part; from != ""; _, from, _ = strings.Cut(from, "/") {
				n.paths[from] = true
			}
		}
		if !strings.HasSuffix(file, ".go") {
			continue
		}
		folder := path.Base(path.Dir(file))
		n.folders[folder] = true
		for _, m := range declaration.FindAllStringSubmatch(text, -1) {
			n.declared[folder+"."+m[1]] = true
			n.tests[m[1]] = n.tests[m[1]] || strings.HasSuffix(file, "_test.go")
		}
	}
	return n
}

// absent returns the names in backticks on a page that the tree does not have: tests, exported names
// of our packages, Go files and folders. A name of another kind, or of a foreign package, is not checked.
func (n *nameIndex) absent(name, page string) (list []string) {
	for _, m := range quoted.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		text, there := strings.TrimSuffix(m[1], "/"), true
		first, _, _ := strings.Cut(text, "/")
		if namedTest.MatchString(text) {
			there = n.tests[text]
		} else if part := namedPart.FindStringSubmatch(text); part != nil {
			there = n.declared[part[1]+"."+part[2]] || !n.folders[part[1]]
		} else if namedPath.MatchString(text) && (strings.HasSuffix(text, ".go") || n.folders[first] || n.paths[first]) {
			there = n.paths[text]
		}
		if !there {
			list = append(list, name+" names "+m[1])
		}
	}
	return list
}

// TestDocumentsNameWhatIsThere: each test, exported name, Go file and folder in backticks exists.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	planted := map[string]string{"internal/mail/p.go": "package p\n\ntype A int\n", "internal/mail/p_test.go": "func TestA(t"}
	page := "`TestA` `TestB` `mail.A` `mail.B` `time.B` `p.go` `q.go` `mail/p.go` `mail/q` `text/html`"
	if got := indexOf(planted).absent("x.md", page); strings.Join(got, "; ") !=
		"x.md names TestB; x.md names mail.B; x.md names q.go; x.md names mail/q" {
		t.Errorf("planted: %q", got)
	}
	all := map[string]string{"cmd/duesday/testdata/older/x": "", "cmd/duesday/testdata/stores/x": ""} // are not text
	maps.Insert(all, texts(t))
	n := indexOf(all)
	for name, text := range all {
		if path.Ext(name) == ".md" && !strings.HasPrefix(name, "stripefake/") { // which names its readers' files
			for _, missing := range n.absent(name, text) {
				t.Error(missing)
			}
		}
	}
}

// errorTexts returns the texts of a file's package errors that have a next step: text after a semicolon,
// or a duesday command. A text of several lines explains itself.
func errorTexts(t *testing.T, name, text string) (list []string) {
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			ast.Inspect(g, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				if of, ok := call.Fun.(*ast.SelectorExpr); !ok || of.Sel.Name != "New" {
					return true
				}
				ast.Inspect(call.Args[0], func(n ast.Node) bool {
					if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
						said, _ := strconv.Unquote(l.Value)
						if !strings.Contains(said, "\n") && (strings.Contains(said, "; ") || strings.Contains(said, " duesday ")) {
							list = append(list, said)
						}
					}
					return true
				})
				return false
			})
		}
	}
	return list
}

// TestErrorsWithNextStepsAreExplained: each package error that says what to do has an entry in
// docs/troubleshooting.md, and each check of status a row in docs/operating.md.
func TestErrorsWithNextStepsAreExplained(t *testing.T) {
	if got := errorTexts(t, "p.go", "package p\nvar e = errors.New(\"no a; use b\")\nvar f = errors.New(\"no a\")"); len(got) != 1 {
		t.Errorf("planted: %q", got)
	}
	var said, checks []string
	pages := map[string]string{}
	for name, text := range texts(t) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
		case strings.HasSuffix(name, ".go") && (strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "cmd/duesday/")):
			said = append(said, errorTexts(t, name, text)...)
			if name == "internal/status/status.go" {
				for _, m := range regexp.MustCompile(`\{"([a-z]+)", (?:true|false), v\.`).FindAllStringSubmatch(text, -1) {
					checks = append(checks, m[1])
				}
			}
		case strings.HasPrefix(name, "docs/"):
			pages[name] = text
		}
	}
	entries := regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(pages["docs/troubleshooting.md"], -1)
	for _, text := range said {
		if !slices.ContainsFunc(entries, func(e []string) bool { return strings.Contains(text, e[1]) }) {
			t.Errorf("docs/troubleshooting.md does not explain %q", text)
		}
	}
	if len(checks) < 15 || len(said) < 5 {
		t.Errorf("found %d checks and %d errors", len(checks), len(said))
	}
	for _, check := range checks {
		if !strings.Contains(pages["docs/operating.md"], "`"+check+"`") {
			t.Errorf("docs/operating.md does not explain the check %s", check)
		}
	}
}
