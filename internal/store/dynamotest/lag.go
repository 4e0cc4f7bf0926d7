package dynamotest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

// An item is one in DynamoDB's JSON: {"Name": {"S": "text"}}.
type item = map[string]any

// lag remembers the states of items before their writes, for as long as an index may still show it.
type lag struct {
	most time.Duration
	now  func() time.Time

	mu     sync.Mutex
	tables map[string]*description
	past   map[string]map[string][]version // by table and key: past states, oldest first
	adds   int
}

type version struct {
	until time.Time
	image item // nil: it was not there
}

// A state is an item before a write.
type state struct {
	table, key string
	image      item
}

// A description is how a table and its indexes are keyed.
type description struct {
	key     []string          // names of attributes, the partition key first
	types   map[string]string // of key attributes: "S", "N", "B"
	indexes map[string]index
}

type index struct {
	key   []string
	shows []string // names of attributes; nil for all
}

// wrote records the states ended by a write.
func (l *lag) wrote(before []state) {
	if len(before) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, s := range before {
		if l.past[s.table] == nil {
			l.past[s.table] = map[string][]version{}
		}
		l.past[s.table][s.key] = append(l.shown(l.past[s.table][s.key], now), version{now, s.image})
		l.adds++
	}
	if l.adds > 10_000 {
		l.adds = 0
		for _, table := range l.past {
			maps.DeleteFunc(table, func(_ string, past []version) bool { return len(l.shown(past, now)) == 0 })
		}
	}
}

// shown returns the states an index may still show.
func (l *lag) shown(past []version, now time.Time) []version {
	first := slices.IndexFunc(past, func(v version) bool { return now.Sub(v.until) < l.most })
	if first < 0 {
		return nil
	}
	return past[first:]
}

