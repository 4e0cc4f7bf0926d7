package stripefake

import (
	"slices"
	"testing"
	"time"
)

func TestEvents_List(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.customer("name=A")
	w.ok("POST", customers+"/"+id, "name=B")
	w.ok("DELETE", customers+"/"+id, "")
	types := func(params string) (list []string) {
		t.Helper()
		for _, e := range w.ok("GET", "/v1/events", params).body["data"].([]any) {
			list = append(list, e.(map[string]any)["type"].(string))
		}
		return list
	}
	for params, want := range map[string][]string{
		"":                         {"customer.deleted", "customer.updated", "customer.created"},
		"type=customer.updated":    {"customer.updated"},
		"type=customer.*":          {"customer.deleted", "customer.updated", "customer.created"},
		"type=*":                   {"customer.deleted", "customer.updated", "customer.created"},
		"type=charge.*":            nil,
		"type=customer":            nil,
		"types[]=customer.created": {"customer.created"},
		"types[0]=customer.created&types[1]=customer.deleted": {"customer.deleted", "customer.created"},
		"delivery_success=true":                               {"customer.deleted", "customer.updated", "customer.created"},
		"delivery_success=false":                              nil,
	} {
		equal(t, params, types(params), want)
	}
	w.do("GET", "/v1/events", "type=a&types[]=b").refused(t, "both", 400, nil, "type")
	w.do("GET", "/v1/events", "types=a").refused(t, "no list", 400, nil, "types")
	event := w.ok("GET", "/v1/events", "type=customer.updated").body["data"].([]any)[0].(map[string]any)
	equal(t, "previous_attributes", answer{body: event}.at("data.previous_attributes.name"), any("A"))
	equal(t, "object", answer{body: event}.at("data.object.name"), any("B"))
}

// TestEvents_Horizon: an event is listed for 30 days of the fake's clock.
func TestEvents_Horizon(t *testing.T) {
	w := newWorld(t, Options{})
	w.customer("")
	w.Advance(24 * time.Hour)
	w.customer("")
	ids := w.ok("GET", "/v1/events", "").ids()
	w.Advance(29*24*time.Hour - time.Second)
	equal(t, "after 30 days less a second", w.ok("GET", "/v1/events", "").ids(), ids)
	w.Advance(time.Second)
	equal(t, "after 30 days", w.ok("GET", "/v1/events", "").ids(), ids[:1])
	w.do("GET", "/v1/events/"+ids[1], "").refused(t, "the old one", 404, "resource_missing", "id")
	w.ok("GET", "/v1/events/"+ids[0], "")
}

// TestEvents_Recovery: with ending_before one reads on from the last event one knows, in the
// order in which they happened.
func TestEvents_Recovery(t *testing.T) {
	w := newWorld(t, Options{})
	for range 7 {
		w.customer("")
	}
	all := w.ok("GET", "/v1/events", "").ids()
	slices.Reverse(all)
	known := all[0]
	var read []string
	for more := true; more; {
		page := w.ok("GET", "/v1/events", "limit=2&ending_before="+known)
		ids := page.ids()
		slices.Reverse(ids)
		read, more = append(read, ids...), page.body["has_more"] == true
		known = read[len(read)-1]
	}
	equal(t, "read", read, all[1:])
}

// TestEvents_Snapshot: an event shows the object as it was, whatever version asks.
func TestEvents_Snapshot(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.customer("name=A")
	before := w.ok("GET", "/v1/events", "").text
	w.ok("POST", customers+"/"+id, "name=B")
	equal(t, "unchanged", w.ok("GET", "/v1/events", "type=customer.created").text, before)
	equal(t, "in another version", w.ok("GET", "/v1/events", "type=customer.created", "Stripe-Version",
		"2022-11-15").text, before)
}
