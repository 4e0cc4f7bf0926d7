package stripetest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A param is a parameter of a request: a text, or fields in brackets.
type param struct {
	text   string
	fields map[string]*param // nil for a text
}

// list returns the numbers of the elements in their order, if the names of all fields are
// numbers.
func (p *param) list() (numbers []int, ok bool) {
	for name := range p.fields {
		n, err := strconv.Atoi(name)
		if err != nil || strconv.Itoa(n) != name || n < 0 {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers, p.fields != nil
}

// params reads Stripe's encoding: a[b]=x for a field, a[]=x&a[]=y or a[0]=x&a[1]=y for a list. It
// returns an object, and the names it could not read.
func params(values url.Values) (all *param, problems []string) {
	all = &param{fields: map[string]*param{}}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		segments, ok := split(key)
		if !ok {
			problems = append(problems, fmt.Sprintf("parameter %s: its brackets do not match", key))
			continue
		}
		at := slices.Index(segments, "")
		for i, value := range values[key] {
			if at < 0 && i > 0 {
				problems = append(problems, fmt.Sprintf("parameter %s: given %d times", key, len(values[key])))
				break
			}
			path := slices.Clone(segments)
			for s := range path {
				switch {
				case s == at:
					path[s] = strconv.Itoa(i)
				case path[s] == "":
					path[s] = "0"
				}
			}
			if !all.set(path, value) {
				problems = append(problems, fmt.Sprintf("parameter %s: given in two ways", key))
			}
		}
	}
	return all, problems
}

// split takes "a[b][]" apart: "a", "b", "".
func split(key string) (segments []string, ok bool) {
	first, rest, nested := strings.Cut(key, "[")
	if first == "" || strings.Contains(first, "]") {
		return nil, false
	}
	segments = []string{first}
	if !nested {
		return segments, true
	}
	rest, ok = strings.CutSuffix(rest, "]")
	for segment := range strings.SplitSeq(rest, "][") {
		ok = ok && !strings.ContainsAny(segment, "[]")
		segments = append(segments, segment)
	}
	return segments, ok
}

// set puts a text at a path, unless the path has a value.
func (p *param) set(path []string, text string) bool {
	for i, name := range path {
		next := p.fields[name]
		switch last := i == len(path)-1; {
		case next == nil && last:
			p.fields[name] = &param{text: text}
			return true
		case next == nil:
			next = &param{fields: map[string]*param{}}
			p.fields[name] = next
		case last || next.fields == nil:
			return false
		}
		p = next
	}
	return false // unreachable: a key has one segment at least
}
