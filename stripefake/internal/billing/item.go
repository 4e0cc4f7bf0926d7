package billing

import (
	"cmp"
	"maps"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func itemRoutes() []api.Route {
	const params = "amount:int =description =discountable:bool metadata period period[start]:int period[end]:int " +
		"price_data pricing quantity:amount unit_amount_decimal "
	const path = "/v1/invoiceitems/{invoiceitem}"
	return []api.Route{
		formerly("price", on("POST", "/v1/invoiceitems", params+"currency customer invoice subscription",
			api.With(call.buyer, call.createItem))),
		api.Lists("/v1/invoiceitems", "invoiceitem", "created customer invoice pending:bool",
			func(c *api.Call, o object) bool {
				return !c.Form.Has("pending") || c.Flag("pending") == (o["invoice"] == nil)
			}),
		on("GET", path, "", find("invoiceitem", "invoiceitem")),
		formerly("price", on("POST", path, params, api.With(find("invoiceitem", "invoiceitem"), call.updateItem))),
		on("DELETE", path, "", api.With(find("invoiceitem", "invoiceitem"), call.deleteItem)),
	}
}

func (c call) createItem(customer object) (object, error) {
	item := object{"customer": customer.ID(), "date": c.Now, "discountable": true, "discounts": []any{},
		"period": object{"start": c.Now, "end": c.Now}, "proration": false, "quantity": int64(1),
		"quantity_decimal": "1", "tax_rates": []any{},
		"test_clock": customer["test_clock"]}.Null("customer_account description invoice parent pricing")
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
		invoice, err := c.draft(id)
		if err != nil {
			return nil, err
		}
		if invoice.Str("customer") != customer.ID() || invoice.Str("currency") != item.Str("currency") {
			return nil, shape.Invalid("", "invoice", "The invoice must be the same customer's and in the same currency.")
		}
		item = c.Make("invoiceitem", "ii", item)
		before := invoice.Clone()
		c.take(invoice, item)
		c.Changed("invoice.updated", before, invoice)
		return item, nil
	}
	return c.Make("invoiceitem", "ii", item), nil
}

func (c call) itemParams(item object) error {
	if err := c.itemPrice(item); err != nil {
		return err
	}
	if c.Form.Sub("period").Given() {
		item["period"] = object{"start": c.Num("period[start]"), "end": c.Num("period[end]")}
	}
	return c.Describe(item)
}

// itemPrice sets the amount of an invoice item: amount and currency, or a price and a quantity.
func (c call) itemPrice(item object) error {
	if c.Form.Has("quantity") {
		n := c.Num("quantity")
		item["quantity"], item["quantity_decimal"] = n, strconv.FormatInt(n, 10)
	}
	var price object
	var err error
	switch {
	case c.Form.Sub("pricing").Given():
		price, err = c.priceFor(c.Form.Sub("pricing"))
	case c.Form.Has("price"), c.Form.Sub("price_data").Given():
		price, err = c.priceFor(c.Form)
	case c.Form.Has("unit_amount_decimal"):
		amount, err := unitAmount(c.Form)
		if err != nil {
			return err
		}
		return c.flatAmount(item, amount*item.Num("quantity"))
	case c.Form.Has("amount"):
		return c.flatAmount(item, c.Num("amount")) // negative ones are credits
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
		if err := c.Form.Require("currency"); err != nil {
			return err
		}
		if item["currency"] = strings.ToLower(c.Form.Str("currency")); len(item.Str("currency")) != 3 {
			return shape.Invalid("", "currency", "Invalid currency: "+shape.Shown(c.Form.Str("currency"))+".")
		}
	}
	item["amount"], item["net_amount"] = amount, amount
	price := c.Create("price", "price", newPrice(item.Str("currency"), amount).With("product", c.amounts()))
	item["_price"], item["pricing"] = price.Clone(), pricingOf(price)
	return nil
}

// amounts is the product of amounts without a price: Stripe makes a price for them too.
func (c call) amounts() string {
	const id = "prod_fakeamounts"
	if c.Space.Get("product", id) == nil {
		product := newProduct(shape.Params{})
		maps.Copy(product, object{"id": id, "name": "Amounts without a price", "active": false, "updated": c.Now})
		c.Create("product", "prod", product)
	}
	return id
}

func (c call) updateItem(item object) (object, error) {
	invoice, err := c.draftOf(item)
	if err != nil {
		return nil, err
	}
	next := item.Clone()
	if err := c.itemParams(next); err != nil {
		return nil, err
	}
	c.Change("invoiceitem.updated", item, next)
	c.replaceLine(invoice, item, func(line object) []any {
		return []any{c.itemLine(invoice, item).With("id", line["id"])}
	})
	return item, nil
}

func (c call) deleteItem(item object) (object, error) {
	invoice, err := c.draftOf(item)
	if err != nil {
		return nil, err
	}
	c.replaceLine(invoice, item, func(object) []any { return nil })
	c.Space.Drop("invoiceitem", item.ID())
	c.Emit("invoiceitem.deleted", item, nil)
	return item.Deleted(), nil
}

