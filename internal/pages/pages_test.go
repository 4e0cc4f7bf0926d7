package pages_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
	"github.com/duesday/duesday/internal/secret"
)

// keys know one session, and one key to sign in with.
type keys struct {
	scope    key.Scope
	asked    *[]bool // of each request: whether a person makes it
	merchant string
}

const aSession, aKey = "a session", "a key"

func (k keys) SignIn(_ context.Context, text string) (secret.Text, *key.Key, error) {
	if text != aKey {
		return secret.Text{}, nil, key.ErrRefused
	}
	return secret.New(aSession), &key.Key{}, nil
}

func (k keys) Session(_ context.Context, text string, person bool) (*key.Key, error) {
	if k.asked != nil {
		*k.asked = append(*k.asked, person)
	}
	if text != aSession {
		return nil, key.ErrRefused
	}
	return &key.Key{Name: "anna", Scope: k.scope, Merchant: k.merchant}, nil
}

func (k keys) SignOut(context.Context, string) error { return nil }

// hostile is the value of every text that the API returns.
const hostile = "\"><script>alert(1)</script>\u202e\u2066'/*"

// api answers each request with an object of hostile texts, and notes the requests.
func api(asked *[]*http.Request) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		if asked != nil {
			*asked = append(*asked, r)
		}
		one := map[string]any{"amount": 1299, "currency": "EUR", "period": 3, "status": hostile, "state": "running", "found": hostile, "next": hostile}
		for _, name := range []string{"id", "account", "subscription", "sku", "email", "name", "detail", "actor", "what", "check", "note"} {
			one[name] = hostile
		}
		all := map[string]any{"data": []any{one}, "checks": []any{one}, "next_cursor": hostile}
		maps.Copy(all, one)
		sub := maps.Clone(one)
		sub["id"] = "x"
		all["purchase"], all["payments"], all["subscriptions"], all["steps"] = one, []any{one}, []any{sub}, []any{map[string]any{"about": "x", "what": hostile, "detail": hostile}}
		w.Header().Set("ETag", `"7"`)
		_ = json.NewEncoder(w).Encode(all)
	})
}

