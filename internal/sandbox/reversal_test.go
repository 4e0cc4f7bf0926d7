package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

// paidIntent is an intent of 12.99 EUR that has been paid.
func paidIntent(t testing.TB, s processor.Charger, period int, method string) processor.Intent {
	t.Helper()
	in := mustOpen(t, s, request(t, period, 0, method))
	return mustConfirm(t, s, in.Ref, fmt.Sprint("confirm-", period), method)
}

func refundOf(t testing.TB, key, ref, sum string) processor.RefundRequest {
	return processor.RefundRequest{Key: key, ID: "id-" + key, Ref: ref, Amount: amount(t, sum, "EUR"),
		Reason: processor.Duplicate}
}

func mustRefund(t testing.TB, s any, r processor.RefundRequest) processor.Reversal {
	t.Helper()
	made, err := s.(processor.Refunder).Refund(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func listReturns(t testing.TB, s processor.Charger, since time.Time) (list []processor.Reversal) {
	t.Helper()
	for r, err := range s.(processor.Refunder).Reversals(t.Context(), processor.ListRequest{Since: since}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func TestRefund(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, c *handClock) {
		p := s.Charger
		in := paidIntent(t, p, 1, "pm_card_visa")
		c.move(time.Hour)
		first := mustRefund(t, p, refundOf(t, "a", in.Ref, "5.00"))
		want := processor.Reversal{Kind: processor.Refunded, ID: first.ID, Request: "id-a", Ref: in.Ref, Tag: in.Tag,
			Amount: amount(t, "5.00", "EUR"),
			State:  processor.ReversalSucceeded, Reason: "duplicate", Created: c.Now()}
		if first != want || !strings.HasPrefix(first.ID, refundPrefix) {
			t.Errorf("got %+v, want %+v", first, want)
		}
		c.move(time.Hour)
		if again := mustRefund(t, p, refundOf(t, "a", in.Ref, "5.00")); again != first {
			t.Errorf("under the same key: %+v", again)
		}
		for what, r := range map[string]processor.RefundRequest{
			"another amount":  {Key: "a", ID: "id-a", Ref: in.Ref, Amount: amount(t, "5.01", "EUR"), Reason: processor.Duplicate},
			"another id":      {Key: "a", ID: "id-b", Ref: in.Ref, Amount: amount(t, "5.00", "EUR"), Reason: processor.Duplicate},
			"key of a charge": refundOf(t, "open-1-0", in.Ref, "1"),
			"too much":        refundOf(t, "b", in.Ref, "8.00"),
			"no amount":       refundOf(t, "b", in.Ref, "0"),
			"no key":          refundOf(t, "", in.Ref, "1"),
			"other currency":  {Key: "b", Ref: in.Ref, Amount: amount(t, "1", "USD")},
			"odd reason":      {Key: "b", Ref: in.Ref, Amount: amount(t, "1", "EUR"), Reason: "whim"},
			"not paid":        refundOf(t, "b", mustOpen(t, p, request(t, 2, 0, "pm_card_visa")).Ref, "1"),
		} {
			if _, err := p.(processor.Refunder).Refund(t.Context(), r); !errors.Is(err, processor.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		if _, err := p.(processor.Refunder).Refund(t.Context(), refundOf(t, "b", "pi_x", "1")); !errors.Is(err,
			processor.ErrNoIntent) {
			t.Errorf("no such intent: %v", err)
		}
		if _, err := p.Open(t.Context(), processor.OpenRequest{Key: "a", Amount: amount(t, "1", "EUR"),
			Method: "pm_card_visa"}); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("a refund's key for a charge: %v", err)
		}
		c.move(time.Hour)
		second := mustRefund(t, p, refundOf(t, "b", in.Ref, "7.99"))
		of, err := p.(processor.Refunder).ReversalsOf(t.Context(), in.Ref)
		if want := []processor.Reversal{first, second}; err != nil || !slices.Equal(of, want) {
			t.Errorf("of the intent: %+v, %v, want %+v", of, err, want)
		}
		if _, err := p.(processor.Refunder).ReversalsOf(t.Context(), "pi_x"); !errors.Is(err, processor.ErrNoIntent) {
			t.Errorf("of no intent: %v", err)
		}
		if got := listReturns(t, p, second.Created); !slices.Equal(got, []processor.Reversal{second}) {
			t.Errorf("since then: %+v", got)
		}
		if now, err := p.Lookup(t.Context(), in.Ref); err != nil || now != in {
			t.Errorf("the intent was %+v and is %+v, %v", in, now, err)
		}
		wantOutcomes(t, s, "opened succeeded opened")
		c.move(DefaultKeyLife) // the key is forgotten, and nothing is left
		if _, err := p.(processor.Refunder).Refund(t.Context(), refundOf(t, "a", in.Ref, "5.00")); !errors.Is(err,
			processor.ErrInvalid) {
			t.Errorf("a day later: %v", err)
		}
	})
}

func TestMakeAndMoveReturn(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, c *handClock) {
		in := paidIntent(t, s.Charger, 1, methodPendingRefund)
		pending := mustRefund(t, s.Charger, refundOf(t, "a", in.Ref, "5.00"))
		if pending.State != processor.ReversalPending {
			t.Errorf("refund: %+v", pending)
		}
		dispute, err := s.box.MakeReversal(processor.Reversal{Kind: processor.Disputed, Ref: in.Ref,
			Amount: amount(t, "7.99", "EUR"), State: processor.ReversalPending, Reason: "fraudulent"})
		if err != nil || dispute.Tag != in.Tag || dispute.Request != "" || !strings.HasPrefix(dispute.ID, disputePrefix) {
			t.Fatalf("dispute: %+v, %v", dispute, err)
		}
		c.move(time.Hour)
		for id, state := range map[string]processor.ReversalState{pending.ID: processor.ReversalFailed,
			dispute.ID: processor.ReversalSucceeded} {
			if err := s.box.MoveReversal(id, state); err != nil {
				t.Fatal(err)
			}
		}
		moved, lost := pending, dispute
		moved.State, lost.State = processor.ReversalFailed, processor.ReversalSucceeded
		if got := listReturns(t, s.Charger, time.Time{}); !slices.Equal(got, []processor.Reversal{moved, lost}) {
			t.Errorf("listed: %+v", got)
		}
		if again := mustRefund(t, s.Charger, refundOf(t, "a", in.Ref, "5.00")); again != pending {
			t.Errorf("the key answers %+v, and answered %+v first", again, pending)
		}
		mustRefund(t, s.Charger, refundOf(t, "b", in.Ref, "5.00")) // what failed may go back again
		if err := s.box.MoveReversal("re_x", processor.ReversalFailed); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("nothing of that id: %v", err)
		}
		if err := s.box.MoveReversal(dispute.ID, processor.ReversalRequested); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("a state that is none: %v", err)
		}
	})
}

