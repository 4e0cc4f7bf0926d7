package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/test/spectest"
	"github.com/duesday/duesday/internal/web"
)

// An operation is one of openapi.json.
type operation struct {
	web.Route
	method, path string
	parameters   openapi3.Parameters
	body         *openapi3.MediaType // nil: none
}

// A sent is a request as it goes over the wire.
type sent struct {
	op                 *operation // nil: openapi.json has none
	values             map[string]string
	method, target     string
	header             []string // lines
	body               []byte
	who                caller
	account            string // that it names
	idempotent, repeat bool
}

// A generator makes requests from openapi.json: valid ones, and ones that are wrong in some places.
type generator struct {
	*rand.Rand
	w     *world
	ops   []*operation
	known map[string][]map[string]string // values that go together, by the last name
	tags  map[string]string              // ETags by path
	pages []*sent                        // that ask for the next page of a list
	keys  []string                       // idempotency keys
	last  []*sent                        // for repetitions
	n     int
	wild  bool // the request may be wrong
}

func newGenerator(w *world, spec *spectest.Spec, seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 28)), w: w, known: map[string][]map[string]string{}, tags: map[string]string{}}
	for path, item := range spec.Doc.Paths.Map() {
		for method, op := range item.Operations() {
			o := &operation{Route: spec.Route(op.OperationID), method: method, path: path, parameters: op.Parameters}
			if op.RequestBody != nil {
				o.body = op.RequestBody.Value.Content["application/json"]
			}
			g.ops = append(g.ops, o)
		}
	}
	slices.SortFunc(g.ops, func(a, b *operation) int { return strings.Compare(a.Operation, b.Operation) })
	return g
}

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// wrong is true now and then in a request that may be wrong.
func (g *generator) wrong(percent int) bool { return g.wild && g.chance(percent) }

// hostile is a text that somebody might send.
func (g *generator) hostile() string {
	if g.chance(10) {
		b := make([]byte, g.IntN(300))
		for i := range b {
			b[i] = byte(g.IntN(256))
		}
		return string(b)
	}
	return pick(g, "Canary-7", "a Canary 7", "canary@example.com", "CANARY", "", "a", "0", "-1", "1e9", "1001", "99999999999999999999", "null", "{}", "..", "../..",
		"%2e%2e", "a/b", "a%00b", "a\x00b", "é", "\u202e", "\ufffd", "#", "ACC#1", "?&=", "4242424242424242", "sk_live_4711", "9999-12-31", "10000-01-01", "0001-01-01",
		"2027-02-30", "2027-13-01", "-2027-01-01", "2026-11-21T12:00:00+99:99", strings.Repeat("9", 5000), strings.Repeat("é", 129), "\x1b[31m", "<script>", "'; --",
		merchant, otherMerchant, strings.ToUpper(merchant), "true", "day", "eur", "XXX", "XAU", "Canary/Berlin", "acct_canary", "pm_canary")
}

func (g *generator) day(from, to int) string {
	return g.w.now().AddDate(0, 0, from+g.IntN(to-from+1)).Format(time.DateOnly)
}

func (g *generator) fresh() int { g.n++; return g.n }

