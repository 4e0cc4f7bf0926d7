// Package outlook stores a book's recurring revenue and expected charges once a day, so that no request has to
// read every subscription.
//
// The pass follows the day's payment run. It reads the table from end to end. Unless it is alone on the store, it
// rests between its pages. The item OUTLOOK/<month> has the result of the month's last pass.
//
// It does not decide what is revenue or which charges are expected: packages report and engine do.
package outlook

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Days is the number of days of expected charges, the day of the pass the first.
const Days = 30

const (
	partition = "OUTLOOK"

	page = 4096                   // items from one rest to the next
	rest = 250 * time.Millisecond // so at most 16,000 items a second

	kind billing.Kind = "outlook" // of the claim and the lease

	// The members of the item's Counts.
	subscriptions = "subscriptions"
	unreadable    = "unreadable"
)

// An Outlook is the result of one pass.
type Outlook struct {
	AsOf          time.Time
	Zone          string            // of its day and month: the setting
	Recurring     []money.Amount    // a month, by currency
	Expected      []report.Expected // by date, then by currency
	Subscriptions int
	Unreadable    int // subscriptions left out: another tool has made their items unreadable
}

// Month returns the month of the pass, such as "2026-11".
func (o *Outlook) Month() string { return o.day().String()[:len("2026-11")] }

// day returns the day of the pass.
func (o *Outlook) day() civil.Date {
	zone, err := civil.Zone(o.Zone)
	if err != nil { // of another machine's list of zones
		zone = time.UTC
	}
	return civil.Today(o.AsOf, zone)
}

// Latest returns the outlooks of up to so many months, the latest first.
func Latest(ctx context.Context, e *billing.Records, months int) (list []*Outlook, err error) {
	for it, err := range e.Store.Query(ctx, store.Query{Table: e.Table, Partition: partition, Reverse: true, Limit: months}) {
		if err != nil {
			return nil, err
		}
		if o, err := decode(it); err != nil { // the next pass replaces the latest one
			e.Log.WarnContext(ctx, "an outlook cannot be read", "error", err)
		} else {
			list = append(list, o)
		}
	}
	return list, nil
}

// Refresh makes the day's pass if a payment run has completed since the last one, and no pass was made on this
// day. It reports whether it has stored a new outlook. If ctx ends, Refresh stores nothing, and the next call
// begins again. Another process that makes the pass is not an error. If alone is set, the pass does not rest.
func Refresh(ctx context.Context, e *engine.Engine, alone bool) (stored bool, err error) {
	now, err := settings.Read(ctx, e.Records)
	if err != nil {
		return false, err
	}
	o := &Outlook{AsOf: e.Now(), Zone: now.TimeZone}
	if due, err := isDue(ctx, e.Records, o); err != nil || !due {
		return false, err
	}
	held, release, err := e.Sharing.Exclusive(ctx, e.Records, &billing.Run{Kind: kind, ID: rand.Text(), Process: worker.ThisProcess()})
	if errors.As(err, new(*worker.BusyError)) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer release()
	if due, err := isDue(ctx, e.Records, o); err != nil || !due { // another process may have made it meanwhile
		return false, err
	}
	if e, err = e.Fresh(ctx); err != nil {
		return false, err
	}
	f := report.Forecast{Days: Days, Expect: at(e, o.AsOf).Expect}
	if whole, err := pass(ctx, e.Records, &f, held, alone); err != nil || !whole {
		return false, err
	}
	o.Expected, o.Subscriptions, o.Unreadable = f.Expected(), f.Subscriptions, f.Unreadable
	if o.Recurring, err = f.MRR(); err != nil {
		return false, err
	}
	fence := store.Check(e.Table, billing.MetaKey, store.AttributeAbsent(schema.Moved))
	err = e.Store.Commit(ctx, store.Put(e.Table, o.item()), fence)
	return err == nil, err
}

// at returns the engine at a time that stands still, so that a pass over midnight has one first day.
func at(e *engine.Engine, t time.Time) *engine.Engine {
	still, records := *e, *e.Records
	records.Now = func() time.Time { return t }
	still.Records = &records
	return &still
}