// TestRefund_Reopened: a ledger that is read again has all of it, and its torn end is cut.
func TestRefund_Reopened(t *testing.T) {
	file, c := ledgerFile(t), newClock()
	s := openSandbox(t, file, Options{Now: c.Now})
	in := paidIntent(t, s, 1, methodPendingRefund)
	a := mustRefund(t, s, refundOf(t, "a", in.Ref, "1.00"))
	c.move(time.Second)
	other := paidIntent(t, s, 2, "pm_card_visa")
	mustRefund(t, s, refundOf(t, "b", other.Ref, "2.00"))
	if err := s.MoveReversal(a.ID, processor.ReversalSucceeded); err != nil {
		t.Fatal(err)
	}
	before := s.AllReversals()
	entries := slices.Collect(s.Entries())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, `{"ref":"re_torn","outcome":"refunded","of":"`+in.Ref+`","acc`...),
		0o600); err != nil {
		t.Fatal(err)
	}
	s = openSandbox(t, file, Options{Now: c.Now})
	if got := s.AllReversals(); !slices.Equal(got, before) || len(got) != 2 {
		t.Errorf("returns: %+v, before %+v", got, before)
	}
	if got := slices.Collect(s.Entries()); !slices.Equal(got, entries) || len(got) != 4 {
		t.Errorf("entries: %+v, before %+v", got, entries)
	}
	if again := mustRefund(t, s, refundOf(t, "a", in.Ref, "1.00")); again != a {
		t.Errorf("the key answers %+v, and answered %+v first", again, a)
	}
	mustRefund(t, s, refundOf(t, "c", in.Ref, "3.00"))
	if _, err := s.Refund(t.Context(), refundOf(t, "d", in.Ref, "9.00")); !errors.Is(err, processor.ErrInvalid) {
		t.Errorf("more than is left: %v", err)
	}
}

