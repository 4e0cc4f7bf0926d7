// Package archtest checks the source code against the architecture rules that
// CONTRIBUTING.md explains: allowed imports and calls, lengths of files and functions,
// and package comments.
//
// It does not check behavior, or style that gofmt, go vet or staticcheck already check.
// It contains only tests. Each rule must first find a planted violation, so a rule that
// no longer works fails too.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/duesday/duesday"

// A source is all Go files below a root, as packages.
type source struct {
	fset     *token.FileSet
	packages []*pkg
}

// A pkg is the Go files of one folder.
type pkg struct {
	dir   string // from the root, with slashes: internal/billing
	files []*file
	info  types.Info // of the files that are no tests; what is imported is not looked into
	scope *types.Scope
}

// A file is one of them.
type file struct {
	*ast.File
	name string // from the root, with slashes
	text string
	test bool
}

// A rule returns what is wrong in a package, each with the file it is in.
type rule func(s *source, p *pkg) []violation

type violation struct {
	file string
	in   string // the function or method, if it is in one
	line int
	text string
}

func (v violation) String() string {
	if v.line == 0 {
		return v.file + ": " + v.text
	}
	return fmt.Sprintf("%s:%d: %s", v.file, v.line, v.text)
}

// Reasons are the exceptions of a rule: for a function ("internal/mail/folder.go open"),
// a file, or a folder ("cmd/duesday-bench/bench/"), why the rule does not hold there.
type reasons map[string]string

// excuse returns the exception that covers a violation, or "".
func (r reasons) excuse(v violation) string {
	for _, key := range []string{v.file + " " + v.in, v.file, path.Dir(v.file) + "/"} {
		if r[key] != "" {
			return key
		}
	}
	return ""
}

// A plant is a file with a violation: its name from the root, its text, and a part of
// the message that has to come.
type plant struct{ name, text, want string }

// tree is the project, parsed once for all tests.
var tree = sync.OnceValues(func() (*source, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || isModule(name)) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, ".go") {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			texts[filepath.ToSlash(relative)] = string(text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return parse(texts)
})

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
		dir = parent
	}
}

// isModule reports whether the folder is a Go module of its own.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

func parse(texts map[string]string) (*source, error) {
	s := &source{fset: token.NewFileSet()}
	byDir := map[string]*pkg{}
	for name, text := range texts {
		f, err := parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir}
			s.packages = append(s.packages, byDir[dir])
		}
		byDir[dir].files = append(byDir[dir].files, &file{f, name, text, strings.HasSuffix(name, "_test.go")})
	}
	for _, p := range s.packages {
		slices.SortFunc(p.files, func(a, b *file) int { return strings.Compare(a.name, b.name) })
		p.resolve(s.fset)
	}
	slices.SortFunc(s.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return s, nil
}

// resolve finds out what the names in the files that are no tests stand for. Imported
// packages are taken for empty ones: that leaves errors behind, and what a selector's
// left side is, which is all that is needed.
func (p *pkg) resolve(fset *token.FileSet) {
	var files []*ast.File
	for _, f := range p.files {
		if !f.test {
			files = append(files, f.File)
		}
	}
	p.info = types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}, FakeImportC: true}
	if t, _ := config.Check(module+"/"+p.dir, fset, files, &p.info); t != nil {
		p.scope = t.Scope()
	}
}

type emptyPackages struct{}

func (emptyPackages) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, baseName(name))
	p.MarkComplete()
	return p, nil
}

// baseName guesses a package's name from its path.
func baseName(name string) string {
	base := path.Base(name)
	if v, ok := strings.CutPrefix(base, "v"); ok && strings.Trim(v, "0123456789") == "" {
		base = path.Base(path.Dir(name))
	}
	return base
}

// isTest reports whether the package is test support, by its path.
func (p *pkg) isTest() bool { return testSupport(p.dir) }

func testSupport(dir string) bool {
	return strings.HasPrefix(dir, "internal/test/") || strings.HasSuffix(dir, "test")
}

// sources returns the files that are part of the product.
func (p *pkg) sources() []*file {
	if p.isTest() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test })
}

func (p *pkg) isCommand() bool { return path.Dir(p.dir) == "cmd" }

func (s *source) at(f *file, at token.Pos, format string, args ...any) violation {
	v := violation{file: f.name, line: s.fset.Position(at).Line, text: fmt.Sprintf(format, args...)}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() <= at && at < fn.End() {
			v.in = fn.Name.Name
		}
	}
	return v
}

// imports returns the paths that a file imports, with their places.
func (f *file) imports() map[string]token.Pos {
	paths := map[string]token.Pos{}
	for _, i := range f.Imports {
		if name, err := strconv.Unquote(i.Path.Value); err == nil {
			paths[name] = i.Pos()
		}
	}
	return paths
}

// qualified calls found for every name of another package in the file: ("time", "Now").
func (p *pkg) qualified(f *file, found func(at token.Pos, path, name string)) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if left, ok := sel.X.(*ast.Ident); ok {
				if of, ok := p.info.Uses[left].(*types.PkgName); ok {
					found(sel.Pos(), of.Imported().Path(), sel.Sel.Name)
				}
			}
		}
		return true
	})
}

// check holds the project to a rule. First it shows the rule the planted violations,
// each of which it has to report; each exception must be one that is needed.
func check(t *testing.T, r rule, except reasons, plants ...plant) {
	t.Helper()
	if len(plants) == 0 {
		t.Error("this rule is shown no violation: plant one")
	}
	for _, planted := range plants {
		s, err := parse(map[string]string{planted.name: planted.text})
		if err != nil {
			t.Fatalf("planted %s: %v", planted.name, err)
		}
		if found := fmt.Sprint(r(s, s.packages[0])); !strings.Contains(found, planted.want) {
			t.Errorf("a violation planted in %s was not reported: got %s, want %q", planted.name, found, planted.want)
		}
	}
	s, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range s.packages {
		for _, v := range r(s, p) {
			if key := except.excuse(v); key != "" {
				used[key] = true
				continue
			}
			t.Error(v)
		}
	}
	for name := range except {
		if !used[name] {
			t.Errorf("%s needs no exception any more: remove it", name)
		}
	}
}
