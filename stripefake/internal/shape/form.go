package shape

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxDepth  = 8    // of brackets in a name
	maxParams = 5000 // in a request
)

// A Form is the parameters of a request: string, form or []any, as the brackets of their
// names say. items[0][price]=x is a list of one form, as numbers are positions, except in
// metadata, whose keys may be numbers.
type Form map[string]any

func (f Form) Has(name string) bool   { _, ok := f[name]; return ok }
func (f Form) Str(name string) string { s, _ := f[name].(string); return s }
func (f Form) Yes(name string) bool   { return f.Str(name) == "true" }
func (f Form) Sub(name string) Form   { s, _ := f[name].(Form); return s }
func (f Form) List(name string) []any { l, _ := f[name].([]any); return l }

// At returns the parameter of a name with brackets, such as payment_method_data[type]. It does not
// go into lists.
func (f Form) At(name string) (any, bool) {
	names, err := splitName(name)
	if err != nil {
		return nil, false
	}
	for _, part := range names[:len(names)-1] {
		f = f.Sub(part)
	}
	v, ok := f[names[len(names)-1]]
	return v, ok
}

// ParseForm reads parameters as Stripe's libraries write them, in their order. The last of two
// values counts.
func ParseForm(texts ...string) (Form, error) {
	f, n := Form{}, 0
	for _, text := range texts {
		for pair := range strings.SplitSeq(text, "&") {
			if pair == "" {
				continue
			}
			if n++; n > maxParams {
				return nil, Invalid("", "", fmt.Sprintf("There are more than %d parameters.", maxParams))
			}
			name, value, _ := strings.Cut(pair, "=")
			name, err := unescape(name)
			if err != nil {
				return nil, err
			}
			if value, err = unescape(value); err != nil {
				return nil, err
			}
			names, err := splitName(name)
			if err != nil {
				return nil, err
			}
			if err := f.add(name, names, value); err != nil {
				return nil, err
			}
		}
	}
	for name, v := range f {
		f[name] = settle(name, v)
	}
	return f, nil
}

func unescape(s string) (string, error) {
	s, err := url.QueryUnescape(s)
	if err != nil {
		return "", Invalid("", "", "The parameters are not form-encoded: "+err.Error())
	}
	if !utf8.ValidString(s) {
		return "", Invalid("", "", "The parameters are not UTF-8.")
	}
	return s, nil
}

// splitName splits a[b][] into a, b and "".
func splitName(name string) ([]string, error) {
	bad := func() ([]string, error) {
		return nil, Invalid("parameter_unknown", name, fmt.Sprintf("Invalid parameter name: %q.", name))
	}
	first, rest, bracket := strings.Cut(name, "[")
	if first == "" || strings.Contains(first, "]") {
		return bad()
	}
	names := []string{first}
	for bracket {
		part, after, closed := strings.Cut(rest, "]")
		if !closed || strings.Contains(part, "[") || len(names) == maxDepth {
			return bad()
		}
		names = append(names, part)
		if after == "" {
			break
		}
		if after[0] != '[' {
			return bad()
		}
		rest = after[1:]
	}
	return names, nil
}

// pushed is the prefix of the keys of elements given as a[]: no name has it.
const pushed = "\x00"

// add puts the value where the names lead to. Lists are forms until settle.
func (f Form) add(whole string, names []string, value string) error {
	for i, name := range names {
		last := i == len(names)-1
		if i > 0 && name == "" {
			name = f.push(names[i+1:])
		}
		v, there := f[name]
		sub, isForm := v.(Form)
		switch {
		case last && there && isForm, !last && there && !isForm:
			return Invalid("", names[0], fmt.Sprintf("Invalid parameters: %s is given both with and without brackets.", whole))
		case last:
			f[name] = value
		case !there:
			sub = Form{}
			f[name] = sub
		}
		f = sub
	}
	return nil
}

// push returns the key of the next element of a list. If the last one is begun and lacks this
// member, it is that one's key: a[][x]=1&a[][y]=2 is one element.
func (f Form) push(rest []string) string {
	n := 0
	for name := range f {
		if strings.HasPrefix(name, pushed) {
			n++
		}
	}
	if n > 0 && len(rest) > 0 && rest[0] != "" {
		key := pushed + strconv.Itoa(n-1)
		if last := f.Sub(key); last != nil && !last.Has(rest[0]) {
			return key
		}
	}
	return pushed + strconv.Itoa(n)
}

// settle turns the forms with positions alone into lists.
func settle(name string, v any) any {
	f, ok := v.(Form)
	if !ok {
		return v
	}
	keys, positions := make([]position, 0, len(f)), name != "metadata"
	for name := range f {
		f[name] = settle(name, f[name])
		at, given := strings.CutPrefix(name, pushed)
		n, err := strconv.ParseUint(at, 10, 31)
		positions = positions && err == nil
		keys = append(keys, position{name, given, n})
	}
	if !positions || len(f) == 0 {
		for _, k := range keys { // a[]=x beside a[b]=y: the first has an empty name
			if k.pushed {
				v := f[k.key]
				delete(f, k.key)
				f[strings.TrimPrefix(k.key, pushed)] = v
			}
		}
		return f
	}
	slices.SortFunc(keys, position.compare)
	list := make([]any, len(keys))
	for i, k := range keys {
		list[i] = f[k.key]
	}
	return list
}

// A position is the place of an element in a list: numbers come first.
type position struct {
	key    string
	pushed bool
	n      uint64
}

func (p position) compare(q position) int {
	switch {
	case p.pushed != q.pushed && p.pushed:
		return 1
	case p.pushed != q.pushed:
		return -1
	case p.n < q.n:
		return -1
	case p.n > q.n:
		return 1
	}
	return strings.Compare(p.key, q.key)
}
