package book

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
)

// checkYields reads any bytes at all: no panic; what is accepted passes the rules and holds
// no card number; what is rejected shows none, says why, and comes in the file's order.
// FILE.rejected shows none either.
func checkYields(t *testing.T, f Format, data string) {
	t.Helper()
	var out strings.Builder
	w := NewRejectedWriter(&out, f)
	line, fatal := 0, false
	for r, bad := range Read(strings.NewReader(data), f, Options{PaymentMethod: "pm_card_visa"}) {
		if fatal && bad == nil {
			t.Fatal("a row after a fatal rejection")
		}
		if bad != nil {
			if bad.Line < line || bad.Reason == "" {
				t.Fatalf("line %d after %d, reason %q", bad.Line, line, bad.Reason)
			}
			line, fatal = bad.Line, fatal || bad.Fatal
			noCards(t, bad.Column, bad.Reason, bad.Raw)
			if err := w.Write(bad); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if r.Line < line || kinds(r) != 1 {
			t.Fatalf("record %+v after line %d", r, line)
		}
		line = r.Line
		if p := r.Price; p != nil {
			noCards(t, p.SKU, p.Amount, p.Currency, p.Name)
		}
		if s := r.Subscription; s != nil {
			if err := s.Check(); err != nil || s.Email == "" {
				t.Fatalf("accepted %+v: %v", s, err)
			}
			noCards(t, s.Account, s.Email, s.ID, s.SKU, s.Method, s.Address, s.TimeZone, s.Amount.Decimal(),
				s.Customer, s.Name, s.Locale, s.Fallback, s.Product)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	noCards(t, out.String())
}

// kinds counts what a record is.
func kinds(r Record) (n int) {
	for _, is := range []bool{r.Subscription != nil, r.Receipt != nil, r.Account != nil, r.Price != nil} {
		if is {
			n++
		}
	}
	return n
}

func noCards(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if secret.HasCardNumber(text) {
			t.Fatalf("a card number survives in %q", text)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("1,a@b.c,s1,k,1,USD,1,pm\n")
	f.Add("1,a@b.c,\"s\n1\",k,1,USD,1,4242424242424242\r\n\r\n1,\"")
	f.Add("4242 4242 4242 4242,a@b.c,s1,k,4242424242424242,JPY,31,pm,2023-01-31,2023-02-28,weekly,UTC,0,1,x\n")
	f.Add(" 1 ;a@b.c;s1;k;1.234,56;EUR;7;pm_1;7.3.2026;cus_1;Zoë;de;4242 4242 4242 4242;News\n2;a@b.c;s1;k;1,234;EUR;7;pm_1;;;;;;")
	f.Fuzz(func(t *testing.T, data string) {
		checkYields(t, CSV, data)
		checkYields(t, CSV, header+"\n"+data)
		checkYields(t, CSV, fullHeader+"\r\n"+data)
		checkYields(t, Prices, "sku;amount;currency;name\n"+data)
		checkYields(t, CSV, "sep=;\r\n"+strings.ReplaceAll(customerHeader, ",", ";")+"\r\n"+data)
	})
}

func FuzzJSONL(f *testing.F) {
	f.Add(goodLine)
	f.Add(with(`"address":"\u0034242424242424242"`) + "\n" + with(`"x":[4242424242424242]`))
	f.Add("{}\n[]\n{\"a\":{\"b\":[\"\\\"}\"]}}")
	f.Fuzz(func(t *testing.T, data string) {
		checkYields(t, JSONLines, data)
		checkYields(t, JSONLines, with(data))
	})
}

func FuzzWorkbench(f *testing.F) {
	f.Add(seedModel(f))
	f.Add(modelOf(goodItem, goodReceipt))
	f.Fuzz(func(t *testing.T, data string) {
		checkYields(t, Workbench, data)
		checkYields(t, Workbench, modelOf(data))
		Detect([]byte(data), "")
	})
}

func FuzzSamples(f *testing.F) {
	f.Add(goodSample + "\n")
	f.Add("ACC#1,SUB#s#SKU#k,a@b.c,28,1,2023-06-28,k,\"{\"\"default-card\"\":{\"\"N\"\":4242424242424242}}\"\r\n")
	f.Add("4242424242424242,ACC,4242 4242 4242 4242,,,,,{\n")
	f.Fuzz(func(t *testing.T, data string) {
		checkYields(t, Samples, data)
		checkYields(t, Samples, sampleHeader+"\n"+data)
		checkYields(t, Samples, "rejected_line,"+sampleHeader+"\r\n"+data)
	})
}
