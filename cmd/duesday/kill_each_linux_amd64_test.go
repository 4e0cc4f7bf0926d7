package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// A tracedPlace is a folder with stores for one kill.
type tracedPlace struct {
	t   *testing.T
	dir string
	at  string // of the kill, for messages
}

func (p *tracedPlace) path(name string) string { return filepath.Join(p.dir, name) }

func (p *tracedPlace) command(line string) *exec.Cmd {
	words := strings.Fields(strings.ReplaceAll(line, "@", p.dir+"/"))
	if !strings.Contains(line, "--store") {
		words = append(words, "--store", "pebble:"+p.path("store"))
	}
	ledger := p.path("ledger.jsonl")
	if strings.Contains(line, "older/") {
		ledger = p.path("older/ledger.jsonl")
	}
	c := process(p.t, []string{"DUESDAY_CLOCK=2026-11-23T10:00:00Z"}, append(words, "--processor", "sandbox:"+ledger, "--mail",
		p.path("mail"))...)
	c.Stderr = nil
	return c
}

// run runs the command to its end, and returns its exit code and what it said.
func (p *tracedPlace) run(line string) (code int, said string) {
	c := p.command(line)
	out, _ := c.CombinedOutput()
	return c.ProcessState.ExitCode(), string(out)
}

// must is run of a command that has to work.
func (p *tracedPlace) must(line string, says ...string) {
	p.t.Helper()
	code, said := p.run(line)
	for _, text := range says {
		if !strings.Contains(said, text) {
			code = -1
		}
	}
	if code != exitDone {
		p.t.Errorf("%s: duesday %s: exit %d, want %q\n%s", p.at, line, code, says, said)
	}
}

// refuses holds that the command fails, and says why.
func (p *tracedPlace) refuses(line, says string) {
	p.t.Helper()
	if code, said := p.run(line); code != exitFailed || !strings.Contains(said, says) {
		p.t.Errorf("%s: duesday %s: exit %d, want %q\n%s", p.at, line, code, says, said)
	}
}

func (p *tracedPlace) has(name string) bool {
	_, err := os.Stat(p.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Error(err)
	}
	return err == nil
}

// clean holds that the store opens, and has all that it had.
func (p *tracedPlace) clean(name string) {
	p.t.Helper()
	p.must("verify --store pebble:@"+name, "The audit is clean", "subscriptions  60")
}

// backed holds that the folder is a whole backup, or refused as one wherever it is unfinished; and
// that a backup can be made there.
func (p *tracedPlace) backed() {
	p.t.Helper()
	p.clean("store")
	for _, half := range []string{"backup", "backup.unfinished", "backup.unfinished/store"} {
		if p.has(half) && !p.has(half+"/BACKUP.json") {
			p.refuses("store restore --store pebble:@half --from @"+half, "not a finished backup")
		}
	}
	if !p.has("backup") {
		p.must("store backup --to @backup")
	}
	p.must("store restore --store pebble:@restored --from @backup")
	p.clean("restored")
	p.clean("store")
}

// restored holds that the store is whole, or named as being restored; and that it can be restored.
func (p *tracedPlace) restored(name string) {
	p.t.Helper()
	switch {
	case p.has(name):
		p.clean(name)
	case p.has(name + ".restoring"):
		p.refuses("verify --store pebble:@"+name, "a restore to it is running or was interrupted; run it again: ")
		p.refuses("store create --store pebble:@"+name, "a restore to it is running or was interrupted; run it again: ")
	case name == "store":
		p.t.Errorf("%s: nothing tells where the store is", p.at)
	default:
		p.refuses("verify --store pebble:@"+name, "there is no store at")
	}
	p.must("store restore --replace --store pebble:@" + name + " --from @backup")
	p.clean(name)
	aside, err := filepath.Glob(p.path(name + ".before-restore-*"))
	if err != nil {
		p.t.Error(err)
	}
	for _, dir := range aside {
		p.clean(filepath.Base(dir))
	}
	if p.has(name + ".restoring") {
		p.t.Errorf("%s: the leftovers of the restore are there", p.at)
	}
}

