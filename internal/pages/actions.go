package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/key"
)

// actions returns all actions. Each has the fields and the effect of a request of the API.
func actions() []action {
	list := append(ofSubscription(), others()...)
	for i := range list {
		list[i].complete()
	}
	return list
}

const (
	onAccount      = "/accounts/{account}"
	onSubscription = onAccount + "/subscriptions/{subscription}"
	ifCollected    = "if the processor collects the payment"
)

func ofSubscription() []action {
	const sub = onSubscription
	at := input{Name: "date", Label: "Paid on", Kind: "date", Hint: "Empty: now."}
	amount := input{Name: "amount", Label: "Amount", Kind: "money", Hint: "In the subscription's currency, such as 12.99."}
	return []action{
		{on: sub, name: "charge", Title: "Charge now", Scope: key.Charge, Text: "The processor is asked to charge the period that is open or due, or one that has failed.", If: ifCollected,
			Fields: []input{{Name: "period", Label: "Period", Kind: "number", Hint: "Empty: the one that is open or due. A period that has failed needs its number."},
				{Name: "reopen", Label: "Reason, if the period has ended without a payment"}}},
		{on: sub, name: "change", Title: "Change the subscription", method: http.MethodPatch, to: "/v1" + sub, preview: "/v1" + sub + "/preview",
			Text: "What is left empty stays. A new plan is in force from the next period that is not open.", command: "duesday subscription update {account}/{subscription}",
			Fields: []input{{Name: "sku", Label: "Plan (SKU)"}, amount, {Name: "quantity", Label: "Quantity", Kind: "number"},
				{Name: "from", Label: "From the first period that is due on", Kind: "date"}, {Name: "notify", Label: "Tell the customer by mail", Kind: "check"},
				{Name: "payment_day", Label: "Payment day", Kind: "number"}, {Name: "early", Label: "The new day may be before the next due date", Kind: "check"},
				{Name: "reminder_days", Label: "Days between reminder and payment", Kind: "number"},
				{Name: "payment_method", Label: "Payment method", Hint: "The processor's token, never a card number."}, {Name: "address", Label: "Postal address"}}},
		{on: sub, name: "upgrade", Title: "Upgrade now", If: ifCollected, Scope: key.Charge, to: "/v1" + sub + "/plan", preview: "/v1" + sub + "/plan/preview", body: object{"now": true},
			Text:    "The next period is charged today for the new plan, and the schedule begins again today. Days of the paid period are given away.",
			command: "duesday subscription update {account}/{subscription} --now --yes", Fields: []input{{Name: "sku", Label: "Plan (SKU)"}, amount}},
		{on: sub, name: "pause", Title: "Pause", Text: "No period becomes due until the subscription is resumed."},
		{on: sub, name: "resume", Title: "Resume", Text: "The subscription is charged again from its next due date on. A cancellation at the end of the period is undone."},
		{on: sub, name: "skip", Title: "Skip", Text: "The parked period ends without a payment, or all periods that are due before a day.",
			Fields: []input{{Name: "until", Label: "Skip what is due before", Kind: "date", Hint: "Empty: the parked period alone."}}},
		{on: sub, name: "cancel", Title: "Cancel", If: "if every charge that it tries succeeds", Text: "The subscription ends now, and unpaid periods that are due are written off.",
			Fields: []input{{Name: "at_period_end", Label: "At the end of the paid period instead; what is due is still charged", Kind: "check"},
				{Name: "collect", Label: "Try each overdue period once before", Kind: "check"}}},
		{on: sub, name: "undo_takeover", Title: "Hand it back to Stripe", Scope: key.Admin, to: "/v1" + sub + "/undo_takeover", command: "duesday takeover undo {account}/{subscription}",
			Text: "The subscription is canceled here without a mail, and Stripe's continues."},
		{on: sub, name: "receipts", Title: "Record a payment", Scope: key.Charge, command: "duesday receipt create {account}/{subscription}",
			Text: "The customer has paid in another way, such as by wire.", Fields: []input{amount, {Name: "period", Label: "Period", Kind: "number", Hint: "Empty: the one that is due."},
				at, {Name: "note", Label: "Note", Hint: "Such as the bank's reference."}, {Name: "overpaid", Label: "Accept more than the period owes", Kind: "check"}}},
	}
}

