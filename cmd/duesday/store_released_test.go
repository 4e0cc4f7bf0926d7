package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

const releasedStores = "testdata/stores"

// releasedClock is when a released version made its store. The store was then used until releasedDay.
const (
	releasedClock = "2026-03-15 10:30:00"
	releasedDay   = "2026-05-15"
)

// releasedRecords are what a version exported from its store.
var releasedRecords = []string{"accounts", "subscriptions", "receipts", "periods", "refunds"}

// TestReleasedStores: a store that each released version made, in the middle of its work, is opened, charged
// and audited by this version. With -update, a version that the changelog dates gets its store: run it with the
// code that is tagged, once.
func TestReleasedStores(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	released := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$`).FindAllStringSubmatch(string(changes), -1)
	for _, version := range released {
		for _, kind := range []struct {
			name          string
			make, upgrade func(*testing.T, string)
		}{{"", makeReleasedStore, upgradeReleasedStore}, {"-takeovers", makeReleasedTakeovers, upgradeReleasedTakeovers}} {
			name := version[1] + kind.name
			file := filepath.Join(releasedStores, "v"+name+".tar.gz")
			if _, err := os.Stat(file); *update && errors.Is(err, os.ErrNotExist) {
				t.Run("make", func(t *testing.T) { t.Run(name, func(t *testing.T) { kind.make(t, file) }) }) // it may be parallel
			}
			t.Run(name, func(t *testing.T) { kind.upgrade(t, file) })
		}
	}
	if files, err := filepath.Glob(releasedStores + "/*"); err != nil || len(files) != 2*len(released) || len(files) == 0 {
		t.Errorf("%d stores and %d released versions, %v", len(files), len(released), err)
	}
}

func upgradeReleasedStore(t *testing.T, file string) {
	c := newCLI(t)
	unpackTo(t, file, c.dir)
	c.at(releasedDay)
	c.must("store", "check")
	c.must("verify")
	for _, records := range releasedRecords {
		old, err := os.ReadFile(c.path(records + ".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if missing := absent(t, string(old), c.exported(records)); missing != "" || len(old) == 0 {
			t.Errorf("%s that differ now, of %d bytes:\n%s", records, len(old), missing)
		}
	}
	if r := c.must("outbox", "list"); !strings.HasPrefix(r, "6 due") {
		t.Errorf("other mail waits: %s", r)
	}
	for _, day := range []string{"2026-05-31", "2026-06-30", "2026-07-31"} {
		c.at(day)
		for _, kind := range []string{"reminders", "payments"} {
			if r := c.run("run", kind); r.code != exitDone && r.code != exitPerson { // a declined one needs a person
				t.Fatalf("%d %s%s", r.code, r.out, r.errors)
			}
		}
		c.must("verify")
	}
	now, old := c.exported("receipts"), ""
	if text, err := os.ReadFile(c.path("receipts.jsonl")); err != nil {
		t.Fatal(err)
	} else if old = string(text); absent(t, old, now) != "" {
		t.Errorf("receipts that changed in three months:\n%s", absent(t, old, now))
	}
	const ( // of 0/1, 0/2, 1/1, 2/1, 4/1 and 6/1; since then, 4/1 is paused and 6/1 parked
		then  = 2 + 3 + 2 + 3 + 3 + 1
		since = 3 + 2 + 2 + 2
	)
	if got := strings.Count(old, "\n"); got != then {
		t.Errorf("%d receipts then, want %d", got, then)
	}
	if got := strings.Count(now, "\n"); got != then+since {
		t.Errorf("%d receipts, want %d:\n%s", got, then+since, now)
	}
}

// exported returns the store's records as JSON lines, also those of subscriptions that have ended.
func (c *cli) exported(records string) string {
	c.t.Helper()
	args := []string{"export", records, "--format", "jsonl"}
	if records == "subscriptions" {
		args = append(args, "--all")
	}
	return c.must(args...)
}

// absent returns the lines of old without a line in now that has all their members.
func absent(t *testing.T, old, now string) string {
	t.Helper()
	var missing strings.Builder
	for line := range strings.Lines(old) {
		was, found := decode(t, line).(map[string]any), false
		for other := range strings.Lines(now) {
			is, same := decode(t, other).(map[string]any), true
			for name, value := range was {
				same = same && reflect.DeepEqual(value, is[name])
			}
			found = found || same
		}
		if !found {
			missing.WriteString(line)
		}
	}
	return missing.String()
}

// makeReleasedStore makes a store with paid, declined, waiting, parked and refunded periods, and with mail that
// waits, and packs it with what it exports.
func makeReleasedStore(t *testing.T, file string) {
	c := newFolder(t)
	write := func(args string) { c.must(strings.Fields(args)...) }
	now, err := time.Parse(time.DateTime, releasedClock)
	if err != nil {
		t.Fatal(err)
	}
	c.clock.Set(now)
	write("store create")
	write("settings set receipt-prefix=R seller=Gym catch-up=1")
	for i, card := range []string{"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclinedInsufficientFunds", "pm_card_visa",
		"pm_card_authenticationRequired"} {
		write(fmt.Sprintf("account create %d --email a%[1]d@example.com", i))
		write(fmt.Sprintf("account attach %d --payment-method %s", i, card))
	}
	write("subscription create 0/1 --sku gym --amount 9.99 --currency EUR --payment-day 31")
	write("subscription create 0/2 --sku gym --amount 1200 --currency JPY --payment-day 15 --quantity 3 --discount 10% --discount-periods 2")
	write("subscription create 1/1 --sku gym --amount 5.00 --currency USD --payment-day 1")
	write("subscription create 2/1 --sku gym --amount 12.340 --currency KWD --payment-day 15")
	write("subscription create 4/1 --sku gym --amount 9.99 --currency USD --payment-day 15")
	for ; now.Format(time.DateOnly) < releasedDay; now = now.AddDate(0, 0, 1) {
		c.clock.Set(now)
		c.run("run", "reminders")
		c.run("run", "payments")
	}
	write("subscription create 3/1 --sku gym --amount 9.99 --currency USD --payment-day 15") // is retried
	write("subscription create 5/1 --sku gym --amount 9.99 --currency USD --payment-day 15") // waits for its customer
	overdue := "account,email,subscription,sku,amount,currency,payment_day,next_payment_date,payment_method\n" +
		"6,a6@example.com,1,gym,9.99,USD,15,2026-02-15,pm_card_visa\n" // is parked after one period
	if err := os.WriteFile(c.path("overdue.csv"), []byte(overdue), 0o600); err != nil {
		t.Fatal(err)
	}
	write("import overdue.csv --overdue charge")
	write("receipt refund 0/2 --period 0")
	c.clock.Set(now)
	c.run("run", "reminders")
	c.run("run", "payments", "--smtp", "smtp://127.0.0.1:9") // its mail waits, because it has no sender
	c.run("subscription", "pause", "4/1", "--smtp", "smtp://127.0.0.1:9")
	for _, records := range releasedRecords {
		if err := os.WriteFile(c.path(records+".jsonl"), []byte(c.exported(records)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packFrom(t, c.dir, file)
}

// packFrom makes an archive that unpackTo reads.
func packFrom(t *testing.T, folder, archive string) {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	if err := errors.Join(os.MkdirAll(filepath.Dir(archive), 0o755), w.AddFS(os.DirFS(folder)), w.Close(), z.Close(),
		os.WriteFile(archive, packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}
