package dynamotest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Conditions are the key conditions of a query, all of which have to hold.
type conditions []condition

type condition struct {
	name   string
	op     string // "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"
	values []any  // in DynamoDB's JSON
}

// oneCondition reads a condition, and joined takes conditions in parentheses and by AND for one. ✓
// stands for a condition that was read.
var (
	oneCondition = regexp.MustCompile(`(?i)(begins_with)\s*\(\s*(#?[\w.-]+)\s*,\s*(:\w+)\s*\)|` +
		`(#?[\w.-]+)\s*(<=|>=|=|<|>|BETWEEN\b)\s*(:\w+)(?:\s+AND\s+(:\w+))?`)
	joined = regexp.MustCompile(`(?i)\(\s*✓\s*\)|✓\s+AND\s+✓`)
)

// newConditions reads KeyConditionExpression with its names and values.
func newConditions(query map[string]any) (found conditions, err error) {
	expression, _ := query["KeyConditionExpression"].(string)
	names, values := asMap(query["ExpressionAttributeNames"]), asMap(query["ExpressionAttributeValues"])
	rest := oneCondition.ReplaceAllStringFunc(expression, func(text string) string {
		part := oneCondition.FindStringSubmatch(text)
		c := condition{name: part[2] + part[4], op: part[1] + strings.ToUpper(part[5])}
		if full, known := names[c.name].(string); known {
			c.name = full
		}
		for _, name := range part[3:] {
			if value, known := values[name]; known {
				c.values = append(c.values, value)
			}
		}
		if want := map[bool]int{false: 1, true: 2}[c.op == "BETWEEN"]; len(c.values) != want || c.name[0] == '#' {
			return text
		}
		found = append(found, c)
		return "✓"
	})
	for before := ""; rest != before; {
		before, rest = rest, joined.ReplaceAllString(rest, "✓")
	}
	if rest != "✓" {
		return nil, fmt.Errorf("KeyConditionExpression %q is not understood", expression)
	}
	return found, nil
}

// hold reports whether the item meets them; types are those of the attributes.
func (c conditions) hold(of item, types map[string]string) bool {
	for _, one := range c {
		if !one.holds(types[one.name], of[one.name]) {
			return false
		}
	}
	return true
}

func (c condition) holds(kind string, value any) bool {
	if asMap(value)[kind] == nil {
		return false
	}
	order := compareValues(kind, value, c.values[0])
	switch c.op {
	case "BETWEEN":
		return order >= 0 && compareValues(kind, value, c.values[1]) <= 0
	case "begins_with":
		return strings.HasPrefix(raw(kind, value), raw(kind, c.values[0]))
	}
	return strings.Contains(c.op, string("<=>"[order+1])) // <= has both < and =
}

// compareValues is DynamoDB's order of keys: numbers by value, the others by bytes.
func compareValues(kind string, a, b any) int {
	x, y := raw(kind, a), raw(kind, b)
	if kind == "N" {
		left, _, errLeft := big.ParseFloat(x, 10, 200, big.ToNearestEven)
		right, _, errRight := big.ParseFloat(y, 10, 200, big.ToNearestEven)
		if errLeft == nil && errRight == nil {
			return left.Cmp(right)
		}
	}
	return cmp.Compare(x, y)
}

// raw returns the bytes of a string or binary, the digits of a number.
func raw(kind string, value any) string {
	written, _ := asMap(value)[kind].(string)
	if kind == "B" {
		if decoded, err := base64.StdEncoding.DecodeString(written); err == nil {
			return string(decoded)
		}
	}
	return written
}
