package billingapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
)

// TestReceipts_Order: order=newest lists the latest payment first, page by page without a gap, and subscription leaves out the
// payments of the account's other subscriptions.
func TestReceipts_Order(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("POST", "/v1/accounts/ada/subscriptions", `{"id":"s2","sku":"pool","amount":500,"currency":"EUR","payment_day":31`+visa+`}`)
	for range 3 {
		for _, id := range []string{"s1", "s2"} {
			w.must("POST", "/v1/accounts/ada/subscriptions/"+id+"/charge", `{}`)
		}
		w.days.Add(31)
	}
	for query, want := range map[string][]string{"": {"s1 0", "s2 0", "s1 1", "s2 1", "s1 2", "s2 2"}, "&order=oldest&subscription=s2": {"s2 0", "s2 1", "s2 2"},
		"&order=newest": {"s2 2", "s1 2", "s2 1", "s1 1", "s2 0", "s1 0"}, "&order=newest&subscription=s1": {"s1 2", "s1 1", "s1 0"}, "&subscription=s3": nil} {
		var got []string
		for cursor := ""; ; {
			page := w.must("GET", "/v1/receipts?account=ada&limit=2"+query+cursor, "").body
			for _, x := range page["data"].([]any) {
				got = append(got, fmt.Sprint(x.(map[string]any)["subscription"], " ", x.(map[string]any)["period"]))
			}
			if page["has_more"] != true {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(page["next_cursor"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}
