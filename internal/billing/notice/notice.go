// Package notice creates the mails to customers about periods, with their ids and data.
//
// It does not decide when a mail is due, and does not write it to the outbox: the engine does both.
package notice

import (
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
)

// A Sender is what a mail says about its store and its time.
type Sender struct {
	Installation string
	Now          time.Time
	PayBy        civil.Date // day on which the next period ends unpaid, if it is paid by wire
}

// Effect returns the mail of that kind about the open period o, or about the receipt's period, or about the next
// one if both are nil.
func Effect(kind string, s *billing.Subscription, o *billing.OpenPeriod, rec *billing.Receipt, by Sender) outbox.Effect {
	sku, amount, period := s.SKU, s.AmountOf(s.Period), s.Period
	if o != nil {
		sku, period = s.SKUOf(o), o.Period
	} else if rec != nil {
		sku, period = rec.SKU, rec.Period
	}
	due, _ := s.Due()
	data := map[string]string{outbox.DataAccount: s.Account, outbox.DataEmail: s.Email,
		outbox.DataSubscription: s.ID, outbox.DataSKU: sku}
	if sku != s.Name.SKU {
		data[outbox.DataKeySKU] = s.Name.SKU
	}
	// The parts contain no slash, so ids are unique even if other tools write one id under two
	// SKUs. The id contains the installation because it becomes part of the mail's Message-ID.
	installation := by.Installation[:min(8, len(by.Installation))]
	id := kind + "/" + installation + "/" + s.Account + "/" + s.ID + "/" + s.Name.SKU + "/" + strconv.Itoa(period)
	if o != nil {
		amount, due = o.Amount, o.Due
		if kind == outbox.KindDeclined {
			data[outbox.DataRetryDate] = o.Retry.String()
		}
		if o.ByWire() {
			data[outbox.DataPayBy] = o.PayBy.String()
		}
		if n := len(o.Attempts); n > 0 && (kind == outbox.KindDeclined || kind == outbox.KindFailed) {
			data[outbox.DataCode] = o.Attempts[n-1].Code
			id += "/" + strconv.Itoa(n)
		}
	}
	if kind == outbox.KindFailed || rec != nil && rec.Kind == billing.Charged {
		tellFallback(data, s.Open)
	}
	switch kind { // a new notice must differ from a repeated one
	case outbox.KindReminder:
		id += "/" + due.String()
		if s.InTrial() {
			data[outbox.DataTrial] = "true"
		}
		if s.Collection == billing.ByWire {
			data[outbox.DataPayBy] = by.PayBy.String()
		}
	case outbox.KindActionRequired:
		data[outbox.DataRef] = o.Ref
		id += "/" + strconv.Itoa(o.Generation) + "/" + strconv.Itoa(o.Attempt)
	}
	if rec != nil {
		amount, due = rec.Amount, rec.Due
		data[outbox.DataProcessed], data[outbox.DataCharge] = billing.TodayIn(s.TimeZone, rec.Processed).String(), rec.Charge
		data[outbox.DataReceipt] = rec.Number(by.Installation)
	}
	data[outbox.DataPeriod], data[outbox.DataDueDate] = strconv.Itoa(period), due.String()
	SetAmount(data, amount)
	switch {
	case kind == outbox.KindReceipt && rec != nil:
		setPrice(data, rec.Price)
	case kind == outbox.KindPaymentRequest && o != nil:
		setPrice(data, o.Price)
	case kind == outbox.KindReminder:
		setPrice(data, s.PriceOf(period))
	}
	return outbox.Effect{ID: id, Kind: kind, Due: by.Now, Created: by.Now, Data: data}
}

// Reminder returns the mail about the next payment, which names the card, if known, or says that there is
// none. A second mail says that the card can pay the due payment but not the following one. The subscription,
// which the caller commits, stores the card's last month, so that the second mail is sent once.
func Reminder(s *billing.Subscription, due civil.Date, card *processor.Card, noMethod bool, by Sender) []outbox.Effect {
	f := Effect(outbox.KindReminder, s, nil, nil, by)
	if noMethod {
		f.Data[outbox.DataNoMethod] = "true"
	}
	if card == nil || s.Email == "" {
		return []outbox.Effect{f}
	}
	f.Data[outbox.DataCard], f.Data[outbox.DataCardExpires] = card.String(), card.LastMonth()
	if card.ExpiredOn(due) {
		f.Data[outbox.DataCardExpired] = "true"
	}
	following, err := s.Schedule().Due(s.Period + 1)
	last := s.Installments > 0 && s.Paid+1 >= s.Installments
	if err != nil || last || card.ExpiredOn(due) || !card.ExpiredOn(following) || s.CardTold == card.LastMonth() {
		return []outbox.Effect{f}
	}
	s.CardTold = card.LastMonth()
	x := Effect(outbox.KindCardExpires, s, nil, nil, by)
	x.ID += "/" + s.CardTold
	x.Data[outbox.DataCard], x.Data[outbox.DataCardExpires] = card.String(), s.CardTold
	sku, amount := s.PlanOn(s.Period+1, following)
	x.Data[outbox.DataSKU], x.Data[outbox.DataKeySKU] = sku, s.Name.SKU
	SetAmount(x.Data, amount)
	x.Data[outbox.DataPeriod], x.Data[outbox.DataDueDate] = strconv.Itoa(s.Period+1), following.String()
	return []outbox.Effect{f, x}
}

func tellFallback(data map[string]string, o *billing.OpenPeriod) {
	if o != nil && o.ByFallback() {
		data[outbox.DataFallback], data[outbox.DataCard] = "true", o.FallbackCard
	}
}

// SetAmount sets the mail's amount.
func SetAmount(data map[string]string, amount money.Amount) {
	data[outbox.DataAmount], data[outbox.DataCurrency] = amount.Decimal(), amount.Currency().Code()
	data[outbox.DataAmountText] = amount.Format()
}

// setPrice sets what makes the amount, if it is not one unit's.
func setPrice(data map[string]string, p *price.Price) {
	if p == nil {
		return
	}
	if n := p.Terms.Count(); n > 1 {
		data[outbox.DataQuantity], data[outbox.DataUnit] = strconv.Itoa(n), p.Unit.Decimal()
	}
	if !p.Discount.IsZero() {
		data[outbox.DataDiscount] = p.Discount.Decimal()
	}
	if t := p.Terms.Tax; t.Mode != price.Untaxed {
		data[outbox.DataNet], data[outbox.DataTax] = p.Net.Decimal(), p.Tax.Decimal()
		data[outbox.DataTaxRate], data[outbox.DataTaxNote] = t.Rate.String(), t.Note
	}
}
