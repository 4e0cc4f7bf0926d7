package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
)

// untaxed is a world with tax on, on the day on which its subscription, which has no rate, is due.
func untaxed(change ...func(*billing.NewSubscription)) (*world, billing.Name) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.cfg.Tax, w.cfg.ReceiptMonths = settings.On, 0
	return w, w.create(one("2024-01-31", change...))
}

// exclusive sets the rate of 19 %, and notes what the period must then be charged.
func (w *world) exclusive(t *testing.T, n billing.Name, period int) {
	t.Helper()
	w.amounts[fmt.Sprintf("ACC#a1/s1/%d", period)] = usd(1546)
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Tax: &tax.Change{Rate: new("19"), Mode: price.Exclusive}})
	mustNot(t, err)
}

// prices returns net, tax and rate of each receipt.
func (w *world) prices(t *testing.T, n billing.Name) (list []string) {
	t.Helper()
	for r, err := range w.start().GetReceiptsByAccount(t.Context(), n.Account) {
		mustNot(t, err)
		text := fmt.Sprint(r.Period, " ", r.Amount)
		if p := r.Price; p != nil {
			text = fmt.Sprint(r.Period, " ", p.Net.Decimal(), "+", p.Tax.Decimal(), " at ", p.Terms.Tax.Rate, p.Terms.Tax.Country)
		}
		list = append(list, text)
	}
	return list
}

// TestTax_Parks: with tax on, a period without a rate is parked, whoever charges it and however it is paid. It is
// charged when the rate is there, or when tax is off.
func TestTax_Parks(t *testing.T) {
	for _, wired := range []bool{false, true} {
		for _, ends := range []string{"rate", "off", "person"} {
			w, n := untaxed(func(n *billing.NewSubscription) {
				if wired {
					byWire(n)
				}
			})
			for range 2 {
				r := w.start().run(civil.Date{})
				if s := w.sub(n); r.Counts[engine.OutcomeParked] != 1 || s.Status != billing.ParkedState || s.Parked != billing.NoTaxRate || s.Open != nil {
					t.Fatalf("%v: %s", r.Counts, w.describe(n))
				}
				w.tomorrow()
			}
			if results, s, err := w.start().ChargeParked(t.Context(), n); err == nil && (len(results) != 1 || results[0].Outcome != engine.OutcomeParked) ||
				wired != (err != nil) || s != nil && s.Open != nil {
				t.Fatalf("by a person: %v, %v, %s", results, err, w.describe(n))
			}
			equal(t, w.endings(n), []string{"0 parked"})
			want := []string{"0 12.99+2.47 at 19"}
			if ends == "off" {
				w.cfg.Tax, want = settings.Off, []string{"0 12.99 USD"}
			} else {
				w.exclusive(t, n, 0)
			}
			if ends == "person" && !wired {
				_, _, err := w.start().ChargeParked(t.Context(), n)
				mustNot(t, err)
			}
			w.start().run(civil.Date{})
			if wired {
				_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Note: "wire 1"})
				mustNot(t, err)
			}
			equal(t, w.prices(t, n), want)
			equal(t, w.endings(n), nil)
			if s := w.sub(n); s.Status != billing.Active || s.Period != 1 || s.Parked != "" {
				t.Fatal(w.describe(n))
			}
			w.report(t)
		}
	}
}

// TestTax_Killed: a process that is killed while it parks a period without a rate, or while it goes on with it, leaves
// a period that the next runs park, and charge once when the rate is there.
func TestTax_Killed(t *testing.T) {
	for _, atPark := range []bool{true, false} {
		for point := 1; ; point++ {
			w, n := untaxed()
			p := w.start()
			if atPark {
				p = w.start(fault{point, true})
			}
			p.run(civil.Date{})
			if !atPark || p.faults.struck() {
				w.start().run(civil.Date{})
			}
			if s := w.sub(n); s.Status != billing.ParkedState || s.Parked != billing.NoTaxRate || len(w.ledger()) > 0 {
				t.Fatalf("killed at %d: %s", point, w.describe(n))
			}
			w.exclusive(t, n, 0)
			if !atPark {
				p = w.start(fault{point, true})
				p.run(civil.Date{})
			}
			for range 2 {
				w.start().run(civil.Date{})
			}
			equal(t, w.prices(t, n), []string{"0 12.99+2.47 at 19"})
			w.report(t)
			if !p.faults.struck() {
				break
			}
			if point > 40 {
				t.Fatal("the run has no end")
			}
		}
	}
}

