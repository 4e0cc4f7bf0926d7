// Package capacity estimates the DynamoDB units, hours and shards that a book's busiest day needs.
//
// Its table lists what each step of a period reads and writes. "duesday-bench units" measures these
// units with the real engine, and a test compares the table with the measurement. The package does
// not send requests to AWS, and contains the on-demand prices of only one region.
package capacity

import (
	"fmt"
	"math"
)

// Units are DynamoDB's measure of throughput, and what it bills. An eventually consistent read
// costs half a unit.
type Units struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
}

// Plus returns the sum.
func (u Units) Plus(v Units) Units { return Units{u.Read + v.Read, u.Write + v.Write} }

// Times returns the units of n such calls.
func (u Units) Times(n float64) Units { return Units{u.Read * n, u.Write * n} }

// Rounded removes fractions below a ten-thousandth of a unit, which division leaves behind.
func (u Units) Rounded() Units {
	return Units{Read: math.Round(u.Read*1e4) / 1e4, Write: math.Round(u.Write*1e4) / 1e4}
}

// The sizes and limits in DynamoDB's documentation.
const (
	WriteUnitBytes  = 1 << 10 // of one write unit
	ReadUnitBytes   = 4 << 10 // of one strongly consistent read unit
	partitionWrites = 1000    // maximum write units per second of one partition
)

// Subscriptions is the number of subscriptions in the measured book. A larger book has the same
// write units, and its read units differ only by the rounding of pages.
const Subscriptions = 200

// natural is the typical size of a subscription's item between its payments.
const natural = 530

// kept is the size of all items of a typical subscription after six months: itself, its account and lookup rows, six
// receipts with their numbers, and the records of six mails, of 90 days.
const kept = 7261

// The places that have their own capacity.
const (
	Recurring = "the table recurring-payments"
	Outbox    = "the table outbox"
	Reminders = "GSI-1"
	Payments  = "GSI-2"
)

// A Line is the consumption of one protocol step in one place.
type Line struct {
	Step, Place string
	Units       Units
}

// A step is a Line at the natural size.
type step struct {
	Line
	bytes int // of the item or index row that grows with the subscription; 0: it does not grow
}

func paid() []step {
	return []step{
		{Line{"FIND", Payments, Units{Read: 0.04}}, 320},
		{Line{"READ", Recurring, Units{Read: 1}}, natural},
		{Line{"BIND", Recurring, Units{Write: 1}}, 673},
		{Line{"READ", Recurring, Units{Read: 1}}, 673}, // again, immediately before the charge
		{Line{"SETTLE", Recurring, Units{Write: 2}}, 673},
		{Line{"SETTLE", Recurring, Units{Write: 2}}, 0}, // the receipt
		{Line{"SETTLE", Outbox, Units{Write: 2}}, 0},
		{Line{"SETTLE", Reminders, Units{Write: 1}}, 0},
		{Line{"SETTLE", Payments, Units{Write: 2}}, 318},
		{Line{"MAIL", Outbox, Units{Read: 0.095, Write: 4}}, 0},
		{Line{"MAIL", Recurring, Units{Read: 1.14, Write: 6.21}}, 0}, // the receipt's number, the record, a share of counter and sums
		{Line{"LOOK BACK", Recurring, Units{Read: 3}}, 556},
	}
}

func reminder() []step {
	return []step{
		{Line{"FIND", Reminders, Units{Read: 0.025}}, 0},
		{Line{"READ", Recurring, Units{Read: 1}}, 556},
		{Line{"REMIND", Recurring, Units{Write: 2}}, 556},
		{Line{"REMIND", Outbox, Units{Write: 2}}, 0},
		{Line{"REMIND", Reminders, Units{Write: 1}}, 0},
		{Line{"MAIL", Outbox, Units{Read: 0.05, Write: 3}}, 0},
		{Line{"MAIL", Recurring, Units{Read: 1}}, natural},
		{Line{"MAIL", Recurring, Units{Write: 2}}, 0}, // the record
	}
}

// Date is the write units of one period on the index partition of one date: all rows of a date are
// one partition, unless the store has several shards per date.
type Date struct {
	Index, Name string
	Write       float64
}

// Costs are the units of a book on DynamoDB, for subscriptions of one size.
type Costs struct {
	Bytes    int     // of a subscription between its payments
	Paid     []Line  // per paid period, from FIND to the mail, with the rollback checks of later runs
	Reminder []Line  // per reminder, with its mail
	Day      Units   // per day on which nothing is due: both jobs, the mail, and the outlook in an empty book
	Outlook  float64 // read units per subscription and day: a scan reads all items, for recurring revenue and expected charges
	Lease    Units   // per date and shard on which something is due, without renewals
	Create   float64 // write units per imported subscription, with a new account and their lookup rows
	Change   float64 // write units per new status of a subscription, with its lookup rows
	Dates    []Date  // per period, on the dates between which its rows move
}

// Table returns the costs of subscriptions of itemBytes between their payments, or of a typical
// size if itemBytes is 0.
func Table(itemBytes int) (*Costs, error) {
	more := 0
	if itemBytes > 0 {
		more = itemBytes - natural
	}
	if more < 0 {
		return nil, fmt.Errorf("the size of a subscription must be at least %d bytes, the typical size (got %d)", natural, itemBytes)
	}
	c := &Costs{Bytes: natural + more, Paid: grown(paid(), more), Reminder: grown(reminder(), more),
		Day: Units{Read: 83, Write: 16}, Outlook: float64(kept+more) / ReadUnitBytes, Lease: Units{Read: 1, Write: 2}}
	row := math.Ceil(float64(318+more) / WriteUnitBytes)
	const unpaid, lookups, reminderRow, account = 499, 2 * 2, 1, 2
	c.Change = 2*math.Ceil(float64(unpaid+more)/WriteUnitBytes) + row + reminderRow + lookups
	c.Create = c.Change + account
	c.Dates = []Date{{Reminders, "the reminder date, as reminders are sent", 1},
		{Reminders, "the next reminder date, as periods are paid", 1},
		{Payments, "the due date, as periods are paid", row}, {Payments, "the next due date, as periods are paid", row}}
	return c, nil
}

// grown returns the lines of steps whose subscription has so many bytes more.
func grown(steps []step, more int) []Line {
	var lines []Line
	for _, s := range steps {
		bytes := float64(s.bytes + more)
		switch {
		case s.bytes == 0 || more == 0:
		case s.Step == "FIND": // a page holds many rows, and is rounded up once
			s.Units.Read = math.Ceil(Subscriptions*bytes/ReadUnitBytes) / 2 / Subscriptions
		default:
			s.Units.Write *= math.Ceil(bytes / WriteUnitBytes)
			s.Units.Read *= math.Ceil(bytes / ReadUnitBytes)
		}
		lines = append(lines, s.Line)
	}
	return lines
}

func total(lines []Line) (sum Units) {
	for _, l := range lines {
		sum = sum.Plus(l.Units)
	}
	return sum.Rounded()
}
