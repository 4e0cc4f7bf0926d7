package view

import (
	"reflect"
	"strings"
)

// A Difference is one member of an object that a command has changed.
type Difference struct {
	Name          string
	Before, After any
}

// Differences compares two views with the same members and returns the members that differ, except for
// the version.
func Differences(was, now Object) (all []Difference) {
	for i := 0; i < len(now); i += 2 {
		if before, after := was.Shown(i+1), now.Shown(i+1); now[i] != "version" && !reflect.DeepEqual(before, after) {
			all = append(all, Difference{strings.TrimSuffix(now[i].(string), "?"), before, after})
		}
	}
	return all
}
