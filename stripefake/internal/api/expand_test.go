package api

import (
	"strings"
	"testing"
)

func TestKindOf(t *testing.T) {
	for id, want := range map[string]string{
		"pi_fake0000000001": "payment_intent", "sub_fake1": "subscription", "sub_sched_fake1": "subscription_schedule",
		"in_fake1":    "invoice",
		"inpay_fake1": "invoice_payment", "pm_card_visa": "payment_method", "x_1": "", "pi": "", "": "", "_": "",
	} {
		if got := kindOf(id); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

// TestExpand_Tables: what can be expanded leads to kinds that have a table, or no further.
func TestExpand_Tables(t *testing.T) {
	known := map[string]bool{"": true}
	for _, kind := range idKinds {
		known[kind] = true
	}
	known["line_item"] = true
	for kind, entries := range expandable {
		if !known[kind] {
			t.Errorf("%s is no kind", kind)
		}
		for entry := range strings.FieldsSeq(entries) {
			if _, to := expansionOf(entry); !known[to] {
				t.Errorf("%s: %s leads nowhere", kind, entry)
			}
		}
	}
}
