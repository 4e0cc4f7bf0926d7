package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

const (
	UnpaidPrefix = "UNPAID#" // begins the partition keys of the items

	unpaidDays  = 30   // for which a period is kept after the run
	unpaidBatch = 40   // items in a commit
	longest     = 1000 // bytes of a place: a sort key has 1,024

	// unpaidMost is the number of periods that a run lists. Nobody reads more, and an outage of the processor leaves
	// every period unpaid.
	unpaidMost = 10_000
)

// An Unpaid is a period that a payment run has not charged: the item UNPAID#<run's ID>/<account>/<subscription>#<period>.
// The run's counts are in its own record.
type Unpaid struct {
	billing.Name
	SKU     string // what the period is for
	Number  int
	Outcome billing.Outcome // never paid
	Due     civil.Date
	Retry   civil.Date // of the next attempt; zero: none is planned
	Amount  money.Amount
	Reason  string
}

func unpaidOf(r engine.Result) *Unpaid {
	return &Unpaid{Name: r.Name, SKU: r.SKU, Number: r.Period, Outcome: r.Outcome, Due: r.Due, Retry: r.Retry, Amount: r.Amount, Reason: r.Reason}
}

// Place is the period's place in the run's list.
func (p *Unpaid) Place() string { return fmt.Sprintf("%s#%06d", p.Name, p.Number) }

// IsUnpaid reports whether the item is such a period.
func IsUnpaid(it store.Item) bool { return strings.HasPrefix(it.Str(schema.PK), UnpaidPrefix) }

// recordUnpaid writes the periods of a run that began at the time, and leaves in all what a later call can still write. A
// repeated call replaces what is written.
func recordUnpaid(ctx context.Context, e *billing.Records, run string, began time.Time, all map[string]*Unpaid) (wrong error) {
	for places := range slices.Chunk(slices.Sorted(maps.Keys(all)), unpaidBatch) {
		var writes []store.Write
		for _, place := range places {
			writes = append(writes, store.Put(e.Table, all[place].item(run, began)))
		}
		step := "recording what run " + run + " has not charged"
		err := store.Retry(ctx, step, func() error { return e.Store.Commit(ctx, writes...) })
		if err != nil {
			wrong = fmt.Errorf("%s: %w", step, err)
		}
		if errors.Is(err, store.ErrThrottled) || errors.Is(err, store.ErrUnknown) {
			return wrong
		}
		for _, place := range places {
			delete(all, place)
		}
	}
	return wrong
}

func (p *Unpaid) item(run string, began time.Time) store.Item {
	it := billing.ItemAt(store.Key{PK: UnpaidPrefix + run, SK: p.Place()},
		store.Attribute{Name: schema.Account, Value: store.S(p.Account)},
		store.Attribute{Name: schema.Period, Value: store.Int(int64(p.Number))},
		store.Attribute{Name: schema.SKU, Value: store.S(p.SKU)},
		store.Attribute{Name: schema.State, Value: store.S(string(p.Outcome))},
		store.Attribute{Name: schema.Subscription, Value: store.S(p.ID)},
		store.Attribute{Name: schema.TTL, Value: store.Int(began.AddDate(0, 0, unpaidDays).Unix())})
	for name, text := range map[string]string{schema.DueDate: date(p.Due), schema.RetryDate: date(p.Retry), schema.Reason: secret.Short(p.Reason)} {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	if p.Amount.Currency() != (money.Currency{}) {
		it.Set(schema.Amount, store.S(p.Amount.Decimal()))
		it.Set(schema.Currency, store.S(p.Amount.Currency().Code()))
	}
	return it
}

func date(d civil.Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// decodeUnpaid reads an item. What is illegible stays zero: a list is for people.
func decodeUnpaid(it store.Item) (*Unpaid, error) {
	p := &Unpaid{Name: billing.Name{Account: it.Str(schema.Account), ID: it.Str(schema.Subscription)}, SKU: it.Str(schema.SKU),
		Number: int(it.Int(schema.Period)), Outcome: billing.Outcome(it.Str(schema.State)), Reason: it.Str(schema.Reason)}
	p.Due, _ = civil.Parse(it.Str(schema.DueDate))
	p.Retry, _ = civil.Parse(it.Str(schema.RetryDate))
	if c, err := money.ParseCurrency(it.Str(schema.Currency)); err == nil {
		p.Amount, _ = money.Parse(it.Str(schema.Amount), c)
	}
	return p, nil
}

// ListUnpaid yields what the run has left unpaid, by account and subscription, after a place; "" is the beginning.
// A run of an older Duesday has nothing.
func ListUnpaid(ctx context.Context, e *billing.Records, run, after string) iter.Seq2[*Unpaid, error] {
	q := store.Query{Table: e.Table, Partition: UnpaidPrefix + run, From: after}
	return sequence.Filter(sequence.Map(e.Store.Query(ctx, q), decodeUnpaid), func(p *Unpaid) bool { return cmp.Compare(p.Place(), after) > 0 })
}
