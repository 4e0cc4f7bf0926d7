package link

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// A writer makes the body of a frame.
type writer struct {
	names *pebblestore.Dictionary
	b     []byte
}

func (w *writer) number(n int) { w.b = binary.AppendVarint(w.b, int64(n)) }

func (w *writer) flag(set bool) {
	n := 0
	if set {
		n = 1
	}
	w.number(n)
}

func (w *writer) text(all ...string) {
	for _, s := range all {
		w.number(len(s))
		w.b = append(w.b, s...)
	}
}

func (w *writer) key(k store.Key) { w.text(k.PK, k.SK) }

// item writes the item after its length in four bytes.
func (w *writer) item(it store.Item) {
	at := len(w.b)
	w.b = w.names.Append(append(w.b, 0, 0, 0, 0), it)
	binary.BigEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4))
}

func (w *writer) query(q store.Query) {
	w.text(q.Table, q.Index, q.Partition, q.Prefix, q.From, q.To)
	w.flag(q.Reverse)
	w.number(q.Limit)
	w.key(q.After.Key)
	w.key(q.After.Index)
}

func (w *writer) scan(s store.Scan) {
	w.text(s.Table)
	w.number(s.Segment)
	w.number(s.Segments)
	w.key(s.After.Key)
}

func (w *writer) write(x *store.Write) {
	w.number(int(x.Op))
	w.text(x.Table)
	w.key(x.Key)
	w.item(x.Item)
	w.item(x.Set)
	w.number(len(x.Remove))
	w.text(x.Remove...)
	w.number(len(x.If))
	for _, c := range x.If {
		name, v := c.Parts()
		var held store.Item
		if !v.IsZero() {
			held = store.Item{{Name: "v", Value: v}}
		}
		w.text(name)
		w.item(held)
	}
}

// A reader reads the body of a frame. Its methods return a zero value after an error.
type reader struct {
	names *pebblestore.Dictionary
	b     []byte
	err   error // the first one
}

func (r *reader) fail(err error) {
	r.err = cmp.Or(r.err, err)
	r.b = nil
}

func (r *reader) number() int {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail(errFrame)
		return 0
	}
	r.b = r.b[size:]
	return int(n)
}

func (r *reader) flag() bool { return r.number() == 1 }

// count reads the number of things that take a byte each, at least.
func (r *reader) count() int {
	n := r.number()
	if n < 0 || n > len(r.b) {
		r.fail(errFrame)
		return 0
	}
	return n
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail(errFrame)
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() string { return string(r.take(r.count())) }

func (r *reader) key() store.Key { return store.Key{PK: r.text(), SK: r.text()} }

func (r *reader) item() store.Item {
	b := r.take(4) // the length, and then the item
	if r.err == nil {
		b = r.take(int(binary.BigEndian.Uint32(b)))
	}
	if r.err != nil {
		return nil
	}
	it, err := r.names.Unpack(b)
	if err != nil {
		r.fail(err)
	}
	return it
}

func (r *reader) query() store.Query {
	q := store.Query{Table: r.text(), Index: r.text(), Partition: r.text(), Prefix: r.text(), From: r.text(),
		To: r.text()}
	q.Reverse = r.flag()
	q.Limit = r.number()
	q.After = store.Cursor{Key: r.key(), Index: r.key()}
	return q
}

func (r *reader) scan() store.Scan {
	return store.Scan{Table: r.text(), Segment: r.number(), Segments: r.number(), After: store.Cursor{Key: r.key()}}
}

func (r *reader) write() store.Write {
	x := store.Write{Op: store.Op(r.number()), Table: r.text(), Key: r.key(), Item: r.item(), Set: r.item()}
	for range r.count() {
		x.Remove = append(x.Remove, r.text())
	}
	for range r.count() {
		name, held := r.text(), r.item()
		switch v := held.Get("v"); {
		case name == "":
			x.If = append(x.If, store.Absent())
		case v.IsZero():
			x.If = append(x.If, store.AttributeAbsent(name))
		default:
			x.If = append(x.If, store.AttributeEquals(name, v))
		}
	}
	return x
}

// classes are the errors that cross the wire by their place in this list.
var classes = [...]error{store.ErrNotFound, store.ErrConflict, store.ErrTooLarge, store.ErrInvalid, store.ErrThrottled,
	store.ErrUnknown, store.ErrClosed, store.ErrLocked, store.ErrMissing, store.ErrFormat, store.ErrDamaged}

// answerError is an error of the holder's store, with its class and text.
type answerError struct {
	class error // nil: none of the contract's
	text  string
}

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.class }

// error writes the error; nil is no error.
func (w *writer) error(err error) {
	if err == nil {
		w.number(-1)
		return
	}
	class := len(classes)
	for i := range classes {
		if errors.Is(err, classes[i]) {
			class = i
		}
	}
	w.number(class)
	w.text(err.Error())
	c, conflict := errors.AsType[*store.ConflictError](err)
	if w.flag(conflict); conflict {
		w.number(c.Write)
		w.text(c.Table, c.Key.PK, c.Key.SK, c.Condition)
	}
}

// answer reads the error of the holder's store, or nil.
func (r *reader) answer() error {
	class := r.number()
	if class < 0 || r.err != nil {
		return nil
	}
	e := &answerError{text: r.text()}
	if class < len(classes) {
		e.class = classes[class]
	}
	if r.flag() {
		return &store.ConflictError{Write: r.number(), Table: r.text(), Key: r.key(), Condition: r.text()}
	}
	if r.err != nil {
		return fmt.Errorf("%w in an error", errFrame)
	}
	return e
}
