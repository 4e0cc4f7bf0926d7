package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// A lookup is a request of the API that finds what a person has typed, by its key or by an index.
type lookup struct {
	kind, path string // {q} is the text, {account} and {subscription} its parts around /
	link       func(object) string
	fits       func(q string) bool
}

const uuidLength = 36

func always(string) bool { return true }

func begins(prefixes ...string) func(string) bool {
	return func(q string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(q, p) {
				return true
			}
		}
		return false
	}
}

func lookups() []lookup {
	isMail := func(q string) bool { return strings.Contains(q, "@") }
	isName := func(q string) bool { return strings.Count(q, "/") == 1 }
	receipt := func(o object) string { return at("accounts", o["account"], "receipts", o["id"]) }
	return []lookup{
		{"account", "/v1/accounts/{q}", linkTo("accounts", "id"), always}, {"account", "/v1/accounts?email={q}", linkTo("accounts", "id"), isMail},
		{"account", "/v1/accounts?customer={q}", linkTo("accounts", "id"), begins("cus_")},
		{"subscription", "/v1/accounts/{account}/subscriptions/{subscription}", subscriptionLink, isName},
		{"subscription", "/v1/subscriptions?email={q}", subscriptionLink, isMail}, {"subscription", "/v1/subscriptions?sku={q}&limit=20", subscriptionLink, always},
		{"receipt", "/v1/receipts/{q}", receipt, always}, {"purchase", "/v1/purchases/{q}", linkTo("purchases", "id"), always},
		{"event", "/v1/events/{q}", linkTo("events", "id"), begins("evt_")},
		{"event", "/v1/events?subscription={q}&limit=20", linkTo("events", "id"), begins("sub_")},
		{"merchant", "/v1/merchants?merchant={q}", linkTo("merchants", "id"), func(q string) bool { return len(q) == uuidLength }},
	}
}

// inAccounts returns the lookups of a payment, in the Stripe account of each of the first 100 merchants, and of a
// Stripe account.
func inAccounts(v *visit, q string) (list []lookup, err error) {
	isAccount := strings.HasPrefix(q, "acct_")
	if !isAccount && !strings.HasPrefix(q, "pi_") {
		return nil, nil
	}
	merchants, err := lookup{link: linkTo("merchants", "id")}.ask(v, "/v1/merchants?limit=100")
	for _, row := range merchants {
		m := row.(object)["object"].(object)
		if account, _ := m["stripe_account"].(string); !isAccount {
			list = append(list, lookup{"payment", "/v1/payments/" + url.PathEscape(account) + "/{q}", linkTo("payments", "stripe_account", "id"), always})
		} else if account == q {
			list = append(list, lookup{"merchant", "/v1/merchants?merchant=" + url.QueryEscape(fmt.Sprint(m["id"])), linkTo("merchants", "id"), always})
		}
	}
	return list, err
}

// search shows what the text names: an account, its email address or customer, a subscription or its plan, a
// receipt's number, a purchase, a payment, a merchant, or an event. It asks for all of them together, and each is a
// bounded read. A merchant's key finds only what it may read.
func search(v *visit) error {
	q := strings.TrimSpace(v.r.URL.Query().Get("q"))
	account, subscription, _ := strings.Cut(q, "/")
	more, err := inAccounts(v, q)
	if err != nil {
		return err
	}
	all := append(lookups(), more...)
	found, failed := make([][]any, len(all)), make([]error, len(all))
	var asking sync.WaitGroup
	for i, l := range all {
		if q == "" || !l.fits(q) {
			continue
		}
		text := url.PathEscape(q)
		if strings.Contains(l.path, "?") {
			text = url.QueryEscape(q)
		}
		path := strings.NewReplacer("{q}", text, "{account}", url.PathEscape(account), "{subscription}", url.PathEscape(subscription)).Replace(l.path)
		asking.Go(func() { found[i], failed[i] = l.ask(v, path) })
	}
	asking.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	var rows []any
	seen := map[any]bool{}
	for _, list := range found {
		for _, row := range list {
			if link := row.(object)["link"]; !seen[link] {
				seen[link], rows = true, append(rows, row)
			}
		}
	}
	v.render(http.StatusOK, "search", "Search", object{"q": q, "rows": rows})
	return nil
}

// ask returns what the request finds. What cannot exist is not found.
func (l lookup) ask(v *visit, path string) (rows []any, err error) {
	to, err := v.send(http.MethodGet, path, nil, nil)
	if p, ok := errors.AsType[*problem](err); ok && (p.Status == http.StatusNotFound || p.Status == http.StatusUnprocessableEntity ||
		p.Status == http.StatusForbidden && v.key.Merchant != "" || p.Code == "not_followed") {
		return nil, nil
	}
	var o object
	if err == nil {
		err = decode(&to.body, &o)
	}
	if err != nil {
		return nil, err
	}
	list := []object{o}
	if _, many := o["data"]; many {
		list = dataOf(object{"page": o}, "page")
	}
	for _, o := range list {
		rows = append(rows, object{"kind": l.kind, "link": l.link(o), "object": o})
	}
	return rows, nil
}
