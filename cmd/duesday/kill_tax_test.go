package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A taxedBook is a store of many subscriptions with a rate of 7 %. Each tenth has an open period, which is paid the
// day after.
type taxedBook struct {
	*testing.T
	dir  string
	many int
}

// TestKillTaxChange kills a change of the rate of many subscriptions with SIGKILL, again and again, and repeats it
// until it ends. Each repetition counts what is changed already. No subscription is changed twice, open periods keep
// their tax, and the next ones have the new rate. DUESDAY_SOAK=1 has 5,000 subscriptions in each of four stores.
func TestKillTaxChange(t *testing.T) {
	programme := soaktest.Start(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 30))
	halfway := 0
	for range soaktest.Cases(t, 0, 1, 4) {
		if !programme.Next() {
			break
		}
		b := taxedBook{t, t.TempDir(), soaktest.Cases(t, 0, soaktest.Share(1000, 3000), 5000)}
		b.create()
		halfway += b.change(random)
		b.checkHistory()
		b.checkReceipts()
	}
	if halfway == 0 {
		t.Error("no change was killed halfway: the book is too small")
	}
	t.Logf("%d changes were killed halfway", halfway)
}

func (b *taxedBook) command(args ...string) *exec.Cmd {
	c := process(b.T, nil, append(args, "--store", "pebble:"+filepath.Join(b.dir, "store"), "--processor",
		"sandbox:"+filepath.Join(b.dir, "ledger.jsonl"), "--mail", filepath.Join(b.dir, "mail"))...)
	c.Stderr = new(bytes.Buffer)
	return c
}

// object runs a command to its end, and returns the JSON that it prints.
func (b *taxedBook) object(args ...string) (o map[string]any) {
	b.Helper()
	c := b.command(append(args, "--json")...)
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &o)
	}
	if err != nil {
		b.Fatalf("%v: %v\n%s%s", args, err, c.Stderr, out)
	}
	return o
}

// opens reports whether the subscription's first period is open when the rates change.
func opens(i int) bool { return i%10 == 0 }

func (b *taxedBook) create() {
	b.Helper()
	var csv strings.Builder
	csv.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date,tax_rate,tax\n")
	for i := range b.many {
		due, method := time.Now().UTC().AddDate(0, 0, 5), "pm_card_visa"
		if opens(i) {
			due, method = time.Now().UTC(), "pm_sandbox_flaky"
		}
		fmt.Fprintf(&csv, "a%d,a%d@example.com,s,gold,10.70,EUR,%d,%s,%s,7,inclusive\n", i, i, due.Day(), method, due.Format(time.DateOnly))
	}
	file := filepath.Join(b.dir, "book.csv")
	if err := os.WriteFile(file, []byte(csv.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	mustRun(b.T, b.command("store", "create"))
	mustRun(b.T, b.command("settings", "set", "tax=on", "receipt-months=120"))
	mustRun(b.T, b.command("import", file))
	mustRun(b.T, b.command("run", "payments"))
}

// change changes the rate under kills, and returns how many hit it between its first change and its last.
func (b *taxedBook) change(random *rand.Rand) (halfway int) {
	b.Helper()
	args := []string{"subscription", "update", "--where", "tax-rate=7", "--tax-rate", "19"}
	const rowBytes = 300 // of a changed subscription in the store's log, at least
	for done := 0; ; {
		hit := killed(b.T, b.command(append(args, "--yes")...), b.logged(random.Int64N(int64(rowBytes*b.many/2))))
		o := b.object(args...)
		already, left := int(o["already"].(float64)), int(o["to_change"].(float64))
		if already+left != b.many || already < done {
			b.Fatalf("of %d subscriptions, %d are changed and %d are not, after %d", b.many, already, left, done)
		}
		if hit && already > done && left > 0 {
			halfway++
		}
		if done = already; done > b.many*3/4 || !hit {
			break
		}
	}
	last := b.object(append(args, "--yes")...)
	if last["already"].(float64)+last["changed"].(float64) != float64(b.many) {
		b.Errorf("the last command: %v", members(last, "already", "changed", "left"))
	}
	equal(b.T, "again", members(b.object(append(args, "--yes")...), "to_change", "changed", "already"), []any{0, 0, b.many})
	return halfway
}

// logged reports whether the logs in the store's folder have so many bytes more than at the call of logged.
func (b *taxedBook) logged(bytes int64) func() bool {
	size := func() (sum int64) {
		_ = filepath.WalkDir(filepath.Join(b.dir, "store"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".log" {
				if info, err := d.Info(); err == nil {
					sum += info.Size()
				}
			}
			return nil
		})
		return sum
	}
	before := size()
	return func() bool { return size() >= before+bytes }
}

// checkHistory holds that each subscription has one change of its rate.
func (b *taxedBook) checkHistory() {
	b.Helper()
	p := newProgram(func(string) string { return "" }, nil, nil, nil, time.Now)
	p.Config = config.Config{Store: "pebble:" + filepath.Join(b.dir, "store")}
	err := p.With(b.Context(), session.Need{Read: true}, func(s *session.Session) error {
		for i := range b.many {
			n := 0
			for e, err := range history.Of(b.Context(), s.Engine.Records, fmt.Sprint("a", i), "s", "") {
				if err != nil {
					return err
				}
				if slices.ContainsFunc(e.Changes, func(c history.Change) bool { return strings.HasPrefix(c.Name, "tax") }) {
					n++
				}
			}
			if n != 1 {
				b.Errorf("the tax of a%d/s was changed %d times", i, n)
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// checkReceipts lets the next periods be paid, and holds their receipts against the rates.
func (b *taxedBook) checkReceipts() {
	b.Helper()
	for _, days := range []int{1, 5, 32, 33} { // a flaky method pays on the day after each due date
		mustRun(b.T, b.command("run", "payments", "--date", time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly), "--ahead"))
	}
	mustRun(b.T, b.command("verify"))
	file, rates := filepath.Join(b.dir, "receipts.jsonl"), map[string]string{}
	mustRun(b.T, b.command("export", "receipts", "--format", "jsonl", "--out", file))
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r map[string]any
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			b.Fatal(err)
		}
		rates[fmt.Sprint(r["account"], " ", r["period"])] = fmt.Sprint(r["tax_rate"], " ", r["net"], " ", r["tax"])
	}
	before, after := "7 10.00 0.70", "19 8.99 1.71"
	for i := range b.many {
		first, second := fmt.Sprintf("a%d 0", i), fmt.Sprintf("a%d 1", i)
		switch {
		case opens(i) && (rates[first] != before || rates[second] != after):
			b.Errorf("a%d had an open period: its receipts are %q, %q", i, rates[first], rates[second])
		case !opens(i) && rates[first] != after:
			b.Errorf("a%d: its receipt is %q", i, rates[first])
		}
	}
}
