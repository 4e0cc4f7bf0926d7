package stripefake_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"pgregory.net/rapid"
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
}

func number(t *rapid.T, v any) int64 {
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
	rapid.Check(t, func(rt *rapid.T) {
		d := &drawer{till: newUnwatchedTill(t), ended: map[string]string{}}
		d.customer = d.must(d.post("customers")).id()
		for _, method := range []string{"pm_card_visa", "pm_card_chargeCustomerFail",
			"pm_card_authenticationRequiredOnSetup"} {
			d.attached = append(d.attached, d.must(d.post("payment_methods/"+method+"/attach", "customer="+d.customer)).id())
		}
		d.open(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":        d.check,
			"open":    d.open,
			"confirm": func(rt *rapid.T) { d.post("payment_intents/"+d.intentOf(rt)+"/confirm", d.how(rt)...) },
			"cancel":  func(rt *rapid.T) { d.post("payment_intents/" + d.intentOf(rt) + "/cancel") },
			"capture": func(rt *rapid.T) { d.post("payment_intents/" + d.intentOf(rt) + "/capture") },
			"amount": func(rt *rapid.T) {
				d.post("payment_intents/"+d.intentOf(rt), "amount="+fmt.Sprint(rapid.Int64Range(0, 5000).Draw(rt, "amount")))
			},
			"method":       func(rt *rapid.T) { d.post("payment_intents/"+d.intentOf(rt), "payment_method="+d.method(rt)) },
			"authenticate": func(rt *rapid.T) { _ = d.fake.Authenticate(d.intentOf(rt), rapid.Bool().Draw(rt, "ok")) },
			"finish":       func(rt *rapid.T) { _ = d.fake.Finish(d.intentOf(rt), rapid.Bool().Draw(rt, "ok")) },
			"refund":       d.refund,
			"dispute":      func(rt *rapid.T) { _, _ = d.fake.Dispute(d.intentOf(rt), "") },
			"refunded": func(rt *rapid.T) {
				if len(d.refunds) > 0 {
					_ = d.fake.FinishRefund(rapid.SampledFrom(d.refunds).Draw(rt, "refund"), rapid.Bool().Draw(rt, "ok"))
				}
			},
		})
	})
}

func (d *drawer) intentOf(rt *rapid.T) string { return rapid.SampledFrom(d.intents).Draw(rt, "intent") }

func (d *drawer) method(rt *rapid.T) string {
	return rapid.SampledFrom(slices.Concat(anyMethod, d.attached)).Draw(rt, "method")
}

func (d *drawer) how(rt *rapid.T) []string {
	var params []string
	if rapid.Bool().Draw(rt, "with method") {
		params = append(params, "payment_method="+d.method(rt))
	}
	if rapid.Bool().Draw(rt, "off session") {
		params = append(params, "off_session=true")
	}
	if rapid.Bool().Draw(rt, "with return_url") {
		params = append(params, "return_url=https://shop.example/")
	}
	return params
}

func (d *drawer) open(rt *rapid.T) {
	if len(d.intents) == 2 {
		return
	}
	params := []string{"amount=1000", "currency=usd", "payment_method_types[]=card",
		"payment_method_types[]=us_bank_account"}
	if rapid.Bool().Draw(rt, "for the customer") {
		params = append(params, "customer="+d.customer)
	}
	if rapid.Bool().Draw(rt, "manual") {
		params = append(params, "capture_method=manual")
	}
	d.intents = append(d.intents, d.must(d.post("payment_intents", params...)).id())
}

func (d *drawer) refund(rt *rapid.T) {
	params := []string{"payment_intent=" + d.intentOf(rt)}
	if rapid.Bool().Draw(rt, "part") {
		params = append(params, "amount="+fmt.Sprint(rapid.Int64Range(1, 1500).Draw(rt, "amount")))
	}
	if a := d.post("refunds", params...); a.status == http.StatusOK {
		d.refunds = append(d.refunds, a.id())
	}
}

func (d *drawer) check(rt *rapid.T) {
	for _, id := range d.intents {
		pi := d.must(d.get("payment_intents/" + id)).body
		status := fmt.Sprint(pi["status"])
		if was := d.ended[id]; was != "" && was != status {
			rt.Fatalf("%s was %s and is %s", id, was, status)
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
				d.checkRefunds(rt, charge)
				if got, want := number(rt, charge["amount"]), number(rt, pi["amount"]); got != want {
					rt.Fatalf("%s of %d was charged %d", id, want, got)
				}
			}
			if pi["latest_charge"] != charge["id"] {
				rt.Fatalf("%s went on after a charge that succeeded", id)
			}
		}
		if paid := status == "succeeded"; paid != (captured == 1) || captured > 1 {
			rt.Fatalf("%s is %s and has %d charges that succeeded", id, status, captured)
		}
		if paid, whole := status == "succeeded", number(rt, pi["amount_received"]) == number(rt,
			pi["amount"]); paid != whole {
			rt.Fatalf("%s of %v is %s and has received %v", id, pi["amount"], status, pi["amount_received"])
		}
	}
}

func (d *drawer) checkRefunds(rt *rapid.T, charge map[string]any) {
	var sum int64
	refunds, _ := d.must(d.get("refunds", "charge="+fmt.Sprint(charge["id"]), "limit=100")).body["data"].([]any)
	for _, r := range refunds {
		if refund := r.(map[string]any); refund["status"] != "failed" {
			sum += number(rt, refund["amount"])
		}
	}
	if shown := number(rt, charge["amount_refunded"]); sum != shown || sum > number(rt, charge["amount"]) {
		rt.Fatalf("%v of %v: refunds of %d, and shown as %d", charge["id"], charge["amount"], sum, shown)
	}
	if charge["refunded"] != (sum == number(rt, charge["amount"])) {
		rt.Fatalf("%v of %v: refunds of %d, and refunded is %v", charge["id"], charge["amount"], sum, charge["refunded"])
	}
}
