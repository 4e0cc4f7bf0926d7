package engine_test

import (
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
)

// wantTold fails the test unless the customer was told so often, and nothing twice.
func (w *world) wantTold(t *testing.T, kind string, want int) []outbox.Effect {
	t.Helper()
	got := w.effects(t, kind)
	if len(got) != want {
		t.Errorf("%d notices of the kind %s, want %d: %+v", len(got), kind, want, got)
	}
	w.report(t)
	return got
}

func TestToldOfACancellation(t *testing.T) {
	tests := map[string]func(*world, billing.Name) error{
		"now": func(w *world, n billing.Name) error {
			_, err := w.start().Cancel(t.Context(), n, false)
			return err
		},
		"at the period's end": func(w *world, n billing.Name) error {
			_, err := w.start().Cancel(t.Context(), n, true)
			if got := w.effects(t, outbox.KindCancelled); len(got) > 0 {
				t.Errorf("told before the end: %+v", got)
			}
			w.goTo(date("2024-01-31"))
			w.start().run(civil.Date{})
			return err
		},
		"while paused": func(w *world, n billing.Name) error {
			if _, err := w.start().Pause(t.Context(), n); err != nil {
				return err
			}
			_, err := w.start().Cancel(t.Context(), n, false)
			return err
		},
		"with a declined period": func(w *world, n billing.Name) error {
			if _, err := w.start().UpdateSubscription(t.Context(), n,
				billing.Change{Method: new("pm_card_visa_chargeDeclined")}); err != nil {
				return err
			}
			w.goTo(date("2024-01-31"))
			w.start().run(civil.Date{})
			_, err := w.start().Cancel(t.Context(), n, false)
			return err
		},
	}
	for name, cancel := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31"))
			mustNot(t, cancel(w, n))
			if _, err := w.start().Cancel(t.Context(), n, false); err == nil {
				t.Error("cancelled twice")
			}
			if w.sub(n).Status != billing.CanceledSub {
				t.Fatal(w.describe(n))
			}
			for _, e := range w.wantTold(t, outbox.KindCancelled, 1) {
				if e.Data[outbox.DataEmail] != "ada@example.com" || e.Data[outbox.DataSKU] != "gold" {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

func TestToldOfARefundOnce(t *testing.T) {
	w, n := charged(planted{})
	order := refund.Order{Name: n, Period: 0, Amount: usd(500)}
	for range 2 {
		w.refund(t, order)
		w.pass(time.Hour)
		w.start().run(civil.Date{})
	}
	for _, e := range w.wantTold(t, outbox.KindRefund, 1) {
		if e.Data[outbox.DataAmount] != "5.00" || e.Data[outbox.DataPeriod] != "0" || e.Data[outbox.DataCharge] == "" ||
			e.Data[outbox.DataProcessed] == "" || e.Data[outbox.DataDueDate] != "" {
			t.Errorf("%+v", e.Data)
		}
	}
	w.refund(t, order, "another")
	w.wantTold(t, outbox.KindRefund, 2)
	ref := w.sub(n).LastCharge
	w.makeReturn(t, processor.Refunded, ref, 100, processor.ReversalPending)
	_, err := w.start().collect()
	mustNot(t, err)
	w.wantTold(t, outbox.KindRefund, 2) // a pending one may still fail
}

// TestToldThatACardExpires_Terms: the notice has the amount and plan of the payment that the card cannot pay.
func TestToldThatACardExpires_Terms(t *testing.T) {
	w, p := newPurse("2024-01-01T09:00")
	n := w.create(one("2024-12-30", bare))
	p.give("", "cus_1", "pm_1", "pm_card_visa") // good until the end of 2024
	w.attach(t, billing.Attachment{Customer: "cus_1"})
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{SKU: new("gold"), Quantity: new(2), From: date("2025-01-01")})
	mustNot(t, err)
	w.goTo(date("2024-12-23"))
	w.start().remind()
	for _, e := range w.wantTold(t, outbox.KindCardExpires, 1) {
		if d := e.Data; d[outbox.DataAmount] != "25.98" || d[outbox.DataSKU] != "gold" || d[outbox.DataKeySKU] != n.SKU {
			t.Errorf("%+v", d)
		}
	}
	for _, e := range w.wantTold(t, outbox.KindReminder, 1) {
		if e.Data[outbox.DataAmount] != "12.99" {
			t.Errorf("%+v", e.Data)
		}
	}
}

func TestToldOnceThatACardExpires(t *testing.T) {
	for due, want := range map[string]int{"2024-11-30": 0, "2024-12-30": 1, "2025-01-30": 0} {
		w, p := newPurse("2024-01-01T09:00")
		n := w.create(one(due, bare))
		p.give("", "cus_1", "pm_1", "pm_card_visa") // good until the end of 2024
		w.attach(t, billing.Attachment{Customer: "cus_1"})
		w.goTo(date(due).AddDays(-7))
		w.start().remind()
		for _, e := range w.wantTold(t, outbox.KindCardExpires, want) {
			if e.Data[outbox.DataDueDate] != "2025-01-30" || e.Data[outbox.DataCardExpires] != "2024-12" ||
				e.Data[outbox.DataPeriod] != "1" {
				t.Errorf("%+v", e.Data)
			}
			if l, err := w.start().Recipients().Link(t.Context(), e); err != nil || l.URL == "" {
				t.Errorf("link %+v, %v", l, err)
			}
			if wanted, err := w.start().Recipients().StillWanted(t.Context(), e); err != nil || !wanted {
				t.Errorf("wanted %t, %v", wanted, err)
			}
			w.pass(time.Hour) // resumed, it is reminded of again
			_, err := w.start().Pause(t.Context(), n)
			mustNot(t, err)
			_, err = w.start().Resume(t.Context(), n)
			mustNot(t, err)
			w.remindAgain = true
			w.start().remind()
			w.wantTold(t, outbox.KindReminder, 2)
			w.wantTold(t, outbox.KindCardExpires, 1)
			_, err = w.start().Cancel(t.Context(), n, false)
			mustNot(t, err)
			if wanted, err := w.start().Recipients().StillWanted(t.Context(), e); err != nil || wanted {
				t.Errorf("after the end: wanted %t, %v", wanted, err)
			}
		}
	}
	w, p := newPurse("2024-12-23T09:00")
	w.create(one("2024-12-30", bare, func(n *billing.NewSubscription) { n.Installments = 1 }))
	p.give("", "cus_1", "pm_1", "pm_card_visa")
	w.attach(t, billing.Attachment{Customer: "cus_1"})
	w.start().remind()
	w.wantTold(t, outbox.KindReminder, 1)
	w.wantTold(t, outbox.KindCardExpires, 0) // nothing is charged after the last installment
}

func TestReceiptNumbersDiffer(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31"))
	w.create(one("2024-01-31", second))
	w.start().run(civil.Date{})
	w.goTo(date("2024-02-29"))
	w.start().run(civil.Date{})
	told := map[string]bool{}
	for _, e := range w.wantTold(t, outbox.KindReceipt, 4) {
		told[e.Data[outbox.DataReceipt]] = true
	}
	p := w.start()
	for r, err := range p.GetReceiptsByAccount(t.Context(), "a1") {
		mustNot(t, err)
		number := r.Number(p.Opened.Installation)
		if !told[number] || number == r.Number("another") {
			t.Errorf("receipt %s was told as one of %v", number, told)
		}
		delete(told, number)
	}
	if len(told) > 0 {
		t.Errorf("left: %v", told)
	}
	r := billing.Receipt{Name: billing.Name{Account: "acme", ID: "sub1", SKU: "gold"}, Period: 3,
		Processed: time.Date(2023, 6, 28, 12, 15, 39, 0, time.UTC), Amount: money.Amount{}}
	if got, want := r.Number("INSTALLATION"), "20230628-"; len(got) != 26 || got[:9] != want {
		t.Errorf("number %s", got)
	}
}
