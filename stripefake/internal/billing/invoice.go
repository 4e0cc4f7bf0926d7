package billing

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func invoiceRoutes() []api.Route {
	const params = collected + "auto_advance:bool automatically_finalizes_at:time default_payment_method " +
		"=description discounts =footer metadata payment_settings =statement_descriptor "
	const path = "/v1/invoices/{invoice}"
	load, draft := timed(find("invoice", "invoice")), timed(call.draftOfPath)
	return []api.Route{
		on("POST", "/v1/invoices", params+"currency customer pending_invoice_items_behavior:include|exclude subscription",
			api.With(call.buyer, call.createInvoice)),
		api.Lists("/v1/invoices", "invoice", "collection_method created customer "+
			"status:draft|open|paid|uncollectible|void subscription", func(c *api.Call, o object) bool {
			return !c.Form.Has("subscription") || c.Form.Str("subscription") == shape.SubscriptionID(o)
		}),
		on("GET", path, "", load),
		on("POST", path, params, api.Update("invoice.updated", load, call.updateInvoice)),
		on("DELETE", path, "", api.With(call.draftOfPath, call.deleteInvoice)),
		on("GET", path+"/lines", api.ListParams, api.With(load, call.listLines)),
		on("POST", path+"/finalize", "auto_advance:bool", api.With(draft, call.finalizeInvoice)),
		on("POST", path+"/pay", "off_session:bool paid_out_of_band:bool payment_method", api.With(load, call.payInvoice)),
		on("POST", path+"/attach_payment", "payment_intent!", api.With(load, call.attachPayment)),
		on("POST", path+"/void", "", api.With(load, closes("void", "void open or uncollectible invoices", "open",
			"uncollectible"))),
		on("POST", path+"/mark_uncollectible", "", api.With(load, closes("uncollectible",
			"mark open invoices uncollectible", "open"))),
		on("GET", "/v1/invoice_payments", api.ListParams+"created invoice payment payment[payment_intent]! "+
			"status:canceled|open|paid", call.listInvoicePayments),
		on("GET", "/v1/invoice_payments/{invoice_payment}", "", find("invoice_payment", "invoice_payment")),
	}
}

// newInvoice stores a draft without lines, and emits nothing yet.
func (c call) newInvoice(customer object, reason string, members object) object {
	o := object{
		"account_country": "US", "attempted": false, "auto_advance": false,
		"automatic_tax":  object{"enabled": false}.Null("disabled_reason liability provider status"),
		"billing_reason": reason, "collection_method": "charge_automatically", "customer": customer.ID(),
		"customer_address": customer["address"], "customer_email": customer["email"], "customer_name": customer["name"],
		"customer_phone": customer["phone"], "customer_shipping": customer["shipping"], "customer_tax_exempt": "none",
		"customer_tax_ids": []any{}, "default_tax_rates": []any{}, "discounts": []any{}, "issuer": issuer(),
		"period_end": c.Now, "period_start": c.Now, "status": "draft",
		"payment_settings":   object{}.Null("default_mandate payment_method_options payment_method_types"),
		"status_transitions": object{}.Null("finalized_at marked_uncollectible_at paid_at voided_at"),
		"test_clock":         customer["test_clock"], "total_discount_amounts": []any{},
		"total_pretax_credit_amounts": []any{}, "total_taxes": []any{}, "webhooks_delivered_at": c.Now,
	}.Zero("amount_due amount_overpaid amount_paid amount_paid_off_stripe amount_remaining amount_shipping " +
		"attempt_count post_payment_credit_notes_amount pre_payment_credit_notes_amount starting_balance subtotal " +
		"subtotal_excluding_tax total total_excluding_tax").Null("account_name account_tax_ids application " +
		"automatically_finalizes_at currency custom_fields customer_account default_payment_method default_source " +
		"description due_date effective_at ending_balance footer from_invoice hosted_invoice_url invoice_pdf " +
		"last_finalization_error latest_revision next_payment_attempt number on_behalf_of parent receipt_number " +
		"rendering shipping_cost shipping_details statement_descriptor")
	maps.Copy(o, members)
	o = c.Create("invoice", "in", o)
	o["lines"] = shape.ListOf(nil, "/v1/invoices/"+o.ID()+"/lines")
	return o
}

// onSubscription is the parent of a subscription's invoice.
func onSubscription(sub object) object {
	return object{"type": "subscription_details", "quote_details": nil,
		"subscription_details": object{"subscription": sub.ID(), "metadata": sub.Sub("metadata").Clone()}}
}

func (c call) subscriptionOf(invoice object) object {
	return c.Space.Get("subscription", shape.SubscriptionID(invoice))
}