// TestTax_WhileOpen: tax that is turned on, or a rate that is set, while a period is open counts from the next period.
func TestTax_WhileOpen(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
	w.start().run(civil.Date{})
	if w.sub(n).Open == nil {
		t.Fatal(w.describe(n))
	}
	w.cfg.Tax, w.cfg.ReceiptMonths = settings.On, 0
	w.tomorrow()
	w.start().run(civil.Date{})
	w.exclusive(t, n, 1)
	w.amounts["ACC#a1/s1/0"] = usd(1299)
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.daily("2024-03-01")
	equal(t, w.prices(t, n), []string{"0 12.99 USD", "1 12.99+2.47 at 19"})
	w.report(t)
}

// TestTax_NewSubscription: a new subscription has the rate of its account's country, and keeps it when the table
// changes. Its own rate wins. Without a country there is no rate.
func TestTax_NewSubscription(t *testing.T) {
	w, _ := untaxed()
	create := func(account, id, country string, own price.Tax) price.Tax {
		t.Helper()
		n := one("2024-02-28", func(n *billing.NewSubscription) {
			n.Account, n.ID, n.Terms.Tax = account, id, own
			n.Taxes = &tax.Defaults{Table: tax.Table{"DE:19", "LI:8.1"}, Mode: price.Exclusive}
			n.Details = party.Details{}
			n.Details.Address.Country = country
		})
		s, err := w.start().CreateSubscription(t.Context(), n)
		mustNot(t, err)
		return s.Terms.Tax
	}
	german := price.Tax{Mode: price.Exclusive, Rate: 190_000, Country: "DE"}
	reverse := price.Tax{Mode: price.Exclusive, Note: "reverse charge"}
	own := reverse
	own.Country = "LI"
	for _, c := range []struct {
		account, country string
		given, want      price.Tax
	}{
		{"a2", "DE", price.Tax{}, german}, {"a2", "", price.Tax{}, german}, {"a3", "LI", reverse, own}, {"a4", "FR", price.Tax{}, price.Tax{}},
		{"a5", "", price.Tax{}, price.Tax{}},
	} {
		id := strings.Trim(fmt.Sprint("s", c.country, c.given.Note != ""), " ")
		if got := create(c.account, id, c.country, c.given); got != c.want {
			t.Errorf("%s in %q: %+v, want %+v", c.account, c.country, got, c.want)
		}
	}
}

