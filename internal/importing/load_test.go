package importing_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/importing"
)

// TestLoad checks that Load writes what Check decided, and writes nothing the second time.
func TestLoad(t *testing.T) {
	var rows []string
	for i := range 1234 { // more than one batch for one account, and several batches for others
		account := min(i, 130)
		rows = append(rows, with("account", fmt.Sprint(account), "subscription", fmt.Sprint(i), "email", fmt.Sprintf("%d@example.com", account)))
	}
	e, dir := newEngine(), t.TempDir()
	for i, sum := range []importing.Summary{{Rows: 1234, Created: 1234}, {Rows: 1234, Existing: 1234}} {
		if o, err := run(dir, book1(rows...), e, nil); err != nil || o.Sum != sum {
			t.Fatalf("import %d: %+v, %v; must be %+v", i+1, o.Sum, err, sum)
		}
	}
	changed := strings.ReplaceAll(rows[7], "9.00", "7.00")
	added := with("account", "0", "subscription", "new", "email", "new@example.com")
	o, err := run(dir, book1(changed, added), e, func(m *importing.Import) { m.Update = true })
	if sum := (importing.Summary{Rows: 2, Created: 1, Updated: 2}); err != nil || o.Sum != sum {
		t.Errorf("%+v, %v; must be %+v", o.Sum, err, sum)
	}
	sub, err := e.Subscription(context.Background(), billing.Name{Account: "7", ID: "7"})
	a, err2 := e.Account(context.Background(), "0")
	if err != nil || err2 != nil || sub.Amount.Decimal() != "7.00" || a.Email != "new@example.com" {
		t.Errorf("after the update: %+v %v, %+v %v", sub, err, a, err2)
	}
}

// TestLoad_Failing checks that the error contains the number of imported subscriptions, and that a
// second import continues.
func TestLoad_Failing(t *testing.T) {
	e, dir := newEngine(), t.TempDir()
	o := must(check(dir, book1(good), e, nil))
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if err := o.Load(stopped, e); err == nil || !strings.Contains(err.Error(), "before it, 0 subscriptions were imported: import the file again") {
		t.Error(err)
	}
	if o, err := run(dir, book1(good), e, nil); err != nil || o.Sum.Created != 1 {
		t.Errorf("the repetition: %+v, %v", o.Sum, err)
	}
}

// TestLoad_GrownFile checks that Load does not write rows that Check has not seen.
func TestLoad_GrownFile(t *testing.T) {
	e, dir := newEngine(), t.TempDir()
	o := must(check(dir, book1(good), e, nil))
	err := os.WriteFile(o.File, []byte(book1(good, with("account", "2"))), 0o600)
	if err == nil {
		err = o.Load(context.Background(), e)
	}
	_, missing := e.Account(context.Background(), "2")
	if err != nil || o.Sum.Rows != 1 || billing.IgnoreNotFound(missing) != nil || missing == nil {
		t.Errorf("%+v, %v; account 2: %v", o.Sum, err, missing)
	}
}
