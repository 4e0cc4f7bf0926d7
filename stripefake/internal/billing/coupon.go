package billing

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func couponRoutes() []api.Route {
	const one = "/v1/coupons/{coupon}"
	const params = "metadata =name ~currency_options "
	return []api.Route{
		on("POST", "/v1/coupons", params+"amount_off:amount currency duration:forever|once|repeating duration_in_months:int "+
			"id max_redemptions:int percent_off redeem_by:time ~applies_to", call.createCoupon),
		api.Lists("/v1/coupons", "coupon", "created", nil),
		on("GET", one, "", call.coupon),
		on("POST", one, params, api.Update("coupon.updated", call.coupon, call.Describe)),
		on("DELETE", one, "", api.With(call.coupon, call.deleteCoupon)),
	}
}

func (c call) coupon() (object, error) {
	o, err := c.Find("coupon", c.ID, "coupon")
	if err == nil && o.Yes("deleted") {
		return nil, shape.Missing("coupon", c.ID, "coupon")
	}
	return o, err
}

func (c call) createCoupon() (object, error) {
	o := object{"duration": cmp.Or(c.Form.Str("duration"), "once"), "metadata": object{}, "times_redeemed": int64(0),
		"valid": true}.Null("amount_off currency duration_in_months max_redemptions name percent_off redeem_by")
	for _, name := range []string{"amount_off", "duration_in_months", "max_redemptions", "redeem_by"} {
		if c.Form.Has(name) {
			o[name] = c.Num(name)
		}
	}
	if c.Form.Has("currency") {
		o["currency"] = strings.ToLower(c.Form.Str("currency"))
	}
	if c.Form.Has("percent_off") {
		percent, err := strconv.ParseFloat(c.Form.Str("percent_off"), 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return nil, shape.Invalid("", "percent_off", "Invalid percent_off: must be greater than 0 and at most 100.")
		}
		o["percent_off"] = percent
	}
	id := c.Form.Str("id")
	switch {
	case (o["percent_off"] == nil) == (o["amount_off"] == nil):
		return nil, shape.Invalid("", "percent_off", "You must set exactly one of percent_off and amount_off.")
	case o["amount_off"] != nil && (o.Num("amount_off") < 1 || len(o.Str("currency")) != 3):
		return nil, shape.Invalid("", "currency", "amount_off must be at least 1, and must have a currency.")
	case (o.Str("duration") == "repeating") != (o.Num("duration_in_months") > 0):
		return nil, shape.Invalid("", "duration_in_months", "duration_in_months must be set for the duration repeating, "+
			"and for no other.")
	case id != "" && c.Space.Get("coupon", id) != nil:
		return nil, shape.Invalid("resource_already_exists", "id", "Coupon already exists.")
	case id != "":
		o["id"] = id
	}
	if err := c.Describe(o); err != nil {
		return nil, err
	}
	return c.Make("coupon", "coupon", o), nil
}

// deleteCoupon leaves the discounts that the coupon has given.
func (c call) deleteCoupon(o object) (object, error) {
	c.Emit("coupon.deleted", o, nil)
	c.Space.Put("coupon", o.Deleted())
	return o.Deleted(), nil
}

// wantDiscounts notes in the private member _redeem the coupons and discounts that the request wants for
// a subscription or an invoice. former takes the parameter coupon of earlier versions too.
func (c call) wantDiscounts(o object, former bool) error {
	list := []any{}
	switch {
	case former && c.Form.Str("coupon") != "":
		coupon, err := c.redeemable(c.Form, "coupon")
		if err != nil {
			return err
		}
		list = append(list, coupon)
	case !c.Form.Has("discounts"):
		return nil
	}
	for _, p := range c.Form.Each("discounts") {
		switch id := p.Str("discount"); {
		case p.Has("promotion_code"):
			return c.BeyondPart(p.In("promotion_code"))
		case p.Has("coupon"):
			coupon, err := c.redeemable(p, "coupon")
			if err != nil {
				return err
			}
			list = append(list, coupon)
		case slices.Contains(o.List("discounts"), any(id)):
			list = append(list, id)
		default:
			return p.Invalid("resource_missing", "discount", "No such discount: '"+shape.Shown(id)+"'")
		}
	}
	o["_redeem"] = list
	return nil
}

// redeemable returns the coupon of the parameter, if it can be redeemed now.
func (c call) redeemable(p shape.Params, name string) (object, error) {
	o := c.Space.Get("coupon", p.Str(name))
	if o == nil || o.Yes("deleted") {
		return nil, p.Invalid("resource_missing", name, "No such coupon: '"+shape.Shown(p.Str(name))+"'")
	}
	if by, limited := o["redeem_by"].(int64); !o.Yes("valid") || limited && by <= c.Now {
		return nil, p.Invalid("coupon_expired", name, "Coupon expired: "+o.ID())
	}
	return o, nil
}

