package book

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// bigBook is a CSV, or JSON lines, of many subscriptions, each of an account of its own.
func bigBook(f Format, rows int) []byte {
	var b bytes.Buffer
	if f == CSV {
		b.WriteString(header + ",next_payment_date,interval,time_zone,address\n")
	}
	for i := range rows {
		format := "acct-%07d,person%d@example.com,sub-%d,SKU-%d,%d.99,USD,%d,pm_card_visa,2026-03-%02d,monthly," +
			"Europe/Berlin,\"%d Bridge Street, Birmingham\"\n"
		if f == JSONLines {
			format = `{"account":"acct-%07d","email":"person%d@example.com","subscription":"sub-%d","sku":"SKU-%d","amount":"%d.99","currency":"USD","payment_day":%d,` +
				`"payment_method":"pm_card_visa","next_payment_date":"2026-03-%02d","interval":"monthly","time_zone":"Europe/Berlin","address":"%d Bridge Street, Birmingham"}` + "\n"
		}
		fmt.Fprintf(&b, format, i, i, i, i%50, 1+i%90, 1+i%28, 1+i%28, i%300)
	}
	return b.Bytes()
}

func count(t testing.TB, r io.Reader, f Format) (good, bad int) {
	t.Helper()
	for _, rejected := range Read(r, f, Options{}) {
		if rejected != nil {
			t.Log(*rejected)
			bad++
		} else {
			good++
		}
	}
	return good, bad
}

// BenchmarkRead reads 100,000 rows an iteration, the check of rows against each other and
// its memory among it.
func BenchmarkRead(b *testing.B) {
	const rows = 100_000
	for f, name := range map[Format]string{CSV: "CSV", JSONLines: "JSONlines"} {
		book := bigBook(f, rows)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(book)))
			for b.Loop() {
				if good, _ := count(b, bytes.NewReader(book), f); good != rows {
					b.Fatal(good)
				}
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// TestRead_BoundedMemory reads rows that are made as they are read: 100 MB for a million,
// in proportion. The number is one at which the maps have just doubled, as at a million. -short
// reads a quarter.
func TestRead_BoundedMemory(t *testing.T) {
	rows := soaktest.Cases(t, 62_500, 250_000, 1_000_000)
	pr, pw := io.Pipe()
	go func() {
		b := bytes.NewBufferString(header + "\n")
		for i := range rows {
			fmt.Fprintf(b, "acct-%d,person%d@example.com,sub-%d,SKU,9.99,USD,1,pm_card_visa\n", i, i, i)
			if b.Len() > chunk || i == rows-1 {
				pw.Write(b.Bytes())
				b.Reset()
			}
		}
		pw.Close()
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for _, bad := range Read(pr, CSV, Options{}) {
		if bad != nil {
			t.Fatal(*bad)
		}
		if n++; n == rows {
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
	}
	if n != rows {
		t.Fatalf("%d rows, want %d", n, rows)
	}
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes held for a row", held/int64(rows))
	if held > 100*int64(rows) {
		t.Errorf("%d bytes are held for a row, want at most 100", held/int64(rows))
	}
}
