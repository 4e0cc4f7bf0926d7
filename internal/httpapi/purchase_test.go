package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/spectest"
	"github.com/duesday/duesday/internal/tracking"
)

func TestCreatePurchase(t *testing.T) {
	w := newWorld()
	server := w.serve(t)
	create := func() reply {
		return do(t, authorized(t, "POST", server.URL+"/v1/purchases", orderBody, "Idempotency-Key", "order 1"))
	}
	a := create()
	want := tracking.Order{By: apiKeyID, Merchant: account, Kind: tracking.Legacy, Key: "order 1", Amount: 1299, Currency: "EUR",
		Description: "A book"}
	if w.order != want {
		t.Errorf("got the order %+v, want %+v", w.order, want)
	}
	if a.status != 201 || a.header.Get("Location") != "/v1/purchases/"+purchaseID || strings.Contains(a.text, "declined") ||
		strings.Contains(a.text, "client_secret") {
		t.Errorf("got %d %s", a.status, a.text)
	}
	w.created = &tracking.Created{Purchase: &tracking.Purchase{ID: purchaseID}, Sale: tracking.Sale{
		Objects: []tracking.Object{{Kind: "payment_intent", ID: "pi_1"}}, Customer: "cus_1",
		ClientSecret: secret.New("pi_1_secret_x"), Declined: "card_declined", Action: true,
	}}
	a = create()
	for _, part := range []string{`"client_secret":"pi_1_secret_x"`, `"declined":"card_declined"`,
		`"action_required":true`, `"customer":"cus_1"`, `"kind":"payment_intent","id":"pi_1"`} {
		if a.status != 201 || !strings.Contains(a.text, part) {
			t.Errorf("a decline: got %d %s, want 201 and %s", a.status, a.text, part)
		}
	}
	w.created.Repeated = true
	if a = create(); a.status != 200 || !strings.Contains(a.text, `"repeated":true`) {
		t.Errorf("repeated: got %d %s", a.status, a.text)
	}
	if strings.Contains(w.logged(), "_secret_") {
		t.Error("the client secret is in the log")
	}
}

