package shape

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"
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
	for range 100 {
		seed := rand.Uint64()
		dice := rand.New(rand.NewPCG(seed, 0))
		want := someForm(dice, 4, 3)
		var pairs []string
		for name, v := range want {
			pairs = append(pairs, encodeForm(name, v)...)
		}
		dice.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		got, err := ParseForm(strings.Join(pairs, "&"))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %v: got %v, %v, want %v", seed, pairs, got, err, want)
		}
	}
}

// someForm draws a form with up to n names and values that are forms and lists down to the depth.
func someForm(dice *rand.Rand, n, depth int) Form {
	f := Form{}
	for range dice.IntN(n + 1) {
		name := make([]byte, 1+dice.IntN(4))
		for i := range name {
			name[i] = "abcdefghijklmnopqrstuvwxyz_"[dice.IntN(27)]
		}
		f[string(name)] = someValue(dice, depth)
	}
	return f
}

// letters are those that forms escape, or might take apart.
var letters = []rune("aZ09 _-&=%+[]\"'\n\x00\u007fäß€😀\ufffd")

func someValue(dice *rand.Rand, depth int) any {
	switch kind := dice.IntN(3); {
	case depth > 0 && kind == 0:
		list := make([]any, 1+dice.IntN(3))
		for i := range list {
			list[i] = someValue(dice, depth-1)
		}
		return list
	case depth > 0 && kind == 1:
		if f := someForm(dice, 3, depth-1); len(f) > 0 {
			return f
		}
	}
	text := make([]rune, dice.IntN(6))
	for i := range text {
		text[i] = letters[dice.IntN(len(letters))]
	}
	return string(text)
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
