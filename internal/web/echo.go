package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The parts of an error's text, of a pattern and of a body that WithoutValues looks for.
var (
	got  = regexp.MustCompile(` *\(got .*\)`)
	name = regexp.MustCompile(`\{(\w+)\}`)
	word = regexp.MustCompile(`^[a-z_]*$`) // perhaps a word of ours, such as a scope
	flag = regexp.MustCompile(`--([a-z][a-z-]*)`)
)

// WithoutValues returns an error's text without values of the request: commands may repeat what a person
// has typed, but an answer that repeats values carries them into the logs of others.
func (r *Request) WithoutValues(text string) string {
	text = got.ReplaceAllString(text, "")
	text = flag.ReplaceAllStringFunc(text, func(f string) string { return strings.ReplaceAll(f[2:], "-", "_") }) // as fields
	for _, v := range r.values() {
		text = without(text, v)
	}
	return Shown(text)
}

// values returns the values of the request that an error can repeat, the longest first. A short number or a
// word in the body can be in our own texts too, and identifies nobody.
func (r *Request) values() (all []string) {
	for _, m := range name.FindAllStringSubmatch(r.Pattern, -1) {
		all = append(all, r.PathValue(m[1]))
	}
	in := json.NewDecoder(bytes.NewReader(r.body))
	in.UseNumber()
	var sent []string
	for token, err := in.Token(); err == nil; token, err = in.Token() {
		switch v := token.(type) {
		case string: // a name too
			sent = append(sent, v)
		case json.Number:
			sent = append(sent, v.String())
		}
	}
	var body map[string]any
	_ = json.Unmarshal(r.body, &body) // a body that is not valid has no such members
	for _, name := range [...]string{"id", "account", "subscription", "sku", "email", "name", "customer", "merchant"} {
		if text, ok := body[name].(string); ok {
			all = append(all, text) // whatever it looks like
		}
	}
	for _, list := range r.URL.Query() {
		sent = append(sent, list...)
	}
	sent = append(sent, r.Header.Values(KeyHeader)...)
	for _, v := range sent {
		if len(v) >= 4 && !word.MatchString(v) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// without replaces the value in the text, except within longer words.
func without(text, value string) string {
	var b strings.Builder
	for value != "" {
		i := strings.Index(text, value)
		if i < 0 {
			break
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		first, _ := utf8.DecodeRuneInString(value)
		last, _ := utf8.DecodeLastRuneInString(value)
		after, _ := utf8.DecodeRuneInString(text[i+len(value):])
		b.WriteString(text[:i])
		if inWord(before) && inWord(first) || inWord(last) && inWord(after) {
			b.WriteString(value)
		} else {
			b.WriteString("…")
		}
		text = text[i+len(value):]
	}
	return b.String() + text
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
