package stripefake

import "strings"

func productRoutes() []route {
	const params = "active description expand images metadata name shippable statement_descriptor unit_label url"
	return []route{
		on("POST", "/v1/products", params+" id default_price_data", (*call).createProduct),
		on("GET", "/v1/products", listParams+"active created ids", (*call).listProducts),
		on("GET", "/v1/products/{id}", "expand", (*call).getProduct),
		on("POST", "/v1/products/{id}", params+" default_price", (*call).updateProduct),
	}
}

func (c *call) createProduct() (object, error) {
	if err := c.require("name"); err != nil {
		return nil, err
	}
	id := c.form.str("id")
	if id != "" && c.space.get("product", id) != nil {
		return nil, invalid("resource_already_exists", "id", "Product already exists.")
	}
	product := newProduct(c.form)
	if err := c.metadata(product); err != nil {
		return nil, err
	}
	var price object
	if data := c.form.sub("default_price_data"); data != nil {
		var err error
		if price, err = c.priceOf(data, "default_price_data"); err != nil {
			return nil, err
		}
	}
	product = c.storeProduct(product, id)
	if price != nil {
		price["product"] = product.id()
		product["default_price"] = c.storePrice(price).id()
	}
	return product, nil
}

// newProduct is a product as the parameters say, not stored yet.
func newProduct(f form) object {
	return object{
		"active": f.str("active") != "false", "default_price": nil, "description": textOrNil(f, "description"),
		"images": texts(f.list("images")), "marketing_features": []any{}, "metadata": object{}, "name": f.str("name"),
		"package_dimensions": nil, "shippable": flagOrNil(f, "shippable"),
		"statement_descriptor": textOrNil(f, "statement_descriptor"), "tax_code": nil,
		"unit_label": textOrNil(f, "unit_label"), "url": textOrNil(f, "url"),
	}
}

func (c *call) storeProduct(product object, id string) object {
	if id != "" {
		product["id"] = id
	}
	product["updated"] = c.now
	product = c.create("product", "prod", product)
	c.emit("product.created", product, nil)
	return product
}

func (c *call) getProduct() (object, error) { return c.find("product", c.path["id"], "id") }

func (c *call) listProducts() (object, error) {
	ids := texts(c.form.list("ids"))
	return c.list("product", func(o object) bool {
		if c.form.has("active") && c.form.yes("active") != o.yes("active") {
			return false
		}
		return len(ids) == 0 || has(ids, o.id())
	})
}

func (c *call) updateProduct() (object, error) {
	product, err := c.find("product", c.path["id"], "id")
	if err != nil {
		return nil, err
	}
	if id := c.form.str("default_price"); id != "" {
		price, err := c.find("price", id, "default_price")
		if err != nil {
			return nil, err
		}
		if price.str("product") != product.id() {
			return nil, invalid("", "default_price", "The price "+id+" does not belong to the product.")
		}
	}
	before := product.clone()
	if err := c.metadata(product); err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq("description statement_descriptor unit_label url name default_price") {
		if c.form.has(name) {
			product[name] = textOrNil(c.form, name)
		}
	}
	if c.form.has("active") {
		product["active"] = c.form.yes("active")
	}
	product["updated"] = c.now
	c.changed("product.updated", before, product)
	return product, nil
}