// named returns a valid value of the name in the operation, or nil if only its schema says what is valid.
func (g *generator) named(name string, o *operation) any {
	switch name {
	case "account", "subscription":
		return g.tuple(name)[name]
	case "email":
		return pick(g, "ada@example.com", "bob@example.com", fmt.Sprintf("canary%d@example.com", g.IntN(50)))
	case "name":
		if o.Operation == "createKey" {
			return fmt.Sprint("key.", g.IntN(1000))
		}
		return pick(g, "Ada Canary", "Bob", "Zoë")
	case "sku":
		return pick(g, "gym", "swim", "gold-2")
	case "currency":
		return pick(g, "EUR", "EUR", "EUR", "USD", "JPY", "KWD")
	case "amount":
		return 100 + g.IntN(9000)
	case "payment_day":
		return 1 + g.IntN(pick(g, 7, 28, 31))
	case "interval":
		return pick(g, "week", "month", "quarterly", "year", "2 weeks", "6 months")
	case "payment_method", "fallback_payment_method":
		if strings.HasPrefix(o.path, "/v1/purchases") {
			return pick(g, "pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclined")
		}
		return pick(g, "pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_mastercard", "pm_card_visa_chargeDeclined", "pm_card_visa_chargeDeclinedLostCard",
			"pm_card_authenticationRequired", "pm_sandbox_processing", "pm_card_pendingRefund")
	case "time_zone":
		return pick(g, "UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati")
	case "locale":
		return pick(g, "de", "en-GB", "pt-BR")
	case "start_date", "next_payment_date", "until":
		if o.Operation == "replayDeliveries" {
			return nil
		}
		return g.day(0, 40)
	case "from":
		if o.Operation == "getReport" {
			return g.w.now().AddDate(0, -g.IntN(3), 0).Format("2006-01")
		}
		if o.Operation == "replayDeliveries" {
			return nil
		}
		return g.day(-20, 40)
	case "to":
		if strings.HasPrefix(o.path, "/v1/report") {
			return g.w.now().Format("2006-01")
		}
		return g.day(0, 40)
	case "date":
		return g.day(-10, 10*strings.Count(o.path, "due"))
	case "merchant":
		return pick(g, merchant, merchant, otherMerchant)
	case "id":
		switch o.Operation {
		case "createMerchant":
			return pick(g, merchant, otherMerchant)
		case "createAccount", "createSubscription", "previewSubscription":
			return fmt.Sprint(o.Operation[6:9], g.fresh())
		}
		return g.tuple("message")["message"]
	case "stripe_account":
		return pick(g, "acct_shop", "acct_other", "acct_third")
	case "price":
		return pick(g, "price_1", "gold21323")
	case "url":
		return g.w.hook + pick(g, "/ok", "/ok", "/fail")
	case "types":
		return pick(g, []any{}, []any{"period.*"}, []any{"receipt.created"}, []any{"run.*", "dispute.lost"})
	case "expires_at":
		return g.w.now().AddDate(0, 0, 1+g.IntN(100)).Format("2006-01-02T15:04:05.000Z")
	case "customer":
		return pick(g, "cus_1", "cus_2")
	case "idempotency_key":
		if len(g.keys) > 0 {
			return pick(g, g.keys...)
		}
	case "cursor":
		return "Canary"
	case "endpoint", "run", "key", "purchase", "payment", "event", "job", "number":
		return g.tuple(name)[name]
	case "limit":
		return pick(g, 1, 2, 5, 1000)
	case "period":
		return g.IntN(4)
	case "daily", "alarm_at", "operator", "sender", "reply_to":
		return map[string]any{"daily": []any{"06:10", "18:00"}, "alarm_at": "09:00", "operator": "op@example.com", "sender": "Gym <office@gym.example>",
			"reply_to": "reply@example.com"}[name]
	case "products":
		return map[string]any{pick(g, "gym", "swim"): pick(g, "Gym", "Canary", "")}
	case "ended_by":
		return []any{"unpaid"}
	}
	return nil
}

// tuple returns values that go together, of an object that there is or was.
func (g *generator) tuple(last string) map[string]string {
	all := g.known[last]
	if len(all) == 0 {
		return map[string]string{last: "none"}
	}
	return all[g.IntN(len(all))]
}

// learn remembers values that go together.
func (g *generator) learn(last string, pairs ...string) {
	v := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		v[pairs[i]] = pairs[i+1]
	}
	if all := g.known[last]; len(all) < 60 {
		g.known[last] = append(all, v)
	} else {
		all[g.IntN(60)] = v
	}
}