func others() []action {
	const account, receipt, latest = onAccount, onAccount + "/receipts/{number}", "/v1/runs?limit=1&kind="
	date := input{Name: "date", Label: "Business day", Kind: "date", Hint: "Empty: today, in each account's time zone."}
	return []action{
		{on: receipt, name: "refund", Title: "Refund", If: "if the processor makes the refund", Scope: key.Charge, to: "/v1/receipts/{number}/refunds", preview: "/v1/receipts/{number}/refunds/preview",
			from: "/v1/receipts/{number}?account={account}", body: object{"account": "{account}"}, made: "/v1/refunds?account={account}", shown: refunded,
			Text: "The customer gets the amount back on the card.", command: "duesday receipt refund {account}/{subscription} --period {period}", Fields: []input{
				{Name: "amount", Label: "Amount", Kind: "money", Hint: "Empty: what is not refunded yet."},
				{Name: "reason", Label: "Reason for the processor", Choices: []string{"requested_by_customer", "duplicate", "fraudulent"}}}},
		{on: account, name: "edit", Title: "Change the account", method: http.MethodPatch, to: "/v1" + account, from: "/v1" + account,
			Text: "What is left empty stays.", command: "duesday account update {account}", Fields: []input{{Name: "name", Label: "Name"},
				{Name: "email", Label: "Email"}, {Name: "company", Label: "Company"}, {Name: "tax_id", Label: "Tax ID"}, {Name: "locale", Label: "Language of mail, such as de"},
				{Name: "time_zone", Label: "Time zone, such as Europe/Berlin"}}},
		{on: account, name: "card-link", Title: "Link for a new card", to: "/v1" + account + "/card_links", from: "/v1" + account, link: true,
			Text: "The processor's page, on which the customer enters a card for all subscriptions of the account.", command: "duesday account card-link {account}"},
		{on: account, name: "portal-link", Title: "Link to the customer's page", to: "/v1" + account + "/portal_links", from: "/v1" + account, link: true,
			Text: "The page on which the customer sees what is due, and enters a new card. The link lasts an hour.", command: "duesday account portal-link {account}"},
		{on: "/installation", name: "charging-off", Title: "Turn charging off", Scope: key.Admin, method: http.MethodPut, to: "/v1/charging", from: "/v1/charging",
			body: object{"charging": false}, Text: "Nothing is charged until charging is turned on again.", command: "duesday charging off",
			Fields: []input{{Name: "reason", Label: "Reason"}}},
		{on: "/installation", name: "charging-on", Title: "Turn charging on", Scope: key.Admin, method: http.MethodPut, to: "/v1/charging", from: "/v1/charging",
			body: object{"charging": true}, Text: "Runs charge what is due again.", command: "duesday charging on"},
		{on: "/runs", name: "payments", Title: "Run the payments", Scope: key.Charge, to: "/v1/runs", from: latest + "payments", body: object{"kind": "payments"},
			Text:    "Duesday charges every period that is due and not paid, and tries those again whose next attempt is due.",
			command: "duesday run payments", Fields: []input{date}},
		{on: "/runs", name: "reminders", Title: "Run the reminders", Scope: key.Charge, to: "/v1/runs", from: latest + "reminders", body: object{"kind": "reminders"},
			Text: "Duesday writes the reminders that are due and not written.", command: "duesday run reminders", Fields: []input{date}},
		{on: "/events/{event}", name: "replay", Title: "Apply the event now", to: "/v1/events/{event}/replay", from: "/v1/events/{event}",
			Text: "Duesday decides the event now, as if it had just arrived, and may ask Stripe for its object. It changes the purchase, payment or subscription " +
				"that the event is about, and triggers the fulfillment or the unsubscribe that follows, each once. An event of a Stripe account that is " +
				"not registered stays quarantined: register the account first, with duesday connect add.", command: "duesday replay {event}"},
		{on: "/takeovers/{taken}", name: "start", Title: "Take the subscription over", Scope: key.Admin, to: "/v1/takeovers", from: "/v1/takeovers?subscription={taken}",
			body: object{"subscription": "{taken}"}, Text: "Duesday stores the subscription, held, and makes Stripe's end with its period. The first period is charged here only " +
				"after Stripe shows that its subscription has ended and did not renew.", command: "duesday takeover start --where subscription={taken}"},
		{on: "/endpoints/{endpoint}", name: "resume", Title: "Resume the endpoint", Scope: key.Admin, method: http.MethodPatch,
			to: "/v1/endpoints/{endpoint}", from: "/v1/endpoints/{endpoint}", body: object{"paused": false},
			Text:    "Duesday sends new messages to the endpoint again. Those that have failed meanwhile stay failed until you send them again.",
			command: "duesday endpoint update {endpoint} --resume"},
		{on: "/endpoints/{endpoint}", name: "replay", Title: "Send the failed messages again", Scope: key.Admin, to: "/v1/deliveries/replay",
			from: "/v1/endpoints/{endpoint}", body: object{"endpoint": "{endpoint}", "state": "failed"},
			Text:    "The endpoint gets every message again that is kept and has failed, under the same ID.",
			command: "duesday delivery replay --endpoint {endpoint} --state failed"},
		{on: delivery, name: "replay", Title: "Send the delivery again", Scope: key.Admin, to: "/v1/deliveries/replay", from: oneDelivery,
			body: object{"id": "{delivery}", "endpoint": "{endpoint}"}, Text: "The endpoint gets the same message again, under the same ID.",
			command: "duesday delivery replay --endpoint {endpoint} --message {delivery}"},
	}
}

