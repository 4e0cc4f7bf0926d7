package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forbid returns a rule against names of other packages ("time.Now", "log.*") in the
// product, outside commands if asked.
func forbid(why string, inCommands bool, names ...string) rule {
	return func(s *source, p *pkg) (found []violation) {
		if p.isCommand() && !inCommands {
			return nil
		}
		for _, f := range p.sources() {
			p.qualified(f, func(at token.Pos, path, name string) {
				if slices.Contains(names, path+"."+name) || slices.Contains(names, path+".*") {
					found = append(found, s.at(f, at, "%s.%s: %s", path, name, why))
				}
			})
		}
		return found
	}
}

func TestTheClockIsReadAtTheEdge(t *testing.T) {
	check(t, forbid("the clock is handed in, so that tests and the demo can set it", false, "time.Now", "time.Since",
		"time.Until"),
		reasons{
			"cmd/duesday-bench/bench/":                                 "it measures",
			"internal/billing/job/run.go run":                          "how long a run took is measured, and decides nothing",
			"internal/httpapi/server.go New":                           "the default of Options.Now",
			"internal/web/server.go New":                               "the default of Options.Now",
			"internal/web/stream.go extend":                            "the deadlines of a connection are on the real clock",
			"internal/screen/progress.go show":                         "a bar is about real time",
			"internal/screen/progress.go Progress":                     "a bar is about real time",
			"internal/sandbox/sandbox.go newSandbox":                   "the default of Options.Now",
			"internal/socket/holder.go Write":                          "tells people since when a process is the holder",
			"internal/store/dynamostore/store.go Open":                 "the default of Options.Now",
			"internal/store/folder/election.go elect":                  "how long a holder may be silent is real time",
			"internal/store/folder/election.go finish":                 "how long a process waits for another is real time",
			"internal/store/dynamostore/errors.go over":                "a machine that slept is told by the wall clock alone",
			"internal/command/bookkeeping/import.go importFile":        "how long an import took is measured",
			"internal/command/rehearsal/demo.go demo":                  "how long a demo took is measured",
			"internal/command/rehearsal/stripefake.go serveStripeFake": "the fake's delays are on the real clock",
			"internal/stripe/api/budget.go monotonic": "requests are spaced by the machine's clock: a demo's " +
				"stands still",
			"internal/stripe/api/client.go fill": "the default of Options.Now",
			"stripefake/fake.go New":             "the defaults of Options.Now and Options.Real",
			"internal/store/pebblestore/commit.go finishGroups": "how long a sync takes is measured, and decides only how " +
				"long the next group may gather",
			"internal/store/folder/folder.go Open":            "the default of Options.Now",
			"internal/store/link/frame.go silence":            "the deadlines of a connection are on the real clock",
			"internal/systemd/systemd.go tell":                "the deadlines of a connection are on the real clock",
			"internal/store/pebblestore/open.go withDefaults": "the default of Options.Now",
			"internal/store/storeurl/storeurl.go Open":        "the default of Options.Now",
			"internal/tracking/poller/options.go New":         "the default of Options.Now",
			"internal/tracking/base.go Open":                  "the default of Options.Now",
		},
		plant{"internal/civil/p.go", "package p\nimport \"time\"\nvar x = time.Now()", "time.Now: the clock is handed in"},
		plant{"internal/civil/p.go", "package p\nimport clock \"time\"\nfunc f() { g(clock.Now) }", "time.Now"})
}

func TestNobodySleeps(t *testing.T) {
	check(t, forbid("wait for what has to happen, not for a while", true, "time.Sleep"),
		reasons{"cmd/duesday-bench/bench/bare.go settle": "benchmarks wait for Pebble to become idle, " +
			"which it tells nobody"},
		plant{"cmd/duesday/p.go", "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }", "time.Sleep"})
}

func TestPackagesPrintNothing(t *testing.T) {
	check(t, forbid("packages return, or log to the slog.Logger they were handed; the command prints", false,
		"fmt.Print", "fmt.Printf", "fmt.Println", "log.*", "os.Stdout", "os.Stderr", "os.Stdin", "os.Args", "flag.*"),
		reasons{"internal/store/pebblestore/fatal.go newFailure": "the last words before the process ends"},
		plant{"internal/mail/p.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println() }", "fmt.Println"},
		plant{"internal/mail/p.go", "package p\nimport \"log\"\nfunc f() { log.Printf(\"\") }", "log.Printf"})
}

func TestTheProcessEndsInMain(t *testing.T) {
	check(t, forbid("return an error; main decides", false, "os.Exit", "log.Fatal", "runtime.Goexit", "syscall.Exit",
		"syscall.Kill"),
		reasons{"internal/server/automation.go execute": "it ends a command that takes too long, with its children",
			"internal/store/pebblestore/fatal.go newFailure": "after a failed fsync nothing may be answered any more: " +
				"docs/internals/store.md"},
		plant{"internal/billing/p.go", "package p\nimport \"os\"\nfunc f() { os.Exit(1) }", "os.Exit"})
}

