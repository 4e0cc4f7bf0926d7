package pages

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A list shows a list of the API as a table, with filters in the address, page by page or as CSV.
type list struct {
	name, title string
	path        string // of the API, with the parameters of every request
	filters     []filter
	columns     []string // fields of an object; the first one is a link to its page
	link        func(o object) string
	empty       string   // what to do if there are none
	actions     []string // names of the list's actions
}

// A filter is a parameter of the list. Without choices, it is a text.
type filter struct {
	Name    string
	Choices []string
}

func lists() []list {
	return []list{
		{name: "accounts", title: "Accounts", path: "/v1/accounts", filters: []filter{{Name: "email"}, {Name: "customer"}},
			columns: []string{"id", "name", "company", "email", "created_at"}, link: linkTo("accounts", "id"),
			empty: "Create the first one with duesday subscription create, or import a file with duesday import."},
		{name: "subscriptions", title: "Subscriptions", path: "/v1/subscriptions", filters: []filter{
			{"status", []string{"active", "paused", "past_due", "parked", "canceled", "completed"}}, {Name: "sku"}, {Name: "email"}},
			columns: []string{"id", "account", "sku", "status", "amount", "due_date", "email"}, link: subscriptionLink,
			empty: "Create the first one with duesday subscription create, or import a file with duesday import."},
		{name: "runs", title: "Runs", path: "/v1/runs", filters: []filter{{"kind", []string{"payments", "reminders", "verify", "reconcile"}}},
			columns: []string{"id", "kind", "date", "state", "started_at", "ended_at"}, link: linkTo("runs", "id"),
			empty: "duesday serve runs both jobs each day, and duesday run payments runs one now.", actions: []string{"payments", "reminders"}},
		{name: "takeovers", title: "Takeovers", path: "/v1/takeovers", filters: []filter{{Name: "subscription"}, {Name: "customer"}, {Name: "sku"}},
			columns: []string{"id", "customer", "status", "state", "period_end", "detail"}, link: linkTo("takeovers", "id"),
			empty: "Stripe runs no subscription that has not ended."},
		{name: "merchants", title: "Merchants", path: "/v1/merchants", columns: []string{"id", "stripe_account", "status", "verified_through", "error"}, link: linkTo("merchants", "id"),
			empty: "Register one with duesday connect."},
		{name: "purchases", title: "Purchases", path: "/v1/purchases", filters: []filter{{Name: "merchant"}},
			columns: []string{"id", "merchant", "kind", "fulfilled", "customer", "created_at"}, link: linkTo("purchases", "id"),
			empty: "Purchases appear when Stripe's events arrive, or when a shop creates one."},
		{name: "payments", title: "Payments", path: "/v1/payments", filters: []filter{{Name: "merchant"}},
			columns: []string{"id", "stripe_account", "status", "amount", "refunded", "created_at"}, link: linkTo("payments", "stripe_account", "id"),
			empty: "Payments appear when Stripe's events arrive."},
		{name: "events", title: "Events", path: "/v1/events?details=true&order=newest", filters: []filter{{"status", []string{"waiting", "dead", "quarantined"}},
			{"source", []string{"webhook", "poll"}}, {Name: "merchant"}, {Name: "stripe_account"}, {Name: "from"}},
			columns: []string{"id", "type", "status", "source", "stripe_account", "at", "reason"}, link: linkTo("events", "id"),
			empty: "Events appear when Stripe sends them, or when the poller finds them. They are kept for 30 days."},
		{name: "endpoints", title: "Endpoints", path: "/v1/endpoints", columns: []string{"id", "url", "delivered_at", "failed_at", "waiting", "dead", "failing_since", "paused_at"}, link: linkTo("endpoints", "id"),
			empty: "Register the address of your shop with duesday endpoint create."},
		{name: "deliveries", title: "Deliveries", path: "/v1/deliveries", filters: []filter{{Name: "endpoint"}, {"state", []string{"waiting", "delivered", "failed"}}},
			columns: []string{"id", "endpoint", "type", "state", "created_at", "ended_at"}, link: linkTo("deliveries", "endpoint", "created_at", "id"),
			empty: "Messages appear once there is an endpoint."},
		{name: "mails", title: "Mails", path: "/v1/mails", filters: []filter{{Name: "account"},
			{"state", []string{"waiting", "held", "sent", "bounced", "given_up", "not_needed", "dropped"}}, {Name: "from"}, {Name: "to"}},
			columns: []string{"created_at", "kind", "state", "email", "account", "attempts", "answer"}, link: linkTo("mails", "id"),
			empty: "Mails that have ended are here for 90 days. To see mail that waits, filter by its state."},
		{name: "accounts/{account}/subscriptions", title: "Subscriptions of {account}", path: "/v1/accounts/{account}/subscriptions",
			columns: []string{"id", "sku", "status", "amount", "due_date"}, link: subscriptionLink, empty: "Create one with duesday subscription create."},
		{name: "accounts/{account}/receipts", title: "Receipts of {account}", path: "/v1/receipts?account={account}&order=newest",
			filters: []filter{{Name: "subscription"}, {Name: "from"}, {Name: "to"}}, columns: []string{"id", "number", "subscription", "period", "kind", "amount", "refunded", "processed_at"},
			link: func(o object) string { return at("accounts", o["account"], "receipts", o["id"]) }, empty: "Receipts appear with the first payment."},
		{name: "accounts/{account}/history", title: "Changes of {account}", path: "/v1/accounts/{account}/history", filters: []filter{{Name: "subscription"}},
			columns: []string{"at", "actor", "subscription", "what", "changed", "reason"}, empty: "Changes of the last months are here."},
	}
}

