package httpapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// noMerchant means that a key of any merchant gets 403.
const noMerchant = 0

// scoped is the least scope of every route, and what a key of another merchant gets: its lists are
// empty or refused, and its objects are not there.
var scoped = []struct {
	pattern       string // in the source
	method, path  string
	least         key.Scope
	other         int    // status for a key of another merchant
	otherSees     string // in the answer for it, where that is 200
	withoutFilter int    // status for a key of this merchant, where the request names no merchant; 0: as it is
}{
	{"POST /v1/purchases", "POST", "/v1/purchases", key.Charge, 403, "", 0},
	{"GET /v1/purchases", "GET", "/v1/purchases?merchant=" + account, key.Read, 403, "", 200},
	{"GET /v1/purchases/{purchase}", "GET", "/v1/purchases/" + purchaseID, key.Read, 404, "", 0},
	{"GET /v1/payments", "GET", "/v1/payments?merchant=" + account, key.Read, 403, "", 200},
	{"GET /v1/payments/{stripe_account}/{payment}", "GET", "/v1/payments/acct_1/pi_1", key.Read, 404, "", 0},
	{"GET /v1/events", "GET", "/v1/events?merchant=" + account, key.Read, 403, "", 200},
	{"GET /v1/events", "GET", "/v1/events?stripe_account=" + stripeAccount, key.Read, 200, `{"data":[],"has_more":false}`, 0},
	{"GET /v1/events", "GET", "/v1/events?subscription=sub_1", key.Read, 200, `{"data":[],"has_more":false}`, 0},
	{"GET /v1/events/{event}", "GET", "/v1/events/evt_1", key.Read, 404, "", 0},
	{"POST /v1/events/{event}/replay", "POST", "/v1/events/evt_1/replay", key.Write, noMerchant, "", 0},
	{"GET /v1/merchants", "GET", "/v1/merchants", key.Read, 200, `{"data":[],"has_more":false}`, 0},
	{"GET /v1/merchants", "GET", "/v1/merchants?merchant=" + account, key.Read, 403, "", 200},
	{"POST /v1/merchants", "POST", "/v1/merchants", key.Admin, noMerchant, "", 0},
	{"POST /v1/merchants/{stripe_account}/import", "POST", "/v1/merchants/acct_1/import", key.Admin, noMerchant, "", 0},
	{"GET /v1/jobs", "GET", "/v1/jobs", key.Read, noMerchant, "", 0},
	{"POST /v1/jobs/{job}/retry", "POST", "/v1/jobs/fulfil%2Fp1/retry", key.Write, noMerchant, "", 0},
}

// TestScopes: every route with a key of every scope, of this merchant, another one and all.
func TestScopes(t *testing.T) {
	w := fullWorld()
	w.purchases, w.payments = []*tracking.Purchase{{ID: purchaseID}}, w.payments[:1]
	server := w.serve(t)
	said := map[int]map[string]bool{}
	for _, scope := range append(key.Scopes(), "") {
		for _, merchant := range []string{"", account, other} {
			text := "dd_aaaaaaaaaa_" + strings.Repeat("0", 64)
			if scope != "" {
				text = w.key(t, scope, merchant)
			}
			for _, to := range scoped {
				for _, path := range []string{to.path, strings.Split(to.path, "?")[0]} {
					if path != to.path && (to.withoutFilter == 0 || merchant != account) {
						continue
					}
					before := len(w.calls())
					a := do(t, request(t, to.method, server.URL+path, bodyOf(to.pattern), "Authorization", "Bearer "+text,
						"Content-Type", "application/json", "Idempotency-Key", rand.Text()))
					want := 200
					if to.method == "POST" && strings.Count(path, "/") == 2 {
						want = 201
					}
					switch {
					case scope == "":
						want = 401
					case !scope.Includes(to.least):
						want = 403
					case to.other == noMerchant && merchant != "":
						want = 403
					case merchant == other:
						want = to.other
					}
					if a.status != want || want == 200 && merchant == other && strings.TrimSpace(a.text) != to.otherSees {
						t.Errorf("%s %s, scope %q, merchant %q: got %d %s, want %d", to.method, path, scope, merchant, a.status,
							a.text, want)
					}
					if want == 401 || want == 403 {
						if n := len(w.calls()) - before; n != 0 {
							t.Errorf("%s %s, scope %q, merchant %q: refused, and %d calls were made", to.method, path, scope, merchant, n)
						}
					}
					if said[want] == nil {
						said[want] = map[string]bool{}
					}
					said[want][a.text] = true
				}
			}
		}
	}
	if len(said[404]) != 1 || len(said[401]) != 1 {
		t.Errorf("what is not there, and what is another's, differ: %v; keys: %v", said[404], said[401])
	}
	w.timeline, w.fail = nil, fmt.Errorf("purchase p: %w", store.ErrNotFound)
	a := do(t, authorized(t, "GET", server.URL+"/v1/purchases/"+purchaseID, ""))
	if !said[404][a.text] {
		t.Errorf("what is not there: %s; another's: %v", a.text, said[404])
	}
}