// eachKill are the commands that are killed before each of their changes of a file, with what must
// hold after it.
var eachKill = []struct {
	name, line string
	holds      func(p *tracedPlace)
}{
	{"open", "subscription list", func(p *tracedPlace) { p.clean("store") }},
	{"upgrade", "verify --store pebble:@older/store", func(p *tracedPlace) {
		p.must("verify --store pebble:@older/store", "The audit is clean", "subscriptions  60")
	}},
	{"backup", "store backup --to @backup", (*tracedPlace).backed},
	{"restore", "store restore --from @backup --store pebble:@new", func(p *tracedPlace) { p.restored("new") }},
	{"replace", "store restore --replace --from @backup", func(p *tracedPlace) {
		p.restored("store")
		if aside, _ := filepath.Glob(p.path("store.before-restore-*")); len(aside) == 0 {
			p.t.Errorf("%s: the replaced store is not kept", p.at)
		}
	}},
}

// TestKillEachChange kills the real binary before the system calls by which it changes files, while it
// opens a store that was killed before, upgrades one, backs it up and restores it. Nothing is refused
// that should not be, and nothing is lost. DUESDAY_SOAK=1 plays each call, and those that make, remove and
// rename files once more, because the number of the others before them varies.
func TestKillEachChange(t *testing.T) {
	programme := soaktest.Start(t)
	t.Parallel()
	base := &tracedPlace{t: t, dir: t.TempDir(), at: "the book"}
	base.book()
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 27))
	strides := []int{12, 100}
	if soaktest.On() {
		strides = []int{1, 1}
	}
	for _, each := range eachKill {
		t.Run(each.name, func(t *testing.T) {
			kills := 0
			for i, stride := range strides {
				class := []string{"names:", ""}[i]
				made, n := 0, 1+random.IntN(stride)
				for hit := true; hit && !t.Failed() && programme.Next(); n += stride {
					at := class + fmt.Sprint(n)
					p := base.copied(t, fmt.Sprintf("%s killed before change %s", each.name, at))
					if each.name == "backup" {
						p.remove("backup")
					}
					if made, hit = killAt(t, at, p.command(each.line)); hit {
						kills++
					}
					each.holds(p)
					p.remove("")
				}
				t.Logf("%d kills so far; of some %d changes %s", kills, made, class)
			}
			if kills == 0 && programme.Whole() {
				t.Error("no kill")
			}
		})
	}
}

// book makes a store that was killed in its first payment run, a store of an older build, and a backup.
func (p *tracedPlace) book() {
	p.t.Helper()
	var csv bytes.Buffer
	csv.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date\n")
	for i := range 60 {
		fmt.Fprintf(&csv, "a%d,a%[1]d@example.com,s,gold,9.99,USD,22,pm_card_visa,2026-11-22\n", i)
	}
	if err := errors.Join(os.WriteFile(p.path("book.csv"), csv.Bytes(), 0o600), os.Mkdir(p.path("older"), 0o700)); err != nil {
		p.t.Fatal(err)
	}
	unpackTo(p.t, "testdata/older/020c1b9.tar.gz", p.path("older"))
	p.must("import @book.csv")
	if _, hit := killAt(p.t, "150", p.command("run payments")); !hit {
		p.t.Fatal("the run was not killed")
	}
	whole := p.copied(p.t, "whole")
	whole.must("store backup --to @backup")
	if err := os.Rename(whole.path("backup"), p.path("backup")); err != nil {
		p.t.Fatal(err)
	}
}

// copied returns a copy of the place, for one kill.
func (p *tracedPlace) copied(t *testing.T, at string) *tracedPlace {
	t.Helper()
	c := &tracedPlace{t: t, dir: p.path(strings.ReplaceAll(at, " ", "-")), at: at}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"store", "older", "ledger.jsonl", "backup"} {
		if !p.has(what) {
			continue // the backup is still to be made
		}
		if out, err := exec.Command("cp", "-a", p.path(what), c.path(what)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return c
}

func (p *tracedPlace) remove(name string) {
	p.t.Helper()
	if err := os.RemoveAll(p.path(name)); err != nil {
		p.t.Error(err)
	}
}
