package billing

import (
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func productRoutes() []api.Route {
	const params = "active description expand images metadata name shippable statement_descriptor unit_label url"
	return []api.Route{
		on("POST", "/v1/products", params+" id default_price_data", call.createProduct),
		api.Lists("/v1/products", "product", "active created ids", func(c *api.Call, o object) bool {
			ids := c.Form.List("ids")
			return len(ids) == 0 || slices.Contains(ids, any(o.ID()))
		}),
		on("GET", "/v1/products/{id}", "expand", call.getProduct),
		on("POST", "/v1/products/{id}", params+" default_price", call.updateProduct),
	}
}

func (c call) createProduct() (object, error) {
	if err := c.Require("name"); err != nil {
		return nil, err
	}
	id := c.Form.Str("id")
	if id != "" && c.Space.Get("product", id) != nil {
		return nil, shape.Invalid("resource_already_exists", "id", "Product already exists.")
	}
	product := newProduct(c.Form)
	if err := c.Metadata(product); err != nil {
		return nil, err
	}
	var price object
	if data := c.Form.Sub("default_price_data"); data != nil {
		var err error
		if price, err = c.priceOf(data, "default_price_data"); err != nil {
			return nil, err
		}
	}
	product = c.storeProduct(product, id)
	if price != nil {
		price["product"] = product.ID()
		product["default_price"] = c.storePrice(price).ID()
	}
	return product, nil
}

// newProduct is a product as the parameters say, not stored yet.
func newProduct(f form) object {
	return object{
		"active": f.Str("active") != "false", "default_price": nil, "description": shape.TextOrNil(f, "description"),
		"images": shape.Texts(f.List("images")), "marketing_features": []any{}, "metadata": object{}, "name": f.Str("name"),
		"package_dimensions": nil, "shippable": shape.FlagOrNil(f, "shippable"),
		"statement_descriptor": shape.TextOrNil(f, "statement_descriptor"), "tax_code": nil,
		"unit_label": shape.TextOrNil(f, "unit_label"), "url": shape.TextOrNil(f, "url"),
	}
}

func (c call) storeProduct(product object, id string) object {
	if id != "" {
		product["id"] = id
	}
	product["updated"] = c.Now
	product = c.Create("product", "prod", product)
	c.Emit("product.created", product, nil)
	return product
}

func (c call) getProduct() (object, error) { return c.Find("product", c.Path["id"], "id") }

func (c call) updateProduct() (object, error) {
	product, err := c.Find("product", c.Path["id"], "id")
	if err != nil {
		return nil, err
	}
	if id := c.Form.Str("default_price"); id != "" {
		price, err := c.Find("price", id, "default_price")
		if err != nil {
			return nil, err
		}
		if price.Str("product") != product.ID() {
			return nil, shape.Invalid("", "default_price", "The price "+id+" does not belong to the product.")
		}
	}
	before := product.Clone()
	if err := c.Metadata(product); err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq("description statement_descriptor unit_label url name default_price") {
		shape.SetText(product, c.Form, name)
	}
	if c.Form.Has("active") {
		product["active"] = c.Form.Yes("active")
	}
	product["updated"] = c.Now
	c.Changed("product.updated", before, product)
	return product, nil
}
