package shape

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseForm(t *testing.T) {
	for text, want := range map[string]Form{
		"":                                  {},
		"a=1&b=x+y%26":                      {"a": "1", "b": "x y&"},
		"a=1&a=2":                           {"a": "2"},
		"a":                                 {"a": ""},
		"a[b][c]=1&a[d]=2":                  {"a": Form{"b": Form{"c": "1"}, "d": "2"}},
		"a[]=1&a[]=2":                       {"a": []any{"1", "2"}},
		"a[1]=y&a[0]=x":                     {"a": []any{"x", "y"}},
		"a[10]=c&a[9]=b":                    {"a": []any{"b", "c"}},
		"a[0][p]=1&a[0][q]=2&a[1][p]=3":     {"a": []any{Form{"p": "1", "q": "2"}, Form{"p": "3"}}},
		"a[][p]=1&a[][q]=2&a[][p]=3":        {"a": []any{Form{"p": "1", "q": "2"}, Form{"p": "3"}}},
		"a[]=z&a[1]=y&a[0]=x":               {"a": []any{"x", "y", "z"}},
		"metadata[0]=x":                     {"metadata": Form{"0": "x"}},
		"items[0][metadata][7]=x":           {"items": []any{Form{"metadata": Form{"7": "x"}}}},
		"metadata=":                         {"metadata": ""},
		"%61%5Bb%5D=1":                      {"a": Form{"b": "1"}},
		"a[x]=1&a[0]=2":                     {"a": Form{"x": "1", "0": "2"}},
		"a[0][]=1&a[0][]=2&b=%F0%9F%98%80&": {"a": []any{[]any{"1", "2"}}, "b": "😀"},
	} {
		got, err := ParseForm(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"a[=1", "a]=1", "[a]=1", "=1", "a[b]c=1", "a[[b]]=1", "a=%", "%ff=1", "a=1&a[b]=2",
		"a[b]=1&a=2", "a[b]=1&a[b][c]=2",
		"a" + strings.Repeat("[b]", maxDepth) + "=1", strings.Repeat("a=1&", maxParams+1)} {
		if got, err := ParseForm(text); err == nil {
			t.Errorf("%.40s: got %v, want an error", text, got)
		}
	}
}

// TestParseForm_Encoded: what is written with brackets is read as it was, in any order of
// the parameters.
func TestParseForm_Encoded(t *testing.T) {
	name := rapid.StringMatching(`[a-z_]{1,4}`)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		text := rapid.Map(rapid.String(), func(s string) any { return strings.ToValidUTF8(s, "") })
		if depth == 0 {
			return text
		}
		return rapid.OneOf(text,
			rapid.Map(rapid.SliceOfN(value(depth-1), 1, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(name, value(depth-1), 1, 3), func(m map[string]any) any { return Form(m) }))
	}
	rapid.Check(t, func(r *rapid.T) {
		want := Form(rapid.MapOfN(name, value(3), 0, 4).Draw(r, "Form"))
		var pairs []string
		for name, v := range want {
			pairs = append(pairs, encodeForm(name, v)...)
		}
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		shuffle.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		got, err := ParseForm(strings.Join(pairs, "&"))
		if err != nil || !reflect.DeepEqual(got, want) {
			r.Fatalf("%v: got %v, %v, want %v", pairs, got, err, want)
		}
	})
}

func encodeForm(name string, v any) (pairs []string) {
	switch v := v.(type) {
	case Form:
		for sub, e := range v {
			pairs = append(pairs, encodeForm(name+"["+sub+"]", e)...)
		}
	case []any:
		for i, e := range v {
			pairs = append(pairs, encodeForm(fmt.Sprintf("%s[%d]", name, i), e)...)
		}
	case string:
		pairs = []string{url.QueryEscape(name) + "=" + url.QueryEscape(v)}
	}
	return pairs
}

func TestForm_At(t *testing.T) {
	f, err := ParseForm("a[b][c]=1&d=2&l[]=x")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"a[b][c]": "1", "d": "2", "a[x][c]": nil, "d[e]": nil, "e": nil, "l[0]": nil,
		"[": nil} {
		if got, _ := f.At(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func FuzzParseForm(f *testing.F) {
	for _, text := range []string{"a[0][b]=c&a[][d]=e", "metadata[0]=1", "expand[]=x", "a[\x00" + "0]=1&a[]=2",
		"a[99999999999]=1&a[1]=2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseForm(text)
		if (got == nil) == (err == nil) {
			t.Fatalf("got %v, %v, want one of them", got, err)
		}
		again, err2 := ParseForm(text)
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(got, again) {
			t.Fatalf("got %v and then %v", got, again)
		}
	})
}
