package sandbox

// pages is a list that only grows. It never moves its elements: a copy made under the lock shows
// the same elements without the lock. It wastes at most one page, and a slice a quarter.
type pages[T any] struct {
	full []*[pageSize]T
	n    uint32
}

const pageSize = 256

func (p *pages[T]) at(i uint32) *T { return &p.full[i/pageSize][i%pageSize] }

func (p *pages[T]) add(v T) uint32 {
	if p.n%pageSize == 0 {
		p.full = append(p.full, new([pageSize]T))
	}
	i := p.n
	p.n++
	*p.at(i) = v
	return i
}

// names numbers repeated strings. Number 0 is the empty string.
type names struct {
	text   []string
	number map[string]uint32
}

func (t *names) intern(s string) uint32 {
	if s == "" {
		return 0
	}
	if i, ok := t.number[s]; ok {
		return i
	}
	if t.number == nil {
		t.text, t.number = append(t.text, ""), make(map[string]uint32)
	}
	i := uint32(len(t.text))
	s = string([]byte(s)) // not a part of the caller's larger buffer
	t.text = append(t.text, s)
	t.number[s] = i
	return i
}
