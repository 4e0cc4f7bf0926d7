package stripefake

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestShapes holds what old API versions show against files whose shapes follow Stripe's
// documentation of these versions.
func TestShapes(t *testing.T) {
	s := newShop(t)
	customer, card := s.buyerWith("pm_card_visa")
	sub := s.subscribe(customer, "metadata[purchase]=p1", "default_payment_method="+card)
	invoice := fmt.Sprint(sub.at("latest_invoice"))
	intent := s.get("invoice_payments",
		"invoice="+invoice).body["data"].([]any)[0].(map[string]any)["payment"].(map[string]any)["payment_intent"].(string)
	charge := fmt.Sprint(s.get("payment_intents/" + intent).at("latest_charge"))
	schedule := s.split(customer, "end_behavior=cancel").id()
	for name, path := range map[string]string{
		"invoice": "invoices/" + invoice, "subscription": "subscriptions/" + sub.id(),
		"payment_intent": "payment_intents/" + intent,
		"charge":         "charges/" + charge, "subscription_schedule": "subscription_schedules/" + schedule,
	} {
		for _, version := range []string{"2020-08-27", "2024-06-20", NewestVersion} {
			got := nameless(s.ok("GET", "/v1/"+path, "", "Stripe-Version", version).text)
			if strings.Contains(got, `"_`) {
				t.Errorf("%s of %s shows private members:\n%s", name, version, got)
			}
			file := filepath.Join("testdata", name+"."+version+".json")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s of %s is\n%s\nwant what %s has", name, version, got, file)
			}
		}
	}
}

// nameless gives ids numbers in the order in which they come, as the fake counts whatever
// else it makes too.
func nameless(text string) string {
	seen := map[string]string{}
	text = regexp.MustCompile(`[a-z_]+_fake[0-9a-z]{10}`).ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprint(id[:strings.LastIndex(id, "_fake")], "_", len(seen)+1)
		}
		return seen[id]
	})
	return regexp.MustCompile(`FAKE[0-9A-F]{4}-`).ReplaceAllString(text, "FAKE-")
}

// TestReshape_links has the links between objects where each version has them.
func TestReshape_links(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	item := s.post("invoiceitems", "customer="+customer, "pricing[price]="+s.post("prices", "currency=usd",
		"unit_amount=700", "product="+s.product).id(), "quantity=2")
	invoice := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include").id()
	s.post("invoices/" + invoice + "/pay")
	sub := s.subscribe(customer)
	links := map[string]map[string][]string{ // by path and member: in which versions it is there
		"invoices/" + invoice: {"payment_intent": {"2020-08-27", "2024-06-20"}, "charge": {"2020-08-27", "2024-06-20"},
			"amount_overpaid":        {"2025-03-31.basil", "2025-09-30.clover"},
			"amount_paid_off_stripe": {"2025-09-30.clover"}, "rendering_options": {"2020-08-27"}},
		"invoiceitems/" + item.id(): {"price": {"2020-08-27", "2024-06-20"},
			"pricing": {"2025-03-31.basil", "2025-09-30.clover"}, "net_amount": {"2025-09-30.clover"}},
		"subscriptions/" + sub.id(): {"current_period_end": {"2020-08-27", "2024-06-20"},
			"billing_mode": {"2025-03-31.basil", "2025-09-30.clover"}, "billing_schedules": {"2025-09-30.clover"},
			"plan": {"2020-08-27", "2024-06-20"}},
		"prices/" + s.monthly: {"unit_amount": {"2020-08-27", "2024-06-20", "2025-03-31.basil", "2025-09-30.clover"}},
		"products/" + s.product: {"features": {"2020-08-27"}, "marketing_features": {"2024-06-20", "2025-03-31.basil",
			"2025-09-30.clover"}},
		"charges/" + s.latestCharge(): {"refunds": {"2020-08-27"}, "invoice": {"2020-08-27", "2024-06-20"}},
	}
	s.handler = s.Fake // the specification knows the newest shape only
	for path, members := range links {
		for member, versions := range members {
			for _, version := range []string{"2020-08-27", "2024-06-20", "2025-03-31.basil", "2025-09-30.clover"} {
				_, got := s.ok("GET", "/v1/"+path, "", "Stripe-Version", version).body[member]
				if want := strings.Contains(strings.Join(versions, " "), version); got != want {
					t.Errorf("%s of %s in %s is there: %v, want %v", member, path, version, got, want)
				}
			}
		}
	}
	old := s.ok("GET", "/v1/invoices/"+invoice, "expand[]=payment_intent.latest_charge", "Stripe-Version", "2024-06-20")
	s.is(old, "payment_intent.invoice="+invoice, "payment_intent.latest_charge.invoice="+invoice, "subscription=<nil>",
		"lines.total_count=1")
}

func (s *shop) latestCharge() string {
	s.t.Helper()
	return s.get("charges").ids()[0]
}
