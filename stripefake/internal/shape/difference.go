package shape

import (
	"reflect"
	"strings"
)

// IsPublic reports whether any of the members is shown.
func IsPublic(previous Object) bool {
	for name := range previous {
		if !strings.HasPrefix(name, "_") {
			return true
		}
	}
	return false
}

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
