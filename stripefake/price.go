package stripefake

import (
	"slices"
	"strconv"
	"strings"
)

func priceRoutes() []route {
	const params = "active expand lookup_key metadata nickname tax_behavior transfer_lookup_key"
	return []route{
		on("POST", "/v1/prices", params+" billing_scheme currency product product_data recurring unit_amount unit_amount_decimal", (*call).createPrice),
		on("GET", "/v1/prices", listParams+"active created currency lookup_keys product type", (*call).listPrices),
		on("GET", "/v1/prices/{price}", "expand", (*call).getPrice),
		on("POST", "/v1/prices/{price}", params, (*call).updatePrice),
	}
}

func (c *call) createPrice() (object, error) {
	if err := c.require("currency"); err != nil {
		return nil, err
	}
	price, err := c.priceOf(c.form, "")
	if err != nil {
		return nil, err
	}
	if err := c.metadata(price); err != nil {
		return nil, err
	}
	switch data := c.form.sub("product_data"); {
	case data != nil && c.form.has("product"):
		return nil, invalid("", "product_data", "You may only specify one of these parameters: product, product_data.")
	case data != nil && data.str("name") == "":
		return nil, invalid("parameter_missing", "product_data[name]", "Missing required param: product_data[name].")
	case data != nil:
		price["product"] = c.storeProduct(newProduct(data), data.str("id")).id()
	default:
		if err := c.require("product"); err != nil {
			return nil, err
		}
		if _, err := c.find("product", c.form.str("product"), "product"); err != nil {
			return nil, err
		}
		price["product"] = c.form.str("product")
	}
	return c.storePrice(price), nil
}

func (c *call) storePrice(price object) object {
	price = c.create("price", "price", price)
	c.emit("price.created", price, nil)
	return price
}

// priceOf is a price as the parameters say, without a product, not stored yet. It is of the
// same amount per unit: tiers and metered use are not known to the fake.
func (c *call) priceOf(f form, param string) (object, error) {
	currency := strings.ToLower(f.str("currency"))
	if len(currency) != 3 {
		return nil, invalid("", inside(param, "currency"), "Invalid currency: "+shown(f.str("currency"))+".")
	}
	amount, err := unitAmount(f, param)
	if err != nil {
		return nil, err
	}
	price := object{
		"active": f.str("active") != "false", "billing_scheme": "per_unit", "currency": currency, "custom_unit_amount": nil,
		"lookup_key": textOrNil(f, "lookup_key"), "metadata": object{}, "nickname": textOrNil(f, "nickname"),
		"recurring": nil, "tax_behavior": "unspecified", "tiers_mode": nil, "transform_quantity": nil, "type": "one_time",
		"unit_amount": amount, "unit_amount_decimal": strconv.FormatInt(amount, 10),
	}
	if f.has("billing_scheme") && f.str("billing_scheme") != "per_unit" {
		return nil, invalid("", inside(param, "billing_scheme"), "This fake knows the billing_scheme per_unit only.")
	}
	if recurring := f.sub("recurring"); recurring != nil {
		if recurring.has("usage_type") && recurring.str("usage_type") != "licensed" {
			return nil, invalid("", inside(param, "recurring[usage_type]"), "This fake knows the usage_type licensed only.")
		}
		r := recurrence{interval: recurring.str("interval"), count: 1}
		if recurring.has("interval_count") {
			if r.count, err = whole(recurring, "interval_count", inside(param, "recurring[interval_count]")); err != nil {
				return nil, err
			}
		}
		if !r.valid() {
			return nil, invalid("", inside(param, "recurring[interval]"), "Invalid interval: must be one of day, week, month, or year, and three years at most")
		}
		price["type"] = "recurring"
		price["recurring"] = object{"interval": r.interval, "interval_count": r.count, "meter": nil, "usage_type": "licensed"}
	}
	return price, nil
}

// unitAmount is the amount per unit, in the minor unit of the currency.
func unitAmount(f form, param string) (int64, error) {
	name := "unit_amount"
	if !f.has(name) && f.has("unit_amount_decimal") {
		name = "unit_amount_decimal" // the fake takes whole ones only
	}
	if f.str(name) == "" {
		return 0, invalid("parameter_missing", inside(param, "unit_amount"), "Missing required param: "+inside(param, "unit_amount")+".")
	}
	n, err := whole(f, name, inside(param, name))
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, invalid("parameter_invalid_integer", inside(param, name), "This value must be greater than or equal to 0.")
	case n > maxAmount:
		return 0, invalid("amount_too_large", inside(param, name), "Amount must be no more than "+strconv.Itoa(maxAmount)+".")
	}
	return n, nil
}

func (c *call) getPrice() (object, error) { return c.find("price", c.path["price"], "price") }

func (c *call) listPrices() (object, error) {
	keys := texts(c.form.list("lookup_keys"))
	return c.list("price", func(o object) bool {
		if c.form.has("active") && c.form.yes("active") != o.yes("active") || len(keys) > 0 && !has(keys, o.str("lookup_key")) {
			return false
		}
		return !slices.ContainsFunc([]string{"currency", "product", "type"}, func(name string) bool {
			return c.form.has(name) && c.form.str(name) != o.str(name)
		})
	})
}

func (c *call) updatePrice() (object, error) {
	price, err := c.find("price", c.path["price"], "price")
	if err != nil {
		return nil, err
	}
	before := price.clone()
	if err := c.metadata(price); err != nil {
		return nil, err
	}
	for _, name := range []string{"lookup_key", "nickname"} {
		if c.form.has(name) {
			price[name] = textOrNil(c.form, name)
		}
	}
	if c.form.has("active") {
		price["active"] = c.form.yes("active")
	}
	c.changed("price.updated", before, price)
	return price, nil
}

// priceFor is the price that an element of items names, by price or, made on the spot,
// price_data.
func (c *call) priceFor(f form, param string) (object, error) {
	if data := f.sub("price_data"); data != nil {
		price, err := c.priceOf(data, inside(param, "price_data"))
		if err != nil {
			return nil, err
		}
		if _, err := c.find("product", data.str("product"), inside(param, "price_data[product]")); err != nil {
			return nil, err
		}
		price["product"], price["active"] = data.str("product"), false
		return c.storePrice(price), nil
	}
	id := f.str("price")
	if id == "" {
		return nil, invalid("parameter_missing", inside(param, "price"), "Missing required param: "+inside(param, "price")+".")
	}
	price, err := c.find("price", id, inside(param, "price"))
	if err == nil && !price.yes("active") {
		err = invalid("price_inactive", inside(param, "price"), "The price specified is inactive. This field only accepts active prices.")
	}
	return price, err
}
