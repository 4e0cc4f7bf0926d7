package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/web"
)

// An inner and an outer form have every kind of field that forms have.
type (
	inner struct {
		Flag bool     `json:"flag"`
		List []string `json:"list"`
	}
	outer struct {
		Text   string    `json:"text"`
		Amount int64     `json:"amount"`
		Count  *int      `json:"count"`
		At     time.Time `json:"at"`
		Inner  *inner    `json:"inner"`
		All    []inner   `json:"all"`
		Hidden string    `json:"-"`
	}
)

// A drawn body has the pointers of its wrong fields.
type drawn struct {
	t     *rapid.T
	wrong []string
}

// yes is true in that share of draws. It spreads the numbers of rapid, which prefers small ones.
func (d *drawn) yes(label string, percent uint64) bool {
	return rapid.Uint64().Draw(d.t, label)*0x9E3779B97F4A7C15>>32%100 >= 100-percent
}

// text is a value that no answer may repeat. Its first letters tell it from our own words. Some values look
// like the parts of errors that an answer rewrites.
func (d *drawn) text() string {
	return "Canary-" + rapid.OneOf(rapid.StringN(0, 20, 60),
		rapid.SampledFrom([]string{"-flag-a", " (got x) y", " --a (got", "\"\n) --b"})).Draw(d.t, "text")
}

// other returns a JSON value of none of the kinds.
func (d *drawn) other(at string, kinds ...string) string {
	d.wrong = append(d.wrong, at)
	all := map[string]string{"string": strconv.Quote("Canary-1"), "number": "4711.25", "bool": "true", "null": "null", "object": `{"canary":"Canary-2"}`, "list": `["Canary-3"]`}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return slices.Contains(kinds, name) })
	return all[rapid.SampledFrom(names).Draw(d.t, "other")]
}

// member is a value of the kind, right or not.
func (d *drawn) member(at, kind string, right func() string) string {
	if d.yes("wrong", 10) {
		return d.other(at, kind)
	}
	return right()
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string has a JSON form
	return string(b)
}

func (d *drawn) inner(at string) string {
	return d.object(at, []string{"flag", "list"}, func(name, at string) string {
		if name == "flag" {
			return d.member(at, "bool", func() string { return "true" })
		}
		return d.member(at, "list", func() string {
			return d.list(at, func(at string) string { return d.member(at, "string", func() string { return quoted(d.text()) }) })
		})
	})
}

