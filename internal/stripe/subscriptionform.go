package stripe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
)

// A subscription contains the members of Stripe's subscription that its conversion reads. The library's
// type reads percentages and decimal amounts as floats.
type subscription struct {
	ID           string
	Status       string
	Livemode     bool
	Currency     string
	Created      int64
	Anchor       int64                              `json:"billing_cycle_anchor"`
	CancelAt     int64                              `json:"cancel_at"`
	AtEnd        bool                               `json:"cancel_at_period_end"`
	EndedAt      int64                              `json:"ended_at"`
	Cancellation struct{ Feedback, Comment string } `json:"cancellation_details"`
	Collection   string                             `json:"collection_method"`
	Customer     customerOfSub                      `json:"customer"`
	Method       *attached                          `json:"default_payment_method"`
	Source       json.RawMessage                    `json:"default_source"`
	Discounts    []discount                         `json:"discounts"`
	TaxRates     []taxRate                          `json:"default_tax_rates"`
	AutomaticTax struct{ Enabled bool }             `json:"automatic_tax"`
	Fee          json.Number                        `json:"application_fee_percent"`
	Thresholds   json.RawMessage                    `json:"billing_thresholds"`
	OnBehalfOf   json.RawMessage                    `json:"on_behalf_of"`
	Paused       json.RawMessage                    `json:"pause_collection"`
	Pending      json.RawMessage                    `json:"pending_update"`
	Schedule     json.RawMessage                    `json:"schedule"`
	Transfer     json.RawMessage                    `json:"transfer_data"`
	Metadata     map[string]string                  `json:"metadata"`
	Items        struct {
		Data []item
		More bool `json:"has_more"`
	}
}

type customerOfSub struct {
	ID, Email, Name string
	Deleted         bool
	Balance         int64
	Discount        json.RawMessage
	Exempt          string          `json:"tax_exempt"`
	Locales         []string        `json:"preferred_locales"`
	Source          json.RawMessage `json:"default_source"`
	Settings        struct {
		Method *attached `json:"default_payment_method"`
	} `json:"invoice_settings"`
}

type attached struct{ ID, Customer string }

type discount struct {
	End    int64
	Coupon *coupon // before 2025-09-30.clover
	Source struct{ Coupon *coupon }
}

type coupon struct {
	Percent   json.Number `json:"percent_off"`
	Off       int64       `json:"amount_off"`
	Currency  string
	Duration  string
	AppliesTo json.RawMessage `json:"applies_to"`
}

type taxRate struct {
	Percentage json.Number
	Inclusive  bool
}

type item struct {
	PeriodEnd int64 `json:"current_period_end"`
	Quantity  *int64
	Discounts []json.RawMessage
	TaxRates  []taxRate `json:"tax_rates"`
	Price     struct {
		Currency  string
		Product   string
		Lookup    string          `json:"lookup_key"`
		Scheme    string          `json:"billing_scheme"`
		Amount    *int64          `json:"unit_amount"`
		Transform json.RawMessage `json:"transform_quantity"`
		Recurring struct {
			Interval string
			Count    int    `json:"interval_count"`
			Usage    string `json:"usage_type"`
		}
	}
}

// A debt is an invoice or an invoice item.
type debt struct {
	ID, Status, Customer string
	Former               json.RawMessage `json:"subscription"` // before 2025-03-31.basil
	Parent               parent
	Lines                struct {
		Data []line
		More bool `json:"has_more"`
	}
}

type line struct {
	Type   string // before 2025-03-31.basil
	Parent parent
	Period struct{ Start, End int64 }
}

type parent struct {
	Type         string
	Subscription struct{ Subscription string } `json:"subscription_details"`
}

type dispute struct {
	ID, Status string
	Charge     struct{ Customer string }
}

func (d *debt) subscription() string {
	var id string
	_ = json.Unmarshal(d.Former, &id) // absent, or null
	return cmp.Or(d.Parent.Subscription.Subscription, id)
}

