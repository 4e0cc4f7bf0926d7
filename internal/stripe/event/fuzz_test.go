package event

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/tracking"
)

// FuzzDecodeEvent: nothing makes it panic, what it takes is JSON, and what it says is what
// encoding/json finds there.
func FuzzDecodeEvent(f *testing.F) {
	for _, body := range documentedBodies(f) {
		f.Add(body)
	}
	f.Add([]byte(eventWith(`{"object":"payment_intent","id":"pi_\u0031","amount":-1e2,"status":"\ud800","created":007}`)))
	f.Add([]byte(eventWith(`{"metadata":{"duesday_installation":"a","duesday_installation":7},"refunds":{"data":[[],{"id":"re_1"}]},"object":"charge"}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := jsonReader{text: body}
		if r.skip(); r.end() != json.Valid(body) && !strings.Contains(string(body), strings.Repeat("[", 100)) &&
			strings.Count(string(body), "{") < 100 {
			t.Errorf("is it JSON? The reader says %t", r.end())
		}
		e, err := Decode(body)
		if err != nil {
			if !errors.Is(err, tracking.ErrBody) || !reflect.DeepEqual(e, tracking.Event{}) {
				t.Errorf("got %+v, %v", e, err)
			}
			return
		}
		var plain map[string]any
		if err := json.Unmarshal(body, &plain); err != nil {
			t.Fatalf("it is not JSON: %v", err)
		}
		data, _ := plain["data"].(map[string]any)
		object, _ := data["object"].(map[string]any)
		if e.Object.Thin {
			object, _ = plain["related_object"].(map[string]any)
		}
		if id, _ := object["id"].(string); e.ID != plain["id"] || cmp.Or(e.ToldType, e.Type) != plain["type"] ||
			e.Object.ID != "" && e.Object.ID != id {
			t.Errorf("got %+v", e)
		}
		if !utf8.ValidString(e.Object.Status + e.Object.Code + e.Object.Tag.Installation + e.APIVersion + e.Object.Kind) {
			t.Errorf("not UTF-8: %+v", e)
		}
		again, err := Decode(body)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("once more: %+v, %v; first %+v", again, err, e)
		}
	})
}

// FuzzJSONReader: a value is read as encoding/json reads it.
func FuzzJSONReader(f *testing.F) {
	for _, text := range []string{`"a"`, `"\u00e4\n\ud83d\ude00\ud800"`, "\"\xff\"", "12", "-0", "1.5", "1e3",
		"9223372036854775807", "-9223372036854775808", "true", "null", `[1,"a"]`, `{"a":1,"b":{"\u0061":[]}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || len(text) > 400 {
			return
		}
		var want any
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		r := jsonReader{text: text}
		if got := r.any(); !reflect.DeepEqual(got, want) || !r.end() {
			t.Errorf("%s: got %#v, want %#v", text, got, want)
		}
	})
}

// any takes the next value, whatever it is, as encoding/json would.
func (r *jsonReader) any() any {
	switch c := r.peek(); c {
	case '{':
		m := map[string]any{}
		for name := range r.members() {
			key := string([]rune(string(name))) // a name's bytes are left as they are
			m[key] = r.any()
		}
		return m
	case '[':
		list := []any{}
		for range r.elements() {
			list = append(list, r.any())
		}
		return list
	case '"':
		return r.str()
	case 't', 'f':
		is, _ := r.flag()
		return is
	case 'n':
		r.null()
		return nil
	}
	begin := r.at
	n := r.number()
	text := json.Number(r.text[begin:r.at])
	// number leaves out what is not whole, and the last few that an int64 has.
	if i, err := text.Int64(); err == nil && i != n && i < 922337203685477580 && i > -922337203685477580 {
		return n
	}
	return text
}

func BenchmarkDecodeEvent(b *testing.B) {
	body := documentedBodies(b)["2022-11-15--invoice.paid"]
	// As large as an invoice of Stripe's: most of it is of no interest here.
	padding := `"lines": {"data": [` +
		strings.TrimSuffix(strings.Repeat(`{"id": "il_1", "object": "line_item", "amount": 1500, "discountable": true, "period": {"end": 1769904000, "start": 1767225600}, "tax_rates": []},`, 20), ",") + `]},`
	body = []byte(strings.Replace(string(body), `"lines": {`, padding+`"more": {`, 1))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if e, err := Decode(body); err != nil || e.Object.Payment != "pi_1" {
			b.Fatal(e, err)
		}
	}
}
