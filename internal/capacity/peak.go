package capacity

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
)

// PeakOptions describe the busiest day of a book.
type PeakOptions struct {
	Subscriptions int
	Share         float64 // of them due on that day: above 0, at most 1
	ChargeRate    float64 // charges a second that the processor allows
	Hours         float64 // in which the day shall be done; 0: as long as the processor takes
}

// A Sum is one figure of a Peak, with its calculation.
type Sum struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	How   string  `json:"how"`
}

// A Peak is the demand of the busiest day, and of a month, on DynamoDB.
type Peak struct {
	Due        int     `json:"due_periods"`
	ChargeRate float64 `json:"charges_per_second"`
	Hours      float64 `json:"hours"`
	Fits       bool    `json:"fits"` // within the processor's rate, and within the day
	Day        Units   `json:"day_units"`
	PerSecond  Units   `json:"units_per_second"`
	Shards     int     `json:"shards_per_date"`
	Month      Units   `json:"month_units"`
	Sums       []Sum   `json:"sums"`
}

// PlanPeak returns the demand on the busiest day. It does not check the options.
func PlanPeak(c *Costs, o PeakOptions) *Peak {
	p := &Peak{Due: int(math.Round(float64(o.Subscriptions) * o.Share)), ChargeRate: o.ChargeRate, Fits: true}
	due := float64(p.Due)
	p.sum("periods due on the peak day", due, "%v subscriptions × %v %%", float64(o.Subscriptions), o.Share*100)
	allowed := due / o.ChargeRate / 3600
	p.Hours = allowed
	p.sum("hours at the processor's rate", allowed, "%v periods ÷ %v charges/s ÷ 3,600", due, o.ChargeRate)
	if o.Hours > 0 {
		p.Hours, p.ChargeRate = o.Hours, due/o.Hours/3600
		p.sum("charges a second, to be done in the hours given", p.ChargeRate, "%v periods ÷ %v h ÷ 3,600", due, o.Hours)
	}
	p.dates(c)
	p.Fits = p.ChargeRate <= o.ChargeRate && p.Hours <= 24 && p.Shards <= billing.MaxShards
	p.units(c, o, due)
	return p
}

// walked adds the cost of more than one shard: both jobs look at every partition of each date,
// and lease those in which something is due.
func (p *Peak) walked(c *Costs) (day Units) {
	const query = 0.5 // units of an eventually consistent query that finds nothing
	day = c.Day
	if more := p.Shards; more > 1 {
		reads := float64(2*more*billing.WalkDates) * query
		p.sum("read units of looking at so many shards", reads, "2 jobs × %d shards × %d dates × %v", more, billing.WalkDates,
			query)
		day.Read += reads
	}
	leases := c.Lease.Times(float64(p.Shards))
	p.sum("write units of leases, renewals aside", leases.Write, "%d shards × %v", p.Shards, c.Lease.Write)
	return day.Plus(leases)
}

// sum notes a figure. Figures among the arguments are written as Number does.
func (p *Peak) sum(what string, value float64, how string, args ...any) {
	for i, a := range args {
		if x, ok := a.(float64); ok {
			args[i] = Number(x)
		}
	}
	p.Sums = append(p.Sums, Sum{what, math.Round(value*100) / 100, fmt.Sprintf(how, args...)})
}

