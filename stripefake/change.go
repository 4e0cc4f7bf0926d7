package stripefake

import "maps"

// changed emits an …updated event with the members that have changed, if there are any, and
// plans the object anew.
func (c *call) changed(typ string, before, o object) {
	c.plan(o)
	if previous := differences(before, o); isPublic(previous) {
		c.emit(typ, o, previous)
	}
}

// change makes the object what after is, and the event of it if anything is different.
func (c *call) change(event string, o, after object) {
	before := o.clone()
	maps.Copy(o, after)
	if previous := differences(before, o); isPublic(previous) {
		c.emit(event, o, previous)
	}
}