func ask(h http.Handler, method, target string, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost:8082"+target, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.AddCookie(&http.Cookie{Name: "duesday8082", Value: aSession})
	r.AddCookie(&http.Cookie{Name: "duesday", Value: aSession}) // of a name without a port
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func handler(asked *[]*http.Request) *pages.Handler {
	return pages.New(pages.Options{API: api(asked), Keys: keys{scope: key.Admin}, Hosts: []string{"pay.example.com"}, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
}

// paths are those of every page, list and action.
func paths() (all []string) {
	for _, pattern := range pages.Patterns() {
		all = append(all, regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(strings.ReplaceAll(pattern, "{$}", ""), "x"))
	}
	return all
}

// TestPages_Hostile: texts of the store stay texts on each page, and no page runs or loads anything of another
// origin. Each answer has the headers that keep browsers to that.
func TestPages_Hostile(t *testing.T) {
	h := handler(nil)
	script := regexp.MustCompile(`(?i)<script(?: [^>]*)?>`)
	for _, path := range paths() {
		w := ask(h, "GET", path, nil, nil)
		text := w.Body.String()
		if w.Code != 200 || !strings.Contains(text, "&lt;script&gt;") && path != "/settings" {
			t.Errorf("%s: %d, and no hostile text: %.300s", path, w.Code, text)
		}
		for _, tag := range script.FindAllString(text, -1) {
			if !strings.Contains(tag, `src="/static/`) {
				t.Errorf("%s: %s", path, tag)
			}
		}
		if regexp.MustCompile(`(?i)<[^>]+ (style|on[a-z]+)=|javascript:`).MatchString(text) {
			t.Errorf("%s has something inline", path)
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy has no %s: %s", path, want, csp)
			}
		}
		if w.Header().Get("Cache-Control") != "no-store" || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
}

// TestPages_Strangers: without a session, every page leads to the form, and changes nothing.
func TestPages_Strangers(t *testing.T) {
	var asked []*http.Request
	h := handler(&asked)
	none := func(r *http.Request) { r.Header.Del("Cookie") }
	for _, path := range paths() {
		for _, method := range []string{"GET", "POST"} {
			w := ask(h, method, path, url.Values{"confirm": {"yes"}}, none)
			if to := w.Header().Get("Location"); method == "GET" && (w.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/sign-in")) {
				t.Errorf("%s %s: %d to %s", method, path, w.Code, to)
			}
		}
	}
	for what, change := range map[string]func(*http.Request){
		"another host": func(r *http.Request) { r.Host = "evil.example.com" },
		"another site": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.com") },
		"cross-site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		if w := ask(h, "POST", "/accounts/a/subscriptions/s/pause", url.Values{"confirm": {"yes"}}, change); w.Code < 400 {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the API was asked %d times", len(asked))
	}
	for host, want := range map[string]int{"127.0.0.1:8082": 200, "[::1]:8082": 200, "localhost": 200, "Pay.Example.com": 200, "10.0.0.1": 421,
		"pay.example.com.evil.example": 421, "": 421} {
		if w := ask(h, "GET", "/", nil, func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("host %q: %d, want %d", host, w.Code, want)
		}
	}
}

// TestPages_Navigation: the navigation leads to endpoints and deliveries only with the scope that may see them.
func TestPages_Navigation(t *testing.T) {
	for scope, want := range map[key.Scope]bool{key.Read: false, key.Charge: false, key.Admin: true} {
		h := pages.New(pages.Options{API: api(nil), Keys: keys{scope: scope}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		text := ask(h, "GET", "/accounts", nil, nil).Body.String()
		for _, link := range []string{"/endpoints", "/deliveries"} {
			if strings.Contains(text, `<a href="`+link+`"`) != want || !strings.Contains(text, `<a href="/mails"`) {
				t.Errorf("%s: %s is there: %t", scope, link, !want)
			}
		}
	}
}

// TestSignIn: the cookie is for the pages alone, a wrong key gets none, and the next page is never elsewhere.
func TestSignIn(t *testing.T) {
	h := handler(nil)
	for next, want := range map[string]string{"/runs?kind=payments": "/runs?kind=payments", "": "/", "//evil.example.com": "/",
		"https://evil.example.com/": "/", "/\\evil.example.com": "/", "javascript:alert(1)": "/"} {
		w := ask(h, "POST", "/sign-in", url.Values{"key": {" " + aKey + "\n"}, "next": {next}}, nil)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("next %q: %d to %q", next, w.Code, w.Header().Get("Location"))
		}
		c := w.Result().Cookies()[0]
		if c.Value != aSession || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("the cookie: %+v", c)
		}
	}
	if w := ask(h, "POST", "/sign-in", url.Values{"key": {"wrong"}}, nil); w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
		t.Errorf("a wrong key: %d, %v", w.Code, w.Result().Cookies())
	}
	secure := pages.New(pages.Options{API: api(nil), Keys: keys{}, Secure: true, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	w := ask(secure, "POST", "/sign-in", url.Values{"key": {aKey}}, nil)
	if c := w.Result().Cookies()[0]; c.Name != "__Host-duesday" || !c.Secure {
		t.Errorf("behind TLS: %+v", c)
	}
}

// TestAction_Key: a second click, a reload and a second tab send the API the same idempotency key; another
// version of the object, another field and another action send another one.
func TestAction_Key(t *testing.T) {
	var asked []*http.Request
	h := handler(&asked)
	sent := func(path string, form url.Values) string {
		asked = nil
		form.Set("confirm", "yes")
		w := ask(h, "POST", "/accounts/a/subscriptions/s/"+path, form, nil)
		if w.Code != http.StatusSeeOther || len(asked) != 2 || asked[1].Method != "POST" {
			t.Fatalf("%s: %d, %d requests", path, w.Code, len(asked))
		}
		if got := asked[1].Header.Get("If-Match"); got != form.Get("version") {
			t.Errorf("If-Match is %s", got)
		}
		return asked[1].Header.Get("Idempotency-Key")
	}
	first := sent("cancel", url.Values{"version": {`"7"`}, "at_period_end": {"yes"}})
	if again := sent("cancel", url.Values{"version": {`"7"`}, "at_period_end": {"yes"}}); again != first || !strings.HasPrefix(first, "page-") {
		t.Errorf("the same form: %s and %s", first, again)
	}
	for what, other := range map[string]string{
		"version": sent("cancel", url.Values{"version": {`"8"`}, "at_period_end": {"yes"}}),
		"field":   sent("cancel", url.Values{"version": {`"7"`}}),
		"action":  sent("pause", url.Values{"version": {`"7"`}}),
	} {
		if other == first {
			t.Errorf("another %s has the same key", what)
		}
	}
	asked = nil
	if w := ask(h, "POST", "/accounts/a/subscriptions/s/cancel", url.Values{"version": {`"7"`}, "at_period_end": {"yes"}}, nil); w.Code != 200 ||
		!strings.Contains(w.Body.String(), "duesday subscription cancel a/s --at-period-end") {
		t.Errorf("what will change: %d %s", w.Code, w.Body)
	}
	for _, r := range asked {
		if r.Method != "GET" && !strings.HasSuffix(r.URL.Path, "/preview") {
			t.Errorf("showing what will change sent %s %s", r.Method, r.URL)
		}
	}
}

// TestAction_Form: a form says whether charging is on or off, and its button promises to show what will change only if
// there is a preview.
func TestAction_Form(t *testing.T) {
	for charging, want := range map[bool]string{true: "on", false: "off"} {
		api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"charging": charging, "reason": "holiday"})
		})
		h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Admin}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		for path, button := range map[string]string{"/installation/charging-on": "Continue to the confirmation",
			"/accounts/a/card-link": "Continue to the confirmation", "/accounts/a/subscriptions/s/cancel": "Show what will change",
			"/accounts/a/receipts/r/refund": "Show what will change"} {
			text := ask(h, "GET", path, nil, nil).Body.String()
			if !strings.Contains(text, `<button class="main">`+button+`</button>`) {
				t.Errorf("%s: no button %s: %s", path, button, text)
			}
			if !strings.Contains(text, `<dt>charging</dt><dd dir="auto">`+want+`</dd>`) {
				t.Errorf("%s: charging is not said to be %s: %s", path, want, text)
			}
		}
	}
}

