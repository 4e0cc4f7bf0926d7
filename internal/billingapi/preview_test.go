package billingapi_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// everything returns the whole store and the processor's ledger as text.
func (w *world) everything() string {
	var text strings.Builder
	for x := range w.box.Entries() {
		text.WriteString(fmt.Sprintln(x))
	}
	for _, t := range w.tables.All() {
		rows := map[store.Key]string{}
		for it, err := range w.mem.Scan(w.Context(), store.Scan{Table: t.Name}) {
			if err != nil {
				w.Fatal(err)
			}
			it.Remove("UsedDate") // of API keys
			rows[t.KeyOf(it)] = fmt.Sprint(it)
		}
		text.WriteString(fmt.Sprintln(rows))
	}
	return text.String()
}

// TestPreview: a preview changes nothing in the store and at the processor, needs no key and no right to
// change, and shows what the request then does.
func TestPreview(t *testing.T) {
	for _, x := range []struct {
		name, method, path, body string
		days                     int64 // that pass after the first charge
		first                    bool  // charge the first period before
		changed                  []string
	}{
		{"update", "PATCH", subscription, `{"payment_day":15,"reminder_days":3}`, 0, false, []string{"payment_day", "reminder_days"}},
		{"update of the method", "PATCH", subscription, `{"payment_method":"pm_card_mastercard"}`, 0, false, []string{"payment_method"}},
		{"pause", "POST", subscription + "/pause", `{}`, 0, false, []string{"status", "paused_on"}},
		{"pause of a paid one", "POST", subscription + "/pause", `{}`, 3, true, []string{"status", "paused_on"}},
		{"cancel", "POST", subscription + "/cancel", `{}`, 3, true, []string{"status"}},
		{"cancel with arrears", "POST", subscription + "/cancel", `{}`, 40, true, []string{"status"}},
		{"cancel at the end", "POST", subscription + "/cancel", `{"at_period_end":true}`, 3, true, []string{"cancel_at_period_end", "ends_on"}},
		{"skip", "POST", subscription + "/skip", `{"until":"2027-03-12"}`, 40, true, []string{"period", "next_payment_date"}},
		{"charge", "POST", subscription + "/charge", `{}`, 0, false, []string{"paid_periods", "period"}},
		{"charge of the next one", "POST", subscription + "/charge", `{}`, 40, true, []string{"paid_periods", "period"}},
		{"receipt", "POST", subscription + "/receipts", `{"amount":1299,"currency":"EUR","note":"bank 7"}`, 40, true, []string{"paid_periods"}},
		{"receipt while two periods are due, which needs a key", "POST", subscription + "/receipts", `{"amount":1299,"currency":"EUR","note":"bank 7"}`, 70, true, []string{"paid_periods"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t)
			w.signUp(visa)
			if x.first {
				w.must("POST", subscription+"/charge", `{}`)
			}
			w.days.Store(x.days)
			w.restart()
			before := w.everything()
			a := w.ask("read", "POST", x.path+"/preview", "", x.body)
			if a.status != 200 || a.header.Get("ETag") != "" {
				t.Fatalf("the preview: %d %s", a.status, a.text)
			}
			if after := w.everything(); after != before {
				t.Errorf("the preview changed\n%s\nto\n%s", before, after)
			}
			changed := a.body["changed"].(map[string]any)
			for _, name := range x.changed {
				if changed[name] == nil {
					t.Errorf("%s is not changed: %v", name, changed)
				}
			}
			w.must(x.method, x.path, x.body)
			done := w.must("GET", subscription, "").body
			for name, pair := range changed {
				if want := pair.(map[string]any)["after"]; name != "version" && name != "last_charge" && name != "open" && !reflect.DeepEqual(done[name], want) {
					t.Errorf("%s is %v, and the preview had %v", name, done[name], want)
				}
			}
			for _, name := range []string{"status", "period", "due_date", "next_payment_date", "paid_periods"} {
				if !reflect.DeepEqual(done[name], a.body[name]) {
					t.Errorf("%s is %v, and the preview had %v", name, done[name], a.body[name])
				}
			}
		})
	}
}

// TestPreview_Refund: the preview has the refund as its result, and the customer gets nothing.
func TestPreview_Refund(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("POST", subscription+"/charge", `{}`)
	receipt := w.must("GET", "/v1/receipts?account=ada", "").body["data"].([]any)[0].(map[string]any)["id"].(string)
	before := w.everything()
	a := w.ask("read", "POST", "/v1/receipts/"+receipt+"/refunds/preview", "", `{"account":"ada","amount":299,"currency":"EUR"}`)
	if result, _ := a.body["result"].(map[string]any); a.status != 200 || result["state"] != "succeeded" || result["amount"] != 299.0 {
		t.Errorf("the preview: %d %s", a.status, a.text)
	}
	if after := w.everything(); after != before {
		t.Errorf("the preview changed\n%s\nto\n%s", before, after)
	}
	if a := w.ask("read", "POST", "/v1/receipts/"+receipt+"/refunds/preview", "", `{"account":"ada","amount":99900,"currency":"EUR"}`); a.status != 409 && a.status != 422 {
		t.Errorf("more than was paid: %d %s", a.status, a.text)
	}
	if a := w.ask("read", "POST", subscription+"/skip/preview", "", `{}`); a.status != 409 {
		t.Errorf("skip without a parked period: %d %s", a.status, a.text)
	}
}
