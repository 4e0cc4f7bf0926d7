package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// benchmark has 128 goroutines open and confirm: two answers and two lines for each op.
func benchmark(b *testing.B, file string) {
	s := openSandbox(b, file, Options{})
	sum := amount(b, "12.99", "EUR")
	var count atomic.Int64
	b.SetParallelism(128 / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := charge(s, count.Add(1), sum); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}

func charge(s *Sandbox, i int64, sum money.Amount) error {
	in, err := s.Open(context.Background(), processor.OpenRequest{Key: fmt.Sprintf("open-0123456789abcdef-%d", i),
		Amount: sum, Method: "pm_card_visa",
		Tag: processor.Tag{Installation: "installation", Account: fmt.Sprintf("account-%07d", i),
			Subscription: fmt.Sprintf("sub-%07d", i), SKU: "plan", Period: 3}})
	if err != nil {
		return err
	}
	_, err = s.Confirm(context.Background(), processor.ConfirmRequest{Key: fmt.Sprintf("confirm-0123456789abcdef-%d", i),
		Ref: in.Ref, Method: "pm_card_visa", Attempt: 1})
	return err
}

func BenchmarkMemory(b *testing.B) { benchmark(b, "") }

func BenchmarkFile(b *testing.B) { benchmark(b, ledgerFile(b)) }

func BenchmarkReopen(b *testing.B) {
	const intents = 50_000
	file, sum := ledgerFile(b), amount(b, "12.99", "EUR")
	var text bytes.Buffer
	memory := openSandbox(b, "", Options{})
	for i := range intents {
		if err := charge(memory, int64(i), sum); err != nil {
			b.Fatal(err)
		}
	}
	enc := json.NewEncoder(&text)
	for number := range memory.ledger.lines.n {
		line := recordOf(memory.ledger.entry(number))
		line.Key = fmt.Sprint("key", number)
		if err := enc.Encode(line); err != nil {
			b.Fatal(err)
		}
	}
	writeFile(b, file, text.String())
	for b.Loop() {
		openSandbox(b, file, Options{}).Close()
	}
	b.ReportMetric(float64(2*intents*b.N)/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkListTail(b *testing.B) {
	sum, c := amount(b, "12.99", "EUR"), newClock()
	s := openSandbox(b, "", Options{Now: c.Now})
	for i := range 100_000 {
		c.move(time.Second)
		if err := charge(s, int64(i), sum); err != nil {
			b.Fatal(err)
		}
	}
	since := c.Now().Add(-9 * time.Second)
	for b.Loop() {
		n := 0
		for range s.List(b.Context(), processor.ListRequest{Since: since}) {
			n++
		}
		if n != 10 {
			b.Fatal(n)
		}
	}
}

// Lines cost less than 200 bytes each, where every intent is of an account of its own.
// A quarter of a million fills the maps as well as a million does.
func TestMemory(t *testing.T) {
	lines := soaktest.Cases(t, 62_500, 250_000, 250_000)
	before := heap()
	s := openSandbox(t, "", Options{})
	sum := amount(t, "12.99", "EUR")
	for i := range lines / 2 {
		if err := charge(s, int64(i), sum); err != nil {
			t.Fatal(err)
		}
	}
	cost := float64(heap()-before) / float64(lines)
	t.Logf("%.0f bytes a line", cost)
	if cost > 200 {
		t.Errorf("%.0f bytes a line, want less than 200", cost)
	}
	runtime.KeepAlive(s)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