// TestTax_Change: a change of one field keeps the others, but a new rate removes the note. A rate is never guessed.
func TestTax_Change(t *testing.T) {
	w, n := untaxed()
	change := func(c tax.Change) error {
		_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Tax: &c})
		return err
	}
	for _, c := range []struct {
		change tax.Change
		want   string
	}{
		{tax.Change{Mode: price.Exclusive}, "tax_rate: is required"}, {tax.Change{Note: new("reverse charge")}, "tax_rate: is required"},
		{tax.Change{Rate: new("19%")}, "tax_rate: must be a percentage"}, {tax.Change{Rate: new("")}, "tax_rate: must be"},
		{tax.Change{Rate: new("none"), Note: new("x")}, "tax_rate: none cannot"}, {tax.Change{Rate: new("0"), Mode: "gross"}, "tax: must be"},
		{tax.Change{Rate: new("0"), Note: new("reverse charge")}, ""},
		{tax.Change{Mode: price.Exclusive}, ""},
	} {
		err := change(c.change)
		if c.want == "" {
			mustNot(t, err)
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.change, err, c.want)
		}
	}
	if got, want := w.sub(n).Terms.Tax, (price.Tax{Mode: price.Exclusive, Note: "reverse charge"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	mustNot(t, change(tax.Change{Rate: new("8.1")}))
	if got, want := w.sub(n).Terms.Tax, (price.Tax{Mode: price.Exclusive, Rate: 81_000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	mustNot(t, change(tax.Change{Rate: new("none")}))
	if got := w.sub(n).Terms; got != (price.Terms{}) {
		t.Errorf("%+v, want none", got)
	}
}

// TestTax_PlantedZero: the audit of the world sees a period that is charged without its tax.
func TestTax_PlantedZero(t *testing.T) {
	w, n := untaxed()
	w.exclusive(t, n, 0)
	w.cfg.Tax = settings.Off
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Tax: &tax.Change{Rate: new("none")}})
	mustNot(t, err)
	w.start().run(civil.Date{})
	if len(w.paidOn(n)) != 1 {
		t.Fatal(w.describe(n))
	}
	for _, v := range w.audit() {
		if strings.Contains(v, "15.46") {
			return
		}
	}
	t.Error("a period without its tax is not seen")
}

// TestTax_Mail: reminder, request to pay and receipt say net, tax, rate and note, which are those that are charged.
func TestTax_Mail(t *testing.T) {
	for kind, change := range map[string]func(*billing.NewSubscription){
		outbox.KindReceipt: func(*billing.NewSubscription) {}, outbox.KindReminder: func(*billing.NewSubscription) {}, outbox.KindPaymentRequest: byWire} {
		w := newWorld("2024-01-24T09:00", planted{})
		w.amounts["ACC#a1/s1/0"] = usd(1546)
		w.create(one("2024-01-31", change, func(n *billing.NewSubscription) {
			n.Terms.Tax = price.Tax{Mode: price.Exclusive, Rate: 190_000, Note: "of a test"}
		}))
		w.daily("2024-01-31")
		all := w.effects(t, kind)
		if len(all) == 0 {
			t.Fatalf("no %s", kind)
		}
		d := all[0].Data
		equal(t, []string{d[outbox.DataAmount], d[outbox.DataNet], d[outbox.DataTax], d[outbox.DataTaxRate], d[outbox.DataTaxNote]},
			[]string{"15.46", "12.99", "2.47", "19", "of a test"})
	}
}

// TestTax_Reopened: a skipped period that had no rate is not charged without tax, and one that had a rate is.
func TestTax_Reopened(t *testing.T) {
	for _, rate := range []bool{false, true} {
		w, n := untaxed()
		var err error
		if rate {
			w.exclusive(t, n, 0)
			_, err = w.start().SkipUntil(t.Context(), n, date("2024-02-01"))
		} else {
			w.start().run(civil.Date{}) // which parks it
			_, err = w.start().SkipParked(t.Context(), n)
		}
		mustNot(t, err)
		if w.exclusive(t, n, 1); !rate {
			delete(w.amounts, "ACC#a1/s1/0")
		}
		_, err = w.start().ChargePeriod(t.Context(), n, engine.PeriodCharge{Period: 0, Reopen: "she used it"})
		if rate {
			mustNot(t, err)
			equal(t, w.prices(t, n), []string{"0 12.99+2.47 at 19"})
		} else {
			wantErr(t, err, billing.ErrState)
			wantText(t, err, "period 0 has no tax rate")
			equal(t, w.prices(t, n), nil)
		}
		w.report(t)
	}
}

// TestTax_Kept: a receipt with tax is kept for ten years after its payment, also when tax is off and receipts expire sooner.
func TestTax_Kept(t *testing.T) {
	w, n := untaxed()
	w.cfg.Tax, w.cfg.ReceiptMonths = settings.Off, 6
	w.start().run(civil.Date{})
	w.exclusive(t, n, 1)
	w.set("2024-03-02T09:00")
	w.start().run(civil.Date{})
	var kept []string
	for r, err := range w.start().GetReceiptsByAccount(t.Context(), n.Account) {
		mustNot(t, err)
		kept = append(kept, r.Processed.Format(time.DateOnly)+" until "+r.Expires.Format(time.DateOnly))
	}
	equal(t, kept, []string{"2024-01-31 until 2024-07-31", "2024-03-02 until 2034-03-02"})
	w.report(t)
}

// TestTax_ToldAtOpen: the processor keeps the price with the intent. If the rate changes before a request whose answer
// was lost is repeated, the repeated one opens another intent, because the first one has another price.
func TestTax_ToldAtOpen(t *testing.T) {
	w, n := untaxed(func(n *billing.NewSubscription) {
		n.Terms.Tax = price.Tax{Mode: price.Inclusive, Rate: 190_000}
	})
	w.script.left = []scripted{{"unknown", "open", 9}}
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Open != nil || s.Status != billing.Active {
		t.Fatal(w.describe(n))
	}
	w.script.left = nil
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Tax: &tax.Change{Rate: new("7")}})
	mustNot(t, err)
	w.start().run(civil.Date{})
	equal(t, w.prices(t, n), []string{"0 12.14+0.85 at 7"})
	told := map[string]string{}
	for _, e := range w.ledger() {
		p := price.ReadText(e.Price, e.Tag.Period, e.Amount)
		if p == nil {
			t.Fatalf("%+v", e)
		}
		told[p.Terms.Tax.Rate.String()] = string(e.State)
	}
	if told["19"] != "opened" && told["19"] != "canceled" || told["7"] != "succeeded" {
		t.Error(told)
	}
}
