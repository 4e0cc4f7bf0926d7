package stripefake

import (
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/billing"
)

func TestExpand(t *testing.T) {
	w := newWorld(t, Options{})
	customer := w.customer("name=A")
	method := w.ok("POST", "/v1/payment_methods/pm_card_visa/attach", "customer="+customer).id()
	charge := "amount=1000&currency=usd&confirm=true&return_url=http%3A%2F%2Fa.example&customer=" + customer +
		"&payment_method=" + method
	pi := w.ok("POST", "/v1/payment_intents", charge+"&expand[]=latest_charge.refunds&expand[]=customer&"+
		"expand[]=latest_charge.payment_intent.customer")
	for path, want := range map[string]any{
		"customer.name": "A", "latest_charge.object": "charge", "latest_charge.refunds.object": "list",
		"latest_charge.payment_intent.customer.id": customer,
		"payment_method": method,
	} {
		equal(t, path, pi.at(path), want)
	}
	plain := w.ok("GET", "/v1/payment_intents/"+pi.id(), "")
	equal(t, "not expanded", plain.body["customer"], any(customer))
	list := w.ok("GET", "/v1/payment_intents", "expand[]=data.latest_charge&expand[1]=data.payment_method.customer")
	first := answer{body: list.body["data"].([]any)[0].(map[string]any)}
	equal(t, "in a list", []any{first.at("latest_charge.object"), first.at("payment_method.customer.id")},
		[]any{"charge", customer})
	if strings.Contains(list.text, `"_`) {
		t.Error("a private member is shown")
	}

	before := len(w.ok("GET", "/v1/payment_intents", "").ids())
	for path, says := range map[string]string{
		"amount": "This property cannot be expanded (amount).", "latest_charge.amount": "cannot be expanded",
		"data.customer": "cannot be expanded",
		"_secret":       "cannot be expanded",
		"latest_charge.payment_intent.latest_charge.payment_intent.customer": "more than 4 levels", "": "cannot be expanded",
	} {
		a := w.do("POST", "/v1/payment_intents", charge+"&expand[]="+path)
		a.refused(t, path, 400, nil, "expand")
		if message, _ := a.at("error.message").(string); !strings.Contains(message, says) {
			t.Errorf("%s: got %q, want %q", path, message, says)
		}
	}
	w.do("POST", "/v1/payment_intents", charge+"&expand=customer").refused(t, "no list", 400, nil, "expand")
	equal(t, "made by refused requests", len(w.ok("GET", "/v1/payment_intents", "").ids()), before)
}

func TestLedger(t *testing.T) {
	w := newWorld(t, Options{})
	if err := w.Connect("acct_a", ""); err != nil {
		t.Fatal(err)
	}
	charge := func(params string, headers ...string) answer {
		t.Helper()
		return w.do("POST", "/v1/payment_intents", "amount=1000&currency=eur&confirm=true&"+
			"return_url=http%3A%2F%2Fa.example&"+params, headers...)
	}
	pi := charge("payment_method=pm_card_visa&metadata[period]=1").id()
	equal(t, "declined", charge("payment_method=pm_card_chargeDeclined").status, 402)
	w.Advance(1e9)
	connected := charge("payment_method=pm_card_visa", "Stripe-Account", "acct_a").id()
	refund := w.ok("POST", "/v1/refunds", "amount=300&payment_intent="+pi).id()
	dispute, err := w.Dispute(connected, "")
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Type, ID, Account, Intent string
		Amount                    int64
		Currency, Period          string
	}
	var got []line
	for e := range w.Ledger() {
		id := e.ID
		if e.Type == "charge" {
			id = ""
		}
		got = append(got, line{e.Type, id, e.Account, e.Intent, e.Amount, e.Currency, e.Metadata["period"]})
	}
	equal(t, "ledger", got, []line{
		{"charge", "", DefaultAccount, pi, 1000, "eur", "1"}, {"charge", "", "acct_a", connected, 1000, "eur", ""},
		{"refund", refund, DefaultAccount, pi, 300, "eur", "1"}, {"dispute", dispute, "acct_a", connected, 1000, "eur", ""},
	})
}

// TestExpand_Routes: every route answers with a kind, or nothing of it could be expanded.
func TestExpand_Routes(t *testing.T) {
	for _, r := range allRoutes() {
		if r.ResultKind() == "" {
			t.Errorf("%s answers with no kind", r.Endpoint())
		}
	}
}

// allRoutes are the routes of the whole API.
func allRoutes() []api.Route {
	return slices.Concat(api.Routes(), billing.Resources().Routes)
}
