package book

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
		row := map[string]string{"account": "=1+2", "email": "a@b.c", "subscription": `s"1,`, "sku": "'-k", "amount": "12.90",
			"currency":    "USD",
			"payment_day": "31", "payment_method": "pm", "next_payment_date": "2024-02-29", "address": address.String(),
			"reminder_days": "0"}
		cells := map[string]string{}
		for name, text := range row {
			cells[name] = AsCell(text)
			if strings.ContainsAny(cells[name][:min(1, len(cells[name]))], "=+-@") && !plainNumber.MatchString(text) {
				t.Fatalf("%q is a formula", cells[name])
			}
		}
		fromCSV, got := readAll(t, CSV, csvOf(t, cells))
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

// TestAsCell: no text is a formula, each comes back, and a text without one is not changed.
func TestAsCell(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "'": "'", "'a": "'a", "-2.50": "-2.50", "+3": "+3", "-": "'-",
		"=1": "'=1", "-1+2": "'-1+2", "+49 151": "'+49 151", "@a": "'@a", "\ta": "'\ta", "\ra": "'\ra", "＝1": "'＝1",
		"＋1": "'＋1", "－1": "'－1", "＠1": "'＠1", "'=1": "''=1", "''@": "'''@", "a=1": "a=1", "'-2": "'-2"} {
		if got := AsCell(text); got != want || ofCell(got) != text {
			t.Errorf("%q: got %q, and back %q", text, got, ofCell(got))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`'{0,3}[=+\-@\t\r＝＋－＠a1]?[0-9a+.=]{0,3}`).Draw(t, "text")
		if cell := AsCell(text); ofCell(cell) != text || cell != text && cell != "'"+text {
			t.Fatalf("%q became %q, and %q", text, cell, ofCell(cell))
		}
	})
}
