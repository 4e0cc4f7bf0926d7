package consumption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/recipient"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/metering"
)

// A world is the product over a store in memory that counts units. Mail goes nowhere, and the clock
// stands still within a day: the same book always consumes the same.
type world struct {
	meter  *metering.Meter
	tables schema.Tables
	engine *engine.Engine
	mail   *outbox.Outbox
	now    time.Time
}

// The items of the tables, as reports name them.
const (
	itemSubscription = "subscription"
	itemReceipt      = "receipt"
	itemMail         = "mail"
	itemAccount      = "account"
	itemLease        = "lease"
	itemRun          = "run"
	itemPeriod       = "period"
	itemSums         = "sums"
	itemLookup       = "lookup row"
	itemNumber       = "number"
	itemCounter      = "counter of numbers"
	itemRecord       = "record of a mail"
)

// kindOfItem names the item, or the partition of a query, at the key.
func (w *world) kindOfItem(table string, k store.Key) string {
	if table == w.tables.Outbox.Name {
		return itemMail
	}
	bySort, _, _ := strings.Cut(k.SK, "#")
	byPartition, _, _ := strings.Cut(k.PK, "#")
	switch {
	case k.SK == "" && byPartition == "ACC":
		return itemAccount
	case byPartition == "IDX":
		return itemLookup
	case numbering.IsNumber(k):
		return itemNumber
	case k == numbering.CounterKey:
		return itemCounter
	}
	return cmp.Or(
		map[string]string{"SUB": itemSubscription, "REC": itemReceipt, "ACC": itemAccount, "PER": itemPeriod}[bySort],
		map[string]string{"RUN": itemRun, "LEASE": itemLease, "SUM": itemSums, "MAIL": itemRecord}[byPartition], strings.ToLower(bySort), "due dates")
}

// firstDay is when the world begins: any day does.
func firstDay() time.Time { return time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC) }

func openWorld(ctx context.Context) (*world, error) {
	w := &world{tables: schema.New(schema.DefaultPrefix), now: firstDay()}
	clock := func() time.Time { return w.now }
	s, err := memstore.Open(w.tables.All(), clock)
	if err != nil {
		return nil, err
	}
	if w.meter, err = metering.NewMeter(s, metering.Options{Tables: w.tables.All(), TokenBytes: metering.TokenBytes,
		Name: w.kindOfItem}); err != nil {
		return nil, err
	}
	box, err := sandbox.Open("", sandbox.Options{Now: clock})
	if err != nil {
		return nil, err
	}
	if err := w.identify(ctx); err != nil {
		return nil, err
	}
	w.engine, err = engine.Open(ctx, engine.Options{Store: w.meter, Tables: w.tables, Processor: box, Now: clock,
		Config: engine.DefaultConfig(), Lease: engine.DefaultLease})
	if err != nil {
		return nil, err
	}
	w.mail = outbox.New(w.meter, w.tables.Outbox, clock, nowhere{}, (&recipient.Directory{Cards: w.engine.Cards()}).StillWanted).
		Counting(report.Tally(w.engine.Records)).Numbering(numbering.New(w.engine.Records, true)).Claiming(time.Hour).
		Recording(func(row store.Item, e outbox.Effect, o outbox.Outcome) []store.Write {
			return maillog.Record(w.tables.RecurringPayments.Name, clock(), row, e, o)
		})
	return w, nil
}

// identify gives the store an installation id that is not random: the mails' shards follow
// from it, and how full the pages of the outbox are.
func (w *world) identify(ctx context.Context) error {
	text := func(name, value string) store.Attribute { return store.Attribute{Name: name, Value: store.S(value)} }
	return w.meter.Commit(ctx, store.Put(w.tables.RecurringPayments.Name,
		store.NewItem(text(schema.PK, "META"), text(schema.SK, "META"),
			text(schema.Installation, "MEASUREDINSTALLATIONABCDEF"),
			text(schema.CreatedDate, w.now.Format("2006-01-02T15:04:05.000Z")),
			store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion)}, store.Attribute{Name: schema.Shards, Value: store.Int(1)},
			store.Attribute{Name: schema.Charging, Value: store.Bool(true)})))
}

