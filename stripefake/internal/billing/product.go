package billing

import (
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func productRoutes() []api.Route {
	const params = "active:bool =description images metadata shippable:bool =statement_descriptor =unit_label =url "
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
		product["default_price"] = c.storePrice(price).ID()
	}
	return product, nil
}

// newProduct is a product as the parameters say, not stored yet.
func newProduct(p shape.Params) object {
	o := object{"active": p.Str("active") != "false", "images": shape.Texts(p.List("images")),
		"marketing_features": []any{}, "metadata": object{}, "name": p.Str("name"),
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
	product = c.Create("product", "prod", product)
	c.Emit("product.created", product, nil)
	return product
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
	if c.Form.Has("active") {
		product["active"] = c.Flag("active")
	}
	product["updated"] = c.Now
	return c.Describe(product)
}
