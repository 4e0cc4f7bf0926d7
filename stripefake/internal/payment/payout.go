package payment

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func payoutRoutes() []api.Route {
	const transactions = "created currency payout source type"
	return []api.Route{
		on("GET", "/v1/payouts", api.ListParams+"created arrival_date status ~destination", Call.listPayouts),
		on("GET", "/v1/payouts/{payout}", "", find("payout", "payout")),
		on("GET", "/v1/balance_transactions", api.ListParams+transactions, func(c Call) (object, error) {
			id := c.Form.Str("payout")
			if po := c.Space.Get("payout", id); id != "" && po == nil {
				return nil, shape.Absent("payout", id, "payout")
			} else if po != nil && !po.Yes("automatic") {
				return nil, shape.Invalid("", "payout",
					"Balance transaction history can only be filtered on automatic transfers, not manual.")
			}
			return c.List("balance_transaction", func(o object) bool {
				return (id == "" || o.Str("_payout") == id) && c.Keeps(o, "currency source type")
			})
		}),
		on("GET", "/v1/balance_transactions/{id}", "", find("balance_transaction", "id")),
	}
}

func (c Call) listPayouts() (object, error) {
	arrives, err := c.Span("arrival_date")
	if err != nil {
		return nil, err
	}
	return c.List("payout", func(o object) bool { return arrives(o.Num("arrival_date")) && c.Keeps(o, "status") })
}

// TimedPayout is the arrival of payouts.
func TimedPayout() api.Timed {
	return api.Timed{Rank: 4, Due: func(o object) (int64, bool) { return o.Num("arrival_date"), o.Str("status") == inTransit },
		Happens: func(c *api.Call, o object) { c.Change("payout.paid", o, object{"status": "paid"}) }}
}

const inTransit = "in_transit"

// A Settlement tells how PayOut settles.
type Settlement struct {
	Manual   bool
	Currency string             // into which the currencies of Rates are converted
	Rates    map[string]float64 // by currency
}

// Stripe's fees: of a charge in the United States, and of a dispute.
const (
	feeShare   = 29 // thousandths
	feeFixed   = 30
	disputeFee = 1500
	travels    = 2 * api.Day // of a payout, in seconds
)

// PayOut makes the balance transactions of all charges, refunds and disputes that have none yet, and
// pays out each currency with a positive balance. It returns the payouts' ids.
func (c Call) PayOut(s Settlement) (ids []string) {
	c.settle(s)
	balance, waiting := map[string]int64{}, map[string][]object{}
	for _, o := range c.Space.All("balance_transaction") {
		if o.Str("_payout") == "" {
			currency := o.Str("currency")
			balance[currency] += o.Num("net")
			waiting[currency] = append(waiting[currency], o)
		}
	}
	for _, currency := range slices.Sorted(maps.Keys(balance)) {
		if balance[currency] > 0 {
			ids = append(ids, c.payOut(currency, balance[currency], waiting[currency], s.Manual))
		}
	}
	return ids
}

func (c Call) payOut(currency string, amount int64, all []object, manual bool) string {
	reconciled := "completed"
	if manual {
		reconciled = "not_applicable"
	}
	o := object{"amount": amount, "currency": currency, "automatic": !manual, "method": "standard", "source_type": "card",
		"status": inTransit, "type": "bank_account", "reconciliation_status": reconciled,
		"arrival_date": (c.Now + travels) / api.Day * api.Day}.Null("application_fee application_fee_amount balance_transaction " +
		"description destination failure_balance_transaction failure_code failure_message original_payout payout_method " +
		"reversed_by statement_descriptor trace_id")
	o["id"] = c.NewID("po")
	own := c.transaction(o.ID(), "", object{"type": "payout", "reporting_category": "payout", "amount": -amount,
		"currency": currency, "created": c.Now, "source": o.ID()})
	for _, part := range append(all, own) {
		part["_payout"], part["status"] = o.ID(), "available"
	}
	o["balance_transaction"] = own.ID()
	o = c.Make("payout", "po", o)
	c.Plan(o)
	return o.ID()
}

