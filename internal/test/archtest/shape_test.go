package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// globals: what is in effect is what was handed in. A package has no init, and no
// variable that changes; a sentinel error is fine, a table is with a comment.
func globals(s *source, p *pkg) (found []violation) {
	if p.scope == nil {
		return nil
	}
	for _, f := range p.sources() {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					found = append(found, s.at(f, d.Pos(), "init: wire it in the command"))
				}
			case *ast.GenDecl:
				found = append(found, s.uncommented(f, d)...)
			}
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			for _, e := range changed(n) {
				if id := rootOf(e); id != nil {
					if v, ok := p.info.Uses[id].(*types.Var); ok && v.Parent() == p.scope {
						found = append(found, s.at(f, e.Pos(), "%s is changed: a package has no state of its own", id.Name))
					}
				}
			}
			return true
		})
	}
	return found
}

var sentinel = regexp.MustCompile(`^(err|Err)[A-Z]`)

func (s *source) uncommented(f *file, d *ast.GenDecl) (found []violation) {
	if d.Tok != token.VAR {
		return nil
	}
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		for _, name := range v.Names {
			if name.Name == "_" || sentinel.MatchString(name.Name) || d.Doc != nil || v.Doc != nil || v.Comment != nil {
				continue
			}
			found = append(found, s.at(f, name.Pos(),
				"variable %s of the package has no comment: say what it holds, or make it a constant or a field", name.Name))
		}
	}
	return found
}

// changed returns the expressions that the statement or call writes to.
func changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok &&
			slices.Contains([]string{"Store", "Add", "Swap", "Lock", "Do", "CompareAndSwap", "LoadOrStore"}, sel.Sel.Name) {
			return []ast.Expr{sel.X}
		}
	}
	return nil
}

func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func TestNoInitNoGlobals(t *testing.T) {
	check(t, globals,
		reasons{"internal/civil/zone.go Zone": "a cache of the zone database's entries, which never change"},
		plant{"internal/mail/p.go", "package p\nfunc init() {}", "init: wire it"},
		plant{"internal/mail/p.go", "package p\n// n counts.\nvar n int\nfunc f() { n++ }", "n is changed"},
		plant{"internal/mail/p.go", "package p\n// m has a key.\nvar m = map[string]bool{}\nfunc f() { m[\"\"] = true }",
			"m is changed"},
		plant{"internal/mail/p.go", "package p\nvar m = map[string]bool{}", "m of the package has no comment"})
}

var (
	starts  = regexp.MustCompile(`^(Package|Command) ([a-z0-9-]+) `)
	refuses = regexp.MustCompile(`(?i)\b(does not|do not|knows? nothing|knows? no|never|is not|moves no|decides nothing|makes no|has no)\b`)
)

// comments: a package says what it is for, and where its job ends.
func comments(s *source, p *pkg) (found []violation) {
	var told []*file
	for _, f := range p.files {
		if f.Doc != nil && !strings.HasSuffix(f.Name.Name, "_test") {
			told = append(told, f)
		}
	}
	name := strings.TrimSuffix(p.files[0].Name.Name, "_test")
	switch {
	case len(told) == 0:
		return []violation{{file: p.files[0].name, text: "package " + name + " has no package comment"}}
	case len(told) > 1:
		return []violation{{file: told[1].name, text: "a second package comment; the first is in " + told[0].name}}
	}
	text := strings.Join(strings.Fields(told[0].Doc.Text()), " ")
	if p.isCommand() {
		name = path.Base(p.dir)
	}
	if m := starts.FindStringSubmatch(text); (m == nil || m[2] != name) &&
		!(p.isCommand() && strings.HasPrefix(strings.ToLower(text), name+" ")) {
		found = append(found, s.at(told[0], told[0].Doc.Pos(), "the package comment must begin \"Package %s \"", name))
	}
	if !refuses.MatchString(text) {
		found = append(found, s.at(told[0], told[0].Doc.Pos(), "the package comment must say what package %s does not do",
			name))
	}
	return found
}