func (c call) createInvoice(customer object) (object, error) {
	method, err := c.payer(c.Form, "default_payment_method", customer)
	if err != nil {
		return nil, err
	}
	members := object{"default_payment_method": shape.OrNil(method)}
	var sub object
	if id := c.Form.Str("subscription"); id != "" {
		if sub, err = c.Find("subscription", id, "subscription"); err != nil {
			return nil, err
		}
		if sub.Str("customer") != customer.ID() {
			return nil, shape.Invalid("", "subscription", "The subscription "+id+" is not the customer's.")
		}
		members["parent"], members["currency"] = onSubscription(sub), sub["currency"]
	}
	if err := c.invoiceParams(members); err != nil {
		return nil, err
	}
	if currency := strings.ToLower(c.Form.Str("currency")); currency != "" {
		members["currency"] = currency
	}
	var items []object
	behavior := c.Form.Str("pending_invoice_items_behavior") // before that version the default was include
	if behavior == "include" || behavior == "" && (sub != nil || c.Version < "2022-08-01") {
		items = c.pending(customer, sub, members.Str("currency"))
		if len(items) > 0 && members["currency"] == nil {
			members["currency"] = items[0]["currency"]
		}
	}
	if members["currency"] == nil {
		members["currency"] = cmp.Or(customer.Str("currency"), "usd")
	}
	if sub != nil && members["_redeem"] == nil {
		members["discounts"] = c.discountsOf(sub)
	}
	invoice := c.newInvoice(customer, "manual", members)
	c.giveDiscounts(invoice)
	c.take(invoice, items...)
	c.opened(invoice)
	return invoice, nil
}

func (c call) opened(invoice object) {
	advance(invoice, c.Now)
	c.Plan(invoice)
	c.Emit("invoice.created", invoice, nil)
}

// advance sets the time of a draft's automatic finalization.
func advance(invoice object, now int64) {
	if !invoice.Yes("auto_advance") || invoice.Str("status") != "draft" {
		return
	}
	if invoice["automatically_finalizes_at"] == nil {
		invoice["automatically_finalizes_at"] = now + draftLife
	}
	invoice["next_payment_attempt"] = invoice["automatically_finalizes_at"]
}

func (c call) invoiceParams(o object) error {
	if c.Form.Has("automatically_finalizes_at") {
		o["automatically_finalizes_at"], o["auto_advance"] = c.Num("automatically_finalizes_at"), true
	}
	if c.Form.Has("auto_advance") {
		o["auto_advance"] = c.Flag("auto_advance")
		if !c.Flag("auto_advance") {
			o["automatically_finalizes_at"], o["next_payment_attempt"] = nil, nil
		}
	}
	return cmp.Or(c.wantDiscounts(o, false), c.Describe(o))
}

func (c call) listLines(invoice object) (object, error) {
	lines := linesOf(invoice)
	slices.Reverse(lines) // page turns them round
	return c.Page(lines, nil)
}

func (c call) updateInvoice(invoice object) error {
	method, err := c.payer(c.Form, "default_payment_method", c.customerOf(invoice))
	if err != nil {
		return err
	}
	if s := invoice.Str("status"); s != "draft" && s != "open" && (c.Form.Has("auto_advance") ||
		c.Form.Has("description") || method != "") {
		return notEditable(invoice)
	}
	if c.Form.Has("default_payment_method") {
		invoice["default_payment_method"] = shape.OrNil(method)
	}
	if c.Form.Has("discounts") && invoice.Str("status") != "draft" {
		return notEditable(invoice)
	}
	if err := c.invoiceParams(invoice); err != nil {
		return err
	}
	if c.giveDiscounts(invoice); invoice.Str("status") == "draft" {
		c.total(invoice)
	}
	advance(invoice, c.Now)
	return nil
}

func notEditable(invoice object) error {
	return shape.Invalid("invoice_not_editable", "",
		"This invoice is "+invoice.Str("status")+" and can no longer be edited.")
}

func (c call) draft(id string) (object, error) {
	invoice, err := c.Find("invoice", id, "invoice")
	if err == nil && invoice.Str("status") != "draft" {
		return nil, notEditable(invoice)
	}
	return invoice, err
}

func (c call) draftOfPath() (object, error) { return c.draft(c.ID) }

func (c call) deleteInvoice(invoice object) (object, error) {
	if invoice["parent"] != nil {
		return nil, shape.Invalid("invoice_not_editable", "", "You can only delete one-off invoices. This invoice belongs "+
			"to a subscription: void it instead.")
	}
	for _, line := range linesOf(invoice) {
		if item := c.Space.Get("invoiceitem", line.Str("_item")); item != nil {
			c.Change("invoiceitem.updated", item, object{"invoice": nil})
		}
	}
	c.Space.Drop("invoice", invoice.ID())
	c.Emit("invoice.deleted", invoice, nil)
	return invoice.Deleted(), nil
}
