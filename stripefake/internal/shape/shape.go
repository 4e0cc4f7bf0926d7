// Package shape implements the wire format of Stripe's API: request forms, objects, errors, JSON responses,
// and the shapes of objects in earlier API versions. It stores nothing and has no clock.
package shape

import (
	"strconv"
	"strings"
)

// The API versions that changed the shapes of objects. They are compared as texts, by their dates.
const (
	LatestCharge = "2022-11-15" // payment intents lost their charges, charges their refunds
	marketing    = "2024-04-10" // renamed features of products and rendering options of invoices
	Basil        = "2025-03-31" // untied invoices from payment intents, and moved periods and prices
	Clover       = "2025-09-30" // moved coupons; from here on objects are shown as they are kept
	Endive       = "2026-09-30" // took payment_method_types from requests, and texts from billing_cycle_anchor
	appeals      = "2026-10-28" // named the appeal of a dispute
)

// sinceEndive are the members that objects have had since, all of them null.
var sinceEndive = map[string]string{"payment_intent": "allowed_payment_method_types payment_record",
	"setup_intent": "allowed_payment_method_types", "checkout.session": "allowed_payment_method_types",
	"subscription_item": "current_trial", "product": "tax_details", "dispute": "intended_submission_method"}

// toEndive adds what objects have had since 2026-09-30.endive or 2026-10-28.endive.
func toEndive(o Object) {
	for name := range strings.FieldsSeq(sinceEndive[o.Str("object")]) {
		if _, there := o[name]; !there {
			o[name] = nil
		}
	}
	switch o.Str("object") {
	case "charge":
		if card := o.Sub("payment_method_details").Sub("card"); card != nil {
			card["electronic_commerce_indicator"] = nil
		}
	case "dispute":
		if details := o.Sub("evidence_details"); details.Num("submission_count") > 0 {
			details["submission_method"] = "manual"
		} else if details != nil {
			details["submission_method"] = "not_submitted"
		}
	case "subscription":
		if end := o.Sub("trial_settings").Sub("end_behavior"); end != nil {
			end["billing_cycle_anchor"] = nil
		}
	case "subscription_schedule":
		o["pause_schedules"] = []any{}
	}
}

// Reshape turns an object, in place, from the shape in which it is kept into the shape of a version,
// from 2020-08-27 to 2026-10-28.endive. It changes this object alone: the caller reshapes inner
// objects first. It reads the private members, in some of which gather has put objects for ids, and
// does not remove them.
//
// Stripe adds members to all versions, and renames or removes them from one version on. Members that
// came after basil are removed here too, so an old version looks as its documentation shows it.
func Reshape(o Object, version string) {
	if version >= Endive {
		toEndive(o)
	}
	if version < appeals && o.Str("object") == "dispute" && strings.HasPrefix(o.Str("status"), "appeal_") {
		o["status"] = "lost" // assumed: no document says what these versions show
	}
	if version >= Clover || o.Str("object") == "" {
		return
	}
	delete(o, "customer_account")
	switch o.Str("object") {
	case "discount":
		if source := o.Sub("source"); source != nil {
			o["coupon"] = o.Sub("_coupon").Clone()
			delete(o, "source")
		}
	case "subscription":
		forget(o, "billing_schedules", "managed_payments")
		delete(o.Sub("cancellation_details"), "feedback_option")
	case "invoiceitem":
		forget(o, "net_amount", "proration_details", "quantity_decimal")
	case "line_item":
		forget(o, "quantity_decimal", "subtotal")
	case "invoice":
		forget(o, "amount_paid_off_stripe")
	}
	if version >= Basil {
		return
	}
	switch o.Str("object") {
	case "invoice":
		oldInvoice(o, version)
	case "line_item":
		oldLine(o)
	case "invoiceitem":
		oldItem(o)
	case "payment_intent":
		oldIntent(o, version)
	case "charge":
		oldCharge(o, version)
	case "subscription":
		oldSubscription(o)
	case "subscription_item":
		o["plan"] = planOf(o.Sub("price"))
		o["_start"], o["_end"] = o["current_period_start"], o["current_period_end"] // for the subscription
		forget(o, "current_period_start", "current_period_end")
	case "subscription_schedule":
		oldSchedule(o)
	case "price":
		if recurring := o.Sub("recurring"); recurring != nil {
			recurring["aggregate_usage"], recurring["trial_period_days"] = nil, nil
			delete(recurring, "meter")
		}
	case "product":
		o["type"] = "service"
		if version < marketing {
			o["features"], o["attributes"] = o["marketing_features"], []any{}
			delete(o, "marketing_features")
		}
	}
}

func forget(o Object, names ...string) {
	for _, name := range names {
		delete(o, name)
	}
}

