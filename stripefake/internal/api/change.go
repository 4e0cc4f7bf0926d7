package api

import (
	"maps"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Changed emits an …updated event with the members that have changed, if there are any, and
// plans the object anew.
func (c *Call) Changed(typ string, before, o object) {
	c.Plan(o)
	if previous := shape.Differences(before, o); shape.IsPublic(previous) {
		c.Emit(typ, o, previous)
	}
}

// Change makes the object what after is, and the event of it if anything is different.
func (c *Call) Change(event string, o, after object) {
	before := o.Clone()
	maps.Copy(o, after)
	if previous := shape.Differences(before, o); shape.IsPublic(previous) {
		c.Emit(event, o, previous)
	}
}
