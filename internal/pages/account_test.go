package pages_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
)

// anAccount answers for account a with subscription s. Each of its lists has the field more besides its data.
func anAccount(subscription, more string) map[string]string {
	const sub = "/v1/accounts/a/subscriptions"
	of := func(data string) string { return `{"data":[` + data + `]` + more + `}` }
	return map[string]string{"/v1/accounts/a": `{"id":"a"}`, sub: of(subscription), sub + "/s": subscription, sub + "/s/periods": of(""),
		"/v1/receipts": of(`{"id":"r2","account":"a","subscription":"s","period":1,"amount":1299,"currency":"EUR","processed_at":"2026-03-02T09:00:00Z"},
			{"id":"r1","account":"a","subscription":"s","period":0,"amount":1299,"currency":"EUR","processed_at":"2026-02-02T09:00:00Z"}`),
		"/v1/mails": of(""), "/v1/settings": `{"portal":"off"}`,
		"/v1/accounts/a/history": of(`{"at":"2026-03-01T09:00:00Z","actor":"customer","what":"subscription.canceled","reason":"moved away","currency":"EUR",
			"changed":{"amount":{"before":1299,"after":2000}}}`)}
}

const aSubscription = `{"id":"s","account":"a","status":"active","amount":1299,"currency":"EUR","interval":"1 month","period":1,"due_date":"2026-03-31"}`

// TestAccount_Whole: the pages ask for the newest receipts, and where a list has more than is shown, they say so and lead to
// the whole list.
func TestAccount_Whole(t *testing.T) {
	var asked []string
	const account, subscription = "/accounts/a", "/accounts/a/subscriptions/s"
	links := map[string][]string{account: {account + "/subscriptions", account + "/history", "/mails?account=a"},
		subscription: {account + "/receipts?subscription=s", account + "/history?subscription=s", "/mails?account=a"}}
	for more, shown := range map[string]bool{`,"has_more":true,"next_cursor":"c"`: true, `,"has_more":false`: false} {
		for path, all := range links {
			text := ask(answers(&asked, anAccount(aSubscription, more)), "GET", path, nil, nil).Body.String()
			for _, link := range all {
				if strings.Contains(text, `<a href="`+link+`">All `) != shown {
					t.Errorf("%s with %s: %s is shown: %t: %s", path, more, link, !shown, text)
				}
			}
			if strings.Contains(text, "Only the newest") != (shown && path == account) || strings.Contains(text, "More periods") != (shown && path == subscription) {
				t.Errorf("%s with %s says what is missing: %t: %s", path, more, !shown, text)
			}
		}
	}
	for _, want := range []string{"GET /v1/receipts?account=a&order=newest&limit=200&from=2025-09-15",
		"GET /v1/receipts?account=a&subscription=s&order=newest&limit=400&from=2025-03-15"} {
		if !slices.Contains(asked, want) {
			t.Errorf("not asked for %s: %q", want, asked)
		}
	}
}

// TestAccount_Lists: each list of an account has its own rows and filters, and its CSV is named after it.
func TestAccount_Lists(t *testing.T) {
	var asked []string
	h := answers(&asked, anAccount(aSubscription, `,"has_more":true,"next_cursor":"c"`))
	for path, want := range map[string]string{"/accounts/a/subscriptions": `<a href="/accounts/a/subscriptions/s">`, "/accounts/a/receipts?subscription=s": `<a href="/accounts/a/receipts/r2">`,
		"/accounts/a/history": "amount: 12.99 EUR → 20.00 EUR;"} {
		if text := ask(h, "GET", path, nil, nil).Body.String(); !strings.Contains(text, want) || !strings.Contains(text, " of a</h1>") || !strings.Contains(text, "Next page") {
			t.Errorf("%s has no %s: %s", path, want, text)
		}
	}
	if !slices.Contains(asked, "GET /v1/receipts?account=a&order=newest&subscription=s") {
		t.Errorf("asked %q", asked)
	}
	csv := ask(h, "GET", "/accounts/a/history?csv=1", nil, nil)
	if name := csv.Header().Get("Content-Disposition"); name != `attachment; filename="history.csv"` {
		t.Errorf("the CSV is %s", name)
	}
}

