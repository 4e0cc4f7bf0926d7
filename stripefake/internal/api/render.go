package api

import (
	"regexp"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// NewestVersion is the version that objects are kept in, and the default of accounts.
const NewestVersion = "2026-08-26.dahlia"

var versionForm = regexp.MustCompile(`^20[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9](\.[a-z]{1,20})?$`) // 2026-08-26.dahlia

func checkVersion(version string) error {
	if !versionForm.MatchString(version) {
		return shape.Invalid("", "", "Invalid Stripe API version: "+shape.Shown(version))
	}
	return nil
}

// render returns the object as an answer shows it: in the version of the request, expanded by the
// paths, and without private members.
func (c *Call) render(o object, paths [][]string) object {
	shown := c.shape(o)
	for _, path := range paths {
		c.expand(shown, path, maxExpand)
	}
	strip(shown)
	return shown
}

// shape copies the object and reshapes every object in it, inner ones first. The private members
// stay, because Reshape needs them.
func (c *Call) shape(o object) object {
	o = o.Clone()
	if c.Version < shape.LatestCharge {
		c.gather(o, o.Str("object"))
	}
	reshapeAll(o, c.Version)
	return o
}

// gather replaces the ids of charges and refunds in a copy of a payment intent or charge by the
// objects, for the versions that show them. Objects gathered before stay as they were.
func (c *Call) gather(o object, kindName string) {
	member, of := "", ""
	switch kindName {
	case "payment_intent":
		member, of = "_charges", "charge"
	case "charge":
		member, of = "_refunds", "refund"
	default:
		return
	}
	list := o.List(member)
	for i, v := range list {
		id, ok := v.(string)
		if !ok {
			continue
		}
		inner := c.Space.Get(of, id).Clone()
		c.gather(inner, of)
		list[i] = inner
	}
}

// reshapeAll does not reach the object of an event, which is text and keeps its shape.
func reshapeAll(v any, version string) {
	switch v := v.(type) {
	case object:
		for _, sub := range v {
			reshapeAll(sub, version)
		}
		if v.Str("object") != "" {
			shape.Reshape(v, version)
		}
	case []any:
		for _, e := range v {
			reshapeAll(e, version)
		}
	}
}

// strip removes the private members.
func strip(v any) {
	switch v := v.(type) {
	case object:
		for name, sub := range v {
			if strings.HasPrefix(name, "_") {
				delete(v, name)
				continue
			}
			strip(sub)
		}
	case []any:
		for _, e := range v {
			strip(e)
		}
	}
}

// errorObject is the body of an error.
func (c *Call) errorObject(e *shape.Error) object {
	o := object{"type": e.Kind, "message": e.Message}
	for name, text := range map[string]string{"code": e.Code, "decline_code": e.Decline, "advice_code": e.Advice,
		"param": e.Param, "charge": e.Charge} {
		if text != "" {
			o[name] = text
		}
	}
	if e.Code != "" {
		o["doc_url"] = "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(e.Code, "_", "-")
	}
	if e.Intent != nil {
		o[e.Intent.Str("object")] = c.render(e.Intent, nil)
	}
	if e.Method != nil {
		o["payment_method"] = c.render(e.Method, nil)
		o["payment_method_type"] = e.Method.Str("type")
	}
	return object{"error": o}
}
