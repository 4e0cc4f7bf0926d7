package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

func off(percent int64, periods int) *price.Discount {
	return &price.Discount{Percent: price.Percent(percent * 10_000), Periods: periods}
}

// charged returns the amounts of the account's receipts, in order, and checks that each is what its price says.
func (w *world) charged(t *testing.T, account string) (amounts []int64) {
	t.Helper()
	for r, err := range w.start().GetReceiptsByAccount(t.Context(), account) {
		mustNot(t, err)
		if err := r.Price.Explain(r.Period, r.Amount); err != nil {
			t.Error(err)
		}
		amounts = append(amounts, r.Amount.Minor())
	}
	return amounts
}

// TestTerms_Frozen: quantity and discount begin with the next period that is not open. An open one keeps its
// price in every attempt, and a discount ends by the number of its last period, skipped ones among them.
func TestTerms_Frozen(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_card_visa_chargeDeclined" }))
	w.start().run(civil.Date{})
	s, err := w.start().UpdateSubscription(ctx, n, billing.Change{Quantity: new(3), Discount: off(10, 3)})
	mustNot(t, err)
	if s.Open == nil || s.Open.Amount != usd(1299) || s.Open.Price != nil || s.Terms.Discount.From != 1 {
		t.Fatalf("with a period open: %+v, terms %+v", s.Open, s.Terms)
	}
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.start().run(civil.Date{})
	for _, day := range []string{"2024-02-29T09:00", "2024-03-31T09:00", "2024-04-30T09:00", "2024-05-31T09:00"} {
		w.set(day)
		if day == "2024-03-31T09:00" {
			_, err := w.start().SkipUntil(ctx, n, date("2024-04-01"))
			mustNot(t, err)
			continue
		}
		w.start().run(civil.Date{})
	}
	want := []int64{1299, 3507, 3507, 3897} // 38.97 less 3.897, rounded half up; period 2 is skipped
	if got := w.charged(t, "a1"); !slices.Equal(got, want) {
		t.Errorf("charged %v, want %v", got, want)
	}
	clean(t, w)
}

// TestTerms_Plan: a pending change brings its quantity with it, and a quantity alone is in force at once.
func TestTerms_Plan(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Terms.Quantity = 2 }))
	change := func(c billing.Change) *billing.Subscription {
		s, err := w.start().UpdateSubscription(ctx, n, c)
		mustNot(t, err)
		return s
	}
	s := change(billing.Change{Amount: new(usd(1000)), Quantity: new(5), From: date("2024-02-15")})
	if s.Terms.Quantity != 2 || s.Pending == nil || s.Pending.Quantity != 5 {
		t.Fatalf("%+v, pending %+v", s.Terms, s.Pending)
	}
	var soon []int64
	for _, u := range s.Upcoming(2) {
		soon = append(soon, u.Amount.Minor())
	}
	if !slices.Equal(soon, []int64{2598, 5000}) {
		t.Errorf("upcoming %v", soon)
	}
	w.set("2024-01-31T09:00")
	w.start().run(civil.Date{})
	w.set("2024-02-29T09:00")
	w.start().run(civil.Date{})
	if s := change(billing.Change{Quantity: new(1)}); s.Terms != (price.Terms{}) || s.Item().Has(schema.PriceTerms) {
		t.Errorf("one unit is stored as %+v", s.Terms)
	}
	w.set("2024-03-31T09:00")
	w.start().run(civil.Date{})
	if got := w.charged(t, "a1"); !slices.Equal(got, []int64{2598, 5000, 1000}) {
		t.Errorf("charged %v", got)
	}
	clean(t, w)
}

