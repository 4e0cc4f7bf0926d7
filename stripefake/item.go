package stripefake

import (
	"maps"
	"strconv"
	"strings"
)

func itemRoutes() []route {
	const params = "amount description discountable expand metadata period price_data pricing quantity unit_amount_decimal"
	const path = "/v1/invoiceitems/{invoiceitem}"
	return []route{
		{method: "POST", path: "/v1/invoiceitems", params: params + " currency customer invoice subscription", former: "price", do: (*call).createItem},
		on("GET", "/v1/invoiceitems", listParams+"created customer invoice pending", (*call).listItems),
		on("GET", path, "expand", (*call).getItem),
		{method: "POST", path: path, params: params, former: "price", do: (*call).updateItem},
		on("DELETE", path, "", (*call).deleteItem),
	}
}

func (c *call) createItem() (object, error) {
	customer, err := c.buyer()
	if err != nil {
		return nil, err
	}
	defer c.inTimeOf(customer)()
	item := object{
		"customer": customer.id(), "customer_account": nil, "date": c.now, "description": nil, "discountable": true, "discounts": []any{},
		"invoice": nil, "parent": nil, "period": object{"start": c.now, "end": c.now}, "pricing": nil, "proration": false,
		"quantity": int64(1), "quantity_decimal": "1", "tax_rates": []any{}, "test_clock": customer["test_clock"],
	}
	if err := c.itemParams(item); err != nil {
		return nil, err
	}
	if id := c.form.str("subscription"); id != "" {
		sub, err := c.find("subscription", id, "subscription")
		if err != nil {
			return nil, err
		}
		item["_subscription"] = sub.id()
	}
	if id := c.form.str("invoice"); id != "" {
		invoice, err := c.draft(id, "invoice")
		if err != nil {
			return nil, err
		}
		if invoice.str("customer") != customer.id() || invoice.str("currency") != item.str("currency") {
			return nil, invalid("", "invoice", "The invoice is of another customer or in another currency.")
		}
		item = c.storeItem(item)
		before := invoice.clone()
		c.onto(invoice, item)
		c.changed("invoice.updated", before, invoice)
		return item, nil
	}
	return c.storeItem(item), nil
}

func (c *call) storeItem(item object) object {
	item = c.create("invoiceitem", "ii", item)
	c.emit("invoiceitem.created", item, nil)
	return item
}

// itemParams sets what the parameters say about an invoice item, new or old.
func (c *call) itemParams(item object) error {
	if err := c.itemPrice(item); err != nil {
		return err
	}
	if c.form.has("description") {
		item["description"] = textOrNil(c.form, "description")
	}
	if c.form.has("discountable") {
		item["discountable"] = c.form.yes("discountable")
	}
	if period := c.form.sub("period"); period != nil {
		start, err := whole(period, "start", "period[start]")
		if err != nil {
			return err
		}
		end, err := whole(period, "end", "period[end]")
		if err != nil {
			return err
		}
		item["period"] = object{"start": start, "end": end}
	}
	return c.metadata(item)
}

// itemPrice sets the amount of an invoice item: amount and currency, or a price and a
// quantity.
func (c *call) itemPrice(item object) error {
	if c.form.has("quantity") {
		n, err := c.amount("quantity")
		if err != nil {
			return err
		}
		item["quantity"], item["quantity_decimal"] = n, strconv.FormatInt(n, 10)
	}
	var price object
	var err error
	switch {
	case c.form.sub("pricing") != nil:
		price, err = c.priceFor(c.form.sub("pricing"), "pricing")
	case c.form.has("price"), c.form.sub("price_data") != nil:
		price, err = c.priceFor(c.form, "")
	case c.form.has("unit_amount_decimal"):
		amount, err := unitAmount(c.form, "")
		if err != nil {
			return err
		}
		return c.flatAmount(item, amount*item.num("quantity"))
	case c.form.has("amount"):
		amount, err := c.num("amount") // negative ones are credits
		if err != nil {
			return err
		}
		return c.flatAmount(item, amount)
	case item["_price"] != nil:
		price = item.sub("_price")
	case item["amount"] == nil:
		return invalid("parameter_missing", "amount", "One of the parameters amount, pricing, price_data or unit_amount_decimal is required.")
	default:
		return nil
	}
	if err != nil {
		return err
	}
	item["_price"] = price.clone()
	item["currency"] = price.str("currency")
	item["amount"] = price.num("unit_amount") * item.num("quantity")
	item["net_amount"] = item["amount"]
	item["pricing"] = pricingOf(price)
	if item["description"] == nil {
		if product := c.space.get("product", price.str("product")); product != nil {
			item["description"] = product["name"]
		}
	}
	return nil
}

