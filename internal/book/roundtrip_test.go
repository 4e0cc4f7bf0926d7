package book

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestRead_RoundTrip: what is written under the columns' names is read as the same subscription,
// whatever stands in its texts.
func TestRead_RoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune(`ab,;"'\<>&={}[]:é世-+@ ` + "\u2028")
	for range 300 {
		var address strings.Builder
		for range random.IntN(20) {
			address.WriteRune(letters[random.IntN(len(letters))])
		}
		row := map[string]string{"account": "=1+2", "email": "a@b.c", "subscription": `s"1,`, "sku": "-k", "amount": "12.90",
			"currency":    "USD",
			"payment_day": "31", "payment_method": "pm", "next_payment_date": "2024-02-29", "address": address.String(),
			"reminder_days": "0"}
		fromCSV, got := readAll(t, CSV, csvOf(t, row))
		rejects(t, got)
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		fromJSON, got := readAll(t, JSONLines, string(line)+"\n")
		rejects(t, got)
		if len(fromCSV) != 1 || len(fromJSON) != 1 || !reflect.DeepEqual(fromCSV[0].Subscription, fromJSON[0].Subscription) ||
			fromCSV[0].Subscription.Address != address.String() {
			t.Fatalf("address %q: got %+v and %+v", address.String(), fromCSV, fromJSON)
		}
	}
}