// valid returns a value of the schema.
func (g *generator) valid(name string, s *openapi3.Schema, o *operation) any {
	if len(s.Enum) > 0 {
		return pick(g, s.Enum...)
	}
	if v := g.named(name, o); v != nil {
		return v
	}
	switch {
	case s.Type.Is("boolean"):
		return g.chance(50)
	case s.Type.Is("integer"):
		low, high := 0, 400
		if s.Min != nil {
			low = int(*s.Min)
		}
		if s.Max != nil {
			high = int(min(*s.Max, float64(low+400)))
		}
		return low + g.IntN(high-low+1)
	case s.Type.Is("array"):
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.valid("", s.Items.Value, o))
		}
		return list
	case s.Type.Is("object"):
		return g.object(s, o)
	case s.Format == "date":
		return g.day(-20, 40)
	case s.Format == "date-time":
		return g.w.now().AddDate(0, 0, -g.IntN(20)).Format("2006-01-02T15:04:05.000Z")
	}
	return pick(g, "text", "Canary text", "ä")
}

// object returns a valid object with the required members and some others.
func (g *generator) object(s *openapi3.Schema, o *operation) map[string]any {
	v := map[string]any{}
	optional := pick(g, 5, 20, 40)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) || g.chance(optional) {
			v[name] = g.valid(name, s.Properties[name].Value, o)
		}
	}
	if len(v) == 0 && s.MinProps > 0 {
		name := pick(g, slices.Sorted(maps.Keys(s.Properties))...)
		v[name] = g.valid(name, s.Properties[name].Value, o)
	}
	return v
}

// fit makes the members agree with each other and with the path, as openapi.json says in words only.
func (g *generator) fit(v map[string]any, o *operation, path map[string]string) {
	with := func(a, b string) {
		if v[a] != nil && v[b] == nil {
			v[b] = g.named(b, o)
		}
	}
	if o.body.Schema.Value.Properties["amount"] != nil && o.Operation != "createPurchase" {
		if with("amount", "currency"); g.chance(90) {
			with("currency", "amount")
		}
	}
	switch o.Operation {
	case "eraseAccount":
		if g.chance(30) { // later requests need accounts, too
			v["confirm"] = path["account"]
		}
	case "createSubscription", "previewSubscription":
		if v["trial_days"] == nil {
			with("sku", "payment_day")
		} else {
			delete(v, "payment_day")
		}
		if v["start_date"] != nil || v["next_payment_date"] != nil && g.chance(80) {
			delete(v, "trial_days")
			with("sku", "payment_day")
		}
		if g.chance(70) {
			v["payment_method"] = "pm_card_visa"
			v["currency"] = "EUR"
		}
		if g.chance(70) { // they must be the account's
			for _, name := range []string{"customer", "name", "locale", "time_zone", "fallback_payment_method"} {
				delete(v, name)
			}
		}
	case "createRefund":
		if path["account"] != "" {
			v["account"] = path["account"]
		}
		v["currency"] = "EUR"
		if v["amount"] = 1 + g.IntN(100); g.chance(30) {
			delete(v, "currency")
			delete(v, "amount")
		}
	case "chargePeriod":
		delete(v, "period")
	case "updateSubscription":
		if g.chance(90) {
			delete(v, "paid_once")
		}
		if len(v) == 0 {
			v["reminder_days"] = 3
		}
	case "attachPaymentMethod":
		if g.chance(70) {
			delete(v, "customer")
			delete(v, "connected_account")
			delete(v, "application_fee")
			v["payment_method"] = g.named("payment_method", o)
		}
	case "skipPeriod":
		if g.chance(80) {
			v["until"] = g.day(30, 300)
		}
	case "createReceipt":
		if g.chance(60) {
			maps.DeleteFunc(v, func(name string, _ any) bool { return name != "note" })
		}
	case "cancelSubscription":
		if g.chance(50) {
			v["at_period_end"] = true
			delete(v, "collect")
		}
		if v["collect"] == true {
			delete(v, "at_period_end")
		}
	case "createPurchase":
		for _, name := range []string{"amount", "currency", "price", "payments", "payment_method", "email", "customer"} {
			delete(v, name)
		}
		if v["kind"] == "legacy" || v["kind"] == "product" {
			v["amount"], v["currency"] = 100+g.IntN(900), "EUR"
		} else {
			v["price"] = "price_1"
		}
		if v["kind"] == "split" {
			v["payments"] = 2
		}
		if v["kind"] != "legacy" {
			v["payment_method"], v["email"] = g.named("payment_method", o), g.named("email", o)
		}
		v["merchant"] = g.named("merchant", o)
	case "createKey":
		if g.chance(80) {
			delete(v, "merchant")
		}
	case "setCharging":
		if v["charging"] = g.chance(80); g.chance(95) {
			delete(v, "accept_other_installation")
		}
	}
}