func bodyOf(pattern string) string {
	return map[string]string{"POST /v1/purchases": orderBody, "POST /v1/merchants": merchantBody}[pattern]
}

// TestScopes_HasEveryRoute: the table above has every route of the source.
func TestScopes_HasEveryRoute(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`"((?:GET|POST|PUT|PATCH|DELETE) /[^"]*)"`)
	n := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, x := range route.FindAllStringSubmatch(string(text), -1) {
			n++
			found := false
			for _, to := range scoped {
				found = found || to.pattern == x[1]
			}
			if !found {
				t.Errorf("%s: TestScopes does not try %s", name, x[1])
			}
		}
	}
	if n < 8 {
		t.Errorf("this finds %d routes, and tells nothing", n)
	}
}

// TestScopes_NoDefault: a key without a scope, as a damaged item may give, opens nothing.
func TestScopes_NoDefault(t *testing.T) {
	w := fullWorld()
	o := w.options()
	o.Keys = scopeless{}
	for _, to := range scoped {
		a := do(t, authorized(t, to.method, newServer(t, httpapi.New(o))+to.path, bodyOf(to.pattern), "Idempotency-Key", "k"))
		if a.status != 403 || a.code != "scope" {
			t.Errorf("%s: got %d %s", to.path, a.status, a.text)
		}
	}
}

type scopeless struct{}

func (scopeless) Find(context.Context, string) (*key.Key, error) {
	return &key.Key{Name: "damaged"}, nil
}
func (scopeless) Any(context.Context) (bool, error) { return true, nil }

// TestMerchantOfAKey: a sale by a key of a merchant is that merchant's, also where the order says none.
func TestMerchantOfAKey(t *testing.T) {
	w := fullWorld()
	server := w.serve(t)
	bearer := "Bearer " + w.key(t, key.Charge, account)
	for body, want := range map[string]int{
		`{"kind":"legacy","amount":1,"currency":"EUR"}`:                  201,
		strings.Replace(orderBody, account, strings.ToUpper(account), 1): 201,
		strings.Replace(orderBody, account, other, 1):                    403,
		strings.Replace(orderBody, account, "x", 1):                      403,
	} {
		w.order = tracking.Order{}
		a := do(t, request(t, "POST", server.URL+"/v1/purchases", body, "Authorization", bearer, "Content-Type",
			"application/json", "Idempotency-Key", "k"))
		if a.status != want || (want == 201) != strings.EqualFold(w.order.Merchant, account) {
			t.Errorf("%s: got %d %s, and an order of %q", body, a.status, a.text, w.order.Merchant)
		}
	}
}

// TestRevokedKey: the answer to a revoked, an expired and an unknown key is the same; the log tells.
func TestRevokedKey(t *testing.T) {
	w := fullWorld()
	server := w.serve(t)
	revoked := w.key(t, key.Read, "")
	if _, err := w.keys.Revoke(t.Context(), "read-"); err != nil {
		t.Fatal(err)
	}
	k := key.Key{Name: "old", Scope: key.Read, Expires: w.now.Add(time.Hour)}
	expired, err := w.keys.Create(t.Context(), &k)
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * time.Hour)
	said := map[string]bool{}
	for _, text := range []string{revoked, expired.Reveal(), revoked[:len(revoked)-1] + "x", "dd_aaaaaaaaaa" + revoked[13:]} {
		a := do(t, request(t, "GET", server.URL+"/v1/merchants", "", "Authorization", "Bearer "+text))
		said[fmt.Sprint(a.status, a.text, a.header["Www-Authenticate"])] = true
		if _, hidden, _ := strings.Cut(text[3:], "_"); strings.Contains(w.logged(), hidden) {
			t.Errorf("the log has the key")
		}
	}
	log := w.logged()
	if len(said) != 1 || !strings.Contains(log, "is revoked") || !strings.Contains(log, "has expired") ||
		!strings.Contains(log, "does not exist") {
		t.Errorf("got %v, and the log %s", said, log)
	}
}

