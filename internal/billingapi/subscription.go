package billingapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// nameOf returns the subscription's name from the path.
func nameOf(r *web.Request) billing.Name {
	return billing.Name{Account: r.PathValue("account"), ID: r.PathValue("subscription")}
}

// pathOf returns the subscription's path, without /v1/.
func pathOf(n billing.Name) string { return "accounts/" + n.Account + "/subscriptions/" + n.ID }

func showSubscription(w http.ResponseWriter, sub *billing.Subscription, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	tag(w, sub.Version)
	return view.Subscription(sub), nil
}

// shownDues is the number of upcoming due dates that a preview shows, as the commands do.
const shownDues = 3

// preview sends a subscription that is not stored.
func preview(w http.ResponseWriter, sub *billing.Subscription, err error) error {
	if err != nil {
		return err
	}
	return show(w, append(view.Subscription(sub), "next_due", view.List(sub.Upcoming(shownDues), view.Upcoming)), nil)
}

type subscriptionForm struct {
	ID  string `json:"id" field:"subscription"`
	SKU string `json:"sku"`
	price
	Quantity     *int               `json:"quantity"`
	Discount     *discountForm      `json:"discount"`
	Tax          *taxForm           `json:"tax" field:"-"`
	PaymentDay   int                `json:"payment_day" empty:"no"`
	Method       string             `json:"payment_method"`
	Collection   billing.Collection `json:"collection" empty:"no"`
	Start        string             `json:"start_date" empty:"no"`
	TrialDays    int                `json:"trial_days" decides:"payment_day"`
	NextPayment  string             `json:"next_payment_date" empty:"no"`
	Interval     string             `json:"interval" empty:"no"`
	ReminderDays *int               `json:"reminder_days"`
	Installments int                `json:"installments"`
	Address      string             `json:"address"`

	// For a new account.
	Email    string `json:"email"`
	Name     string `json:"name"`
	Locale   string `json:"locale"`
	Customer string `json:"customer"`
	Fallback string `json:"fallback_payment_method" field:"fallback"`
	TimeZone string `json:"time_zone"`
}

// readSubscription reads a new subscription. Its error contains all invalid fields.
func readSubscription(r *web.Request) (f subscriptionForm, n billing.NewSubscription, err error) {
	x := form{[]error{r.Read(&f)}}
	n = billing.NewSubscription{Account: r.PathValue("account"), ID: f.ID, SKU: f.SKU, Amount: x.amount(f.price),
		PaymentDay: f.PaymentDay, Method: f.Method, Collection: f.Collection, Start: x.date("start_date", f.Start),
		TrialDays: f.TrialDays, NextPayment: x.date("next_payment_date", f.NextPayment), Interval: x.interval(f.Interval),
		ReminderDays: *cmp.Or(f.ReminderDays, new(billing.DefaultReminderDays)), Installments: f.Installments, Address: f.Address, Email: f.Email,
		Name: f.Name, Locale: f.Locale, Customer: f.Customer, Fallback: f.Fallback, TimeZone: f.TimeZone}
	n.Terms = x.terms(f.Quantity, f.Discount)
	return f, n, errors.Join(x.err(), n.Check())
}

func (s *server) createSubscription(w http.ResponseWriter, r *web.Request) error {
	f, n, err := readSubscription(r)
	if err != nil {
		return err
	}
	return s.once(w, r, post{status: http.StatusCreated, object: pathOf(billing.Name{Account: n.Account, ID: n.ID}), asked: f,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			if err := f.Tax.fill(ctx, e, &n); err != nil {
				return nil, err
			}
			sub, err := e.CreateSubscription(ctx, n)
			return showSubscription(w, sub, err)
		}})
}

// previewSubscription shows what createSubscription would store.
func (s *server) previewSubscription(w http.ResponseWriter, r *web.Request) error {
	f, n, err := readSubscription(r)
	if err == nil {
		err = f.Tax.fill(r.Context(), s.Engine, &n)
	}
	if err != nil {
		return err
	}
	sub, err := s.Engine.Preview(r.Context(), n)
	return preview(w, sub, err)
}

func (s *server) subscriptionsOf(w http.ResponseWriter, r *web.Request) error {
	return list[billing.Subscription]{decode: billing.DecodeSubscription, view: view.Subscription,
		made: func(x *billing.Subscription, of *call.Row) bool { return of.Object == pathOf(x.Name) },
		open: func(url.Values) (string, string, error) {
			a, err := s.Engine.Account(r.Context(), r.PathValue("account"))
			if err != nil {
				return "", "", err
			}
			return a.ID, billing.SubPrefix, nil
		}}.send(s, w, r)
}

func (s *server) getSubscription(w http.ResponseWriter, r *web.Request) error {
	v, err := s.object(r.Context(), w, pathOf(nameOf(r)))
	return show(w, v, err)
}

type planForm struct {
	SKU *string `json:"sku"`
	price
	Quantity *int          `json:"quantity"`
	Discount *discountForm `json:"discount"`
	From     string        `json:"from" empty:"no"`
	Notify   bool          `json:"notify"`
}

