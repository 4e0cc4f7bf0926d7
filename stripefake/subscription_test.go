package stripefake

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSubscription_paymentBehaviors(t *testing.T) {
	paid := []string{"invoice.created", "payment_intent.created", "invoice.updated", "invoice.finalized",
		"charge.succeeded", "payment_intent.succeeded",
		"invoice_payment.paid", "customer.subscription.created", "invoice.updated", "invoice.paid",
		"invoice.payment_succeeded"}
	declined := []string{"invoice.created", "payment_intent.created", "invoice.updated", "invoice.finalized",
		"charge.failed", "payment_intent.payment_failed",
		"invoice.updated", "invoice.payment_failed", "customer.subscription.created"}
	for _, tt := range []struct {
		behavior, method string
		status           any // nil: it is an error
		code             string
		story            []string
	}{
		{"allow_incomplete", "pm_card_visa", "active", "", paid},
		{"allow_incomplete", "pm_card_chargeCustomerFail", "incomplete", "", declined},
		{"allow_incomplete", "pm_card_authenticationRequired", "incomplete", "",
			[]string{"invoice.created", "payment_intent.created", "invoice.updated",
				"invoice.finalized", "payment_intent.requires_action", "invoice.updated", "invoice.payment_action_required",
				"invoice.payment_failed", "customer.subscription.created"}},
		{"allow_incomplete", "", nil, "resource_missing", nil},
		{"error_if_incomplete", "pm_card_visa", "active", "", []string{"payment_intent.created", "charge.succeeded",
			"payment_intent.succeeded", "invoice_payment.paid",
			"customer.subscription.created", "invoice.created", "invoice.updated", "invoice.finalized", "invoice.updated",
			"invoice.paid", "invoice.payment_succeeded"}},
		{"error_if_incomplete", "pm_card_chargeCustomerFail", nil, "card_declined",
			[]string{"payment_intent.created", "charge.failed", "payment_intent.payment_failed", "payment_intent.canceled"}},
		{"error_if_incomplete", "pm_card_authenticationRequired", nil, "subscription_payment_intent_requires_action",
			[]string{"payment_intent.created", "payment_intent.requires_action", "payment_intent.canceled"}},
		{"default_incomplete", "pm_card_visa", "incomplete", "", []string{"customer.subscription.created",
			"invoice.created", "payment_intent.created", "invoice.updated", "invoice.finalized"}},
		{"default_incomplete", "", "incomplete", "", []string{"customer.subscription.created", "invoice.created",
			"payment_intent.created", "invoice.updated", "invoice.finalized"}},
		{"pending_if_incomplete", "pm_card_visa", nil, "<nil>", nil},
	} {
		t.Run(tt.behavior+" "+tt.method, func(t *testing.T) {
			s := newShop(t)
			customer, _ := s.buyerWith(tt.method)
			s.story()
			sub := s.try("subscriptions", "customer="+customer, "items[0][price]="+s.monthly, "payment_behavior="+tt.behavior)
			s.heard("the flow", tt.story...)
			if tt.status == nil {
				s.is(sub, "error.code="+tt.code)
				equal(t, "subscriptions", len(s.get("subscriptions", "status=all").ids()), 0)
				equal(t, "invoices", len(s.get("invoices").ids()), 0)
				return
			}
			equal(t, "status", sub.at("status"), tt.status)
			s.is(s.get("invoices/"+fmt.Sprint(sub.at("latest_invoice"))), "parent.subscription_details.subscription="+sub.id(),
				"billing_reason=subscription_create")
		})
	}
}

func TestSubscription_completedByTheCustomer(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("")
	sub := s.post("subscriptions", "customer="+customer, "items[0][price]="+s.monthly,
		"payment_behavior=default_incomplete",
		"payment_settings[save_default_payment_method]=on_subscription", "expand[]=latest_invoice.confirmation_secret")
	secret := fmt.Sprint(sub.at("latest_invoice.confirmation_secret.client_secret"))
	intent, _, _ := strings.Cut(secret, "_secret")
	card := s.post("payment_methods/pm_card_visa/attach", "customer="+customer).id()
	s.story()
	s.post("payment_intents/"+intent+"/confirm", "payment_method="+card)
	s.heard("confirmed", "charge.succeeded", "payment_intent.succeeded", "invoice_payment.paid",
		"customer.subscription.updated",
		"invoice.updated", "invoice.paid", "invoice.payment_succeeded")
	s.is(s.get("subscriptions/"+sub.id()), "status=active", "default_payment_method="+card)
	old := s.ok("GET", "/v1/subscriptions/"+sub.id(), "expand[]=latest_invoice.payment_intent", "Stripe-Version",
		"2020-08-27")
	s.is(old, "latest_invoice.payment_intent.id="+intent, "latest_invoice.subscription="+sub.id(),
		"current_period_end="+fmt.Sprint(testStart.AddDate(0, 0, 28).Unix()))
}

