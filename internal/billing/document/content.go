package document

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/invoice"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// page returns the document's page.
func (d *Document) page() *page {
	r, a, s := d.Receipt, d.Account, &d.Settings
	p := newPage(a.Locale)
	p.Title, p.Number = p.Word(d.Kind()), locale.Clean(cmp.Or(r.InSeries, r.Number(d.Installation)))
	x, is := invoice.Stored(r)
	email := "" // an invoice has none: the receipt's changes with the account's
	if !is {
		x, email = invoice.ContentOf(s, a, r), r.Email
	}
	x.Seller[3], x.Customer[7] = labeled(p.Word("tax_id"), x.Seller[3]), labeled(p.Word("tax_id"), x.Customer[7])
	p.Seller, p.Customer = lines(x.Seller[:]...), lines(append(x.Customer[:], email)...)
	paid := p.Date(x.Day.In(time.UTC), p.Day)
	p.fact("number", p.Number)
	if is {
		p.fact("issued", paid)
	}
	p.fact("paid", paid)
	p.fact("reference", r.Charge)
	p.fact("account", r.Account)
	d.addPrice(p, x.Product)
	d.addReversals(p)
	p.Foot = locale.Clean(labeled(p.Word("contact"), s.ReplyTo))
	return p
}

// Kind returns settings.Invoice or settings.Receipt.
func (d *Document) Kind() string {
	if _, is := invoice.Stored(d.Receipt); is {
		return settings.Invoice
	}
	return settings.Receipt
}

// day writes out the account's day at the time.
func (d *Document) day(p *page, at time.Time) string {
	return p.Date(billing.TodayIn(d.Account.TimeZone, at).In(time.UTC), p.Day)
}

// addPrice adds the payment, and how its price is made up.
func (d *Document) addPrice(p *page, product string) {
	r, x := d.Receipt, d.Receipt.Price
	x = cmp.Or(x, &price.Price{Unit: r.Amount, Subtotal: r.Amount})
	first := row{Label: locale.Clean(product), Value: p.Amount(x.Subtotal), Notes: lines(labeled(p.Word("subscription"), r.ID))}
	if !r.Due.IsZero() {
		first.Notes = append(first.Notes, p.Word("due")+" "+p.Date(r.Due.In(time.UTC), p.Day))
	}
	if n := x.Terms.Count(); n > 1 {
		first.Notes = append(first.Notes, labeled(p.Word("quantity"), strconv.Itoa(n)), labeled(p.Word("unit"), p.Amount(x.Unit)))
	}
	if x.Terms.Tax.Mode == price.Inclusive {
		if net, err := price.Of(x.Unit, price.Terms{Tax: x.Terms.Tax}, r.Period); err == nil {
			first.Notes = append(first.Notes, labeled(p.Word("unit_net"), p.Amount(net.Net)))
		}
	}
	p.Rows = append(p.Rows, first)
	if !x.Discount.IsZero() {
		label := p.Word("discount")
		if percent := x.Terms.Discount.Percent; percent > 0 {
			label += " " + p.Percent(percent.String())
		}
		p.Rows = append(p.Rows, row{Label: label, Value: p.Amount(minus(x.Discount))})
	}
	if t := x.Terms.Tax; t.Mode != price.Untaxed {
		p.Rows = append(p.Rows, row{Label: p.Word("net"), Value: p.Amount(x.Net)},
			row{Label: strings.TrimSpace(p.Word("tax") + " " + p.Percent(t.Rate.String()) + " " + t.Country), Value: p.Amount(x.Tax), Notes: lines(t.Note)})
	}
	p.Rows = append(p.Rows, row{Label: p.Word("total"), Value: p.Amount(r.Amount), Strong: true})
}

// addReversals adds what was given back of the payment.
func (d *Document) addReversals(p *page) {
	r := d.Receipt
	left := r.Amount
	for _, x := range d.Reversals {
		key, done := "refund", x.State == processor.ReversalSucceeded
		switch {
		case x.Kind == processor.Refunded && !done && x.Counts():
			key = "pending"
		case x.Kind == processor.Disputed && done:
			key = "returned"
		case x.Kind != processor.Refunded || !done:
			continue // nothing has been given back
		}
		back := row{Label: p.Word(key), Value: p.Amount(minus(x.Amount)), Notes: lines(labeled(p.Word("number"), x.InSeries))}
		if done {
			back.Label += " " + d.day(p, cmp.Or(x.Processed, x.Created))
			if rest, err := left.Add(minus(x.Amount)); err == nil {
				left = rest
			}
		}
		p.Rows = append(p.Rows, back)
	}
	if left == r.Amount {
		return
	}
	p.Rows = append(p.Rows, row{Label: p.Word("left"), Value: p.Amount(left), Strong: true})
	if p.Stamp = p.Word("stamp_part"); left.IsZero() {
		p.Stamp = p.Word("stamp_all")
	}
}

func minus(a money.Amount) money.Amount { return money.New(-a.Minor(), a.Currency()) }