// isDue reports whether a pass at o's time is due.
func isDue(ctx context.Context, e *billing.Records, o *Outlook) (bool, error) {
	run, err := e.LastDailyRun(ctx, billing.Payments)
	if err != nil || run.Ended.IsZero() {
		return false, err
	}
	last, err := Latest(ctx, e, 1)
	if err != nil || len(last) == 0 {
		return err == nil, err
	}
	return last[0].AsOf.Before(run.Ended) && last[0].day() != o.day(), nil
}

// pass adds every subscription to the forecast. It reports whether it has read the whole table, and not lost it
// to another process.
func pass(ctx context.Context, e *billing.Records, f *report.Forecast, held func() bool, alone bool) (whole bool, err error) {
	read := 0
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
		if err != nil {
			return false, err
		}
		if read++; read%page == 0 {
			if !alone {
				err = clock.Wait(ctx, rest)
			}
			if err = cmp.Or(err, ctx.Err()); err != nil || !held() {
				return false, err
			}
		}
		if _, is := billing.NameOf(billing.KeyOf(it)); !is {
			continue
		}
		s, err := billing.DecodeSubscription(it)
		if err != nil {
			f.Unreadable++
			continue
		}
		if err := f.Add(ctx, s); err != nil {
			return false, err
		}
	}
	return held(), ctx.Err()
}

// item returns the outlook as it is stored.
func (o *Outlook) item() store.Item {
	var recurring, expected store.Item
	for _, a := range o.Recurring {
		recurring.Set(a.Currency().Code(), store.S(a.Decimal()))
	}
	for _, x := range o.Expected {
		expected.Set(x.Date.String()+"#"+x.Amount.Currency().Code(), store.S(x.Amount.Decimal()+" "+strconv.Itoa(x.Count)))
	}
	return billing.ItemAt(store.Key{PK: partition, SK: o.Month()}, store.Attribute{Name: schema.Amounts, Value: store.M(recurring)},
		store.Attribute{Name: schema.Data, Value: store.M(expected)}, store.Attribute{Name: schema.CreatedDate, Value: store.S(billing.Stamp(o.AsOf))},
		store.Attribute{Name: schema.TimeZone, Value: store.S(o.Zone)}, store.Attribute{Name: schema.Counts, Value: store.M(store.NewItem(
			store.Attribute{Name: subscriptions, Value: store.Int(int64(o.Subscriptions))},
			store.Attribute{Name: unreadable, Value: store.Int(int64(o.Unreadable))}))})
}

// decode reads a stored outlook. It returns a billing.ItemError if the item is damaged.
func decode(it store.Item) (*Outlook, error) {
	counts := it.Get(schema.Counts).Map()
	o := &Outlook{AsOf: billing.ParseStamp(it.Str(schema.CreatedDate)), Zone: it.Str(schema.TimeZone),
		Subscriptions: int(counts.Int(subscriptions)), Unreadable: int(counts.Int(unreadable))}
	var wrong error
	if o.AsOf.IsZero() {
		wrong = fmt.Errorf("%s is not a time", schema.CreatedDate)
	}
	for _, a := range it.Get(schema.Amounts).Map() {
		amount, err := parse(a.Value.Str(), a.Name)
		wrong = errors.Join(wrong, err)
		o.Recurring = append(o.Recurring, amount)
	}
	for _, a := range it.Get(schema.Data).Map() {
		day, currency, _ := strings.Cut(a.Name, "#")
		text, count, _ := strings.Cut(a.Value.Str(), " ")
		date, err := civil.Parse(day)
		amount, err2 := parse(text, currency)
		n, err3 := strconv.Atoi(count)
		wrong = errors.Join(wrong, err, err2, err3)
		o.Expected = append(o.Expected, report.Expected{Date: date, Amount: amount, Count: n})
	}
	if wrong != nil {
		return nil, &billing.ItemError{Key: billing.KeyOf(it), Err: wrong}
	}
	return o, nil
}

func parse(text, currency string) (money.Amount, error) {
	c, err := money.ParseCurrency(currency)
	if err != nil {
		return money.Amount{}, err
	}
	return money.Parse(text, c)
}
