package sell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

// findWindow is for how long what Stripe lists by no customer is looked for: a purchase that
// came to nothing is taken up again within minutes or not at all.
const findWindow = 7 * 24 * time.Hour

const maxEmail = 512 // as long as Stripe takes one

// maxKeys is how many keys one step may use up: one that is answered by a 5xx is of no use for
// a day, as Stripe repeats that answer.
const maxKeys = 3

// Sell implements tracking.Seller. Two things keep it from making or paying anything twice. In
// the first day it is Stripe's idempotency keys, which name the purchase and the step. At any
// time it is the look at what is there: with again it comes before anything is made; and an
// invoice, which is what a payment is asked by, can be paid once only.
//
// A buyer is present: the bank may be asked to let them authenticate the payment.
func (t Tracker) Sell(ctx context.Context, o tracking.Order, again bool) (tracking.Sale, error) {
	s, err := t.order(o)
	if err != nil {
		return tracking.Sale{}, err
	}
	for {
		sale, err := s.sell(ctx, again)
		if err == nil {
			return sale, nil
		}
		f, lost := api.Is(err, api.Unknown)
		if !lost || !f.Replayed || f.Answer.Status < http.StatusInternalServerError || s.spent[s.step]+1 >= maxKeys {
			return tracking.Sale{}, asSold(err)
		}
		// The request under this key is over, and nobody knows what it did. What it made is seen
		// now; if that is nothing the step has another key.
		s.spent[s.step]++
		again = true
	}
}

// Find implements tracking.Seller.
func (t Tracker) Find(ctx context.Context, o tracking.Order) (tracking.Sale, error) {
	s, err := t.order(o)
	if err != nil {
		return tracking.Sale{}, err
	}
	s.only = true
	sale, _, err := s.found(ctx)
	if err != nil {
		return tracking.Sale{}, asSold(err)
	}
	return sale, nil
}

// A sale is one order on its way.
type sale struct {
	t     Tracker
	o     tracking.Order
	only  bool // to look, and to do nothing
	units int64
	meta  url.Values
	step  string         // the last that a key was sent for
	spent map[string]int // keys that are of no use any more, by step
}

// order checks what would make a request another one than it is meant to be. The rest is for
// Stripe to say. Errors are an ErrOrder.
func (t Tracker) order(o tracking.Order) (*sale, error) {
	s := &sale{t: t, o: o, spent: map[string]int{}}
	err := api.CheckAt(o.At)
	if o.Customer != "" && err == nil {
		err = api.CheckID("customer", o.Customer, "cus_")
	}
	if o.Kind != tracking.Legacy && err == nil && !api.IsMethod(o.PaymentMethod) {
		err = api.Unsent("payment method %s: want pm_…", api.Quote(o.PaymentMethod))
	}
	if len(o.Email) > maxEmail && err == nil {
		err = api.Unsent("the email address has %d characters: want %d at most", len(o.Email), maxEmail)
	}
	if o.Price != "" && err == nil {
		err = api.CheckID("price", o.Price, "")
	}
	if o.Amount != 0 && err == nil {
		var currency money.Currency
		if currency, err = money.ParseCurrency(o.Currency); err == nil {
			s.units, err = api.ChargeUnits(money.New(o.Amount, currency))
		}
	}
	needs := map[tracking.Kind]bool{tracking.Legacy: s.units > 0, tracking.Product: (s.units > 0) != (o.Price != ""),
		tracking.Subscribe: o.Price != "", tracking.SplitPayment: o.Price != "" && o.Payments > 0}
	if err == nil && !needs[o.Kind] {
		err = api.Unsent("a purchase of the kind %.20q: want an amount or a price, and how many payments if it is split", o.Kind)
	}
	if err == nil && (o.Tag.Purchase == "" || o.Tag.Installation == "") {
		err = api.Unsent("a purchase without an id")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", tracking.ErrOrder, api.Clean(err.Error()))
	}
	s.meta = s.metadata("metadata")
	return s, nil
}

