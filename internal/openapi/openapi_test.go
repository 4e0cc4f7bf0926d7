package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/web"
)

func get(t *testing.T, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	paths, err := Paths()
	if err != nil {
		t.Fatal(err)
	}
	r, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
	r.Header = header
	web.New(web.Options{Paths: paths}).ServeHTTP(w, r)
	return w
}

// The page needs nothing but itself: no script, no picture, no font and no style from elsewhere.
func TestPage_Alone(t *testing.T) {
	w := get(t, PathDocs, nil)
	page := w.Body.String()
	for _, part := range []string{"<script", "<img", "<link", "<iframe", " on", "src=", "@import", "url("} {
		if strings.Contains(strings.ToLower(page), part+"load") || part != " on" && strings.Contains(strings.ToLower(page), part) {
			t.Errorf("the page contains %q", part)
		}
	}
	csp := w.Header().Get("Content-Security-Policy")
	shown := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(page)
	if shown == nil || !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "'sha256-"+hash(shown[1])+"'") {
		t.Errorf("the policy %q does not allow the page's style", csp)
	}
	if !strings.Contains(page, `name="viewport"`) || !strings.Contains(page, "prefers-color-scheme:dark") {
		t.Error("the page has no form for phones or for the dark")
	}
}

// Each link of the page leads to a place on it, which exists once.
func TestPage_Links(t *testing.T) {
	page := get(t, PathDocs, nil).Body.String()
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		ids[m[1]]++
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("%d places are called %s", n, id)
		}
	}
	links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(page, -1)
	for _, m := range links {
		if id, ok := strings.CutPrefix(m[1], "#"); m[1] != PathJSON && (!ok || ids[id] == 0) {
			t.Errorf("the link %s leads nowhere", m[1])
		}
	}
	for _, want := range []string{"createSubscription", "error-idempotency_key", "schema-Subscription", "tag-accounts"} {
		if ids[want] == 0 {
			t.Errorf("the page has no place %s", want)
		}
	}
	if len(links) < 500 {
		t.Errorf("the page has only %d links", len(links))
	}
}

// A caller that has the text gets it once: until an upgrade it is told that nothing has changed.
func TestPaths_Cached(t *testing.T) {
	for _, path := range []string{PathJSON, PathDocs} {
		first := get(t, path, nil)
		again := get(t, path, http.Header{"If-None-Match": {first.Header().Get("ETag")}})
		if first.Code != 200 || again.Code != 304 || again.Body.Len() != 0 || first.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got %d and %d %v", path, first.Code, again.Code, again.Header())
		}
	}
	if got := get(t, PathJSON, nil).Body.String(); got != Text() {
		t.Error("openapi.json is not served as it is")
	}
}

// walk calls each with every value below v and with its JSON pointer.
func walk(v any, at string, each func(at string, v any)) {
	each(at, v)
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			walk(x, at+"/"+strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"), each)
		}
	case []any:
		for i, x := range v {
			walk(x, fmt.Sprintf("%s/%d", at, i), each)
		}
	}
}

// The description has no null, nothing of OpenAPI 3.0 alone, and nothing that it does not use. Each name is
// of our form.
func TestText_Form(t *testing.T) {
	var doc any
	if err := json.Unmarshal([]byte(Text()), &doc); err != nil {
		t.Fatal(err)
	}
	places, used := map[string]any{}, map[string]bool{}
	walk(doc, "#", func(at string, v any) { places[at] = v })
	name := regexp.MustCompile(`^[a-z0-9_]+$`)
	for at, v := range places {
		if v == nil || v == "null" {
			t.Errorf("%s is null", at)
		}
		m, _ := v.(map[string]any)
		if ref, ok := m["$ref"].(string); ok {
			if used[ref] = true; places[ref] == nil {
				t.Errorf("%s refers to %s, which does not exist", at, ref)
			}
		}
		if _, ok := m["nullable"]; ok {
			t.Errorf("%s is nullable", at)
		}
		if properties, ok := m["properties"].(map[string]any); ok && m["type"] == "object" {
			for p := range properties {
				if !name.MatchString(p) {
					t.Errorf("%s has the member %s", at, p)
				}
			}
			required, _ := m["required"].([]any)
			for _, r := range required {
				if _, ok := properties[r.(string)]; !ok {
					t.Errorf("%s requires %s, which it does not have", at, r)
				}
			}
		}
	}
	for at := range places {
		parts := strings.Split(at, "/")
		if len(parts) == 4 && parts[1] == "components" && parts[2] != "securitySchemes" && !used[at] {
			t.Errorf("nothing uses %s", at)
		}
	}
}

