package stripefake

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const thinList = "/v2/core/events"

// TestThin_Shapes holds thin events against golden files: what a webhook has of them, and what is
// asked for.
func TestThin_Shapes(t *testing.T) {
	w := newWorld(t, Options{Events: BothEvents, Connected: []string{"acct_shop"}, Webhooks: []Webhook{
		{URL: "http://own.example", Secret: "whsec_a", Events: ThinEvents},
		{URL: "http://connect.example", Secret: "whsec_b", Connect: true, Events: ThinEvents}}})
	r := w.receive()
	id := w.customer("name=A", "Idempotency-Key", "k")
	w.ok("POST", customers+"/"+id, "name=B&metadata[a]=1")
	w.ok("POST", "/v1/payment_intents", "amount=500&currency=usd&payment_method=pm_card_visa&confirm=true&"+
		"return_url=http://a.example", "Stripe-Account", "acct_shop")
	if err := w.Disconnect("acct_shop"); err != nil {
		t.Fatal(err)
	}
	w.flush(0)
	shown := map[string]string{}
	for _, d := range r.got {
		typ := fmt.Sprint(d.event["type"])
		shown["webhook."+typ] = string(d.payload)
		if d.host == "own.example" {
			shown["event."+typ] = w.ok("GET", thinList+"/"+fmt.Sprint(d.event["id"]), "").text
		}
	}
	for _, name := range []string{"webhook.v1.customer.created", "webhook.v1.customer.updated",
		"event.v1.customer.updated", "webhook.v1.payment_intent.succeeded",
		"webhook.v1.account.application.deauthorized"} {
		golden(t, "thin."+name, nameless(shown[name]))
	}
}

// golden holds the JSON against the file of the name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// TestThin_Forms: the form says which events there are, in which list, and who gets which.
func TestThin_Forms(t *testing.T) {
	for form, want := range map[EventForm]struct{ snapshots, thin, all, sent int }{
		"": {1, 0, 1, 0}, SnapshotEvents: {1, 0, 1, 0}, ThinEvents: {0, 1, 1, 1}, BothEvents: {1, 1, 2, 1},
	} {
		w := newWorld(t, Options{Events: form, Webhooks: []Webhook{{URL: "http://all.example", Secret: "whsec_a"},
			{URL: "http://thin.example", Secret: "whsec_b", Events: ThinEvents}}})
		r := w.receive()
		w.customer("")
		w.flush(0)
		hosts := map[string]int{}
		for _, d := range r.got {
			hosts[d.host]++
		}
		equal(t, string(form), []int{len(w.ok("GET", "/v1/events", "").ids()), len(w.ok("GET", thinList, "").ids()),
			len(w.Events(DefaultAccount, false, "")), hosts["all.example"], hosts["thin.example"]},
			[]int{want.snapshots, want.thin, want.all, want.all, want.sent})
	}
}

// TestThin_Twins: the thin event names its snapshot, from which it differs in its id, and in a
// move the form changes between two changes.
func TestThin_Twins(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.customer("name=A")
	for form, n := range map[EventForm]string{BothEvents: "B", ThinEvents: "C"} {
		if err := w.SetEvents(form); err != nil {
			t.Fatal(err)
		}
		w.ok("POST", customers+"/"+id, "name="+n)
		e := answer{body: w.ok("GET", thinList, "").body["data"].([]any)[0].(map[string]any)}
		equal(t, "about", e.at("related_object.url"), any(customers+"/"+id))
		equal(t, "after", e.at("changes.after"), any(map[string]any{"name": n}))
		if form == ThinEvents {
			equal(t, "twin", e.at("snapshot_event"), nil)
			continue
		}
		snapshot := w.ok("GET", "/v1/events/"+fmt.Sprint(e.at("snapshot_event")), "")
		equal(t, "types", []any{e.at("type"), snapshot.at("type")}, []any{"v1.customer.updated", "customer.updated"})
		w.do("GET", thinList+"/"+snapshot.id(), "").refused(t, "a snapshot in v2", 404, "not_found", nil)
		w.do("GET", "/v1/events/"+e.id(), "").refused(t, "a thin one in v1", 404, "resource_missing", "id")
	}
	if err := w.SetEvents("fat"); err == nil || !strings.Contains(err.Error(), "snapshot, thin or both") {
		t.Errorf("got %v, want the three forms", err)
	}
}

// TestThin_Snapshots: whether there are thin ones or not, snapshots are the same in every version.
func TestThin_Snapshots(t *testing.T) {
	bodies, prefix := map[EventForm][]string{}, regexp.MustCompile(`FAKE[0-9A-Z]{4}`) // of the ids' count
	for _, form := range []EventForm{SnapshotEvents, BothEvents} {
		s := newWorld(t, Options{Events: form}).shop()
		customer, _ := s.buyerWith("pm_card_visa")
		item := s.post("invoiceitems", "customer="+customer, "amount=2500", "currency=usd").id()
		s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include", "auto_advance=false")
		s.post("invoiceitems/"+item, "amount=700") // the lines of its invoice change as a whole
		s.subscribe(customer)
		for _, version := range []string{"2020-08-27", "2024-06-20", ""} {
			for _, e := range s.Events(DefaultAccount, false, version) {
				if !strings.HasPrefix(e.Type, "v1.") {
					bodies[form] = append(bodies[form], prefix.ReplaceAllString(nameless(string(e.Body)), ""))
				}
			}
		}
	}
	equal(t, "snapshots", bodies[BothEvents], bodies[SnapshotEvents])
}