// nowhere is an outbox.Deliverer that takes every mail.
type nowhere struct{}

func (nowhere) Deliver(context.Context, outbox.Effect) error { return nil }

// load imports n subscriptions that fall due on one day, charged by the method.
func (w *world) load(ctx context.Context, n int, due civil.Date, method string, padding int) error {
	const chunk = 48
	for at := 0; at < n; at += chunk {
		var batch []billing.NewSubscription
		for i := at; i < min(n, at+chunk); i++ {
			s := Subscription(i, due)
			s.Method = method
			s.Address += strings.Repeat(".", padding)
			batch = append(batch, s)
		}
		if _, err := bulk.Create(ctx, w.engine.Records, batch); err != nil {
			return err
		}
	}
	return nil
}

// A dayUsage is the consumption of one day's jobs.
type dayUsage struct {
	reminders, payments, mail metering.Usage
	// of the jobs, on the partitions of the indexes
	reminderRows, paymentRows map[metering.Partition]metering.Units
	paid, declined, reminded  int
}

// day runs the day's jobs one after the other, a worker each, and then moves the clock on.
func (w *world) day(ctx context.Context) (d dayUsage, err error) {
	o := job.Options{Date: civil.Of(w.now), Workers: 1}
	before, rowsBefore := w.meter.Usage(), w.meter.Partitions()
	reminders, err := job.Reminders(ctx, w.engine, o)
	if err != nil {
		return d, err
	}
	afterReminders, rows := w.meter.Usage(), w.meter.Partitions()
	payments, err := job.Payments(ctx, w.engine, o)
	if err != nil {
		return d, err
	}
	afterPayments := w.meter.Usage()
	d.reminderRows, d.paymentRows = less(rows, rowsBefore), less(w.meter.Partitions(), rows)
	if report, err := w.mail.Drain(ctx, 1); err != nil || report.Failed+report.Dead > 0 {
		return d, errors.Join(err, fmt.Errorf("%d mails were not delivered", report.Failed+report.Dead))
	}
	d.reminders, d.payments, d.mail = afterReminders.Since(before), afterPayments.Since(afterReminders),
		w.meter.Usage().Since(afterPayments)
	d.paid, d.declined, d.reminded = payments.Counts[engine.OutcomePaid], payments.Counts[engine.OutcomeRetry],
		reminders.Counts[engine.OutcomeSent]
	w.now = w.now.AddDate(0, 0, 1)
	return d, nil
}

func less(a, b map[metering.Partition]metering.Units) map[metering.Partition]metering.Units {
	d := maps.Clone(a)
	for p, u := range b {
		d[p] = d[p].Plus(u.Times(-1))
	}
	return d
}

// until lets days go by to the end of the date, and returns the consumption of its own jobs.
func (w *world) until(ctx context.Context, date civil.Date) (d dayUsage, err error) {
	for err == nil && !date.Before(civil.Of(w.now)) {
		d, err = w.day(ctx)
	}
	return d, err
}

// Scatter maps a place in the order of due dates to an account number in no such order. Ids
// are random in practice, so a run does not visit accounts in the order of their keys.
func Scatter(i int) int { return int(uint32(i) * 2654435761) }

// usd cannot fail: the currency is known.
var usd, _ = money.ParseCurrency("USD")

// Subscription returns the i-th subscription of a book: of realistic size, with an account of
// its own.
func Subscription(i int, due civil.Date) billing.NewSubscription {
	id := Scatter(i)
	return billing.NewSubscription{
		Account: fmt.Sprintf("acct_%010d", id), Email: fmt.Sprintf("customer.%d@example.com", id),
		ID: fmt.Sprintf("sub_%010d", id), SKU: fmt.Sprintf("plan-%03d", i%200),
		Amount: money.New(int64(500+i%5000), usd), PaymentDay: due.Day(),
		Method: "pm_card_visa", Address: fmt.Sprintf("%d Bridge Street, Birmingham, B12 7ST, United Kingdom", i%900+1),
		ReminderDays: billing.DefaultReminderDays, NextPayment: due,
	}
}