// A request calls a member as the object does in which it is read, and gives it the same type.
func TestText_Names(t *testing.T) {
	type schema struct {
		Type       string
		Properties map[string]struct{ Type, Format string }
	}
	var d struct {
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal([]byte(Text()), &d); err != nil {
		t.Fatal(err)
	}
	for request, x := range map[string]struct{ objects, own string }{
		"NewAccount":         {"Account", ""},
		"AccountChange":      {"Account", ""},
		"PaymentMethod":      {"Account", ""},
		"NewCardLink":        {"CardLink", ""},
		"NewSubscription":    {"Subscription Account", "start_date trial_days"}, // the object has the days that follow from them
		"SubscriptionChange": {"Subscription Plan", "early notify paid_once"},   // instructions
		"PlanRequest":        {"Plan Subscription", "notify now"},               // the discount is the subscription's
		"NewReceipt":         {"Receipt ManualRequest", "overpaid date"},        // an instruction, and a day instead of a time
		"NewRefund":          {"Refund", ""},
		"NewRun":             {"Run", ""},
		"ChargingChange":     {"Charging", "accept_other_installation"}, // an instruction
		"SettingsChange":     {"Settings", ""},
		"NewMerchant":        {"Merchant", ""},
		"NewPurchase":        {"Order", ""},
		"NewEndpoint":        {"Endpoint", ""},
		"EndpointChange":     {"Endpoint", "paused"}, // an instruction
		"NewKey":             {"Key", ""},
	} {
		for name, p := range d.Components.Schemas[request].Properties {
			of := strings.Fields(x.objects)
			if !slices.Contains(strings.Fields(x.own), name) && !slices.ContainsFunc(of, func(object string) bool {
				same, ok := d.Components.Schemas[object].Properties[name]
				return ok && same == p
			}) {
				t.Errorf("%s.%s is not a member of %s with the same type", request, name, x.objects)
			}
		}
		if len(d.Components.Schemas[request].Properties) == 0 {
			t.Errorf("no %s", request)
		}
	}
}

// Every operation has an ID of its own, a known tag, one scope, and answers for all that can go wrong. Each
// code of a problem is listed, and each listed code can come from an operation.
func TestText_Operations(t *testing.T) {
	var d document
	if err := json.Unmarshal([]byte(Text()), &d); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range d.codes() {
		listed[c.Name] = true
	}
	ids, codes := map[string]bool{}, map[string]bool{"method": true, "no_route": true}
	for _, tag := range d.Tags {
		for _, o := range d.operations(tag.Name) {
			if ids[o.ID] {
				t.Errorf("two operations are called %s", o.ID)
			}
			ids[o.ID] = true
			if !slices.Contains([]string{"read", "write", "charge", "admin"}, o.Scope()) {
				t.Errorf("%s has the scope %q", o.ID, o.Scope())
			}
			var got []string
			for _, r := range o.Responses {
				got = append(got, r.Name)
				for _, c := range r.Value.Codes {
					if codes[c] = true; !listed[c] {
						t.Errorf("%s: the code %s is not listed", o.ID, c)
					}
				}
			}
			for _, s := range []string{"401", "403", "422", "500", "503"} {
				if !slices.Contains(got, s) {
					t.Errorf("%s has no answer %s", o.ID, s)
				}
			}
		}
	}
	for _, p := range d.Paths {
		for _, o := range p.Value {
			if !ids[o.Value.ID] {
				t.Errorf("%s has an unknown tag", o.Value.ID)
			}
		}
	}
	for c := range listed {
		if !codes[c] {
			t.Errorf("no operation has the code %s", c)
		}
	}
	for _, id := range []string{"createSubscription", "createReceipt", "updateSubscription", "getDueRemindersByDate",
		"getDuePaymentsByDate", "getSubscriptionsByAccount", "getReceiptsByAccount", "listEvents"} {
		if !ids[id] {
			t.Errorf("the access pattern %s is missing", id)
		}
	}
}
