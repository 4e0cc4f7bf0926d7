package civil

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Unit is the calendar unit of an [Interval]. The zero value is no unit.
type Unit uint8

// The units of an interval.
const (
	Week Unit = iota + 1
	Month
	Year
	Day // of which an interval has seven or more, because the shortest period is a week
)

// facts are a unit's name, the inclusive limits of an interval's count, and the unit's length, which is
// either in days or in months.
type facts struct {
	name                      string
	least, most, days, months int
}

// units are the facts of each unit.
var units = [...]facts{Week: {"week", 1, 520, 7, 0}, Month: {"month", 1, 1200, 0, 1}, Year: {"year", 1, 100, 0, 12},
	Day: {"day", 7, 3650, 1, 0}}

func (u Unit) facts() facts {
	if int(u) < len(units) {
		return units[u]
	}
	return facts{}
}

// String returns "week", "month", "year" or "day".
func (u Unit) String() string {
	return cmp.Or(u.facts().name, fmt.Sprintf("unit %d", uint8(u)))
}

// Interval is the length of a period: every N days, weeks, months or years. The zero value is not valid.
type Interval struct {
	N    int // 7 to 3650 days, 1 to 520 weeks, 1200 months or 100 years, inclusive
	Unit Unit
}

// Validate returns an error with the valid range if N or the unit is outside it.
func (i Interval) Validate() error {
	f := i.Unit.facts()
	if f.most == 0 {
		return fmt.Errorf("interval: unit must be day, week, month or year (got %s)", i.Unit)
	}
	if i.N < f.least || i.N > f.most {
		return fmt.Errorf("interval must be %d to %d %ss (got %d)", f.least, f.most, i.Unit, i.N)
	}
	return nil
}

// String returns the canonical text, such as "week" or "2 weeks", which [ParseInterval] reads.
func (i Interval) String() string {
	if i.N == 1 {
		return i.Unit.String()
	}
	return strconv.Itoa(i.N) + " " + i.Unit.String() + "s"
}

// ParseInterval reads "weekly", "monthly", "quarterly", "yearly" or "annual", a unit such as
// "month", or a count and a unit such as "10 days". It ignores case, surrounding spaces and
// repeated spaces. The error lists the valid forms.
func ParseInterval(s string) (Interval, error) {
	words := strings.Fields(strings.ToLower(s))
	var i Interval
	switch len(words) {
	case 1:
		var ok bool
		if i, ok = named[words[0]]; !ok {
			i = Interval{N: 1, Unit: unitNamed(words[0])}
		}
	case 2:
		// No sign and no underscore. The largest number stands for all beyond it.
		n, err := strconv.ParseUint(words[0], 10, 31)
		if !errors.Is(err, strconv.ErrSyntax) {
			i = Interval{N: int(n), Unit: unitNamed(strings.TrimSuffix(words[1], "s"))}
		}
	}
	if i.Unit == 0 {
		return Interval{}, fmt.Errorf(
			"interval must be weekly, monthly, quarterly or yearly, or a count such as 10 days, 2 weeks, 3 months or 1 year (got %.40q)", s)
	}
	if i.Validate() != nil {
		f := i.Unit.facts()
		return Interval{}, fmt.Errorf("interval must be %d to %d %ss (got %.40q)", f.least, f.most, f.name, s)
	}
	return i, nil
}

// named are the intervals with a name of their own. One day is too short, and its error says so.
var named = map[string]Interval{"daily": {1, Day}, "weekly": {1, Week}, "monthly": {1, Month}, "quarterly": {3, Month},
	"yearly": {1, Year}, "annual": {1, Year}}

func unitNamed(word string) Unit {
	return Unit(max(0, slices.IndexFunc(units[:], func(f facts) bool { return f.name == word })))
}

// PerMonth returns how many intervals a month has, if a year has 12 months, 52 weeks or 364 days.
func (i Interval) PerMonth() *big.Rat {
	f, n := i.Unit.facts(), int64(i.N)
	if f.days > 0 {
		return big.NewRat(364, 12*n*int64(f.days))
	}
	return big.NewRat(1, n*int64(f.months))
}
