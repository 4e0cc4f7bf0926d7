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
	_, text, _ := strings.Cut(packageComment(t, "../../store/doc.go"), "names the case of each sentence.\n")
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

// cases has each sentence of the contract, or its beginning, with its cases: topic/subtest of Run, or
// the test of another package where an engine needs more than the contract to show it. A sentence
// marked "-" promises nothing that could fail.
const cases = `
Durability
  When Commit returns nil: pebblestore.TestCrash; pebblestore.TestEveryFault
  Every later read by any: GetPut/every reader sees a commit at once
  The engine memstore keeps: -
Durable reads
  Get, Query and Scan show: pebblestore.TestUnsyncedIsInvisible
  A value is never shown: pebblestore.TestUnsyncedIsInvisible
Atomicity
  A Commit applies all: Atomicity; Atomicity/all or nothing means all;
      Concurrency/transfers keep the sum
  A Get concurrent with: Concurrency/no reader sees half an item
  Query and Scan are no: Iteration/writes in the loop; Iteration/moved on by the loop
  They yield every item: Iteration/writes in the loop;
      Iteration/a scan left early, and writes in it
Isolation
  Commits on one key: Concurrency/commits that exclude each other;
      Concurrency/one of many inserts succeeds; Concurrency/compare and set loses nothing
  The other one returns: Concurrency/commits that exclude each other
Absence
  An update or delete: Update/an absent item is a conflict;
      Delete/an absent item is a conflict; Update/a deleted item is a conflict
Rewriting
  Where other programs can: dynamostore.TestForeign_Rewrite
Expiry
  An item expires at: Expiry/at the second, not before
  From then on Get: Expiry/hidden from query and scan; ExpiredWrites/absent to writes;
      ExpiredWrites/put over an expired item
  An index Query may: Expiry/an index yields the living
  A TTL that is: Expiry/what never expires
  A TTL with a: ItemLimits/expiry is in whole seconds
  The clock is handed: Expiry/at the second, not before
Indexes
  An item is in: Indexes/in and out
  An index may lag: -
  An index row carries: Projections/keys and what is included; Projections/all;
      Projections/keys only
Order
  Sort keys are ordered: Order/sort keys; Order/index sort keys; Ranges/in a table
  Index rows with equal: Order/index ties; Cursors/page by page
  Descending order reverses the: Order/sort keys; Order/index ties
  Partitions have no order: -
Text
  Keys, attribute names, strings: Text/writes; Text/reads
  Bytes go into a: Text/writes
Values of other programs
  Where other programs can: dynamostore.TestForeign_OtherForms
  It is absent to every: dynamostore.TestForeign_Null
  A NULL in a map: Values/round trip; dynamostore.TestForeign_Sets
  A NULL reads as no value: dynamostore.TestForeign_Null
  A set has strings: ItemLimits/sets and nulls
Unreadable items
  If an engine cannot: pebblestore.TestUnreadable
  A Query or Scan: pebblestore.TestUnreadable
Limits
  Every engine refuses a: ItemLimits/the largest item; KeyLimits/the longest keys;
      CommitLimits/a hundred writes; ReadLimits/query
Ownership
  The caller owns an: Returned/an item that was got; Returned/rows
  It may use an: Ownership/an item that was put; Ownership/an item of a failed commit
Unknown outcomes
  ErrUnknown from Commit means: Unknown/the answer is lost;
      Unknown/a commit cancelled under way
  The caller must read: Unknown/a commit cancelled under way
  An engine never returns: Unknown/a refusal is not unknown;
      Unknown/a commit under way when the store is closed
`

// mapped reads the table.
func mapped() (all []promise) {
	topic := ""
	for line := range strings.SplitSeq(strings.ReplaceAll(cases, "\n      ", " "), "\n") {
		switch {
		case strings.HasPrefix(line, "  "):
			sentence, cases, _ := strings.Cut(strings.TrimSpace(line), ": ")
			all = append(all, promise{topic, sentence, strings.Split(cases, "; ")})
		case line != "":
			topic = line
		}
	}
	return all
}

// TestContractIsCovered: every sentence of the contract stands in the table, in its order,
// and every case in the table exists.
func TestContractIsCovered(t *testing.T) {
	sentences, table := contract(t), mapped()
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
		files, _ := filepath.Glob("../../store/" + engine + "/*_test.go")
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
