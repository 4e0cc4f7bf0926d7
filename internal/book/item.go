package book

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/schema"
)

// An attribute is a value in DynamoDB JSON: {"S": "text"}. Values of types outside the model stay
// empty.
type attribute struct {
	S *string
	N *json.Number
	M map[string]attribute
}

// text returns the value of a string or a number.
func (a attribute) text() (string, bool) {
	switch {
	case a.S != nil:
		return *a.S, true
	case a.N != nil:
		return a.N.String(), true
	default:
		return "", false
	}
}

// An item is one of the model's sample data. Reading an attribute removes it, so that unknown
// attributes are left over.
type item struct {
	pk, sk   string
	rest     map[string]attribute
	problems []problem
}

func decodeItem(raw json.RawMessage) (it *item, reason string) {
	var attributes map[string]attribute
	if err := json.Unmarshal(raw, &attributes); err != nil {
		return nil, `want an item in DynamoDB JSON, such as {"PK": {"S": "ACC#123"}, …}`
	}
	return newItem(attributes), ""
}

func newItem(attributes map[string]attribute) *item {
	it := &item{rest: attributes}
	dropDefaultCard(it.rest)
	it.pk, it.sk = it.text(schema.PK), it.text(schema.SK)
	return it
}

// isOfStore reports an item of a store's own records: its identity, runs, leases and mail under
// way, and periods, which count from that store's first one. In another store it means nothing.
func (it *item) isOfStore() bool {
	kind, _, _ := strings.Cut(it.pk, "#")
	switch kind {
	// with the outbox's queues and the registry
	case "META", "RUN", "LEASE", "OUT", "ACT", "INB", "ACCOUNT", "CUSTOMER", "QUARANTINE", "OWN":
		return true
	}
	return kind == "ACC" && strings.HasPrefix(it.sk, "PER#")
}

// isDefaultCard reports the model's member for a card number.
func isDefaultCard(name string) bool { return strings.EqualFold(name, schema.DefaultCard) }

func dropDefaultCard(attributes map[string]attribute) {
	for name, a := range attributes {
		if isDefaultCard(name) {
			delete(attributes, name)
		} else {
			dropDefaultCard(a.M)
		}
	}
}

func (it *item) fault(name, reason string) {
	it.problems = append(it.problems, problem{name, reason})
}

// text takes a string or a number; "" if it is absent.
func (it *item) text(name string) string { return it.take(it.rest, "", name) }

// details takes the known members of PaymentDetails.
func (it *item) details() (method, currency, address string) {
	d := it.rest[schema.PaymentDetails].M
	prefix := schema.PaymentDetails + "."
	method, currency = it.take(d, prefix, schema.PaymentMethod), it.take(d, prefix, schema.Currency)
	address = it.take(d, prefix, schema.DefaultAddress)
	it.refuse(d, prefix)
	if d != nil {
		delete(it.rest, schema.PaymentDetails)
	}
	return method, currency, address
}

func (it *item) take(from map[string]attribute, prefix, name string) string {
	a, ok := from[name]
	if !ok {
		return ""
	}
	delete(from, name)
	text, ok := a.text()
	if !ok {
		it.fault(prefix+name, "want a string or a number")
	}
	return text
}

// refuse names the unknown attributes. One left out in silence, such as a status, could matter.
func (it *item) refuse(rest map[string]attribute, prefix string) {
	var names []string
	for name := range rest {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		it.fault(prefix+name, "is not an attribute that import knows")
	}
}

// keyParts reads the part of a sort key after SUB# or REC#: <first>#SKU#<sku>, or the published
// text's <first>#SKU<sku>. The model's own form wins if both are possible.
func keyParts(rest string) (first, sku string, ok bool) {
	first, sku, ok = strings.Cut(rest, "#SKU")
	return first, strings.TrimPrefix(sku, "#"), ok
}
