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

const (
	findWindow = 7 * 24 * time.Hour // of lists without a customer: a failure is repeated soon
	maxEmail   = 512                // characters, as Stripe takes it
	maxKeys    = 3                  // of one step: Stripe repeats a 5xx under its key for a day
)

// Sell implements tracking.Seller. Two things prevent a second object or payment. For a day it is
// Stripe's idempotency keys, which name the purchase and the step. At any time it is a look-up,
// which with again comes before anything is made; and an invoice can be paid only once.
//
// A buyer is present, so the bank may ask to authenticate the payment.
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
		// Its outcome is unknown. The next round finds the object, or uses another key.
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
	s.lookOnly = true
	sale, _, err := s.resume(ctx)
	if err != nil {
		return tracking.Sale{}, asSold(err)
	}
	return sale, nil
}

// A sale is one order under way.
type sale struct {
	t        Tracker
	o        tracking.Order
	lookOnly bool // make nothing
	units    int64
	meta     url.Values
	step     string         // the last step sent with a key
	spent    map[string]int // used up keys, by step
}

// order checks an order before its requests are built. Its errors are ErrOrder.
func (t Tracker) order(o tracking.Order) (*sale, error) {
	s := &sale{t: t, o: o, spent: map[string]int{}}
	err := api.CheckAt(o.At)
	switch {
	case err != nil:
	case o.Customer != "" && !api.IsID(o.Customer, "cus_"):
		err = api.CheckID("customer", o.Customer, "cus_")
	case o.Kind != tracking.Legacy && !api.IsMethod(o.PaymentMethod):
		err = api.Unsent("the payment method must be pm_… (got %s)", api.Quote(o.PaymentMethod))
	case len(o.Email) > maxEmail:
		err = api.Unsent("the email address must have at most %[2]d characters (got %[1]d)", len(o.Email), maxEmail)
	case o.Price != "" && !tracking.IsPrice(o.Price):
		err = api.Unsent("the price must be a Stripe price or plan ID (got %s)", api.Quote(o.Price))
	case o.Tag.Purchase == "" || o.Tag.Installation == "":
		err = api.Unsent("the purchase has no ID")
	case o.Amount != 0:
		var currency money.Currency
		if currency, err = money.ParseCurrency(o.Currency); err == nil {
			s.units, err = api.ChargeUnits(money.New(o.Amount, currency))
		}
	}
	needs := map[tracking.Kind]bool{tracking.Legacy: s.units > 0, tracking.Product: (s.units > 0) != (o.Price != ""),
		tracking.Subscribe: o.Price != "", tracking.SplitPayment: o.Price != "" && o.Payments > 0}
	if err == nil && !needs[o.Kind] {
		err = api.Unsent("a purchase of kind %.20q must have an amount or a price, and a number of payments if it is split",
			o.Kind)
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
		if sale, there, err := s.resume(ctx); there || err != nil {
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

// resume looks for objects of this purchase, and continues the most advanced one, or only returns
// it if lookOnly is set. there reports whether there is one; a customer alone does not count.
func (s *sale) resume(ctx context.Context) (found tracking.Sale, there bool, err error) {
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
	next := s.advance
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

// best returns the furthest object of this purchase, of a list and of best, which may be nil.
func (s *sale) best(ctx context.Context, path string, query url.Values, best json.RawMessage) (json.RawMessage, error) {
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

// isOurs compares the purchase, and not the kind: a later Duesday may write another one.
func (s *sale) isOurs(t tracking.Tag) bool {
	return t.Installation == s.o.Tag.Installation && strings.EqualFold(t.Purchase, s.o.Tag.Purchase)
}

// progress orders objects of a purchase by status. One that took money, or may have, comes last.
func progress(raw json.RawMessage) int {
	var o struct {
		Status string `json:"status"`
	}
	_ = json.Unmarshal(raw, &o) // an unreadable object comes first
	const order = " void canceled incomplete_expired uncollectible draft requires_payment_method " +
		"requires_confirmation incomplete open requires_action not_started processing past_due unpaid released completed " +
		"active paid succeeded "
	return strings.Index(order, " "+o.Status+" ")
}

// legacy makes a payment intent for the buyer's client to complete.
func (s *sale) legacy(ctx context.Context) (tracking.Sale, error) {
	form := maps.Clone(s.meta)
	form.Set("amount", strconv.FormatInt(s.units, 10))
	form.Set("currency", strings.ToLower(s.o.Currency))
	form.Set("automatic_payment_methods[enabled]", "true")
	setNonEmpty(form, "description", s.o.Description)
	setNonEmpty(form, "customer", s.o.Customer)
	setNonEmpty(form, "receipt_email", s.o.Email)
	raw, err := s.post(ctx, "intent", "/v1/payment_intents", form)
	if err != nil {
		return tracking.Sale{}, err
	}
	return s.intent(raw)
}

// intent returns the sale of a payment intent without an invoice.
func (s *sale) intent(raw json.RawMessage) (tracking.Sale, error) {
	p, err := s.readPayment(raw)
	if err != nil {
		return tracking.Sale{}, err
	}
	p.InvoiceTold = true
	return tracking.Sale{Objects: []tracking.Object{p.Object}, Customer: p.Customer, ClientSecret: p.secret,
		Declined: p.decline, Action: p.Status == actionStatus}, nil
}

const actionStatus = "requires_action"

// A payment is a payment intent of the order.
type payment struct {
	tracking.Object
	secret  secret.Text
	decline string // reason of the last attempt, if it was declined
}

func (s *sale) readPayment(raw json.RawMessage) (p payment, err error) {
	if p.Object, err = fetched(tracking.KindPayment, "", raw); err != nil {
		return payment{}, err
	}
	var more struct {
		Secret string `json:"client_secret"`
		Last   *struct {
			Message string `json:"message"`
		} `json:"last_payment_error"`
	}
	if json.Unmarshal(raw, &more) != nil {
		return payment{}, api.Unusable("payment intent", "%s cannot be decoded", p.ID)
	}
	p.secret, p.Tag = secret.New(more.Secret), s.o.Tag
	if p.Failed && more.Last != nil {
		p.decline = declineText(p.Code, more.Last.Message)
	}
	return p, nil
}

func declineText(code, message string) string {
	return cmp.Or(strings.Trim(api.Clean(code)+": "+api.Clean(message), ": "), "declined")
}

func setNonEmpty(form url.Values, name, value string) {
	if value != "" {
		form.Set(name, value)
	}
}

func with(form url.Values, more url.Values) url.Values {
	maps.Copy(form, more)
	return form
}

func (s *sale) post(ctx context.Context, step, path string, form url.Values) (json.RawMessage, error) {
	s.step = step
	key := "duesday-purchase-" + s.o.Tag.Purchase + "-" + step
	if n := s.spent[step]; n > 0 {
		key += "-" + strconv.Itoa(n+1)
	}
	raw, _, err := s.t.api.Ask(ctx, http.MethodPost, path, s.o.At, key, form)
	return raw, err
}

// Check implements tracking.Seller.
func (Tracker) Check(o tracking.Order) error {
	if o.Amount == 0 {
		return nil
	}
	currency, err := money.ParseCurrency(o.Currency)
	if err == nil {
		_, err = api.Units(money.New(0, currency))
	}
	if err != nil {
		return &tracking.FieldError{Field: "currency", Problem: err.Error()}
	}
	if _, err = api.ChargeUnits(money.New(o.Amount, currency)); err != nil {
		return &tracking.FieldError{Field: "amount", Problem: err.Error()}
	}
	return nil
}

// asSold returns an error in the words of tracking.Seller.
func asSold(err error) error {
	if e, ok := api.Is(err, api.Refused); ok && !e.Maybe {
		return fmt.Errorf("%w: %w", tracking.ErrStripeKey, err)
	}
	if !api.IsRejected(err) {
		return asTracked(err)
	}
	text := api.Clean(err.Error())
	if f, ok := errors.AsType[*api.Error](err); ok {
		text = f.Text
	}
	return fmt.Errorf("%w: %s", tracking.ErrOrder, text)
}

// isDecline returns the reason of a refusal by a bank, if the error is one.
func isDecline(err error) (string, bool) {
	f, ok := api.Is(err, api.Declined, api.Action)
	if !ok {
		return "", false
	}
	_, message, _ := strings.Cut(f.Text, ": ")
	return declineText(cmp.Or(f.Answer.Decline, f.Answer.Code), message), true
}
