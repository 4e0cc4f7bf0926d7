package estimate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
)

// Options are the book of a measurement.
type Options struct {
	Subscriptions int // all due on one day; at least 1
	ItemBytes     int // of a subscription between its payments; 0: its natural size
}

// A Cost is the consumption of one action of the product on DynamoDB.
type Cost struct {
	Name  string         `json:"name"`
	Units capacity.Units `json:"units"` // for one
	Lines []Line         `json:"lines,omitempty"`
}

// A Line is a part of a Cost.
type Line struct {
	Step        string         `json:"step"` // of the protocol: FIND, READ, BIND, SETTLE …
	Op          capacity.Op    `json:"op"`
	Item        string         `json:"item"`
	Index       string         `json:"index,omitempty"`
	Transaction bool           `json:"transaction,omitempty"`
	Times       float64        `json:"times"`
	Bytes       float64        `json:"bytes"` // of each, on average
	Units       capacity.Units `json:"units"`
}

// Costs are the units of everything that happens to a subscription, measured on the real
// engine in its second period.
type Costs struct {
	Subscriptions int  `json:"subscriptions"`
	Created       Cost `json:"created"`  // per subscription imported
	Reminder      Cost `json:"reminder"` // per reminder, mail and all
	// per period paid, from FIND to the mail, and the look back of later runs
	Paid          Cost        `json:"paid_period"`
	Declined      Cost        `json:"declined"`       // per first attempt that is declined, mail and all
	DeclinedAgain Cost        `json:"retry_declined"` // per later attempt
	Row           Cost        `json:"due_row"`        // per row that a job finds, before it is read
	Day           Cost        `json:"day"`            // per day on which nothing is due: both jobs and the mail
	Lease         Cost        `json:"lease"`          // per partition of a date on which something is due, renewals aside
	Dates         []DateUnits `json:"dates"`          // per period, on the index partitions of the dates it moves between
}

// DateUnits are the units of each period of one due date on one partition of an
// index: the rows of one date are one partition, unless the store has several shards per date.
type DateUnits struct {
	Index string         `json:"index"`
	Date  string         `json:"date"` // which, and when
	Units capacity.Units `json:"units"`
}

// The methods of the sandbox that the measured books are charged by.
const (
	payingMethod    = "pm_card_visa"
	decliningMethod = "pm_card_visa_chargeDeclined"
)

// lookBackDays is how many days after a payment its run's successors may still look at it.
const lookBackDays = 4

// Measure runs the engine over a counting store, and returns the cost of each action.
// The same options always give the same answer.
func Measure(ctx context.Context, o Options) (*Costs, error) {
	if o.Subscriptions < 1 {
		return nil, fmt.Errorf("%d subscriptions: want at least 1", o.Subscriptions)
	}
	padding := 0
	if o.ItemBytes > 0 { // the address is filled up to the size
		one, err := Measure(ctx, Options{Subscriptions: 1})
		if err != nil {
			return nil, err
		}
		if padding = o.ItemBytes - one.SubscriptionBytes(); padding < 0 {
			return nil, fmt.Errorf("a subscription of %d bytes: it has %d by itself, and cannot be smaller", o.ItemBytes,
				one.SubscriptionBytes())
		}
	}
	c := &Costs{Subscriptions: o.Subscriptions}
	if err := c.measurePaid(ctx, padding); err != nil {
		return nil, err
	}
	return c, c.measureDeclined(ctx, padding)
}

// All returns all costs, in the order of a period's life.
func (c *Costs) All() []Cost {
	return []Cost{c.Created, c.Reminder, c.Row, c.Paid, c.Declined, c.DeclinedAgain, c.Day, c.Lease}
}

// SubscriptionBytes returns the size of a subscription's item between its payments.
func (c *Costs) SubscriptionBytes() int {
	for _, l := range c.Paid.Lines {
		if l.Step == stepRead {
			return int(l.Bytes)
		}
	}
	return 0
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
	if err := w.pass(ctx, first.AddDays(lookBackDays+1)); err != nil {
		return err
	}
	quiet, err := w.day(ctx)
	if err != nil {
		return err
	}
	c.Day = cost("a day on which nothing is due", 1, part{quiet.reminders, always("REMINDERS")},
		part{quiet.payments, always("PAYMENTS")}, part{quiet.mail, always(stepMail)})
	if err := w.pass(ctx, second.AddDays(-7)); err != nil {
		return err
	}
	reminding, err := w.day(ctx)
	if err != nil {
		return err
	}
	if err := w.pass(ctx, second); err != nil {
		return err
	}
	paying, err := w.day(ctx)
	if err != nil {
		return err
	}
	if reminding.reminded != c.Subscriptions || paying.paid != c.Subscriptions {
		return fmt.Errorf("of %d subscriptions %d were reminded and %d paid", c.Subscriptions, reminding.reminded,
			paying.paid)
	}
	found := paying.payments.Since(quiet.payments)
	later := make(capacity.Usage)
	for range lookBackDays {
		d, err := w.day(ctx)
		if err != nil {
			return err
		}
		later = later.Plus(d.payments)
	}
	c.Reminder = cost("a reminder", n, part{reminding.reminders.Since(quiet.reminders), jobStep(schema.ReminderIndex, "", stepRemind)},
		part{reminding.mail.Since(quiet.mail), always(stepMail)})
	c.Paid = cost("a paid period", n, part{found, jobStep(schema.PaymentIndex, stepBind, stepSettle)}, part{paying.mail.Since(quiet.mail), always(stepMail)},
		part{later, gateStep})
	c.Row = cost("a due row, found", n, part{found, findStep})
	c.Lease = cost("a share of a run, leased: one date and shard", 1, part{found, leaseStep})
	c.Dates = append(hottest(reminding.reminderRows, n,
		func(capacity.Partition) string { return "the reminder date, as reminders are sent" }),
		hottest(paying.paymentRows, n, func(p capacity.Partition) string {
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

// hottest returns the partitions that each of n periods has written to, in the order of their keys.
func hottest(rows map[capacity.Partition]capacity.Units, n float64,
	name func(capacity.Partition) string) (dates []DateUnits) {
	partitions := slices.SortedFunc(maps.Keys(rows), func(a, b capacity.Partition) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Key, b.Key))
	})
	for _, p := range partitions {
		if u := rows[p]; u.Write >= n {
			dates = append(dates, DateUnits{Index: p.Index, Date: name(p), Units: rounded(u.Times(1 / n))})
		}
	}
	return dates
}