// TestRefund_BadLines are refused with their number, like all others.
func TestRefund_BadLines(t *testing.T) {
	const intent = `{"ref":"pi_1","account":"1","subscription":"1","sku":"x","period":0,"generation":0,"attempt":1,"amount":"5.00","currency":"EUR","outcome":"succeeded","at":"2026-03-01T09:00:00.000Z"}` + "\n"
	const good = `{"ref":"re_1","account":"1","subscription":"1","sku":"x","period":0,"generation":0,"attempt":0,"amount":"5.00","currency":"EUR","outcome":"refunded","at":"2026-03-01T09:00:00.000Z","of":"pi_1"}` + "\n"
	for name, line := range map[string]string{
		"good":           good,
		"of nothing":     strings.Replace(good, `"pi_1"`, `""`, 1),
		"of an unknown":  strings.Replace(good, `"pi_1"`, `"pi_2"`, 1),
		"without a time": strings.Replace(good, `2026-03-01T09:00:00.000Z`, ``, 1),
		"an odd outcome": strings.Replace(good, `refunded`, `refound`, 1),
	} {
		file := ledgerFile(t)
		if err := os.WriteFile(file, []byte(intent+line), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(file, Options{})
		if err == nil {
			s.Close()
		}
		if (err == nil) != (name == "good") || err != nil && !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefund_Faults: they befall refunds as they do charges.
func TestRefund_Faults(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want error
		made int
	}{
		{Options{UnknownRate: 1}, processor.ErrUnknown, 1},
		{Options{LostRate: 1}, processor.ErrUnknown, 0},
		{Options{CachedRate: 1}, processor.ErrUnknown, 0},
		{Options{BusyRate: 1}, processor.ErrNotExecuted, 0},
	} {
		file, c := ledgerFile(t), newClock()
		calm := openSandbox(t, file, Options{Now: c.Now})
		in := paidIntent(t, calm, 1, "pm_card_visa")
		if err := calm.Close(); err != nil {
			t.Fatal(err)
		}
		x.o.Now = c.Now
		s := openSandbox(t, file, x.o)
		if _, err := s.Refund(t.Context(), refundOf(t, "a", in.Ref, "1")); !errors.Is(err, x.want) {
			t.Errorf("%+v: %v", x.o, err)
		}
		if _, err := s.ReversalsOf(t.Context(), in.Ref); !errors.Is(err, x.want) {
			t.Errorf("%+v: of the intent: %v", x.o, err)
		}
		var last error
		for _, last = range s.Reversals(t.Context(), processor.ListRequest{}) {
			continue
		}
		if !errors.Is(last, x.want) {
			t.Errorf("%+v: the list: %v", x.o, last)
		}
		if got := len(s.AllReversals()); got != x.made {
			t.Errorf("%+v: %d made, want %d", x.o, got, x.made)
		}
		if x.o.CachedRate == 0 {
			continue
		}
		s.o.CachedRate, s.fates = 0, newFates(&Options{})
		if _, err := s.Refund(t.Context(), refundOf(t, "a", in.Ref, "1")); !errors.Is(err, processor.ErrUnknown) {
			t.Errorf("a saved failure: %v", err)
		}
		c.move(DefaultKeyLife)
		mustRefund(t, s, refundOf(t, "a", in.Ref, "1"))
	}
}

// TestRefund_AtOnce: whatever is asked at once, no more goes back than was paid, and every
// line is on disk before its answer.
func TestRefund_AtOnce(t *testing.T) {
	file, c := ledgerFile(t), newClock()
	s := openSandbox(t, file, Options{Now: c.Now})
	var wait sync.WaitGroup
	for period := range 4 {
		in := paidIntent(t, s, period, "pm_card_visa")
		for n := range 8 {
			wait.Go(func() {
				r, err := s.Refund(context.Background(), refundOf(t, fmt.Sprint(period, "-", n/2), in.Ref, "4.00"))
				if err != nil {
					if !errors.Is(err, processor.ErrInvalid) {
						t.Error(err)
					}
					return
				}
				text, err := os.ReadFile(file)
				if err != nil || !strings.Contains(string(text), `"`+r.ID+`"`) {
					t.Errorf("%s was answered and is not on disk (%v)", r.ID, err)
				}
			})
		}
	}
	wait.Wait()
	sums := map[string]int64{}
	for _, r := range s.AllReversals() {
		sums[r.Ref] += r.Amount.Minor()
	}
	for ref, sum := range sums {
		if sum != 1200 {
			t.Errorf("%s: %d went back, want 1200", ref, sum)
		}
	}
	if len(sums) != 4 {
		t.Errorf("%d intents", len(sums))
	}
}