// A page is a page of a list.
type page struct {
	Data []struct{ ID string }
	More bool   `json:"has_more"`
	Next string `json:"next_cursor"`
}

func readPage(t *testing.T, a reply) (p page) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.text), &p); err != nil || a.status != 200 {
		t.Fatalf("got %d %s, %v", a.status, a.text, err)
	}
	return p
}

// TestCursor: a cursor goes on after the page that gave it, and is valid in its own list, with the same
// filters and for a key that sees the same, alone.
func TestCursor(t *testing.T) {
	w := fullWorld()
	for i := range 5 {
		w.purchases = append(w.purchases, &tracking.Purchase{ID: fmt.Sprint(i), Created: w.now.Add(time.Duration(i))})
	}
	server := w.serve(t)
	get := func(path, cursor, bearer string) reply {
		return do(t, request(t, "GET", server.URL+path+"&cursor="+url.QueryEscape(cursor), "", "Authorization", "Bearer "+bearer))
	}
	first := readPage(t, do(t, authorized(t, "GET", server.URL+"/v1/purchases?limit=4&merchant="+account, "")))
	if !first.More || len(first.Data) != 4 || first.Next == "" {
		t.Fatalf("got %+v", first)
	}
	if a := get("/v1/purchases?limit=2&merchant="+account, first.Next, apiKey); a.status != 200 || w.after != w.purchases[3].Mark() {
		t.Errorf("got %d %s, after %+v", a.status, a.text, w.after)
	}
	bound := w.key(t, key.Read, account)
	put := "A"
	if first.Next[30] == 'A' {
		put = "B"
	}
	changed := first.Next[:30] + put + first.Next[31:]
	for name, a := range map[string]reply{
		"of another list":     get("/v1/payments?merchant="+account, first.Next, apiKey),
		"of another merchant": get("/v1/purchases?merchant="+other, first.Next, apiKey),
		"of another key":      get("/v1/purchases?merchant="+account, first.Next, bound),
		"changed":             get("/v1/purchases?merchant="+account, changed, apiKey),
		"cut off":             get("/v1/purchases?merchant="+account, first.Next[:20], apiKey),
		"longer":              get("/v1/purchases?merchant="+account, first.Next+"AAAA", apiKey),
		"with a space":        get("/v1/purchases?merchant="+account, first.Next+" ", apiKey),
	} {
		if a.status != 422 || a.field != "cursor" {
			t.Errorf("%s: got %d %s", name, a.status, a.text)
		}
	}
	lines := do(t, authorized(t, "GET", server.URL+"/v1/purchases?limit=4&merchant="+account, "", "Accept", "application/x-ndjson"))
	_, next, _ := strings.Cut(lines.text, `{"end":true,"has_more":true,"next_cursor":"`)
	if a := get("/v1/purchases?merchant="+account, strings.TrimSuffix(next, "\"}\n"), apiKey); a.status != 200 {
		t.Errorf("as lines: %s, and then %s", lines.text, a.text)
	}
}

// TestCursor_TellsNothing: a page may end behind rows that the key does not see.
func TestCursor_TellsNothing(t *testing.T) {
	w := fullWorld()
	w.accounts = append(w.accounts, &tracking.ConnectedAccount{StripeAccount: "acct_9", Merchant: other},
		&tracking.ConnectedAccount{StripeAccount: "acct_10", Merchant: other})
	w.events = []tracking.EventRow{{ID: "evt_1", StripeAccount: "acct_9"}, {ID: "evt_secret", StripeAccount: stripeAccount},
		{ID: "evt_3", StripeAccount: "acct_10"}}
	p := readPage(t, do(t, request(t, "GET", w.serve(t).URL+"/v1/events?limit=1", "", "Authorization", "Bearer "+
		w.key(t, key.Read, other))))
	cursor, err := base64.RawURLEncoding.DecodeString(p.Next)
	if err != nil || len(p.Data) != 1 || !p.More || bytes.Contains(cursor, []byte("evt_")) ||
		bytes.Contains(cursor, []byte(stripeAccount)) {
		t.Errorf("got %+v, the cursor %q, %v", p, cursor, err)
	}
}

