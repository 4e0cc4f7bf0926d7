package screen

import (
	"strings"

	"github.com/duesday/duesday/internal/view"
)

// SayDifferences prints each difference on its own line, as in "amount  €10.00 -> €12.00".
func (s *Screen) SayDifferences(all []view.Difference) {
	var pairs []any
	for _, d := range all {
		pairs = append(pairs, "  "+strings.ReplaceAll(d.Name, "_", " "), Printable(Cell(d.Before))+" -> "+Printable(Cell(d.After)))
	}
	s.Fields(pairs...)
	if len(all) == 0 {
		s.Say("  nothing changed")
	}
}