// complete sets what most actions have in common.
func (a *action) complete() {
	if a.Scope == "" {
		a.Scope = key.Write
	}
	if a.method == "" {
		a.method = http.MethodPost
	}
	if a.on == onSubscription {
		a.from = "/v1" + onSubscription
	}
	if a.to == "" {
		a.to = "/v1" + a.on + "/" + a.name
		a.preview = a.to + "/preview"
	}
	if a.command == "" {
		a.command = "duesday subscription " + a.name + " {account}/{subscription}"
	}
}

// offered returns the names of the actions that fit the subscription; periods are its ended ones. The API refuses the
// others with the reason. Charge fits an active subscription with a period that is open, due or failed, unless the
// customer pays by wire.
func offered(sub object, periods []object, now time.Time) []string {
	list := fitting(sub, periods, now)
	if k, _ := sub["takeover"].(object); k["stage"] == "held" || k["stage"] == "ending" || k["stage"] == "undoing" {
		list = append(list, "undo_takeover")
	}
	return list
}

func fitting(sub object, periods []object, now time.Time) []string {
	switch sub["status"] {
	case "active":
		list := []string{"change", "upgrade", "pause", "skip", "cancel", "receipts"}
		if sub["cancel_at_period_end"] == true {
			list = slices.Insert(list, 4, "resume")
		}
		name, _ := sub["time_zone"].(string)
		zone, err := time.LoadLocation(name)
		if err != nil { // this machine does not know it
			zone = time.UTC
		}
		due, _ := sub["due_date"].(string)
		failed := func(p object) bool { return p["ending"] == "failed" }
		open, _ := sub["open"].(object)
		byWire := open["pay_by"] != nil || open == nil && sub["collection"] == "manual" // the customer pays
		if !byWire && (open != nil || sub["collects"] != nil || sub["ends_on"] == nil && due <= now.In(zone).Format(time.DateOnly) || slices.ContainsFunc(periods, failed)) {
			return slices.Insert(list, 0, "charge")
		}
		return list
	case "paused":
		return []string{"resume", "change", "cancel", "receipts"}
	case "past_due":
		return []string{"resume", "charge", "change", "cancel", "receipts"}
	case "parked":
		return []string{"charge", "skip", "change", "cancel", "receipts"}
	}
	return []string{"receipts"}
}

// refunded shows a refund's preview as what is refunded and what is left of the receipt.
func refunded(before, after object) {
	result, _ := after["result"].(object)
	all, was := minor(before["amount"]), minor(before["refunded"])
	now := was + minor(result["amount"])
	pair := func(before, after int64) object {
		return object{"before": json.Number(fmt.Sprint(before)), "after": json.Number(fmt.Sprint(after))}
	}
	after["changed"], after["currency"] = object{"refunded": pair(was, now), "left": pair(all-was, all-now)}, before["currency"]
	delete(after, "result")
	delete(after, "next_due")
}
