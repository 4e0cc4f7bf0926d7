package billing

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// prorate makes pending invoice items for the items that differ between the subscription before a
// change and after it.
func (c call) prorate(before, after object) {
	of := func(sub object, id string) object {
		for _, item := range itemsOf(sub) {
			if item.ID() == id {
				return item
			}
		}
		return nil
	}
	for _, old := range itemsOf(before) {
		if item := of(after, old.ID()); item == nil || differ(old, item) {
			c.creditUnused(before, old)
		}
	}
	for _, item := range itemsOf(after) {
		old := of(before, item.ID())
		if old == nil || differ(old, item) && recurs(old) == recurs(item) {
			c.debitRest(after, item)
		}
	}
}

func recurs(item object) recurrence { return recurrenceOf(item.Sub("price")) }

// differ reports whether two states of an item cost different amounts.
func differ(a, b object) bool {
	return a.Sub("price").ID() != b.Sub("price").ID() || a.Num("quantity") != b.Num("quantity")
}

// share is the part of an amount for some seconds of a period, to the nearest minor unit. Stripe prorates
// to the second (docs.stripe.com/billing/subscriptions/prorations).
func share(amount, seconds, period int64) int64 {
	return (2*amount*seconds + period) / (2 * max(period, 1))
}

// creditUnused credits the unused part of what the item's period was billed. That is Stripe's flexible
// billing mode; the classic mode credits the current price, which differs after a change without
// prorations.
func (c call) creditUnused(sub, item object) {
	billed, end := item.Sub("_billed"), item.Num("current_period_end")
	c.prorationItem(sub, item, -share(billed.Num("amount"), end-c.Now, billed.Num("end")-billed.Num("start")), end,
		"Unused time on ")
}

// debitRest bills the item's price for the rest of the period.
func (c call) debitRest(sub, item object) {
	end := item.Num("current_period_end")
	start := recurs(item).last(sub.Num("billing_cycle_anchor"), end)
	amount := share(c.net(sub, item.Sub("price").Num("unit_amount")*item.Num("quantity"), true), end-c.Now, end-start)
	item["_billed"] = object{"amount": amount, "start": c.Now, "end": end}
	c.prorationItem(sub, item, amount, end, "Remaining time on ")
}

// prorationItem makes a pending invoice item for the time until the end, unless its amount is 0.
func (c call) prorationItem(sub, item object, amount, end int64, text string) {
	if amount == 0 {
		return
	}
	price, quantity := item.Sub("price"), item.Num("quantity")
	if quantity != 1 {
		text += strconv.FormatInt(quantity, 10) + " × "
	}
	text += cmp.Or(c.Space.Get("product", price.Str("product")).Str("name"), "the subscription")
	c.Make("invoiceitem", "ii", object{"amount": amount, "net_amount": amount, "currency": sub["currency"],
		"customer": sub["customer"], "customer_account": nil, "date": c.Now, "description": text, "discountable": false,
		"discounts": []any{}, "invoice": nil, "parent": object{"type": "subscription_details",
			"subscription_details": object{"subscription": sub.ID(), "subscription_item": item.ID()}},
		"period": object{"start": c.Now, "end": end}, "pricing": pricingOf(price), "proration": true,
		"proration_details": object{"discount_amounts": []any{}}, "quantity": quantity,
		"quantity_decimal": strconv.FormatInt(quantity, 10), "tax_rates": []any{}, "test_clock": sub["test_clock"],
		"_price": price.Clone(), "_subscription": sub.ID()})
}

// isInvoicedNow reports whether a change of items is invoiced at once: Stripe does so when an interval
// changes, and otherwise if proration_behavior asks for it.
func (c call) isInvoicedNow(before, after object) bool {
	if before.Str("status") == "trialing" {
		return false
	}
	changed := len(itemsOf(before)) != len(itemsOf(after))
	for i, item := range itemsOf(after) {
		if i < len(itemsOf(before)) {
			old := itemsOf(before)[i]
			if recurs(old) != recurs(item) {
				return true
			}
			changed = changed || old.ID() != item.ID() || differ(old, item)
		}
	}
	return changed && c.prorates(before) && c.Form.Str("proration_behavior") == "always_invoice"
}

// prorates reports whether the request prorates a change of the subscription's items.
func (c call) prorates(sub object) bool {
	return c.Form.Str("proration_behavior") != "none" && sub.Str("status") != "trialing"
}

// billChange prorates a change of items. It returns the invoice of a change that is invoiced at once,
// which has the periods that begin now and the pending items; nil: the next invoice has them.
func (c call) billChange(before, after object) (invoice object, err error) {
	now := c.isInvoicedNow(before, after)
	if now && c.Form.Str("payment_behavior") == "error_if_incomplete" {
		return nil, shape.Invalid("", "payment_behavior", "stripefake cannot roll back an update, so it rejects "+
			"error_if_incomplete for a change that is invoiced immediately.")
	}
	if c.prorates(before) {
		c.prorate(before, after)
	}
	if !now {
		return nil, nil
	}
	var bills []bill
	for i, item := range itemsOf(after) {
		if i < len(itemsOf(before)) && recurs(itemsOf(before)[i]) != recurs(item) {
			bills = append(bills, bill{item: item, start: c.Now, end: item.Num("current_period_end")})
		}
	}
	invoice = c.billed(after, "subscription_update", c.Now, bills)
	c.say("invoice.created", invoice, nil)
	return invoice, nil
}

// changeItems changes, adds and deletes items. A price of another interval begins a new period now,
// and is for subscriptions with one item.
func (c call) changeItems(sub object) error {
	if !c.Form.Has("items") {
		return nil
	}
	wanted, err := c.wantedItems(c.Form)
	if err != nil {
		return err
	}
	for _, w := range wanted {
		list := sub.Sub("items")
		i := slices.IndexFunc(itemsOf(sub), func(item object) bool { return item.ID() == w.id })
		switch {
		case w.id == "":
			if w.price.Str("currency") != sub.Str("currency") || recurrenceOf(w.price) != recurs(itemsOf(sub)[0]) {
				return shape.Invalid("", "items", "stripefake can only add items with the subscription's currency and interval.")
			}
			c.addItem(sub, w.price, w.count(), w.metadata)
		case i < 0:
			return shape.Invalid("resource_missing", "items", "No such subscription item: '"+shape.Shown(w.id)+"'")
		case w.deleted && len(itemsOf(sub)) == 1:
			return shape.Invalid("", "items", "A subscription must have at least one active plan. To cancel the "+
				"subscription, delete it.")
		case w.deleted:
			list["data"] = slices.Delete(slices.Clone(list.List("data")), i, i+1)
		default:
			if err := c.changeItem(sub, itemsOf(sub)[i], w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c call) changeItem(sub, item object, w wanted) error {
	if w.quantity >= 0 {
		item["quantity"] = w.quantity
	}
	if w.price == nil {
		return nil
	}
	if w.price.Str("currency") != sub.Str("currency") {
		return shape.Invalid("", "items", "The price must be in the subscription's currency, "+sub.Str("currency")+".")
	}
	before := recurs(item)
	item["price"] = w.price.Clone()
	if recurs(item) == before || sub.Str("status") == "trialing" {
		return nil
	}
	if len(itemsOf(sub)) > 1 {
		return shape.Invalid("", "items", "stripefake can only change the interval of a subscription with one item.")
	}
	sub["billing_cycle_anchor"] = c.Now
	item["current_period_start"], item["current_period_end"] = c.Now, recurs(item).next(c.Now, c.Now)
	return nil
}
