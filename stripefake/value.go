package stripefake

import (
	"maps"
	"slices"
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

// with returns a copy of the object with the member set.
func (o object) with(name string, value any) object {
	o = maps.Clone(o)
	o[name] = value
	return o
}

func (o object) setIfThere(name string, value any) {
	if _, there := o[name]; there {
		o[name] = value
	}
}

// listOf is a list that is a member of an object, or an answer that is never paged: all of
// data, in its order.
func listOf(data []any, url string) object {
	if data == nil {
		data = []any{}
	}
	return object{"object": "list", "data": data, "has_more": false, "url": url}
}

// madeAt is when the object was made, in Unix seconds.
func madeAt(o object) int64 {
	if at, ok := o["created"].(int64); ok {
		return at
	}
	return o.num("_created")
}

// shownOf is a copy of the object without the fake's own members, as it is at this moment.
func shownOf(o object) object {
	s := o.clone()
	for name := range s {
		if strings.HasPrefix(name, "_") {
			delete(s, name)
		}
	}
	return s
}

// objectsOf returns the objects of a list.
func objectsOf(list []any) []object {
	objects := make([]object, len(list))
	for i, v := range list {
		objects[i], _ = v.(object)
	}
	return objects
}