func TestSettingsComeInThroughTheCommand(t *testing.T) {
	check(t, forbid("the command reads the environment and hands in what it means", false, "os.Getenv", "os.LookupEnv",
		"os.Environ", "os.Setenv"), nil,
		plant{"internal/billing/p.go", "package p\nimport \"os\"\nvar x = os.Getenv(\"HOME\")", "os.Getenv"})
}

// soakVariables: the length of a long programme is read in one place, for tests too.
func soakVariables(s *source, p *pkg) (found []violation) {
	read := []string{"CHECK", "SOAK", "SEED"}
	for _, f := range p.files {
		if p.dir == "internal/test/soaktest" || p.dir == "internal/test/archtest" {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok &&
				slices.ContainsFunc(read, func(name string) bool { return strings.HasPrefix(l.Value, `"DUESDAY_`+name) }) {
				if name, err := strconv.Unquote(l.Value); err == nil && !strings.ContainsAny(name, " =%") {
					found = append(found, s.at(f, l.Pos(), "%s is read by soaktest", name))
				}
			}
			return true
		})
	}
	return found
}

func TestSoakVariablesAreReadOnce(t *testing.T) {
	check(t, soakVariables, nil,
		plant{"internal/mail/p_test.go", "package p\nimport \"os\"\nvar x = os.Getenv(\"DUESDAY_SEED\")",
			"DUESDAY_SEED is read by soaktest"},
		plant{"internal/mail/p.go", "package p\nvar x = \"DUESDAY_SOAK\"", "DUESDAY_SOAK is read by soaktest"})
}

func TestEveryCommitIsSynced(t *testing.T) {
	unsynced := func(s *source, p *pkg) []violation {
		found := forbid("what is acknowledged is on disk", true, "github.com/cockroachdb/pebble/v2.NoSync")(s, p)
		for _, f := range p.sources() {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "DisableWAL" {
					found = append(found, s.at(f, id.Pos(), "DisableWAL: what is acknowledged is on disk"))
				}
				return true
			})
		}
		return found
	}
	check(t, unsynced,
		reasons{"cmd/duesday-bench/bench/bare.go Load": "the bare baseline makes its whole import durable by one sync at " +
			"the end"},
		plant{"internal/store/pebblestore/p.go",
			"package p\nimport \"github.com/cockroachdb/pebble/v2\"\nvar o = pebble.NoSync", "NoSync"},
		plant{"internal/store/pebblestore/p.go", "package p\nvar o = options{DisableWAL: true}", "DisableWAL"})
}

// panics end the process with a day's work in it. A Must… function may, since only
// constants are handed to it; so may a line that says why it cannot be reached.
func panics(s *source, p *pkg) (found []violation) {
	for _, f := range p.sources() {
		lines := strings.Split(f.text, "\n")
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Must") {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				id, ok := call.Fun.(*ast.Ident)
				if _, builtin := p.info.Uses[id].(*types.Builtin); !ok || !builtin ||
					(id.Name != "panic" && id.Name != "print" && id.Name != "println") {
					return true
				}
				if line := lines[s.fset.Position(call.Pos()).Line-1]; !strings.Contains(line, "// unreachable: ") {
					found = append(found, s.at(f, call.Pos(), "%s: return an error, or say \"// unreachable: why\" on that line",
						id.Name))
				}
				return true
			})
		}
	}
	return found
}

func TestPanicsAreUnreachable(t *testing.T) {
	check(t, panics, nil,
		plant{"internal/money/p.go", "package p\nfunc f() { panic(1) }", "panic: return an error"},
		plant{"internal/money/p.go", "package p\nfunc f() { println(1) }", "println: return an error"})
}

// floats cannot hold money.
func floats(s *source, p *pkg) (found []violation) {
	if !slices.Contains([]string{"internal/money", "internal/billing", "internal/billing/engine", "internal/billing/audit",
		"internal/billing/refund", "internal/billing/adoption", "internal/billing/proof", "internal/book", "internal/civil"}, p.dir) {
		return nil
	}
	for _, f := range p.sources() {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (id.Name == "float64" || id.Name == "float32" || id.Name == "ParseFloat") {
				found = append(found, s.at(f, id.Pos(), "%s: money is int64 minor units", id.Name))
			}
			return true
		})
	}
	return found
}

func TestMoneyIsWhole(t *testing.T) {
	check(t, floats, nil, plant{"internal/billing/p.go", "package p\ntype amount float64", "float64: money is"})
}

// skips without a reason hide what was not tested.
func skips(s *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) == 0 &&
				(sel.Sel.Name == "Skip" || sel.Sel.Name == "SkipNow") {
				found = append(found, s.at(f, call.Pos(), "%s without a message: say what is not tested and why", sel.Sel.Name))
			}
			return true
		})
	}
	return found
}

func TestSkipsSayWhy(t *testing.T) {
	check(t, skips, nil, plant{"internal/money/p_test.go", "package p\nfunc f(t *T) { t.SkipNow() }",
		"SkipNow without a message"})
}
