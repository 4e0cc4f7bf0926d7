package sandbox

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
)

var _ billing.Refunder = (*Client)(nil)

// A refundForm is a billing.RefundRequest on the wire. The tag is the intent's own.
type refundForm struct {
	Key      string `json:"key"`
	ID       string `json:"id"`
	Ref      string `json:"ref"`
	Amount   string `json:"amount"` // decimal, at the currency's exponent
	Currency string `json:"currency"`
	Reason   string `json:"reason"`
}

func (f *refundForm) request() (billing.RefundRequest, error) {
	c, err := money.ParseCurrency(f.Currency)
	if err != nil {
		return billing.RefundRequest{}, invalid(err.Error())
	}
	amount, err := money.Parse(f.Amount, c)
	if err != nil {
		return billing.RefundRequest{}, invalid(err.Error())
	}
	return billing.RefundRequest{Key: f.Key, ID: f.ID, Ref: f.Ref, Amount: amount, Reason: billing.RefundReason(f.Reason)}, nil
}

func (s *Sandbox) serveRefund(w http.ResponseWriter, r *http.Request) {
	var form refundForm
	err := readForm(w, r, &form)
	var request billing.RefundRequest
	if err == nil {
		request, err = form.request()
	}
	var made billing.Reversal
	if err == nil {
		made, err = s.Refund(r.Context(), request)
	}
	answerWith(w, replyOf(made), err)
}

func replyOf(r billing.Reversal) reply { return reply{Return: new(recordOfReturn(r))} }

func (s *Sandbox) serveReturns(w http.ResponseWriter, r *http.Request) {
	since, err := parseSince(r.URL.Query().Get("since"))
	if err != nil {
		answer(w, billing.Intent{}, err)
		return
	}
	stream(w, s.Reversals(r.Context(), billing.ListRequest{Since: since}), replyOf)
}

func (s *Sandbox) serveReturnsOf(w http.ResponseWriter, r *http.Request) {
	list, err := s.ReturnsOf(r.Context(), r.PathValue("ref"))
	stream(w, func(yield func(billing.Reversal, error) bool) {
		for _, made := range list {
			if !yield(made, nil) {
				return
			}
		}
		if err != nil {
			yield(billing.Reversal{}, err)
		}
	}, replyOf)
}

// Refund implements billing.Refunder.
func (c *Client) Refund(ctx context.Context, r billing.RefundRequest) (billing.Reversal, error) {
	if err := checkRefund(r); err != nil { // also because not all of it can be sent as it is
		return billing.Reversal{}, err
	}
	if err := checkRef(r.Ref); err != nil {
		return billing.Reversal{}, err
	}
	form := refundForm{Key: r.Key, ID: r.ID, Ref: r.Ref, Amount: r.Amount.Decimal(), Currency: r.Amount.Currency().Code(), Reason: string(r.Reason)}
	return ask(ctx, c, http.MethodPost, pathRefund, form, (*reply).readReturn)
}

// ReturnsOf implements billing.Refunder.
func (c *Client) ReturnsOf(ctx context.Context, ref string) (list []billing.Reversal, err error) {
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	for r, err := range replies(ctx, c, pathReturnsOf+escapeRef(ref), (*reply).readReturn) {
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// Returns implements billing.Refunder. It yields while the answer comes; a list that breaks
// off ends with ErrUnknown.
func (c *Client) Reversals(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Reversal, error] {
	return func(yield func(billing.Reversal, error) bool) {
		if err := checkList(r); err != nil {
			yield(billing.Reversal{}, err)
			return
		}
		replies(ctx, c, pathReturns+"?since="+url.QueryEscape(formatSince(r.Since)), (*reply).readReturn)(yield)
	}
}

// readReturn returns what the reply holds.
func (a *reply) readReturn() (billing.Reversal, error) {
	switch {
	case a.Error != nil:
		return billing.Reversal{}, a.Error.err()
	case a.Return == nil:
		return billing.Reversal{}, errors.New("the answer has no refund or dispute")
	}
	return a.Return.readReturn()
}
