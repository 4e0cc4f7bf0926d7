package billing

import (
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func priceRoutes() []api.Route {
	const params = "active expand lookup_key metadata nickname tax_behavior transfer_lookup_key"
	return []api.Route{
		on("POST", "/v1/prices", params+" billing_scheme currency product product_data recurring unit_amount "+
			"unit_amount_decimal", call.createPrice),
		api.Lists("/v1/prices", "price", "active created currency lookup_keys product type",
			func(c *api.Call, o object) bool {
				keys := c.Form.List("lookup_keys")
				return len(keys) == 0 || slices.Contains(keys, any(o.Str("lookup_key")))
			}),
		on("GET", "/v1/prices/{price}", "expand", call.getPrice),
		on("POST", "/v1/prices/{price}", params, call.updatePrice),
	}
}

func (c call) createPrice() (object, error) {
	if err := c.Require("currency"); err != nil {
		return nil, err
	}
	price, err := c.priceOf(c.Form, "")
	if err != nil {
		return nil, err
	}
	if err := c.Metadata(price); err != nil {
		return nil, err
	}
	switch data := c.Form.Sub("product_data"); {
	case data != nil && c.Form.Has("product"):
		return nil, shape.Invalid("", "product_data", "You may only specify one of these parameters: product, product_data.")
	case data != nil && data.Str("name") == "":
		return nil, shape.Invalid("parameter_missing", "product_data[name]", "Missing required param: product_data[name].")
	case data != nil:
		price["product"] = c.storeProduct(newProduct(data), data.Str("id")).ID()
	default:
		if err := c.Require("product"); err != nil {
			return nil, err
		}
		if _, err := c.Find("product", c.Form.Str("product"), "product"); err != nil {
			return nil, err
		}
		price["product"] = c.Form.Str("product")
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
func (c call) priceOf(f form, param string) (object, error) {
	currency := strings.ToLower(f.Str("currency"))
	if len(currency) != 3 {
		return nil, shape.Invalid("", shape.Inside(param, "currency"),
			"Invalid currency: "+shape.Shown(f.Str("currency"))+".")
	}
	amount, err := unitAmount(f, param)
	if err != nil {
		return nil, err
	}
	price := object{
		"active": f.Str("active") != "false", "billing_scheme": "per_unit", "currency": currency, "custom_unit_amount": nil,
		"lookup_key": shape.TextOrNil(f, "lookup_key"), "metadata": object{}, "nickname": shape.TextOrNil(f, "nickname"),
		"recurring": nil, "tax_behavior": "unspecified", "tiers_mode": nil, "transform_quantity": nil, "type": "one_time",
		"unit_amount": amount, "unit_amount_decimal": strconv.FormatInt(amount, 10),
	}
	if f.Has("billing_scheme") && f.Str("billing_scheme") != "per_unit" {
		return nil, shape.Invalid("", shape.Inside(param, "billing_scheme"),
			"This fake knows the billing_scheme per_unit only.")
	}
	if recurring := f.Sub("recurring"); recurring != nil {
		if recurring.Has("usage_type") && recurring.Str("usage_type") != "licensed" {
			return nil, shape.Invalid("", shape.Inside(param, "recurring[usage_type]"),
				"This fake knows the usage_type licensed only.")
		}
		r := recurrence{interval: recurring.Str("interval"), count: 1}
		if recurring.Has("interval_count") {
			if r.count, err = shape.Whole(recurring, "interval_count",
				shape.Inside(param, "recurring[interval_count]")); err != nil {
				return nil, err
			}
		}
		if !r.valid() {
			return nil, shape.Invalid("", shape.Inside(param, "recurring[interval]"),
				"Invalid interval: must be one of day, week, month, or year, and three years at most")
		}
		price["type"] = "recurring"
		price["recurring"] = object{"interval": r.interval, "interval_count": r.count, "meter": nil, "usage_type": "licensed"}
	}
	return price, nil
}

// unitAmount is the amount per unit, in the minor unit of the currency.
func unitAmount(f form, param string) (int64, error) {
	name := "unit_amount"
	if !f.Has(name) && f.Has("unit_amount_decimal") {
		name = "unit_amount_decimal" // the fake takes whole ones only
	}
	if f.Str(name) == "" {
		return 0, shape.Invalid("parameter_missing", shape.Inside(param, "unit_amount"),
			"Missing required param: "+shape.Inside(param, "unit_amount")+".")
	}
	n, err := shape.Whole(f, name, shape.Inside(param, name))
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, shape.Invalid("parameter_invalid_integer", shape.Inside(param, name),
			"This value must be greater than or equal to 0.")
	case n > shape.MaxAmount:
		return 0, shape.Invalid("amount_too_large", shape.Inside(param, name),
			"Amount must be no more than "+strconv.Itoa(shape.MaxAmount)+".")
	}
	return n, nil
}

func (c call) getPrice() (object, error) { return c.Find("price", c.Path["price"], "price") }

func (c call) updatePrice() (object, error) {
	price, err := c.Find("price", c.Path["price"], "price")
	if err != nil {
		return nil, err
	}
	before := price.Clone()
	if err := c.Metadata(price); err != nil {
		return nil, err
	}
	for _, name := range []string{"lookup_key", "nickname"} {
		shape.SetText(price, c.Form, name)
	}
	if c.Form.Has("active") {
		price["active"] = c.Form.Yes("active")
	}
	c.Changed("price.updated", before, price)
	return price, nil
}

// priceFor returns the price of an element of items: by price or, as a new one, by price_data.
func (c call) priceFor(f form, param string) (object, error) {
	if data := f.Sub("price_data"); data != nil {
		price, err := c.priceOf(data, shape.Inside(param, "price_data"))
		if err != nil {
			return nil, err
		}
		if _, err := c.Find("product", data.Str("product"), shape.Inside(param, "price_data[product]")); err != nil {
			return nil, err
		}
		price["product"], price["active"] = data.Str("product"), false
		return c.storePrice(price), nil
	}
	id := f.Str("price")
	if id == "" {
		return nil, shape.Invalid("parameter_missing", shape.Inside(param, "price"),
			"Missing required param: "+shape.Inside(param, "price")+".")
	}
	price, err := c.Find("price", id, shape.Inside(param, "price"))
	if err == nil && !price.Yes("active") {
		err = shape.Invalid("price_inactive", shape.Inside(param, "price"), "The price specified is inactive. This "+
			"field only accepts active prices.")
	}
	return price, err
}
