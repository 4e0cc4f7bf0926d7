package book

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestWriter(t *testing.T) {
	for f, want := range map[Format]string{
		CSV:       "account,address\n1,\"a \"\"b\"\", c\"\n=2,-1\n",
		JSONLines: `{"account":"1","address":"a \"b\", c"}` + "\n" + `{"account":"=2","address":"-1"}` + "\n",
	} {
		var b strings.Builder
		w, err := NewWriter(&b, f, []string{"account", "address"})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range [][]string{{"1", `a "b", c`}, {"=2", "-1"}} {
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Write([]string{"1"}); err == nil {
			t.Error("a row that is too short was written")
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%v: got %q, want %q", f, b.String(), want)
		}
	}
	if _, err := NewWriter(nil, Workbench, nil); err == nil {
		t.Error("a Writer of Workbench models was made")
	}
}

func TestWriter_NoRows(t *testing.T) {
	var b strings.Builder
	w, _ := NewWriter(&b, CSV, []string{"a", "b"})
	if err := w.Flush(); err != nil || b.String() != "a,b\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

// TestWriter_RoundTrip: what is written under the columns' names is read as the same
// subscription, whatever stands in its texts.
func TestWriter_RoundTrip(t *testing.T) {
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
		values := make([]string, columns)
		for i, name := range columnNames {
			values[i] = row[name]
		}
		var b strings.Builder
		w, _ := NewWriter(&b, JSONLines, Columns())
		if err := w.Write(values); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if !json.Valid([]byte(b.String())) {
			t.Fatalf("not JSON: %s", b.String())
		}
		fromJSON, got := readAll(t, JSONLines, b.String())
		rejects(t, got)
		if len(fromCSV) != 1 || len(fromJSON) != 1 || !reflect.DeepEqual(fromCSV[0].Subscription, fromJSON[0].Subscription) ||
			fromCSV[0].Subscription.Address != address.String() {
			t.Fatalf("address %q: got %+v and %+v", address.String(), fromCSV, fromJSON)
		}
	}
}