// TestTerms_Refused: a change that leaves nothing to pay is refused with its field, and so is one that makes an
// old discount do so.
func TestTerms_Refused(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Terms = price.Terms{Quantity: 2, Discount: price.Discount{Amount: usd(1500)}}
	}))
	for name, c := range map[string]billing.Change{
		"quantity": {Quantity: new(0)}, "discount": {Discount: off(100, 0)}, "discount_periods": {Discount: off(5, -1)},
	} {
		_, err := w.start().UpdateSubscription(ctx, n, c)
		if e, ok := errors.AsType[*billing.FieldError](err); !ok || e.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []billing.Change{{Quantity: new(1)}, {Amount: new(usd(750))}, {SKU: new("less"), Amount: new(usd(100)), From: date("2024-06-01")}} {
		_, err := w.start().UpdateSubscription(ctx, n, c)
		if e, ok := errors.AsType[*billing.FieldError](err); !ok || e.Field != "discount" {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if s := w.sub(n); s.Terms.Quantity != 2 || s.AmountOf(0) != usd(1098) {
		t.Errorf("%+v", s.Terms)
	}
}

// TestTerms_OfAnotherTool: an amount that another tool has lowered below the discount parks the period. Nobody is
// charged zero.
func TestTerms_OfAnotherTool(t *testing.T) {
	ctx := t.Context()
	for _, collection := range []billing.Collection{billing.Automatic, billing.ByWire} {
		w := newWorld("2024-01-31T09:00", planted{})
		n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
			n.Terms.Discount.Amount, n.Collection = usd(1000), collection
		}))
		s := w.sub(n)
		w.foreign = true
		mustNot(t, w.spy.Commit(ctx, store.Update(w.tables.RecurringPayments.Name, s.Key(),
			store.NewItem(store.Attribute{Name: schema.PaymentAmount, Value: store.S("9.99")}), nil)))
		w.start().run(civil.Date{})
		if s := w.sub(n); s.Status != billing.ParkedState || s.Parked == "" || s.Open != nil {
			t.Errorf("%s: %s %q, open %+v", collection, s.Status, s.Parked, s.Open)
		}
		if got := w.charged(t, "a1"); len(got) != 0 {
			t.Errorf("charged %v", got)
		}
		_, err := w.start().UpdateSubscription(ctx, n, billing.Change{Discount: new(price.Discount)})
		mustNot(t, err)
		if collection == billing.Automatic {
			_, _, err = w.start().ChargeParked(ctx, n)
			mustNot(t, err)
			if got := w.charged(t, "a1"); !slices.Equal(got, []int64{999}) {
				t.Errorf("charged %v", got)
			}
		}
	}
}

// TestTerms_Past: a failed period is collected at its own price, whatever the terms are meanwhile, and so is one
// that was paid outside.
func TestTerms_Past(t *testing.T) {
	ctx := t.Context()
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Method, n.Terms = "pm_card_visa_chargeDeclinedStolenCard", price.Terms{Quantity: 2, Discount: *off(50, 1)}
	}))
	for range 40 {
		w.start().run(civil.Date{})
		if w.sub(n).Status == billing.PastDue {
			break
		}
		w.tomorrow()
	}
	if s := w.sub(n); s.Status != billing.PastDue {
		t.Fatalf("%s %+v", s.Status, s.Open)
	}
	p, err := w.start().RecordOf(ctx, n, 0)
	mustNot(t, err)
	if p.Amount != usd(1299) || p.Price == nil || p.Price.Explain(0, p.Amount) != nil {
		t.Fatalf("%+v", p)
	}
	_, err = w.start().UpdateSubscription(ctx, n, billing.Change{Quantity: new(7), Discount: new(price.Discount)})
	mustNot(t, err)
	_, err = w.start().CreateReceipt(ctx, n, engine.ManualPayment{Period: new(0)})
	mustNot(t, err)
	all, err := processor.Gather(w.start().GetReceiptsByAccount(ctx, "a1"))
	mustNot(t, err)
	if len(all) != 1 || all[0].Amount != usd(1299) || all[0].Price == nil || *all[0].Price != *p.Price {
		t.Errorf("%+v", all)
	}
}

func clean(t *testing.T, w *world) {
	t.Helper()
	for _, problem := range w.audit() {
		t.Error(problem)
	}
}

// TestTerms_DiscountOver: a discount whose periods are over does not limit what the next periods may cost.
func TestTerms_DiscountOver(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Terms = price.Terms{Quantity: 2, Discount: price.Discount{Amount: usd(2000), Periods: 1}}
	}))
	w.start().run(civil.Date{})
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Quantity: new(1)})
	mustNot(t, err)
	w.set("2024-02-29T09:00")
	w.start().run(civil.Date{})
	if got, want := w.charged(t, "a1"), []int64{598, 1299}; !slices.Equal(got, want) {
		t.Errorf("charged %v, want %v", got, want)
	}
	clean(t, w)
}

// TestTerms_Mail: reminder and receipt say what makes the amount, and only while it is not one unit's.
func TestTerms_Mail(t *testing.T) {
	w := newWorld("2024-01-24T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Terms = price.Terms{Quantity: 3, Discount: *off(10, 1)} }))
	w.daily("2024-02-28")
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Quantity: new(1)})
	mustNot(t, err)
	w.daily("2024-03-31")
	want := map[string]string{"0": "3 12.99 3.90 35.07", "1": "   12.99", "2": "   12.99"}
	for _, kind := range []string{outbox.KindReceipt, outbox.KindReminder} {
		if kind == outbox.KindReminder {
			want["1"] = "3 12.99  38.97" // sent before the change
		}
		for _, e := range w.effects(t, kind) {
			d := e.Data
			got := strings.Join([]string{d[outbox.DataQuantity], d[outbox.DataUnit], d[outbox.DataDiscount], d[outbox.DataAmount]}, " ")
			if period := d[outbox.DataPeriod]; got != want[period] && period < "3" {
				t.Errorf("%s of period %s: %q, want %q", kind, period, got, want[period])
			}
		}
		if all := w.effects(t, kind); len(all) < 3 {
			t.Errorf("%d of %s", len(all), kind)
		}
	}
}
