package civil

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Unit is the calendar unit of an [Interval]. The zero value is no unit.
type Unit uint8

// The units of an interval. A day is not a unit, because the shortest period is a week.
const (
	Week Unit = iota + 1
	Month
	Year
)

// String returns "week", "month" or "year".
func (u Unit) String() string {
	name, _, _ := u.facts()
	return name
}

// facts returns the unit's name, the largest count of an interval, and the unit's length in months,
// 0 for weeks. The largest count is inclusive: about ten years of weeks, a hundred years otherwise.
func (u Unit) facts() (name string, most, months int) {
	switch u {
	case Week:
		return "week", 520, 0
	case Month:
		return "month", 1200, 1
	case Year:
		return "year", 100, 12
	default:
		return fmt.Sprintf("unit %d", uint8(u)), 0, 0
	}
}

// Interval is the length of a period: every N weeks, months or years. The zero value is not valid.
type Interval struct {
	N    int // 1 to 520 weeks, 1200 months or 100 years, inclusive
	Unit Unit
}

// Validate returns an error with the valid range if N or the unit is outside it.
func (i Interval) Validate() error {
	_, most, _ := i.Unit.facts()
	if most == 0 {
		return fmt.Errorf("interval: unit must be week, month or year (got %s)", i.Unit)
	}
	if i.N < 1 || i.N > most {
		return fmt.Errorf("interval must be 1 to %d %ss (got %d)", most, i.Unit, i.N)
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

// months returns the interval's length in months, and 0 for weeks.
func (i Interval) months() int {
	_, _, months := i.Unit.facts()
	return i.N * months
}

// ParseInterval reads "weekly", "monthly", "quarterly", "yearly" or "annual", a unit such as
// "month", or a count and a unit such as "2 weeks". It ignores case, surrounding spaces and
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
			"interval must be weekly, monthly, quarterly or yearly, or a count such as 2 weeks, 3 months or 1 year (got %.40q)", s)
	}
	if i.Validate() != nil {
		name, most, _ := i.Unit.facts()
		return Interval{}, fmt.Errorf("interval must be 1 to %d %ss (got %.40q)", most, name, s)
	}
	return i, nil
}

// named are the intervals with a name of their own.
var named = map[string]Interval{"weekly": {1, Week}, "monthly": {1, Month}, "quarterly": {3, Month}, "yearly": {1, Year},
	"annual": {1, Year}}

func unitNamed(word string) Unit {
	for _, u := range [...]Unit{Week, Month, Year} {
		if u.String() == word {
			return u
		}
	}
	return 0
}

// PerMonth returns how many intervals a month has, if a year has 12 months or 52 weeks.
func (i Interval) PerMonth() *big.Rat {
	switch n := int64(i.N); i.Unit {
	case Week:
		return big.NewRat(52, 12*n)
	case Year:
		return big.NewRat(1, 12*n)
	default:
		return big.NewRat(1, n)
	}
}