// TestThin_List: filters, pages by their addresses, accounts, and the thirty days.
func TestThin_List(t *testing.T) {
	w := newWorld(t, Options{Events: ThinEvents, Connected: []string{"acct_shop"}})
	first := w.customer("name=A")
	w.ok("POST", customers+"/"+first, "name=B")
	w.Advance(time.Hour)
	for range 5 {
		w.customer("")
	}
	all := w.ok("GET", thinList, "").ids()
	var walked []string
	for at := thinList + "?limit=3&types[0]=v1.customer.created&types[1]=v1.customer.updated"; ; {
		page := w.ok("GET", at, "")
		walked = append(walked, page.ids()...)
		next, more := page.at("next_page_url").(string)
		if !more {
			break
		}
		at = next
		if strings.Contains(at, "types") {
			t.Errorf("%s has more than a page", at)
		}
		w.customer("") // it moves nothing
	}
	equal(t, "walked", walked, all)
	count := func(params string, want int) {
		t.Helper()
		equal(t, params, len(w.ok("GET", thinList, params).ids()), want)
	}
	count("object_id="+first, 2)
	count("object_id=cus_0", 0)
	count("types[]=v1.customer.updated", 1)
	count("types[]=customer.updated", 0)
	count("created[lte]=2026-01-31T12:00:00Z", 2)
	count("created[gt]=2026-01-31T12:00:00.000Z", len(walked))
	count(fmt.Sprint("created[lt]=", testStart.Unix()+1), 2)
	other := w.ok("POST", customers, "", "Stripe-Account", "acct_shop").id()
	for _, header := range []string{"Stripe-Account", "Stripe-Context"} {
		of := w.ok("GET", thinList, "", header, "acct_shop")
		equal(t, header, of.body["data"].([]any)[0].(map[string]any)["context"], any("acct_shop"))
		equal(t, header, w.ok("GET", customers+"/"+other, "", header, "acct_shop").id(), other)
	}
	for params, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "page=page_x": "page", "page=page_aQ": "page",
		"created[gt]=today": "created[gt]", "expand[]=data": "expand", "type=a": "type"} {
		a := w.do("GET", thinList, params)
		a.refused(t, params, 400, "invalid_fields", nil)
		if text := fmt.Sprint(a.at("error.message")); !strings.Contains(text, "'"+field+": ") {
			t.Errorf("%s: %s, want the field", params, text)
		}
	}
	old := func(params string) answer {
		return w.do("GET", thinList, params, "Stripe-Version", "2025-09-30.clover")
	}
	equal(t, "of an object", len(old("object_id="+first).ids()), 2)
	old("").refused(t, "no object", 400, "invalid_fields", nil)
	old("object_id="+first+"&types[]=a").refused(t, "types", 400, "invalid_fields", nil)
	w.do("POST", "/v2/core/nothing", "").refused(t, "no route", 404, "not_found", nil)
	w.Advance(30 * 24 * time.Hour)
	count("", 0)
	w.do("GET", thinList+"/"+all[0], "").refused(t, "the old one", 404, "not_found", nil)
}

// TestThin_Faults: webhooks of thin events are lost, doubled and resent, each form by itself; a
// lost change is in no list.
func TestThin_Faults(t *testing.T) {
	w := newWorld(t, Options{Events: BothEvents, Webhooks: []Webhook{{URL: "http://a.example", Secret: "whsec_a"}}})
	r := w.receive()
	set := func(f Faults) {
		t.Helper()
		if err := w.SetFaults(f); err != nil {
			t.Fatal(err)
		}
	}
	set(Faults{WebhookCopies: 1, WebhookDelay: time.Hour, WebhookShuffle: true, Seed: 3})
	w.customer("")
	w.flush(0)
	kinds := r.members("object")
	slices.Sort(kinds)
	equal(t, "doubled", kinds, []string{"event", "event", "v2.core.event", "v2.core.event"})
	set(Faults{WebhookDrops: 1})
	w.customer("")
	w.flush(0)
	equal(t, "dropped", len(r.members("id")), 4)
	set(Faults{EventLosses: 1})
	w.customer("")
	set(Faults{})
	events := w.Events(DefaultAccount, false, "")
	equal(t, "listed", len(events), 4)
	for _, e := range events {
		var body struct{ Object string }
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if sent, err := w.Resend(e.ID); sent != 1 || err != nil {
			t.Errorf("resend of a %s: got %d, %v, want 1", body.Object, sent, err)
		}
	}
	w.flush(0)
	equal(t, "resent", len(r.members("id")), 8)
	if _, err := w.Resend("evt_0"); err == nil {
		t.Error("an unknown event was resent")
	}
}

// TestEmitThin: events of any type, also of objects that the fake does not have.
func TestEmitThin(t *testing.T) {
	w := newWorld(t, Options{Webhooks: []Webhook{{URL: "http://a.example", Secret: "whsec_a"}}})
	r := w.receive()
	about := Related{ID: "acct_1", Type: "v2.core.account", URL: "/v2/core/accounts/acct_1"}
	id, err := w.EmitThin(DefaultAccount, false, "v2.core.account.updated", about)
	if err != nil {
		t.Fatal(err)
	}
	w.flush(0)
	equal(t, "sent", r.members("id"), []string{id})
	equal(t, "about", w.ok("GET", thinList+"/"+id, "").at("related_object.url"), any(about.URL))
	for _, bad := range [][2]string{{"acct_none", "v1.a"}, {DefaultAccount, "customer.created"}} {
		if _, err := w.EmitThin(bad[0], false, bad[1], about); err == nil {
			t.Errorf("%v was made", bad)
		}
	}
}
