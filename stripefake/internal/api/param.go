package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Require returns Stripe's error if one of the parameters is not there or is empty. Their
// names may have brackets.
func (c *Call) Require(params ...string) error {
	for _, name := range params {
		if v, ok := c.Form.At(name); !ok || v == "" {
			return shape.Invalid("parameter_missing", name, "Missing required param: "+name+".")
		}
	}
	return nil
}

// Num returns the whole number that the parameter is; 0 if it is not there.
func (c *Call) Num(param string) (int64, error) {
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

// Amount returns the amount that the parameter is, which is not negative; 0 if it is not
// there.
func (c *Call) Amount(param string) (int64, error) {
	n, err := c.Num(param)
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, shape.Invalid("parameter_invalid_integer", param, "This value must be greater than or equal to 0.")
	case n > shape.MaxAmount:
		return 0, shape.Invalid("amount_too_large", param, fmt.Sprintf("Amount must be no more than %d.", shape.MaxAmount))
	}
	return n, nil
}

// Flag returns whether the parameter is true; false if it is not there.
func (c *Call) Flag(param string) (bool, error) {
	v, ok := c.Form.At(param)
	switch {
	case !ok, v == "false", v == "":
		return false, nil
	case v == "true":
		return true, nil
	}
	return false, shape.Invalid("", param, "Invalid boolean: "+shape.Shown(v))
}

// Choice returns the text that the parameter is, which is one of those, or "" if it is not
// there.
func (c *Call) Choice(param string, of ...string) (string, error) {
	v, ok := c.Form.At(param)
	if !ok {
		return "", nil
	}
	s, text := v.(string)
	if !text || !slices.Contains(of, s) {
		return "", shape.Invalid("", param, fmt.Sprintf("Invalid %s: must be one of %s", param, strings.Join(of, ", ")))
	}
	return s, nil
}

// Metadata merges the parameter metadata into that of the object: an empty value takes the
// key away, and empty metadata take all.
func (c *Call) Metadata(o object) error {
	v, ok := c.Form["metadata"]
	if !ok {
		v = form{}
	}
	return shape.MergeMetadata(o, v, "metadata")
}

// Beyond refuses parameters that Stripe has and this fake does not do, rather than pass over
// them in silence.
func (c *Call) Beyond(params string) error {
	for name := range strings.FieldsSeq(params) {
		if c.Form.Has(name) {
			return shape.Invalid("", name, "stripefake does not do what "+name+" asks for, although Stripe does.")
		}
	}
	return nil
}

// BeyondPart is beyond for a part of a parameter.
func (c *Call) BeyondPart(name string) error {
	return shape.Invalid("", name, "stripefake does not do what "+name+" asks for; if Stripe has it, Stripe does.")
}

// Amountless is a whole number that is no amount: it may be larger than one.
func (c *Call) Amountless(param string) (int64, error) {
	n, err := c.Num(param)
	if err == nil && n < 0 {
		err = shape.Invalid("parameter_invalid_integer", param, "This value must be greater than or equal to 0.")
	}
	return n, err
}
