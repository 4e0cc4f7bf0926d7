package stripefake

import (
	"maps"
	"slices"
	"strings"
)

func invoiceRoutes() []route {
	const params = "auto_advance automatically_finalizes_at collection_method default_payment_method description footer metadata payment_settings statement_descriptor "
	const path = "/v1/invoices/{invoice}"
	return []route{
		on("POST", "/v1/invoices", params+"currency customer pending_invoice_items_behavior subscription", (*call).createInvoice),
		on("GET", "/v1/invoices", listParams+"collection_method created customer status subscription", (*call).listInvoices),
		on("GET", path, "", (*call).getInvoice),
		on("POST", path, params, (*call).updateInvoice),
		on("DELETE", path, "", (*call).deleteInvoice),
		on("GET", path+"/lines", listParams, (*call).listLines),
		on("POST", path+"/finalize", "auto_advance", (*call).finalizeInvoice),
		on("POST", path+"/pay", "off_session paid_out_of_band payment_method", (*call).payInvoice),
		on("POST", path+"/void", "", (*call).voidInvoice),
		on("POST", path+"/mark_uncollectible", "", (*call).giveUpInvoice),
	}
}

// newInvoice stores a draft of the customer without lines, and says nothing of it yet.
func (c *call) newInvoice(customer object, reason string, members object) object {
	o := object{
		"account_country": "US", "account_name": nil, "account_tax_ids": nil, "amount_due": int64(0), "amount_overpaid": int64(0),
		"amount_paid": int64(0), "amount_paid_off_stripe": int64(0), "amount_remaining": int64(0), "amount_shipping": int64(0),
		"application": nil, "attempt_count": int64(0), "attempted": false, "auto_advance": false,
		"automatic_tax":              object{"disabled_reason": nil, "enabled": false, "liability": nil, "provider": nil, "status": nil},
		"automatically_finalizes_at": nil, "billing_reason": reason, "collection_method": "charge_automatically",
		"currency": nil, "custom_fields": nil, "customer": customer.id(), "customer_account": nil,
		"customer_address": customer["address"], "customer_email": customer["email"], "customer_name": customer["name"],
		"customer_phone": customer["phone"], "customer_shipping": customer["shipping"], "customer_tax_exempt": "none",
		"customer_tax_ids": []any{}, "default_payment_method": nil, "default_source": nil, "default_tax_rates": []any{},
		"description": nil, "discounts": []any{}, "due_date": nil, "effective_at": nil, "ending_balance": nil, "footer": nil,
		"from_invoice": nil, "hosted_invoice_url": nil, "invoice_pdf": nil, "issuer": issuer(), "last_finalization_error": nil,
		"latest_revision": nil, "metadata": object{}, "next_payment_attempt": nil, "number": nil, "on_behalf_of": nil, "parent": nil,
		"payment_settings": object{"default_mandate": nil, "payment_method_options": nil, "payment_method_types": nil},
		"period_end":       c.now, "period_start": c.now, "post_payment_credit_notes_amount": int64(0),
		"pre_payment_credit_notes_amount": int64(0), "receipt_number": nil, "rendering": nil, "shipping_cost": nil,
		"shipping_details": nil, "starting_balance": int64(0), "statement_descriptor": nil, "status": "draft",
		"status_transitions": object{"finalized_at": nil, "marked_uncollectible_at": nil, "paid_at": nil, "voided_at": nil},
		"subtotal":           int64(0), "subtotal_excluding_tax": int64(0), "test_clock": customer["test_clock"], "total": int64(0),
		"total_discount_amounts": []any{}, "total_excluding_tax": int64(0), "total_pretax_credit_amounts": []any{}, "total_taxes": []any{},
		"webhooks_delivered_at": c.now,
	}
	maps.Copy(o, members)
	o = c.create("invoice", "in", o)
	o["lines"] = listOf(nil, "/v1/invoices/"+o.id()+"/lines")
	return o
}

// onSubscription is the parent of an invoice that a subscription has made.
func onSubscription(sub object) object {
	return object{"type": "subscription_details", "quote_details": nil,
		"subscription_details": object{"subscription": sub.id(), "metadata": sub.sub("metadata").clone()}}
}

// subscriptionOf is the subscription that the invoice is of, or nil.
func (c *call) subscriptionOf(invoice object) object {
	return c.space.get("subscription", subscriptionID(invoice))
}

func (c *call) createInvoice() (object, error) {
	customer, err := c.buyer()
	if err != nil {
		return nil, err
	}
	if err := c.collection(); err != nil {
		return nil, err
	}
	behavior, err := c.choice("pending_invoice_items_behavior", "include", "exclude")
	if err != nil {
		return nil, err
	}
	method, err := c.payer(c.form, "default_payment_method", "default_payment_method", customer)
	if err != nil {
		return nil, err
	}
	defer c.inTimeOf(customer)()
	members := object{"default_payment_method": orNil(method)}
	var sub object
	if id := c.form.str("subscription"); id != "" {
		if sub, err = c.find("subscription", id, "subscription"); err != nil {
			return nil, err
		}
		if sub.str("customer") != customer.id() {
			return nil, invalid("", "subscription", "The subscription "+id+" is not the customer's.")
		}
		members["parent"], members["currency"] = onSubscription(sub), sub["currency"]
	}
	if err := c.invoiceParams(members); err != nil {
		return nil, err
	}
	if currency := strings.ToLower(c.form.str("currency")); currency != "" {
		members["currency"] = currency
	}
	var items []object
	if behavior == "include" || behavior == "" && (sub != nil || c.version < "2022-08-01") { // the default was changed then
		items = c.pending(customer, sub, members.str("currency"))
		if len(items) > 0 && members["currency"] == nil {
			members["currency"] = items[0]["currency"]
		}
	}
	if members["currency"] == nil {
		members["currency"] = "usd"
		if s := customer.str("currency"); s != "" {
			members["currency"] = s
		}
	}
	invoice := c.newInvoice(customer, "manual", members)
	c.take(invoice, items)
	c.opened(invoice)
	return invoice, nil
}

