package stripefake

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An object is one of Stripe's, in the shape of the newest API version, with nothing
// expanded: what it refers to is there by id. A member whose name begins with an underscore is
// the fake's own and is never shown. Numbers are int64, lists []any, maps object.
type object map[string]any

func (o object) id() string             { return o.str("id") }
func (o object) str(name string) string { s, _ := o[name].(string); return s }
func (o object) num(name string) int64  { n, _ := o[name].(int64); return n }
func (o object) yes(name string) bool   { b, _ := o[name].(bool); return b }
func (o object) sub(name string) object { s, _ := o[name].(object); return s }
func (o object) list(name string) []any { l, _ := o[name].([]any); return l }

// clone copies the object with all that is in it.
func (o object) clone() object { return cloneValue(o).(object) }

func cloneValue(v any) any {
	switch v := v.(type) {
	case object:
		c := make(object, len(v))
		for name, value := range v {
			c[name] = cloneValue(value)
		}
		return c
	case []any:
		c := slices.Clone(v)
		for i := range c {
			c[i] = cloneValue(c[i])
		}
		return c
	}
	return v
}

// create stores a new object of the kind (payment_intent, …) under a new id with the prefix
// (pi), with id, object, created and livemode set, and metadata where members have none.
func (c *call) create(kindName, prefix string, members object) object {
	o := maps.Clone(members)
	o["id"] = c.newID(prefix)
	o["object"] = kindName
	if _, ok := o["created"]; !ok {
		o["created"] = c.now
	}
	o["livemode"] = c.space.live
	c.space.put(kindName, o)
	return o
}

func (s *space) put(kindName string, o object) {
	k := s.kinds[kindName]
	if k == nil {
		k = &kind{byID: map[string]object{}}
		s.kinds[kindName] = k
	}
	if _, there := k.byID[o.id()]; !there {
		k.order = append(k.order, o.id())
	}
	k.byID[o.id()] = o
}

// get returns the object, to be changed in place, or nil.
func (s *space) get(kindName, id string) object {
	if k := s.kinds[kindName]; k != nil {
		return k.byID[id]
	}
	return nil
}

// all returns the objects of the kind, oldest first.
func (s *space) all(kindName string) []object {
	k := s.kinds[kindName]
	if k == nil {
		return nil
	}
	list := make([]object, len(k.order))
	for i, id := range k.order {
		list[i] = k.byID[id]
	}
	return list
}

// find returns the object that a request names, to be changed in place, or Stripe's error
// about the parameter.
func (c *call) find(kindName, id, param string) (object, error) {
	if o := c.space.get(kindName, id); o != nil {
		return o, nil
	}
	return nil, missing(kindName, id, param)
}

// newID returns a new id: the prefix, and a tail that no other id of the fake has.
func (c *call) newID(prefix string) string {
	c.numbered++
	tail := strconv.FormatUint(c.numbered, 36)
	return prefix + "_fake" + strings.Repeat("0", max(0, 10-len(tail))) + tail
}
