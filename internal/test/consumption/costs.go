package consumption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/outlook"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/test/metering"
)

// Options are the book of a measurement.
type Options struct {
	Subscriptions int // all due on one day; at least 1
	ItemBytes     int // of a subscription between its payments; 0: its natural size
}

// A Cost is the consumption of one action of the product on DynamoDB.
type Cost struct {
	Name  string         `json:"name"`
	Units metering.Units `json:"units"` // for one
	Lines []Line         `json:"lines,omitempty"`
}

// A Line is a part of a Cost.
type Line struct {
	Step        string         `json:"step"` // of the protocol: FIND, READ, BIND, SETTLE …
	Op          metering.Op    `json:"op"`
	Item        string         `json:"item"`
	Index       string         `json:"index,omitempty"`
	Transaction bool           `json:"transaction,omitempty"`
	Times       float64        `json:"times"`
	Bytes       float64        `json:"bytes"` // of each, on average
	Units       metering.Units `json:"units"`
}

// Costs are measured on the real engine, in a subscription's second period.
type Costs struct {
	Subscriptions int  `json:"subscriptions"`
	Created       Cost `json:"created"`  // per subscription imported
	Changed       Cost `json:"changed"`  // per status that a person changes, here by a pause
	Reminder      Cost `json:"reminder"` // per reminder, mail and all
	// per period paid, from FIND to the mail, and the look back of later runs
	Paid          Cost        `json:"paid_period"`
	Declined      Cost        `json:"declined"`       // per first attempt that is declined, mail and all
	DeclinedAgain Cost        `json:"retry_declined"` // per later attempt
	Row           Cost        `json:"due_row"`        // per row that a job finds, before it is read
	Day           Cost        `json:"day"`            // per day on which nothing is due: both jobs, the mail, and the outlook in an empty book
	Outlook       Cost        `json:"outlook"`        // per subscription and day: the scan for the outlook
	Lease         Cost        `json:"lease"`          // per partition of a date on which something is due, renewals aside
	Dates         []DateUnits `json:"dates"`          // per period, on the index partitions of the dates it moves between
}

// DateUnits are the units of each period of one due date on one partition of an
// index: the rows of one date are one partition, unless the store has several shards per date.
type DateUnits struct {
	Index string         `json:"index"`
	Date  string         `json:"date"` // which, and when
	Units metering.Units `json:"units"`
}

// The methods of the sandbox that the measured books are charged by.
const (
	payingMethod    = "pm_card_visa"
	decliningMethod = "pm_card_visa_chargeDeclined"
)

// lookBackDays is how many days after a payment its run's successors may still look at it.
const lookBackDays = 4

// passDays after the first payment, the first of the receipts, which are kept for six months, have expired.
const passDays = 200

// Measure runs the engine over a counting store. The same options always give the same answer.
func Measure(ctx context.Context, o Options) (*Costs, error) {
	if o.Subscriptions < 1 {
		return nil, fmt.Errorf("%d subscriptions: want at least 1", o.Subscriptions)
	}
	padding := 0
	if o.ItemBytes > 0 { // the address is filled up to the size
		natural, err := Measure(ctx, Options{Subscriptions: o.Subscriptions})
		if err != nil {
			return nil, err
		}
		if padding = o.ItemBytes - natural.SubscriptionBytes(); padding < 0 {
			return nil, fmt.Errorf("a subscription of %d bytes: it has %d by itself, and cannot be smaller", o.ItemBytes,
				natural.SubscriptionBytes())
		}
	}
	c := &Costs{Subscriptions: o.Subscriptions}
	if err := c.measurePaid(ctx, padding); err != nil {
		return nil, err
	}
	return c, cmp.Or(c.measureChanged(ctx, padding), c.measureDeclined(ctx, padding))
}

// All returns all costs, in the order of a period's life.
func (c *Costs) All() []Cost {
	return []Cost{c.Created, c.Changed, c.Reminder, c.Row, c.Paid, c.Declined, c.DeclinedAgain, c.Day, c.Outlook, c.Lease}
}

// SubscriptionBytes returns the size of a subscription's item between its payments. A run reads the
// item twice: when it finds it, and again after BIND has made it larger.
func (c *Costs) SubscriptionBytes() int {
	bytes := make(map[string]int)
	for _, l := range c.Paid.Lines {
		bytes[l.Step] += int(l.Bytes)
	}
	return 2*bytes[stepRead] - bytes[stepBind]
}