// metadata is the order's tag as a parameter.
func (s *sale) metadata(param string) url.Values {
	return url.Values{
		param + "[" + tracking.MetaInstallation + "]": {s.o.Tag.Installation},
		param + "[" + tracking.MetaPurchase + "]":     {s.o.Tag.Purchase},
		param + "[" + tracking.MetaKind + "]":         {string(s.o.Kind)},
	}
}

// sell is Sell, with one key for each step.
func (s *sale) sell(ctx context.Context, again bool) (tracking.Sale, error) {
	if again {
		if sale, there, err := s.found(ctx); there || err != nil {
			return sale, err
		}
	}
	switch s.o.Kind {
	case tracking.Product:
		return s.invoice(ctx)
	case tracking.Subscribe:
		return s.subscribe(ctx)
	case tracking.SplitPayment:
		return s.split(ctx)
	}
	return s.legacy(ctx)
}

// found looks for what was made, and goes on with it unless it is only to look. there reports
// whether anything was: a customer alone is nothing.
func (s *sale) found(ctx context.Context) (found tracking.Sale, there bool, err error) {
	if s.o.Kind == tracking.Legacy {
		query := api.CreatedBetween(s.t.api.Now().Add(-findWindow), time.Time{})
		if s.o.Customer != "" {
			query = url.Values{"customer": {s.o.Customer}}
		}
		raw, err := s.best(ctx, "/v1/payment_intents", query, nil)
		if raw == nil || err != nil {
			return tracking.Sale{}, false, err
		}
		found, err = s.intent(raw)
		return found, true, err
	}
	customers, err := s.customers(ctx)
	if err != nil {
		return tracking.Sale{}, false, err
	}
	path, query := "/v1/invoices", url.Values{}
	next := s.goOn
	switch s.o.Kind {
	case tracking.Subscribe:
		path, query, next = "/v1/subscriptions", url.Values{"status": {"all"}}, s.subscribed
	case tracking.SplitPayment:
		path, next = "/v1/subscription_schedules", s.scheduled
	}
	var raw json.RawMessage
	for _, customer := range customers {
		query.Set("customer", customer)
		if raw, err = s.best(ctx, path, query, raw); err != nil {
			return tracking.Sale{}, false, err
		}
	}
	if raw == nil {
		return tracking.Sale{}, false, nil
	}
	found, err = next(ctx, raw)
	return found, true, err
}

// best returns the furthest that was made for this purchase of what is on a list, or before,
// which may be nil. There is one, unless somebody has copied our metadata by hand.
func (s *sale) best(ctx context.Context, path string, query url.Values, before json.RawMessage) (json.RawMessage, error) {
	best := before
	for raw, err := range s.t.api.Rows(ctx, s.o.At, path, query, nil) {
		if err != nil {
			return nil, err
		}
		if o, err := event.DecodeObject(raw); err != nil || !s.isOurs(o.Tag) {
			continue
		}
		if best == nil || progress(raw) > progress(best) {
			best = raw
		}
	}
	return best, nil
}

// isOurs compares what has to be the same: the kind may be one that a later Duesday writes.
func (s *sale) isOurs(t tracking.Tag) bool {
	return t.Installation == s.o.Tag.Installation && strings.EqualFold(t.Purchase, s.o.Tag.Purchase)
}

// progress orders what was made for the same purchase by its status: what has taken money, or
// may have, comes last.
func progress(raw json.RawMessage) int {
	var o struct {
		Status string `json:"status"`
	}
	_ = json.Unmarshal(raw, &o) // what cannot be read comes first
	const order = " void canceled incomplete_expired uncollectible draft requires_payment_method requires_confirmation incomplete open " +
		"requires_action not_started processing past_due unpaid released completed active paid succeeded "
	return strings.Index(order, " "+o.Status+" ")
}

