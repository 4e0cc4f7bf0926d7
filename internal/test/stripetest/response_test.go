package stripetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// sample returns a fixture, without what is out of date in it, and with these fields in
// place of its own.
func sample(t *testing.T, name string, fields map[string]any) string {
	t.Helper()
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(string(fixtures(t)[name])))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		t.Fatal(err)
	}
	for _, problem := range outdated()[name] {
		drop(object, strings.Fields(problem)[1])
	}
	maps.Copy(object, fields)
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// plain is what an intent of the fixtures is without being asked to expand.
func plain() map[string]any {
	return map[string]any{"transfer_data": nil}
}

func with(field string, value any) map[string]any {
	fields := plain()
	fields[field] = value
	return fields
}

func TestResponses(t *testing.T) {
	spec := Load(t)
	intent := func(field string, value any) string { return sample(t, "payment_intent", with(field, value)) }
	list := func(format string) string { return fmt.Sprintf(format, intent("amount", 5)) }
	const page = `{"object":"list","data":[%s],"has_more":false,"url":"/v1/payment_intents"}`
	for name, c := range map[string]struct {
		path, body string
		want       string // a part of the only problem; "" for none
	}{
		"good":           {"/v1/payment_intents/pi_1", intent("amount", 5), ""},
		"invented field": {"/v1/payment_intents/pi_1", intent("paid", true), "field paid is unknown to Stripe"},
		"wrong enum":     {"/v1/payment_intents/pi_1", intent("status", "paid"), `field status is "paid", not one of`},
		"text for number": {"/v1/payment_intents/pi_1", intent("amount", "5"),
			"field amount is a text; it must be one integer"},
		"fraction": {"/v1/payment_intents/pi_1", intent("amount", json.Number("5.0")),
			"field amount is 5.0, no integer"},
		"exponent": {"/v1/payment_intents/pi_1", intent("amount", json.Number("5e2")),
			"field amount is 5e2, no integer"},
		"null":     {"/v1/payment_intents/pi_1", intent("amount", nil), "field amount is null"},
		"currency": {"/v1/payment_intents/pi_1", intent("currency", "USD"), "field currency is"},
		"long":     {"/v1/payment_intents/pi_1", intent("description", strings.Repeat("x", 5001)), "more than 5000"},
		"metadata": {"/v1/payment_intents/pi_1", intent("metadata", map[string]any{"a": 1}),
			"field metadata.a is a number"},
		"nested field": {"/v1/payment_intents/pi_1", intent("last_payment_error",
			map[string]any{"type": "card_error", "decline": "x"}), "field last_payment_error.decline is unknown"},
		"nested missing": {"/v1/payment_intents/pi_1", intent("last_payment_error", map[string]any{"code": "x"}),
			"field last_payment_error.type is missing"},
		"other object":  {"/v1/payment_intents/pi_1", sample(t, "refund", nil), "field object is"},
		"id for object": {"/v1/payment_intents/pi_1", intent("customer", "cus_1"), ""},
		"expanded deleted": {"/v1/payment_intents/pi_1", intent("customer",
			map[string]any{"id": "cus_1", "object": "customer", "deleted": true}), ""},
		"expanded cut": {"/v1/payment_intents/pi_1", intent("customer",
			map[string]any{"id": "cus_1", "object": "customer", "created": 5}), "field customer.livemode is missing"},
		"deleted: false": {"/v1/customers/cus_1", `{"id": "cus_1", "object": "customer", "deleted": false}`,
			"field deleted is unknown"},
		"list": {"/v1/payment_intents", list(page), ""},
		"list element": {"/v1/payment_intents", fmt.Sprintf(page, intent("status", "paid")+","+intent("status",
			"paid")), "field data[].status is"},
		"list url": {"/v1/payment_intents", list(strings.Replace(page, "/v1/payment_intents", "/payment_intents",
			1)), "field url is"},
		"no list": {"/v1/payment_intents", "[]", "it must be one object"},
		"no has_more": {"/v1/payment_intents", list(strings.Replace(page, `"has_more":false,`, "", 1)),
			"field has_more is missing"},
		"no JSON":      {"/v1/payment_intents", "<html>", "no JSON"},
		"cut JSON":     {"/v1/payment_intents", `{"object":`, "no JSON"},
		"two JSONs":    {"/v1/payment_intents", list(page) + "{}", "goes on"},
		"unknown path": {"/v1/payment", "{}", "no such path"},
	} {
		got := spec.checkResponse("GET", c.path, 200, []byte(c.body), nil)
		if slices.Contains([]string{"expanded cut", "other object", "deleted: false"}, name) { // more is wrong with them
			got = slices.DeleteFunc(got, func(s string) bool { return !strings.Contains(s, c.want) })
		}
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	spec := Load(t)
	intent := sample(t, "payment_intent", plain())
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{402, `{"error":{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds","message":"No.",` +
			`"payment_intent":` + intent + `}}`, ""},
		{402, `{"error":{"type":"card_error","message":"No.","payment_intent":{"id":"pi_1"}}}`,
			"field error.payment_intent.status is missing"},
		{404, `{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such customer: 'cus_1'",` +
			`"param":"customer"}}`, ""},
		{429, `{"error":{"type":"rate_limit_error","message":"Slow down."}}`, "field error.type is"},
		{400, `{"error":{"type":"invalid_request_error"}}`, "field error.message is missing"},
		{400, `{"error":{"message":"x"}}`, "field error.type is missing"},
		{400, `{"error":"x"}`, "field error is a text"},
		{400, `{"message":"x"}`, "field error is missing"},
		{400, `x`, "no JSON"},
		{409, `{"error":{"type":"idempotency_error","message":"x","reason":"y"}}`, "field error.reason is unknown"},
		{500, `{"error":{"type":"api_error","message":"x"}}`, ""},
		{500, `{"error":{"message":"x"}}`, "field error.type is missing"},
		{503, `<html>upstream`, ""},
		{201, intent, "status 201"},
		{405, `{"error":{"type":"invalid_request_error","message":"x"}}`, "status 405"},
	} {
		got := strings.Join(spec.checkResponse("POST", "/v1/payment_intents", c.status, []byte(c.body), nil), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%d %s: got %q, want %q", c.status, c.body, got, c.want)
		}
	}
}

