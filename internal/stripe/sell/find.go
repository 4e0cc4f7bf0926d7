package sell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// A Tracker is Stripe for package tracking. It decides nothing about purchases.
type Tracker struct{ api *api.Client }

var (
	_ tracking.Finder = Tracker{}
	_ tracking.Seller = Tracker{}
	_ poller.Lister   = Tracker{}
)

// New returns a Tracker that sends by the client.
func New(c *api.Client) Tracker { return Tracker{c} }

// Object implements tracking.Finder. A payment intent since 2025-03-31.basil does not name its
// invoice, which the list of invoice payments leads to. Object asks no further about an intent
// that Duesday made without an invoice.
func (t Tracker) Object(ctx context.Context, at, kind, id string) (tracking.Object, error) {
	o, err := t.one(ctx, at, kind, id)
	if err != nil || kind != tracking.KindPayment {
		return o, err
	}
	var invoice tracking.Object
	switch {
	case o.InvoiceTold && o.Invoice == "", o.Tag.Charge, o.Tag.Kind == tracking.Legacy:
	case o.Invoice != "":
		if invoice, err = t.one(ctx, at, tracking.KindInvoice, o.Invoice); err != nil {
			return tracking.Object{}, notGone(err)
		}
	default:
		if invoice, err = t.invoiceOf(ctx, at, id); err != nil {
			return tracking.Object{}, notGone(asTracked(err))
		}
	}
	o = madeBy(o, invoice)
	if o.Tag.Purchase != "" || o.Tag.Charge || o.Subscription == "" {
		return o, nil
	}
	sub, err := t.one(ctx, at, tracking.KindSubscription, o.Subscription)
	if err != nil {
		return tracking.Object{}, notGone(err)
	}
	o.Tag = firstTag(o.Tag, sub.Tag)
	return o, nil
}

// madeBy gives a payment the links of the invoice that made it; the zero Object is none.
func madeBy(o, invoice tracking.Object) tracking.Object {
	o.Invoice, o.Subscription, o.InvoiceTold = invoice.ID, invoice.Subscription, true
	o.Tag, o.Attached = firstTag(o.Tag, invoice.Tag), invoice.Attached && invoice.Status != "paid" && o.Subscription == ""
	return o
}

// firstTag returns the first tag of a purchase or a charge, or else the first tag.
func firstTag(tags ...tracking.Tag) tracking.Tag {
	for _, tag := range tags {
		if tag.Purchase != "" || tag.Charge {
			return tag
		}
	}
	return cmp.Or(tags...)
}

// notGone hides an ErrGone about a part of the payment, so that the payment does not seem gone.
func notGone(err error) error {
	return api.Unusable("payment intent", "cannot read the invoice or subscription that it belongs to: %v", err)
}

// invoiceOf returns the invoice of the payment intent: the first in rank. The zero Object means none.
func (t Tracker) invoiceOf(ctx context.Context, at, intent string) (tracking.Object, error) {
	query := url.Values{"payment[type]": {"payment_intent"}, "payment[payment_intent]": {intent},
		"expand[]": {"data.invoice"}}
	var best invoicePayment
	for raw, err := range t.api.Rows(ctx, at, "/v1/invoice_payments", query, nil) {
		if err != nil {
			return tracking.Object{}, err
		}
		if p := readInvoicePayment(raw); p.rank() > best.rank() {
			best = p
		}
	}
	var err error
	invoice := tracking.Object{}
	switch id := linkedID(best.Invoice); {
	case best.ID == "":
		return invoice, nil
	case isObject(best.Invoice):
		invoice, err = fetched(tracking.KindInvoice, "", best.Invoice)
	default:
		invoice, err = t.one(ctx, at, tracking.KindInvoice, id)
	}
	invoice.Attached = !best.Default
	return invoice, err
}

// An invoicePayment links a payment and its invoice.
type invoicePayment struct {
	ID      string          `json:"id"`
	Invoice json.RawMessage `json:"invoice"`    // id, or expanded
	Default bool            `json:"is_default"` // made by the invoice itself, of all that it asks for
	Status  string          `json:"status"`
	Payment struct {
		Intent json.RawMessage `json:"payment_intent"` // id, or expanded; none of other types
	} `json:"payment"`
}