func (d *drawn) list(at string, one func(at string) string) string {
	var all []string
	for i := range rapid.IntRange(0, 3).Draw(d.t, "length") {
		all = append(all, one(at+"/"+strconv.Itoa(i)))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// object draws an object with some of the names in any order, and perhaps with unknown ones.
func (d *drawn) object(at string, names []string, value func(name, at string) string) string {
	var all []string
	for _, name := range rapid.Permutation(names).Draw(d.t, "names") {
		if d.yes("there", 80) {
			all = append(all, quoted(name)+": "+value(name, at+"/"+name))
		}
	}
	if d.yes("unknown", 15) {
		d.wrong = append(d.wrong, at)
		for i := range rapid.IntRange(1, 2).Draw(d.t, "how many") {
			name := rapid.SampledFrom([]string{"canary", strings.ToUpper(names[0]), "Hidden", "-", ""}).Draw(d.t, "name")
			all = append(all, quoted(name+strings.Repeat("x", i*7))+": "+d.text2())
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (d *drawn) text2() string { return quoted(d.text()) }

func (d *drawn) outer() string {
	return d.object("#", []string{"text", "amount", "count", "at", "inner", "all"}, func(name, at string) string {
		switch name {
		case "text":
			return d.member(at, "string", d.text2)
		case "inner":
			return d.member(at, "object", func() string { return d.inner(at) })
		case "all":
			return d.member(at, "list", func() string {
				return d.list(at, func(at string) string { return d.member(at, "object", func() string { return d.inner(at) }) })
			})
		case "at":
			return d.member(at, "", func() string { return `"2027-01-31T10:30:00.5+01:00"` })
		}
		return d.member(at, "", func() string { return strconv.Itoa(rapid.IntRange(-1e6, 1e6).Draw(d.t, "number")) })
	})
}

// TestDecode_Property: the decoder takes what encoding/json takes if every field is right, and else names
// exactly the wrong fields, without their values and without unknown names.
func TestDecode_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &drawn{t: t}
		text := d.outer()
		var got, want outer
		err := web.Decode([]byte(text), &got)
		if len(d.wrong) == 0 {
			if known := json.Unmarshal([]byte(text), &want); err != nil || known != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: got %+v, %v, want %+v, %v", text, got, err, want, known)
			}
			return
		}
		p, ok := errors.AsType[*web.Problem](err)
		if !ok || p.Status != http.StatusUnprocessableEntity {
			t.Fatalf("%s: got %v, want the problem of %q", text, err, d.wrong)
		}
		var named []string
		for _, f := range p.Errors {
			named = append(named, f.Pointer)
		}
		slices.Sort(named)
		slices.Sort(d.wrong)
		if shown := fmt.Sprintf("%+v", p); !slices.Equal(named, d.wrong) || strings.Contains(strings.ToLower(shown), "canary") ||
			strings.Contains(shown, "4711") {
			t.Fatalf("%s: got %s, want the fields %q", text, shown, d.wrong)
		}
	})
}

// TestProblems_Property: any body with any header, path and parameter gets an answer below 500. A problem has
// no value of the request, even if the error of the route repeats them all.
func TestProblems_Property(t *testing.T) {
	var repeated []string // the values that the error repeats
	known := errors.New("the object's state does not allow this")
	fail := func(_ http.ResponseWriter, r *web.Request) error {
		var form outer
		if err := r.Read(&form); err != nil {
			return err
		}
		all := strings.Join(append([]string{r.PathValue("id"), form.Text}, repeated...), " / ")
		return map[string]error{"field": field.Wrong("text", "must be another, not "+all), "got": field.Wrong("amount", fmt.Sprintf("must be 1 (got %q)", form.Text)),
			"joined": errors.Join(field.Wrong("text", all), fmt.Errorf("x: %w", field.Wrong("amount", all))),
			"kind":   fmt.Errorf("%s: %w", all, known)}[r.PathValue("how")]
	}
	s := web.New(web.Options{Keys: ring{}, Kinds: []web.Kind{{Is: known, Status: 409, Code: "state", Title: "The state"}},
		Routes: []web.Route{{Pattern: "POST /v1/things/{id}/{how}", Operation: "createThing", Scope: key.Write, Do: fail}}})
	rapid.Check(t, func(t *rapid.T) {
		d := &drawn{t: t}
		text := d.outer()
		if d.yes("broken", 20) {
			b := []byte(text)
			b[rapid.IntRange(0, len(b)-1).Draw(t, "place")] = rapid.Byte().Draw(t, "byte")
			text = string(b)
		}
		id, idempotency := d.text(), "Canary-9"
		repeated = []string{idempotency}
		path := "/v1/things/" + url.PathEscape(id) + "/" + rapid.SampledFrom([]string{"field", "got", "joined", "kind", "none"}).Draw(t, "how")
		if d.yes("query", 10) {
			path += "?canary=" + url.QueryEscape(d.text())
		}
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(text))
		r.Header = http.Header{"Authorization": {"Bearer write"}, "Idempotency-Key": {idempotency},
			"Content-Type": {rapid.SampledFrom([]string{"application/json", "application/json", "Canary/json", "application/json; a=Canary"}).Draw(t, "type")}}
		a := httptest.NewRecorder()
		s.ServeHTTP(a, r)
		var p struct {
			Type, Title, Detail, Code string
			Status                    int
			RequestID                 string `json:"request_id"`
			Errors                    []web.FieldProblem
		}
		if a.Code == http.StatusOK {
			return
		}
		if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code >= 500 || p.Status != a.Code || p.Title == "" || p.Code == "" ||
			p.Type != "/docs#error-"+p.Code || p.RequestID != a.Header().Get("Request-Id") || (p.Code == "field") != (len(p.Errors) > 0) {
			t.Fatalf("%s %s: got %d %s, %v", path, text, a.Code, a.Body, err)
		}
		if strings.Contains(strings.ToLower(a.Body.String()), "canary") {
			t.Fatalf("%s %s: the problem repeats a value: %s", path, text, a.Body)
		}
	})
}
