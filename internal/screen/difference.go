package screen

import (
	"reflect"
	"strings"
)

// A Difference is one member of an object that a command has changed.
type Difference struct {
	Name          string
	Before, After any
}

// Differences compares two views with the same members and returns the members that differ.
func Differences(was, now Object) (all []Difference) {
	for i := 0; i < len(now); i += 2 {
		if before, after := was.Shown(i+1), now.Shown(i+1); !reflect.DeepEqual(before, after) {
			all = append(all, Difference{strings.TrimSuffix(now[i].(string), "?"), before, after})
		}
	}
	return all
}

// SayDifferences prints each difference on its own line, as in "amount  €10.00 -> €12.00".
func (s *Screen) SayDifferences(all []Difference) {
	var pairs []any
	for _, d := range all {
		pairs = append(pairs, "  "+strings.ReplaceAll(d.Name, "_", " "), Printable(Cell(d.Before))+" -> "+Printable(Cell(d.After)))
	}
	s.Fields(pairs...)
	if len(all) == 0 {
		s.Say("  nothing changed")
	}
}