// TestRefresh: the page of a run under way reloads itself with a query, and such a request does not prolong the session.
func TestRefresh(t *testing.T) {
	var persons []bool
	h := pages.New(pages.Options{API: api(nil), Keys: keys{scope: key.Read, asked: &persons}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	text := ask(h, "GET", "/runs/r", nil, nil).Body.String()
	if !strings.Contains(text, `content="5;url=?refresh=1"`) || !strings.Contains(text, `data-refresh="5"`) {
		t.Errorf("the page does not reload itself: %s", text)
	}
	ask(h, "GET", "/runs/r?refresh=1", nil, nil)
	script := regexp.MustCompile(`/static/script\.[0-9a-f]{16}\.js`).FindString(text)
	if w := ask(h, "GET", script, nil, nil); !strings.Contains(w.Body.String(), `location.replace("?refresh=1")`) || strings.Contains(w.Body.String(), "reload()") {
		t.Errorf("the script reloads without the query: %s", w.Body)
	}
	if want := []bool{true, false}; !slices.Equal(persons, want) {
		t.Errorf("a person, and then the page: %v", persons)
	}
}

// TestStatic: the names of the files follow their texts, so browsers keep them for ever. They are small.
func TestStatic(t *testing.T) {
	page := ask(handler(nil), "GET", "/", nil, nil).Body.String()
	for file, most := range map[string]int{"style": 20 << 10, "script": 15 << 10, "icon": 1 << 10} {
		name := regexp.MustCompile(`/static/` + file + `\.[0-9a-f]{16}\.[a-z]+`).FindString(page)
		w := ask(handler(nil), "GET", name, nil, func(r *http.Request) { r.Header.Del("Cookie") })
		if w.Code != 200 || w.Body.Len() > most || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, %d bytes, %v", name, w.Code, w.Body.Len(), w.Header())
		}
	}
	if w := ask(handler(nil), "GET", "/static/style.0000000000000000.css", nil, nil); w.Code != http.StatusNotFound {
		t.Errorf("an old name: %d", w.Code)
	}
}

// TestTemplates_Fields: each field that a template shows is one of the API's, or of the pages' own data. So is each name
// in a list, and those of a run are members of the API's Run.
func TestTemplates_Fields(t *testing.T) {
	spec, err := os.ReadFile("../openapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z][a-z0-9_]*)": ?\{`).FindAllStringSubmatch(string(spec), -1) {
		known[m[1]] = true
	}
	for own := range strings.FieldsSeq(pages.OwnFields) {
		known[own] = true
	}
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(spec, &document); err != nil {
		t.Fatal(err)
	}
	run := document.Components.Schemas["Run"].Properties
	err = fs.WalkDir(os.DirFS("templates"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile("templates/" + path)
		for _, action := range regexp.MustCompile(`\{\{[^}]*\}\}`).FindAllString(string(text), -1) {
			for _, m := range regexp.MustCompile(`\blist((?: "[^"]*")+)`).FindAllStringSubmatch(action, -1) {
				for name := range strings.FieldsSeq(strings.ReplaceAll(m[1], `"`, "")) {
					if ofRun := path == "run.html" || path == "part_balance.html"; !known[name] || ofRun && run[name] == nil {
						t.Errorf("%s: %s in a list is no field", path, name)
					}
				}
			}
			for _, m := range regexp.MustCompile(`(?:[^\w)]|\$\w*)\.([a-z][a-z0-9_]*)`).FindAllStringSubmatch(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(action, ""), -1) {
				if !known[m[1]] {
					t.Errorf("%s: %s is no field", path, m[1])
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPages_Values: an ID with the signs of a query reaches the API whole.
func TestPages_Values(t *testing.T) {
	var asked []*http.Request
	ask(handler(&asked), "GET", "/accounts/a&b=c+d%3F/receipts/r", nil, nil)
	if len(asked) != 1 || asked[0].URL.Query().Get("account") != "a&b=c+d?" {
		t.Errorf("asked %v", asked[0].URL)
	}
}

// TestAction_Twice: a refund whose first click was done is shown as done, although the receipt has changed since. If
// another request has changed it, nothing is sent.
func TestAction_Twice(t *testing.T) {
	refunds, posts := 0, map[string]int{}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "POST":
			posts[r.Header.Get("Idempotency-Key")]++
			refunds++
		case r.URL.Path == "/v1/refunds":
			data := []any{}
			if posts[r.URL.Query().Get("idempotency_key")] > 0 {
				data = append(data, map[string]any{"id": "r"})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "1", "currency": "EUR", "amount": 1000, "refunded": refunds, "subscription": "s", "period": 1})
	})
	h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Admin}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	const path = "/accounts/a/receipts/1/refund"
	version := func() string {
		m := regexp.MustCompile(`name="version" value="([0-9a-f]{32})"`).FindStringSubmatch(ask(h, "GET", path, nil, nil).Body.String())
		if m == nil {
			t.Fatal("the form has no version")
		}
		return m[1]
	}
	form := url.Values{"amount": {"5.00"}, "version": {version()}, "confirm": {"yes"}}
	for click := range 3 {
		if w := ask(h, "POST", path, form, nil); w.Code != http.StatusSeeOther {
			t.Errorf("click %d: %d %s", click+1, w.Code, w.Body)
		}
	}
	if len(posts) != 1 {
		t.Errorf("requests: %v", posts)
	}
	stale := url.Values{"amount": {"4.00"}, "version": {form.Get("version")}, "confirm": {"yes"}}
	if w := ask(h, "POST", path, stale, nil); w.Code != http.StatusPreconditionFailed || len(posts) != 1 {
		t.Errorf("a form from before: %d, %v", w.Code, posts)
	}
	again := url.Values{"amount": {"5.00"}, "version": {version()}, "confirm": {"yes"}} // on purpose
	if w := ask(h, "POST", path, again, nil); w.Code != http.StatusSeeOther || len(posts) != 2 {
		t.Errorf("another refund: %d, %v", w.Code, posts)
	}
}

// TestAction_Running: while the first click is under way, the form keeps its version, so that sending it again is the
// same request. After another refusal it has the version of now.
func TestAction_Running(t *testing.T) {
	for code, want := range map[string]string{"in_progress": `&#34;7&#34;`, "state": `&#34;8&#34;`} {
		api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"8"`)
			if r.Method == "POST" {
				w.WriteHeader(http.StatusConflict)
				_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "title": "no", "status": 409})
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"id": "s"})
		})
		h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Admin}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		w := ask(h, "POST", "/accounts/a/subscriptions/s/charge", url.Values{"version": {`"7"`}, "confirm": {"yes"}}, nil)
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `name="version" value="`+want+`"`) {
			t.Errorf("%s: %d %s", code, w.Code, w.Body)
		}
	}
}

// TestCSV: amounts are decimals, a formula stays a text, and a list that could not be read to its end says so.
func TestCSV(t *testing.T) {
	lines := `{"id":"=1+1","account":"a","sku":"s","status":"active","amount":1299,"currency":"EUR"}` + "\n"
	for end, want := range map[string]string{`{"end":true}` + "\n": "", "": "INCOMPLETE: the list could not be read to its end\n",
		`{"type":"x","title":"The server is unavailable","status":503}` + "\n": "INCOMPLETE: the list could not be read to its end\n"} {
		api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, part := range []string{lines[:30], lines[30:], end} {
				_, _ = io.WriteString(w, part)
			}
		})
		h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Read}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		w := ask(h, "GET", "/subscriptions?csv=1", nil, nil)
		want = "id,account,sku,status,amount,due_date,email,currency\n'=1+1,a,s,active,12.99,,,EUR\n" + want
		if w.Body.String() != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("ended by %q: %s", end, w.Body)
		}
	}
}

// overview renders today's page for the overview and status of the API, in JSON.
func overview(t *testing.T, overview, status string) string {
	t.Helper()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := map[string]string{"/v1/overview": overview, "/v1/status": status}[r.URL.Path]
		_, _ = io.WriteString(w, cmp.Or(text, `{"data": []}`))
	})
	h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Read}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	w := ask(h, "GET", "/", nil, nil)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestToday_Balance: each outcome of the day has its label, count and amounts, and the first row is their sum. The page
// says of how many runs they are.
func TestToday_Balance(t *testing.T) {
	row := func(cells ...string) string {
		return "<tr><td>" + strings.Join(cells, `</td><td class="money">`) + "</td></tr>"
	}
	const run = `{"id": "r", "kind": "payments", "state": "completed", "due": 6, "paid": 2, "retry": 1, "pending": 2, "pending_customer": 1, "parked": 1, "amounts": {"EUR": 2598}`
	text := overview(t, `{"date": "2027-01-31", "runs_today": 2, "payments_today": `+run+`, "amounts_unpaid": {"retry": {"EUR": 500}, "pending": {"EUR": 300, "GBP": 100},
		"pending_customer": {"EUR": 300}, "parked": {"EUR": 1}}}}`, `{}`)
	for _, want := range []string{row("all that was due", "6", "33.99 EUR · 1.00 GBP"), row("paid", "2", "25.98 EUR"), row("declined, to be tried again", "1", "5.00 EUR"),
		row("waiting for the customer or the processor", "2", "3.00 EUR · 1.00 GBP"), row("of these, waiting for the customer", "1", "3.00 EUR"),
		row("parked, waiting for you", "1", "0.01 EUR"), "From today&#39;s 2 runs."} {
		if !strings.Contains(strings.ReplaceAll(text, "'", "&#39;"), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	text = overview(t, `{"date": "2027-01-31", "runs_today": 1, "payments_today": `+run+`}}`, `{}`)
	if !strings.Contains(text, row("all that was due", "6", "")) || !strings.Contains(text, row("paid", "2", "25.98 EUR")) || strings.Contains(text, "From today") {
		t.Errorf("a run of an older build: %s", text)
	}
}

// TestToday_Checks: the page says that every check passes only if it lists none, and marks only commands as commands.
func TestToday_Checks(t *testing.T) {
	for _, x := range []struct {
		state, next string
		ok          bool
		want        string // of the next step
	}{
		{"ok", "", true, ""},
		{"warning", "start serve with --smtp URL, or with --mail FOLDER if you want mail in a folder", true,
			"<p>Next: start serve with --smtp URL, or with --mail FOLDER if you want mail in a folder</p>"},
		{"wrong", "to see why, run: duesday run list; to continue, run: duesday run payments --store 'pebble:a, b'", false,
			`<p>Next: to see why, run: <code class="copy">duesday run list</code>; to continue, run: <code class="copy">duesday run payments --store &#39;pebble:a, b&#39;</code></p>`},
		{"wrong", "duesday verify lists them; correct them", false, "<p>Next: duesday verify lists them; correct them</p>"},
		{"unknown", "to send or delete them, run: duesday outbox release --smtp a,b, or duesday outbox drop", false,
			`<p>Next: to send or delete them, run: <code class="copy">duesday outbox release --smtp a,b</code>, or duesday outbox drop</p>`},
	} {
		status, _ := json.Marshal(map[string]any{"ok": x.ok, "checks": []any{map[string]any{"check": "mail", "state": x.state, "found": "f", "next": x.next}}})
		text := overview(t, `{"date": "2027-01-31"}`, string(status))
		if all := strings.Contains(text, "Every check"); all != (x.state == "ok") || !strings.Contains(text, x.want) {
			t.Errorf("%s %s: every check passes is %t: %s", x.state, x.next, all, text)
		}
	}
}