// renews returns the earliest of the invoice's periods that end after the boundary, or zero times.
func (d *debt) renews(boundary time.Time) (start, end time.Time) {
	for _, l := range d.Lines.Data {
		kind := cmp.Or(l.Parent.Type, l.Type)
		from, until := api.Instant(l.Period.Start), api.Instant(l.Period.End)
		if kind != "invoice_item_details" && kind != "invoiceitem" && until.After(boundary) && (end.IsZero() || from.Before(start)) {
			start, end = from, until
		}
	}
	return start, end
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func (s *subscription) over() bool { return s.Status == "canceled" || s.Status == "incomplete_expired" }

// refused reports whether the customer has said why the subscription was cancelled.
func (s *subscription) refused() bool { return s.Cancellation.Feedback+s.Cancellation.Comment != "" }

// periodEnd returns the end of the current period, the latest of its items.
func (s *subscription) periodEnd() (end time.Time) {
	for _, i := range s.Items.Data {
		end = later(end, api.Instant(i.PeriodEnd))
	}
	return end
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// convert returns the subscription in Duesday's terms, with what prevents Duesday from taking it over.
func (s *subscription) convert(busy unsettled) processor.Subscription {
	c := processor.Subscription{ID: s.ID, Created: api.Instant(s.Created), Customer: s.Customer.ID, Email: s.Customer.Email,
		Name: s.Customer.Name, Anchor: api.Instant(s.Anchor), PeriodEnd: s.periodEnd(), Status: s.Status, EndsWithPeriod: s.AtEnd || s.CancelAt != 0, TakenBy: s.Metadata[api.MetaTakeover]}
	c.Refused = s.refused()
	if s.over() {
		c.Ended = api.Instant(s.EndedAt)
	}
	if len(s.Customer.Locales) > 0 {
		c.Locale = s.Customer.Locales[0]
	}
	for _, why := range []string{s.shape(), s.state(), s.terms(&c), s.pays(&c), busy[s.ID], busy[s.Customer.ID]} {
		c.Obstacle = cmp.Or(c.Obstacle, why)
	}
	return c
}

// shape returns why Duesday has no such subscription, or "".
func (s *subscription) shape() string {
	switch i := s.Items.Data; {
	case len(i) != 1 || s.Items.More:
		return fmt.Sprintf("it has %d items", len(i))
	case i[0].Price.Recurring.Usage != "licensed":
		return "its usage is metered"
	case i[0].Price.Scheme != "per_unit" || i[0].Price.Amount == nil:
		return "its price is tiered, or has a fraction of a cent"
	case given(i[0].Price.Transform):
		return "its price transforms the quantity"
	case s.Collection != "charge_automatically":
		return "its invoices are sent (" + s.Collection + ")"
	case given(s.Thresholds):
		return "it has billing thresholds"
	case given(s.OnBehalfOf) || given(s.Transfer) || s.Fee != "":
		return "its payments concern a connected account"
	case s.AutomaticTax.Enabled:
		return "Stripe Tax computes its tax"
	}
	return ""
}

// maxKeys is how many keys of metadata Stripe stores with an object.
const maxKeys = 50

// state returns why it cannot be taken over in its state, or "".
func (s *subscription) state() string {
	switch {
	case s.Customer.Deleted || s.Customer.ID == "":
		return "its customer was deleted"
	case s.Status != "active" && s.Status != "trialing":
		return "it is " + s.Status
	case given(s.Paused):
		return "its collection is paused"
	case given(s.Schedule):
		return "it follows a schedule"
	case given(s.Pending):
		return "it has a pending update"
	case s.CancelAt != 0 && !s.AtEnd:
		return "it is to be canceled on " + api.Instant(s.CancelAt).Format(time.DateOnly)
	case len(s.Metadata) >= maxKeys && s.Metadata[api.MetaTakeover] == "":
		return fmt.Sprintf("it has %d keys of metadata, and needs room for one more", len(s.Metadata))
	case s.Customer.Balance != 0:
		return "its customer has a balance"
	}
	return ""
}

// terms sets the price, and returns what of it Duesday cannot have, or "".
func (s *subscription) terms(c *processor.Subscription) string {
	if len(s.Items.Data) == 0 {
		return ""
	}
	i := s.Items.Data[0]
	c.SKU, c.Quantity = cmp.Or(i.Price.Lookup, i.Price.Product), 1
	if i.Quantity != nil {
		c.Quantity = int(*i.Quantity)
	}
	units := map[string]civil.Unit{"day": civil.Day, "week": civil.Week, "month": civil.Month, "year": civil.Year}
	unit, known := units[i.Price.Recurring.Interval]
	c.Interval = civil.Interval{N: i.Price.Recurring.Count, Unit: unit}
	if i.Price.Amount != nil {
		c.Amount = api.Amount(*i.Price.Amount, i.Price.Currency)
	}
	rates := i.TaxRates
	if len(rates) == 0 {
		rates = s.TaxRates
	}
	if len(rates) == 1 {
		c.TaxRate, c.TaxInclusive = rates[0].Percentage.String(), rates[0].Inclusive
	}
	switch {
	case !known || c.Interval.Validate() != nil:
		return fmt.Sprintf("its interval is %d %s", i.Price.Recurring.Count, i.Price.Recurring.Interval)
	case s.Currency != i.Price.Currency:
		return "it is billed in another currency than that of its price"
	case len(rates) > 0 && s.Customer.Exempt != "" && s.Customer.Exempt != "none":
		return "its customer is exempt from tax"
	case c.Amount.Currency().IsZero():
		return "Duesday does not know its currency"
	case c.Quantity < 1:
		return "its quantity is 0"
	case len(rates) > 1:
		return "it has several tax rates"
	case given(s.Customer.Discount):
		return "its customer has a discount"
	case len(s.Discounts) > 1 || len(i.Discounts) > 0:
		return "it has several discounts, or one of its item"
	case len(s.Discounts) == 1:
		return s.Discounts[0].read(c)
	}
	return ""
}

// read sets the discount, and returns why Duesday cannot have it, or "".
func (d *discount) read(c *processor.Subscription) string {
	k := d.Source.Coupon
	if k == nil {
		k = d.Coupon
	}
	switch {
	case k == nil || k.Duration == "":
		return "its coupon is not known"
	case given(k.AppliesTo):
		return "its coupon applies to certain products"
	case k.Off > 0 && api.Amount(k.Off, k.Currency).Currency() != c.Amount.Currency():
		return "its coupon is in another currency"
	case k.Off > 0:
		c.Off = api.Amount(k.Off, k.Currency)
	default:
		c.Percent = k.Percent.String()
	}
	c.DiscountOnce, c.DiscountEnds = k.Duration == "once", api.Instant(d.End)
	return ""
}

// pays sets the payment method, and returns why Duesday cannot charge it, or "".
func (s *subscription) pays(c *processor.Subscription) string {
	m := s.Method
	if m == nil && !given(s.Source) {
		m = s.Customer.Settings.Method
	}
	switch {
	case m == nil && (given(s.Source) || given(s.Customer.Source)):
		return "it is paid with a source, not a payment method"
	case m == nil || !api.IsMethod(m.ID):
		return "it has no payment method"
	case m.Customer != s.Customer.ID:
		return "its payment method is not attached to its customer"
	}
	c.Method = m.ID
	return ""
}
