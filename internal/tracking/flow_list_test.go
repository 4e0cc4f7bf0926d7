package tracking_test

import (
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// These are the types of events about a payment, and about a subscription and its schedule.
var (
	ofPayment      = []string{"payment_intent.", "charge.refund", "refund.", "charge.dispute"}
	ofSubscription = []string{"customer.subscription.", "subscription_schedule."}
	ofBoth         = append(append([]string{}, ofPayment...), ofSubscription...)
)

const (
	fulfilled  = "fulfil"
	unfollowed = "fulfil unsubscribe"
	nothing    = ""
)

// flows are those of the seed.
func flows() []*flow {
	return append(paymentFlows(), subscriptionFlows()...)
}

func paymentFlows() []*flow {
	one := func(jobs ...string) []string { return jobs }
	return []*flow{
		{name: "legacy success", order: legacy(), told: []string{"payment_intent.", "charge."},
			then:     func(s *shop, c *tracking.Created) { confirm(s, c, goodCard) },
			payments: one("paid 1500 USD"), jobs: one(fulfilled)},
		{name: "legacy failure then success", oneForm: true, order: legacy(), quick: []string{"payment_intent."},
			told:     []string{"payment_intent.", "charge."},
			then:     func(s *shop, c *tracking.Created) { confirm(s, c, "pm_card_chargeDeclined"); confirm(s, c, goodCard) },
			payments: one("paid 1500 USD, declined generic_decline"), jobs: one(fulfilled)},
		{name: "legacy failure then canceled", order: legacy(), quick: []string{"payment_intent."},
			told: []string{"payment_intent.", "charge."},
			then: func(s *shop, c *tracking.Created) {
				confirm(s, c, "pm_card_chargeDeclined")
				s.post("payment_intents/" + payment(s, c) + "/cancel")
			},
			payments: one("failed 1500 USD, declined generic_decline"), jobs: one(nothing)},
		{name: "product success", order: buys(tracking.Product, goodCard), quick: []string{"payment_intent.", "invoice.paid"},
			told:     []string{"payment_intent.", "charge.", "invoice.created", "invoice.paid"},
			payments: one("paid 1500 USD, invoiced"), jobs: one(fulfilled)},
		{name: "product declined", order: buys(tracking.Product, badCard),
			quick:    []string{"payment_intent.", "invoice.voided"},
			told:     []string{"payment_intent.", "charge.", "invoice.created", "invoice.payment_failed", "invoice.voided"},
			payments: one("failed 1500 USD, invoiced, declined generic_decline"), jobs: one(nothing)},
		{name: "product refunded in part", order: buys(tracking.Product, goodCard),
			quick: []string{"payment_intent.succeeded", "refund.", "charge.refund"}, told: ofPayment, then: refund("400"),
			payments: one("paid 1500 USD, invoiced, refunded 400: succeeded"), jobs: one(fulfilled)},
		{name: "product refunded twice", order: buys(tracking.Product, goodCard),
			quick: []string{"payment_intent.succeeded", "refund."}, told: ofPayment,
			then:     both(refund("400"), later(time.Hour), refund("")),
			payments: one("paid 1500 USD, invoiced, refunded 1500: succeeded succeeded"), jobs: one(fulfilled)},
		{name: "product, refund fails", order: buys(tracking.Product, "pm_card_refundFail"),
			quick: []string{"refund.created", "refund.updated", "charge.refunded"}, told: ofPayment,
			then: func(s *shop, c *tracking.Created) {
				s.must(s.fake.FinishRefund(s.post("refunds", "payment_intent="+payment(s, c)).id(), false))
			},
			payments: one("paid 1500 USD, invoiced, refunded 0: failed"), jobs: one(fulfilled)},
		{name: "product disputed and won", order: buys(tracking.Product, goodCard),
			quick: []string{"payment_intent.succeeded", "charge.dispute.created", "charge.dispute.closed"}, told: ofPayment,
			then:     dispute("won"),
			payments: one("paid 1500 USD, invoiced, disputed won"), jobs: one(fulfilled)},
		{name: "product disputed and lost", order: buys(tracking.Product, goodCard),
			quick: []string{"payment_intent.succeeded", "charge.dispute.created", "charge.dispute.closed"}, told: ofPayment,
			then:     dispute("lost"),
			payments: one("paid 1500 USD, invoiced, disputed lost"), jobs: one(fulfilled)},
		{name: "product disputed, lost, appealed and won", order: buys(tracking.Product, goodCard),
			quick: []string{"payment_intent.succeeded", "charge.dispute.updated", "charge.dispute.closed"}, told: ofPayment,
			then:     both(dispute("lost"), later(day), appeal("won")),
			payments: one("paid 1500 USD, invoiced, disputed won"), jobs: one(fulfilled)},
		{name: "product disputed, lost, appealed and lost", order: buys(tracking.Product, goodCard),
			quick: []string{"payment_intent.succeeded", "charge.dispute.updated", "charge.dispute.closed"}, told: ofPayment,
			then:     both(dispute("lost"), later(day), appeal("lost")),
			payments: one("paid 1500 USD, invoiced, disputed lost"), jobs: one(fulfilled)},
		{name: "product refunded, access revoked and given back", order: buys(tracking.Product, goodCard),
			quick: []string{"payment_intent.succeeded", "refund.", "account.application."},
			told:  append([]string{"account.application."}, ofPayment...), then: both(revoked, refund("400")),
			payments: one("paid 1500 USD, invoiced, refunded 400: succeeded"), jobs: one(fulfilled)},
		{name: "product, processing for days", oneForm: true, order: buys(tracking.Product, bankAccount),
			quick: []string{"payment_intent.", "invoice.paid"},
			told:  []string{"payment_intent.", "charge.", "invoice.created", "invoice.paid"}, then: bankAnswers(true),
			payments: one("paid 1500 USD, invoiced"), jobs: one(fulfilled)},
		{name: "product, processing, then failed", order: buys(tracking.Product, bankAccount),
			quick: []string{"payment_intent.", "invoice.payment_failed"},
			told:  []string{"payment_intent.", "charge.", "invoice.payment_failed"}, then: bankAnswers(false),
			payments: one("failed 1500 USD, invoiced, declined insufficient_funds"), jobs: one(nothing)},
		{name: "product paid outside Stripe", order: buys(tracking.Product, "pm_card_authenticationRequired"),
			quick: []string{"payment_intent.", "invoice.paid"},
			told:  []string{"payment_intent.", "charge.", "invoice.created", "invoice.paid"}, then: outside,
			payments: one("failed 1500 USD, invoiced"), jobs: one(fulfilled)},
		{name: "product paid in parts", whole: true, oneForm: true, order: buys(tracking.Product, "pm_card_authenticationRequired"),
			quick: []string{"payment_intent.canceled", "payment_intent.succeeded", "invoice.paid"},
			told:  []string{"payment_intent.", "invoice.paid"}, then: both(part("600"), part("900")),
			payments: one("failed", "paid", "paid"), jobs: one(fulfilled)},
		{name: "product, a part paid", order: buys(tracking.Product, "pm_card_authenticationRequired"),
			quick: []string{"payment_intent.requires_action", "payment_intent.succeeded"},
			told:  []string{"payment_intent.", "charge.", "invoice.created"},
			then:  part("600"), payments: one("new", "paid"), jobs: one(nothing)},
		{name: "product beside another program's sales", order: buys(tracking.Product, goodCard), then: foreign,
			quick:    []string{"payment_intent.succeeded", "customer.subscription.deleted"},
			told:     []string{"payment_intent.succeeded", "customer.subscription.deleted", "invoice.paid"},
			payments: one("paid 1500 USD, invoiced"), jobs: one(fulfilled)},
	}
}

func legacy() tracking.Order { return buys(tracking.Legacy, "") }

// recurring is a recurring payment of a subscription.
const recurring = "paid 1500 USD, invoiced, of a subscription"

func subscriptionFlows() []*flow {
	one := func(jobs ...string) []string { return jobs }
	sub := func(method string) tracking.Order { return buys(tracking.Subscribe, method) }
	split := buys(tracking.SplitPayment, goodCard)
	return []*flow{
		{name: "subscription then canceled", order: sub(goodCard),
			quick: []string{"payment_intent.succeeded", "customer.subscription."},
			told:  append([]string{"invoice.paid"}, ofBoth...), then: cancelSubscription,
			payments: one(recurring), subscriptions: one("terminated canceled (canceled)"), jobs: one(unfollowed, nothing)},
		{name: "subscription, its end set, taken back and set", order: sub(goodCard),
			quick: []string{"payment_intent.succeeded", "customer.subscription."}, told: ofSubscription,
			then:     both(ends("true"), later(time.Hour), ends("false"), later(time.Hour), ends("true")),
			payments: one(recurring), subscriptions: one("active active, to be cancelled"), jobs: one(fulfilled)},
		{name: "subscription declined, then expired", order: sub(badCard),
			quick: []string{"payment_intent.payment_failed", "customer.subscription."}, told: ofBoth,
			then:          later(25 * time.Hour),
			payments:      one("failed 1500 USD, invoiced, of a subscription, declined generic_decline"),
			subscriptions: one("terminated incomplete_expired (expired)"), jobs: one(nothing)},
		{name: "subscription incomplete, then active", oneForm: true, order: sub(badCard),
			quick: []string{"payment_intent.payment_failed", "payment_intent.succeeded", "customer.subscription.updated"},
			told:  ofBoth, then: both(later(time.Hour), func(s *shop, c *tracking.Created) { payLatest(s, c, goodCard) }),
			payments:      one("paid 1500 USD, invoiced, of a subscription, declined generic_decline"),
			subscriptions: one("active active"), jobs: one(fulfilled)},
		{name: "subscription waits for the buyer", order: sub("pm_card_authenticationRequired"),
			told:     append([]string{"invoice.created", "invoice.finalized"}, ofBoth...),
			payments: one("new 1500 USD, invoiced, of a subscription"), subscriptions: one("new incomplete"),
			jobs: one(nothing)},
		{name: "subscription, processing for days", order: sub(bankAccount),
			quick: []string{"payment_intent.processing", "payment_intent.succeeded", "customer.subscription."}, told: ofBoth,
			then:     bankAnswers(true),
			payments: one(recurring), subscriptions: one("active active"), jobs: one(fulfilled)},
		{name: "subscription, processing, then failed", oneForm: true, order: sub(bankAccount),
			quick: []string{"payment_intent.p", "customer.subscription."}, told: ofBoth, then: bankAnswers(false),
			payments:      one("failed 1500 USD, invoiced, of a subscription, declined insufficient_funds"),
			subscriptions: one("active past_due"), jobs: one(fulfilled)},
		{name: "subscription paid outside Stripe", order: sub("pm_card_authenticationRequired"),
			quick: []string{"payment_intent.", "customer.subscription."},
			told:  append([]string{"invoice.paid"}, ofBoth...), then: both(flexible, outside),
			payments: one("failed 1500 USD, invoiced, of a subscription"), subscriptions: one("active active"),
			jobs: one(fulfilled)},
		{name: "renewal paid outside Stripe", oneForm: true, order: sub(goodCard), last: 2, told: ofSubscription,
			then:          both(later(10*day), func(s *shop, c *tracking.Created) { card(s, c, badCard) }, later(22*day), outside),
			payments:      one("failed 1500 USD, invoiced, of a subscription, declined generic_decline", recurring),
			subscriptions: one("active active"), jobs: one(fulfilled)},
		{name: "renewal, past due, recovered", order: sub(goodCard), last: 2, told: ofSubscription,
			then: both(later(10*day), func(s *shop, c *tracking.Created) { card(s, c, badCard) }, later(25*day),
				func(s *shop, c *tracking.Created) { payLatest(s, c, goodCard) }),
			payments:      one(recurring, "paid 1500 USD, invoiced, of a subscription, declined generic_decline"),
			subscriptions: one("active active"), jobs: one(fulfilled)},
		{name: "past due", order: sub(goodCard), last: 1, told: ofSubscription,
			then:          both(later(10*day), func(s *shop, c *tracking.Created) { card(s, c, badCard) }, later(22*day)),
			payments:      one("failed 1500 USD, invoiced, of a subscription, declined generic_decline", recurring),
			subscriptions: one("active past_due"), jobs: one(fulfilled)},
		{name: "unpaid, which is no end", oneForm: true, order: sub(goodCard), last: 1, told: ofSubscription, then: unpaid,
			payments:      one("failed 1500 USD, invoiced, of a subscription, declined generic_decline", recurring),
			subscriptions: one("active unpaid"), jobs: one(fulfilled)},
		{name: "unpaid, which is an end", oneForm: true, order: sub(goodCard), endedBy: one("unpaid"), last: 1, told: ofSubscription,
			then:          unpaid,
			payments:      one("failed 1500 USD, invoiced, of a subscription, declined generic_decline", recurring),
			subscriptions: one("terminated unpaid (setting)"), jobs: one(unfollowed, nothing)},
		{name: "split completed", order: split, quick: []string{"customer.subscription.deleted", "subscription_schedule.c"},
			told: ofSubscription, then: later(16 * day),
			payments: one(recurring, recurring), subscriptions: one("terminated canceled (completed) scheduled"),
			jobs: one(fulfilled)},
		{name: "split, schedule canceled", order: split, last: 2, told: ofSubscription,
			then: both(later(2*time.Hour), func(s *shop, c *tracking.Created) {
				s.post("subscription_schedules/" + objectOf(s, c, tracking.KindSchedule) + "/cancel")
			}),
			payments: one(recurring), subscriptions: one("terminated canceled (canceled) scheduled"),
			jobs: one(unfollowed, nothing)},
		{name: "split, subscription canceled", oneForm: true, order: split, last: 2, told: ofSubscription,
			then:     both(later(2*time.Hour), cancelSubscription),
			payments: one(recurring), subscriptions: one("terminated canceled (canceled) scheduled"),
			jobs: one(unfollowed, nothing)},
		{name: "split, released", order: split, last: 2, told: ofSubscription,
			then: both(later(2*time.Hour), func(s *shop, c *tracking.Created) {
				s.post("subscription_schedules/" + objectOf(s, c, tracking.KindSchedule) + "/release")
			}),
			payments: one(recurring), subscriptions: one("active active scheduled"), jobs: one(fulfilled)},
		{name: "two subscriptions, both ended", oneForm: true, order: sub(goodCard), last: 2, told: ofSubscription,
			then: func(s *shop, c *tracking.Created) {
				other := second(s, c)
				cancelSubscription(s, c)
				s.do("DELETE", "subscriptions/"+other)
			},
			payments:      one(recurring, recurring),
			subscriptions: one("terminated canceled (canceled)", "terminated canceled (canceled)"),
			jobs:          one(unfollowed, nothing)},
		{name: "two subscriptions, one ended", oneForm: true, order: sub(goodCard), told: ofSubscription,
			then: func(s *shop, c *tracking.Created) {
				second(s, c)
				cancelSubscription(s, c)
			},
			payments: one(recurring, recurring), subscriptions: one("active active", "terminated canceled (canceled)"),
			jobs: one(fulfilled, unfollowed)},
		{name: "subscription beside another program's sales", order: sub(goodCard), last: 2, told: ofSubscription,
			then:     both(foreign, cancelSubscription),
			payments: one(recurring), subscriptions: one("terminated canceled (canceled)"), jobs: one(unfollowed, nothing)},
	}
}

const bankAccount = "pm_usBankAccount_success" // processing until its bank answers

// bankAnswers delivers the answer of the buyer's bank, days later.
func bankAnswers(ok bool) func(*shop, *tracking.Created) {
	return func(s *shop, c *tracking.Created) {
		s.fake.Advance(6 * day)
		s.must(s.fake.Finish(payment(s, c), ok))
	}
}

// outside marks the purchase's latest invoice as paid outside Stripe.
func outside(s *shop, c *tracking.Created) {
	s.post("invoices/"+latestInvoice(s, c)+"/pay", "paid_out_of_band=true")
}

func latestInvoice(s *shop, c *tracking.Created) string {
	return s.do("GET", "invoices", "customer="+c.Sale.Customer)["data"].([]any)[0].(map[string]any)["id"].(string)
}

// part pays a part of the latest invoice with a payment that is attached to it.
func part(amount string) func(*shop, *tracking.Created) {
	return func(s *shop, c *tracking.Created) {
		method := s.post("payment_methods/pm_card_visa/attach", "customer="+c.Sale.Customer).id()
		pi := s.post("payment_intents", "customer="+c.Sale.Customer, "amount="+amount, "currency=usd", "payment_method="+method,
			"payment_method_types[0]=card", "confirm=true").id()
		s.post("invoices/"+latestInvoice(s, c)+"/attach_payment", "payment_intent="+pi)
	}
}

// flexible checks that the subscription uses the newer of Stripe's two billing modes.
func flexible(s *shop, c *tracking.Created) {
	mode, _ := s.do("GET", "subscriptions/"+subscription(s, c))["billing_mode"].(map[string]any)
	if mode["type"] != "flexible" {
		s.Errorf("billed by %v", mode)
	}
}

// unpaid declines the renewal until Stripe gives up and leaves the subscription unpaid.
func unpaid(s *shop, c *tracking.Created) {
	s.post("subscriptions/"+subscription(s, c), "metadata[fake_after_retries]=unpaid")
	s.fake.Advance(10 * day)
	card(s, c, badCard)
	s.fake.Advance(60 * day)
}