// TestAccount_Reason: the customer's reason for a cancellation is on both pages.
func TestAccount_Reason(t *testing.T) {
	for _, path := range []string{"/accounts/a", "/accounts/a/subscriptions/s"} {
		if text := ask(answers(new([]string), anAccount(aSubscription, "")), "GET", path, nil, nil).Body.String(); !strings.Contains(text, `<q dir="auto">moved away</q>`) {
			t.Errorf("%s has no reason: %s", path, text)
		}
	}
}

// TestAccount_Ending: a subscription that ends with its period has no next period. A button takes the cancellation back, and another
// one cancels now.
func TestAccount_Ending(t *testing.T) {
	sub := strings.Replace(aSubscription, `"due_date"`, `"next_payment_date":"2026-03-31","cancel_at_period_end":true,"ends_on":"2026-03-31","due_date"`, 1)
	h := answers(new([]string), anAccount(sub, ""))
	text := ask(h, "GET", "/accounts/a/subscriptions/s", nil, nil).Body.String()
	if !strings.Contains(text, ", ends on 2026-03-31 ") || strings.Contains(text, "next due") || strings.Contains(text, ">next<") || strings.Contains(text, "next payment date") ||
		!strings.Contains(text, `/s/resume">`) || !strings.Contains(text, `/s/cancel">`) {
		t.Errorf("the subscription: %s", text)
	}
	if text := ask(h, "GET", "/accounts/a", nil, nil).Body.String(); !strings.Contains(text, ", ends on 2026-03-31</p>") {
		t.Errorf("the account: %s", text)
	}
	owed := strings.Replace(sub, `"ends_on":"2026-03-31",`, "", 1) // a period that is due is charged before
	if text := ask(answers(new([]string), anAccount(owed, "")), "GET", "/accounts/a/subscriptions/s", nil, nil).Body.String(); !strings.Contains(text, ", ends with the paid period ") {
		t.Errorf("a subscription that owes a period: %s", text)
	}
}

// TestAccount_Capabilities: a page leads to the card page of the processor only if there is one, and to a link to the customer's
// page only if that page is on. In the sandbox, today's page leads to the change of a past_due subscription instead.
func TestAccount_Capabilities(t *testing.T) {
	for _, tt := range []struct{ stripe, portal, today string }{{"", "off", "/accounts/a/subscriptions/s/change"}, {"Stripe in test mode", "on", "/accounts/a/card-link"}} {
		api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"portal":"`+tt.portal+`","id":"a","data":[{"id":"s","account":"a","status":"past_due"}]}`)
		})
		h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Admin}, Stripe: tt.stripe, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		text := ask(h, "GET", "/accounts/a", nil, nil).Body.String()
		if strings.Contains(text, "/card-link") != (tt.stripe != "") || strings.Contains(text, "/portal-link") != (tt.portal == "on") {
			t.Errorf("%+v: %s", tt, text)
		}
		if text := ask(h, "GET", "/", nil, nil).Body.String(); !strings.Contains(text, `<a class="button" href="`+tt.today+`"`) {
			t.Errorf("%+v, today: %s", tt, text)
		}
	}
}

// TestAccount_Charge: a charge is offered for a period that is open, due in the account's time zone, or failed. At noon on
// 15 March in UTC, it is 16 March in Auckland.
func TestAccount_Charge(t *testing.T) {
	const failed = `{"period":0,"ending":"failed"}`
	for _, tt := range []struct {
		more, due, periods string
		want               bool
	}{{"", "2026-03-16", "", false}, {"", "2026-03-15", "", true}, {`"time_zone":"Pacific/Auckland",`, "2026-03-16", "", true}, {"", "2026-03-16", failed, true},
		{`"collection":"manual",`, "2026-03-16", failed, false},
		{"", "2026-03-16", `{"period":0,"ending":"skipped"}`, false}, {`"open":{"period":1},`, "2026-03-16", "", true},
		{`"open":{"period":1,"pay_by":"2026-03-29"},`, "2026-03-15", "", false}, {`"collection":"manual",`, "2026-03-15", "", false}, {`"collects":0,`, "2026-03-16", "", true},
		{`"cancel_at_period_end":true,"ends_on":"2026-03-15",`, "2026-03-15", "", false}} {
		texts := anAccount(strings.Replace(aSubscription, `"due_date":"2026-03-31"`, tt.more+`"due_date":"`+tt.due+`"`, 1), "")
		texts["/v1/accounts/a/subscriptions/s/periods"] = `{"data":[` + tt.periods + `]}`
		if text := ask(answers(new([]string), texts), "GET", "/accounts/a/subscriptions/s", nil, nil).Body.String(); strings.Contains(text, `/s/charge">`) != tt.want {
			t.Errorf("%+v: %s", tt, text)
		}
	}
}

