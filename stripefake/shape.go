package stripefake

import "strconv"

// The API versions that changed what objects look like. Versions are compared as texts: their
// dates decide.
const (
	latestCharge = "2022-11-15" // payment intents lost their charges, charges their refunds
	marketing    = "2024-04-10" // renamed features of products and rendering options of invoices
	basil        = "2025-03-31" // untied invoices from payment intents, and moved periods and prices
	clover       = "2025-09-30" // moved coupons; from here on objects are shown as they are kept
)

// reshape turns an object, in place, from the newest shape into that of a version: back to
// 2020-08-27. It looks at this object only, and not at objects within it, which are to be
// reshaped before. It needs the object's private members, with objects instead of ids where
// gather puts them, and leaves them.
//
// What Stripe adds, it adds to all versions; what it renames or takes away, it does for the
// versions from then on. Members that came after basil are taken away here all the same, so
// that an old version looks as it did when it was written about.
func reshape(o object, version string) {
	if version >= clover {
		return
	}
	delete(o, "customer_account")
	switch o.str("object") {
	case "discount":
		if source := o.sub("source"); source != nil {
			o["coupon"] = source["coupon"]
			delete(o, "source")
		}
	case "subscription":
		forget(o, "billing_schedules", "managed_payments")
		delete(o.sub("cancellation_details"), "feedback_option")
	case "invoiceitem":
		forget(o, "net_amount", "quantity_decimal")
	case "line_item":
		forget(o, "quantity_decimal", "subtotal")
	case "invoice":
		forget(o, "amount_paid_off_stripe")
	}
	if version >= basil {
		return
	}
	switch o.str("object") {
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
		o["plan"] = planOf(o.sub("price"))
		o["_start"], o["_end"] = o["current_period_start"], o["current_period_end"] // the subscription's then
		forget(o, "current_period_start", "current_period_end")
	case "subscription_schedule":
		oldSchedule(o)
	case "price":
		if recurring := o.sub("recurring"); recurring != nil {
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

func forget(o object, names ...string) {
	for _, name := range names {
		delete(o, name)
	}
}

// oldInvoice ties an invoice to its payment intent, its charge and its subscription.
func oldInvoice(o object, version string) {
	o["payment_intent"], o["charge"] = orNil(o.str("_payment_intent")), orNil(o.str("_charge"))
	o["paid"], o["paid_out_of_band"] = o.str("status") == "paid", o.yes("_paid_out_of_band")
	o["subscription"], o["subscription_details"] = orNil(subscriptionID(o)), object{"metadata": nil}
	if details := o.sub("parent").sub("subscription_details"); details != nil {
		o["subscription_details"] = object{"metadata": details["metadata"]}
	}
	o["tax"], o["total_tax_amounts"] = nil, []any{}
	for _, name := range []string{"application_fee_amount", "discount", "quote", "transfer_data"} {
		o[name] = nil
	}
	forget(o, "amount_overpaid", "confirmation_secret", "parent", "payments", "total_taxes")
	withCount(o.sub("lines"))
	if version < marketing {
		o["rendering_options"] = o["rendering"]
		delete(o, "rendering")
	}
}

// withCount gives a list the number of all that is in it.
func withCount(list object) {
	if list != nil {
		list["total_count"] = int64(len(list.list("data")))
	}
}

// oldLine is what an invoice line said of its price, its subscription and its taxes.
func oldLine(o object) {
	parent := o.sub("parent")
	details := parent.sub("invoice_item_details")
	o["type"] = "invoiceitem"
	if of := parent.sub("subscription_item_details"); of != nil {
		details, o["type"] = of, "subscription"
		o["subscription_item"] = of["subscription_item"]
	}
	if item := details.str("invoice_item"); item != "" {
		o["invoice_item"] = item
	}
	o["subscription"], o["proration"], o["proration_details"] = details["subscription"], details.yes("proration"), details["proration_details"]
	priced(o)
	o["tax_amounts"], o["tax_rates"] = []any{}, []any{}
	o["amount_excluding_tax"], o["unit_amount_excluding_tax"] = o["amount"], o.sub("_price")["unit_amount_decimal"]
	forget(o, "parent", "pricing", "taxes")
}

// priced shows the whole price, and the plan that it was called before.
func priced(o object) {
	o["price"], o["plan"] = nil, nil
	if price := o.sub("_price"); price != nil {
		shown := price.clone()
		o["price"] = shown
		if plan := planOf(shown); plan != nil {
			o["plan"] = plan
		}
	}
}

func oldItem(o object) {
	priced(o)
	price := o.sub("_price")
	o["subscription"] = orNil(o.str("_subscription"))
	o["unit_amount"], o["unit_amount_decimal"] = price["unit_amount"], price["unit_amount_decimal"]
	forget(o, "parent", "pricing")
}

func oldIntent(o object, version string) {
	o["invoice"] = orNil(o.str("_invoice"))
	if version < marketing && o.str("capture_method") == "automatic_async" {
		o["capture_method"] = "automatic" // the default then
	}
	if version >= latestCharge {
		return
	}
	o["charges"] = counted(o.list("_charges"), "/v1/charges?payment_intent="+o.id())
	delete(o, "latest_charge")
}

func oldCharge(o object, version string) {
	o["invoice"] = orNil(o.str("_invoice"))
	o["source"], o["order"], o["destination"] = nil, nil, nil
	if version >= latestCharge || o["refunds"] != nil {
		return
	}
	o["refunds"] = counted(o.list("_refunds"), "/v1/charges/"+o.id()+"/refunds")
}

// counted is a list of all of these, which may be nil.
func counted(all []any, url string) object {
	data := []any{}
	for _, v := range all {
		data = append(data, cloneValue(v))
	}
	list := listOf(data, url)
	withCount(list)
	return list
}

// oldSubscription has one period for all of its items.
func oldSubscription(o object) {
	items := objectsOf(o.sub("items").list("data"))
	for i, item := range items {
		start, end := item.num("_start"), item.num("_end")
		if i == 0 || end < o.num("current_period_end") {
			o["current_period_start"], o["current_period_end"] = start, end
		}
	}
	o["plan"], o["quantity"], o["discount"] = nil, nil, nil
	if len(items) == 1 {
		o["plan"], o["quantity"] = cloneValue(items[0]["plan"]), items[0]["quantity"]
	}
	withCount(o.sub("items"))
	forget(o, "billing_mode")
}

func oldSchedule(o object) {
	for _, phase := range objectsOf(o.list("phases")) {
		phase["coupon"] = nil
		for _, item := range objectsOf(phase.list("items")) {
			item["plan"] = item["price"]
		}
	}
	o["renewal_interval"] = nil
	forget(o, "billing_mode")
}

// planOf is the plan that a recurring price was called before; nil for others.
func planOf(price object) object {
	recurring := price.sub("recurring")
	if recurring == nil {
		return nil
	}
	return object{
		"id": price.id(), "object": "plan", "active": price["active"], "aggregate_usage": nil, "amount": price["unit_amount"],
		"amount_decimal": strconv.FormatInt(price.num("unit_amount"), 10), "billing_scheme": "per_unit", "created": price["created"],
		"currency": price["currency"], "interval": recurring.str("interval"), "interval_count": max(1, recurring.num("interval_count")), "livemode": price["livemode"],
		"metadata": cloneValue(price["metadata"]), "nickname": price["nickname"], "product": price["product"], "tiers_mode": nil,
		"transform_usage": nil, "trial_period_days": nil, "usage_type": "licensed",
	}
}

func subscriptionID(invoice object) string {
	return invoice.sub("parent").sub("subscription_details").str("subscription")
}