func (c *call) flatAmount(item object, amount int64) error {
	if item["currency"] == nil {
		if err := c.require("currency"); err != nil {
			return err
		}
		if item["currency"] = strings.ToLower(c.form.str("currency")); len(item.str("currency")) != 3 {
			return invalid("", "currency", "Invalid currency: "+shown(c.form.str("currency"))+".")
		}
	}
	item["amount"], item["net_amount"] = amount, amount
	price := c.create("price", "price", object{"active": false, "billing_scheme": "per_unit", "currency": item["currency"],
		"custom_unit_amount": nil, "lookup_key": nil, "nickname": nil, "product": c.amounts(), "recurring": nil,
		"tax_behavior": "unspecified", "tiers_mode": nil, "transform_quantity": nil, "type": "one_time", "unit_amount": amount,
		"unit_amount_decimal": strconv.FormatInt(amount, 10)})
	item["_price"], item["pricing"] = price.clone(), pricingOf(price)
	return nil
}

// amounts is the product of amounts without a price: Stripe makes a price and a product for
// them too, and says nothing about it.
func (c *call) amounts() string {
	const id = "prod_fakeamounts"
	if c.space.get("product", id) == nil {
		product := newProduct(form{"name": "Amounts without a price", "active": "false"})
		product["id"], product["updated"] = id, c.now
		c.create("product", "prod", product)
	}
	return id
}

// pricingOf is how an item or a line says what its price is.
func pricingOf(price object) object {
	return object{"type": "price_details", "unit_amount_decimal": price["unit_amount_decimal"],
		"price_details": object{"price": price.id(), "product": price.str("product")}}
}

func (c *call) getItem() (object, error) {
	return c.find("invoiceitem", c.path["invoiceitem"], "invoiceitem")
}

func (c *call) listItems() (object, error) {
	return c.list("invoiceitem", func(o object) bool {
		if c.form.has("customer") && c.form.str("customer") != o.str("customer") ||
			c.form.has("invoice") && c.form.str("invoice") != o.str("invoice") {
			return false
		}
		return !c.form.has("pending") || c.form.yes("pending") == (o["invoice"] == nil)
	})
}

func (c *call) updateItem() (object, error) {
	item, invoice, err := c.openItem()
	if err != nil {
		return nil, err
	}
	next := item.clone()
	if err := c.itemParams(next); err != nil {
		return nil, err
	}
	before := item.clone()
	maps.Copy(item, next)
	c.changed("invoiceitem.updated", before, item)
	if invoice != nil {
		was := invoice.clone()
		for i, line := range linesOf(invoice) {
			if line.str("_item") == item.id() {
				fresh := c.itemLine(invoice, item)
				fresh["id"] = line.id()
				invoice.sub("lines").list("data")[i] = fresh
			}
		}
		total(invoice)
		c.changed("invoice.updated", was, invoice)
	}
	return item, nil
}

func (c *call) deleteItem() (object, error) {
	item, invoice, err := c.openItem()
	if err != nil {
		return nil, err
	}
	if invoice != nil {
		before := invoice.clone()
		lines := invoice.sub("lines")
		keep := []any{}
		for _, line := range linesOf(invoice) {
			if line.str("_item") != item.id() {
				keep = append(keep, line)
			}
		}
		lines["data"] = keep
		total(invoice)
		c.changed("invoice.updated", before, invoice)
	}
	c.space.drop("invoiceitem", item.id())
	c.emit("invoiceitem.deleted", item, nil)
	return object{"id": item.id(), "object": "invoiceitem", "deleted": true}, nil
}

// openItem returns the item of the path and the draft that it is on, if it is on one: items
// of invoices that are finalized cannot be changed.
func (c *call) openItem() (item, invoice object, err error) {
	item, err = c.getItem()
	if err != nil || item["invoice"] == nil {
		return item, nil, err
	}
	invoice, err = c.draft(item.str("invoice"), "invoice")
	return item, invoice, err
}
