package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Require returns Stripe's error if one of the parameters is absent or empty. The names may have
// brackets.
func (c *Call) Require(params ...string) error {
	for _, name := range params {
		if v, ok := c.Form.At(name); !ok || v == "" {
			return shape.Invalid("parameter_missing", name, "Missing required param: "+name+".")
		}
	}
	return nil
}

// check returns the error of the first parameter whose value is not of the type that the route
// declares.
func (c *Call) check() error {
	for entry := range strings.FieldsSeq(c.route.Params) {
		name, typ, typed := strings.Cut(entry, ":")
		if v, ok := c.Form.At(name); typed && ok {
			if err := c.checkType(name, typ, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Call) checkType(name, typ string, v any) error {
	switch typ {
	case "bool":
		if v != "" && v != "true" && v != "false" {
			return shape.Invalid("", name, "Invalid boolean: "+shape.Shown(v))
		}
	case "int", "time", "amount":
		n, err := c.number(name)
		switch {
		case err != nil:
			return err
		case typ != "int" && n < 0:
			return shape.Invalid("parameter_invalid_integer", name, "This value must be greater than or equal to 0.")
		case typ == "amount" && n > shape.MaxAmount:
			return shape.Invalid("amount_too_large", name, fmt.Sprintf("Amount must be no more than %d.", shape.MaxAmount))
		}
	default:
		of := strings.Split(typ, "|")
		if s, ok := v.(string); !ok || !slices.Contains(of, s) {
			return shape.Invalid("", name, fmt.Sprintf("Invalid %s: must be one of %s", name, strings.Join(of, ", ")))
		}
	}
	return nil
}

// number reads a whole number; 0 if the parameter is absent or empty.
func (c *Call) number(param string) (int64, error) {
	v, ok := c.Form.At(param)
	if !ok || v == "" {
		return 0, nil
	}
	s, _ := v.(string)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strings.HasPrefix(s, "+") {
		return 0, shape.Invalid("parameter_invalid_integer", param, "Invalid integer: "+shape.Shown(v))
	}
	return n, nil
}

// Num returns a parameter of type int, time or amount; 0 if it is absent.
func (c *Call) Num(param string) int64 {
	n, _ := c.number(param) // check has refused everything else
	return n
}

// Flag returns a parameter of type bool; false if it is absent.
func (c *Call) Flag(param string) bool {
	v, _ := c.Form.At(param)
	return v == "true"
}

// Metadata merges the parameter metadata into the object's: an empty value removes the key, and
// empty metadata remove all keys.
func (c *Call) Metadata(o object) error {
	v, ok := c.Form["metadata"]
	if !ok {
		v = form{}
	}
	return shape.MergeMetadata(o, v, "metadata")
}

// Beyond returns an error for the first of the parameters that is given. Stripe has them and this
// fake does not, and silence would mislead.
func (c *Call) Beyond(params string) error {
	for name := range strings.FieldsSeq(params) {
		if c.Form.Has(name) {
			return shape.Invalid("", name, "stripefake does not do what "+name+" asks for, although Stripe does.")
		}
	}
	return nil
}

// BeyondPart is the error of a parameter that this fake does not have.
func (c *Call) BeyondPart(name string) error {
	return shape.Invalid("", name, "stripefake does not do what "+name+" asks for; if Stripe has it, Stripe does.")
}