// spoil makes members wrong.
func (g *generator) spoil(v map[string]any, s *openapi3.Schema) {
	names := slices.Sorted(maps.Keys(s.Properties))
	for more := true; more; more = g.chance(30) {
		name := "canary"
		if len(names) > 0 {
			name = pick(g, names...)
		}
		of := s.Properties[name]
		switch how := g.IntN(6); {
		case how == 0 || of == nil:
			v[pick(g, "canary", "Canary field", "Account", "__proto__", "key", "")] = pick[any](g, "Canary", 4711471147, nil, true)
		case how == 1:
			delete(v, name)
		case how == 2:
			v[name] = nil
		case how == 3 && of.Value.Type.Is("integer"):
			v[name] = pick[any](g, -1, 0, math.MaxInt64, math.MinInt64, json.Number("99999999999999999999"), json.Number("1e3"), json.Number("1E400"), 1.5, 4711471147,
				json.Number("-0"))
		case how == 3 && of.Value.Type.Is("string") && of.Value.MaxLength != nil && g.chance(40):
			v[name] = strings.Repeat(pick(g, "a", "é", "Canary"), int(*of.Value.MaxLength)/pick(g, 1, 2)+1)
		case how == 3 || how == 4:
			v[name] = g.hostile()
		default:
			v[name] = pick[any](g, "Canary-4", 4711471147, 0.1, true, false, []any{}, []any{"Canary"}, []any{nil}, map[string]any{}, map[string]any{"canary": 1}, "")
		}
		if inner, ok := v[name].([]any); ok && len(inner) > 0 && g.chance(40) {
			if member, ok := inner[0].(map[string]any); ok && of.Value.Items != nil {
				g.spoil(member, of.Value.Items.Value)
			}
		}
	}
}

// text returns the body as it is sent.
func (g *generator) text(v map[string]any) []byte {
	text, _ := json.Marshal(v) // the values have a JSON form
	if !g.wrong(12) {
		return text
	}
	switch pick(g, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9) {
	case 0:
		return text[:g.IntN(len(text))]
	case 1: // a member twice
		if len(v) > 0 {
			name, _ := json.Marshal(slices.Sorted(maps.Keys(v))[0])
			return slices.Concat(text[:len(text)-1], []byte(","), name, []byte(`:"Canary"}`))
		}
		return []byte(`{"canary":1,"canary":2}`)
	case 2:
		deep := pick(g, 3, 7, 8, 100, 20_000)
		return fmt.Appendf(nil, `{"canary":%s1%s}`, strings.Repeat("[", deep), strings.Repeat("]", deep))
	case 3:
		i := g.IntN(len(text))
		text[i] = byte(g.IntN(256))
		return text
	case 4:
		return []byte(pick(g, "", " ", "null", "[]", "1", `"Canary"`, "{}", "Canary", "{}{}", "{} Canary", "\ufeff{}", "{\"a\":\"\xff\"}", "{\"a\":\"\\ud800\"}", "{\"\\u0000\":1}"))
	case 5:
		return append([]byte("["), append(text, ']')...)
	case 6:
		if g.chance(20) {
			return append(text[:len(text)-1], bytes.Repeat([]byte(" "), web.MaxForm+pick(g, -len(text), 0, 1, 100_000))...)
		}
		return append(text, '}')
	case 7:
		return bytes.Replace(text, []byte(`"`), []byte("\"\\u0043anary"), 1)
	case 8:
		return bytes.ReplaceAll(text, []byte(":"), []byte(" :\r\n\t "))
	}
	return bytes.ToUpper(text)
}

