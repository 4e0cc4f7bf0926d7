package stripefake

import (
	"maps"
	"strconv"
)

// newLine is a line with what all lines have.
func (c *call) newLine(invoice object, members object) object {
	line := object{
		"id": c.newID("il"), "object": "line_item", "description": nil, "discount_amounts": []any{}, "discountable": true,
		"discounts": []any{}, "invoice": invoice.id(), "livemode": c.space.live, "metadata": object{}, "pretax_credit_amounts": []any{},
		"pricing": nil, "subscription": orNil(subscriptionID(invoice)), "taxes": []any{},
	}
	maps.Copy(line, members)
	line["currency"], line["subtotal"] = invoice["currency"], line["amount"]
	return line
}

// itemLine is the line of an invoice item.
func (c *call) itemLine(invoice, item object) object {
	return c.newLine(invoice, object{
		"amount": item["amount"], "description": item["description"], "discountable": item["discountable"],
		"metadata": item.sub("metadata").clone(), "period": item.sub("period").clone(), "pricing": cloneValue(item["pricing"]),
		"quantity": item["quantity"], "quantity_decimal": item["quantity_decimal"],
		"parent": object{"type": "invoice_item_details", "subscription_item_details": nil, "invoice_item_details": object{
			"invoice_item": item.id(), "proration": false, "proration_details": object{"credited_items": nil}, "subscription": item["_subscription"]}},
		"_item": item.id(), "_price": cloneValue(item["_price"]),
	})
}

// subscriptionLine is the line of a subscription's item for a period.
func (c *call) subscriptionLine(invoice, item object, amount, start, end int64, description string) object {
	quantity := item.num("quantity")
	return c.newLine(invoice, object{
		"amount": amount, "description": description, "metadata": item.sub("metadata").clone(),
		"period":  object{"start": start, "end": end},
		"pricing": pricingOf(item.sub("price")), "quantity": quantity, "quantity_decimal": strconv.FormatInt(quantity, 10),
		"parent": object{"type": "subscription_item_details", "invoice_item_details": nil, "subscription_item_details": object{
			"invoice_item": nil, "proration": false, "proration_details": object{"credited_items": nil},
			"subscription": subscriptionID(invoice), "subscription_item": item.id()}},
		"_price": item.sub("price").clone(),
	})
}

// add puts a line onto a draft.
func add(invoice, line object) {
	lines := invoice.sub("lines")
	lines["data"] = append(lines.list("data"), line)
	total(invoice)
}

// total adds the lines of a draft up. What is less than nothing is not owed: the fake keeps no
// customer balance.
func total(invoice object) {
	sum := int64(0)
	for _, line := range linesOf(invoice) {
		sum += line.num("amount")
	}
	for _, name := range []string{"subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax"} {
		invoice[name] = sum
	}
	invoice["amount_due"], invoice["amount_remaining"] = max(sum, 0), max(sum, 0)
}

// pending are the customer's invoice items that are on no invoice yet, oldest first: those
// of the subscription and those of none. currency "" takes that of the first.
func (c *call) pending(customer, sub object, currency string) []object {
	var items []object
	for _, item := range c.space.all("invoiceitem") {
		if item.str("customer") != customer.id() || item["invoice"] != nil {
			continue
		}
		if of := item.str("_subscription"); of != "" && of != sub.id() {
			continue
		}
		if currency == "" {
			currency = item.str("currency")
		}
		if item.str("currency") == currency {
			items = append(items, item)
		}
	}
	return items
}

// take puts invoice items onto a draft.
func (c *call) take(invoice object, items []object) {
	for _, item := range items {
		c.onto(invoice, item)
	}
}

func (c *call) onto(invoice, item object) {
	before := item.clone()
	item["invoice"] = invoice.id()
	add(invoice, c.itemLine(invoice, item))
	c.changed("invoiceitem.updated", before, item)
}

// linesOf are the lines of an invoice.
func linesOf(invoice object) []object { return objectsOf(invoice.sub("lines").list("data")) }
