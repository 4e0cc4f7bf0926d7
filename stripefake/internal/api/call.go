// Package api implements the parts of Stripe's API that all resources share: accounts, routes, lists,
// expansion, idempotency keys, faults, events, webhooks and scheduled changes. It has the routes of
// accounts, events and webhook endpoints. It does not know payments and invoices, which register their
// own routes.
package api

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

type object = shape.Object

// A Call is one API request while the fake carries it out. Mu is held.
type Call struct {
	*Fake
	Space   *Space
	Now     int64             // Unix seconds, by the fake's clock
	Version string            // of the answer, as YYYY-MM-DD.name
	Path    map[string]string // the named parts of the path
	ID      string            // the last of them: of the object that the path names
	Form    shape.Params      // reading one that the route does not declare is misread
	params  shape.Form        // the same, as they came
	key     string            // idempotency key
	id      string            // of the request, req_…; "" for a change by itself
	url     string            // the request's path: /v1/customers
	query   string            // what follows it
	Base    string            // how the fake was reached, for links to its own pages: http://127.0.0.1:12111
	route   *Route            // nil for a change by itself
	misread error             // a mistake of the handler, which becomes a 500: the first undeclared read

	BreakOff bool // the request's effect breaks the connection instead of answering
}

// declared notes a misread, unless the route declares the parameter as the reader wants it.
func (c *Call) declared(name string, as func(param) bool) {
	if c.route == nil || c.misread != nil {
		return
	}
	if p, known := c.route.param(name); !known || !as(p) {
		c.misread = fmt.Errorf("%s reads a parameter that it does not declare with this type: %s", c.route.Endpoint(), name)
	}
}

// anchorType is the type of billing_cycle_anchor where it is no time.
const anchorType = "now|unchanged"

// check returns the error of the first parameter whose value is not as the route declares it.
func (c *Call) check() error {
	if c.route.Method == http.MethodGet {
		if err := c.Form.Filled(); err != nil {
			return err
		}
	}
	for _, p := range c.route.params {
		if v, ok := c.params.At(p.name); ok {
			if p.typ == anchorType && c.Version >= shape.Endive { // {type: now}
				in, _ := v.(shape.Form)
				v = in["type"]
				c.params[p.name] = v
			}
			if err := p.check(v); err != nil {
				return err
			}
		}
		if p.only != "" {
			if err := c.Form.Only(p.name, p.only); err != nil {
				return err
			}
		}
	}
	for _, p := range c.route.params {
		v, ok := c.params.At(p.name)
		outer, _, inner := strings.Cut(p.name, "[")
		switch {
		case p.required && (!ok || v == "") && (!inner || c.Form.Sub(outer).Given()):
			return shape.Missed(p.name)
		case p.beyond && ok:
			return c.Beyond(p.name)
		}
	}
	return nil
}

// Num returns a parameter that is a whole number; 0 if it is absent.
func (c *Call) Num(name string) int64 {
	c.declared(name, param.isNumber)
	v, _ := c.params.At(name)
	n, _ := shape.WholeOf(v, name) // check has refused everything else
	return n
}

// Flag returns a parameter of type bool; false if it is absent.
func (c *Call) Flag(name string) bool {
	c.declared(name, func(p param) bool { return p.typ == "bool" })
	v, _ := c.params.At(name)
	return v == "true"
}

// Describe sets the members that the route's parameters give, and merges metadata, if it takes any.
func (c *Call) Describe(o object) error {
	for _, p := range c.route.params {
		switch {
		case !p.member || !c.Form.Has(p.name):
		case p.typ == "bool":
			o[p.name] = c.Flag(p.name)
		case p.isNumber():
			o[p.name] = c.Num(p.name)
		default:
			c.Form.SetTexts(o, p.name)
		}
	}
	if _, takes := c.route.param("metadata"); !takes {
		return nil
	}
	return c.Form.Metadata(o)
}

// Beyond is the error of a parameter that Stripe has and this fake does not: silence would mislead.
func (c *Call) Beyond(name string) error {
	return shape.Invalid("", name, "stripefake does not support "+name+", although Stripe does.")
}

// BeyondPart is Beyond for the part of a parameter, if Stripe has it.
func (c *Call) BeyondPart(name string) error {
	return shape.Invalid("", name, "stripefake does not support "+name+". Stripe may.")
}

// Follow calls the follower of the step, if a package has registered one.
func (c *Call) Follow(step string, o object) {
	if do := c.Options.Followers[step]; do != nil {
		do(c, o)
	}
}

// Changed plans the object anew, and emits an …updated event with the changed members, if any.
func (c *Call) Changed(typ string, before, o object) {
	c.Plan(o)
	if previous := shape.Differences(before, o); typ != "" && shape.IsPublic(previous) {
		c.Emit(typ, o, previous)
	}
}

// Change copies the members of after into the object, and is Changed then; typ "": without event.
func (c *Call) Change(typ string, o, after object) {
	before := o.Clone()
	maps.Copy(o, after)
	c.Changed(typ, before, o)
}

// With returns a handler for the object that load finds.
func With[C any](load func(C) (object, error), do func(C, object) (object, error)) func(C) (object, error) {
	return func(c C) (object, error) {
		o, err := load(c)
		if err != nil {
			return nil, err
		}
		return do(c, o)
	}
}

// A changer has Call.Change.
type changer interface {
	Change(typ string, o, after object)
}

// Update returns a handler for the object that load finds: do changes a copy, or refuses.
func Update[C changer](typ string, load func(C) (object, error), do func(C, object) error) func(C) (object, error) {
	return With(load, func(c C, o object) (object, error) {
		after := o.Clone()
		if err := do(c, after); err != nil {
			return nil, err
		}
		c.Change(typ, o, after)
		return o, nil
	})
}
