package shape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Encode writes an answer or an event as JSON.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return []byte(`{"error":{"type":"api_error","message":"An error of the fake: the answer has no JSON form."}}`)
	}
	return b.Bytes()
}

// MarshalJSON implements json.Marshaler: id and object come first, as in Stripe's answers,
// and the others in alphabetical order.
func (o Object) MarshalJSON() ([]byte, error) {
	w := jsonWriter{}
	w.rest = json.NewEncoder(&w.Buffer)
	w.rest.SetEscapeHTML(false)
	err := w.write(o)
	return w.Bytes(), err
}

// A jsonWriter writes objects and lists, member by member.
type jsonWriter struct {
	bytes.Buffer
	rest *json.Encoder // of all other values
}

func (w *jsonWriter) write(v any) error {
	switch v := v.(type) {
	case Object:
		if v == nil {
			return w.rest.Encode(nil)
		}
		separator := byte('{')
		for _, name := range slices.SortedFunc(maps.Keys(v), byRank) {
			w.WriteByte(separator)
			separator = ','
			if err := w.rest.Encode(name); err != nil {
				return err
			}
			w.WriteByte(':')
			if err := w.write(v[name]); err != nil {
				return err
			}
		}
		if len(v) == 0 {
			w.WriteByte(separator)
		}
		w.WriteByte('}')
		return nil
	case []any:
		if v == nil {
			return w.rest.Encode(nil)
		}
		w.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := w.write(e); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	}
	return w.rest.Encode(v)
}

func byRank(a, b string) int {
	rank := func(name string) int {
		switch name {
		case "id":
			return 0
		case "object":
			return 1
		}
		return 2
	}
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
}