// TestToday_Links: a check that a page helps with has a link to it, and payments that wait have one to their run.
func TestToday_Links(t *testing.T) {
	for found, want := range map[[2]string]string{
		{"charging", "off: x"}:                            `href="/installation/charging-on"`,
		{"payments", "broken off, started today: 3 due"}:  `href="/runs/payments"`,
		{"reminders", "broken off, started today: 3 due"}: `href="/runs/reminders"`,
		{"payments", "none of 20 payments succeeded"}:     `href="/runs?kind=payments"`,
		{"mail", "3 given up"}:                            `href="/mails?state=given_up"`,
		{"events", "1 given up"}:                          `href="/events?status=dead"`,
		{"endpoints", "messages to ep_x were given up"}:   `href="/endpoints"`,
		{"accounts", "1 of 2 not verified"}:               `href="/merchants"`,
		{"waiting", "0 unreadable, 2 parked, 1 pending"}:  `href="/subscriptions?status=parked"`,
		{"waiting", "periods that may be paid twice: 1"}:  "",
		{"deliveries", "the oldest row has waited for 2"}: `href="/deliveries?state=waiting"`,
	} {
		status, _ := json.Marshal(map[string]any{"checks": []any{map[string]any{"check": found[0], "state": "wrong", "found": found[1], "next": "n"}}})
		text := overview(t, `{"date": "2027-01-31", "days": [{"date": "2027-01-30", "currency": "EUR", "collected": 1}]}`, string(status))
		if link := regexp.MustCompile(`<a class="button" (href="[^"]*")>`).FindStringSubmatch(text); (link == nil) != (want == "") || link != nil && link[1] != want {
			t.Errorf("%v: %v", found, link)
		}
	}
	for pending, want := range map[string]bool{"3": true, "0": false} {
		text := overview(t, `{"date": "2027-01-31", "run": {"id": "r1", "date": "2027-01-30", "due": 4, "pending": `+pending+`}}`, `{}`)
		if strings.Contains(text, `<a class="button" href="/runs/r1">`) != want {
			t.Errorf("%s waiting: %s", pending, text)
		}
	}
}

