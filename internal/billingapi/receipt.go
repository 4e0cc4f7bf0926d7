package billingapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/customer"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// createReceipt records a manual payment. It responds with 202 if the payment must wait until the period's
// payment intent is canceled.
func (s *server) createReceipt(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Period *int `json:"period"`
		price
		Overpaid bool   `json:"overpaid"`
		Note     string `json:"note"`
		Date     string `json:"date" empty:"no"`
	}
	x := form{[]error{r.Read(&f)}}
	n := nameOf(r)
	m := engine.ManualPayment{Period: f.Period, Amount: x.amount(f.price), Overpaid: f.Overpaid, Note: f.Note, Date: x.date("date", f.Date)}
	if err := errors.Join(x.err(), m.Check()); err != nil {
		return err
	}
	record := func(ctx context.Context, e *engine.Engine) (any, error) {
		done, err := e.CreateReceipt(ctx, n, m)
		switch {
		case err != nil:
			return nil, err
		case done.Receipt != nil:
			return view.Receipt(done.Receipt, e.Opened.Installation), nil
		case done.Requested:
			return accepted{view.Object{"account", n.Account, "subscription", n.ID, "period", done.Period, "requested", true}}, nil
		}
		return view.Object{"account", n.Account, "subscription", n.ID, "period", done.Period}, nil // the receipt has expired
	}
	return s.once(w, r, post{status: http.StatusCreated, object: pathOf(n), asked: f, do: record, resumes: true})
}

// accountOf returns the parameter account, which is required because the store finds only one account's items
// without a scan.
func accountOf(values url.Values) (string, error) {
	id := values.Get("account")
	return id, billing.CheckID("account", id)
}

// receipts lists the receipts of an account or of one subscription, oldest first unless order is newest, with the
// refunds and disputes of their charges.
func (s *server) receipts(w http.ResponseWriter, r *web.Request) error {
	var from, to civil.Date
	var subscription string
	var reversals map[string][]*billing.ReversalRecord
	return list[billing.Receipt]{names: []string{"account", "subscription", "from", "to", "order"}, decode: billing.DecodeReceipt,
		made: func(x *billing.Receipt, of *call.Row) bool { return isReceipt(of, x) },
		open: func(values url.Values) (id, _ string, err error) {
			var x form
			from, to = x.date("from", values.Get("from")), x.date("to", values.Get("to"))
			if subscription = values.Get("subscription"); subscription != "" {
				x.add(billing.CheckID("subscription", subscription))
			}
			if order := values.Get("order"); order != "" && order != "oldest" && order != "newest" {
				x.add(billing.Invalid("order", "must be oldest or newest"))
			}
			if id, err = accountOf(values); err != nil {
				x.add(err)
			}
			if err = x.err(); err == nil {
				reversals, err = s.reversalsOf(r.Context(), id)
			}
			return id, billing.RecPrefix, err
		},
		keep: func(x *billing.Receipt) bool {
			day := civil.Of(x.Processed.UTC())
			return (subscription == "" || x.ID == subscription) && !day.Before(from) && (to.IsZero() || !day.After(to))
		},
		view: func(x *billing.Receipt) view.Object { return s.viewReceipt(x, reversals) }}.send(s, w, r)
}

// reversalsOf returns the account's refunds and disputes by charge.
func (s *server) reversalsOf(ctx context.Context, id string) (map[string][]*billing.ReversalRecord, error) {
	all := map[string][]*billing.ReversalRecord{}
	for x, err := range listed(ctx, s, id, billing.RefPrefix, "", false, billing.DecodeReversal) {
		if err != nil {
			return nil, err
		}
		all[x.of.Charge] = append(all[x.of.Charge], x.of)
	}
	return all, nil
}

func (s *server) viewReceipt(r *billing.Receipt, reversals map[string][]*billing.ReversalRecord) view.Object {
	var own []*billing.ReversalRecord
	if r.Kind == billing.Charged {
		own = reversals[r.Charge]
	}
	return view.Receipt(r, s.Engine.Opened.Installation, own...)
}

// receipt sends the receipt, or its document if the request's Accept has text/html and no JSON. A number
// identifies the account as well.
func (s *server) receipt(w http.ResponseWriter, r *web.Request) error {
	values, err := r.Values("account")
	if err != nil {
		return err
	}
	found, err := document.Find(r.Context(), s.Engine.Records, values.Get("account"), r.PathValue("number"))
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	if accept := strings.Join(r.Header.Values("Accept"), ","); strings.Contains(accept, "text/html") && !strings.Contains(accept, "json") {
		d, err := document.Of(r.Context(), s.Engine.Records, found)
		if err != nil {
			return err
		}
		page, err := d.HTML()
		if err == nil {
			customer.Protect(w.Header())
			_, err = w.Write(page)
		}
		return err
	}
	reversals, err := s.reversalsOf(r.Context(), found.Account)
	return show(w, s.viewReceipt(found, reversals), err)
}

// refund refunds a receipt's charge in full or in part, once for each idempotency key.
func (s *server) refund(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Account string `json:"account"`
		price
		Reason processor.RefundReason `json:"reason" empty:"no"`
	}
	x := form{[]error{r.Read(&f)}}
	o := refund.Order{Amount: x.amount(f.price), Reason: f.Reason}
	if err := errors.Join(x.err(), billing.CheckID("account", f.Account), o.Check()); err != nil {
		return err
	}
	found, err := document.Find(r.Context(), s.Engine.Records, f.Account, r.PathValue("number"))
	if err != nil {
		return err
	}
	if found.Kind == billing.Overpayment || found.Kind == billing.External { // the period may have a charge, too
		return fmt.Errorf("the receipt is of a manual payment; return the money the way it was paid: %w", billing.ErrState)
	}
	o.Name, o.Period = found.Name, found.Period
	return s.once(w, r, post{status: http.StatusCreated, object: pathOf(found.Name), asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			given, _, err := e.Refunds().Refund(ctx, o)
			if err != nil {
				return nil, err
			}
			return view.Reversal(given), nil
		}})
}

// refunds lists an account's refunds and disputes, oldest first.
func (s *server) refunds(w http.ResponseWriter, r *web.Request) error {
	key, given := "", s.Engine.Refunds()
	return list[billing.ReversalRecord]{names: []string{"account"}, decode: billing.DecodeReversal, view: view.Reversal,
		made: func(x *billing.ReversalRecord, of *call.Row) bool {
			k, err := billing.DecodeKeyed(of.Item)
			return err == nil && x.ReversalID == given.IDOf(x.Charge, k.Amount, key)
		},
		open: func(values url.Values) (string, string, error) {
			key = values.Get(keyParameter)
			id, err := accountOf(values)
			return id, billing.RefPrefix, err
		}}.send(s, w, r)
}
