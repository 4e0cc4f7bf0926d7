package shape

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxDepth  = 8    // of brackets in a name
	maxParams = 5000 // in a request
)

// A Form is the parameters of a request: string, form or []any, as the brackets of their names say.
// Numbers are positions, except in metadata: items[0][price]=x is a list of one form.
type Form map[string]any

func (f Form) sub(name string) Form { s, _ := f[name].(Form); return s }

// At returns the parameter of a name with brackets, such as card[token]. It does not go into lists.
func (f Form) At(name string) (any, bool) {
	names := strings.Split(strings.ReplaceAll(name, "]", ""), "[")
	for _, outer := range names[:len(names)-1] {
		f = f.sub(outer)
	}
	v, ok := f[names[len(names)-1]]
	return v, ok
}

// ParseForm reads parameters as Stripe's libraries write them. The last of two values counts.
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
			if err := f.addPair(pair); err != nil {
				return nil, err
			}
		}
	}
	for name, v := range f {
		f[name] = settle(name, v)
	}
	return f, nil
}

func (f Form) addPair(pair string) error {
	name, value, _ := strings.Cut(pair, "=")
	name, badName := unescape(name)
	value, badValue := unescape(value)
	names, err := splitName(name)
	if err := cmp.Or(badName, badValue, err); err != nil {
		return err
	}
	return f.add(name, names, value)
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

// nameForm is the form of a parameter's name: a[b][].
var nameForm = regexp.MustCompile(`^[^\[\]]+(\[[^\[\]]*\])*$`)

// splitName splits a[b][] into a, b and "".
func splitName(name string) ([]string, error) {
	names := strings.Split(strings.ReplaceAll(name, "]", ""), "[")
	if len(names) > maxDepth || !nameForm.MatchString(name) {
		return nil, Invalid("parameter_unknown", name, fmt.Sprintf("Invalid parameter name: %q.", name))
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
		last := f.sub(key)
		if _, has := last[rest[0]]; last != nil && !has {
			return key
		}
	}
	return pushed + strconv.Itoa(n)
}

// settle turns forms whose names are all positions into lists, pushed elements (a[]=x) last.
func settle(name string, v any) any {
	f, ok := v.(Form)
	if !ok {
		return v
	}
	positions, isList := map[string]uint64{}, len(f) > 0 && name != "metadata"
	for name := range f {
		f[name] = settle(name, f[name])
		at, isPushed := strings.CutPrefix(name, pushed)
		n, err := strconv.ParseUint(at, 10, 31)
		if isList = isList && err == nil; isPushed {
			n += 1 << 31
		}
		positions[name] = n
	}
	if !isList {
		for name := range positions { // a[]=x beside a[b]=y: the first has an empty name
			if at, isPushed := strings.CutPrefix(name, pushed); isPushed {
				f[at] = f[name]
				delete(f, name)
			}
		}
		return f
	}
	list := []any{}
	for _, name := range slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		return cmp.Or(cmp.Compare(positions[a], positions[b]), cmp.Compare(a, b))
	}) {
		list = append(list, f[name])
	}
	return list
}
