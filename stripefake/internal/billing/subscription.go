package billing

import (
	"maps"
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// firstPayment is the longest wait for the payment of a subscription's first invoice, in seconds.
const firstPayment = 23 * api.Hour

func subscriptionRoutes() []api.Route {
	const path = "/v1/subscriptions/{subscription_exposed_id}"
	const params = collected + "cancel_at:max_period_end|min_period_end|int cancel_at_period_end:bool " +
		"default_payment_method =description discounts items metadata off_session:bool " +
		"payment_behavior:allow_incomplete|default_incomplete|error_if_incomplete|pending_if_incomplete payment_settings " +
		"payment_settings[save_default_payment_method]:|off|on_subscription " +
		"proration_behavior:always_invoice|create_prorations|none trial_end:now|int " +
		"trial_settings trial_settings[end_behavior][missing_payment_method]:cancel|create_invoice|pause! "
	load := timed(find("subscription", "id"))
	return []api.Route{
		formerly("coupon", on("POST", "/v1/subscriptions", params+"billing_cycle_anchor:time billing_mode "+
			"billing_mode[type]:classic|flexible! currency customer trial_period_days:amount",
			api.With(call.buyer, call.createSubscription))),
		on("GET", "/v1/subscriptions", api.ListParams+"collection_method created customer price "+
			"status:active|all|canceled|ended|incomplete|incomplete_expired|past_due|paused|trialing|unpaid test_clock",
			call.listSubscriptions),
		on("GET", path, "", load),
		formerly("coupon", on("POST", path, params+"cancellation_details ~proration_date pause_collection "+
			"pause_collection[behavior]:keep_as_draft|mark_uncollectible|void! pause_collection[resumes_at]:int",
			api.With(load, call.updateSubscription))),
		on("DELETE", path, "cancellation_details expand invoice_now:bool prorate:bool",
			api.With(load, call.cancelSubscription)),
		on("POST", "/v1/subscriptions/{subscription}/resume", "billing_cycle_anchor:now|unchanged proration_behavior",
			api.With(load, call.resumeSubscription)),
		on("GET", "/v1/subscription_items", api.ListParams+"subscription!", call.listSubscriptionItems),
		on("GET", "/v1/subscription_items/{item}", "", call.getSubscriptionItem),
	}
}

// over reports whether a subscription has ended for good.
func over(sub object) bool {
	return sub.Str("status") == "canceled" || sub.Str("status") == "incomplete_expired"
}

func (c call) listSubscriptions() (object, error) {
	status := c.Form.Str("status")
	return c.List("subscription", func(o object) bool {
		switch is := o.Str("status"); {
		case status == "" && is == "canceled", status == "ended" && !over(o),
			status != "" && status != "all" && status != "ended" && status != is:
			return false
		}
		has := func(item object) bool { return item.Sub("price").ID() == c.Form.Str("price") }
		return (c.Form.Str("price") == "" || slices.ContainsFunc(itemsOf(o), has)) &&
			c.Keeps(o, "customer collection_method test_clock")
	})
}

func (c call) listSubscriptionItems() (object, error) {
	sub, err := c.Find("subscription", c.Form.Str("subscription"), "subscription")
	if err != nil {
		return nil, err
	}
	items := itemsOf(sub)
	slices.Reverse(items) // page turns them round
	return c.Page(items, nil)
}

func (c call) getSubscriptionItem() (object, error) {
	for _, sub := range c.Space.All("subscription") {
		for _, item := range itemsOf(sub) {
			if item.ID() == c.ID {
				return item, nil
			}
		}
	}
	return nil, shape.Missing("subscription_item", c.ID, "item")
}

// newSubscription stores a subscription of the customer from now on, and emits nothing yet.
func (c call) newSubscription(customer object, currency string, members object) object {
	o := object{
		"automatic_tax": automaticTax(), "billing_cycle_anchor": c.Now, "billing_mode": c.mode(""),
		"billing_schedules": []any{}, "cancel_at_period_end": false, "cancellation_details": noCancellation(),
		"collection_method": "charge_automatically", "currency": currency, "customer": customer.ID(),
		"default_tax_rates": []any{}, "discounts": []any{}, "invoice_settings": object{"issuer": issuer()}.Null(
			"account_tax_ids custom_fields description footer"), "payment_settings": paymentSettings("off"),
		"start_date": c.Now, "status": "incomplete", "test_clock": customer["test_clock"],
		"trial_settings": object{"end_behavior": object{"missing_payment_method": "create_invoice"}},
	}.Null("application application_fee_percent billing_cycle_anchor_config billing_thresholds cancel_at canceled_at " +
		"customer_account days_until_due default_payment_method default_source description ended_at latest_invoice " +
		"managed_payments next_pending_invoice_item_invoice on_behalf_of pause_collection " +
		"pending_invoice_item_interval pending_setup_intent pending_update schedule transfer_data trial_end trial_start")
	maps.Copy(o, members)
	o = c.Create("subscription", "sub", o)
	o["items"] = shape.ListOf(nil, "/v1/subscription_items?subscription="+o.ID())
	return o
}

// mode is the billing_mode of the type; "": the default, which was changed in clover.
func (c call) mode(typ string) object {
	if typ == "classic" || typ == "" && c.Version < shape.Clover {
		return object{"type": "classic", "flexible": nil}
	}
	return object{"type": "flexible", "flexible": object{}}
}

func automaticTax() object { return object{"enabled": false}.Null("disabled_reason liability") }

func noCancellation() object { return object{}.Null("comment feedback feedback_option reason") }

func paymentSettings(save string) object {
	return object{"save_default_payment_method": save}.Null("payment_method_options payment_method_types")
}

// addItem adds an item, whose first period begins now.
func (c call) addItem(sub, price object, quantity int64, metadata object) {
	end := recurrenceOf(price).next(sub.Num("billing_cycle_anchor"), c.Now)
	if trial, ok := sub["trial_end"].(int64); ok && trial > c.Now {
		end = trial
	}
	items := sub.Sub("items")
	items["data"] = append(items.List("data"), object{"id": c.NewID("si"), "object": "subscription_item",
		"billing_thresholds": nil, "created": c.Now, "current_period_start": c.Now, "current_period_end": end,
		"discounts": []any{}, "metadata": metadata, "price": price.Clone(), "quantity": quantity,
		"subscription": sub.ID(), "tax_rates": []any{}})
}

// A wanted is an element of the parameter items.
type wanted struct {
	id       string // of an existing item; "": a new one
	price    object // nil: as it is
	quantity int64  // -1: not given
	metadata object
	deleted  bool
}

func (w wanted) count() int64 {
	if w.quantity < 0 {
		return 1
	}
	return w.quantity
}

func (c call) wantedItems(p shape.Params) ([]wanted, error) {
	var list []wanted
	for _, element := range p.Each("items") {
		w := wanted{id: element.Str("id"), quantity: -1, deleted: element.Yes("deleted"), metadata: object{}}
		if err := element.Metadata(w.metadata); err != nil {
			return nil, err
		}
		w.metadata = w.metadata.Sub("metadata")
		if element.Has("quantity") {
			n, err := element.Whole("quantity")
			if err != nil || n < 0 {
				return nil, element.Invalid("parameter_invalid_integer", "quantity",
					"Invalid integer: "+shape.Shown(element.Str("quantity")))
			}
			w.quantity = n
		}
		if w.id == "" || element.Has("price") || element.Has("price_data") {
			price, err := c.priceFor(element)
			if err != nil {
				return nil, err
			}
			if price.Sub("recurring") == nil {
				return nil, element.Invalid("", "price", "The price specified is set to `type=one_time` but this field only "+
					"accepts prices with `type=recurring`.")
			}
			w.price = price
		}
		list = append(list, w)
	}
	return list, nil
}

// order is wantedItems for new items, with their currency.
func (c call) order(p shape.Params) (list []wanted, currency string, err error) {
	if list, err = c.wantedItems(p); err != nil {
		return nil, "", err
	}
	if len(list) == 0 {
		return nil, "", shape.Missed(p.In("items"))
	}
	currency = list[0].price.Str("currency")
	for _, w := range list {
		if w.price.Str("currency") != currency {
			return nil, "", p.Invalid("", "items", "All prices on a subscription must have the same currency.")
		}
	}
	return list, currency, nil
}

func itemsOf(sub object) []object { return shape.ObjectsOf(sub.Sub("items").List("data")) }
