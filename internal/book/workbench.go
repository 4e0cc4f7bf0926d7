package book

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"

	"github.com/duesday/duesday/internal/schema"
)

// A model reads the sample data of a NoSQL Workbench model: the items in TableData, of a table or
// of its facets. The published model misspells its table's name, so the keys of an item decide its
// kind. A model skips a store's own records, and tables with the keys of Duesday's tracking tables.
type model struct {
	*session
	src      *source
	dec      *json.Decoder
	found    bool // a DataModel
	tracking bool // the table at hand is a tracking table
	items    map[uint64]seenItem
}

// A seenItem is an item that another facet may repeat.
type seenItem struct {
	line    int
	content uint64
}

var errStopped = errors.New("the caller has stopped")

func (s *session) readModel(src *source) {
	m := model{session: s, src: src, dec: json.NewDecoder(src), items: map[uint64]seenItem{}}
	err := m.member(m.top)
	if err == nil {
		if _, err = m.dec.Token(); err == io.EOF {
			err = nil
		} else if err == nil {
			err = errors.New("the file has more text after the model")
		}
	}
	switch {
	case err == errStopped:
	case err != nil:
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		m.rejectFile(m.line(), problem{"", "not a NoSQL Workbench model: " + err.Error()})
	case !m.found:
		m.rejectFile(1, problem{"", "not a NoSQL Workbench model: it has no DataModel"})
	}
}

func (m *model) top(name string) error {
	if name != "DataModel" {
		return m.skip()
	}
	m.found = true
	return m.elements(func() error {
		m.tracking = false
		return m.member(m.table)
	})
}

func (m *model) table(name string) error {
	switch name {
	case "KeyAttributes":
		return m.keys()
	case "TableFacets":
		return m.elements(func() error { return m.member(m.table) })
	case "TableData":
		if m.tracking {
			return m.skip()
		}
		return m.elements(m.item)
	default:
		return m.skip()
	}
}

// keys reads the table's key attributes, which Workbench writes before its data.
func (m *model) keys() error {
	var k struct {
		PartitionKey, SortKey struct{ AttributeName string }
	}
	var wrong *json.UnmarshalTypeError
	if err := m.dec.Decode(&k); err != nil && !errors.As(err, &wrong) {
		return err
	}
	m.line()
	for _, t := range schema.New("").Tracking.All() {
		if t.PartitionKey == schema.PK { // the registry has the keys of a book; its items are passed over one by one
			continue
		}
		m.tracking = m.tracking || (t.PartitionKey == k.PartitionKey.AttributeName && t.SortKey == k.SortKey.AttributeName)
	}
	return nil
}

// line returns the decoder's present line, and drops the bytes before it.
func (m *model) line() int {
	m.src.advance(m.dec.InputOffset())
	return m.src.line
}

func (m *model) token() (json.Token, error) {
	t, err := m.dec.Token()
	m.line()
	return t, err
}

// member calls visit for each member of the next value, an object; visit must read the value.
func (m *model) member(visit func(name string) error) error {
	return m.inside('{', func() error {
		name, err := m.token()
		if err != nil {
			return err
		}
		return visit(name.(string)) // the decoder gives nothing else at this place
	})
}

// elements calls visit for each element of the next value, an array; visit must read it.
func (m *model) elements(visit func() error) error { return m.inside('[', visit) }

func (m *model) inside(open json.Delim, visit func() error) error {
	t, err := m.token()
	if err != nil {
		return err
	}
	if t != open {
		return fmt.Errorf("a %s is missing", map[json.Delim]string{'{': "JSON object", '[': "JSON array"}[open])
	}
	for m.dec.More() {
		if err := visit(); err != nil {
			return err
		}
	}
	_, err = m.token()
	return err
}

// skip skips a value, however large.
func (m *model) skip() error {
	depth := 0
	for {
		t, err := m.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (m *model) item() error {
	var raw json.RawMessage
	if err := m.dec.Decode(&raw); err != nil {
		return err
	}
	m.src.advance(m.dec.InputOffset() - int64(len(raw)))
	line := m.src.line
	m.line()
	v, _ := decoded(string(raw))
	shown := string(appendJSON(nil, maskValue(v, maskText))) // in alphabetical order, without its default-card
	var attributes map[string]attribute
	more := false
	if json.Unmarshal(raw, &attributes) == nil {
		more = m.yieldItem(line, newItem(attributes), shown)
	} else {
		more = m.rejectRow(line, shown,
			[]problem{{"", `must be an item in DynamoDB JSON, such as {"PK": {"S": "ACC#123"}, …}`}})
	}
	if !more {
		return errStopped
	}
	return nil
}

func (m *model) yieldItem(line int, it *item, shown string) bool {
	switch {
	case it.pk == "" || it.sk == "":
		return m.rejectRow(line, shown, []problem{{"", "must be an item with PK and SK"}})
	case it.isOfStore():
		return true
	}
	if first, same := m.again(line, it, shown); same {
		return true
	} else if first > 0 {
		return m.rejectRow(line, shown, []problem{{"SK", "an item with this key and other attributes is" + onLine(first)}})
	}
	r, problems := m.record(line, it)
	if len(problems) > 0 {
		return m.rejectRow(line, shown, problems)
	}
	return m.yield(r, nil)
}

// again returns the earlier line of an item with the same key; same: it has the same content.
func (m *model) again(line int, it *item, content string) (first int, same bool) {
	var h maphash.Hash
	h.SetSeed(m.seed)
	h.WriteString(it.pk)
	h.WriteByte(0)
	h.WriteString(it.sk)
	key, sum := h.Sum64(), maphash.String(m.seed, content)
	if seen, ok := m.items[key]; ok {
		return seen.line, seen.content == sum
	}
	m.items[key] = seenItem{line, sum}
	return 0, false
}
