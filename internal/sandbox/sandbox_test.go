package sandbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// A handClock is one that a test moves.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *handClock { return &handClock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func amount(t testing.TB, text, code string) money.Amount {
	t.Helper()
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	a, err := money.Parse(text, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func openSandbox(t testing.TB, file string, o Options) *Sandbox {
	t.Helper()
	s, err := Open(file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// request is an Open for the period, under a key of its own.
func request(t testing.TB, period, generation int, method string) processor.OpenRequest {
	return processor.OpenRequest{
		Key: fmt.Sprintf("open-%d-%d", period, generation),
		Tag: processor.Tag{Installation: "i1", Account: "123", Subscription: "456", SKU: "789", Period: period,
			Generation: generation},
		Amount: amount(t, "12.99", "EUR"), Method: method,
	}
}

func mustOpen(t testing.TB, s processor.Charger, r processor.OpenRequest) processor.Intent {
	t.Helper()
	in, err := s.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func mustConfirm(t testing.TB, s processor.Charger, ref, key, method string) processor.Intent {
	t.Helper()
	in, err := s.Confirm(t.Context(), processor.ConfirmRequest{Key: key, Ref: ref, Method: method, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func mustLookup(t testing.TB, s processor.Charger, ref string) processor.Intent {
	t.Helper()
	in, err := s.Lookup(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// outcomes lists the outcomes of the ledger in order.
func outcomes(s interface{ Entries() iter.Seq[Entry] }) string {
	var all []string
	for e := range s.Entries() {
		all = append(all, string(e.State))
	}
	return strings.Join(all, " ")
}

func wantOutcomes(t *testing.T, s interface{ Entries() iter.Seq[Entry] }, want string) {
	t.Helper()
	if got := outcomes(s); got != want {
		t.Errorf("ledger has %q, want %q", got, want)
	}
}

// A subject is what a test calls: a processor, and what no processor's client can do.
type subject struct {
	processor.Charger
	box *Sandbox
}

func (s *subject) Entries() iter.Seq[Entry] { return s.box.Entries() }

// everyWhere runs the test with a ledger in memory, with one in a file, and with one whose calls go to
// two processes in turn.
func everyWhere(t *testing.T, test func(t *testing.T, s *subject, c *handClock)) {
	t.Helper()
	for name, file := range map[string]string{"memory": "", "file": ledgerFile(t), "shared": ledgerFile(t)} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			box := openSandbox(t, file, Options{Now: c.Now})
			s := &subject{box, box}
			if name == "shared" {
				s.Charger = &relay{both: [2]*Sandbox{box, openSandbox(t, file, Options{Now: c.Now})}}
			}
			test(t, s, c)
		})
	}
}

// A relay sends each call to the other of two ledgers of one file.
type relay struct {
	both  [2]*Sandbox
	calls atomic.Uint32
}

func (r *relay) next() *Sandbox { return r.both[r.calls.Add(1)%2] }

func (r *relay) Open(ctx context.Context, o processor.OpenRequest) (processor.Intent, error) {
	return r.next().Open(ctx, o)
}

func (r *relay) Confirm(ctx context.Context, c processor.ConfirmRequest) (processor.Intent, error) {
	return r.next().Confirm(ctx, c)
}

func (r *relay) Cancel(ctx context.Context, ref string) (processor.Intent, error) {
	return r.next().Cancel(ctx, ref)
}

func (r *relay) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	return r.next().Lookup(ctx, ref)
}

func (r *relay) List(ctx context.Context, l processor.ListRequest) iter.Seq2[processor.Intent, error] {
	return r.next().List(ctx, l)
}

func (r *relay) Refund(ctx context.Context, q processor.RefundRequest) (processor.Reversal, error) {
	return r.next().Refund(ctx, q)
}

func (r *relay) ReversalsOf(ctx context.Context, ref string) ([]processor.Reversal, error) {
	return r.next().ReversalsOf(ctx, ref)
}

func (r *relay) Reversals(ctx context.Context, l processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	return r.next().Reversals(ctx, l)
}

func TestOpen_Replay(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, c *handClock) {
		r := request(t, 1, 0, "pm_card_visa")
		first := mustOpen(t, s, r)
		want := processor.Intent{Ref: first.Ref, State: processor.Opened, Tag: r.Tag, Amount: r.Amount, Changed: c.Now()}
		if first != want || !strings.HasPrefix(first.Ref, "pi_sandbox_") {
			t.Errorf("opened %+v, want %+v", first, want)
		}
		mustConfirm(t, s, first.Ref, "k", "pm_card_visa")
		c.move(DefaultKeyLife - time.Millisecond)
		if again := mustOpen(t, s, r); again != first {
			t.Errorf("replay %+v, want the first answer %+v", again, first)
		}
		c.move(time.Millisecond)
		if again := mustOpen(t, s, r); again.Ref == first.Ref {
			t.Error("a forgotten key gave the same intent")
		}
		wantOutcomes(t, s, "opened succeeded opened")
	})
}

func TestOpen_OtherParameters(t *testing.T) { everyWhere(t, testOtherParameters) }

func testOtherParameters(t *testing.T, s *subject, _ *handClock) {
	r := request(t, 1, 0, "pm_card_visa")
	in := mustOpen(t, s, r)
	for name, change := range map[string]func(r *processor.OpenRequest){
		"amount":   func(r *processor.OpenRequest) { r.Amount = amount(t, "13", "EUR") },
		"currency": func(r *processor.OpenRequest) { r.Amount = amount(t, "12.99", "USD") },
		"method":   func(r *processor.OpenRequest) { r.Method = "pm_other" },
		"price":    func(r *processor.OpenRequest) { r.Price = "{}" },
		"period":   func(r *processor.OpenRequest) { r.Tag.Period++ },
		"account":  func(r *processor.OpenRequest) { r.Tag.Account = "x" },
		"sku":      func(r *processor.OpenRequest) { r.Tag.SKU = "x" },
	} {
		other := r
		change(&other)
		if _, err := s.Open(t.Context(), other); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("other %s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := s.Confirm(t.Context(), processor.ConfirmRequest{Key: r.Key, Ref: in.Ref,
		Method: r.Method}); !errors.Is(err, processor.ErrInvalid) {
		t.Errorf("confirm with an open's key: %v, want ErrInvalid", err)
	}
	mustConfirm(t, s, in.Ref, "k", "pm_card_visa")
	r.Key = "k"
	if _, err := s.Open(t.Context(), r); !errors.Is(err, processor.ErrInvalid) {
		t.Errorf("open with a confirm's key: %v, want ErrInvalid", err)
	}
}

func TestOpen_Invalid(t *testing.T) { everyWhere(t, testOpenInvalid) }

func testOpenInvalid(t *testing.T, s *subject, _ *handClock) {
	eur, _ := money.ParseCurrency("EUR")
	for name, change := range map[string]func(r *processor.OpenRequest){
		"zero":        func(r *processor.OpenRequest) { r.Amount = money.New(0, eur) },
		"negative":    func(r *processor.OpenRequest) { r.Amount = money.New(-1, eur) },
		"no currency": func(r *processor.OpenRequest) { r.Amount = money.New(1, money.Currency{}) },
		"no key":      func(r *processor.OpenRequest) { r.Key = "" },
		"long key":    func(r *processor.OpenRequest) { r.Key = strings.Repeat("k", 256) },
		"bad utf-8":   func(r *processor.OpenRequest) { r.Tag.Account = "\xff" },
		"long text":   func(r *processor.OpenRequest) { r.Method = strings.Repeat("m", 501) },
		"period":      func(r *processor.OpenRequest) { r.Tag.Period = -1 },
		"generation":  func(r *processor.OpenRequest) { r.Tag.Generation = 1 << 40 },
	} {
		r := request(t, 1, 0, "pm_card_visa")
		change(&r)
		if in, err := s.Open(t.Context(), r); !errors.Is(err, processor.ErrInvalid) || in != (processor.Intent{}) {
			t.Errorf("%s: %+v, %v, want ErrInvalid", name, in, err)
		}
	}
	wantOutcomes(t, s, "")
}

func TestConfirm_Replay(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, c *handClock) {
		ref := mustOpen(t, s, request(t, 1, 0, "pm_card_visa_chargeDeclined")).Ref
		first := mustConfirm(t, s, ref, "k1", "pm_card_visa_chargeDeclined")
		c.move(time.Hour)
		second := mustConfirm(t, s, ref, "k2", "pm_card_visa")
		if second.State != processor.Succeeded || second.Latest == first.Latest {
			t.Errorf("a new key answered %+v after %+v", second, first)
		}
		if again := mustConfirm(t, s, ref, "k1", "pm_card_visa_chargeDeclined"); again != first ||
			again.State != processor.Declined {
			t.Errorf("replay %+v, want the first answer %+v", again, first)
		}
		other := mustOpen(t, s, request(t, 2, 0, "")).Ref
		for _, r := range []processor.ConfirmRequest{{Key: "k1", Ref: ref, Method: "pm_card_visa"},
			{Key: "k1", Ref: other, Method: "pm_card_visa_chargeDeclined"}} {
			if _, err := s.Confirm(t.Context(), r); !errors.Is(err, processor.ErrInvalid) {
				t.Errorf("key with other parameters %+v: %v, want ErrInvalid", r, err)
			}
		}
		wantOutcomes(t, s, "opened declined succeeded opened")
	})
}

func TestConfirm_AtMostOnce(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, c *handClock) {
		paid := mustOpen(t, s, request(t, 1, 0, "pm_card_visa")).Ref
		gone := mustOpen(t, s, request(t, 2, 0, "pm_card_visa")).Ref
		success := mustConfirm(t, s, paid, "k1", "pm_card_visa")
		canceled, err := s.Cancel(t.Context(), gone)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			c.move(366 * 24 * time.Hour)
			if in := mustConfirm(t, s, paid, "k1", "pm_card_visa"); in != success {
				t.Errorf("old key, year %d: %+v", i, in)
			}
			if in := mustConfirm(t, s, paid, fmt.Sprint("new", i), "pm_card_visa"); in != success {
				t.Errorf("new key, year %d: %+v", i, in)
			}
			if in := mustConfirm(t, s, gone, fmt.Sprint("gone", i), "pm_card_visa"); in != canceled {
				t.Errorf("canceled, year %d: %+v", i, in)
			}
		}
		wantOutcomes(t, s, "opened opened succeeded canceled")
	})
}