// measurePaid lets every subscription be paid twice, and counts the second time.
func (c *Costs) measurePaid(ctx context.Context, padding int) error {
	w, err := openWorld(ctx)
	if err != nil {
		return err
	}
	first := civil.Of(w.now).AddDays(14)
	second := first.AddDays(31) // January has so many
	before := w.meter.Usage()
	if err := w.load(ctx, c.Subscriptions, first, payingMethod, padding); err != nil {
		return err
	}
	n := float64(c.Subscriptions)
	c.Created = cost("a subscription, imported", n, part{w.meter.Usage().Since(before), always("CREATE")})
	quiet, err := w.until(ctx, first.AddDays(lookBackDays+1))
	if err != nil {
		return err
	}
	empty, whole, err := passes(ctx, c.Subscriptions, padding)
	if err != nil {
		return err
	}
	scan := func(l metering.Line) bool { return l.Op == metering.OpScan }
	c.Outlook = cost("a subscription, in the scan for the outlook", n, part{whole.Since(empty), only(stepOutlook, scan)})
	c.Day = cost("a day on which nothing is due", 1, part{quiet.reminders, always("REMINDERS")},
		part{quiet.payments, always("PAYMENTS")}, part{quiet.mail, always(stepMail)},
		part{empty, only(stepOutlook, func(l metering.Line) bool { return !scan(l) })})
	reminding, err := w.until(ctx, second.AddDays(-7))
	if err != nil {
		return err
	}
	paying, err := w.until(ctx, second)
	if err != nil {
		return err
	}
	if reminding.reminded != c.Subscriptions || paying.paid != c.Subscriptions {
		return fmt.Errorf("of %d subscriptions %d were reminded and %d paid", c.Subscriptions, reminding.reminded,
			paying.paid)
	}
	found := paying.payments.Since(quiet.payments)
	later := make(metering.Usage)
	for range lookBackDays {
		d, err := w.day(ctx)
		if err != nil {
			return err
		}
		later = later.Plus(d.payments)
	}
	c.Reminder = cost("a reminder", n,
		part{reminding.reminders.Since(quiet.reminders), jobStep(schema.ReminderIndex, "", stepRemind)},
		part{reminding.mail.Since(quiet.mail), always(stepMail)})
	// Before it charges, a run looks whether the store knows the processor's latest successes.
	lookBack := only(stepLookBack, func(l metering.Line) bool {
		return l.Op == metering.OpGet && (l.Item == itemSubscription || l.Item == itemPeriod)
	})
	c.Paid = cost("a paid period", n, part{found, jobStep(schema.PaymentIndex, stepBind, stepSettle)},
		part{paying.mail.Since(quiet.mail), mailStep}, part{later, lookBack})
	c.Row = cost("a due row, found", n, part{found, only(stepFind, func(l metering.Line) bool {
		return l.Op == metering.OpQuery && l.Index == schema.PaymentIndex
	})})
	c.Lease = cost("a share of a run, leased: one date and shard", 1,
		part{found, only("LEASE", func(l metering.Line) bool { return l.Item == itemLease })})
	c.Dates = append(hottest(reminding.reminderRows, n,
		func(metering.Partition) string { return "the reminder date, as reminders are sent" }),
		hottest(paying.paymentRows, n, func(p metering.Partition) string {
			switch {
			case p.Index == schema.ReminderIndex:
				return "the next reminder date, as periods are paid"
			case p.Key == second.String():
				return "the due date, as periods are paid"
			}
			return "the next due date, as periods are paid"
		})...)
	return nil
}

// passes makes the pass for the outlook over an empty book, and over one of n subscriptions for which each
// kind of item is kept as long as it is, so that the book grows no more.
func passes(ctx context.Context, n, padding int) (empty, whole metering.Usage, err error) {
	for _, to := range []struct {
		usage *metering.Usage
		n     int
	}{{&empty, 0}, {&whole, n}} {
		w, err := openWorld(ctx)
		if err != nil {
			return nil, nil, err
		}
		first := civil.Of(w.now).AddDays(14)
		if err := w.load(ctx, to.n, first, payingMethod, padding); err != nil {
			return nil, nil, err
		}
		if _, err := w.until(ctx, first.AddDays(passDays)); err != nil {
			return nil, nil, err
		}
		before := w.meter.Usage()
		if stored, err := outlook.Refresh(ctx, w.engine, false); err != nil || !stored {
			return nil, nil, cmp.Or(err, errors.New("the outlook was not due"))
		}
		*to.usage = w.meter.Usage().Since(before)
	}
	return empty, whole, nil
}

// measureChanged pauses every subscription.
func (c *Costs) measureChanged(ctx context.Context, padding int) error {
	w, err := openWorld(ctx)
	if err != nil {
		return err
	}
	due := civil.Of(w.now).AddDays(14)
	if err := w.load(ctx, c.Subscriptions, due, payingMethod, padding); err != nil {
		return err
	}
	before := w.meter.Usage()
	for i := range c.Subscriptions {
		s := Subscription(i, due)
		if _, err := w.engine.Pause(ctx, billing.Name{Account: s.Account, ID: s.ID}); err != nil {
			return err
		}
	}
	c.Changed = cost("a status, changed", float64(c.Subscriptions), part{w.meter.Usage().Since(before), always("CHANGE")})
	return nil
}

