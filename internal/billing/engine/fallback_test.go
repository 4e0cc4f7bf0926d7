package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
)

const (
	lostCard = "pm_card_visa_chargeDeclinedLostCard"
	declined = "pm_card_visa_chargeDeclined"
)

// withFallback has a subscription due on 2024-01-31, charged with the method, whose account has a fallback.
func withFallback(t *testing.T, method, fallback string) (*world, billing.Name) {
	t.Helper()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(s *billing.NewSubscription) { s.Method = method }))
	w.fallback(t, fallback)
	return w, n
}

func (w *world) fallback(t *testing.T, method string) {
	t.Helper()
	_, err := w.start().Attach(t.Context(), "a1", billing.Attachment{Fallback: &method})
	mustNot(t, err)
}

// methods returns the methods of the ledger's attempts, in their order.
func (w *world) methods() (list []string) {
	for _, e := range w.ledger() {
		if e.State == processor.Declined || e.State == processor.Succeeded {
			list = append(list, e.Method)
		}
	}
	return list
}

// TestFallback: after a definite decline, or on the last retry day, the same intent is tried with the
// account's second method, once a period.
func TestFallback(t *testing.T) {
	for _, c := range []struct {
		name, method, fallback, until string
		want                          []string
		status                        billing.Status
		tells                         bool // of the fallback
	}{
		{"hard decline", lostCard, "pm_card_visa", "2024-01-31", []string{lostCard, "pm_card_visa"}, billing.Active, true},
		{"last retry day", declined, "pm_card_visa", "2024-02-07",
			[]string{declined, declined, declined, declined, declined, "pm_card_visa"}, billing.Active, true},
		{"both declined", lostCard, "pm_card_visa_chargeDeclinedStolenCard", "2024-02-10",
			[]string{lostCard, "pm_card_visa_chargeDeclinedStolenCard"}, billing.PastDue, true},
		{"the second one softly", lostCard, declined, "2024-02-10",
			[]string{lostCard, declined, declined, declined, declined, declined}, billing.PastDue, true},
		{"no further attempt wanted", "pm_sandbox_doNotTryAgain", "pm_card_visa", "2024-02-10",
			[]string{"pm_sandbox_doNotTryAgain"}, billing.PastDue, false},
		{"the same method", lostCard, lostCard, "2024-02-10", []string{lostCard}, billing.PastDue, false},
		{"none", lostCard, "", "2024-02-10", []string{lostCard}, billing.PastDue, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, n := withFallback(t, c.method, c.fallback)
			w.daily(c.until)
			equal(t, w.methods(), c.want)
			kind := outbox.KindReceipt
			if c.status == billing.PastDue {
				kind = outbox.KindFailed
			}
			mails := w.effects(t, kind)
			if s := w.sub(n); s.Open != nil || s.Period != 1 || s.Status != c.status || len(mails) != 1 ||
				(mails[0].Data[outbox.DataFallback] != "") != c.tells {
				t.Errorf("%s; told %v", w.describe(n), mails)
			}
			w.report(t)
		})
	}
}

