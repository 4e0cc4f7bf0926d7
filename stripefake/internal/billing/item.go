package billing

import (
	"maps"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func itemRoutes() []api.Route {
	const params = "amount:int description discountable expand metadata period period[start]:int period[end]:int " +
		"price_data pricing quantity:amount unit_amount_decimal"
	const path = "/v1/invoiceitems/{invoiceitem}"
	return []api.Route{
		formerly("price", on("POST", "/v1/invoiceitems", params+" currency customer invoice subscription",
			api.With(call.buyer, call.createItem))),
		api.Lists("/v1/invoiceitems", "invoiceitem", "created customer invoice pending", func(c *api.Call, o object) bool {
			return !c.Form.Has("pending") || c.Form.Yes("pending") == (o["invoice"] == nil)
		}),
		on("GET", path, "expand", call.getItem),
		formerly("price", on("POST", path, params, call.updateItem)),
		on("DELETE", path, "", call.deleteItem),
	}
}

func (c call) createItem(customer object) (object, error) {
	defer c.InTimeOf(customer)()
	item := object{
		"customer": customer.ID(), "date": c.Now, "discountable": true, "discounts": []any{},
		"period": object{"start": c.Now, "end": c.Now}, "proration": false, "quantity": int64(1),
		"quantity_decimal": "1", "tax_rates": []any{}, "test_clock": customer["test_clock"],
	}.Null("customer_account description invoice parent pricing")
	if err := c.itemParams(item); err != nil {
		return nil, err
	}
	if id := c.Form.Str("subscription"); id != "" {
		sub, err := c.Find("subscription", id, "subscription")
		if err != nil {
			return nil, err
		}
		item["_subscription"] = sub.ID()
	}
	if id := c.Form.Str("invoice"); id != "" {
		invoice, err := c.draft(id, "invoice")
		if err != nil {
			return nil, err
		}
		if invoice.Str("customer") != customer.ID() || invoice.Str("currency") != item.Str("currency") {
			return nil, shape.Invalid("", "invoice", "The invoice is of another customer or in another currency.")
		}
		item = c.storeItem(item)
		before := invoice.Clone()
		c.onto(invoice, item)
		c.Changed("invoice.updated", before, invoice)
		return item, nil
	}
	return c.storeItem(item), nil
}

func (c call) storeItem(item object) object {
	item = c.Create("invoiceitem", "ii", item)
	c.Emit("invoiceitem.created", item, nil)
	return item
}

// itemParams sets the members that the parameters give.
func (c call) itemParams(item object) error {
	if err := c.itemPrice(item); err != nil {
		return err
	}
	shape.SetText(item, c.Form, "description")
	if c.Form.Has("discountable") {
		item["discountable"] = c.Form.Yes("discountable")
	}
	if c.Form.Sub("period") != nil {
		item["period"] = object{"start": c.Num("period[start]"), "end": c.Num("period[end]")}
	}
	return c.Metadata(item)
}

// itemPrice sets the amount of an invoice item: amount and currency, or a price and a
// quantity.
func (c call) itemPrice(item object) error {
	if c.Form.Has("quantity") {
		n := c.Num("quantity")
		item["quantity"], item["quantity_decimal"] = n, strconv.FormatInt(n, 10)
	}
	var price object
	var err error
	switch {
	case c.Form.Sub("pricing") != nil:
		price, err = c.priceFor(c.Form.Sub("pricing"), "pricing")
	case c.Form.Has("price"), c.Form.Sub("price_data") != nil:
		price, err = c.priceFor(c.Form, "")
	case c.Form.Has("unit_amount_decimal"):
		amount, err := unitAmount(c.Form, "")
		if err != nil {
			return err
		}
		return c.flatAmount(item, amount*item.Num("quantity"))
	case c.Form.Has("amount"):
		amount := c.Num("amount") // negative ones are credits
		return c.flatAmount(item, amount)
	case item["_price"] != nil:
		price = item.Sub("_price")
	case item["amount"] == nil:
		return shape.Invalid("parameter_missing", "amount", "One of the parameters amount, pricing, price_data or "+
			"unit_amount_decimal is required.")
	default:
		return nil
	}
	if err != nil {
		return err
	}
	item["_price"] = price.Clone()
	item["currency"] = price.Str("currency")
	item["amount"] = price.Num("unit_amount") * item.Num("quantity")
	item["net_amount"] = item["amount"]
	item["pricing"] = pricingOf(price)
	if item["description"] == nil {
		if product := c.Space.Get("product", price.Str("product")); product != nil {
			item["description"] = product["name"]
		}
	}
	return nil
}

func (c call) flatAmount(item object, amount int64) error {
	if item["currency"] == nil {
		if err := c.Require("currency"); err != nil {
			return err
		}
		if item["currency"] = strings.ToLower(c.Form.Str("currency")); len(item.Str("currency")) != 3 {
			return shape.Invalid("", "currency", "Invalid currency: "+shape.Shown(c.Form.Str("currency"))+".")
		}
	}
	item["amount"], item["net_amount"] = amount, amount
	price := c.Create("price", "price", object{
		"active": false, "billing_scheme": "per_unit", "currency": item["currency"], "product": c.amounts(),
		"tax_behavior": "unspecified", "type": "one_time", "unit_amount": amount,
		"unit_amount_decimal": strconv.FormatInt(amount, 10),
	}.Null("custom_unit_amount lookup_key nickname recurring tiers_mode transform_quantity"))
	item["_price"], item["pricing"] = price.Clone(), pricingOf(price)
	return nil
}

// amounts is the product of amounts without a price: Stripe makes a price and a product for
// them too, and says nothing about it.
func (c call) amounts() string {
	const id = "prod_fakeamounts"
	if c.Space.Get("product", id) == nil {
		product := newProduct(form{"name": "Amounts without a price", "active": "false"})
		product["id"], product["updated"] = id, c.Now
		c.Create("product", "prod", product)
	}
	return id
}

// pricingOf is the price in an item or a line.
func pricingOf(price object) object {
	return object{"type": "price_details", "unit_amount_decimal": price["unit_amount_decimal"],
		"price_details": object{"price": price.ID(), "product": price.Str("product")}}
}

func (c call) getItem() (object, error) {
	return c.Find("invoiceitem", c.Path["invoiceitem"], "invoiceitem")
}

func (c call) updateItem() (object, error) {
	item, invoice, err := c.openItem()
	if err != nil {
		return nil, err
	}
	next := item.Clone()
	if err := c.itemParams(next); err != nil {
		return nil, err
	}
	before := item.Clone()
	maps.Copy(item, next)
	c.Changed("invoiceitem.updated", before, item)
	if invoice != nil {
		was := invoice.Clone()
		for i, line := range linesOf(invoice) {
			if line.Str("_item") == item.ID() {
				fresh := c.itemLine(invoice, item)
				fresh["id"] = line.ID()
				invoice.Sub("lines").List("data")[i] = fresh
			}
		}
		total(invoice)
		c.Changed("invoice.updated", was, invoice)
	}
	return item, nil
}

func (c call) deleteItem() (object, error) {
	item, invoice, err := c.openItem()
	if err != nil {
		return nil, err
	}
	if invoice != nil {
		before := invoice.Clone()
		lines := invoice.Sub("lines")
		keep := []any{}
		for _, line := range linesOf(invoice) {
			if line.Str("_item") != item.ID() {
				keep = append(keep, line)
			}
		}
		lines["data"] = keep
		total(invoice)
		c.Changed("invoice.updated", before, invoice)
	}
	c.Space.Drop("invoiceitem", item.ID())
	c.Emit("invoiceitem.deleted", item, nil)
	return object{"id": item.ID(), "object": "invoiceitem", "deleted": true}, nil
}

// openItem returns the item of the path and its draft, if it has one. Items of finalized invoices
// cannot change.
func (c call) openItem() (item, invoice object, err error) {
	item, err = c.getItem()
	if err != nil || item["invoice"] == nil {
		return item, nil, err
	}
	invoice, err = c.draft(item.Str("invoice"), "invoice")
	return item, invoice, err
}