// TestAccount_Became: an address alone does not make a page say that an action was done. It names the actions of its page only.
func TestAccount_Became(t *testing.T) {
	for done, want := range map[string]string{"charge": "See below what became of the request: Charge now.", "refund": "", "receipts": "request: Record a payment."} {
		text := ask(answers(new([]string), anAccount(aSubscription, "")), "GET", "/accounts/a/subscriptions/s?done="+done, nil, nil).Body.String()
		if strings.Contains(text, "Done") || strings.Contains(text, `role="status"`) != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %s", done, text)
		}
	}
}

// TestAccount_Preview: the preview of a charge says that it is for a payment that succeeds, and shows no ID of the copy in memory.
func TestAccount_Preview(t *testing.T) {
	texts := anAccount(aSubscription, "")
	texts["/v1/accounts/a/subscriptions/s/charge/preview"] = `{"id":"s","changed":{"paid_periods":{"before":0,"after":1},"last_charge":{"after":"dry_run_dd_1"}},
		"result":{"results":[{"period":0,"due_date":"2026-02-28","amount":1299,"currency":"EUR","outcome":"paid"}],"subscription":{"last_charge":"dry_run_dd_1"}}}`
	text := ask(answers(new([]string), texts), "POST", "/accounts/a/subscriptions/s/charge", url.Values{}, nil).Body.String()
	for _, want := range []string{"What follows if the processor collects the payment:", "paid periods", "Period 0, due 2026-02-28: 12.99 EUR, paid"} {
		if !strings.Contains(text, want) {
			t.Errorf("the preview has no %q: %s", want, text)
		}
	}
	if strings.Contains(text, "dry_run") || strings.Contains(text, "last charge") {
		t.Errorf("the preview has IDs of the copy: %s", text)
	}
}

// TestAccount_Refund: the preview of a refund has what is refunded and what is left, before and after, and no raw object.
func TestAccount_Refund(t *testing.T) {
	h := answers(new([]string), map[string]string{"/v1/receipts/r": `{"id":"r","subscription":"s","period":1,"amount":1299,"refunded":200,"currency":"EUR"}`,
		"/v1/receipts/r/refunds/preview": `{"id":"s","currency":"EUR","changed":{},"next_due":[{"due_date":"2026-03-31","amount":1299,"currency":"EUR"}],
			"result":{"id":"rf_1","refund":"dry_run_rf_1","amount":500,"currency":"EUR","state":"succeeded"}}`})
	text := ask(h, "POST", "/accounts/a/receipts/r/refund", url.Values{"amount": {"5.00"}}, nil).Body.String()
	for _, want := range []string{"What follows if the processor makes the refund:", `refunded</th><td dir="auto">2.00 EUR</td><td dir="auto">7.00 EUR</td>`,
		`left</th><td dir="auto">10.99 EUR</td><td dir="auto">5.99 EUR</td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the preview has no %q: %s", want, text)
		}
	}
	if strings.Contains(text, "rf_1") || strings.Contains(text, "succeeded") {
		t.Errorf("the preview has the raw object: %s", text)
	}
}

// TestList_NoMatch: a list without a match says so and leads to the whole list. Only an empty list says how to create a row.
func TestList_NoMatch(t *testing.T) {
	h := answers(new([]string), map[string]string{"/v1/accounts": `{"data":[]}`, "/v1/overview": `{}`, "/v1/status": `{"checks":[{"check":"accounts"}]}`,
		"/v1/settings": `{}`, "/v1/subscriptions": `{}`})
	for path, filtered := range map[string]bool{"/accounts": false, "/accounts?email=": false, "/accounts?email=nobody@example.com": true} {
		text := ask(h, "GET", path, nil, nil).Body.String()
		if strings.Contains(text, `No match. <a href="?">`) != filtered || strings.Contains(text, "Create the first one") == filtered {
			t.Errorf("%s: %s", path, text)
		}
	}
}
