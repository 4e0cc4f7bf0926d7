// Package view defines the JSON form of each noun, such as an account or a receipt, once for the
// command line, the HTTP API and deliveries.
//
// It does not read a store, and does not format text for human readers.
package view

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

// An Object is the JSON form of a noun, as alternating names and values. A member whose name ends
// with ? is omitted if its value is empty. IDs have no key prefix, dates are formatted as
// 2026-01-31, timestamps are in UTC with milliseconds, and amounts are integers in the
// currency's minor units.
type Object []any

// MarshalJSON implements json.Marshaler. It does not escape HTML, because the encoder that
// calls it does so if needed.
func (o Object) MarshalJSON() ([]byte, error) { return o.append(make([]byte, 0, 512), false) }

func (o Object) append(b []byte, escapeHTML bool) (_ []byte, err error) {
	separator := byte('{')
	for i := 0; i+1 < len(o) && err == nil; i += 2 {
		if !o.leavesOut(i + 1) {
			b = append(append(append(b, separator, '"'), strings.TrimSuffix(o[i].(string), "?")...), '"', ':')
			b, err = Append(b, o[i+1], escapeHTML)
			separator = ','
		}
	}
	if separator == '{' {
		b = append(b, separator)
	}
	return append(b, '}'), err
}

// leavesOut reports whether the member with the value at this index is optional and empty.
func (o Object) leavesOut(at int) bool {
	v := reflect.ValueOf(o[at])
	member, nested := o[at].(Object)
	return strings.HasSuffix(o[at-1].(string), "?") && (!v.IsValid() || v.IsZero() || nested && member.empty())
}

// empty reports whether the object leaves out all of its members.
func (o Object) empty() bool {
	for i := 1; i < len(o); i += 2 {
		if !o.leavesOut(i) {
			return false
		}
	}
	return true
}

// Place returns the index of the named member's value, or -1 if there is no such member.
func (o Object) Place(name string) int {
	for i := 0; i+1 < len(o); i += 2 {
		if strings.TrimSuffix(o[i].(string), "?") == name {
			return i + 1
		}
	}
	return -1
}

// Shown returns the value at the index, or nil if the object omits it.
func (o Object) Shown(at int) any {
	if o.leavesOut(at) {
		return nil
	}
	return o[at]
}

// Append appends the value as JSON. It encodes the usual types itself, because a new encoder for each
// value takes three times as long.
func Append(b []byte, v any, escapeHTML bool) ([]byte, error) {
	switch t := v.(type) {
	case time.Time:
		return append(append(append(b, '"'), Stamp(t)...), '"'), nil
	case civil.Date:
		return append(append(append(b, '"'), Date(t)...), '"'), nil
	case string:
		if !strings.ContainsFunc(t, isEscaped) {
			return append(append(append(b, '"'), t...), '"'), nil
		}
	case int:
		return strconv.AppendInt(b, int64(t), 10), nil
	case money.Amount:
		return strconv.AppendInt(b, t.Minor(), 10), nil
	case bool:
		return strconv.AppendBool(b, t), nil
	case Object:
		return t.append(b, escapeHTML)
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice && rv.IsNil() {
		return append(b, "[]"...), nil
	}
	out := bytes.NewBuffer(b)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(escapeHTML)
	err := enc.Encode(v)
	text := bytes.TrimSuffix(out.Bytes()[len(b):], []byte("\n"))
	return append(b, secret.Visible(string(text))...), err
}

// isEscaped reports whether JSON, or JSON embedded in HTML, may escape the character.
func isEscaped(r rune) bool {
	return r < ' ' || r > '~' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&'
}

// StampLayout is the time layout of every timestamp.
const StampLayout = "2006-01-02T15:04:05.000Z"

// Stamp returns the time as a timestamp, or "" for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(StampLayout)
}

// Date returns the date, or "" for the zero date.
func Date(d civil.Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// List returns the view of each element. For no elements, it returns an empty list and not nil.
func List[T any](all []T, view func(T) Object) []Object {
	list := make([]Object, len(all))
	for i, v := range all {
		list[i] = view(v)
	}
	return list
}