// before reads the items a request is about to write. It forgets the keys of a table if the
// request may change them.
func (p *Proxy) before(x *exchange) (states []state, err error) {
	var writes []map[string]any
	switch x.operation {
	case "CreateTable", "UpdateTable", "DeleteTable":
		name, _ := x.body["TableName"].(string)
		p.lag.mu.Lock()
		delete(p.lag.tables, name)
		p.lag.mu.Unlock()
	case "PutItem", "UpdateItem", "DeleteItem":
		writes = append(writes, x.body)
	case "TransactWriteItems":
		for _, action := range x.actions() {
			for kind, body := range asMap(action) {
				if kind != "ConditionCheck" {
					writes = append(writes, asMap(body))
				}
			}
		}
	case "BatchWriteItem":
		for table, requests := range asMap(x.body["RequestItems"]) {
			for _, request := range asList(requests) {
				for _, body := range asMap(request) {
					write := maps.Clone(asMap(body))
					write["TableName"] = table
					writes = append(writes, write)
				}
			}
		}
	}
	for _, write := range writes {
		if states, err = p.addState(states, x, write); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// addState appends the state of the item of a write, named by Item or Key. A request that DynamoDB
// will refuse (a missing table, an invalid key) has no state.
func (p *Proxy) addState(states []state, x *exchange, write map[string]any) ([]state, error) {
	table, _ := write["TableName"].(string)
	d, err := p.describe(x, table)
	if err != nil {
		return states, nil
	}
	of := asMap(write["Item"])
	if of == nil {
		of = asMap(write["Key"])
	}
	key := pick(of, d.key)
	if len(key) != len(d.key) {
		return states, nil
	}
	var got struct{ Item item }
	in := map[string]any{"TableName": table, "Key": key, "ConsistentRead": true}
	if err := p.call(x.header, "GetItem", in, &got); err != nil {
		return nil, fmt.Errorf("reading what a write changes: %w", err)
	}
	return append(states, state{table, text(key), got.Item}), nil
}

// text returns the key in a comparable form: encoding/json sorts names.
func text(key item) string {
	text, err := json.Marshal(key)
	if err != nil {
		return ""
	}
	return string(text)
}

// pick returns the named attributes of the item.
func pick(from item, names []string) item {
	part := item{}
	for _, name := range names {
		if value, ok := from[name]; ok {
			part[name] = value
		}
	}
	return part
}

// describe returns how a table is keyed, as DynamoDB says.
func (p *Proxy) describe(x *exchange, table string) (*description, error) {
	p.lag.mu.Lock()
	known := p.lag.tables[table]
	p.lag.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var got struct {
		Table struct {
			keyed
			AttributeDefinitions                          []struct{ AttributeName, AttributeType string }
			GlobalSecondaryIndexes, LocalSecondaryIndexes []keyed
		}
	}
	if err := p.call(x.header, "DescribeTable", map[string]any{"TableName": table}, &got); err != nil {
		return nil, err
	}
	d := &description{key: got.Table.key(), types: map[string]string{}, indexes: map[string]index{}}
	for _, a := range got.Table.AttributeDefinitions {
		d.types[a.AttributeName] = a.AttributeType
	}
	for _, k := range slices.Concat(got.Table.GlobalSecondaryIndexes, got.Table.LocalSecondaryIndexes) {
		x := index{key: k.key()}
		if k.Projection.ProjectionType != "ALL" {
			x.shows = slices.Concat(d.key, x.key, k.Projection.NonKeyAttributes)
		}
		d.indexes[k.IndexName] = x
	}
	p.lag.mu.Lock()
	p.lag.tables[table] = d
	p.lag.mu.Unlock()
	return d, nil
}

// keyed is DynamoDB's description of an index, and a part of that of a table.
type keyed struct {
	IndexName  string
	KeySchema  []struct{ AttributeName string } // the partition key is the first
	Projection struct {
		ProjectionType   string
		NonKeyAttributes []string
	}
}

func (k keyed) key() (names []string) {
	for _, element := range k.KeySchema {
		names = append(names, element.AttributeName)
	}
	return names
}

// lagging returns the reply to a query of an index as the index may still be.
func (p *Proxy) lagging(x *exchange, answer []byte) []byte {
	name, _ := x.body["IndexName"].(string)
	if x.operation != "Query" || name == "" || x.body["ConsistentRead"] == true || x.body["Select"] == "COUNT" {
		return answer
	}
	body, err := decode(answer)
	if err != nil {
		p.t.Errorf("proxy: a reply of DynamoDB: %v", err)
		return answer
	}
	table, _ := x.body["TableName"].(string)
	d, err := p.describe(x, table)
	if err != nil {
		p.t.Errorf("proxy: %v", err)
		return answer
	}
	in, err := newConditions(x.body)
	if err != nil {
		p.t.Errorf("proxy: the lag of an index cannot be simulated for this query: %v", err)
		return answer
	}
	v := &view{exchange: x, description: d, index: d.indexes[name], conditions: in, rows: asList(body["Items"]),
		after: asMap(x.body["ExclusiveStartKey"]), upTo: asMap(body["LastEvaluatedKey"]),
		descending: x.body["ScanIndexForward"] == false}
	p.lag.mu.Lock()
	v.change(p.lag, p.lag.past[table])
	p.lag.mu.Unlock()
	for range v.missing {
		p.fired(x.operation, IndexMissing)
	}
	for range v.stale {
		p.fired(x.operation, IndexStale)
	}
	if v.missing+v.stale == 0 {
		return answer
	}
	body["Items"], body["Count"], body["ScannedCount"] = v.rows, len(v.rows), len(v.rows)
	return p.encode(body)
}

// A view is one page of a query of an index while past states are put into it.
type view struct {
	*exchange
	*description
	index
	conditions
	rows           []any
	after, upTo    item // bounds of the page, the first excluded; nil: no bound
	descending     bool
	missing, stale int
}

// change replaces rows of the page with past states, as drawn.
func (v *view) change(l *lag, past map[string][]version) {
	now := l.now()
	current := map[string]bool{}
	for _, row := range v.rows {
		current[text(pick(asMap(row), v.description.key))] = true
	}
	// Only items with a past or present row in the range are drawn for, in the order of keys.
	var keys []string
	for key := range past {
		shown := l.shown(past[key], now)
		if len(shown) > 0 && (current[key] || slices.ContainsFunc(shown, func(s version) bool { return v.onPage(s.image) })) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		shown := l.shown(past[key], now)
		was := shown[v.draws.IntN(len(shown))].image
		hide, show := v.happens(IndexMissing), v.happens(IndexStale)
		v.showAs(key, current[key], was, hide, show)
	}
}

// showAs replaces the row of an item with a past state.
func (v *view) showAs(key string, current bool, was item, hide, show bool) {
	at := -1
	if current {
		at = slices.IndexFunc(v.rows, func(row any) bool { return text(pick(asMap(row), v.description.key)) == key })
	}
	plain := v.body["FilterExpression"] == nil && v.body["ProjectionExpression"] == nil
	switch {
	case at >= 0 && !v.inRange(was):
		if hide {
			v.rows = slices.Delete(slices.Clone(v.rows), at, at+1)
			v.missing++
		}
	case show && plain && v.onPage(was):
		rows := slices.Clone(v.rows)
		if at >= 0 {
			rows = slices.Delete(rows, at, at+1)
		}
		old := was
		if v.shows != nil {
			old = pick(was, v.shows)
		}
		if int64(len(rows)) >= limitOf(v.body) || (at >= 0 && reflect.DeepEqual(old, asMap(v.rows[at]))) {
			return
		}
		place := slices.IndexFunc(rows, func(row any) bool { return v.compare(old, asMap(row)) < 0 })
		if place < 0 {
			place = len(rows)
		}
		v.rows = slices.Insert(rows, place, any(old))
		v.stale++
	}
}

// inRange reports whether the index shows the item to this query, on some page.
func (v *view) inRange(was item) bool {
	return was != nil && len(pick(was, v.index.key)) == len(v.index.key) && v.hold(was, v.types)
}

// onPage reports whether the row belongs on this page.
func (v *view) onPage(was item) bool {
	return v.inRange(was) && (len(v.after) == 0 || v.compare(was, v.after) > 0) &&
		(len(v.upTo) == 0 || v.compare(was, v.upTo) <= 0)
}

// compare is the order of the index in the direction of the query.
func (v *view) compare(a, b item) int {
	if len(v.index.key) == 1 {
		return 0
	}
	sort := v.index.key[1]
	order := compareValues(v.types[sort], a[sort], b[sort])
	if v.descending {
		return -order
	}
	return order
}
