package engine

import (
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// The notices of customers, by the kinds of package outbox.
const (
	noticeReceipt  = outbox.KindReceipt
	noticeReminder = outbox.KindReminder
	noticeDeclined = outbox.KindDeclined
	noticeFailed   = outbox.KindFailed
	noticeAction   = outbox.KindActionRequired
)

// notice returns the outbox row of the notice, or none for an account without an address. It must
// be in the commit of the reported event. o is the open period, or nil for the next one.
func (e *Engine) notice(kind string, s *billing.Subscription, o *billing.OpenPeriod,
	rec *billing.Receipt) []store.Write {
	if s.Email == "" {
		return nil
	}
	return []store.Write{outbox.Write(e.Tables.Outbox.Name, e.effect(kind, s, o, rec))}
}

// reminder is the notice of the next payment. It names the card to be charged, if known, or reports
// the lack of one.
func (e *Engine) reminder(s *billing.Subscription, due civil.Date, card *billing.Card, noMethod bool) []store.Write {
	if s.Email == "" {
		return nil
	}
	f := e.effect(noticeReminder, s, nil, nil)
	if noMethod {
		f.Data[outbox.DataNoMethod] = "true"
	}
	if card != nil {
		f.Data[outbox.DataCard], f.Data[outbox.DataCardExpires] = card.String(), card.LastMonth()
		if card.ExpiredOn(due) {
			f.Data[outbox.DataCardExpired] = "true"
		}
	}
	return []store.Write{outbox.Write(e.Tables.Outbox.Name, f)}
}

func (e *Engine) effect(kind string, s *billing.Subscription, o *billing.OpenPeriod,
	rec *billing.Receipt) outbox.Effect {
	amount, period := s.Amount, s.Period
	due, _ := s.Due()
	data := map[string]string{outbox.DataAccount: s.Account, outbox.DataEmail: s.Email,
		outbox.DataSubscription: s.ID, outbox.DataSKU: s.SKU}
	// The parts contain no slash, so ids are unique. The Message-ID of a mail is made of the id,
	// and therefore the id contains the installation.
	installation := e.Opened.Installation[:min(8, len(e.Opened.Installation))]
	id := kind + "/" + installation + "/" + s.Account + "/" + s.ID + "/" + strconv.Itoa(period)
	if o != nil {
		amount, due = o.Amount, o.Due
		if kind == noticeDeclined {
			data[outbox.DataRetryDate] = o.Retry.String()
		}
		if n := len(o.Attempts); n > 0 && (kind == noticeDeclined || kind == noticeFailed) {
			data[outbox.DataCode] = o.Attempts[n-1].Code
			id += "/" + strconv.Itoa(n)
		}
	}
	switch kind { // a new notice must not pass for a repetition
	case noticeReminder:
		id += "/" + due.String()
	case noticeAction:
		data[outbox.DataRef] = o.Ref
		id += "/" + strconv.Itoa(o.Generation) + "/" + strconv.Itoa(o.Attempt)
	}
	if rec != nil {
		data[outbox.DataProcessed], data[outbox.DataCharge] = billing.Stamp(rec.Processed), rec.Charge
	}
	data[outbox.DataPeriod], data[outbox.DataDueDate] = strconv.Itoa(period), due.String()
	data[outbox.DataAmount], data[outbox.DataCurrency] = amount.Decimal(), amount.Currency().Code()
	data[outbox.DataAmountText] = amount.Format()
	now := e.Now()
	return outbox.Effect{ID: id, Kind: kind, Due: now, Created: now, Data: data}
}

// receipt returns the record of a payment for the period to be paid next.
func (e *Engine) receipt(s *billing.Subscription, kind billing.ReceiptKind, amount money.Amount, due civil.Date,
	processed time.Time, charge string) *billing.Receipt {
	r := &billing.Receipt{Name: s.Name, Email: s.Email, Kind: kind, Period: s.Period, Due: due, Processed: processed,
		Amount: amount, Charge: charge}
	if e.cfg.ReceiptMonths > 0 {
		r.Expires = processed.AddDate(0, e.cfg.ReceiptMonths, 0)
	}
	return r
}