var namedFile = regexp.MustCompile(`\b[a-z][a-z0-9_]*\.go\b`)

// named: the files that a package comment leads to are there.
func named(s *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		if f.Doc == nil {
			continue
		}
		for _, name := range namedFile.FindAllString(f.Doc.Text(), -1) {
			if !slices.ContainsFunc(p.files, func(f *file) bool { return path.Base(f.name) == name }) {
				found = append(found, s.at(f, f.Doc.Pos(), "the package comment names %s, which is not there", name))
			}
		}
	}
	return found
}

func TestPackageCommentsNameRealFiles(t *testing.T) {
	check(t, named, nil, plant{"internal/mail/p.go", "// Package mail is told in walk.go.\npackage mail",
		"names walk.go, which is not there"})
}

func TestPackagesSayWhatTheyDoNotDo(t *testing.T) {
	check(t, comments, nil,
		plant{"internal/mail/p.go", "package mail", "has no package comment"},
		plant{"internal/mail/p.go", "// Mail does not much.\npackage mail", "must begin"},
		plant{"internal/mail/p.go", "// Package mail sends mail.\npackage mail", "does not do"})
}

// forbiddenNames say nothing of what is inside.
var forbiddenNames = []string{"base", "common", "core", "global", "globals", "helper", "helpers", "internal", "lib",
	"manager", "misc",
	"model", "models", "pkg", "service", "services", "shared", "type", "types", "util", "utils"}

func names(_ *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		name := f.Name.Name
		if slices.Contains(forbiddenNames, name) || strings.HasSuffix(strings.TrimSuffix(name, "_test"), "util") {
			found = append(found, violation{file: f.name,
				text: "package " + name + ": a package is named for what it holds, by a word a bookkeeper or an operator knows"})
		}
	}
	return found
}

func TestPackageNamesSaySomething(t *testing.T) {
	check(t, names, nil,
		plant{"internal/util/p.go", "package util", "named for what it holds"},
		plant{"internal/stringutil/p.go", "package stringutil", "named for what it holds"})
}

const (
	maxLines     = 500
	maxTestLines = 800
	maxFunction  = 70
	maxMethods   = 5
)

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func sizes(s *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		if generated.MatchString(f.text) {
			continue
		}
		most := maxLines
		if f.test || p.isTest() {
			most = maxTestLines
		}
		if n := strings.Count(f.text, "\n"); n > most {
			found = append(found, violation{file: f.name, text: fmt.Sprintf("%d lines; a file has at most %d", n, most)})
		}
		if f.test || p.isTest() {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(fn.End()).Line - s.fset.Position(fn.Pos()).Line + 1; n > maxFunction {
				found = append(found, s.at(f, fn.Pos(), "%s has %d lines; a function has at most %d", fn.Name.Name, n, maxFunction))
			}
		}
	}
	return found
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	check(t, sizes, nil,
		plant{"internal/mail/p.go", "package p" + strings.Repeat("\n", maxLines+1), "a file has at most"},
		plant{"internal/mail/p.go", "package p\nfunc f() {" + strings.Repeat("\n", maxFunction) + "}",
			"a function has at most"})
}

func interfaces(s *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if x, ok := spec.Type.(*ast.InterfaceType); ok && x.Methods.NumFields() > maxMethods {
				found = append(found, s.at(f, spec.Pos(), "interface %s has %d methods; more than %d is not one seam but several",
					spec.Name.Name, x.Methods.NumFields(), maxMethods))
			}
			return true
		})
	}
	return found
}

func TestInterfacesAreSmall(t *testing.T) {
	check(t, interfaces, nil,
		plant{"internal/mail/p.go", "package p\ntype I interface { A(); B(); C(); D(); E(); F() }",
			"interface I has 6 methods"})
}