// TestFallback_NextPeriod: the first method is charged again, and the fallback may take its place again.
func TestFallback_NextPeriod(t *testing.T) {
	w, n := withFallback(t, lostCard, "pm_card_visa")
	w.daily("2024-02-29")
	equal(t, w.methods(), []string{lostCard, "pm_card_visa", lostCard, "pm_card_visa"})
	if s := w.sub(n); s.Period != 2 || s.Method != lostCard {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestFallback_StaysInItsPlace: the method that was declined, attached once more, or listed again by a
// run, does not push the fallback out of the period, nor make a failed subscription active.
func TestFallback_StaysInItsPlace(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("")))
	attach := func(a billing.Attachment) {
		t.Helper()
		_, err := w.start().Attach(ctx, "a1", a)
		mustNot(t, err)
	}
	attach(billing.Attachment{Method: lostCard, Fallback: new(declined)})
	w.start().run(civil.Date{})
	if o := w.sub(n).Open; o == nil || o.Method != declined || o.FallbackFor != lostCard || o.Retry != date("2024-02-01") {
		t.Fatal(w.describe(n))
	}
	before := w.describe(n)
	attach(billing.Attachment{Method: lostCard})
	equal(t, []string{w.describe(n)}, []string{before})
	w.tomorrow()
	w.daily("2024-02-10")
	equal(t, w.methods(), []string{lostCard, declined, declined, declined, declined, declined})
	if s := w.sub(n); s.Status != billing.PastDue {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestFallback_OwnMethodYields: a method given to the account takes the place of a subscription's own
// method that was declined for good, also while the fallback is tried.
func TestFallback_OwnMethodYields(t *testing.T) {
	w, n := withFallback(t, lostCard, declined)
	w.start().run(civil.Date{})
	w.tomorrow()
	_, err := w.start().Attach(t.Context(), "a1", billing.Attachment{Method: "pm_card_visa"})
	mustNot(t, err)
	w.daily("2024-02-02")
	equal(t, w.methods(), []string{lostCard, declined, "pm_card_visa"})
	if s := w.sub(n); s.Paid != 1 || s.Method != "" {
		t.Error(w.describe(n))
	}
	w.report(t)
}

// TestFallback_Attached: a fallback goes with its payer, is none by the empty text, and differs from the
// first method.
func TestFallback_Attached(t *testing.T) {
	ctx := context.Background()
	w, _ := withFallback(t, lostCard, "pm_card_visa")
	_, err := w.start().Attach(ctx, "a1", billing.Attachment{Method: "pm_card_visa"})
	wantText(t, err, "fallback: must differ from the account's payment method")
	a, err := w.start().Attach(ctx, "a1", billing.Attachment{Method: declined})
	mustNot(t, err)
	if a.Method != declined || a.Fallback != "pm_card_visa" {
		t.Errorf("attached: %+v", a)
	}
	w.fallback(t, "")
	a, err = w.start().Account(ctx, "a1")
	mustNot(t, err)
	if a.Fallback != "" || a.Raw.Has(schema.Fallback) {
		t.Errorf("taken away: %+v", a)
	}
	_, err = w.start().Attach(ctx, "a1", billing.Attachment{Fallback: new("a/b")})
	wantText(t, err, "fallback:")
}

// TestFallback_CrashAtEveryPoint: with a crash or a lost answer at every point of the run that goes on to
// the fallback, and an event or the next run after it, the period is paid once, by the fallback.
func TestFallback_CrashAtEveryPoint(t *testing.T) {
	hits := 0
	for _, heard := range []bool{false, true} {
		for _, crash := range []bool{true, false} {
			for point := 1; ; point++ {
				w, n := withFallback(t, lostCard, "pm_card_visa")
				p := w.start(fault{point, crash})
				p.run(civil.Date{})
				if !p.faults.struck() {
					break
				}
				hits++
				w.pass(25 * time.Hour)
				if o := w.sub(n).Open; heard && o != nil {
					mustNot(t, w.start().Heard(t.Context(), n.Account, n.ID, o.Ref))
				}
				w.start().run(civil.Date{})
				at := fmt.Sprintf("crash %v at point %d, heard %v", crash, point, heard)
				if s := w.sub(n); s.Open != nil || s.Period != 1 || s.Status != billing.Active {
					t.Errorf("%s: %s", at, w.describe(n))
				}
				if list := w.methods(); list[len(list)-1] != "pm_card_visa" || slices.Index(list, lostCard) != 0 || len(list) != 2 {
					t.Errorf("%s: attempts %v", at, list)
				}
				w.report(t)
			}
		}
	}
	if hits < 30 {
		t.Errorf("only %d points were hit", hits)
	}
}

// TestFallback_AFailureStays: a subscription that has failed with both methods stays past_due, however
// often runs list the first one; a fallback must be the customer's, and goes when the customer changes.
func TestFallback_AFailureStays(t *testing.T) {
	w, p := newPurse("2024-01-31T09:00")
	n := w.create(one("2024-01-31", bare))
	w.link(t, "")
	p.use("pm_1", lostCard)
	p.give("", "cus_other", "pm_other", "pm_card_visa")
	p.give("", "", "pm_2", lostCard)
	_, err := w.start().Attach(t.Context(), "a1", billing.Attachment{Fallback: new("pm_other")})
	wantErr(t, err, processor.ErrInvalid)
	a := w.attach(t, billing.Attachment{Fallback: new("pm_2")})
	if a.Fallback != "pm_2" || p.cards["pm_2"].customer != a.Payer.Customer {
		t.Errorf("attached: %+v", a)
	}
	w.start().run(civil.Date{})
	for range 3 {
		if s := w.sub(n); s.Status != billing.PastDue || s.Period != 1 {
			t.Fatalf("%s", w.describe(n))
		}
		w.start().run(civil.Date{})
	}
	mails := w.effects(t, outbox.KindFailed)
	if len(mails) != 1 || mails[0].Data[outbox.DataCard] == "" {
		t.Errorf("told of: %v", mails)
	}
	if a = w.attach(t, billing.Attachment{Customer: "cus_other"}); a.Fallback != "" {
		t.Errorf("of another customer: %+v", a)
	}
	w.report(t)
}