// legacy makes a payment intent that the buyer's client completes.
func (s *sale) legacy(ctx context.Context) (tracking.Sale, error) {
	form := maps.Clone(s.meta)
	form.Set("amount", strconv.FormatInt(s.units, 10))
	form.Set("currency", strings.ToLower(s.o.Currency))
	form.Set("automatic_payment_methods[enabled]", "true")
	set(form, "description", s.o.Description)
	set(form, "customer", s.o.Customer)
	set(form, "receipt_email", s.o.Email)
	raw, err := s.post(ctx, "intent", "/v1/payment_intents", form)
	if err != nil {
		return tracking.Sale{}, err
	}
	return s.intent(raw)
}

// Intent is the sale that a payment intent without an invoice is.
func (s *sale) intent(raw json.RawMessage) (tracking.Sale, error) {
	p, err := s.paymentOf(raw)
	if err != nil {
		return tracking.Sale{}, err
	}
	p.InvoiceTold = true
	return tracking.Sale{Objects: []tracking.Object{p.Object}, Customer: p.Customer, ClientSecret: p.secret,
		Declined: p.decline, Action: p.Status == actionStatus}, nil
}

const actionStatus = "requires_action"

// A paying is a payment intent of the order's.
type paying struct {
	tracking.Object
	secret  secret.Text
	decline string // what its last attempt came to, if it was declined
}

func (s *sale) paymentOf(raw json.RawMessage) (p paying, err error) {
	if p.Object, err = fetched(tracking.KindPayment, "", raw); err != nil {
		return paying{}, err
	}
	var more struct {
		Secret string `json:"client_secret"`
		Last   *struct {
			Message string `json:"message"`
		} `json:"last_payment_error"`
	}
	if json.Unmarshal(raw, &more) != nil {
		return paying{}, api.Unusable("a payment intent", "%s cannot be read", p.ID)
	}
	p.secret, p.Tag = secret.New(more.Secret), s.o.Tag
	if p.Failed && more.Last != nil {
		p.decline = why(p.Code, more.Last.Message)
	}
	return p, nil
}

// why is a decline in Stripe's words.
func why(code, message string) string {
	if text := strings.Trim(api.Clean(code)+": "+api.Clean(message), ": "); text != "" {
		return text
	}
	return "declined"
}

func set(form url.Values, name, value string) {
	if value != "" {
		form.Set(name, value)
	}
}

func with(form url.Values, more url.Values) url.Values {
	maps.Copy(form, more)
	return form
}

// post sends a request under the key of the step.
func (s *sale) post(ctx context.Context, step, path string, form url.Values) (json.RawMessage, error) {
	s.step = step
	key := "duesday-purchase-" + s.o.Tag.Purchase + "-" + step
	if n := s.spent[step]; n > 0 {
		key += "-" + strconv.Itoa(n+1)
	}
	raw, _, err := s.t.api.Ask(ctx, http.MethodPost, path, s.o.At, key, form)
	return raw, err
}

// asSold says what an error means in the words of tracking.Seller.
func asSold(err error) error {
	f, ok := errors.AsType[*api.Error](err)
	switch {
	case ok && f.Disconnected():
		return fmt.Errorf("%w: %s", tracking.ErrDisconnected, f.Text)
	case ok && api.IsRejected(err):
		return fmt.Errorf("%w: %s", tracking.ErrOrder, f.Text)
	case api.IsRejected(err):
		return fmt.Errorf("%w: %s", tracking.ErrOrder, api.Clean(err.Error()))
	}
	return err
}

// isDecline reports whether the error says that a bank has refused, and in what words.
func isDecline(err error) (string, bool) {
	f, ok := api.Is(err, api.Declined, api.Action)
	if !ok {
		return "", false
	}
	_, message, _ := strings.Cut(f.Text, ": ")
	return why(cmp.Or(f.Answer.Decline, f.Answer.Code), message), true
}
