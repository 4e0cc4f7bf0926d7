package api

import (
	"cmp"
	"regexp"
	"slices"
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

// render returns the object as an answer shows it: in the request's version, and expanded.
func (c *Call) render(o object, paths [][]string) object {
	shown := c.shape(o)
	for _, path := range paths {
		c.expand(shown, path, maxExpand)
	}
	return shown.Strip()
}

// shape copies the object and reshapes all in it, inner ones first. Private members stay.
func (c *Call) shape(o object) object {
	o = o.Clone()
	if c.Version < shape.LatestCharge {
		c.gather(o, o.Str("object"))
	}
	shape.Walk(o, func(inner object) { shape.Reshape(inner, c.Version) })
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

func (c *Call) errorObject(e *shape.Error) object {
	if isV2(c.url) {
		return v2Error(e)
	}
	o := e.Object()
	if e.Intent != nil {
		o[e.Intent.Str("object")] = c.render(e.Intent, nil)
	}
	if e.Method != nil {
		o["payment_method"] = c.render(e.Method, nil)
		o["payment_method_type"] = e.Method.Str("type")
	}
	return object{"error": o}
}

const maxExpand = 4 // levels of expansion

// kinds of objects by the prefix of their ids.
var idKinds = map[string]string{"acct": "account", "ch": "charge", "clock": "test_helpers.test_clock",
	"coupon": "coupon", "di": "discount",
	"cs": "checkout.session", "cus": "customer", "dp": "dispute", "du": "dispute", "evt": "event", "ii": "invoiceitem",
	"in": "invoice", "inpay": "invoice_payment", "pi": "payment_intent", "po": "payout", "pm": "payment_method", "price": "price",
	"prod": "product", "re": "refund", "seti": "setup_intent", "si": "subscription_item", "sub": "subscription",
	"sub_sched": "subscription_schedule", "txn": "balance_transaction", "we": "webhook_endpoint"}

// expandable has the expandable members of each kind, with their kinds, if their names do not have
// it: those of Stripe's spec whose kind the fake has, and those of versions before 2025-03-31.
var expandable = map[string]string{
	"balance_transaction": "source:",
	"charge":              "balance_transaction customer invoice payment_intent refunds.data:refund on_behalf_of:account",
	"checkout.session":    "customer invoice payment_intent setup_intent subscription line_items.data:line_item",
	"customer": "invoice_settings.default_payment_method:payment_method subscriptions.data:subscription " +
		"test_clock:test_helpers.test_clock sources.data:payment_method default_source:payment_method tax: tax_ids.data:",
	"coupon":   "applies_to:",
	"discount": "customer source.coupon",
	"dispute":  "charge payment_intent",
	"invoice": "customer default_payment_method:payment_method parent.subscription_details.subscription " +
		"payments.data:invoice_payment test_clock:test_helpers.test_clock lines.data:line_item latest_revision:invoice " +
		"discounts:discount total_discount_amounts.discount confirmation_secret: on_behalf_of:account " +
		"payment_intent charge subscription",
	"invoice_payment": "invoice payment.charge payment.payment_intent",
	"invoiceitem":     "customer invoice pricing.price_details.price test_clock:test_helpers.test_clock subscription",
	"line_item": "discount_amounts.discount pricing.price_details.price subscription invoice_item:invoiceitem " +
		"price.product",
	"payment_intent": "customer latest_charge:charge payment_method on_behalf_of:account " +
		"transfer_data.destination:account invoice charges.data:charge review: application:",
	"payment_method": "customer",
	"payout":         "balance_transaction failure_balance_transaction:balance_transaction",
	"price":          "product tiers: currency_options:",
	"product":        "default_price:price",
	"refund":         "balance_transaction charge payment_intent payment_method customer",
	"setup_intent": "customer payment_method on_behalf_of:account latest_attempt: mandate: single_use_mandate: " +
		"application:",
	"subscription": "customer discounts:discount default_payment_method:payment_method items.data:subscription_item " +
		"latest_invoice:invoice pending_setup_intent:setup_intent schedule:subscription_schedule " +
		"test_clock:test_helpers.test_clock",
	"subscription_item": "price price.product",
	"subscription_schedule": "customer default_settings.default_payment_method:payment_method " +
		"phases.default_payment_method:payment_method phases.items.price phases.add_invoice_items.price subscription " +
		"test_clock:test_helpers.test_clock",
}

// expansionOf splits an entry of expandable into the path of the member and its kind.
func expansionOf(entry string) (path, kind string) {
	path, kind, other := strings.Cut(entry, ":")
	if !other {
		kind = path[strings.LastIndexByte(path, '.')+1:]
	}
	return path, kind
}

func kindOf(id string) string {
	for prefix := id; ; {
		i := strings.LastIndexByte(prefix, '_')
		if i < 0 {
			return ""
		}
		prefix = prefix[:i]
		if kind := idKinds[prefix]; kind != "" {
			return kind
		}
	}
}

// expansions returns the paths of the parameter expand, split into parts.
func (c *Call) expansions() ([][]string, error) {
	v, ok := c.params["expand"]
	if !ok || v == "" {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, shape.Invalid("", "expand", "Invalid array: expand must be a list: expand[]=…")
	}
	var paths [][]string
	for _, v := range list {
		path, ok := v.(string)
		parts := strings.Split(path, ".")
		member := parts
		if parts[0] == "data" && c.route.Method == "GET" && len(parts) > 1 {
			member = parts[1:]
		}
		levels := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "data" })
		switch {
		case !ok || !expands(c.route.ResultKind(), member):
			return nil, shape.Invalid("", "expand", "This property cannot be expanded ("+shape.Shown(v)+").")
		case len(levels) > maxExpand:
			return nil, shape.Invalid("", "expand",
				"You cannot expand more than 4 levels of a property (property: "+shape.Shown(v)+").")
		}
		paths = append(paths, parts)
	}
	return paths, nil
}