func TestSubscription_authenticated(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_authenticationRequired")
	pay := func(ok bool) string {
		sub := s.subscribe(customer, "expand[]=latest_invoice.payments")
		payment := answer{body: sub.at("latest_invoice.payments.data").([]any)[0].(map[string]any)}
		s.story()
		if err := s.Authenticate(fmt.Sprint(payment.at("payment.payment_intent")), ok); err != nil {
			t.Fatal(err)
		}
		return sub.id()
	}
	refused := pay(false)
	s.heard("the customer does not pass", "payment_intent.payment_failed", "invoice.payment_failed")
	s.is(s.get("subscriptions/"+refused), "status=incomplete")
	passed := pay(true)
	s.heard("the customer passes", "charge.succeeded", "payment_intent.succeeded", "invoice_payment.paid",
		"customer.subscription.updated",
		"invoice.updated", "invoice.paid", "invoice.payment_succeeded")
	s.is(s.get("subscriptions/"+passed, "expand[]=items.data.price.product", "expand[]=customer"), "status=active",
		"customer.id="+customer)
	s.is(s.get("subscriptions", "customer="+customer, "limit=1", "expand[]=data.latest_invoice"), "has_more=true")
}

func TestSubscription_neverPaid(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("")
	sub := s.subscribe(customer, "payment_behavior=default_incomplete").id()
	s.story()
	s.Advance(23*time.Hour - time.Second)
	s.heard("before the 23 hours are over")
	s.Advance(time.Second)
	s.heard("after them", "payment_intent.canceled", "invoice.updated", "invoice.voided", "customer.subscription.updated")
	s.is(s.get("subscriptions/"+sub), "status=incomplete_expired")
	equal(t, "ended", s.get("subscriptions", "status=ended").ids(), []string{sub})
	equal(t, "active", len(s.get("subscriptions", "status=active").ids()), 0)
}

// monthEnds are the starts of the periods of a subscription that began on 31 January 2026.
var monthEnds = []string{"01-31", "02-28", "03-31", "04-30", "05-31", "06-30", "07-31", "08-31", "09-30", "10-31",
	"11-30", "12-31"}

func TestSubscription_twoYearsOfMonthEnds(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	sub := s.subscribe(customer).id()
	s.until("2028-02-01T00:00:00Z")
	var got, want []string
	for _, year := range []string{"2026-", "2027-"} {
		for _, day := range monthEnds {
			want = append(want, year+day+" paid 1500")
		}
	}
	want = append(want, "2028-01-31 paid 1500")
	for _, v := range s.get("invoices", "subscription="+sub, "limit=100").body["data"].([]any) {
		invoice := answer{body: v.(map[string]any)}
		line := answer{body: invoice.at("lines.data").([]any)[0].(map[string]any)}
		start := time.Unix(int64(line.at("period.start").(float64)), 0).UTC()
		if !start.Equal(start.Truncate(24 * time.Hour).Add(12 * time.Hour)) {
			t.Errorf("a period begins at %s, want noon", start)
		}
		got = append([]string{fmt.Sprint(start.Format(time.DateOnly), " ", invoice.at("status"), " ",
			invoice.at("amount_paid"))}, got...)
	}
	equal(t, "periods", got, want)
	equal(t, "charges", len(s.get("charges", "limit=100").ids()), 25)
}

func TestSubscription_renewal(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	sub := s.subscribe(customer).id()
	s.story()
	s.until("2026-02-28T12:00:00Z")
	s.heard("the period is over", "invoice.created", "customer.subscription.updated")
	draft := fmt.Sprint(s.get("subscriptions/" + sub).at("latest_invoice"))
	s.is(s.get("invoices/"+draft), "status=draft", "billing_reason=subscription_cycle", "auto_advance=true")
	s.post("invoiceitems", "customer="+customer, "amount=100", "currency=usd", "invoice="+draft)
	s.story()
	s.until("2026-02-28T13:00:00Z")
	s.heard("an hour later", "payment_intent.created", "invoice.updated", "invoice.finalized", "charge.succeeded",
		"payment_intent.succeeded",
		"invoice_payment.paid", "invoice.updated", "invoice.paid", "invoice.payment_succeeded")
	s.is(s.get("invoices/"+draft), "status=paid", "amount_paid=1600")
	event := s.get("events", "type=customer.subscription.updated").body["data"].([]any)[0].(map[string]any)
	previous := answer{body: event}.at("data.previous_attributes").(map[string]any)
	if previous["items"] == nil || previous["latest_invoice"] == nil || len(previous) != 2 {
		t.Errorf("previous_attributes of a renewal are %v, want items and latest_invoice", previous)
	}
}

