package pebblestore

import (
	"cmp"
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
func (d *Dictionary) decode(value []byte, keys []keyAttribute) (store.Item, error) {
	if len(value) < headerBytes {
		return nil, errItem
	}
	if value[0] != codecVersion {
		return nil, fmt.Errorf("%w: an item has codec version %d, but this program only reads version %d", store.ErrFormat, value[0],
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
		name := p.name()
		for len(keys) > 0 && keys[0].name < name {
			it = append(it, store.Attribute{Name: keys[0].name, Value: store.S(p.key(&keys[0]))})
			keys = keys[1:]
		}
		if name <= last || (len(keys) > 0 && keys[0].name == name) {
			p.fail(errItem)
		}
		last = name
		it = append(it, store.Attribute{Name: name, Value: p.value(0)})
	}
	if p.err != nil {
		return nil, p.err
	}
	for i := range keys {
		it = append(it, store.Attribute{Name: keys[i].name, Value: store.S(p.key(&keys[i]))})
	}
	return it, nil
}

// A parser reads src from pos; src is the beginning of text, where unfolded strings
// are appended. Its methods return a zero value after an error.
type parser struct {
	names []string
	src   string
	pos   int
	err   error // the first one
	text  strings.Builder
	buf   [millisLength]byte
}

// fail notes the first error, and ends the text: there is nothing more to read.
func (p *parser) fail(err error) {
	p.err = cmp.Or(p.err, err)
	p.pos = len(p.src)
}

func (p *parser) key(k *keyAttribute) string {
	if k.s != "" {
		return k.s
	}
	if k.escaped {
		return unescaped(k.raw)
	}
	return p.unfold(k.raw)
}

func (p *parser) unfold(b []byte) string {
	start := p.text.Len()
	p.text.Write(b)
	return p.text.String()[start:]
}

func (p *parser) uvarint() uint64 {
	var n uint64
	for shift := uint(0); p.pos < len(p.src) && shift < 64; shift += 7 {
		b := p.src[p.pos]
		p.pos++
		n |= uint64(b&0x7F) << shift
		if b < 0x80 {
			return n
		}
	}
	p.fail(errItem)
	return 0
}

func (p *parser) varint() int64 {
	u := p.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads a number of things that take at least size bytes each.
func (p *parser) count(size int) int {
	n := p.uvarint()
	if n > uint64((len(p.src)-p.pos)/size) {
		p.fail(errItem)
		return 0
	}
	return int(n)
}

func (p *parser) bytes() string { return p.take(p.count(1)) }

func (p *parser) take(n int) string {
	p.pos += n
	return p.src[p.pos-n : p.pos]
}

func (p *parser) name() string {
	id := p.uvarint()
	switch {
	case id == 0:
		return p.bytes()
	case id > uint64(len(p.names)):
		p.fail(errItem)
		return ""
	}
	return p.names[id-1]
}

func (p *parser) value(depth int) store.Value {
	if p.pos >= len(p.src) {
		p.fail(errItem)
		return store.Value{}
	}
	tag := p.src[p.pos]
	p.pos++
	switch {
	case tag >= tagShort && int(tag-tagShort) <= len(p.src)-p.pos:
		return store.S(p.take(int(tag - tagShort)))
	case tag >= tagSmall && tag < tagShort:
		return store.Int(int64(tag - tagSmall))
	}
	switch tag {
	case tagString:
		return store.S(p.bytes())
	case tagMillis, tagSpaced, tagDate:
		return store.S(p.time(tag))
	case tagInt:
		return store.Int(p.varint())
	case tagNumber:
		v, err := store.Number(p.bytes())
		if err != nil {
			p.fail(err)
		}
		return v
	case tagFalse, tagTrue:
		return store.Bool(tag == tagTrue)
	case tagBinary:
		return store.B([]byte(p.bytes()))
	case tagMap:
		return p.mapping(depth + 1)
	case tagList:
		return store.L(p.list(depth + 1)...)
	case tagSet:
		set, err := store.Set(p.list(depth)...)
		if err != nil {
			p.fail(errItem)
		}
		return set
	case tagNull:
		return store.Null()
	}
	p.fail(errItem)
	return store.Value{}
}

func (p *parser) time(tag byte) string {
	n, low, high := p.varint(), int64(minMillis), int64(maxMillis)
	if tag == tagDate {
		low, high = minDay, maxDay
	}
	if n < low || n > high {
		p.fail(errItem)
		return ""
	}
	return p.unfold(appendTime(p.buf[:0], tag, n))
}

func (p *parser) mapping(depth int) store.Value {
	n := p.nested(2, depth)
	if n == 0 {
		return store.M(nil)
	}
	m := make(store.Item, 0, min(n, maxInitial))
	for len(m) < n && p.err == nil {
		name := p.name()
		if name == "" || (len(m) > 0 && name <= m[len(m)-1].Name) {
			p.fail(errItem)
		}
		m = append(m, store.Attribute{Name: name, Value: p.value(depth)})
	}
	return store.M(m)
}

func (p *parser) list(depth int) []store.Value {
	n := p.nested(1, depth)
	l := make([]store.Value, 0, min(n, maxInitial))
	for len(l) < n && p.err == nil {
		l = append(l, p.value(depth))
	}
	return l
}

// nested reads the number of elements of a map or list at that depth.
func (p *parser) nested(size, depth int) int {
	if depth > store.MaxDepth {
		p.fail(errItem)
	}
	return p.count(size)
}
