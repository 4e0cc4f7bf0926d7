package shape

import (
	"maps"
	"slices"
	"strings"
)

// An Object is one of Stripe's, in the shape of the newest API version, with nothing
// expanded: what it refers to is there by id. A member whose name begins with an underscore is
// the fake's own and is never shown. Numbers are int64, lists []any, maps object.
type Object map[string]any

func (o Object) ID() string             { return o.Str("id") }
func (o Object) Str(name string) string { s, _ := o[name].(string); return s }
func (o Object) Num(name string) int64  { n, _ := o[name].(int64); return n }
func (o Object) Yes(name string) bool   { b, _ := o[name].(bool); return b }
func (o Object) Sub(name string) Object { s, _ := o[name].(Object); return s }
func (o Object) List(name string) []any { l, _ := o[name].([]any); return l }

// Clone copies the object with all that is in it.
func (o Object) Clone() Object { return CloneValue(o).(Object) }

func CloneValue(v any) any {
	switch v := v.(type) {
	case Object:
		c := make(Object, len(v))
		for name, value := range v {
			c[name] = CloneValue(value)
		}
		return c
	case []any:
		c := slices.Clone(v)
		for i := range c {
			c[i] = CloneValue(c[i])
		}
		return c
	}
	return v
}

// With returns a copy of the object with the member set.
func (o Object) With(name string, value any) Object {
	o = maps.Clone(o)
	o[name] = value
	return o
}

func (o Object) SetIfThere(name string, value any) {
	if _, there := o[name]; there {
		o[name] = value
	}
}

// ListOf is a list that is a member of an object, or an answer that is never paged: all of
// data, in its order.
func ListOf(data []any, url string) Object {
	if data == nil {
		data = []any{}
	}
	return Object{"object": "list", "data": data, "has_more": false, "url": url}
}

// MadeAt is when the object was made, in Unix seconds.
func MadeAt(o Object) int64 {
	if at, ok := o["created"].(int64); ok {
		return at
	}
	return o.Num("_created")
}

// ShownOf is a copy of the object without the fake's own members, as it is at this moment.
func ShownOf(o Object) Object {
	s := o.Clone()
	for name := range s {
		if strings.HasPrefix(name, "_") {
			delete(s, name)
		}
	}
	return s
}

// ObjectsOf returns the objects of a list.
func ObjectsOf(list []any) []Object {
	objects := make([]Object, len(list))
	for i, v := range list {
		objects[i], _ = v.(Object)
	}
	return objects
}
