package pebblestore

import (
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

var errItem = fmt.Errorf("%w: malformed item", store.ErrFormat)

// A keyAttribute is an attribute that is read from the key of a row: s, or when s is
// empty the raw component, which may be escaped.
type keyAttribute struct {
	name    string
	s       string
	raw     []byte
	escaped bool
}

// decode is the reverse of encode. It puts the keys, sorted by name, in their places. It takes
// any bytes, and returns an error if they are no item.
//
// All text of an item is one allocation, all attributes are a second one; each number is one
// more. One kept attribute keeps the item's whole text alive, so a caller that keeps one string
// of many large items should clone it.
func (d *dictionary) decode(value []byte, keys []keyAttribute) (store.Item, error) {
	if len(value) < headerBytes {
		return nil, errItem
	}
	if value[0] != codecVersion {
		return nil, fmt.Errorf("%w: an item of codec version %d, this program knows %d", store.ErrFormat, value[0],
			codecVersion)
	}
	p := parser{names: d.names}
	size := len(value) + min(int(value[2])*hintUnit, len(value)*millisLength)
	for i := range keys {
		size += len(keys[i].raw)
	}
	p.text.Grow(size)
	p.text.Write(value)
	p.src, p.pos = p.text.String(), headerBytes

	it := make(store.Item, 0, min(int(value[1]), len(value)/2)+len(keys))
	last := ""
	for p.pos < len(p.src) {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		for len(keys) > 0 && keys[0].name < name {
			it = append(it, store.Attribute{Name: keys[0].name, Value: store.S(p.key(&keys[0]))})
			keys = keys[1:]
		}
		if name <= last || (len(keys) > 0 && keys[0].name == name) {
			return nil, errItem
		}
		last = name
		it = append(it, store.Attribute{Name: name})
		if it[len(it)-1].Value, err = p.value(0); err != nil {
			return nil, err
		}
	}
	for i := range keys {
		it = append(it, store.Attribute{Name: keys[i].name, Value: store.S(p.key(&keys[i]))})
	}
	return it, nil
}

// A parser reads src from pos; src is the beginning of text, where unfolded strings
// are appended.
type parser struct {
	names []string
	src   string
	pos   int
	text  strings.Builder
	buf   [millisLength]byte
}

func (p *parser) key(k *keyAttribute) string {
	if k.s != "" {
		return k.s
	}
	if k.escaped {
		return string(appendUnescaped(nil, k.raw))
	}
	return p.unfold(k.raw)
}

func (p *parser) unfold(b []byte) string {
	start := p.text.Len()
	p.text.Write(b)
	return p.text.String()[start:]
}

func (p *parser) uvarint() (uint64, error) {
	var n uint64
	for shift := uint(0); p.pos < len(p.src) && shift < 64; shift += 7 {
		b := p.src[p.pos]
		p.pos++
		n |= uint64(b&0x7F) << shift
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, errItem
}

func (p *parser) varint() (int64, error) {
	u, err := p.uvarint()
	return int64(u>>1) ^ -int64(u&1), err
}

// count reads a number of things that take at least size bytes each.
func (p *parser) count(size int) (int, error) {
	n, err := p.uvarint()
	if err != nil || n > uint64((len(p.src)-p.pos)/size) {
		return 0, errItem
	}
	return int(n), nil
}

func (p *parser) bytes() (string, error) {
	n, err := p.count(1)
	if err != nil {
		return "", err
	}
	p.pos += n
	return p.src[p.pos-n : p.pos], nil
}

func (p *parser) name() (string, error) {
	id, err := p.uvarint()
	switch {
	case err != nil:
		return "", err
	case id == 0:
		return p.bytes()
	case id > uint64(len(p.names)):
		return "", errItem
	}
	return p.names[id-1], nil
}

func (p *parser) value(depth int) (store.Value, error) {
	if p.pos >= len(p.src) {
		return store.Value{}, errItem
	}
	tag := p.src[p.pos]
	p.pos++
	switch {
	case tag >= tagShort:
		n := int(tag - tagShort)
		if n > len(p.src)-p.pos {
			return store.Value{}, errItem
		}
		p.pos += n
		return store.S(p.src[p.pos-n : p.pos]), nil
	case tag >= tagSmall:
		return store.Int(int64(tag - tagSmall)), nil
	}
	switch tag {
	case tagString:
		s, err := p.bytes()
		return store.S(s), err
	case tagMillis, tagSpaced, tagDate:
		return p.time(tag)
	case tagInt:
		n, err := p.varint()
		return store.Int(n), err
	case tagNumber:
		s, err := p.bytes()
		if err != nil {
			return store.Value{}, err
		}
		return store.Number(s)
	case tagFalse, tagTrue:
		return store.Bool(tag == tagTrue), nil
	case tagBinary:
		s, err := p.bytes()
		return store.B([]byte(s)), err
	case tagMap:
		return p.mapping(depth + 1)
	case tagList:
		return p.list(depth + 1)
	}
	return store.Value{}, errItem
}

func (p *parser) time(tag byte) (store.Value, error) {
	n, err := p.varint()
	if err != nil {
		return store.Value{}, err
	}
	if tag == tagDate {
		if n < minDay || n > maxDay {
			return store.Value{}, errItem
		}
		return store.S(p.unfold(appendDate(p.buf[:0], n))), nil
	}
	if n < minMillis || n > maxMillis {
		return store.Value{}, errItem
	}
	if tag == tagSpaced {
		return store.S(p.unfold(appendDateTime(p.buf[:0], n, ' '))), nil
	}
	return store.S(p.unfold(append(appendDateTime(p.buf[:0], n, 'T'), 'Z'))), nil
}

func (p *parser) mapping(depth int) (store.Value, error) {
	n, err := p.count(2)
	if err != nil || depth > store.MaxDepth {
		return store.Value{}, errItem
	}
	if n == 0 {
		return store.M(nil), nil
	}
	m := make(store.Item, 0, min(n, maxInitial))
	for range n {
		name, err := p.name()
		if err != nil {
			return store.Value{}, err
		}
		if name == "" || (len(m) > 0 && name <= m[len(m)-1].Name) {
			return store.Value{}, errItem
		}
		v, err := p.value(depth)
		if err != nil {
			return store.Value{}, err
		}
		m = append(m, store.Attribute{Name: name, Value: v})
	}
	return store.M(m), nil
}

func (p *parser) list(depth int) (store.Value, error) {
	n, err := p.count(1)
	if err != nil || depth > store.MaxDepth {
		return store.Value{}, errItem
	}
	l := make([]store.Value, 0, min(n, maxInitial))
	for range n {
		v, err := p.value(depth)
		if err != nil {
			return store.Value{}, err
		}
		l = append(l, v)
	}
	return store.L(l...), nil
}
