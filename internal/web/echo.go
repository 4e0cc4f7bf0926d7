package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parts of error texts, patterns and bodies that WithoutValues finds.
var (
	got  = regexp.MustCompile(` *\(got .*\)`)
	name = regexp.MustCompile(`\{(\w+)\}`)
	word = regexp.MustCompile(`^[a-z_]*$`) // possibly an API word, such as a scope
	flag = regexp.MustCompile(`--([a-z][a-z-]*)`)
)

// WithoutValues returns an error's text without the request's values. Commands can repeat what a user typed,
// but callers log responses, so a response must not contain such values.
func (r *Request) WithoutValues(text string) string {
	for _, v := range r.values() { // before the patterns below, which also match within values
		text = without(text, v)
		quoted := strconv.Quote(v) // as %q prints it
		text = without(text, quoted[1:len(quoted)-1])
	}
	text = got.ReplaceAllString(text, "")
	text = flag.ReplaceAllStringFunc(text, func(f string) string { return strings.ReplaceAll(f[2:], "-", "_") }) // name fields, not flags
	return Shown(text)
}

// values returns the request's values that an error might repeat, longest first. It omits short numbers and
// plain words in the body, which also occur in Duesday's own texts and identify no one.
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
	_ = json.Unmarshal(r.body, &body) // an invalid body has none of these fields
	for _, name := range [...]string{"id", "account", "subscription", "sku", "email", "name", "customer", "merchant", "stripe_account",
		"connected_account", "payment_method", "fallback_payment_method", "price"} {
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
