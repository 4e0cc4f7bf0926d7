package api

import (
	"maps"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Changed emits an …updated event with the changed members, if there are any, and plans the object
// anew.
func (c *Call) Changed(typ string, before, o object) {
	c.Plan(o)
	if previous := shape.Differences(before, o); shape.IsPublic(previous) {
		c.Emit(typ, o, previous)
	}
}

// Change copies the members of after into the object, and emits the event if any of them differs.
func (c *Call) Change(event string, o, after object) {
	before := o.Clone()
	maps.Copy(o, after)
	if previous := shape.Differences(before, o); shape.IsPublic(previous) {
		c.Emit(event, o, previous)
	}
}
