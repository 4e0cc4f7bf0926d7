package stripefake

import (
	"regexp"
	"strings"
)

// NewestVersion of the API is what objects are kept in, and what a request without a
// Stripe-Version gets from an account that has no other default.
const NewestVersion = "2026-08-26.dahlia"

var versionForm = regexp.MustCompile(`^20[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9](\.[a-z]{1,20})?$`) // 2026-08-26.dahlia

func checkVersion(version string) error {
	if !versionForm.MatchString(version) {
		return invalid("", "", "Invalid Stripe API version: "+shown(version))
	}
	return nil
}

// render returns the object as an answer shows it: in the shape of the request's version,
// with what is to be expanded, and without the fake's own members.
func (c *call) render(o object, paths [][]string) object {
	shown := c.shape(o)
	for _, path := range paths {
		c.expand(shown, path, maxExpand)
	}
	strip(shown)
	return shown
}

// shape copies the object and gives every object in it, inner ones first, the shape of the
// call's version. Private members are still there, so that reshape can use them.
func (c *call) shape(o object) object {
	o = o.clone()
	if c.version < latestCharge {
		c.gather(o, o.str("object"))
	}
	reshapeAll(o, c.version)
	return o
}

// gather puts the objects themselves where a copy of a payment intent or a charge, or of some of
// its members, has the ids of its charges and refunds, for the versions that show them. Those
// that were gathered before stay as they were then.
func (c *call) gather(o object, kindName string) {
	member, of := "", ""
	switch kindName {
	case "payment_intent":
		member, of = "_charges", "charge"
	case "charge":
		member, of = "_refunds", "refund"
	default:
		return
	}
	list := o.list(member)
	for i, v := range list {
		id, ok := v.(string)
		if !ok {
			continue
		}
		inner := c.space.get(of, id).clone()
		c.gather(inner, of)
		list[i] = inner
	}
}

// reshapeAll does not reach what an event is about: that is a text, and keeps the shape that
// it was made in.
func reshapeAll(v any, version string) {
	switch v := v.(type) {
	case object:
		for _, sub := range v {
			reshapeAll(sub, version)
		}
		if v.str("object") != "" {
			reshape(v, version)
		}
	case []any:
		for _, e := range v {
			reshapeAll(e, version)
		}
	}
}

// strip takes the private members away.
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
func (c *call) errorObject(e *apiError) object {
	o := object{"type": e.kind, "message": e.message}
	for name, text := range map[string]string{"code": e.code, "decline_code": e.decline, "advice_code": e.advice, "param": e.param, "charge": e.charge} {
		if text != "" {
			o[name] = text
		}
	}
	if e.code != "" {
		o["doc_url"] = "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(e.code, "_", "-")
	}
	if e.intent != nil {
		o[e.intent.str("object")] = c.render(e.intent, nil)
	}
	if e.method != nil {
		o["payment_method"] = c.render(e.method, nil)
		o["payment_method_type"] = e.method.str("type")
	}
	return object{"error": o}
}
