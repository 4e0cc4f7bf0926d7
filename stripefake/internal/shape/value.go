package shape

import (
	"maps"
	"slices"
	"strings"
)

// An Object is one of Stripe's, in the newest shape, with ids for the objects it refers to. A
// member whose name begins with an underscore is private and never shown. Numbers are int64, lists
// []any, maps Object.
type Object map[string]any

func (o Object) ID() string             { return o.Str("id") }
func (o Object) Str(name string) string { s, _ := o[name].(string); return s }
func (o Object) Num(name string) int64  { n, _ := o[name].(int64); return n }
func (o Object) Yes(name string) bool   { b, _ := o[name].(bool); return b }
func (o Object) Sub(name string) Object { s, _ := o[name].(Object); return s }
func (o Object) List(name string) []any { l, _ := o[name].([]any); return l }

// Clone copies the object and everything in it.
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

// ListOf returns a list without pages: all of data, in its order.
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

// ShownOf copies the object as it is now, without private members.
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

// Null sets the members to null, and returns the object.
func (o Object) Null(names string) Object {
	for name := range strings.FieldsSeq(names) {
		o[name] = nil
	}
	return o
}
