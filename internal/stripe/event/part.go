package event

import (
	"cmp"
	"strings"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
)

// readDecline takes a last_payment_error. there is false if it is null.
func readDecline(r *jsonReader) (there bool, code string) {
	var e struct {
		Code    string `json:"code"`
		Decline string `json:"decline_code"`
	}
	there = r.peek() == '{'
	r.into(&e)
	return there, cmp.Or(word(e.Decline), word(e.Code))
}

// readPayments takes the list of an invoice's payments. It is there from 2025-03-31.basil on, if
// the request expands it. It returns the payment intents of the first in rank, and of the one that
// the invoice has made itself.
func readPayments(r *jsonReader) (best, own string) {
	for range r.member("data") {
		most := 0
		best, own = "", ""
		for range r.elements() {
			intent, rank, isOwn := readInvoicePayment(r)
			if intent != "" && rank > most {
				best, most = intent, rank
			}
			if isOwn {
				own = intent
			}
		}
	}
	return best, own
}

// readInvoicePayment takes one of an invoice's payments. An invoice can have several: a paid one
// goes before the default one, and the default one before all others.
func readInvoicePayment(r *jsonReader) (intent string, rank int, own bool) {
	rank = 1
	for name := range r.members() {
		switch string(name) {
		case "payment":
			intent = readPayment(r)
		case "is_default":
			if own, _ = r.flag(); own {
				rank += 1
			}
		case "status":
			if r.str() == "paid" {
				rank += 2
			}
		}
	}
	return intent, rank, own
}

// readPayment takes the member payment of an invoice's payment; "": it is no payment intent.
func readPayment(r *jsonReader) (intent string) {
	for range r.member("payment_intent") {
		intent = r.link()
	}
	return intent
}

// readRefunds takes a charge's list of refunds, of versions before 2022-11-15, or expanded.
func readRefunds(r *jsonReader) (list []tracking.Refund) {
	for range r.member("data") {
		list = nil
		for range r.elements() {
			var refund tracking.Refund
			if r.into(&refund); id(refund.ID) != "" {
				refund.Status = word(refund.Status)
				list = append(list, refund)
			}
		}
	}
	return list
}

// readItems takes a subscription's list of items: the first one's price, or plan of old versions,
// and its quantity.
func readItems(r *jsonReader, t *tracking.Terms) {
	for range r.member("data") {
		first := true
		for range r.elements() {
			if !first {
				continue
			}
			first = false
			for name := range r.members() {
				switch string(name) {
				case "price", "plan":
					t.Price = cmp.Or(r.link(), t.Price)
				case "quantity":
					t.Quantity = r.number()
				}
			}
		}
	}
}

// readDetails takes an invoice's copy of facts about its subscription.
func readDetails(r *jsonReader) (subscription string, tag tracking.Tag) {
	for name := range r.members() {
		switch string(name) {
		case "subscription":
			subscription = r.link()
		case "metadata":
			tag, _ = readTag(r)
		}
	}
	return subscription, tag
}

// readTag takes metadata and returns their Tag, the zero Tag if they are not Duesday's, and the installation that
// takes over the subscription.
func readTag(r *jsonReader) (t tracking.Tag, takenBy string) {
	var purchase, kind, account, subscription string
	for name := range r.members() {
		switch string(name) {
		case tracking.MetaInstallation:
			t.Installation = r.str()
		case tracking.MetaPurchase:
			purchase = r.str()
		case tracking.MetaKind:
			kind = r.str()
		case api.MetaAccount:
			account = r.str()
		case api.MetaSubscription:
			subscription = r.str()
		case api.MetaTakeover:
			takenBy = word(r.str())
		}
	}
	switch {
	case t.Installation == "":
	case tracking.IsUUID(purchase):
		t.Purchase = strings.ToLower(purchase)
		switch k := tracking.Kind(kind); k {
		case tracking.Legacy, tracking.Product, tracking.Subscribe, tracking.SplitPayment:
			t.Kind = k
		}
	case purchase == "" && subscription != "":
		t.Charge, t.ChargeAccount, t.ChargeSubscription = true, account, subscription
	}
	return t, takenBy
}