// hottest returns the partitions that each of n periods has written to, in the order of their keys.
func hottest(rows map[metering.Partition]metering.Units, n float64,
	name func(metering.Partition) string) (dates []DateUnits) {
	partitions := slices.SortedFunc(maps.Keys(rows), func(a, b metering.Partition) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Key, b.Key))
	})
	for _, p := range partitions {
		if u := rows[p]; u.Write >= n {
			dates = append(dates, DateUnits{Index: p.Index, Date: name(p), Units: u.Times(1 / n).Rounded()})
		}
	}
	return dates
}

// A part is a piece of a consumption. step returns the step of the protocol to which a line
// belongs to; "" leaves it out: it is the day's, and not of any one subscription.
type part struct {
	usage metering.Usage
	step  func(metering.Line) string
}

func cost(name string, n float64, parts ...part) Cost {
	c := Cost{Name: name}
	for _, p := range parts {
		first := len(c.Lines)
		for _, l := range p.usage.Sorted() {
			step, count := p.step(l), p.usage[l]
			if step == "" {
				continue
			}
			line := Line{Step: step, Op: l.Op, Item: l.Item, Index: l.Index, Transaction: l.Transaction,
				Times: float64(count.Times) / n, Units: count.Units.Times(1 / n)}
			switch {
			case (l.Op == metering.OpQuery || l.Op == metering.OpScan) && n > 1: // a page holds many rows: the line gives one row's share
				line.Times, line.Bytes = 1, float64(count.Bytes)/n
			case count.Times > 0:
				line.Bytes = float64(count.Bytes) / float64(count.Times)
			}
			line.Units, line.Bytes = line.Units.Rounded(), math.Round(line.Bytes)
			c.Lines = append(c.Lines, line)
			c.Units = c.Units.Plus(line.Units).Rounded()
		}
		slices.SortStableFunc(c.Lines[first:], func(a, b Line) int { return order(a.Step) - order(b.Step) })
	}
	return c
}

// The steps in the order in which they happen.
func order(step string) int {
	return slices.Index([]string{stepFind, stepRead, stepBind, stepSettle, stepDecline, stepRemind, stepMail}, step)
}

const (
	stepFind     = "FIND"
	stepRead     = "READ"
	stepBind     = "BIND"
	stepSettle   = "SETTLE"
	stepDecline  = "DECLINE"
	stepRemind   = "REMIND"
	stepMail     = "MAIL"
	stepLookBack = "LOOK BACK"
	stepOutlook  = "OUTLOOK"
)

func always(step string) func(metering.Line) string {
	return func(metering.Line) string { return step }
}

// jobStep returns the steps of a job that finds its rows in the index. alone is the step of a write
// of the subscription alone, and end that of a transaction.
func jobStep(index, alone, end string) func(metering.Line) string {
	return func(l metering.Line) string {
		switch {
		case l.Op == metering.OpQuery && l.Index == index:
			return stepFind
		case l.Op == metering.OpGet && l.Item == itemSubscription:
			return stepRead
		case l.Op == metering.OpQuery, l.Op == metering.OpGet, l.Item == itemRun:
			return ""
		case l.Transaction:
			return end
		case l.Item == itemSubscription:
			return alone
		}
		return ""
	}
}

// mailStep leaves out the lease on numbers, which a process writes at most once a minute.
func mailStep(l metering.Line) string {
	if l.Item == itemLease {
		return ""
	}
	return stepMail
}

// only returns the step for the lines that it is about.
func only(step string, is func(metering.Line) bool) func(metering.Line) string {
	return func(l metering.Line) string {
		if !is(l) {
			return ""
		}
		return step
	}
}

// measureDeclined lets every subscription's first and second attempt be declined.
func (c *Costs) measureDeclined(ctx context.Context, padding int) error {
	w, err := openWorld(ctx)
	if err != nil {
		return err
	}
	due := civil.Of(w.now).AddDays(14)
	if err := w.load(ctx, c.Subscriptions, due, decliningMethod, padding); err != nil {
		return err
	}
	quiet, err := w.until(ctx, due.AddDays(-1))
	if err != nil {
		return err
	}
	n := float64(c.Subscriptions)
	for _, d := range []struct {
		into *Cost
		name string
	}{{&c.Declined, "a first attempt, declined"}, {&c.DeclinedAgain, "a later attempt, declined"}} {
		day, err := w.day(ctx)
		if err != nil {
			return err
		}
		if day.declined != c.Subscriptions {
			return fmt.Errorf("of %d subscriptions %d were declined", c.Subscriptions, day.declined)
		}
		*d.into = cost(d.name, n,
			part{day.payments.Since(quiet.payments), jobStep(schema.PaymentIndex, stepBind, stepDecline)},
			part{day.mail.Since(quiet.mail), always(stepMail)})
	}
	return nil
}