func TestConfirm_Invalid(t *testing.T) { everyWhere(t, testConfirmInvalid) }

func testConfirmInvalid(t *testing.T, s *subject, _ *handClock) {
	ref := mustOpen(t, s, request(t, 1, 0, "")).Ref
	for _, r := range []processor.ConfirmRequest{
		{Key: "", Ref: ref, Method: "pm_card_visa"},
		{Key: "k", Ref: ref},
		{Key: "k", Ref: ref, Method: "\xff"},
		{Key: "k", Ref: ref, Method: "pm_card_visa", Attempt: -1},
	} {
		if _, err := s.Confirm(t.Context(), r); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", r, err)
		}
	}
	if _, err := s.Confirm(t.Context(), processor.ConfirmRequest{Key: "k", Ref: "pi_none",
		Method: "pm_card_visa"}); !errors.Is(err, processor.ErrNoIntent) {
		t.Errorf("unknown ref: %v, want ErrNoIntent", err)
	}
	if in := mustConfirm(t, s, ref, "k", "pm_card_visa"); in.State != processor.Succeeded {
		t.Errorf("a refused request kept its key: %+v", in)
	}
}

func TestCancel(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, c *handClock) {
		for i, method := range []string{"", "pm_card_visa_chargeDeclined", "pm_card_authenticationRequired",
			"pm_sandbox_processing", "pm_card_visa"} {
			in := mustOpen(t, s, request(t, i, 0, method))
			if method != "" {
				in = mustConfirm(t, s, in.Ref, fmt.Sprint("k", i), method)
			}
			c.move(time.Second)
			want := in
			if method != "pm_card_visa" {
				want.State, want.Changed = processor.Canceled, c.Now()
			}
			for range 2 {
				got, err := s.Cancel(t.Context(), in.Ref)
				if err != nil || got != want || mustLookup(t, s, in.Ref) != want {
					t.Errorf("cancel after %q: %+v, %v, want %+v", method, got, err, want)
				}
				c.move(time.Second)
			}
		}
		wantOutcomes(t, s, "opened canceled opened declined canceled opened requires_action canceled opened processing "+
			"canceled opened succeeded")
		if _, err := s.Cancel(t.Context(), "pi_none"); !errors.Is(err, processor.ErrNoIntent) {
			t.Errorf("unknown ref: %v, want ErrNoIntent", err)
		}
	})
}

