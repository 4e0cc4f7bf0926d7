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

var token = regexp.MustCompile(`[#:]?[A-Za-z0-9_.-]+|<=|>=|<>|[=<>(),]`)

// newConditions reads KeyConditionExpression with its names and values.
func newConditions(query map[string]any) (conditions, error) {
	expression, ok := query["KeyConditionExpression"].(string)
	if !ok {
		return nil, fmt.Errorf("it has no KeyConditionExpression")
	}
	r := reader{tokens: token.FindAllString(expression, -1), names: asMap(query["ExpressionAttributeNames"]),
		values: asMap(query["ExpressionAttributeValues"])}
	r.all()
	if r.wrong || len(r.tokens) > 0 {
		return nil, fmt.Errorf("KeyConditionExpression %q is not understood", expression)
	}
	return r.found, nil
}

type reader struct {
	tokens        []string
	names, values map[string]any
	found         conditions
	wrong         bool
}

// next takes the next token, if it is one of these (any, when there are none).
func (r *reader) next(of ...string) (string, bool) {
	if len(r.tokens) == 0 {
		return "", false
	}
	first := r.tokens[0]
	for _, want := range of {
		if strings.EqualFold(first, want) {
			r.tokens = r.tokens[1:]
			return want, true
		}
	}
	if len(of) > 0 {
		return "", false
	}
	r.tokens = r.tokens[1:]
	return first, true
}

func (r *reader) must(of ...string) string {
	got, ok := r.next(of...)
	r.wrong = r.wrong || !ok
	return got
}

// all reads conditions joined by AND.
func (r *reader) all() {
	for {
		r.one()
		if _, more := r.next("AND"); !more || r.wrong {
			return
		}
	}
}

func (r *reader) one() {
	if _, nested := r.next("("); nested {
		r.all()
		r.must(")")
		return
	}
	if op, begins := r.next("begins_with"); begins {
		r.must("(")
		name := r.name()
		r.must(",")
		r.found = append(r.found, condition{name, op, []any{r.value()}})
		r.must(")")
		return
	}
	c := condition{name: r.name(), op: r.must("=", "<=", ">=", "<", ">", "BETWEEN")}
	c.values = append(c.values, r.value())
	if c.op == "BETWEEN" {
		r.must("AND")
		c.values = append(c.values, r.value())
	}
	r.found = append(r.found, c)
}

func (r *reader) name() string {
	name := r.must()
	if strings.HasPrefix(name, "#") {
		full, ok := r.names[name].(string)
		r.wrong = r.wrong || !ok
		return full
	}
	return name
}

func (r *reader) value() any {
	value, ok := r.values[r.must()]
	r.wrong = r.wrong || !ok
	return value
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
	case "=":
		return order == 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "BETWEEN":
		return order >= 0 && compareValues(kind, value, c.values[1]) <= 0
	default:
		return strings.HasPrefix(raw(kind, value), raw(kind, c.values[0]))
	}
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