// expands reports whether the kind has the path, of which items and data may be parts.
func expands(kind string, path []string) bool {
	whole := strings.Join(path, ".")
	for entry := range strings.FieldsSeq(expandable[kind]) {
		name, of := expansionOf(entry)
		switch rest, under := strings.CutPrefix(whole, name); {
		case name == whole, strings.HasPrefix(name, whole+"."):
			return true
		case under && rest[0] == '.' && expands(of, strings.Split(rest[1:], ".")):
			return true
		}
	}
	return false
}

// expand replaces the ids on the path by their objects, in place.
func (c *Call) expand(o object, path []string, depth int) {
	if len(path) == 0 || depth == 0 {
		return
	}
	name, rest := path[0], path[1:]
	if _, there := o[name]; !there {
		if v, ok := c.included(o, name); ok {
			o[name] = v
		}
	}
	switch v := o[name].(type) {
	case string:
		if sub := c.expanded(v, name, rest, depth); sub != nil && name != "id" {
			o[name] = sub
		}
	case object:
		c.expand(v, rest, depth)
	case []any:
		for i, e := range v {
			switch e := e.(type) {
			case object:
				c.expand(e, rest, depth)
			case string:
				if sub := c.expanded(e, name, rest, depth); sub != nil {
					v[i] = sub
				}
			}
		}
	}
}

// expanded returns the object of the id in the member, expanded by the rest of the path, or nil. The id of a coupon
// may be any text.
func (c *Call) expanded(id, member string, rest []string, depth int) object {
	if sub := c.Space.Get(cmp.Or(kindOf(id), member), id); sub != nil {
		shaped := c.shape(sub)
		c.expand(shaped, rest, depth-1)
		return shaped
	}
	if a := c.accountObject(id); a != nil {
		return c.shape(a)
	}
	return nil
}

// included returns a member shown on demand: a list of the objects that refer to it, or a private one.
func (c *Call) included(o object, name string) (any, bool) {
	list := func(kindName, member, url string) (any, bool) {
		data := []any{}
		for _, other := range slices.Backward(c.Space.All(kindName)) {
			if other.Str(member) == o.ID() && len(data) < pageDefault {
				data = append(data, c.shape(other))
			}
		}
		return shape.ListOf(data, url), true
	}
	switch o.Str("object") + "." + name {
	case "charge.refunds":
		return list("refund", "charge", "/v1/charges/"+o.ID()+"/refunds")
	case "invoice.payments":
		return list("invoice_payment", "invoice", "/v1/invoice_payments")
	case "customer.subscriptions":
		return list("subscription", "customer", "/v1/customers/"+o.ID()+"/subscriptions")
	case "invoice.confirmation_secret", "price.tiers", "price.currency_options", "checkout.session.line_items":
		v, ok := o["_"+name]
		return shape.CloneValue(v), ok
	}
	return nil, false
}