// query returns the query string of the operation.
func (g *generator) query(o *operation) string {
	q := url.Values{}
	for _, p := range o.parameters {
		if x := p.Value; x.In == openapi3.ParameterInQuery && x.Name != "cursor" && (x.Required && !g.wrong(5) || g.chance(25)) {
			v := fmt.Sprint(g.valid(x.Name, x.Schema.Value, o))
			if g.wrong(20) {
				v = g.hostile()
			}
			if q.Add(x.Name, v); g.wrong(3) {
				q.Add(x.Name, v)
			}
		}
	}
	if g.wrong(5) {
		q.Add(pick(g, "canary", "Limit", "x", "cursor", "", "limit", "merchant"), g.hostile())
	}
	text := q.Encode()
	if g.wrong(2) {
		text += pick(g, "&%zz", ";", "&a=%", "&&&", "&=x", "&canary")
	}
	if text == "" {
		return ""
	}
	return "?" + text
}

// path fills in the path of the operation.
func (g *generator) path(o *operation) (path string, values map[string]string) {
	path, values = o.path, map[string]string{}
	var names []string
	for _, p := range o.parameters {
		if p.Value.In == openapi3.ParameterInPath {
			names = append(names, p.Value.Name)
		}
	}
	for _, name := range []string{"number", "period", "subscription", "payment", "account"} { // the most specific one first
		if slices.Contains(names, name) {
			maps.Copy(values, g.tuple(name))
			break
		}
	}
	for _, name := range names {
		v := values[name]
		if v == "" {
			v = fmt.Sprint(g.named(name, o))
		}
		if g.wrong(8) {
			v = g.hostile()
		} else if g.wrong(5) {
			v = fmt.Sprint("unknown", g.IntN(9))
		}
		values[name] = v
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(v), 1)
	}
	return path, values
}

// next returns the next request. About half of the requests have nothing wrong.
func (g *generator) next() *sent {
	if g.wild = g.chance(55); len(g.last) > 20 && g.chance(4) {
		again := *pick(g, g.last...)
		again.repeat = true
		if g.chance(20) {
			again.who = pick(g, g.w.callers...)
		}
		return &again
	}
	o := pick(g, g.ops...)
	r := &sent{op: o, method: o.method}
	var path string
	path, r.values = g.path(o)
	r.target = path + g.query(o)
	if o.method == http.MethodGet && len(g.pages) > 0 && g.chance(5) {
		*r = *pick(g, g.pages...)
		o = r.op
	}
	r.account = r.values["account"]
	if o.body != nil {
		v := g.object(o.body.Schema.Value, o)
		if g.fit(v, o, r.values); g.wrong(45) {
			g.spoil(v, o.body.Schema.Value)
		}
		r.body = g.text(v)
		var sent map[string]any // g.text may have damaged a value
		_ = json.Unmarshal([]byte(r.body), &sent)
		if text, ok := sent[map[string]string{"createAccount": "id", "createRefund": "account"}[o.Operation]].(string); ok {
			r.account = text
		}
	}
	g.headers(r, path)
	if g.wrong(3) {
		r.op = nil
		if g.chance(50) {
			r.method = pick(g, "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD", "CANARY")
			if i := slices.IndexFunc(g.ops, func(x *operation) bool { return x.method == r.method && x.path == o.path }); i >= 0 {
				if r.op = g.ops[i]; r.op.body == nil {
					r.body = nil
				}
			}
		} else {
			r.target = pick(g, "/v1", "/v1/", "/v1//accounts", "/v1/canary", "/v2/accounts", "/", "/docs", "/openapi.json", "/metrics", "/healthz", "/readyz", "/v1/../metrics",
				"/hooks/stripe", "/hooks/poll", "*", path+"/", path+"/canary", strings.ToUpper(path), "//"+path)
		}
	}
	if g.last = append(g.last, r); len(g.last) > 60 {
		g.last = g.last[1:]
	}
	return r
}

