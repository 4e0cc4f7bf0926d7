package spectest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// An Unusual body is legal JSON that few programs send.
type Unusual struct {
	Text   string
	Member string // the one member that differs; "": none; "#": one that the operation does not have
	Value  string // of the member
	Same   bool   // the body means the same as the usual one
}

// unusual are values that a member can have instead of its own.
var unusual = []string{"1e2", "-0", "1.0", "0.1", "1E400", "-1", "9007199254740993", "9223372036854775807", "9223372036854775808",
	"99999999999999999999999999", `""`, `" "`, `"\u0000"`, `"\ud800"`, `"\uFEFFx"`, `"İ"`, `"👩‍👧"`, `"\u202eabc"`, `"../.."`, `"a/b"`, `"%00"`, `"-1"`,
	`"9999-12-31"`, `"0000-00-00"`, `"2027-02-30"`, `"10000-01-01T00:00:00.000Z"`, `"0000-01-01T00:00:00.000Z"`, `"2027-01-31T23:59:60.000Z"`,
	strconv.Quote(strings.Repeat("é", 3000)), "null", "true", "[]", "{}", `[[]]`, `[null]`, `[""]`, `["a",1]`, `{"":""}`, `{"a":{"b":{"c":[]}}}`}

// UnusualBodies returns unusual forms of a body, each of its members with unusual values, and bodies with more
// members. members are the names that the operation knows.
func UnusualBodies(body map[string]any, members []string) (all []Unusual) {
	text := func(name string, value any) string {
		v, ok := value.(json.RawMessage)
		if !ok {
			v, _ = json.Marshal(value) // it comes from JSON
		}
		return name + ":" + string(v)
	}
	object := func(members ...string) string { return "{" + strings.Join(members, ",") + "}" }
	var usual, escaped []string
	for _, name := range slices.Sorted(maps.Keys(body)) {
		usual = append(usual, text(strconv.Quote(name), body[name]))
		var hex strings.Builder
		for _, r := range name {
			hex.WriteString(`\u00` + strconv.FormatInt(int64(r), 16))
		}
		escaped = append(escaped, text(`"`+hex.String()+`"`, body[name]))
	}
	slices.Reverse(usual)
	all = append(all, Unusual{Text: object(usual...), Same: true}, Unusual{Text: object(escaped...), Same: true},
		Unusual{Text: "\r\n\t {" + strings.Join(usual, " ,\n") + "}\n\n", Same: true}, Unusual{Text: "{}"},
		Unusual{Text: "\uFEFF" + object(usual...)})
	for _, name := range members {
		rest := maps.Clone(body)
		delete(rest, name)
		var others []string
		for _, other := range slices.Sorted(maps.Keys(rest)) {
			others = append(others, text(strconv.Quote(other), rest[other]))
		}
		for _, value := range unusual {
			all = append(all, Unusual{Text: object(append(others, text(strconv.Quote(name), json.RawMessage(value)))...), Member: name, Value: value})
		}
		for _, more := range []string{strings.ToUpper(name), name + " ", strings.Replace(name, "s", "ſ", 1) + "\u200b", "", "__proto__"} {
			all = append(all, Unusual{Text: object(append(slices.Clone(usual), text(strconv.Quote(more), 1))...), Member: "#"})
		}
	}
	return all
}

// IsOf reports whether the value of the member is of a JSON type of the schema. A number with a fraction or an
// exponent is not an integer, although it may be whole.
func (u *Unusual) IsOf(schema *openapi3.Schema) bool {
	switch u.Value[0] {
	case '"':
		return schema.Type.Is("string")
	case '{':
		return schema.Type.Is("object")
	case '[':
		return schema.Type.Is("array")
	case 't':
		return schema.Type.Is("boolean")
	case 'n':
		return false
	}
	_, err := strconv.ParseInt(u.Value, 10, 64)
	return schema.Type.Is("integer") && err == nil
}