// replaceLine puts other lines in the place of the item's; invoice may be nil.
func (c call) replaceLine(invoice, item object, by func(line object) []any) {
	if invoice == nil {
		return
	}
	before, lines := invoice.Clone(), []any{}
	for _, line := range linesOf(invoice) {
		if line.Str("_item") == item.ID() {
			lines = append(lines, by(line)...)
		} else {
			lines = append(lines, line)
		}
	}
	invoice.Sub("lines")["data"] = lines
	c.total(invoice)
	c.Changed("invoice.updated", before, invoice)
}

// draftOf returns an item's draft; nil: it is on none. Items of finalized invoices cannot change.
func (c call) draftOf(item object) (object, error) {
	if item["invoice"] == nil {
		return nil, nil
	}
	return c.draft(item.Str("invoice"))
}

func (c call) newLine(invoice object, members object) object {
	line := object{"id": c.NewID("il"), "object": "line_item", "description": nil, "discount_amounts": []any{},
		"discountable": true, "discounts": []any{}, "invoice": invoice.ID(), "livemode": c.Space.Live,
		"metadata": object{}, "pretax_credit_amounts": []any{}, "pricing": nil,
		"subscription": shape.OrNil(shape.SubscriptionID(invoice)), "taxes": []any{}}
	maps.Copy(line, members)
	line["currency"], line["subtotal"] = invoice["currency"], line["amount"]
	return line
}

func (c call) itemLine(invoice, item object) object {
	parent := object{"type": "invoice_item_details", "subscription_item_details": nil,
		"invoice_item_details": object{"invoice_item": item.ID(), "proration": false,
			"proration_details": object{"credited_items": nil}, "subscription": item["_subscription"]}}
	if of := item.Sub("parent").Sub("subscription_details"); of != nil { // a proration
		parent = object{"type": "subscription_item_details", "invoice_item_details": nil,
			"subscription_item_details": object{"invoice_item": item.ID(), "proration": true,
				"proration_details": object{"credited_items": nil}, "subscription": of["subscription"],
				"subscription_item": of["subscription_item"]}}
	}
	return c.newLine(invoice, object{
		"amount": item["amount"], "description": item["description"], "discountable": item["discountable"],
		"metadata": item.Sub("metadata").Clone(), "period": item.Sub("period").Clone(), "pricing": shape.CloneValue(
			item["pricing"]), "quantity": item["quantity"], "quantity_decimal": item["quantity_decimal"],
		"parent": parent, "_item": item.ID(), "_price": shape.CloneValue(item["_price"]),
	})
}

func (c call) subscriptionLine(invoice, item object, amount, start, end int64, description string) object {
	quantity := item.Num("quantity")
	return c.newLine(invoice, object{
		"amount": amount, "description": description, "metadata": item.Sub("metadata").Clone(),
		"period": object{"start": start, "end": end}, "pricing": pricingOf(item.Sub("price")), "quantity": quantity,
		"quantity_decimal": strconv.FormatInt(quantity, 10), "parent": object{"type": "subscription_item_details",
			"invoice_item_details": nil, "subscription_item_details": object{"invoice_item": nil, "proration": false,
				"proration_details": object{"credited_items": nil}, "subscription": shape.SubscriptionID(invoice),
				"subscription_item": item.ID()}}, "_price": item.Sub("price").Clone(),
	})
}

func (c call) add(invoice, line object) {
	lines := invoice.Sub("lines")
	lines["data"] = append(lines.List("data"), line)
	c.total(invoice)
}

// total adds up the lines of a draft, less its discounts. Finalizing it applies the customer's balance.
func (c call) total(invoice object) {
	sum := int64(0)
	for _, line := range linesOf(invoice) {
		sum += line.Num("amount")
	}
	invoice["subtotal"], invoice["subtotal_excluding_tax"] = sum, sum
	sum -= c.discount(invoice)
	invoice["total"], invoice["total_excluding_tax"] = sum, sum
	invoice["amount_due"], invoice["amount_remaining"] = max(sum, 0), max(sum, 0)
}

// pending returns the items without an invoice, of the subscription or none. currency "": the first's.
func (c call) pending(customer, sub object, currency string) []object {
	var items []object
	for _, item := range c.Space.All("invoiceitem") {
		if item.Str("customer") != customer.ID() || item["invoice"] != nil {
			continue
		}
		if of := item.Str("_subscription"); of != "" && of != sub.ID() {
			continue
		}
		if currency = cmp.Or(currency, item.Str("currency")); item.Str("currency") == currency {
			items = append(items, item)
		}
	}
	return items
}

func (c call) take(invoice object, items ...object) {
	for _, item := range items {
		c.add(invoice, c.itemLine(invoice, item))
		c.Change("invoiceitem.updated", item, object{"invoice": invoice.ID()})
	}
}

func linesOf(invoice object) []object { return shape.ObjectsOf(invoice.Sub("lines").List("data")) }