// FailPayout is the bank's refusal of a payout, also of one that was paid: its money is in the balance again.
func (c Call) FailPayout(o object) error {
	if status := o.Str("status"); status != inTransit && status != "paid" {
		return shape.Invalid("", "payout", "Payout "+o.ID()+" has a status of "+status+", so it cannot fail.")
	}
	back := c.transaction(o.ID(), "_failure", object{"type": "payout_failure", "reporting_category": "payout_reversal",
		"amount": o.Num("amount"), "currency": o.Str("currency"), "created": c.Now, "source": o.ID()})
	c.Change("payout.failed", o, object{"status": "failed", "failure_balance_transaction": back.ID(),
		"failure_code": "account_closed", "failure_message": "The bank account has been closed"})
	return nil
}

// settle makes the balance transactions that are missing, in the order of time.
func (c Call) settle(s Settlement) {
	var all []object
	note := func(of object, suffix string, members object) {
		members["source"], members["_suffix"] = of.ID(), suffix
		if c.Space.Get("balance_transaction", transactionID(of.ID(), suffix)) == nil {
			all = append(all, members)
		}
	}
	for _, ch := range c.Space.All("charge") {
		if ch.Str("status") == Succeeded && ch.Yes("captured") {
			note(ch, "", object{"type": "charge", "reporting_category": "charge", "created": ch.Num("created"),
				"amount": ch.Num("amount_captured"), "currency": ch.Str("currency")})
		}
	}
	for _, re := range c.Space.All("refund") {
		members := object{"type": "refund", "reporting_category": "refund", "created": shape.MadeAt(re),
			"amount": -re.Num("amount"), "currency": re.Str("currency")}
		note(re, "", members)
		if status := re.Str("status"); status == "failed" || status == canceled {
			note(re, "_failure", members.With("amount", re.Num("amount")).With("type", "refund_failure").With(
				"reporting_category", "refund_failure"))
		}
	}
	for _, du := range c.Space.All("dispute") {
		if strings.HasPrefix(du.Str("status"), "warning_") {
			continue
		}
		members := object{"type": "adjustment", "reporting_category": "dispute", "created": du.Num("created"),
			"amount": -du.Num("amount"), "currency": du.Str("currency")}
		note(du, "", members)
		if du.Str("status") == "won" {
			note(du, "_reversal", members.With("amount", du.Num("amount")).With("reporting_category", "dispute_reversal"))
		}
	}
	slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(a.Num("created"), b.Num("created")) })
	for _, o := range all {
		suffix, source := o.Str("_suffix"), o.Str("source")
		delete(o, "_suffix")
		rate, converts := s.Rates[o.Str("currency")]
		if converts {
			o["amount"], o["currency"], o["exchange_rate"] = int64(math.Round(float64(o.Num("amount"))*rate)), s.Currency, rate
		}
		c.charged(o, suffix, c.Space.Get("charge", source).Num("application_fee_amount"), cmp.Or(rate, 1))
		c.transaction(source, suffix, o)
	}
}

// charged adds Stripe's fees, and the platform's.
func (c Call) charged(o object, suffix string, application int64, rate float64) {
	currency, details := o.Str("currency"), []any{}
	add := func(typ, description string, amount int64) {
		if amount > 0 {
			details = append(details, object{"amount": amount, "application": nil, "currency": currency,
				"description": description, "type": typ})
			o["fee"] = o.Num("fee") + amount
		}
	}
	switch {
	case o.Str("type") == "charge":
		add("stripe_fee", "Stripe processing fees", o.Num("amount")*feeShare/1000+feeFixed)
		add("application_fee", "fake application fee", int64(math.Round(float64(application)*rate)))
	case o.Str("reporting_category") == "dispute" && suffix == "":
		add("stripe_fee", "Dispute fee", disputeFee)
	}
	o["fee_details"] = details
}

// transaction stores the balance transaction of the object. Its id has the object's tail, so that no other
// object's id depends on whether anything was paid out.
func (c Call) transaction(source, suffix string, members object) object {
	o := object{"id": transactionID(source, suffix), "object": "balance_transaction", "available_on": members["created"],
		"balance_type": "payments", "description": nil, "exchange_rate": nil, "fee": int64(0), "fee_details": []any{},
		"status": "pending", "_created": c.Now}
	maps.Copy(o, members)
	o["net"] = o.Num("amount") - o.Num("fee")
	c.Space.Put("balance_transaction", o)
	return o
}

func transactionID(source, suffix string) string {
	_, tail, _ := strings.Cut(source, "_")
	return "txn_" + tail + suffix
}
