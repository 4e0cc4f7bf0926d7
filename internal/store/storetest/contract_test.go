package storetest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// packageComment returns the text of a file's package comment.
func packageComment(t *testing.T, file string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f.Doc.Text()
}

// A promise is a sentence of the contract, or the beginning of one with its cases.
type promise struct {
	topic, sentence string
	cases           []string
}

// contract reads the sentences of package store's comment.
func contract(t *testing.T) (all []promise) {
	t.Helper()
	_, text, _ := strings.Cut(packageComment(t, "../doc.go"), "names the case of each sentence.\n")
	ends := regexp.MustCompile(`\. ([A-Z])`)
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		paragraph = ends.ReplaceAllString(strings.ReplaceAll(paragraph, "\n", " "), ".\n$1")
		topic, sentences, _ := strings.Cut(paragraph, ".\n")
		for sentence := range strings.SplitSeq(sentences, "\n") {
			all = append(all, promise{topic: topic, sentence: sentence})
		}
	}
	return all
}

// mapped reads the table in the comment of this package.
func mapped(t *testing.T) (all []promise) {
	t.Helper()
	_, text, _ := strings.Cut(packageComment(t, "doc.go"), "# Each sentence and its case\n")
	text = strings.ReplaceAll(text, "\n\t      ", " ")
	topic := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "\t  "):
			sentence, cases, _ := strings.Cut(strings.TrimSpace(line), ": ")
			all = append(all, promise{topic, sentence, strings.Split(cases, "; ")})
		case strings.HasPrefix(line, "\t"):
			topic = strings.TrimSpace(line)
		}
	}
	return all
}

// TestContractIsCovered: every sentence of the contract stands in the table, in its order,
// and every case in the table exists.
func TestContractIsCovered(t *testing.T) {
	sentences, table := contract(t), mapped(t)
	if len(sentences) < 30 {
		t.Fatalf("only %d sentences were found in the contract", len(sentences))
	}
	for i := range max(len(sentences), len(table)) {
		var want, got promise
		if i < len(sentences) {
			want = sentences[i]
		}
		if i < len(table) {
			got = table[i]
		}
		if got.topic != want.topic || got.sentence == "" || !strings.HasPrefix(want.sentence, got.sentence) {
			t.Fatalf("sentence %d: the contract says\n%s. %s\nand the table has\n%s. %s", i, want.topic, want.sentence,
				got.topic, got.sentence)
		}
	}
	literals := stringLiterals(t)
	for _, p := range table {
		for _, c := range p.cases {
			if err := exists(literals, c); err != nil {
				t.Errorf("%s: %v", p.sentence, err)
			}
		}
	}
	if err := exists(literals, "Update/no such case"); err == nil {
		t.Error("a case that is not there is found")
	}
}

// exists returns an error unless the case is there: "Topic", "Topic/subtest" or
// "package.TestName".
func exists(literals map[string]bool, name string) error {
	if name == "-" {
		return nil
	}
	if engine, test, ok := strings.Cut(name, "."); ok && !strings.Contains(engine, "/") {
		files, _ := filepath.Glob("../" + engine + "/*_test.go")
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "func "+test+"(") {
				return nil
			}
		}
		return fmt.Errorf("there is no test %s", name)
	}
	topic, subtest, _ := strings.Cut(name, "/")
	if !literals[topic] || (subtest != "" && !literals[subtest]) {
		return fmt.Errorf("there is no case %q", name)
	}
	return nil
}

// stringLiterals returns all string literals of this package's suite.
func stringLiterals(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				found[strings.Trim(l.Value, "\"`")] = true
			}
			return true
		})
	}
	return found
}
