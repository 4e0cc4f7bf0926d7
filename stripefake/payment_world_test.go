package stripefake_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/stripefake"
)

// A till is a fake and somebody who asks it.
type till struct {
	t       testing.TB
	fake    *stripefake.Fake
	handler http.Handler
	header  http.Header
}

// newTill returns a till whose answers are all held against Stripe's specification.
func newTill(t testing.TB) *till {
	l := newUnwatchedTill(t)
	l.handler = stripetest.Load(t).Watch(t, l.fake)
	return l
}

func newUnwatchedTill(t testing.TB) *till {
	start := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	f := stripefake.New(stripefake.Options{Now: func() time.Time { return start }})
	return &till{t: t, fake: f, handler: f, header: http.Header{"Authorization": {"Bearer sk_test_duesday"}}}
}

// An answer is what came back. status is 0 if the connection broke.
type answer struct {
	status int
	body   map[string]any
}

// at follows the path into the answer, and returns what is there as a text: nil for null.
func (a answer) at(path string) string {
	var v any = a.body
	for name := range strings.SplitSeq(path, ".") {
		switch o := v.(type) {
		case map[string]any:
			in, there := o[name]
			if !there {
				return "absent"
			}
			v = in
		case []any:
			i := 0
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(o) {
				return "absent"
			}
			v = o[i]
		default:
			return "absent"
		}
	}
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	if v == nil {
		return "nil"
	}
	return fmt.Sprint(v)
}

func (a answer) id() string { return a.at("id") }

// outcome is the status and code of an error, or the status of the object.
func (a answer) outcome() string {
	if a.status != http.StatusOK {
		return fmt.Sprint(a.status, " ", a.at("error.code"))
	}
	return a.at("status")
}

func (l *till) get(path string, params ...string) answer {
	return l.ask("GET", path+"?"+encoded(params), "")
}
func (l *till) post(path string, params ...string) answer {
	return l.ask("POST", path, encoded(params))
}

// encoded writes parameters that are given as name=value.
func encoded(params []string) string {
	q := url.Values{}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		q.Add(name, value)
	}
	return q.Encode()
}

func (l *till) ask(method, path, body string) (a answer) {
	r := httptest.NewRequestWithContext(l.t.Context(), method, "http://fake.test/v1/"+path, strings.NewReader(body))
	r.Header = l.header.Clone()
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	if w.Body.Len() == 0 { // a recorder has no connection that could break
		return answer{}
	}
	d := json.NewDecoder(w.Body)
	d.UseNumber()
	if err := d.Decode(&a.body); err != nil {
		l.t.Fatalf("%s %s: %v", method, path, err)
	}
	a.status = w.Code
	return a
}

// must is for what has to be 200.
func (l *till) must(a answer) answer {
	l.t.Helper()
	if a.status != http.StatusOK {
		l.t.Fatalf("status %d: %s", a.status, a.at("error.message"))
	}
	return a
}

// expect compares members of the answer, given as path=value.
func (l *till) expect(a answer, members ...string) {
	l.t.Helper()
	for _, m := range members {
		path, want, _ := strings.Cut(m, "=")
		if got := a.at(path); got != want {
			l.t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
}

// intent makes a payment intent over 10.00 USD for cards.
func (l *till) intent(params ...string) string {
	l.t.Helper()
	return l.must(l.post("payment_intents", append([]string{"amount=1000", "currency=usd",
		"payment_method_types[]=card"}, params...)...)).id()
}

// customer makes a customer with a card that is attached, and returns both ids.
func (l *till) customer(card string) (customer, method string) {
	l.t.Helper()
	customer = l.must(l.post("customers", "email=ada@example.org")).id()
	return customer, l.must(l.post("payment_methods/"+card+"/attach", "customer="+customer)).id()
}

// events are the types of all events so far, oldest first, that are in the list of types.
func (l *till) events(prefix string) string {
	l.t.Helper()
	var types []string
	data, _ := l.must(l.get("events", "limit=100")).body["data"].([]any)
	for i := len(data) - 1; i >= 0; i-- {
		if typ := data[i].(map[string]any)["type"].(string); strings.HasPrefix(typ, prefix) {
			types = append(types, typ)
		}
	}
	return strings.Join(types, " ")
}

// page asks for a page as a browser does.
func (l *till) page(method, address string, form ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	return l.browse(method, address, "same-origin", form)
}

// foreign posts to a page from another site.
func (l *till) foreign(address string, form ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	return l.browse("POST", address, "cross-site", form)
}

func (l *till) browse(method, address, site string, form []string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(l.t.Context(), method, address, strings.NewReader(encoded(form)))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
	}
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	return w
}
