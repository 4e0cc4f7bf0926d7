package main

import (
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
)

// The JSON forms of billing's nouns. Amounts are decimal strings at the currency's
// exponent, ids are bare, dates are 2026-01-31 and timestamps UTC with milliseconds.

const stampLayout = "2006-01-02T15:04:05.000Z"

// stamp returns the timestamp, or "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stampLayout)
}

// date returns the date, or "" for the zero date.
func date(d civil.Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

type accountView struct {
	Account  string `json:"account"`
	Email    string `json:"email"`
	TimeZone string `json:"time_zone"`
	Method   string `json:"payment_method,omitempty"` // of subscriptions without one of their own
	Given    string `json:"payment_method_given_at,omitempty"`
	Customer string `json:"customer,omitempty"`          // at the processor
	At       string `json:"connected_account,omitempty"` // "": our own
	Fee      string `json:"application_fee,omitempty"`   // its share for us: 2.50%
	Created  string `json:"created_at"`

	Change string `json:"change,omitempty"` // not in every copy yet
}

func viewAccount(a *billing.Account) accountView {
	v := accountView{Account: a.ID, Email: a.Email, TimeZone: a.TimeZone, Method: a.Method, Given: stamp(a.Given),
		Customer: a.Payer.Customer, At: a.Payer.At, Created: stamp(a.Created)}
	if a.Payer.Fee > 0 {
		v.Fee = percent(a.Payer.Fee)
	}
	if v.TimeZone == "" {
		v.TimeZone = "UTC"
	}
	if a.Copying {
		v.Change = "unfinished: update the account again"
	}
	return v
}

type subscriptionView struct {
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Email        string `json:"email"`
	Status       string `json:"status"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	PaymentDay   int    `json:"payment_day"`
	Interval     string `json:"interval"`
	Method       string `json:"payment_method"`
	Address      string `json:"address,omitempty"`
	TimeZone     string `json:"time_zone"`
	ReminderDays int    `json:"reminder_days"`
	Period       int    `json:"period"` // to be paid next
	Due          string `json:"due_date,omitempty"`
	NextPayment  string `json:"next_payment_date,omitempty"` // the payment job looks at it again
	NextReminder string `json:"next_reminder_date,omitempty"`
	Paid         int    `json:"paid_periods"`
	Installments int    `json:"installments,omitempty"`
	CancelAtEnd  bool   `json:"cancel_at_period_end,omitempty"`
	Requested    string `json:"requested,omitempty"`
	Parked       string `json:"parked,omitempty"` // why it waits for a person
	PausedOn     string `json:"paused_on,omitempty"`
	LastCharge   string `json:"last_charge,omitempty"`
	Created      string `json:"created_at"`

	Open *openView `json:"open,omitempty"`
}

type openView struct {
	Period   int           `json:"period"`
	Due      string        `json:"due_date"`
	Amount   string        `json:"amount"`
	Currency string        `json:"currency"`
	Method   string        `json:"payment_method"`
	Intent   string        `json:"intent"`
	Attempt  int           `json:"attempt"`
	State    string        `json:"state,omitempty"`
	Retry    string        `json:"retry_date,omitempty"`
	Opened   string        `json:"opened_at"`
	Declined []attemptView `json:"declined"`

	Link   string `json:"link,omitempty"`    // where the customer can authenticate, of requires_action
	NoLink string `json:"no_link,omitempty"` // why there is none
}

type attemptView struct {
	Attempt int    `json:"attempt"`
	Code    string `json:"code"`
	Method  string `json:"payment_method"`
	At      string `json:"at"`
}

func viewAttempts(attempts []billing.Attempt) []attemptView {
	views := make([]attemptView, len(attempts))
	for i, a := range attempts {
		views[i] = attemptView{a.Number, a.Code, a.Method, stamp(a.At)}
	}
	return views
}

func viewSubscription(s *billing.Subscription) subscriptionView {
	v := subscriptionView{Account: s.Account, Subscription: s.ID, SKU: s.SKU, Email: s.Email, Status: string(s.Status),
		Amount: s.Amount.Decimal(), Currency: s.Amount.Currency().Code(), PaymentDay: s.PaymentDay,
		Interval: s.Interval.String(),
		Method:   s.Method, Address: s.Address, TimeZone: s.TimeZone, ReminderDays: s.ReminderDays, Period: s.Period,
		NextPayment: date(s.NextPayment), NextReminder: date(s.NextReminder), Paid: s.Paid, Installments: s.Installments,
		CancelAtEnd: s.CancelAtEnd, Requested: string(s.Requested), Parked: s.Parked, PausedOn: date(s.PausedOn),
		LastCharge: s.LastCharge, Created: stamp(s.Created)}
	if v.TimeZone == "" {
		v.TimeZone = "UTC"
	}
	v.Due = dueOf(s)
	if o := s.Open; o != nil {
		v.Open = &openView{Period: o.Period, Due: date(o.Due), Amount: o.Amount.Decimal(),
			Currency: o.Amount.Currency().Code(),
			Method:   o.Method, Intent: o.Ref, Attempt: o.Attempt, State: string(o.State), Retry: date(o.Retry),
			Opened:   stamp(o.Opened),
			Declined: viewAttempts(o.Attempts)}
	}
	return v
}

// dueOf returns the due date of the period to be paid next, "" when none will be.
func dueOf(s *billing.Subscription) string {
	if s.Open == nil && s.Status != billing.Active && s.Status != billing.ParkedState {
		return ""
	}
	due, err := s.Due()
	if err != nil {
		return ""
	}
	return date(due)
}

// A receiptView is also a line of export receipts; see receiptColumns.
type receiptView struct {
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Period       *int   `json:"period,omitempty"` // nil: not known, since it came with the data
	Due          string `json:"due_date"`
	Processed    string `json:"processed_at"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	Charge       string `json:"charge"`
}

func viewReceipt(r *billing.Receipt) receiptView {
	v := receiptView{Account: r.Account, Subscription: r.ID, SKU: r.SKU, Due: date(r.Due),
		Processed: stamp(r.Processed), Amount: r.Amount.Decimal(), Currency: r.Amount.Currency().Code(), Charge: r.Charge}
	if r.Kind != billing.Imported {
		v.Period = &r.Period
	}
	return v
}

// receiptPeriod returns the period, or "" when it is not known.
func receiptPeriod(r *billing.Receipt) string {
	if r.Kind == billing.Imported {
		return ""
	}
	return strconv.Itoa(r.Period)
}

// A fullReceiptView says where the payment was taken, too.
type fullReceiptView struct {
	receiptView
	Kind    string `json:"kind"`
	Email   string `json:"email"`
	Expires string `json:"expires_at,omitempty"`
}

func viewFullReceipt(r *billing.Receipt) fullReceiptView {
	return fullReceiptView{viewReceipt(r), string(r.Kind), r.Email, stamp(r.Expires)}
}

type periodView struct {
	Period   int           `json:"period"`
	Ending   string        `json:"ending"`
	Due      string        `json:"due_date"`
	Ended    string        `json:"ended_at"`
	Reason   string        `json:"reason"`
	Amount   string        `json:"amount"`
	Currency string        `json:"currency"`
	Intent   string        `json:"intent,omitempty"`
	Declined []attemptView `json:"declined"`
}

func viewPeriod(p *billing.EndedPeriod) periodView {
	return periodView{Period: p.Period, Ending: string(p.Ending), Due: date(p.Due), Ended: stamp(p.Ended),
		Reason: p.Reason,
		Amount: p.Amount.Decimal(), Currency: p.Amount.Currency().Code(), Intent: p.Ref, Declined: viewAttempts(p.Attempts)}
}

// A resultView is the outcome of one period in a run, or in a dry run.
type resultView struct {
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Period       int    `json:"period"`
	Due          string `json:"due_date"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	Outcome      string `json:"outcome,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

func viewResult(r engine.Result) resultView {
	return resultView{Account: r.Account, Subscription: r.ID, SKU: r.SKU, Period: r.Period, Due: date(r.Due),
		Amount: r.Amount.Decimal(), Currency: r.Amount.Currency().Code(), Outcome: string(r.Outcome), Reason: r.Reason}
}