func TestLookup(t *testing.T) { everyWhere(t, testLookup) }

func testLookup(t *testing.T, s *subject, _ *handClock) {
	in := mustOpen(t, s, request(t, 1, 0, "pm_card_visa"))
	if got := mustLookup(t, s, in.Ref); got != in {
		t.Errorf("%+v, want %+v", got, in)
	}
	confirmed := mustConfirm(t, s, in.Ref, "k", "pm_card_visa")
	if got := mustLookup(t, s, in.Ref); got != confirmed || !strings.HasPrefix(got.Latest, "ch_sandbox_") {
		t.Errorf("%+v, want %+v", got, confirmed)
	}
	for _, ref := range []string{"pi_sandbox_none", "", ".", "..", "a/b", "a?b#c%", "\xff", "é ", "\x00"} {
		if _, err := s.Lookup(t.Context(), ref); !errors.Is(err, processor.ErrNoIntent) {
			t.Errorf("unknown ref %q: %v, want ErrNoIntent", ref, err)
		}
		if _, err := s.Cancel(t.Context(), ref); !errors.Is(err, processor.ErrNoIntent) {
			t.Errorf("cancel of unknown ref %q: %v, want ErrNoIntent", ref, err)
		}
	}
}

func TestClose(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *handClock) {
		in := mustOpen(t, s, request(t, 1, 0, "pm_card_visa"))
		mustLookup(t, s.box, in.Ref)
		for range 2 {
			if err := s.box.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if _, err := s.box.Lookup(t.Context(), in.Ref); !errors.Is(err, errClosed) {
			t.Errorf("lookup after close: %v", err)
		}
		for _, err := range s.box.List(context.Background(), processor.ListRequest{}) {
			if !errors.Is(err, errClosed) {
				t.Errorf("list after close: %v", err)
			}
		}
		wantOutcomes(t, s, "opened")
	})
}

func TestClockOutOfRange(t *testing.T) {
	s := openSandbox(t, "", Options{Now: func() time.Time { return time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) }})
	if _, err := s.Open(t.Context(), request(t, 1, 0, "pm_card_visa")); err == nil {
		t.Error("a year that the ledger cannot write was accepted")
	}
}