func TestSubscription_dunning(t *testing.T) {
	for _, tt := range []struct{ after, status, last string }{
		{"", "canceled", "customer.subscription.deleted"},
		{"unpaid", "unpaid", "customer.subscription.updated"},
		{"past_due", "past_due", "invoice.payment_failed"},
	} {
		t.Run(tt.status, func(t *testing.T) {
			s := newShop(t)
			customer, _ := s.buyerWith("pm_card_visa")
			bad := s.post("payment_methods/pm_card_chargeCustomerFail/attach", "customer="+customer).id()
			sub := s.subscribe(customer, "metadata[fake_after_retries]="+tt.after).id()
			s.post("customers/"+customer, "invoice_settings[default_payment_method]="+bad)
			s.until("2026-02-28T12:00:00Z")
			s.story()
			s.until("2026-02-28T13:00:00Z")
			s.heard("the first failure", "payment_intent.created", "invoice.updated", "invoice.finalized", "charge.failed",
				"payment_intent.payment_failed",
				"invoice.updated", "invoice.payment_failed", "customer.subscription.updated")
			o := s.get("subscriptions/"+sub, "expand[]=latest_invoice")
			s.is(o, "status=past_due", "latest_invoice.attempt_count=1", fmt.Sprint("latest_invoice.next_payment_attempt=",
				testStart.AddDate(0, 0, 29).Add(time.Hour).Unix()))
			s.until("2026-03-14T12:59:59Z")
			s.is(s.get("subscriptions/"+sub, "expand[]=latest_invoice"), "status=past_due", "latest_invoice.attempt_count=8")
			s.story()
			s.until("2026-03-14T13:00:00Z")
			if story := s.story(); !strings.HasSuffix(story, tt.last) {
				t.Errorf("the last retry ends with %s, want %s", story, tt.last)
			}
			o = s.get("subscriptions/"+sub, "expand[]=latest_invoice")
			s.is(o, "status="+tt.status, "latest_invoice.status=open", "latest_invoice.attempt_count=9",
				"latest_invoice.next_payment_attempt=<nil>")
			s.until("2026-05-01T00:00:00Z")
			want := map[string]int{"canceled": 2, "unpaid": 4, "past_due": 4}[tt.status]
			equal(t, "invoices in the end", len(s.get("invoices", "subscription="+sub).ids()), want)
		})
	}
}

func TestSubscription_paidAfterAFailure(t *testing.T) {
	s := newShop(t)
	customer, good := s.buyerWith("pm_card_visa")
	stolen := s.post("payment_methods/pm_sandbox_decline_stolen_card/attach", "customer="+customer).id()
	sub := s.subscribe(customer).id()
	s.post("subscriptions/"+sub, "default_payment_method="+stolen)
	s.until("2026-03-05T00:00:00Z")
	o := s.get("subscriptions/"+sub, "expand[]=latest_invoice")
	s.is(o, "status=past_due", "latest_invoice.attempt_count=3")
	equal(t, "charges: a stolen card is tried once", len(s.get("charges", "customer="+customer).ids()), 2)
	s.post("subscriptions/"+sub, "default_payment_method="+good)
	s.story()
	s.until("2026-03-05T13:00:00Z")
	s.heard("the next retry", "charge.succeeded", "payment_intent.succeeded", "invoice_payment.paid",
		"customer.subscription.updated",
		"invoice.updated", "invoice.paid", "invoice.payment_succeeded")
	s.is(s.get("subscriptions/"+sub), "status=active")
}

