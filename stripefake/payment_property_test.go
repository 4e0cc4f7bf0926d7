package stripefake_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/stripefake"
)

// anyMethod are payment methods of every behaviour.
var anyMethod = []string{"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclined",
	"pm_card_chargeCustomerFail", "pm_card_authenticationRequired", "pm_card_threeDSecureRequiredChargeDeclined",
	"pm_card_authenticationRequiredOnSetup", "pm_card_createDispute", "pm_card_createDisputeInquiry",
	"pm_card_refundFail", "pm_card_pendingRefund", "pm_usBankAccount_success",
	"pm_usBankAccount_insufficientFunds", "pm_sandbox_flaky", "pm_sandbox_timeout", "pm_card_nonsense"}

// A drawer is a till whose intents are pushed about at random.
type drawer struct {
	*till
	intents  []string
	refunds  []string
	customer string
	attached []string
	ended    map[string]string // intents that were seen to have succeeded or been canceled
	dice     *rand.Rand
}

// one draws one of the list.
func one[T any](d *drawer, list []T) T { return list[d.dice.IntN(len(list))] }

func (d *drawer) bool() bool { return d.dice.IntN(2) == 0 }

func number(t testing.TB, v any) int64 {
	n, err := v.(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAtMostOneSuccess: whatever is done to payment intents, in whatever order, each is paid
// at most once and in full, none that has ended moves again, and no more is given back than
// was paid.
func TestAtMostOneSuccess(t *testing.T) {
	stripefake.Seeded(t, 100, func(t *testing.T, dice *rand.Rand) {
		d := &drawer{till: newUnwatchedTill(t), ended: map[string]string{}, dice: dice}
		d.customer = d.must(d.post("customers")).id()
		for _, method := range []string{"pm_card_visa", "pm_card_chargeCustomerFail",
			"pm_card_authenticationRequiredOnSetup"} {
			d.attached = append(d.attached, d.must(d.post("payment_methods/"+method+"/attach", "customer="+d.customer)).id())
		}
		d.open()
		acts := map[string]func(){
			"open":    d.open,
			"confirm": func() { d.post("payment_intents/"+d.intentOf()+"/confirm", d.how()...) },
			"cancel":  func() { d.post("payment_intents/" + d.intentOf() + "/cancel") },
			"capture": func() { d.post("payment_intents/" + d.intentOf() + "/capture") },
			"amount": func() {
				d.post("payment_intents/"+d.intentOf(), "amount="+fmt.Sprint(d.dice.IntN(5001)))
			},
			"method":       func() { d.post("payment_intents/"+d.intentOf(), "payment_method="+d.method()) },
			"authenticate": func() { _ = d.fake.Authenticate(d.intentOf(), d.bool()) },
			"finish":       func() { _ = d.fake.Finish(d.intentOf(), d.bool()) },
			"refund":       d.refund,
			"dispute":      func() { _, _ = d.fake.Dispute(d.intentOf(), "") },
			"close dispute": func() {
				if disputes := d.must(d.get("disputes")).body["data"].([]any); len(disputes) > 0 {
					_ = d.fake.CloseDispute(one(d, disputes).(map[string]any)["id"].(string), one(d, []string{"won", "lost"}))
				}
			},
			"refunded": func() {
				if len(d.refunds) > 0 {
					_ = d.fake.FinishRefund(one(d, d.refunds), d.bool())
				}
			},
		}
		names := slices.Sorted(maps.Keys(acts))
		for range 1 + d.dice.IntN(60) {
			name := one(d, names)
			t.Log(name)
			acts[name]()
			d.check()
		}
	})
}

func (d *drawer) intentOf() string { return one(d, d.intents) }

func (d *drawer) method() string { return one(d, slices.Concat(anyMethod, d.attached)) }

func (d *drawer) how() []string {
	var params []string
	if d.bool() {
		params = append(params, "payment_method="+d.method())
	}
	if d.bool() {
		params = append(params, "off_session=true")
	}
	if d.bool() {
		params = append(params, "return_url=https://shop.example/")
	}
	return params
}

func (d *drawer) open() {
	if len(d.intents) == 2 {
		return
	}
	params := []string{"amount=1000", "currency=usd", "payment_method_types[]=card",
		"payment_method_types[]=us_bank_account"}
	if d.bool() {
		params = append(params, "customer="+d.customer)
	}
	if d.bool() {
		params = append(params, "capture_method=manual")
	}
	d.intents = append(d.intents, d.must(d.post("payment_intents", params...)).id())
}

func (d *drawer) refund() {
	params := []string{"payment_intent=" + d.intentOf()}
	if d.bool() {
		params = append(params, "amount="+fmt.Sprint(1+d.dice.IntN(1500)))
	}
	if a := d.post("refunds", params...); a.status == http.StatusOK {
		d.refunds = append(d.refunds, a.id())
	}
}

func (d *drawer) check() {
	for _, id := range d.intents {
		pi := d.must(d.get("payment_intents/" + id)).body
		status := fmt.Sprint(pi["status"])
		if was := d.ended[id]; was != "" && was != status {
			d.t.Fatalf("%s was %s and is %s", id, was, status)
		}
		if status == "succeeded" || status == "canceled" {
			d.ended[id] = status
		}
		var captured int
		charges, _ := d.must(d.get("charges", "payment_intent="+id, "limit=100")).body["data"].([]any)
		for _, c := range charges {
			charge := c.(map[string]any)
			if charge["status"] != "succeeded" {
				continue
			}
			if charge["captured"] == true {
				captured++
				d.checkRefunds(charge)
				if got, want := number(d.t, charge["amount"]), number(d.t, pi["amount"]); got != want {
					d.t.Fatalf("%s of %d was charged %d", id, want, got)
				}
			}
			if pi["latest_charge"] != charge["id"] {
				d.t.Fatalf("%s went on after a charge that succeeded", id)
			}
		}
		if paid := status == "succeeded"; paid != (captured == 1) || captured > 1 {
			d.t.Fatalf("%s is %s and has %d charges that succeeded", id, status, captured)
		}
		if paid, whole := status == "succeeded", number(d.t, pi["amount_received"]) == number(d.t,
			pi["amount"]); paid != whole {
			d.t.Fatalf("%s of %v is %s and has received %v", id, pi["amount"], status, pi["amount_received"])
		}
	}
}

func (d *drawer) checkRefunds(charge map[string]any) {
	var sum int64
	refunds, _ := d.must(d.get("refunds", "charge="+fmt.Sprint(charge["id"]), "limit=100")).body["data"].([]any)
	for _, r := range refunds {
		if refund := r.(map[string]any); refund["status"] != "failed" {
			sum += number(d.t, refund["amount"])
		}
	}
	disputes, _ := d.must(d.get("disputes", "charge="+fmt.Sprint(charge["id"]))).body["data"].([]any)
	for _, o := range disputes {
		dispute := o.(map[string]any)
		if status := fmt.Sprint(dispute["status"]); status == "won" || strings.HasPrefix(status, "warning_") {
			continue
		}
		if taken := sum + number(d.t, dispute["amount"]); taken > number(d.t, charge["amount"]) {
			d.t.Fatalf("%v of %v: refunds and a %v dispute take %d", charge["id"], charge["amount"], dispute["status"], taken)
		}
	}
	if shown := number(d.t, charge["amount_refunded"]); sum != shown || sum > number(d.t, charge["amount"]) {
		d.t.Fatalf("%v of %v: refunds of %d, and shown as %d", charge["id"], charge["amount"], sum, shown)
	}
	if charge["refunded"] != (sum == number(d.t, charge["amount"])) {
		d.t.Fatalf("%v of %v: refunds of %d, and refunded is %v", charge["id"], charge["amount"], sum, charge["refunded"])
	}
}
