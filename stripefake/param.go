package stripefake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// require returns Stripe's error if one of the parameters is not there or is empty. Their
// names may have brackets.
func (c *call) require(params ...string) error {
	for _, name := range params {
		if v, ok := c.form.at(name); !ok || v == "" {
			return invalid("parameter_missing", name, "Missing required param: "+name+".")
		}
	}
	return nil
}

// num returns the whole number that the parameter is; 0 if it is not there.
func (c *call) num(param string) (int64, error) {
	v, ok := c.form.at(param)
	if !ok || v == "" {
		return 0, nil
	}
	s, _ := v.(string)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strings.HasPrefix(s, "+") {
		return 0, invalid("parameter_invalid_integer", param, "Invalid integer: "+shown(v))
	}
	return n, nil
}

// amount returns the amount that the parameter is, which is not negative; 0 if it is not
// there.
func (c *call) amount(param string) (int64, error) {
	n, err := c.num(param)
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, invalid("parameter_invalid_integer", param, "This value must be greater than or equal to 0.")
	case n > maxAmount:
		return 0, invalid("amount_too_large", param, fmt.Sprintf("Amount must be no more than %d.", maxAmount))
	}
	return n, nil
}

// flag returns whether the parameter is true; false if it is not there.
func (c *call) flag(param string) (bool, error) {
	v, ok := c.form.at(param)
	switch {
	case !ok, v == "false", v == "":
		return false, nil
	case v == "true":
		return true, nil
	}
	return false, invalid("", param, "Invalid boolean: "+shown(v))
}

// choice returns the text that the parameter is, which is one of those, or "" if it is not
// there.
func (c *call) choice(param string, of ...string) (string, error) {
	v, ok := c.form.at(param)
	if !ok {
		return "", nil
	}
	s, text := v.(string)
	if !text || !slices.Contains(of, s) {
		return "", invalid("", param, fmt.Sprintf("Invalid %s: must be one of %s", param, strings.Join(of, ", ")))
	}
	return s, nil
}

// metadata merges the parameter metadata into that of the object: an empty value takes the
// key away, and empty metadata take all.
func (c *call) metadata(o object) error {
	v, ok := c.form["metadata"]
	if !ok {
		v = form{}
	}
	return mergeMetadata(o, v, "metadata")
}

// beyond refuses parameters that Stripe has and this fake does not do, rather than pass over
// them in silence.
func (c *call) beyond(params string) error {
	for name := range strings.FieldsSeq(params) {
		if c.form.has(name) {
			return invalid("", name, "stripefake does not do what "+name+" asks for, although Stripe does.")
		}
	}
	return nil
}

// beyondPart is beyond for a part of a parameter.
func (c *call) beyondPart(name string) error {
	return invalid("", name, "stripefake does not do what "+name+" asks for; if Stripe has it, Stripe does.")
}

// amountless is a whole number that is no amount: it may be larger than one.
func (c *call) amountless(param string) (int64, error) {
	n, err := c.num(param)
	if err == nil && n < 0 {
		err = invalid("parameter_invalid_integer", param, "This value must be greater than or equal to 0.")
	}
	return n, err
}
