package shape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
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

// CloneValue copies a value and everything in it.
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

// Deleted returns the stub of a deleted object.
func (o Object) Deleted() Object {
	return Object{"id": o["id"], "object": o["object"], "deleted": true}
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

// Walk calls visit for each object in a value, inner ones first.
func Walk(v any, visit func(Object)) {
	switch v := v.(type) {
	case Object:
		for _, inner := range v {
			Walk(inner, visit)
		}
		visit(v)
	case []any:
		for _, inner := range v {
			Walk(inner, visit)
		}
	}
}

// Strip removes the private members, and returns the object.
func (o Object) Strip() Object {
	isPrivate := func(name string, _ any) bool { return strings.HasPrefix(name, "_") }
	Walk(o, func(o Object) { maps.DeleteFunc(o, isPrivate) })
	return o
}

// ObjectsOf returns the objects of a list.
func ObjectsOf(list []any) []Object {
	objects := make([]Object, len(list))
	for i, v := range list {
		objects[i], _ = v.(Object)
	}
	return objects
}

// Pick returns an object with copies of these members.
func (o Object) Pick(names string) Object {
	picked := Object{}
	for name := range strings.FieldsSeq(names) {
		picked[name] = CloneValue(o[name])
	}
	return picked
}

// Zero sets the members to the number 0, and returns the object.
func (o Object) Zero(names string) Object { return o.set(names, int64(0)) }

// Null sets the members to null, and returns the object.
func (o Object) Null(names string) Object { return o.set(names, nil) }

func (o Object) set(names string, value any) Object {
	for name := range strings.FieldsSeq(names) {
		o[name] = value
	}
	return o
}

// MaxAmount is the largest amount, of eight digits as for nearly every currency.
const MaxAmount = 99_999_999

// OrNil returns the text; null if it is empty.
func OrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Texts are the texts of a list; never nil.
func Texts(list []any) []any {
	return slices.DeleteFunc(append([]any{}, list...), func(v any) bool { _, text := v.(string); return !text })
}

// IsPublic reports whether any of the members is shown.
func IsPublic(previous Object) bool { return len(previous.Clone().Strip()) > 0 }

// Differences returns the members of before that differ in o, as they were. Of an inner object it
// has the differing members, of a list the whole. Private members are among them, because old
// versions show some.
func Differences(before, o Object) Object {
	previous := Object{}
	for name, was := range before {
		is := o[name]
		if reflect.DeepEqual(was, is) {
			continue
		}
		a, aIs := was.(Object)
		b, bIs := is.(Object)
		if aIs && bIs && !isWhole(name) {
			if inner := Differences(a, b); len(inner) > 0 {
				previous[name] = inner
			}
			continue
		}
		previous[name] = was
	}
	for name := range o {
		if _, was := before[name]; !was {
			previous[name] = nil
		}
	}
	return previous
}

// isWhole says which lists differ as a whole.
func isWhole(name string) bool { return name == "items" || name == "lines" }

// PutBack takes the differences back, in place.
func PutBack(o, previous Object) {
	for name, was := range previous {
		inner, changed := was.(Object)
		if now := o.Sub(name); changed && now != nil && !isWhole(name) {
			PutBack(now, inner)
			continue
		}
		o[name] = CloneValue(was)
	}
}

// Encode writes an answer or an event as JSON.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return []byte(`{"error":{"type":"api_error","message":"A bug in stripefake: the response cannot be encoded as JSON."}}`)
	}
	return b.Bytes()
}

// MarshalJSON implements json.Marshaler: id and object come first, the others by the alphabet.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := o.write(&b)
	return b.Bytes(), err
}

// write writes the object and inner objects. json would read the text of an inner Marshaler again.
func (o Object) write(b *bytes.Buffer) error {
	rest := json.NewEncoder(b)
	rest.SetEscapeHTML(false)
	if o == nil {
		return rest.Encode(nil)
	}
	b.WriteByte('{')
	for i, name := range slices.SortedFunc(maps.Keys(o), byRank) {
		if i > 0 {
			b.WriteByte(',')
		}
		err := rest.Encode(name)
		b.WriteByte(':')
		if inner, ok := o[name].(Object); ok {
			err = cmp.Or(err, inner.write(b))
		} else {
			err = cmp.Or(err, rest.Encode(o[name]))
		}
		if err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// byRank compares names of members: id is the first, object the second.
func byRank(a, b string) int {
	rank := func(name string) int { return slices.Index([]string{"object", "id"}, name) }
	return cmp.Or(rank(b)-rank(a), cmp.Compare(a, b))
}