func linkTo(parts ...string) func(object) string {
	return func(o object) string {
		all := []any{parts[0]}
		for _, name := range parts[1:] {
			all = append(all, o[name])
		}
		return at(all...)
	}
}

func subscriptionLink(o object) string { return at("accounts", o["account"], "subscriptions", o["id"]) }

// isAmount reports whether the field is in minor units of the object's currency.
func isAmount(name string) bool {
	return slices.Contains([]string{"amount", "refunded", "left", "unit_amount", "subtotal", "discount", "net", "tax", "written_off_sum"}, name)
}

func (l list) show(v *visit) error {
	q := v.r.URL.Query()
	path, always, _ := strings.Cut(v.fill(l.path), "?")
	asked, _ := url.ParseQuery(always)
	filtered := false
	for _, f := range l.filters {
		if text := q.Get(f.Name); text != "" {
			asked.Set(f.Name, text)
			filtered = true
		}
	}
	if q.Has("csv") {
		return l.csv(v, path+"?"+asked.Encode())
	}
	if cursor := q.Get("cursor"); cursor != "" {
		asked.Set("cursor", cursor)
	}
	data := object{"list": l, "filters": l.filters, "filtered": filtered, "query": q}
	page, err := v.get(path + "?" + asked.Encode())
	if p, ok := err.(*problem); ok && p.Status == http.StatusUnprocessableEntity {
		if data["wrong"] = p; len(asked) == 0 { // the list of one merchant
			data["wrong"], data["choose"] = nil, true
		}
	} else if err != nil {
		return err
	}
	var rows []any
	for _, o := range dataOf(object{"page": page}, "page") {
		row := object{"object": o, "link": ""}
		if l.link != nil {
			row["link"] = l.link(o)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 && len(asked) == 0 && slices.Contains([]string{"accounts", "subscriptions", "runs"}, l.name) {
		first, err := v.load(map[string]string{"overview": "/v1/overview", "status": "/v1/status"})
		if err == nil {
			data["steps"], err = firstSteps(v, first["overview"].(object), first["status"].(object))
		}
		if err != nil {
			return err
		}
	}
	data["columns"], data["rows"], data["next"], data["empty"], data["offers"] = l.columns, rows, page["next_cursor"], l.empty, l.actions
	v.render(http.StatusOK, "list", v.filled(l.title, plain), data)
	return nil
}

// csv sends the whole list, line by line. Amounts are decimals of the currency in the last column. If the API
// cannot read the list to its end, the last row says so, so that no part is taken for the whole.
func (l list) csv(v *visit, path string) error {
	columns := slices.Clone(l.columns)
	if slices.ContainsFunc(columns, isAmount) {
		columns = append(columns, "currency")
	}
	out := &rows{ResponseWriter: v.w, columns: columns, name: l.name[strings.LastIndex(l.name, "/")+1:], out: csv.NewWriter(v.w)}
	if err := v.ask(out, http.MethodGet, path, nil, map[string]string{"Accept": "application/x-ndjson"}); err != nil {
		return err
	}
	if out.status >= http.StatusBadRequest {
		return problemOf(out.status, out.rest)
	}
	if !out.ended {
		v.o.Log.WarnContext(v.r.Context(), "pages: a list could not be read to its end", "list", l.name)
		_ = out.out.Write([]string{"INCOMPLETE: the list could not be read to its end"})
	}
	out.out.Flush()
	return nil
}

// rows writes the API's JSON lines as CSV.
type rows struct {
	http.ResponseWriter
	columns []string
	name    string
	out     *csv.Writer
	header  http.Header
	status  int
	rest    []byte // of a line, or of a problem
	ended   bool
}

func (r *rows) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

func (r *rows) WriteHeader(status int) {
	if r.status > 0 {
		return
	}
	if r.status = status; status < http.StatusBadRequest {
		r.ResponseWriter.Header().Set("Content-Type", "text/csv; charset=utf-8")
		r.ResponseWriter.Header().Set("Content-Disposition", `attachment; filename="`+r.name+`.csv"`)
		_ = r.out.Write(r.columns)
	}
}

func (r *rows) Write(text []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.rest = append(r.rest, text...)
	if r.status >= http.StatusBadRequest {
		return len(text), nil
	}
	for {
		line, rest, whole := bytes.Cut(r.rest, []byte("\n"))
		if !whole {
			return len(text), r.out.Error()
		}
		r.rest = rest
		var o object
		if err := decode(bytes.NewReader(line), &o); err != nil || o["status"] != nil && o["type"] != nil && o["title"] != nil {
			return 0, fmt.Errorf("pages: the API's list ended: %s", line)
		}
		if o["end"] == true {
			r.ended = true
			continue
		}
		var row []string
		for _, name := range r.columns {
			row = append(row, cell(o, name))
		}
		_ = r.out.Write(row)
	}
}

// Unwrap returns the writer for http.ResponseController.
func (r *rows) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// cell returns the field as text that a spreadsheet does not take for a formula.
func cell(o object, name string) string {
	text := ""
	switch x := o[name].(type) {
	case string:
		if text = x; text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
			text = "'" + text
		}
	case json.Number:
		if text = x.String(); isAmount(name) {
			text, _, _ = strings.Cut(amountOf(x, o["currency"]), " ")
		}
	case bool:
		text = yesNo(name, x)
	case object:
		b, _ := json.Marshal(x) // it was read from JSON
		text = string(b)
	}
	return text
}