// opened says that there is a new draft.
func (c *call) opened(invoice object) {
	advance(invoice, c.now)
	c.plan(invoice)
	c.emit("invoice.created", invoice, nil)
}

// advance says when a draft that advances by itself does.
func advance(invoice object, now int64) {
	if !invoice.yes("auto_advance") || invoice.str("status") != "draft" {
		return
	}
	if invoice["automatically_finalizes_at"] == nil {
		invoice["automatically_finalizes_at"] = now + draftLife
	}
	invoice["next_payment_attempt"] = invoice["automatically_finalizes_at"]
}

// invoiceParams sets what the parameters say about an invoice, new or old.
func (c *call) invoiceParams(o object) error {
	for _, name := range []string{"description", "footer", "statement_descriptor"} {
		if c.form.has(name) {
			o[name] = textOrNil(c.form, name)
		}
	}
	if c.form.has("automatically_finalizes_at") {
		at, err := c.amountless("automatically_finalizes_at")
		if err != nil {
			return err
		}
		o["automatically_finalizes_at"], o["auto_advance"] = at, true
	}
	if c.form.has("auto_advance") {
		yes, err := c.flag("auto_advance")
		if err != nil {
			return err
		}
		o["auto_advance"] = yes
		if !yes {
			o["automatically_finalizes_at"], o["next_payment_attempt"] = nil, nil
		}
	}
	return c.metadata(o)
}

func (c *call) getInvoice() (object, error) { return c.find("invoice", c.path["invoice"], "invoice") }

func (c *call) listInvoices() (object, error) {
	if _, err := c.choice("status", "draft", "open", "paid", "uncollectible", "void"); err != nil {
		return nil, err
	}
	return c.list("invoice", func(o object) bool {
		if c.form.has("subscription") && c.form.str("subscription") != subscriptionID(o) {
			return false
		}
		return !slices.ContainsFunc([]string{"customer", "status", "collection_method"}, func(name string) bool {
			return c.form.has(name) && c.form.str(name) != o.str(name)
		})
	})
}

func (c *call) listLines() (object, error) {
	invoice, err := c.getInvoice()
	if err != nil {
		return nil, err
	}
	lines := linesOf(invoice)
	slices.Reverse(lines) // page turns them round
	return c.page(lines, nil)
}

func (c *call) updateInvoice() (object, error) {
	invoice, err := c.getInvoice()
	if err != nil {
		return nil, err
	}
	if err := c.collection(); err != nil {
		return nil, err
	}
	customer := c.space.get("customer", invoice.str("customer"))
	method, err := c.payer(c.form, "default_payment_method", "default_payment_method", customer)
	if err != nil {
		return nil, err
	}
	if s := invoice.str("status"); s != "draft" && s != "open" && (c.form.has("auto_advance") || c.form.has("description") || method != "") {
		return nil, notEditable(invoice)
	}
	defer c.inTimeOf(customer)()
	before := invoice.clone()
	if err := c.invoiceParams(invoice); err != nil {
		return nil, err
	}
	if c.form.has("default_payment_method") {
		invoice["default_payment_method"] = orNil(method)
	}
	advance(invoice, c.now)
	c.changed("invoice.updated", before, invoice)
	return invoice, nil
}

func notEditable(invoice object) error {
	return invalid("invoice_not_editable", "", "This invoice is "+invoice.str("status")+" and can no longer be edited.")
}

// draft returns the invoice, if it still is one.
func (c *call) draft(id, param string) (object, error) {
	invoice, err := c.find("invoice", id, param)
	if err == nil && invoice.str("status") != "draft" {
		return nil, notEditable(invoice)
	}
	return invoice, err
}

func (c *call) deleteInvoice() (object, error) {
	invoice, err := c.draft(c.path["invoice"], "invoice")
	if err != nil {
		return nil, err
	}
	if invoice["parent"] != nil {
		return nil, invalid("invoice_not_editable", "", "You can only delete one-off invoices. This invoice is of a subscription: void it.")
	}
	for _, line := range linesOf(invoice) {
		if item := c.space.get("invoiceitem", line.str("_item")); item != nil {
			before := item.clone()
			item["invoice"] = nil
			c.changed("invoiceitem.updated", before, item)
		}
	}
	c.space.drop("invoice", invoice.id())
	c.emit("invoice.deleted", invoice, nil)
	return object{"id": invoice.id(), "object": "invoice", "deleted": true}, nil
}