func TestSubscription_trial(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	s.story()
	sub := s.subscribe(customer, "trial_period_days=10")
	s.is(sub, "status=trialing", fmt.Sprint("trial_end=", testStart.AddDate(0, 0, 10).Unix()))
	s.heard("the trial begins", "customer.subscription.created", "invoice.created", "invoice.updated",
		"invoice.finalized", "invoice.updated", "invoice.paid", "invoice.payment_succeeded")
	s.until("2026-02-07T12:00:00Z")
	s.heard("three days before", "customer.subscription.trial_will_end")
	s.until("2026-02-10T13:00:00Z")
	s.is(s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice"), "status=active", "latest_invoice.status=paid",
		"latest_invoice.amount_paid=1500")

	nobody, _ := s.buyerWith("")
	paused := s.subscribe(nobody, "trial_period_days=1", "trial_settings[end_behavior][missing_payment_method]=pause").id()
	ended := s.subscribe(nobody, "trial_period_days=1", "trial_settings[end_behavior][missing_payment_method]=cancel").id()
	s.story()
	s.Advance(24 * time.Hour)
	s.heard("without a method", "customer.subscription.updated", "customer.subscription.paused",
		"customer.subscription.deleted")
	s.is(s.get("subscriptions/"+ended), "status=canceled")
	s.is(s.try("subscriptions/"+sub.id()+"/resume"), "error.type=invalid_request_error")
	card := s.post("payment_methods/pm_card_visa/attach", "customer="+nobody).id()
	s.post("subscriptions/"+paused, "default_payment_method="+card)
	s.is(s.post("subscriptions/"+paused+"/resume"), "status=active")
	if story := s.story(); !strings.Contains(story, "customer.subscription.resumed") {
		t.Errorf("resuming says %s", story)
	}
}

func TestSubscription_ends(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	atEnd, now, at := s.subscribe(customer).id(), s.subscribe(customer).id(),
		s.subscribe(customer, fmt.Sprint("cancel_at=", testStart.Unix()+3600)).id()
	s.story()
	end := testStart.AddDate(0, 0, 28).Unix()
	s.is(s.post("subscriptions/"+atEnd, "cancel_at_period_end=true"), "status=active", fmt.Sprint("cancel_at=", end),
		"cancellation_details.reason=cancellation_requested")
	s.is(s.ok("DELETE", "/v1/subscriptions/"+now, "cancellation_details[feedback]=unused"), "status=canceled",
		"cancellation_details.feedback=unused")
	s.heard("asked", "customer.subscription.updated", "customer.subscription.deleted")
	s.is(s.do("DELETE", "/v1/subscriptions/"+now, ""), "error.code=resource_missing")
	s.is(s.post("subscriptions/"+now, "metadata[a]=b"), "metadata.a=b", "status=canceled")
	s.is(s.try("subscriptions/"+now, "cancel_at_period_end=true"), "error.param=cancel_at_period_end")
	s.story()
	s.Advance(time.Hour)
	s.heard("cancel_at", "customer.subscription.deleted")
	s.is(s.get("subscriptions/"+at), "status=canceled")
	s.until("2026-03-01T12:00:00Z")
	s.heard("the period ends", "customer.subscription.deleted")
	s.is(s.get("subscriptions/"+atEnd), "status=canceled", fmt.Sprint("ended_at=", end))
	equal(t, "those that are not cancelled", len(s.get("subscriptions").ids()), 0)
	equal(t, "by price", len(s.get("subscriptions", "status=all", "price="+s.monthly).ids()), 3)
}

func TestSubscription_changes(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	sub := s.subscribe(customer)
	item := sub.at("items.data").([]any)[0].(map[string]any)["id"].(string)
	dear := s.post("prices", "currency=usd", "unit_amount=9900", "recurring[interval]=month", "product="+s.product).id()
	s.post("subscriptions/"+sub.id(), "items[0][id]="+item, "items[0][price]="+dear, "proration_behavior=none")
	s.until("2026-03-01T00:00:00Z")
	s.is(s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice"), "latest_invoice.amount_paid=9900")
	s.is(s.post("subscriptions/"+sub.id(), "pause_collection[behavior]=void",
		fmt.Sprint("pause_collection[resumes_at]=", at(t, "2026-04-15T00:00:00Z"))), "status=active")
	s.until("2026-04-02T00:00:00Z")
	s.is(s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice"), "status=active", "latest_invoice.status=void")
	s.until("2026-05-01T00:00:00Z")
	s.is(s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice"), "pause_collection=<nil>",
		"latest_invoice.status=paid")
}

func TestSubscription_anchor(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	anchor := at(t, "2026-02-14T12:00:00Z") // half of the period from 14 January
	sub := s.subscribe(customer, fmt.Sprint("billing_cycle_anchor=", anchor))
	s.is(s.get("invoices/"+fmt.Sprint(sub.at("latest_invoice"))), "amount_paid=677") // 14 of 31 days of 1500
	free := s.subscribe(customer, fmt.Sprint("billing_cycle_anchor=", anchor), "proration_behavior=none")
	s.is(s.get("invoices/"+fmt.Sprint(free.at("latest_invoice"))), "amount_paid=0", "status=paid")
	s.until("2026-02-14T13:00:00Z")
	s.is(s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice"), "latest_invoice.amount_paid=1500")
}