func TestCreatePurchase_Refuses(t *testing.T) {
	w := newWorld()
	w.checks = true
	server := w.serve(t)
	order := func(field string) string { return `{"merchant":"` + account + `","kind":"legacy",` + field + `}` }
	for _, tt := range []struct {
		name, body string
		status     int
		code       string
		want       string // of the text or the field
	}{
		{"unknown field", order(`"colour":"red"`), 422, "field", "#"},
		{"the key", order(`"key":"k"`), 422, "field", "#"},
		{"the tag", order(`"Tag":{}`), 422, "field", "#"},
		{"large letters", order(`"Amount":5`), 422, "field", "#"},
		{"letters that fold", order(`"ſtripe":5`), 422, "field", "#"},
		{"twice", order(`"amount":5,"amount":6`), 400, "json", "twice"},
		{"escaped twice", order(`"amount":5,"\u0061mount":6`), 400, "json", "twice"},
		{"something after", order(`"amount":5`) + "{}", 400, "json", "after"},
		{"deep", order(`"name":` + strings.Repeat("[", 100) + strings.Repeat("]", 100)), 400, "json", "levels"},
		{"open", `{"merchant":"a"`, 400, "json", "valid JSON"},
		{"a list", "[]", 400, "json", "JSON object"},
		{"null", "null", 400, "json", "JSON object"},
		{"empty", " ", 400, "json", "JSON object"},
		{"no UTF-8", order("\"name\":\"\xff\""), 400, "json", "UTF-8"},
		{"a fraction", order(`"amount":12.99`), 422, "field", "amount"},
		{"a text", order(`"amount":"12"`), 422, "field", "amount"},
		{"too much", order(`"amount":9223372036854775808`), 422, "field", "amount"},
		{"a number", order(`"email":4242424242424242`), 422, "field", "email"},
		{"null", order(`"email":null`), 422, "field", "email"},
		{"large", order(`"name":"` + strings.Repeat("a", 256<<10) + `"`), 413, "too_large", ""},
		{"card number", order(`"description":"for 4242 4242 4242 4242, please"`), 422, "field", "description"},
		{"card number", order(`"name":"4242424242424242"`), 422, "field", "name"},
		{"card number", order(`"email":"378282246310005@example.com"`), 422, "field", "email"},
		{"card number", order(`"payment_method":"4242-4242-4242-4242"`), 422, "field", "payment_method"},
		{"card number", order(`"price":"4242424242424242"`), 422, "field", "price"},
		{"card number", order(`"customer":"cus 4242424242424242"`), 422, "field", "customer"},
		{"card number", order(`"name":"\u0034242424242424242"`), 422, "field", "name"},
	} {
		a := do(t, authorized(t, "POST", server.URL+"/v1/purchases", tt.body, "Idempotency-Key", "k"))
		if a.status != tt.status || a.code != tt.code || (tt.code == "field" && !slices.Contains(a.fields, tt.want)) ||
			(tt.code != "field" && !strings.Contains(a.err, tt.want)) {
			t.Errorf("%s: got %d %s, want %d %s %q", tt.name, a.status, a.text, tt.status, tt.code, tt.want)
		}
		if strings.Contains(a.text+w.logged(), "4242") {
			t.Errorf("%s: the card number comes back: %s", tt.name, a.text)
		}
	}
	for name, header := range map[string][]string{
		"content_type": {"Idempotency-Key", "k", "Content-Type", "text/plain"},
		"encoding":     {"Idempotency-Key", "k", "Content-Encoding", "gzip"},
	} {
		if a := do(t, authorized(t, "POST", server.URL+"/v1/purchases", orderBody, header...)); a.status != 415 ||
			a.code != name {
			t.Errorf("%s: got %d %s", name, a.status, a.text)
		}
	}
	for _, key := range []string{"", strings.Repeat("k", 256), "é", "a\tb"} {
		if a := do(t, authorized(t, "POST", server.URL+"/v1/purchases", orderBody, "Idempotency-Key",
			key)); a.status != 400 || a.code != "idempotency_key" {
			t.Errorf("the key %.20q: got %d %s", key, a.status, a.text)
		}
	}
	twice := authorized(t, "POST", server.URL+"/v1/purchases", orderBody)
	twice.Header["Idempotency-Key"] = []string{"a", "b"}
	if a := do(t, twice); a.status != 400 {
		t.Errorf("two keys: got %d %s", a.status, a.text)
	}
	if got := w.calls(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestWrongFields: a problem names all wrong fields or parameters at once, each of them once, in the same order.
func TestWrongFields(t *testing.T) {
	w := newWorld()
	w.checks = true
	server := w.serve(t)
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "/v1/purchases", `{}`, "kind merchant"},
		{"POST", "/v1/purchases", `{"Canary":1,"kind":5,"amount":"5","email":"Canary"}`, "# amount email kind merchant"},
		{"POST", "/v1/purchases", `{"kind":"legacy","amount":"5","payment_method":"pm_1","payments":2}`, "amount currency merchant payment_method payments"},
		{"POST", "/v1/purchases", `{"kind":"product","price":5}`, "merchant payment_method customer price"},                       // is it without a price?
		{"POST", "/v1/purchases", `{"kind":"split","email":5,"amount":1}`, "amount email merchant payment_method payments price"}, // is there an email?
		{"POST", "/v1/merchants", `{"id":5,"stripe_account":"Canary"}`, "id stripe_account"},
		{"POST", "/v1/merchants", `{"id":"Canary","canary":{}}`, "# id stripe_account"},
		{"GET", "/v1/purchases?merchant=Canary&limit=Canary&Canary=1&idempotency_key=%00", "", " idempotency_key limit merchant"},
		{"GET", "/v1/purchases?limit=5&limit=6&Canary=1&canary=2", "", " limit merchant"},
		{"GET", "/v1/events?type=Canary%00&subscription=%00&from=Canary&to=Canary&cursor=Canary&limit=0", "", "cursor from limit subscription to type"},
	} {
		for range 5 { // the order of maps changes
			a := do(t, authorized(t, tt.method, server.URL+tt.path, tt.body, "Idempotency-Key", "Canary"))
			got, want := strings.Join(a.fields, " "), strings.Split(tt.want, " ")
			slices.Sort(want)
			if a.status != 422 || got != strings.Join(want, " ") || strings.Contains(strings.ToLower(a.text), "canary") {
				t.Errorf("%s %s: got %q, want %q: %d %s", tt.path, tt.body, got, want, a.status, a.text)
			}
		}
	}
	if got := w.calls(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestUnusualBodies: a route carries out a body that means the same as a usual one, and names a wrong type.
func TestUnusualBodies(t *testing.T) {
	w, spec := newWorld(), spectest.New(t)
	w.checks = true
	server := w.serve(t)
	for path, body := range map[string]string{"/v1/purchases": orderBody, "/v1/merchants": merchantBody} {
		var usual map[string]any
		if err := json.Unmarshal([]byte(body), &usual); err != nil {
			t.Fatal(err)
		}
		members := spec.Doc.Paths.Find(path).Post.RequestBody.Value.Content["application/json"].Schema.Value.Properties
		for i, u := range spectest.UnusualBodies(usual, slices.Sorted(maps.Keys(members))) {
			a := do(t, authorized(t, "POST", server.URL+path, u.Text, "Idempotency-Key", fmt.Sprint(i)))
			unknown, schema := u.Member == "#", members[u.Member]
			named := slices.ContainsFunc(a.fields, func(name string) bool { return name == u.Member })
			if a.status >= 500 || u.Same && a.status != 201 || unknown && !named || schema != nil && !u.IsOf(schema.Value) && !named {
				t.Errorf("%s %.300s: %d %s", path, u.Text, a.status, a.text)
			}
		}
	}
}

func TestListPurchases(t *testing.T) {
	w := newWorld()
	for i := range 1500 {
		w.purchases = append(w.purchases, &tracking.Purchase{ID: fmt.Sprint(i)})
	}
	server := w.serve(t)
	for _, tt := range []struct {
		query, accept string
		rows          int
		more          string
	}{
		{"", "", 100, `"has_more":true,"next_cursor":"`},
		{"&limit=1", "application/json", 1, `"has_more":true,"next_cursor":"`},
		{"&limit=1000", "", 1000, `"has_more":true,"next_cursor":"`},
		{"", "application/x-ndjson", 1500, `{"end":true}`},
		{"&limit=1200", "application/x-ndjson; charset=utf-8", 1200, `{"end":true,"has_more":true,"next_cursor":"`},
	} {
		a := do(t, authorized(t, "GET", server.URL+"/v1/purchases?merchant="+account+tt.query, "", "Accept", tt.accept))
		if got := strings.Count(a.text, `"stripe_account"`); a.status != 200 || got != tt.rows ||
			!strings.Contains(a.text, tt.more) {
			t.Errorf("%s %s: got %d, %d rows; want %d and %s", tt.query, tt.accept, a.status, got, tt.rows, tt.more)
		}
	}
	w.purchases = w.purchases[:100]
	if a := do(t, authorized(t, "GET", server.URL+"/v1/purchases?merchant="+account, "")); !strings.Contains(a.text,
		`"has_more":false`) {
		t.Errorf("got %.200s, want no more", a.text)
	}
	if a := do(t, authorized(t, "GET", server.URL+"/v1/payments?merchant="+account,
		"")); strings.TrimSpace(a.text) != `{"data":[],"has_more":false}` {
		t.Errorf("got %s, want an empty list", a.text)
	}
}

// TestAnswers_AreEscaped: a terminal obeys nothing in an answer, and the text is the same.
func TestAnswers_AreEscaped(t *testing.T) {
	w := newWorld()
	w.purchases = []*tracking.Purchase{{ID: "1", Problem: "declined: \u009b31m\u202e\u2066\x7fé"}}
	path := w.serve(t).URL + "/v1/purchases?merchant=" + account
	for _, accept := range []string{"application/json", "application/x-ndjson"} {
		a := do(t, authorized(t, "GET", path, "", "Accept", accept))
		if !strings.Contains(a.text, `"declined: \u009b31m\u202e\u2066\u007fé"`) {
			t.Errorf("%s: got %q", accept, a.text)
		}
	}
}

// TestList_NeverLooksWhole: a list that fails after its first rows ends with the error or is cut
// off, and has no last line.
func TestList_NeverLooksWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		fail  error
		want  string // the last line; "": none
		after int    // rows, the panic
	}{
		"unregistered": {fmt.Errorf("account \"a\": %w", tracking.ErrUnregistered),
			`{"type":"/docs#error-unregistered","title":"The merchant has no Stripe account here","status":422,"detail":"account \"a\": ` +
				tracking.ErrUnregistered.Error() + `","code":"unregistered","request_id":"req_1"}`, 0},
		"field": {fmt.Errorf("x: %w", &tracking.FieldError{Field: "amount", Problem: "want: more"}),
			`{"type":"/docs#error-field","title":"A field or parameter is invalid","status":422,"detail":"amount: want: more","code":"field",` +
				`"request_id":"req_1","errors":[{"parameter":"amount","code":"invalid","detail":"want: more"}]}`, 0},
		"down": {errors.New("private"), `{"type":"/docs#error-unavailable","title":"The server is unavailable","status":503,` +
			`"detail":"the server is unavailable; try again","code":"unavailable","request_id":"req_1"}`, 0},
		"panic":                       {nil, "", 1500},
		"panic before a line is sent": {nil, "", 3},
	} {
		w := newWorld()
		for range 2000 {
			w.purchases = append(w.purchases, &tracking.Purchase{ID: "p1"})
		}
		w.fail = tt.fail
		o := w.options()
		if tt.fail == nil {
			o.Shop = panicking{w, tt.after}
		}
		response, err := http.DefaultClient.Do(authorized(t, "GET", newServer(t, httpapi.New(o))+"/v1/purchases?merchant="+account, "",
			"Accept", "application/x-ndjson", "Request-Id", "req_1"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body) // cut off after a panic
		response.Body.Close()
		rows := strings.Count(string(text), `"stripe_account"`)
		if early := tt.fail == nil && tt.after < 10; early != (response.StatusCode == http.StatusInternalServerError) ||
			early && rows > 0 {
			t.Errorf("%s: status %d with %d rows", name, response.StatusCode, rows)
		}
		if tt.want != "" && (rows != 2000 || !strings.HasSuffix(string(text), "\n"+tt.want+"\n")) ||
			tt.after > 10 && strings.Contains(string(text), `"code"`) || // nothing follows a line that was cut off
			strings.Contains(string(text), `{"end":`) || strings.Contains(string(text), "private") {
			t.Errorf("%s: got %d rows and %q", name, rows, text[max(0, len(text)-300):])
		}
	}
}

// panicking is a shop whose lists panic in the middle.
type panicking struct {
	*world
	after int
}

func (p panicking) Purchases(ctx context.Context, account string, after tracking.Mark) iter.Seq2[*tracking.Purchase, error] {
	return func(yield func(*tracking.Purchase, error) bool) {
		n := 0
		for x, err := range p.world.Purchases(ctx, account, after) {
			if n++; n > p.after {
				panic("poison")
			}
			if !yield(x, err) {
				return
			}
		}
	}
}
