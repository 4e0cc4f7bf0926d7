package billing

import (
	"maps"
	"strconv"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// newLine makes a line with the members of all lines.
func (c call) newLine(invoice object, members object) object {
	line := object{
		"id": c.NewID("il"), "object": "line_item", "description": nil, "discount_amounts": []any{}, "discountable": true,
		"discounts": []any{}, "invoice": invoice.ID(), "livemode": c.Space.Live, "metadata": object{},
		"pretax_credit_amounts": []any{},
		"pricing":               nil, "subscription": shape.OrNil(shape.SubscriptionID(invoice)), "taxes": []any{},
	}
	maps.Copy(line, members)
	line["currency"], line["subtotal"] = invoice["currency"], line["amount"]
	return line
}

// itemLine is the line of an invoice item.
func (c call) itemLine(invoice, item object) object {
	return c.newLine(invoice, object{
		"amount": item["amount"], "description": item["description"], "discountable": item["discountable"],
		"metadata": item.Sub("metadata").Clone(), "period": item.Sub("period").Clone(),
		"pricing":  shape.CloneValue(item["pricing"]),
		"quantity": item["quantity"], "quantity_decimal": item["quantity_decimal"],
		"parent": object{"type": "invoice_item_details", "subscription_item_details": nil, "invoice_item_details": object{
			"invoice_item": item.ID(), "proration": false, "proration_details": object{"credited_items": nil},
			"subscription": item["_subscription"]}},
		"_item": item.ID(), "_price": shape.CloneValue(item["_price"]),
	})
}

// subscriptionLine is the line of a subscription's item for a period.
func (c call) subscriptionLine(invoice, item object, amount, start, end int64, description string) object {
	quantity := item.Num("quantity")
	return c.newLine(invoice, object{
		"amount": amount, "description": description, "metadata": item.Sub("metadata").Clone(),
		"period":  object{"start": start, "end": end},
		"pricing": pricingOf(item.Sub("price")), "quantity": quantity, "quantity_decimal": strconv.FormatInt(quantity, 10),
		"parent": object{"type": "subscription_item_details", "invoice_item_details": nil,
			"subscription_item_details": object{
				"invoice_item": nil, "proration": false, "proration_details": object{"credited_items": nil},
				"subscription": shape.SubscriptionID(invoice), "subscription_item": item.ID()}},
		"_price": item.Sub("price").Clone(),
	})
}

// add puts a line onto a draft.
func add(invoice, line object) {
	lines := invoice.Sub("lines")
	lines["data"] = append(lines.List("data"), line)
	total(invoice)
}

// total adds up the lines of a draft. A negative sum is not owed: the fake keeps no customer
// balance.
func total(invoice object) {
	sum := int64(0)
	for _, line := range linesOf(invoice) {
		sum += line.Num("amount")
	}
	for _, name := range []string{"subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax"} {
		invoice[name] = sum
	}
	invoice["amount_due"], invoice["amount_remaining"] = max(sum, 0), max(sum, 0)
}

// pending returns the customer's invoice items without an invoice, oldest first: those of the
// subscription and those of none. currency "": the first item's.
func (c call) pending(customer, sub object, currency string) []object {
	var items []object
	for _, item := range c.Space.All("invoiceitem") {
		if item.Str("customer") != customer.ID() || item["invoice"] != nil {
			continue
		}
		if of := item.Str("_subscription"); of != "" && of != sub.ID() {
			continue
		}
		if currency == "" {
			currency = item.Str("currency")
		}
		if item.Str("currency") == currency {
			items = append(items, item)
		}
	}
	return items
}

// take puts invoice items onto a draft.
func (c call) take(invoice object, items []object) {
	for _, item := range items {
		c.onto(invoice, item)
	}
}

func (c call) onto(invoice, item object) {
	before := item.Clone()
	item["invoice"] = invoice.ID()
	add(invoice, c.itemLine(invoice, item))
	c.Changed("invoiceitem.updated", before, item)
}

// linesOf are the lines of an invoice.
func linesOf(invoice object) []object { return shape.ObjectsOf(invoice.Sub("lines").List("data")) }