// units adds up the day, its need a second, and the month.
func (p *Peak) units(c *Costs, o PeakOptions, due float64) {
	paid, reminder := total(c.Paid), total(c.Reminder)
	step := func(l Line) string { return l.Step }
	p.sum("write units of a paid period", paid.Write, "%v", shares(c.Paid, step, write))
	p.sum("read units of a paid period", paid.Read, "%v", shares(c.Paid, step, read))
	scan := Units{Read: c.Outlook * float64(o.Subscriptions)}
	p.sum("read units of a day's scan for the outlook", scan.Read, "%v subscriptions × %v", float64(o.Subscriptions), c.Outlook)
	day := p.walked(c).Plus(scan)
	p.Day = paid.Times(due).Plus(day).Rounded()
	p.sum("write units of the day", p.Day.Write, "%v × %v + %v for the jobs themselves", due, paid.Write, day.Write)
	p.sum("read units of the day", p.Day.Read, "%v × %v + %v for the jobs themselves", due, paid.Read, day.Read)
	p.PerSecond = paid.Times(p.ChargeRate).Rounded()
	p.sum("write units a second", p.PerSecond.Write, "%v charges/s × %v", p.ChargeRate, paid.Write)
	for _, s := range shares(c.Paid, func(l Line) string { return l.Place }, write) {
		p.sum("  of these in "+s.name, s.units*p.ChargeRate, "%v charges/s × %v", p.ChargeRate, s.units)
	}
	p.sum("read units a second", p.PerSecond.Read, "%v charges/s × %v", p.ChargeRate, paid.Read)
	p.Month = paid.Plus(reminder).Times(float64(o.Subscriptions)).Plus(day.Times(30)).Rounded()
	p.sum("write units of a month", p.Month.Write, "%v × (%v paid + %v reminder) + 30 days × %v",
		float64(o.Subscriptions), paid.Write, reminder.Write, day.Write)
	p.sum("read units of a month", p.Month.Read, "%v × (%v paid + %v reminder) + 30 days × %v",
		float64(o.Subscriptions), paid.Read, reminder.Read, day.Read)
	p.sum("write units of an imported subscription", c.Create, "with a new account and two lookup rows")
	p.sum("write units of a changed status", c.Change, "with the old and the new lookup row")
	p.sum("dollars a month, on demand", (p.Month.Write*writeDollars+p.Month.Read*readDollars)/1e6,
		"%v write units × %v + %v read units × %v, a million; us-east-1, 2026, without storage", p.Month.Write,
		strconv.FormatFloat(writeDollars, 'f', -1, 64), p.Month.Read, strconv.FormatFloat(readDollars, 'f', -1, 64))
}

// The on-demand prices of a million units in us-east-1, in dollars.
const (
	writeDollars = 0.625
	readDollars  = 0.125
)

// dates finds the busiest partition of one date. A throttled write of an index row rejects
// the write of its item, so the index partition is the limit, however many units the table has.
func (p *Peak) dates(c *Costs) {
	p.Shards = 1
	for _, d := range c.Dates {
		w := d.Write * p.ChargeRate
		p.sum("write units a second on "+d.Index+", "+d.Name, w, "%v periods/s × %v, of %v that a partition takes",
			p.ChargeRate, d.Write, float64(partitionWrites))
		p.Shards = max(p.Shards, int(math.Ceil(w/partitionWrites-1e-9)))
	}
	p.sum("shards per date", float64(p.Shards), "the largest of these ÷ %v, rounded up", float64(partitionWrites))
}

// A share is the part of a sum that one step or place has.
type share struct {
	name  string
	units float64
}

type sharesOf []share

func (all sharesOf) String() string {
	var names []string
	for _, s := range all {
		names = append(names, s.name+" "+Number(s.units))
	}
	return strings.Join(names, " + ")
}

func write(u Units) float64 { return u.Write }
func read(u Units) float64  { return u.Read }

// shares adds up the lines by name, in the order of their first units.
func shares(lines []Line, name func(Line) string, of func(Units) float64) (all sharesOf) {
	for _, l := range lines {
		if of(l.Units) == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(s share) bool { return s.name == name(l) })
		if i < 0 {
			i, all = len(all), append(all, share{name: name(l)})
		}
		all[i].units += of(l.Units)
	}
	return all
}

// RateNeeded returns the charges per second that complete the day in the given hours, or in 24 hours.
func (p *Peak) RateNeeded() float64 { return max(p.ChargeRate*p.Hours/min(p.Hours, 24), p.ChargeRate) }

// Number formats a figure with thousands separators and at most two decimals.
func Number(x float64) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(x, 'f', 2, 64), ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return whole
}