// giveDiscounts gives the subscription or invoice the discounts that wantDiscounts has noted.
func (c call) giveDiscounts(o object) {
	wanted, some := o["_redeem"].([]any)
	delete(o, "_redeem")
	if !some {
		return
	}
	list := []any{}
	for _, v := range wanted {
		if coupon, isNew := v.(object); isNew {
			v = c.newDiscount(o, coupon).ID()
		}
		list = append(list, v)
	}
	c.keepDiscounts(o, list)
}

// keepDiscounts sets the discounts, and emits the end of those that are no longer among them.
func (c call) keepDiscounts(o object, list []any) {
	for _, id := range o.List("discounts") {
		if !slices.Contains(list, id) {
			c.Emit("customer.discount.deleted", c.Space.Get("discount", id.(string)), nil)
		}
	}
	o["discounts"], o["_discount"] = list, nil
	if len(list) > 0 {
		o["_discount"] = c.Space.Get("discount", list[0].(string)).Clone()
	}
}

func (c call) newDiscount(o, coupon object) object {
	d := object{"customer": o["customer"], "source": object{"type": "coupon", "coupon": coupon.ID()}, "start": c.Now,
		"_coupon": coupon.Clone()}.Null("checkout_session customer_account end invoice invoice_item promotion_code " +
		"subscription subscription_item")
	d[o.Str("object")] = o.ID()
	if coupon.Str("duration") == "repeating" {
		d["end"] = recurrence{"month", coupon.Num("duration_in_months")}.after(c.Now, 1)
	}
	redeemed := coupon.Num("times_redeemed") + 1
	most, limited := coupon["max_redemptions"].(int64)
	coupon["times_redeemed"], coupon["valid"] = redeemed, !limited || redeemed < most
	d = c.Create("discount", "di", d)
	c.Emit("customer.discount.created", d, nil)
	return d
}

// discountsOf returns the discounts of a subscription that have not ended. The others leave it.
func (c call) discountsOf(sub object) []any {
	list := slices.DeleteFunc(slices.Clone(sub.List("discounts")), func(id any) bool {
		end, ends := c.Space.Get("discount", id.(string))["end"].(int64)
		return ends && end <= c.Now
	})
	if list = append([]any{}, list...); len(list) < len(sub.List("discounts")) {
		c.keepDiscounts(sub, list)
	}
	return list
}

// used takes the discounts for one invoice off a subscription, if the invoice has used them.
func (c call) used(sub, invoice object) {
	once := map[any]bool{}
	for _, d := range shape.ObjectsOf(invoice.List("total_discount_amounts")) {
		coupon := c.Space.Get("discount", d.Str("discount")).Sub("_coupon")
		once[d["discount"]] = d.Num("amount") > 0 && coupon.Str("duration") == "once"
	}
	if list := slices.DeleteFunc(slices.Clone(sub.List("discounts")), func(id any) bool { return once[id] }); len(list) <
		len(sub.List("discounts")) {
		c.keepDiscounts(sub, append([]any{}, list...))
	}
}

// off is what a coupon takes off an amount in the currency, to the nearest minor unit.
func off(coupon object, amount int64, currency any) int64 {
	if percent, is := coupon["percent_off"].(float64); is {
		return share(amount, int64(math.Round(percent*100)), 100*100)
	}
	if coupon["currency"] != currency {
		return 0
	}
	return min(coupon.Num("amount_off"), amount)
}

// net is an amount less the subscription's discounts. percentOnly leaves out those of a fixed amount.
func (c call) net(sub object, amount int64, percentOnly bool) int64 {
	for _, id := range c.discountsOf(sub) {
		coupon := c.Space.Get("discount", id.(string)).Sub("_coupon")
		if !percentOnly || coupon["percent_off"] != nil {
			amount -= off(coupon, amount, sub["currency"])
		}
	}
	return amount
}

// discount shares an invoice's discounts among its lines, and returns their sum.
func (c call) discount(invoice object) (sum int64) {
	lines := slices.DeleteFunc(linesOf(invoice), func(line object) bool {
		line["discount_amounts"] = []any{}
		return !line.Yes("discountable") || line.Num("amount") <= 0
	})
	left, base := make([]int64, len(lines)), int64(0)
	for i, line := range lines {
		left[i] = line.Num("amount")
		base += left[i]
	}
	totals := []any{}
	for _, id := range invoice.List("discounts") {
		amount := off(c.Space.Get("discount", id.(string)).Sub("_coupon"), base, invoice["currency"])
		totals = append(totals, object{"amount": amount, "discount": id})
		sum += amount
		rest, of := amount, base
		base -= amount
		for i, line := range lines {
			part := share(rest, left[i], of)
			rest, of, left[i] = rest-part, of-left[i], left[i]-part
			line["discount_amounts"] = append(line.List("discount_amounts"), object{"amount": part, "discount": id})
		}
	}
	invoice["total_discount_amounts"] = totals
	return sum
}