// headers adds the caller and the other headers.
func (g *generator) headers(r *sent, path string) {
	add := func(name, value string) { r.header = append(r.header, name+": "+value) }
	enough := func(c caller) bool { return c.scope.Includes(r.op.Scope) && (c.merchant == "" || r.op.Merchants) }
	for r.who = pick(g, g.w.callers...); !enough(r.who) && !g.chance(12); {
		r.who = pick(g, g.w.callers...)
	}
	if r.op.parameters.GetByInAndName(openapi3.ParameterInHeader, web.KeyHeader) != nil && !g.wrong(4) {
		k := fmt.Sprint("Canary key ", g.fresh())
		switch {
		case len(g.keys) > 0 && g.wrong(5):
			k = pick(g, g.keys...)
		case g.wrong(4):
			k = pick(g, "", strings.Repeat("k", 255), strings.Repeat("k", 256), "é", "a\tb", "4242424242424242", " ")
		}
		if add(web.KeyHeader, k); g.wrong(2) {
			add(web.KeyHeader, k)
		}
		if g.keys = append(g.keys, k); len(g.keys) > 50 {
			g.keys = g.keys[1:]
		}
		r.idempotent = true
	}
	if r.op.method != http.MethodGet && g.chance(12) {
		tag := g.tags[path]
		for _, end := range []string{"/pause", "/plan", "/resume", "/skip", "/cancel", "/charge", "/receipts", "/payment_methods", "/rotate"} {
			if object, ok := strings.CutSuffix(path, end); ok {
				tag = g.tags[object]
			}
		}
		if g.wrong(60) {
			tag = pick(g, `"1"`, `"999999"`, "Canary", `W/"1"`, `"1", "2"`, "*", `"-1"`, `""`, `"99999999999999999999"`)
		}
		if tag != "" {
			add("If-Match", tag)
		}
	}
	if r.op.body != nil && !g.wrong(3) {
		kind := "application/json"
		if g.wrong(5) {
			kind = pick(g, "application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded", "Canary/json", "", "application/json; ;", "multipart/form-data")
		}
		add("Content-Type", kind)
	}
	if g.chance(10) {
		add("Accept", pick(g, "application/x-ndjson", "application/x-ndjson", "text/html", "Canary/*", "*/*"))
	}
	if g.wrong(5) {
		add(pick(g, "Content-Encoding", "Origin", "Sec-Fetch-Site", "X-Forwarded-For", "Accept-Encoding", "Expect", "Cookie"),
			pick(g, "gzip", "https://canary.example", "cross-site", "same-origin", "192.0.2.7", "identity", "Canary"))
	}
}

// raw returns the request as bytes. Its lines have no characters that end a line.
func (r *sent) raw(id string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: here\r\nRequest-Id: %s\r\n", r.method, r.target, id)
	if r.who.header != "" {
		b.WriteString("Authorization: " + r.who.header + "\r\n")
	}
	for _, line := range r.header {
		b.WriteString(line + "\r\n")
	}
	if r.body != nil || r.method != http.MethodGet {
		b.WriteString("Content-Length: " + strconv.Itoa(len(r.body)) + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(r.body)
	return b.Bytes()
}

// allows reports whether the caller may send the request.
func (c caller) allows(o *operation) bool {
	return c.scope.Includes(o.Scope) && (c.merchant == "" || o.Merchants) && c.scope != key.Scope("")
}