// TestToday_CheckPages: the names and texts of the checks are those of package status, and each link is to a page.
func TestToday_CheckPages(t *testing.T) {
	var source strings.Builder
	files, err := os.ReadDir("../status")
	for _, f := range files {
		text, wrong := os.ReadFile("../status/" + f.Name())
		err = errors.Join(err, wrong)
		if !strings.HasSuffix(f.Name(), "_test.go") {
			source.Write(text)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages.CheckPages() {
		if !strings.Contains(source.String(), `{"`+p[0]+`", `) || !strings.Contains(source.String(), p[1]) {
			t.Errorf("no check %s finds %q", p[0], p[1])
		}
		if w := ask(handler(nil), "GET", p[2], nil, nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d", p[2], w.Code)
		}
	}
}

// TestToday_Outside: the table of the chart has a column for manual payments.
func TestToday_Outside(t *testing.T) {
	text := overview(t, `{"date": "2027-01-31", "days": [{"date": "2027-01-30", "currency": "EUR", "collected": 950, "outside": 725, "recovered": 950, "failed": 0}]}`, `{}`)
	if !strings.Contains(text, `<th scope="col" class="money">outside</th>`) || !strings.Contains(text, `<td class="money">7.25 EUR</td>`) {
		t.Errorf("no column of manual payments: %s", text)
	}
}

// TestToday_Hints: each part says of when it is, and what is left out of it.
func TestToday_Hints(t *testing.T) {
	text := overview(t, `{"date": "2027-01-31", "as_of": "2027-01-31T09:00:00.000Z", "past_as_of": "2027-01-31T08:10:00.000Z", "complete": true,
		"outlook": {"as_of": "2027-01-31T06:12:00.000Z", "subscriptions": 7, "unreadable": 2}}`, `{"ok": true, "as_of": "2027-01-31T08:59:30.000Z", "checks": []}`)
	for _, want := range []string{"Checks as of 2027-01-31 08:59:30 UTC", "Days before today as of 2027-01-31 08:10:00 UTC", "from 7 subscriptions. 2 more are left out"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// TestToday_Run: the API decides whether the payments of today have been run. The date of a run is a UTC day.
func TestToday_Run(t *testing.T) {
	const run, not = `{"id": "r", "kind": "payments", "state": "completed", "date": "2027-01-30", "due": 1, "paid": 1}`, "have not been run"
	if text := overview(t, `{"date": "2027-01-31", "time_zone": "Asia/Tokyo", "run": `+run+`, "payments_today": `+run+`}`, `{}`); strings.Contains(text, not) {
		t.Errorf("after today's run: %s", text)
	}
	if text := overview(t, `{"date": "2027-01-30", "time_zone": "UTC", "run": `+run+`}`, `{}`); !strings.Contains(text, not) {
		t.Errorf("before today's run: %s", text)
	}
}