// TestEvents_Filters: which index is asked, and which rows of it are shown.
func TestEvents_Filters(t *testing.T) {
	w := fullWorld()
	w.accounts = append(w.accounts, &tracking.ConnectedAccount{StripeAccount: "acct_9", Merchant: other},
		&tracking.ConnectedAccount{StripeAccount: "acct_10", Merchant: other})
	at := w.now
	w.events = []tracking.EventRow{{ID: "evt_1", Type: "a.b", StripeAccount: stripeAccount, At: at},
		{ID: "evt_2", Type: "a.c", StripeAccount: "acct_9", At: at}, {ID: "evt_3", Type: "a.b", StripeAccount: "acct_9", At: at}}
	server := w.serve(t)
	none := tracking.EventQuery{Subscription: "nothing is asked"}
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		query string
		asked tracking.EventQuery
		ids   string
	}{
		{"", tracking.EventQuery{}, "evt_1 evt_2 evt_3"},
		{"?type=a.b", tracking.EventQuery{}, "evt_1 evt_3"},
		{"?merchant=" + account, tracking.EventQuery{StripeAccount: stripeAccount}, "evt_1"},
		{"?merchant=" + other, tracking.EventQuery{}, "evt_2 evt_3"}, // of two Stripe accounts
		{"?stripe_account=acct_9", tracking.EventQuery{StripeAccount: "acct_9"}, "evt_2 evt_3"},
		{"?subscription=sub_1", tracking.EventQuery{Subscription: "sub_1"}, "evt_1 evt_2 evt_3"},
		{"?subscription=sub_1&stripe_account=acct_9&type=a.c", tracking.EventQuery{Subscription: "sub_1"}, "evt_2"},
		{"?subscription=sub_1&merchant=" + account, tracking.EventQuery{Subscription: "sub_1"}, "evt_1"},
		{"?stripe_account=acct_9&merchant=" + account, none, ""},
		{"?merchant=5d1c9a52-8a0e-4b62-9f0d-2f6f5f0f6a11", none, ""},
		{"?from=2026-11-01&to=9999-12-31", tracking.EventQuery{From: day, To: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
			"evt_1 evt_2 evt_3"},
		{"?from=2026-11-01T01:00:00%2B01:00", tracking.EventQuery{From: day}, "evt_1 evt_2 evt_3"},
	} {
		p := readPage(t, do(t, authorized(t, "GET", server.URL+"/v1/events"+tt.query, "")))
		var ids []string
		for _, row := range p.Data {
			ids = append(ids, row.ID)
		}
		if tt.asked.Whole = tt.asked != none; !tt.asked.Whole {
			w.query = tt.asked
		}
		if w.query != tt.asked || strings.Join(ids, " ") != tt.ids {
			t.Errorf("%s: asked %+v, got %v", tt.query, w.query, ids)
		}
	}
}

// TestEvents_FewOfMany: a page reads a bounded number of rows, and the next one goes on behind them.
func TestEvents_FewOfMany(t *testing.T) {
	w := fullWorld()
	w.events = nil
	for i := range 25_000 {
		w.events = append(w.events, tracking.EventRow{ID: fmt.Sprint("evt_", i), Type: "a", StripeAccount: stripeAccount, At: w.now})
	}
	w.events[24_000].Type = "b"
	server := w.serve(t)
	p := readPage(t, do(t, authorized(t, "GET", server.URL+"/v1/events?type=b", "")))
	if len(p.Data) != 0 || !p.More || p.Next == "" {
		t.Fatalf("got %d rows, more: %t", len(p.Data), p.More)
	}
	_ = readPage(t, do(t, authorized(t, "GET", server.URL+"/v1/events?type=b&cursor="+p.Next, "")))
	if w.query.After != w.events[9_999].Mark() {
		t.Errorf("it goes on after %+v", w.query.After)
	}
}
