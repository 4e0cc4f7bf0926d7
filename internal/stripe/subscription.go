package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
)

var _ processor.Biller = (*Processor)(nil)

const subscriptions = "/v1/subscriptions"

// expansions are the members of a subscription that its conversion reads, under the prefix.
func expansions(prefix string) url.Values {
	query := url.Values{}
	for _, member := range []string{"customer.invoice_settings.default_payment_method", "default_payment_method", "discounts.source.coupon"} {
		query.Add("expand[]", prefix+member)
	}
	return query
}

// Subscriptions implements processor.Biller. It first reads what may be an obstacle: invoices that are
// not settled, pending invoice items and disputes, of all customers.
func (p *Processor) Subscriptions(ctx context.Context, after string) iter.Seq2[processor.Subscription, error] {
	return func(yield func(processor.Subscription, error) bool) {
		busy, err := p.unsettled(ctx, "", "")
		if err == nil {
			err = p.disputed(ctx, busy)
		}
		if err != nil {
			yield(processor.Subscription{}, err)
			return
		}
		query := expansions("data.")
		if after != "" {
			query.Set("starting_after", after)
		}
		for s, err := range list(p.api.Rows(ctx, "", subscriptions, query, nil), whole[subscription]) {
			if err == nil {
				err = p.api.CheckMode(s.ID, s.Livemode)
			}
			if err != nil {
				yield(processor.Subscription{}, err)
				return
			}
			if !yield(s.convert(busy), nil) {
				return
			}
		}
	}
}

// Subscription implements processor.Biller.
func (p *Processor) Subscription(ctx context.Context, id string) (processor.Subscription, error) {
	s, err := p.subscription(ctx, id)
	if err != nil {
		return processor.Subscription{}, err
	}
	busy, err := p.unsettled(ctx, id, s.Customer.ID)
	return s.convert(busy), err
}

func (p *Processor) subscription(ctx context.Context, id string) (*subscription, error) {
	if err := api.CheckID("subscription", id, "sub_"); err != nil {
		return nil, err
	}
	raw, err := p.api.Get(ctx, "", subscriptions+"/"+id, expansions(""))
	if err != nil {
		return nil, err
	}
	s := new(subscription)
	if json.Unmarshal(raw, s) != nil || s.ID != id || s.Status == "" || len(s.Items.Data) == 0 {
		return nil, api.Unusable("subscription", "requested %s, but Stripe returned another object, or a part of it", id)
	}
	return s, p.api.CheckMode(s.ID, s.Livemode)
}

// An unsettled maps the IDs of customers and subscriptions to what is not settled yet.
type unsettled map[string]string

// unsettled finds invoices and invoice items that are not settled, of one subscription, or of all.
func (p *Processor) unsettled(ctx context.Context, id, customer string) (unsettled, error) {
	found := unsettled{}
	of := func(path, reason string, query url.Values, holder func(*debt) string) error {
		for d, err := range list(p.api.Rows(ctx, "", path, query, nil), whole[debt]) {
			if err != nil {
				return err
			}
			if h := holder(d); h != "" {
				found[h] = fmt.Sprintf(reason, d.ID)
			}
		}
		return nil
	}
	for _, status := range []string{"open", "draft"} {
		query := url.Values{"status": {status}}
		if id != "" {
			query.Set("subscription", id)
		}
		if err := of("/v1/invoices", "its invoice %s is "+status, query, (*debt).subscription); err != nil {
			return nil, err
		}
	}
	query := url.Values{"pending": {"true"}}
	if customer != "" {
		query.Set("customer", customer)
	}
	return found, of("/v1/invoiceitems", "its customer has the pending invoice item %s", query, func(d *debt) string { return d.Customer })
}

// Disputed implements processor.Biller. Stripe has no list of one customer's disputes.
func (p *Processor) Disputed(ctx context.Context, customer string) (string, error) {
	found := unsettled{}
	err := p.disputed(ctx, found)
	return found[customer], err
}

// disputed adds the customers with an open dispute.
func (p *Processor) disputed(ctx context.Context, found unsettled) error {
	query := api.CreatedBetween(p.api.Now().Add(-api.DisputesLast), time.Time{})
	query.Set("expand[]", "data.charge")
	for d, err := range list(p.api.Rows(ctx, "", "/v1/disputes", query, nil), whole[dispute]) {
		if err != nil {
			return err
		}
		if d.Status != "won" && d.Status != "lost" && d.Status != "warning_closed" && d.Status != "prevented" {
			found[d.Charge.Customer] = "its customer has the open dispute " + d.ID
		}
	}
	return nil
}

// SetEnd implements processor.Biller. The request has no idempotency key: repeated, it changes
// nothing, and with a key, Stripe would answer for a day as before an undo.
func (p *Processor) SetEnd(ctx context.Context, id string, e processor.End) (processor.Subscription, error) {
	if err := api.CheckID("subscription", id, "sub_"); err != nil {
		return processor.Subscription{}, err
	}
	form := url.Values{"metadata[" + api.MetaTakeover + "]": {e.Taker}}
	if e.Ends != nil {
		form.Set("cancel_at_period_end", strconv.FormatBool(*e.Ends))
	}
	if e.Forget {
		form["cancellation_details[comment]"], form["cancellation_details[feedback]"] = []string{""}, []string{""}
	}
	if _, _, err := p.api.Ask(ctx, http.MethodPost, subscriptions+"/"+id, "", "", form); err != nil {
		return processor.Subscription{}, err
	}
	return p.Subscription(ctx, id)
}

// Succession implements processor.Biller. It counts a line of an invoice as a renewal unless Stripe says
// that it is not for a period of the subscription.
func (p *Processor) Succession(ctx context.Context, id string, boundary time.Time) (processor.Succession, error) {
	s, err := p.subscription(ctx, id)
	if err != nil {
		return processor.Succession{}, err
	}
	found := processor.Succession{Status: s.Status, Ends: s.AtEnd || s.CancelAt != 0, Ended: api.Instant(s.EndedAt), TakenBy: s.Metadata[api.MetaTakeover],
		Refused: s.refused()}
	if !s.over() {
		found.Ended = time.Time{}
	}
	var first time.Time
	for d, err := range list(p.api.Rows(ctx, "", "/v1/invoices", url.Values{"subscription": {id}}, nil), whole[debt]) {
		if err == nil && d.Lines.More {
			d.Lines.Data, err = processor.Gather(list(p.api.Rows(ctx, "", "/v1/invoices/"+d.ID+"/lines", nil, nil), func(l *line) (line, error) { return *l, nil }))
		}
		if err != nil {
			return processor.Succession{}, err
		}
		start, end := d.renews(boundary)
		if !end.IsZero() && d.Status != "void" && (first.IsZero() || start.Before(first)) {
			first, found.Renewal, found.Until, found.Paid = start, d.ID, end, d.Status == "paid"
		}
	}
	return found, nil
}
