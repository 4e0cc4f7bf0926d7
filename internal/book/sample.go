package book

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
)

// readSamples reads the CSV of NoSQL Workbench's sample data: a column for each attribute,
// including the keys, and a row for each item. An empty cell is an absent attribute. The file has
// no types: a cell is text, and that of PaymentDetails a map in DynamoDB JSON.
func (s *session) readSamples(src *source) {
	s.readCSV(src, &model{session: s, src: src, items: map[uint64]seenItem{}})
}

// isSampleHeader reports whether the first line names the keys of the recurring-payments table. No
// book has them.
func isSampleHeader(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	var names []string
	for name := range strings.SplitSeq(string(first), ",") {
		names = append(names, strings.Trim(name, "\" \t\r"))
	}
	return slices.Contains(names, schema.PK) && slices.Contains(names, schema.SK)
}

func (t *table) sampleHeader(names []string) (problems []problem) {
	for i, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			problems = append(problems, problem{"", "column " + strconv.Itoa(i+1) + " of the header has no name"})
		case secret.HasCardNumber(name):
			problems = append(problems, problem{name, cardReason(name)})
		case slices.Contains(t.header, name):
			problems = append(problems, problem{name, "is twice in the header"})
		}
		t.header = append(t.header, strings.Clone(name))
	}
	for _, key := range []string{schema.PK, schema.SK} {
		if !slices.Contains(t.header, key) {
			problems = append(problems, problem{key, "is missing from the header"})
		}
	}
	return problems
}

// sample reads one row as an item, and yields its record.
func (t *table) sample(line int, fields []string) bool {
	shown := map[string]any{}
	attributes := map[string]attribute{}
	reason := ""
	for i, text := range fields {
		if text == "" {
			continue
		}
		text = strings.Clone(text) // not the row it is a part of
		name := t.header[i]
		a := attribute{S: &text}
		shown[name] = text
		if name == schema.PaymentDetails {
			a.S = nil
			if err := json.Unmarshal([]byte(text), &a.M); err != nil {
				reason = `want a map in DynamoDB JSON, such as {"PaymentMethod": {"S": "pm_1"}}`
			}
			shown[name] = details(text)
		}
		attributes[name] = a
	}
	b, err := json.Marshal(maskValue(shown, maskText))
	if err != nil {
		b = nil // unreachable: it is made of texts
	}
	if reason != "" {
		return t.rejectRow(line, string(b), []problem{{schema.PaymentDetails, reason}})
	}
	return t.items.yieldItem(line, newItem(attributes), string(b))
}

// details returns a cell of JSON as its value, in which a default-card can be dropped.
func details(cell string) (v any) {
	dec := json.NewDecoder(strings.NewReader(cell))
	dec.UseNumber() // a card number stays one
	if dec.Decode(&v) != nil || dec.More() {
		return cell
	}
	return v
}