// change returns the plan change, and adds errors for invalid fields to x.
func (f *planForm) change(x *form) (c billing.Change) {
	c = billing.Change{SKU: f.SKU, Quantity: f.Quantity, Discount: x.discount(f.Discount), From: x.date("from", f.From), Notify: f.Notify}
	if amount := x.amount(f.price); !amount.IsZero() {
		c.Amount = &amount
	}
	if f.SKU == nil && f.price == (price{}) && f.Quantity == nil && (f.Notify && f.Discount == nil || f.From != "") {
		x.add(billing.Invalid("sku", "is missing: from and notify require sku, amount or quantity"))
	}
	return c
}

// updateSubscription changes the subscription. If the key may charge, it immediately charges the open period
// with a new payment method. Otherwise, the next payment run does.
func (s *server) updateSubscription(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		planForm
		Tax          *taxForm            `json:"tax" field:"-"`
		PaymentDay   *int                `json:"payment_day"`
		Early        bool                `json:"early"`
		Method       *string             `json:"payment_method"`
		Collection   *billing.Collection `json:"collection"`
		ReminderDays *int                `json:"reminder_days"`
		Address      *string             `json:"address"`
		PaidOnce     bool                `json:"paid_once"`
	}
	x := form{[]error{r.Read(&f)}}
	c := f.change(&x)
	c.Tax = f.Tax.change()
	c.PaymentDay, c.Early, c.Method, c.Collection, c.ReminderDays, c.Address = f.PaymentDay, f.Early, f.Method, f.Collection, f.ReminderDays, f.Address
	n, ctx := nameOf(r), r.Context()
	switch nothing := c == (billing.Change{}); {
	case f.Early && f.PaymentDay == nil:
		x.add(billing.Invalid("early", "requires payment_day"))
	case f.PaidOnce && !nothing:
		x.add(billing.Invalid("paid_once", "cannot be combined with other fields"))
	case nothing && !f.PaidOnce && x.err() == nil: // else something was there, and was wrong
		x.add(errNothing)
	}
	if err := x.err(); err != nil {
		if sub, none := s.Engine.Subscription(ctx, n); none == nil {
			err = errors.Join(err, sub.ChangeTerms(c, sub.Today(civil.Date{}, s.Engine.Now())))
		}
		return err
	}
	e, err := s.Engine.Fresh(ctx)
	if err != nil {
		return err
	}
	change := func(ctx context.Context, e *engine.Engine) (any, error) {
		var sub *billing.Subscription
		var err error
		if f.PaidOnce {
			if _, err = e.AnswerDoubts(ctx, n); err == nil {
				sub, err = e.Subscription(ctx, n)
			}
		} else {
			sub, err = e.UpdateSubscription(ctx, n, c)
		}
		if err == nil && c.Method != nil && (sub.Open != nil || sub.Collect > 0) && r.Key.Scope.Includes(key.Charge) {
			if _, sub, err = e.CollectNow(ctx, n); errors.Is(err, charging.ErrOff) {
				err = nil
			}
		}
		return showSubscription(w, sub, err)
	}
	if isDry(r) {
		return s.rehearse(w, r, e, post{object: pathOf(n), do: change})
	}
	v, err := change(ctx, e)
	return show(w, v, err)
}

func (s *server) changePlan(w http.ResponseWriter, r *web.Request) error {
	n, c, f, err := s.readPlan(r)
	if err != nil {
		return err
	}
	if f.Now {
		return s.upgrade(w, r, n, c, f)
	}
	return s.once(w, r, post{status: http.StatusOK, object: pathOf(n), asked: f,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			sub, err := e.UpdateSubscription(ctx, n, c)
			return showSubscription(w, sub, err)
		}})
}

// A planRequest is a planForm, or an upgrade.
type planRequest struct {
	planForm
	Now bool `json:"now"`
}

func (s *server) readPlan(r *web.Request) (n billing.Name, c billing.Change, f planRequest, err error) {
	x := form{[]error{r.Read(&f)}}
	if c = f.change(&x); c == (billing.Change{}) && x.err() == nil {
		x.add(errNothing)
	} else if f.Now && c != (billing.Change{SKU: c.SKU, Amount: c.Amount}) {
		x.add(billing.Invalid("now", "requires sku or amount, and cannot be combined with quantity, discount, from or notify"))
	}
	return nameOf(r), c, f, x.err()
}

// previewPlan shows what changePlan would store.
func (s *server) previewPlan(w http.ResponseWriter, r *web.Request) error {
	n, c, f, err := s.readPlan(r)
	if err != nil {
		return err
	}
	if f.Now {
		return s.previewUpgrade(w, r, n, c)
	}
	sub, err := s.Engine.Subscription(r.Context(), n)
	if err == nil && sub.Over() {
		err = fmt.Errorf("subscription %s is %s: %w", sub.Name, sub.Status, billing.ErrState)
	}
	if err == nil {
		err = sub.ChangeTerms(c, sub.Today(civil.Date{}, s.Engine.Now()))
	}
	return preview(w, sub, err)
}
