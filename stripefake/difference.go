package stripefake

import (
	"reflect"
	"strings"
)

// isPublic says whether anything that is shown has changed.
func isPublic(previous object) bool {
	for name := range previous {
		if !strings.HasPrefix(name, "_") {
			return true
		}
	}
	return false
}

// differences are the members of before that are others in o, as they were: of an object
// within, only those members of it that differ; of a list, all of it. Private ones are among
// them, as old versions show some of them in their way.
func differences(before, o object) object {
	previous := object{}
	for name, was := range before {
		is := o[name]
		if reflect.DeepEqual(was, is) {
			continue
		}
		a, aIs := was.(object)
		b, bIs := is.(object)
		if aIs && bIs && !isWhole(name) {
			if inner := differences(a, b); len(inner) > 0 {
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

// putBack takes the differences back, in place.
func putBack(o, previous object) {
	for name, was := range previous {
		inner, changed := was.(object)
		if now := o.sub(name); changed && now != nil && !isWhole(name) {
			putBack(now, inner)
			continue
		}
		o[name] = cloneValue(was)
	}
}
