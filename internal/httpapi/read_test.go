package httpapi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

// FuzzOrder: what is taken for an order is one to everybody: encoding/json reads the same from
// it, no other field is in it, and no field twice.
func FuzzOrder(f *testing.F) {
	for _, seed := range []string{
		`{"merchant":"a","kind":"legacy","amount":1299,"currency":"EUR"}`, `{"amount":1,"amount":2}`, `{"Amount":1}`,
		`{"name":{"a":[1,{}]}}`,
		`{"name":"\ud800"}`, `{} {}`, `{"a":1e999}`, `[`, `{"payments":null}`, "{\"name\":\"\xff\"}", `{"amount":1.0}`,
		`{"ſ":1}`,
	} {
		f.Add([]byte(seed))
	}
	request := &web.Request{Request: httptest.NewRequest("POST", "/v1/purchases", nil), Server: web.New(web.Options{})}
	var names []string
	for field := range reflect.TypeFor[tracking.Order]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got tracking.Order
		err := web.Decode(text, &got)
		if err != nil {
			p, known := request.ProblemOf(err)
			if !known || (p.Status != 400 && p.Status != 422) || p.Error() == "" || strings.ContainsAny(p.Error(), "\n\r") ||
				len(p.Error()) > 310 {
				t.Fatalf("%q: got %+v", text, p)
			}
			return
		}
		var want tracking.Order
		if err := json.Unmarshal(text, &want); err != nil || got != want {
			t.Fatalf("%q: got %+v, want %+v, %v", text, got, want, err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for name := range maps.Keys(fields) {
			if !slices.Contains(names, name) {
				t.Fatalf("%q: the field %q was taken", text, name)
			}
		}
		keys := 0 // every value is plain, so names and values take turns
		in := json.NewDecoder(bytes.NewReader(text))
		for token, err := in.Token(); err == nil; token, err = in.Token() {
			if _, delim := token.(json.Delim); !delim {
				keys++
			}
		}
		if keys != 2*len(fields) {
			t.Fatalf("%q: %d names and values for %d fields", text, keys, len(fields))
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var twice tracking.Order
		if err := web.Decode(again, &twice); err != nil || twice != got {
			t.Fatalf("%q became %s: %+v, %v", text, again, twice, err)
		}
	})
}
