package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/stripefake"
)

// BenchmarkStripePayments is a payment run of a processor that takes 200 ms for every request
// and lets 25 a second through to each endpoint: how many charges a second that makes, and how
// many requests were refused for coming too fast. It takes two minutes.
//
//	go test -run=^$ -bench=StripePayments -benchtime=1x ./cmd/duesday
func BenchmarkStripePayments(b *testing.B) {
	for _, rate := range []int{25, 20} { // 20 is what is used where nothing is said
		b.Run(fmt.Sprint("budget", rate), func(b *testing.B) {
			for b.Loop() {
				payThroughStripe(b, rate)
			}
		})
	}
}

func payThroughStripe(b *testing.B, rate int) {
	const subscriptions = 1000
	fake := stripefake.New(stripefake.Options{Faults: stripefake.Faults{Latency: 200 * time.Millisecond, Rate: 25}})
	var mu sync.Mutex
	var confirmed []time.Time // when the answers to confirms left
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fake.ServeHTTP(w, r)
		if strings.HasSuffix(r.URL.Path, "/confirm") {
			mu.Lock()
			defer mu.Unlock()
			confirmed = append(confirmed, time.Now())
		}
	}))
	defer server.Close()
	dir := b.TempDir()
	due := time.Now().UTC()
	var book strings.Builder
	book.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date\n")
	for i := range subscriptions {
		fmt.Fprintf(&book, "a%d,a%d@example.com,s,gold,9.99,USD,%d,pm_card_visa,%s\n", i, i, due.Day(),
			due.Format(time.DateOnly))
	}
	file := filepath.Join(dir, "book.csv")
	if err := os.WriteFile(file, []byte(book.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	env := map[string]string{"DUESDAY_STRIPE_KEY": rehearsal.StripeFakeKey, "DUESDAY_STRIPE_API_BASE": server.URL,
		"DUESDAY_STORE": "pebble:" + filepath.Join(dir, "data"),
		"DUESDAY_MAIL":  filepath.Join(dir, "mail"), "DUESDAY_PROCESSOR": fmt.Sprint("stripe:?rate=", rate)}
	command := func(args ...string) {
		b.Helper()
		var errors strings.Builder
		code := run(b.Context(), args, func(name string) string { return env[name] }, strings.NewReader(""), io.Discard,
			&errors)
		if code != exitDone {
			b.Fatalf("duesday %s: exit %d\n%s", strings.Join(args, " "), code, errors.String())
		}
	}
	command("import", file)
	begun := time.Now()
	command("run", "payments")
	took := time.Since(begun)
	charges, refused := 0, int64(0)
	for e := range fake.Ledger() {
		if e.Type == "charge" {
			charges++
		}
	}
	for _, n := range fake.Counts() {
		if n.Status == 429 {
			refused += n.Requests
		}
	}
	if charges != subscriptions {
		b.Errorf("%d charges of %d", charges, subscriptions)
	}
	mu.Lock()
	defer mu.Unlock()
	charging := confirmed[len(confirmed)-1].Sub(confirmed[0])
	b.ReportMetric(float64(len(confirmed)-1)/charging.Seconds(), "charges/s") // without what comes before and after
	b.ReportMetric(float64(charges)/took.Seconds(), "charges/s-whole-run")
	b.ReportMetric(float64(refused), "429s")
	b.ReportMetric(0, "ns/op")
}
