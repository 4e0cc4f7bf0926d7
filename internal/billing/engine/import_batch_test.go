package engine_test

import (
	"strconv"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/bulk"
)

// TestCreate_OneAccount: the subscriptions of one account share its commits, also of an account
// that is in the store. Each commit raises the account's version by one.
func TestCreate_OneAccount(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	defer w.end()
	p := w.start()
	next := 0
	batch := func(n int) (list []billing.NewSubscription) {
		for range n {
			list = append(list, one("2024-02-15", func(n *billing.NewSubscription) { n.ID = strconv.Itoa(next) }))
			next++
		}
		return list
	}
	for i, most := range []int64{21, 21 + 49 + 20} {
		count, err := bulk.Create(t.Context(), p.Records, batch(1000))
		if err != nil || count.Created != 1000 {
			t.Fatalf("%+v, %v", count, err)
		}
		a, err := p.Account(t.Context(), "a1")
		if err != nil || a.Version > most {
			t.Errorf("batch %d: version %d, %v; want at most %d", i, a.Version, err, most)
		}
	}
	w.report(t)
}
