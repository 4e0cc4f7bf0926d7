package sell

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
)

// subscribe makes a subscription, whose first invoice is paid at once. A declined payment leaves
// the subscription incomplete: Stripe has it expire within a day.
func (s *sale) subscribe(ctx context.Context) (tracking.Sale, error) {
	buyer, refused, err := s.payer(ctx)
	if err != nil || refused != "" {
		return refusedAt(buyer.customer, refused), err
	}
	raw, err := s.post(ctx, "subscription", "/v1/subscriptions", s.subscriptionForm(buyer))
	if text, is := isDecline(err); is {
		return refusedAt(buyer.customer, text), nil
	}
	if err != nil {
		return tracking.Sale{}, err
	}
	return s.subscribed(ctx, raw)
}

func (s *sale) subscriptionForm(buyer payer) url.Values {
	form := with(url.Values{"customer": {buyer.customer}, "items[0][price]": {s.o.Price},
		"default_payment_method": {buyer.method},
		"payment_behavior":       {"allow_incomplete"}, "off_session": {"false"}}, s.meta)
	setNonEmpty(form, "description", s.o.Description)
	return form
}

func (s *sale) subscribed(ctx context.Context, raw json.RawMessage) (tracking.Sale, error) {
	o, err := fetched(tracking.KindSubscription, "", raw)
	if err != nil {
		return tracking.Sale{}, err
	}
	o.Tag = s.o.Tag
	sale := tracking.Sale{Objects: []tracking.Object{o}, Customer: o.Customer}
	var more struct {
		Latest json.RawMessage `json:"latest_invoice"`
	}
	if json.Unmarshal(raw, &more) != nil {
		return tracking.Sale{}, api.Unusable("subscription", "%s cannot be decoded", o.ID)
	}
	latest := linkedID(more.Latest)
	if latest == "" {
		return sale, nil
	}
	b, err := s.lookUp(ctx, latest)
	if err != nil || b.payment.ID == "" {
		return sale, err
	}
	first := b.sale()
	sale.Objects = append(sale.Objects, first.Objects...)
	if o.Status == "incomplete" || o.Status == "incomplete_expired" { // else it is a later payment's, not the sale's
		sale.Declined, sale.Action, sale.ClientSecret = first.Declined, first.Action, first.ClientSecret
	}
	return sale, nil
}

// A term is the interval of a recurring price.
type term struct {
	Interval string `json:"interval"`
	Count    int    `json:"interval_count"`
}

// split makes a schedule with one phase, as long as all payments together, that ends with it. (A
// number of periods is no parameter of a phase since 2025-09-30.clover.) As with all schedules, the
// first invoice is a draft for about an hour: events tell of the first payment.
func (s *sale) split(ctx context.Context) (tracking.Sale, error) {
	raw, err := s.t.api.Get(ctx, s.o.At, "/v1/prices/"+url.PathEscape(s.o.Price), nil)
	if err != nil {
		return tracking.Sale{}, err
	}
	var price struct {
		Object    string `json:"object"`
		Recurring *term  `json:"recurring"`
	}
	if json.Unmarshal(raw, &price) != nil || price.Object != "price" {
		return tracking.Sale{}, api.Unusable("price", "Stripe returned a %q", price.Object)
	}
	if price.Recurring == nil || price.Recurring.Count < 1 {
		return tracking.Sale{}, api.Unsent("price %s is paid only once; the price must be recurring, because it is paid %d times", s.o.Price,
			s.o.Payments)
	}
	buyer, refused, err := s.payer(ctx)
	if err != nil || refused != "" {
		return refusedAt(buyer.customer, refused), err
	}
	if raw, err = s.post(ctx, "schedule", "/v1/subscription_schedules",
		s.scheduleForm(buyer, *price.Recurring)); err != nil {
		return tracking.Sale{}, err
	}
	return s.scheduled(ctx, raw)
}

func (s *sale) scheduleForm(buyer payer, every term) url.Values {
	form := with(url.Values{"customer": {buyer.customer}, "start_date": {"now"}, "end_behavior": {"cancel"},
		"default_settings[default_payment_method]": {buyer.method},
		"phases[0][items][0][price]":               {s.o.Price},
		"phases[0][duration][interval]":            {every.Interval},
		"phases[0][duration][interval_count]":      {strconv.Itoa(every.Count * s.o.Payments)},
	}, s.meta)
	form = with(form, s.metadata("phases[0][metadata]")) // for the subscription
	setNonEmpty(form, "default_settings[description]", s.o.Description)
	return form
}

func (s *sale) scheduled(ctx context.Context, raw json.RawMessage) (tracking.Sale, error) {
	o, err := fetched(tracking.KindSchedule, "", raw)
	if err != nil {
		return tracking.Sale{}, err
	}
	o.Tag = s.o.Tag
	sale := tracking.Sale{Objects: []tracking.Object{o}, Customer: o.Customer}
	if o.Subscription == "" {
		return sale, nil
	}
	if !api.IsID(o.Subscription, "sub_") {
		return tracking.Sale{}, api.Unusable("schedule", "%s has a subscription with ID %.60q", o.ID, o.Subscription)
	}
	if raw, err = s.t.api.Get(ctx, s.o.At, "/v1/subscriptions/"+o.Subscription, nil); err != nil {
		return tracking.Sale{}, err
	}
	under, err := s.subscribed(ctx, raw)
	if err != nil {
		return tracking.Sale{}, err
	}
	under.Objects[0].Schedule = o.ID // an ended subscription does not name it
	sale.Objects = append(sale.Objects, under.Objects...)
	return sale, nil
}