func readInvoicePayment(raw json.RawMessage) (p invoicePayment) {
	if json.Unmarshal(raw, &p) != nil {
		return invoicePayment{}
	}
	return p
}

// rank orders an invoice's payments, and a payment's invoices: paid, default, others; 0: none.
func (p invoicePayment) rank() int {
	switch {
	case p.ID == "":
		return 0
	case p.Status == "paid":
		return 3
	case p.Default:
		return 2
	}
	return 1
}

// Connected implements tracking.Finder. It asks Stripe even if the account refused us a moment ago:
// the refusal may be the reason for a new connection.
func (t Tracker) Connected(ctx context.Context, at string) error {
	if err := api.CheckAt(at); err != nil {
		return err
	}
	t.api.Forget(at)
	got, err := t.api.AccountID(ctx, at)
	if err == nil && at != "" && got != at {
		return api.Unusable("account", "requested %s, but Stripe returned %s", at, got)
	}
	return asTracked(err)
}

// one returns an object by its id. Errors are those of tracking.Finder.
func (t Tracker) one(ctx context.Context, at, kind, id string) (tracking.Object, error) {
	path, prefix := pathOf(kind)
	if !api.IsID(id, prefix) {
		return tracking.Object{}, fmt.Errorf("%w: the %s must be %s… (got %.60q)", tracking.ErrGone, kind, prefix, id)
	}
	if err := api.CheckAt(at); err != nil {
		return tracking.Object{}, err
	}
	raw, _, err := t.api.Ask(ctx, http.MethodGet, path+id, at, "", nil)
	if err != nil {
		return tracking.Object{}, asTracked(err)
	}
	return fetched(kind, id, raw)
}

// pathOf returns the path of a kind's objects, and the prefix of their ids; "": several.
func pathOf(kind string) (path, prefix string) {
	switch kind {
	case tracking.KindPayment:
		return "/v1/payment_intents/", "pi_"
	case tracking.KindSubscription:
		return "/v1/subscriptions/", "sub_"
	case tracking.KindSchedule:
		return "/v1/subscription_schedules/", "sub_sched_"
	case tracking.KindInvoicePayment:
		return "/v1/invoice_payments/", "inpay_"
	case tracking.KindCharge:
		return "/v1/charges/", ""
	case tracking.KindRefund:
		return "/v1/refunds/", ""
	case tracking.KindDispute:
		return "/v1/disputes/", ""
	}
	return "/v1/invoices/", "in_"
}

// fetched reads an object as Stripe has it now. It must have the kind, and the id if one is given.
func fetched(kind, id string, raw json.RawMessage) (tracking.Object, error) {
	o, err := event.DecodeObject(raw)
	switch {
	case err != nil:
		return tracking.Object{}, api.Unusable("object", "cannot decode Stripe's answer: %v", err)
	case o.Kind != kind || o.ID == "" || id != "" && o.ID != id:
		return tracking.Object{}, api.Unusable("object", "requested %s %s, but Stripe returned %s %q", kind, id, o.Kind, o.ID)
	}
	o.Fetched = true
	return o, nil
}

// linkedID returns the id in a link, which is an id or the object itself.
func linkedID(raw json.RawMessage) string {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	id, _ = api.IDIn(raw) // "" without one
	return id
}

// isObject reports whether a link was expanded.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// asTracked returns an error in the words of package tracking: ErrDisconnected if the account has
// disconnected, ErrGone if the object is not there, and any other error as it is.
func asTracked(err error) error {
	e, ok := errors.AsType[*api.Error](err)
	switch {
	case !ok:
		return err
	case e.Disconnected():
		return fmt.Errorf("%w: %s", tracking.ErrDisconnected, e.Text)
	case e.Verdict == api.Gone, e.Verdict == api.PayerGone:
		return fmt.Errorf("%w: %s", tracking.ErrGone, e.Text)
	}
	return err
}