func TestExpandIsObeyed(t *testing.T) {
	spec := Load(t)
	customer := map[string]any{"id": "cus_1", "object": "customer", "deleted": true}
	for name, c := range map[string]struct {
		customer any
		asked    []string
		want     []string
	}{
		"an id":              {"cus_1", []string{}, nil},
		"asked and expanded": {customer, []string{"customer"}, nil},
		"below":              {customer, []string{"customer.default_source"}, nil},
		"below, not obeyed": {json.RawMessage(sample(t, "customer", map[string]any{"default_source": "card_1"})),
			[]string{"customer.default_source"}, []string{"field customer.default_source is an id, but was asked to be " +
				"expanded"}},
		"nothing there": {nil, []string{"customer"}, nil},
		"nobody asked": {customer, []string{"customer_account"}, []string{"field customer is an object, but " +
			"nobody asked to expand it"}},
		"not obeyed": {"cus_1", []string{"customer"}, []string{"field customer is an id, but was asked to be " +
			"expanded"}},
	} {
		body := sample(t, "payment_intent", with("customer", c.customer))
		if got := spec.checkResponse("GET", "/v1/payment_intents/pi_1", 200, []byte(body), c.asked); !slices.Equal(got,
			c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestEvents(t *testing.T) {
	spec := Load(t)
	event := func(kind, version, object, previous string) string {
		return fmt.Sprintf(`{"id":"evt_1","object":"event","api_version":%s,"created":5,"livemode":false,"pending_webhooks":1,
			"request":{"id":null,"idempotency_key":null},"type":%q,"data":{"object":%s%s}}`, version, kind, object, previous)
	}
	const now = `"2026-08-26.dahlia"`
	intent := sample(t, "payment_intent", plain())
	deleted := `{"id": "cus_1", "object": "customer", "deleted": true}`
	for _, c := range []struct{ event, want string }{
		{event("payment_intent.succeeded", now, intent, ""), ""},
		{event("payment_intent.succeeded", now, intent, `,"previous_attributes":{"status":"processing"}`), ""},
		{event("payment_intent.succeeded", now, intent, `,"previous_attributes":{"paid":false}`),
			"field data.previous_attributes.paid is no field of a payment_intent"},
		{event("payment_intent.paid", now, intent, ""), `field type is "payment_intent.paid"`},
		{event("payment_intent.succeeded", now, sample(t, "payment_intent", with("paid", true)), ""),
			"field data.object.paid is unknown"},
		{event("payment_intent.succeeded", now, sample(t, "payment_intent", with("customer", json.RawMessage(deleted))),
			""), "field data.object.customer is an object"},
		{event("customer.deleted", now, deleted, ""), ""},
		{event("*", now, deleted, ""), `field type is "*"`},
		{event("invoice.paid", now, `{"id":"in_1","object":"bill"}`, ""), `field data.object.object is "bill"`},
		{event("invoice.paid", "null", `{"id":"in_1","object":"invoice"}`, ""), "field data.object.lines is missing"},
		{event("invoice.paid", `"2024-06-20"`, `{"id":"in_1","object":"invoice"}`, ""), ""},
		{`{"id":"evt_1"}`, "field data is missing"},
		{"", "no JSON"},
	} {
		got := strings.Join(spec.CheckEvent([]byte(c.event)), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.event[:min(len(c.event), 400)], got, c.want)
		}
	}
	page := `{"object":"list","has_more":false,"url":"/v1/events","data":[` +
		event("customer.deleted", now, `{"id":"cus_1"}`, "") + `]}`
	if got := spec.checkResponse("GET", "/v1/events", 200, []byte(page), nil); len(got) != 1 ||
		!strings.HasPrefix(got[0], `field data[].data.object.object is ""`) {
		t.Errorf("an event in a list: %q", got)
	}
}
