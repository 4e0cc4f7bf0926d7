package stripe

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/stripe/api"
)

// Payouts implements processor.Settler. Stripe's arrival dates are midnights in UTC.
func (p *Processor) Payouts(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Payout, error] {
	if err := checkList(r); err != nil {
		return sequence.Fail[processor.Payout](err)
	}
	query := url.Values{}
	if !r.Since.IsZero() {
		query.Set("arrival_date[gte]", strconv.FormatInt(r.Since.Unix(), 10))
	}
	return list(p.api.Rows(ctx, r.At, "/v1/payouts", query, nil),
		func(x *sdk.Payout) (processor.Payout, error) { return p.payout(r.At, x) })
}

func (p *Processor) payout(at string, x *sdk.Payout) (processor.Payout, error) {
	if x.Object != "payout" || !api.IsID(x.ID, "po_") {
		return processor.Payout{}, api.Unusable("payout", "Stripe returned a %q with ID %q", x.Object, x.ID)
	}
	if err := p.api.CheckMode(x.ID, x.Livemode); err != nil {
		return processor.Payout{}, err
	}
	got := processor.Payout{At: at, ID: x.ID, Amount: api.Amount(x.Amount, string(x.Currency)),
		Arrival: civil.Of(api.Instant(x.ArrivalDate)), State: string(x.Status),
		Returned: x.Status == sdk.PayoutStatusFailed || x.Status == sdk.PayoutStatusCanceled}
	if got.Amount.Currency().IsZero() || x.ArrivalDate <= 0 {
		return processor.Payout{}, api.Unusable("payout", "%s has the amount %d %q and the arrival date %d", x.ID, x.Amount,
			x.Currency, x.ArrivalDate)
	}
	switch {
	case !x.Automatic || x.ReconciliationStatus == sdk.PayoutReconciliationStatusNotApplicable:
		got.Hidden = "a manual payout, whose transactions Stripe does not list"
	case x.ReconciliationStatus == sdk.PayoutReconciliationStatusInProgress:
		got.Hidden = "Stripe is still assigning its transactions"
	}
	return got, nil
}

// A transaction is Stripe's balance transaction. The library's type cannot hold sources that it
// does not know.
type transaction struct {
	ID       string          `json:"id"`
	Object   string          `json:"object"`
	Type     string          `json:"type"`
	Currency string          `json:"currency"`
	Amount   int64           `json:"amount"`
	Fee      int64           `json:"fee"`
	Net      int64           `json:"net"`
	Created  int64           `json:"created"`
	Source   json.RawMessage `json:"source"`
}

// A source is the charge, refund, dispute or payout behind a balance transaction.
type source struct {
	ID       string            `json:"id"`
	Intent   string            `json:"payment_intent"`
	Metadata map[string]string `json:"metadata"`
	Currency string            `json:"currency"`
	Captured int64             `json:"amount_captured"`
}

// Settled implements processor.Settler.
func (p *Processor) Settled(ctx context.Context, at, payout string) iter.Seq2[processor.Transaction, error] {
	if err := cmp.Or(api.CheckAt(at), api.CheckID("payout", payout, "po_")); err != nil {
		return sequence.Fail[processor.Transaction](err)
	}
	rows := list(p.api.Rows(ctx, at, "/v1/balance_transactions", url.Values{"payout": {payout}, "expand[]": {"data.source"}}, nil),
		func(x *transaction) (processor.Transaction, error) { return settled(at, x) })
	return sequence.Filter(rows, func(t processor.Transaction) bool { return t.Type != "payout" || t.Ref != payout })
}

// kinds has the kinds of Stripe's types. A bank debit that fails after it was paid is taken back as
// a dispute is.
var kinds = map[string]processor.TransactionKind{"charge": processor.SettledCharge, "payment": processor.SettledCharge,
	"refund": processor.SettledRefund, "payment_refund": processor.SettledRefund, "refund_failure": processor.SettledRefund,
	"payment_failure_refund": processor.SettledDispute, "payment_reversal": processor.SettledDispute,
	"stripe_fee": processor.SettledFee, "stripe_fx_fee": processor.SettledFee, "tax_fee": processor.SettledFee,
	"application_fee": processor.SettledFee, "application_fee_refund": processor.SettledFee}

// settled reads a balance transaction. It returns an error if its amounts do not add up.
func settled(at string, x *transaction) (processor.Transaction, error) {
	var from source
	_ = json.Unmarshal(x.Source, &from) // an ID, or an object of a kind that charges do not have, leaves it empty
	t := processor.Transaction{ID: x.ID, Kind: cmp.Or(kinds[x.Type], processor.SettledOther), Type: x.Type, Tag: tagOf(from.Metadata),
		Created: api.Instant(x.Created), Gross: api.Amount(x.Amount, x.Currency), Fee: api.Amount(-x.Fee, x.Currency),
		Net: api.Amount(x.Net, x.Currency)}
	switch {
	case t.Kind == processor.SettledFee:
		t.Gross, t.Fee = api.Amount(0, x.Currency), t.Net
	case t.Kind == processor.SettledCharge:
		t.Charged = api.Amount(from.Captured, from.Currency)
	case x.Type == "adjustment" && (api.IsID(from.ID, "du_") || api.IsID(from.ID, "dp_")):
		t.Kind = processor.SettledDispute
	}
	if from.Intent != "" {
		t.Ref = ref{at, from.Intent}.String()
	} else if api.IsID(from.ID, "po_") {
		t.Ref = from.ID
	}
	if x.Object != "balance_transaction" || x.Amount-x.Fee != x.Net || t.Net.Currency().IsZero() {
		return t, api.Unusable("balance transaction", "%s is a %q of %d less fees of %d, which leaves %d %q", x.ID, x.Object, x.Amount,
			x.Fee, x.Net, x.Currency)
	}
	return t, nil
}
