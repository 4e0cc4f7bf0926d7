package billing

import (
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func priceRoutes() []api.Route {
	const params = "active:bool =lookup_key metadata =nickname tax_behavior transfer_lookup_key "
	return []api.Route{
		on("POST", "/v1/prices", params+"billing_scheme currency! product product_data recurring unit_amount "+
			"unit_amount_decimal", call.createPrice),
		api.Lists("/v1/prices", "price", "active created currency lookup_keys product type",
			func(c *api.Call, o object) bool {
				keys := c.Form.List("lookup_keys")
				return len(keys) == 0 || slices.Contains(keys, any(o.Str("lookup_key")))
			}),
		on("GET", "/v1/prices/{price}", "", find("price", "price")),
		on("POST", "/v1/prices/{price}", params, api.Update("price.updated", find("price", "price"), call.updatePrice)),
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
		if err := data.Require("name"); err != nil {
			return nil, err
		}
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
	return c.storePrice(price), nil
}

func (c call) storePrice(price object) object {
	price = c.Create("price", "price", price)
	c.Emit("price.created", price, nil)
	return price
}

// priceOf makes a price of the parameters, without a product, and does not store it. The fake has
// neither tiers nor metered prices.
func (c call) priceOf(p shape.Params) (object, error) {
	currency := strings.ToLower(p.Str("currency"))
	if len(currency) != 3 {
		return nil, p.Invalid("", "currency", "Invalid currency: "+shape.Shown(p.Str("currency"))+".")
	}
	amount, err := unitAmount(p)
	if err != nil {
		return nil, err
	}
	if p.Has("billing_scheme") && p.Str("billing_scheme") != "per_unit" {
		return nil, p.Invalid("", "billing_scheme", "This fake knows the billing_scheme per_unit only.")
	}
	price := newPrice(currency, amount)
	price["active"] = p.Str("active") != "false"
	p.SetTexts(price, "lookup_key nickname")
	recurring := p.Sub("recurring")
	if !recurring.Given() {
		return price, nil
	}
	if recurring.Has("usage_type") && recurring.Str("usage_type") != "licensed" {
		return nil, recurring.Invalid("", "usage_type", "This fake knows the usage_type licensed only.")
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
	return object{"active": false, "billing_scheme": "per_unit", "currency": currency, "metadata": object{},
		"tax_behavior": "unspecified", "type": "one_time", "unit_amount": amount,
		"unit_amount_decimal": strconv.FormatInt(amount, 10),
	}.Null("custom_unit_amount lookup_key nickname recurring tiers_mode transform_quantity")
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

func (c call) updatePrice(price object) error {
	if c.Form.Has("active") {
		price["active"] = c.Flag("active")
	}
	return c.Describe(price)
}

// priceFor returns the price of an element of items: by price or, as a new one, by price_data.
func (c call) priceFor(p shape.Params) (object, error) {
	if data := p.Sub("price_data"); data.Given() {
		price, err := c.priceOf(data)
		if err != nil {
			return nil, err
		}
		if _, err := c.Find("product", data.Str("product"), data.In("product")); err != nil {
			return nil, err
		}
		price["product"], price["active"] = data.Str("product"), false
		return c.storePrice(price), nil
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

// pricingOf is the price in an item or a line.
func pricingOf(price object) object {
	return object{"type": "price_details", "unit_amount_decimal": price["unit_amount_decimal"],
		"price_details": object{"price": price.ID(), "product": price.Str("product")}}
}
