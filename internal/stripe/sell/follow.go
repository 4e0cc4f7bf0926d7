package sell

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
)

// listedMonth is the period whose payments ListFollowed links at a time, so that its memory does not grow with
// the length of the account's history.
const listedMonth = 30 * 24 * time.Hour

// ListFollowed implements poller.Lister. Payments and schedules come after their subscriptions, and refunds
// and disputes after their payments.
func (t Tracker) ListFollowed(ctx context.Context, at string, since, payments, now time.Time,
	each func(o tracking.Object, problem string) error) error {
	if err := api.CheckAt(at); err != nil {
		return err
	}
	query := api.CreatedBetween(since, time.Time{})
	query.Set("status", "all")
	query.Set("expand[]", "data.customer")
	for raw, err := range t.api.Rows(ctx, at, "/v1/subscriptions", query, nil) {
		if err != nil {
			return asTracked(err)
		}
		o, problem, err := t.followed(raw)
		if err == nil {
			err = each(o, problem)
		}
		if err != nil {
			return err
		}
	}
	plain := func(o tracking.Object) error { return each(o, "") }
	if err := t.walk(ctx, at, tracking.KindSchedule, url.Values{}, plain); err != nil {
		return err
	}
	for from := payments; from.Before(now); from = from.Add(listedMonth) {
		to := from.Add(listedMonth)
		if !to.Before(now) {
			to = time.Time{} // with what is made while this lists
		}
		if err := t.payments(ctx, at, from, to, plain); err != nil {
			return err
		}
	}
	if err := t.walk(ctx, at, tracking.KindRefund, api.CreatedBetween(payments, time.Time{}), plain); err != nil {
		return err
	}
	return t.walk(ctx, at, tracking.KindDispute, api.CreatedBetween(payments, time.Time{}), plain)
}

// followed reads a subscription whose customer is expanded. problem says why it cannot be followed.
func (t Tracker) followed(raw json.RawMessage) (o tracking.Object, problem string, err error) {
	if o, err = fetched(tracking.KindSubscription, "", raw); err != nil {
		return o, "", err
	}
	var s struct {
		Live     bool `json:"livemode"`
		Customer struct {
			Deleted bool `json:"deleted"`
		} `json:"customer"`
		Items struct {
			Data []json.RawMessage `json:"data"`
			More bool              `json:"has_more"`
		} `json:"items"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return o, "", api.Unusable("subscription", "cannot decode %s: %v", o.ID, err)
	}
	switch {
	case s.Live != t.api.Live():
		problem = "it is of the other mode (test or live)"
	case s.Customer.Deleted:
		problem = "its customer is deleted"
	case len(s.Items.Data) > 1 || s.Items.More:
		problem = "it has several items"
	case o.Terms.Price == "":
		problem = "it has no price"
	}
	return o, problem, nil
}
