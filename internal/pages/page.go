package pages

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync"
)

// A page shows objects of the API by one template.
type page struct {
	path, name, title string            // the title is the heading; {name} is from the path
	of                map[string]string // names in the template, and the API's paths; {name} is from the page's path
	more              func(v *visit, data object) error
}

// The page of a delivery, and its path in the API: with the endpoint and the time, the API reads nothing else.
const (
	delivery    = "/deliveries/{endpoint}/{created_at}/{delivery}"
	oneDelivery = "/v1/deliveries/{delivery}?endpoint={endpoint}&created_at={created_at}"
)

// all returns the pages that are neither lists nor actions.
func all() []page {
	const account, sub = "/accounts/{account}", "/accounts/{account}/subscriptions/{subscription}"
	const period = sub + "/periods/{period}"
	return []page{
		{path: "/{$}", name: "today", title: "Today", of: map[string]string{"overview": "/v1/overview", "status": "/v1/status", "runs": "/v1/runs?limit=8",
			"parked": "/v1/subscriptions?status=parked&limit=20", "past_due": "/v1/subscriptions?status=past_due&limit=20"},
			more: today},
		{path: "/runs/{run}", name: "run", title: "Run", of: map[string]string{"run": "/v1/runs/{run}"}, more: leftUnpaid},
		{path: account, name: "account", title: "Account {account}", of: map[string]string{"account": "/v1" + account,
			"subscriptions": "/v1" + account + "/subscriptions", "receipts": "/v1/receipts?account={account}&order=newest&limit=200&from={" + sixMonthsAgo + "}",
			"mails": "/v1/mails?limit=10&account={account}", "history": "/v1" + account + "/history?limit=20", "settings": "/v1/settings"}},
		{path: sub, name: "subscription", title: "Subscription {account}/{subscription}", of: map[string]string{"subscription": "/v1" + sub, "periods": "/v1" + sub + "/periods?limit=1000",
			"receipts": "/v1/receipts?account={account}&subscription={subscription}&order=newest&limit=400&from={" + aYearAgo + "}", "history": "/v1" + account + "/history?subscription={subscription}&limit=50",
			"mails": "/v1/mails?limit=200&account={account}"},
			more: timeline},
		{path: period, name: "period", title: "Period {period} of {account}/{subscription}", of: map[string]string{"period": "/v1" + period}, more: prove},
		{path: account + "/receipts/{number}", name: "receipt", title: "Receipt {number}", of: map[string]string{"receipt": "/v1/receipts/{number}?account={account}"}},
		{path: "/purchases/{purchase}", name: "purchase", title: "Purchase {purchase}", of: map[string]string{"purchase": "/v1/purchases/{purchase}"}, more: sale},
		{path: "/purchases/{purchase}/subscriptions/{tracked}", name: "tracked", title: "Subscription {tracked}",
			of: map[string]string{"purchase": "/v1/purchases/{purchase}"}, more: sale},
		{path: "/payments/{stripe_account}/{payment}", name: "payment", title: "Payment {payment}",
			of: map[string]string{"payment": "/v1/payments/{stripe_account}/{payment}"}, more: paid},
		{path: "/merchants/{merchant}", name: "merchant", title: "Merchant {merchant}",
			of: map[string]string{"merchants": "/v1/merchants?merchant={merchant}", "waiting": "/v1/events?merchant={merchant}&status=waiting&limit=20",
				"found": "/v1/events?merchant={merchant}&source=poll&order=newest&limit=20&from={" + aWeekAgo + "}"},
			more: func(v *visit, data object) error { data["merchant"] = v.r.PathValue("merchant"); return nil }},
		{path: "/takeovers/{taken}", name: "takeover", title: "Takeover of {taken}", of: map[string]string{"plan": "/v1/takeovers?subscription={taken}"}, more: onlyOne},
		{path: "/mails/{mail}", name: "mail", title: "Mail", of: map[string]string{"mail": "/v1/mails/{mail}"}},
		{path: "/endpoints/{endpoint}", name: "endpoint", title: "Endpoint {endpoint}", of: map[string]string{"endpoint": "/v1/endpoints/{endpoint}",
			"failed": "/v1/deliveries?limit=50&state=failed&endpoint={endpoint}", "waiting": "/v1/deliveries?limit=50&state=waiting&endpoint={endpoint}"}},
		{path: delivery, name: "delivery", title: "Delivery {delivery}", of: map[string]string{"delivery": oneDelivery}},
		{path: "/events/{event}", name: "event", title: "Event {event}", of: map[string]string{"event": "/v1/events/{event}"}},
		{path: "/installation", name: "installation", title: "Installation", of: map[string]string{"settings": "/v1/settings", "charging": "/v1/charging",
			"status": "/v1/status"}},
	}
}

// show asks the API for the page's objects, and sends the page. A key of one merchant sees no billing.
func (p page) show(v *visit) error {
	if p.name == "today" && v.key.Merchant != "" {
		http.Redirect(v.w, v.r, "/purchases", http.StatusSeeOther)
		return nil
	}
	data, err := v.load(p.of)
	if err == nil && p.more != nil {
		err = p.more(v, data)
	}
	if err != nil {
		return err
	}
	for _, a := range actions() {
		if a.on == p.path && a.name == v.r.URL.Query().Get("done") {
			data["done"] = a.Title
		}
	}
	v.render(http.StatusOK, p.name, v.filled(p.title, plain), data)
	return nil
}

func plain(text string) string { return text }

// load returns the objects at the API's paths, which it asks for together.
func (v *visit) load(of map[string]string) (object, error) {
	data, first := object{}, error(nil)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, path := range of {
		asking.Go(func() {
			o, err := v.get(path)
			mu.Lock()
			defer mu.Unlock()
			if data[name] = o; err != nil && (first == nil || first.Error() > err.Error()) {
				first = err
			}
		})
	}
	asking.Wait()
	return data, first
}

// onlyOne returns a problem unless the processor still has the subscription.
func onlyOne(_ *visit, data object) error {
	rows := dataOf(data, "plan")
	if len(rows) != 1 {
		return &problem{Status: http.StatusNotFound, Title: "It has ended at Stripe, or was never there"}
	}
	data["state"] = rows[0]["state"]
	return nil
}

// leftUnpaid adds what a payment run has not charged.
func leftUnpaid(v *visit, data object) (err error) {
	if run, _ := data["run"].(object); run["kind"] == "payments" {
		data["unpaid"], err = v.get("/v1/runs/{run}/unpaid", "limit", "1000")
	}
	return err
}

// prove adds the period's proof, for which the API asks the processor, if there is one.
func prove(v *visit, data object) error {
	proof, err := v.get("/v1/accounts/{account}/subscriptions/{subscription}/periods/{period}/proof")
	if p, ok := errors.AsType[*problem](err); err != nil && (!ok || p.Status < http.StatusInternalServerError) {
		return err
	}
	if err == nil {
		data["proof"] = proof
	}
	return nil
}

// document sends the receipt's page for the customer, with its own policy.
func document(v *visit) error {
	to, err := v.send(http.MethodGet, v.fill("/v1/receipts/{number}?account={account}"), nil, map[string]string{"Accept": "text/html"})
	if err != nil {
		return err
	}
	maps.Copy(v.w.Header(), to.header)
	v.w.Header().Set("Content-Length", strconv.Itoa(to.body.Len()))
	_, _ = v.w.Write(to.body.Bytes()) // the browser may be gone
	return nil
}
