package billing

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func priceRoutes() []api.Route {
	const params = "=active:bool =lookup_key metadata =nickname tax_behavior transfer_lookup_key "
	return []api.Route{
		on("POST", "/v1/prices", params+"billing_scheme currency! product product_data product_data[name]! recurring "+
			"unit_amount unit_amount_decimal", call.createPrice),
		api.Lists("/v1/prices", "price", "active created currency lookup_keys product type",
			func(c *api.Call, o object) bool {
				keys := c.Form.List("lookup_keys")
				return len(keys) == 0 || slices.Contains(keys, any(o.Str("lookup_key")))
			}),
		on("GET", "/v1/prices/{price}", "", find("price", "price")),
		on("POST", "/v1/prices/{price}", params, api.Update("price.updated", find("price", "price"), call.Describe)),
	}
}

func (c call) createPrice() (object, error) {
	price, err := c.priceOf(c.Form)
	if err != nil {
		return nil, err
	}
	if err := c.Form.Metadata(price); err != nil {
		return nil, err
	}
	data, id := c.Form.Sub("product_data"), c.Form.Str("product")
	switch {
	case data.Given() && c.Form.Has("product"):
		return nil, shape.OnlyOne("product_data", "product, product_data")
	case data.Given():
		price["product"] = c.storeProduct(newProduct(data), data.Str("id")).ID()
	default:
		if err := c.Form.Require("product"); err != nil {
			return nil, err
		}
		if _, err := c.Find("product", id, "product"); err != nil {
			return nil, err
		}
		price["product"] = id
	}
	return c.Make("price", "price", price), nil
}

// priceOf returns a price without a product, not stored. There are no tiers and no metered prices.
func (c call) priceOf(p shape.Params) (object, error) {
	currency := strings.ToLower(p.Str("currency"))
	if len(currency) != 3 {
		return nil, p.Invalid("", "currency", "Invalid currency: "+shape.Shown(p.Str("currency"))+".")
	}
	amount, err := unitAmount(p)
	recurring := p.Sub("recurring")
	if err := cmp.Or(err, p.Only("billing_scheme", "per_unit"), recurring.Only("usage_type", "licensed")); err != nil {
		return nil, err
	}
	price := newPrice(currency, amount)
	price["active"] = p.Str("active") != "false"
	p.SetTexts(price, "lookup_key nickname")
	if !recurring.Given() {
		return price, nil
	}
	r := recurrence{interval: recurring.Str("interval"), count: 1}
	if recurring.Has("interval_count") {
		if r.count, err = recurring.Whole("interval_count"); err != nil {
			return nil, err
		}
	}
	if !r.valid() {
		return nil, recurring.Invalid("", "interval", "Invalid interval: must be one of day, week, month, or year, and "+
			"three years at most")
	}
	price["type"] = "recurring"
	price["recurring"] = object{"interval": r.interval, "interval_count": r.count, "meter": nil, "usage_type": "licensed"}
	return price, nil
}

// newPrice is an inactive one-time price without a product.
func newPrice(currency string, amount int64) object {
	return object{"active": false, "billing_scheme": "per_unit", "currency": currency, "tax_behavior": "unspecified",
		"type": "one_time", "unit_amount": amount, "unit_amount_decimal": strconv.FormatInt(amount, 10)}.Null(
		"custom_unit_amount lookup_key nickname recurring tiers_mode transform_quantity")
}

// unitAmount is the amount per unit, in the minor unit of the currency.
func unitAmount(p shape.Params) (int64, error) {
	name := "unit_amount"
	if !p.Has(name) && p.Has("unit_amount_decimal") {
		name = "unit_amount_decimal" // the fake takes whole ones only
	}
	if p.Str(name) == "" {
		return 0, shape.Missed(p.In("unit_amount"))
	}
	n, err := p.Whole(name)
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, p.Invalid("parameter_invalid_integer", name, "This value must be greater than or equal to 0.")
	case n > shape.MaxAmount:
		return 0, p.Invalid("amount_too_large", name, "Amount must be no more than "+strconv.Itoa(shape.MaxAmount)+".")
	}
	return n, nil
}

// priceFor returns the price of an element of items: by price or, as a new one, by price_data.
func (c call) priceFor(p shape.Params) (object, error) {
	if data := p.Sub("price_data"); data.Given() {
		price, err := c.priceOf(data)
		_, missing := c.Find("product", data.Str("product"), data.In("product"))
		if err := cmp.Or(err, missing); err != nil {
			return nil, err
		}
		price["product"], price["active"] = data.Str("product"), false
		return c.Make("price", "price", price), nil
	}
	if err := p.Require("price"); err != nil {
		return nil, err
	}
	price, err := c.Find("price", p.Str("price"), p.In("price"))
	if err == nil && !price.Yes("active") {
		err = p.Invalid("price_inactive", "price", "The price specified is inactive. This field only accepts active "+
			"prices.")
	}
	return price, err
}

func pricingOf(price object) object {
	return object{"type": "price_details", "unit_amount_decimal": price["unit_amount_decimal"],
		"price_details": object{"price": price.ID(), "product": price.Str("product")}}
}

func productRoutes() []api.Route {
	const params = "=active:bool =description images metadata shippable:bool =statement_descriptor =unit_label =url "
	return []api.Route{
		on("POST", "/v1/products", params+"name! id default_price_data", call.createProduct),
		api.Lists("/v1/products", "product", "active created ids", func(c *api.Call, o object) bool {
			ids := c.Form.List("ids")
			return len(ids) == 0 || slices.Contains(ids, any(o.ID()))
		}),
		on("GET", "/v1/products/{id}", "", find("product", "id")),
		on("POST", "/v1/products/{id}", params+"=name =default_price",
			api.Update("product.updated", find("product", "id"), call.updateProduct)),
	}
}

func (c call) createProduct() (object, error) {
	id := c.Form.Str("id")
	if id != "" && c.Space.Get("product", id) != nil {
		return nil, shape.Invalid("resource_already_exists", "id", "Product already exists.")
	}
	product := newProduct(c.Form)
	if err := c.Form.Metadata(product); err != nil {
		return nil, err
	}
	var price object
	if data := c.Form.Sub("default_price_data"); data.Given() {
		var err error
		if price, err = c.priceOf(data); err != nil {
			return nil, err
		}
	}
	product = c.storeProduct(product, id)
	if price != nil {
		price["product"] = product.ID()
		product["default_price"] = c.Make("price", "price", price).ID()
	}
	return product, nil
}

// newProduct is a product as the parameters say, not stored yet.
func newProduct(p shape.Params) object {
	o := object{"active": p.Str("active") != "false", "images": shape.Texts(p.List("images")),
		"marketing_features": []any{}, "name": p.Str("name"),
	}.Null("default_price description package_dimensions shippable statement_descriptor tax_code unit_label url")
	p.SetTexts(o, "description statement_descriptor unit_label url")
	if p.Has("shippable") {
		o["shippable"] = p.Yes("shippable")
	}
	return o
}

func (c call) storeProduct(product object, id string) object {
	if id != "" {
		product["id"] = id
	}
	product["updated"] = c.Now
	return c.Make("product", "prod", product)
}

func (c call) updateProduct(product object) error {
	if id := c.Form.Str("default_price"); id != "" {
		price, err := c.Find("price", id, "default_price")
		if err != nil {
			return err
		}
		if price.Str("product") != product.ID() {
			return shape.Invalid("", "default_price", "The price "+id+" does not belong to the product.")
		}
	}
	product["updated"] = c.Now
	return c.Describe(product)
}