// oldInvoice ties an invoice to its payment intent, its charge and its subscription.
func oldInvoice(o Object, version string) {
	o["payment_intent"], o["charge"] = OrNil(o.Str("_payment_intent")), OrNil(o.Str("_charge"))
	o["paid"], o["paid_out_of_band"] = o.Str("status") == "paid", o.Yes("_paid_out_of_band")
	o["subscription"], o["subscription_details"] = OrNil(SubscriptionID(o)), Object{"metadata": nil}
	if details := o.Sub("parent").Sub("subscription_details"); details != nil {
		o["subscription_details"] = Object{"metadata": details["metadata"]}
	}
	o["tax"], o["total_tax_amounts"] = nil, []any{}
	for _, name := range []string{"application_fee_amount", "quote", "transfer_data"} {
		o[name] = nil
	}
	o["discount"] = o["_discount"]
	forget(o, "amount_overpaid", "confirmation_secret", "parent", "payments", "total_taxes")
	withCount(o.Sub("lines"))
	if version < marketing {
		o["rendering_options"] = o["rendering"]
		delete(o, "rendering")
	}
}

func withCount(list Object) {
	if list != nil {
		list["total_count"] = int64(len(list.List("data")))
	}
}

// oldLine shows the price, the subscription and the taxes of an invoice line.
func oldLine(o Object) {
	parent := o.Sub("parent")
	details := parent.Sub("invoice_item_details")
	o["type"] = "invoiceitem"
	if of := parent.Sub("subscription_item_details"); of != nil {
		details, o["type"] = of, "subscription"
		if of.Yes("proration") {
			o["type"] = "invoiceitem"
		}
		o["subscription_item"] = of["subscription_item"]
	}
	if item := details.Str("invoice_item"); item != "" {
		o["invoice_item"] = item
	}
	o["subscription"], o["proration"], o["proration_details"] = details["subscription"], details.Yes("proration"),
		details["proration_details"]
	priced(o)
	o["tax_amounts"], o["tax_rates"] = []any{}, []any{}
	o["amount_excluding_tax"], o["unit_amount_excluding_tax"] = o["amount"], o.Sub("_price")["unit_amount_decimal"]
	forget(o, "parent", "pricing", "taxes")
}

// priced shows the whole price, and the plan, which is its former name.
func priced(o Object) {
	o["price"], o["plan"] = nil, nil
	if price := o.Sub("_price"); price != nil {
		shown := price.Clone()
		o["price"] = shown
		if plan := planOf(shown); plan != nil {
			o["plan"] = plan
		}
	}
}

func oldItem(o Object) {
	priced(o)
	price := o.Sub("_price")
	o["subscription"] = OrNil(o.Str("_subscription"))
	o["unit_amount"], o["unit_amount_decimal"] = price["unit_amount"], price["unit_amount_decimal"]
	forget(o, "parent", "pricing")
}

func oldIntent(o Object, version string) {
	o["invoice"] = OrNil(o.Str("_invoice"))
	if version < marketing && o.Str("capture_method") == "automatic_async" {
		o["capture_method"] = "automatic" // the default then
	}
	if version < LatestCharge {
		o["charges"] = counted(o.List("_charges"), "/v1/charges?payment_intent="+o.ID())
		delete(o, "latest_charge")
	}
}

func oldCharge(o Object, version string) {
	o["invoice"] = OrNil(o.Str("_invoice"))
	o["source"], o["order"], o["destination"] = nil, nil, nil
	if version < LatestCharge && o["refunds"] == nil {
		o["refunds"] = counted(o.List("_refunds"), "/v1/charges/"+o.ID()+"/refunds")
	}
}

// counted is a list of all of these, which may be nil.
func counted(all []any, url string) Object {
	list := ListOf(CloneValue(all).([]any), url)
	withCount(list)
	return list
}

// oldSubscription has one period for all of its items.
func oldSubscription(o Object) {
	items := ObjectsOf(o.Sub("items").List("data"))
	for i, item := range items {
		start, end := item.Num("_start"), item.Num("_end")
		if i == 0 || end < o.Num("current_period_end") {
			o["current_period_start"], o["current_period_end"] = start, end
		}
	}
	o["plan"], o["quantity"], o["discount"] = nil, nil, o["_discount"]
	if len(items) == 1 {
		o["plan"], o["quantity"] = CloneValue(items[0]["plan"]), items[0]["quantity"]
	}
	withCount(o.Sub("items"))
	forget(o, "billing_mode")
}

func oldSchedule(o Object) {
	for _, phase := range ObjectsOf(o.List("phases")) {
		phase["coupon"] = nil
		for _, item := range ObjectsOf(phase.List("items")) {
			item["plan"] = item["price"]
		}
	}
	o["renewal_interval"] = nil
	forget(o, "billing_mode")
}

// planOf returns the plan of a recurring price; nil for others.
func planOf(price Object) Object {
	recurring := price.Sub("recurring")
	if recurring == nil {
		return nil
	}
	return Object{
		"id": price.ID(), "object": "plan", "active": price["active"], "aggregate_usage": nil,
		"amount": price["unit_amount"], "amount_decimal": strconv.FormatInt(price.Num("unit_amount"), 10),
		"billing_scheme": "per_unit", "created": price["created"], "currency": price["currency"],
		"interval": recurring.Str("interval"), "interval_count": max(1, recurring.Num("interval_count")),
		"livemode": price["livemode"], "metadata": CloneValue(price["metadata"]), "nickname": price["nickname"],
		"product": price["product"], "tiers_mode": nil, "transform_usage": nil, "trial_period_days": nil,
		"usage_type": "licensed",
	}
}

func SubscriptionID(invoice Object) string {
	return invoice.Sub("parent").Sub("subscription_details").Str("subscription")
}
