package sell

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

// customers returns the customers at Stripe who may be the order's buyer, the likeliest first. A
// customer in the order is the only one. Otherwise they have exactly the buyer's email address:
// first those of this purchase, then those of Duesday, then others. Of each the oldest comes first,
// so that a new customer does not change the order. Without an address they are those made for this
// purchase lately.
func (s *sale) customers(ctx context.Context) ([]string, error) {
	if s.o.Customer != "" {
		return []string{s.o.Customer}, nil
	}
	query := url.Values{"email": {s.o.Email}}
	if s.o.Email == "" {
		query = api.CreatedBetween(s.t.api.Now().Add(-findWindow), time.Time{})
	}
	var ours, installed, others []string
	for raw, err := range s.t.api.Rows(ctx, s.o.At, "/v1/customers", query, nil) {
		if err != nil {
			return nil, err
		}
		o, err := fetched("customer", "", raw)
		if err != nil {
			return nil, err
		}
		switch { // the newest comes first in the list
		case s.isOurs(o.Tag):
			ours = slices.Insert(ours, 0, o.ID)
		case s.o.Email == "":
		case o.Tag.Installation == s.o.Tag.Installation:
			installed = slices.Insert(installed, 0, o.ID)
		default:
			others = slices.Insert(others, 0, o.ID)
		}
	}
	return slices.Concat(ours, installed, others), nil
}

// customer returns the order's buyer. It makes a customer if there is none.
func (s *sale) customer(ctx context.Context) (string, error) {
	if s.o.Customer != "" || s.o.Email != "" {
		if ids, err := s.customers(ctx); err != nil || len(ids) > 0 {
			return slices.Concat(ids, []string{""})[0], err
		}
	}
	form := maps.Clone(s.meta)
	setNonEmpty(form, "email", s.o.Email)
	setNonEmpty(form, "name", s.o.Name)
	raw, err := s.post(ctx, "customer", "/v1/customers", form)
	if err != nil {
		return "", err
	}
	o, err := fetched("customer", "", raw)
	return o.ID, err
}

// A payer is a customer with a payment method.
type payer struct{ customer, method string }

// payer returns the order's buyer with the payment method attached, under the id that it then has. It
// does not make the method the customer's default: a buyer who gives another person's email address
// must not change how that person pays. declined is the reason if a bank refused the attachment.
func (s *sale) payer(ctx context.Context) (buyer payer, declined string, err error) {
	if buyer.customer, err = s.customer(ctx); err != nil {
		return payer{}, "", err
	}
	raw, err := s.t.api.Get(ctx, s.o.At, "/v1/payment_methods/"+s.o.PaymentMethod, nil)
	if err != nil {
		return payer{}, "", err
	}
	buyer.method, err = s.attached(raw, buyer.customer)
	if buyer.method != "" || err != nil {
		return buyer, "", err
	}
	raw, err = s.post(ctx, "attach", "/v1/payment_methods/"+s.o.PaymentMethod+"/attach",
		url.Values{"customer": {buyer.customer}})
	if text, is := isDecline(err); is {
		return buyer, text, nil
	}
	if err != nil {
		return payer{}, "", err
	}
	if buyer.method, err = s.attached(raw, buyer.customer); buyer.method == "" && err == nil {
		err = api.Unusable("payment method", "Stripe attached %s, but still shows it without a customer", api.Quote(s.o.PaymentMethod))
	}
	return buyer, "", err
}

// attached returns the id of the payment method if it is the customer's, or "" if it has no owner.
func (s *sale) attached(raw json.RawMessage, customer string) (string, error) {
	o, err := event.DecodeObject(raw)
	var m struct {
		Customer json.RawMessage `json:"customer"`
	}
	if err != nil || o.Kind != "payment_method" || !api.IsMethod(o.ID) || json.Unmarshal(raw, &m) != nil {
		return "", api.Unusable("payment method", "Stripe returned a %q with ID %q", o.Kind, o.ID)
	}
	switch linkedID(m.Customer) {
	case "":
		return "", nil
	case customer:
		return o.ID, nil
	}
	return "", api.Unsent("payment method %s belongs to another customer at Stripe", o.ID)
}

// refusedAt is a sale whose payment method was declined before there was anything to pay.
func refusedAt(customer, declined string) tracking.Sale {
	return tracking.Sale{Customer: customer, Declined: declined}
}
