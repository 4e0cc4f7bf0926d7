package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

var update = flag.Bool("update", false, "write the golden file anew")

// kept are the fields that do not leave the house.
var kept = []string{"Order.Tag", "Order.At", "Purchase.History", "Sale.ClientSecret"}

// views are the nouns that no request shows, with all fields or with none.
func views(full bool) []any {
	all := []any{new([]tracking.EventRow), new(tracking.Rebuilt), new(tracking.Verdict),
		new([]*tracking.ConnectedAccount), new([]tracking.WaitingJob), new(tracking.Job)}
	for _, v := range all {
		if full {
			fill(v, kept...)
		} else if of := reflect.ValueOf(v).Elem(); of.Kind() == reflect.Slice {
			of.Set(reflect.MakeSlice(of.Type(), 1, 1))
			if one := of.Index(0); one.Kind() == reflect.Pointer {
				one.Set(reflect.New(one.Type().Elem()))
			}
		}
	}
	return all
}

// TestViews_AreTheSameBytes: every body of a request and an answer, and every other view, of nouns
// with all fields and with none, is as it was, and the order that is read of them is.
func TestViews_AreTheSameBytes(t *testing.T) {
	var got bytes.Buffer
	for _, full := range []bool{true, false} {
		w, order := newWorld(), fmt.Sprintf(`{"merchant":%q,"kind":""}`, account)
		w.created, w.timeline = &tracking.Created{Purchase: &tracking.Purchase{}}, &tracking.Timeline{}
		w.purchases, w.payments = []*tracking.Purchase{{}}, []*tracking.Payment{{}}
		w.events, w.accounts = []tracking.EventRow{{}}, []*tracking.ConnectedAccount{{StripeAccount: "a"}}
		w.event = &tracking.Event{}
		if full {
			w.created = &tracking.Created{}
			for _, v := range []any{w.created, w.timeline, &w.purchases, &w.payments, &w.events, w.event,
				&w.accounts} {
				fill(v, kept...)
			}
			w.created.Sale.ClientSecret = secret.New("pi_1_secret_abc")
			o := tracking.Order{}
			fill(&o, kept...)
			o.Key = "k"
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			order = strings.NewReplacer(`"account":"s\u003c3\u003e"`, `"merchant":"`+account+`"`, `"key":"k",`, "").Replace(string(text))
		}
		server := w.serve(t)
		ask := func(method, path, body string, header ...string) {
			fmt.Fprintf(&got, "\n%s %s\n", method, path)
			if body != "" {
				fmt.Fprintln(&got, body)
			}
			a := do(t, authorized(t, method, server.URL+path, body, header...))
			fmt.Fprintf(&got, "-> %d\n%s", a.status, a.text)
		}
		ask("POST", "/v1/purchases", order, "Idempotency-Key", "k")
		fmt.Fprintf(&got, "= %s, %v\n", shownValue(w.order), nil)
		ask("GET", "/v1/purchases?merchant="+account, "", "Accept", "application/x-ndjson")
		ask("GET", "/v1/purchases/"+purchaseID, "")
		ask("GET", "/v1/payments?merchant="+account, "", "Accept", "application/x-ndjson")
		ask("GET", "/v1/payments/acct_1/pi_1", "")
		ask("GET", "/v1/purchases?merchant="+account, "")
		ask("GET", "/v1/payments?merchant="+account, "")
		ask("GET", "/v1/events", "")
		ask("GET", "/v1/events/evt_1", "")
		ask("GET", "/v1/merchants", "")
		ask("GET", "/v1/jobs", "")
		for _, v := range views(full) {
			lines := []any{v}
			if of := reflect.ValueOf(v).Elem(); of.Kind() == reflect.Slice {
				lines = lines[:0]
				for i := range of.Len() {
					lines = append(lines, of.Index(i).Interface())
				}
			}
			fmt.Fprintf(&got, "\n%T\n", v)
			for _, line := range lines {
				if err := json.NewEncoder(&got).Encode(line); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const path = "testdata/views.golden"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("line %d of %d: got\n%s", i+1, len(lines), line)
		}
	}
	if got.Len() != len(want) {
		t.Errorf("got %d bytes, want %d", got.Len(), len(want))
	}
}

// TestNouns_NameEveryField: no field of a noun is in JSON by its Go name.
func TestNouns_NameEveryField(t *testing.T) {
	seen := map[reflect.Type]bool{reflect.TypeFor[time.Time](): true}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(of.Elem())
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for f := range of.Fields() {
				if _, named := f.Tag.Lookup("json"); f.IsExported() && !named {
					t.Errorf("%s.%s has no name in JSON", of, f.Name)
				} else if f.IsExported() {
					check(f.Type)
				}
			}
		}
	}
	for _, v := range append(views(false), tracking.Timeline{}, tracking.Object{}) {
		check(reflect.TypeOf(v))
	}
	if len(seen) < 20 {
		t.Errorf("%d types were checked", len(seen))
	}
}
