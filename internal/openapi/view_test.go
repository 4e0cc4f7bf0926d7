package openapi_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/proof"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/upgrade"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/test/spectest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

// Each view has the members of its schema. A member that the view may leave out is not required, and each
// other member is. Members that only some answers have are named here.
func TestViews(t *testing.T) {
	spec := spectest.New(t)
	s := &billing.Subscription{Interval: civil.Interval{N: 1, Unit: civil.Month}, Upgrade: new(billing.Upgrade)}
	payments := &job.Report{Run: billing.Run{Kind: billing.Payments}, Doubts: []*billing.Doubt{{}}}
	reminders := &job.Report{Run: billing.Run{Kind: billing.Reminders}}
	const counted = "subscriptions receipts charges problems notes adopted " // of verify and reconcile
	for _, x := range []struct {
		schema string
		view   view.Object
		more   string // members of other answers
	}{
		{"Account", view.Account(&billing.Account{}), "card keep_own_method"},
		{"Card", view.Card(&processor.Card{}), ""},
		{"CardLink", view.CardLink("", "", processor.CardLink{}, nil), ""},
		{"PortalLink", view.PortalLink("", processor.CardLink{}), ""},
		{"Subscription", view.Subscription(s), "changed replaces result next_due offer written_off written_off_sum"},
		{"Plan", view.Pending(&billing.Plan{}), ""},
		{"Discount", view.Discount(price.Discount{Percent: 1}), ""},
		{"Price", view.Price(&price.Price{Terms: price.Terms{Quantity: 2}}), ""},
		{"Upgrade", view.Upgrade(s), ""},
		{"Offer", view.Offer(new(upgrade.Offer)), ""},
		{"Upcoming", view.Upcoming(billing.Upcoming{}), ""},
		{"OpenPeriod", view.Open(&billing.OpenPeriod{}), ""},
		{"Period", view.Period(&billing.EndedPeriod{}), ""},
		{"Receipt", view.Receipt(&billing.Receipt{}, ""), "refunded returns requested"},
		{"Refund", view.Reversal(&billing.ReversalRecord{}), ""},
		{"Result", view.Result(engine.Result{}), ""},
		{"Charged", view.Charged(engine.PeriodCharged{Subscription: s}, ""), ""},
		{"Proof", view.Proof(&proof.Proof{}, ""), ""},
		{"Due", view.DuePayment(billing.DueRow{}), "next_reminder_date"},
		{"Due", view.DueReminder(billing.DueRow{}), "amount currency payment_day payment_method"},
		{"Run", view.Run(payments), counted + "written"},
		{"Run", view.Run(reminders), counted + "paid retry pending pending_customer parked asked amounts amounts_unpaid cards_taken_over keep_own_method " +
			"refunds_and_disputes orphans_cancelled perhaps_paid_twice"},
		{"Endpoint", view.Endpoint(&delivery.Endpoint{Health: &delivery.Health{}}), "from secret"},
		{"Delivery", view.Message(&delivery.Message{}), ""},
		{"HistoryEntry", view.History(&history.Entry{}), ""},
		{"Report", view.Report(&report.Report{}), ""},
		{"Payout", view.Payout(&payout.Payout{}), "transactions"},
		{"PayoutLine", view.PayoutLine(&payout.Line{Payout: &payout.Payout{}}), "number account subscription period"},
		{"PayoutReport", view.Payouts(&payout.Report{}), ""},
		{"Settings", view.Settings(&settings.Settings{}), ""},
		{"Charging", view.Charging(true, "", "", ""), ""},
		{"Key", view.Key(&key.Key{}), "key"},
		{"Check", view.Check(status.Check{}), ""},
		{"Merchant", view.Merchant(&tracking.ConnectedAccount{}), ""},
		{"Purchase", view.Purchase(&tracking.Purchase{}), ""},
		{"Ordered", view.Ordered(&tracking.Created{Purchase: &tracking.Purchase{}}), ""},
		{"Payment", view.Payment(&tracking.Payment{}), ""},
		{"StripeSubscription", view.StripeSubscription(&tracking.Subscription{}), ""},
		{"Timeline", view.Timeline(&tracking.Timeline{Purchase: &tracking.Purchase{}}), ""},
		{"Event", view.Event(&tracking.Event{}), "merchant"},
		{"Job", view.Job(tracking.WaitingJob{}), ""},
		{"Export", view.Export(&person.Data{Account: &billing.Account{}}), ""},
		{"Erasure", view.Erasure(&person.Erasure{Account: &billing.Account{}}, true), ""},
		{"StripeObject", view.StripeObject(tracking.Object{}), ""},
	} {
		schema := spec.Doc.Components.Schemas[x.schema].Value
		shown := strings.Fields(x.more)
		for i := 0; i < len(x.view); i += 2 {
			name, optional := strings.CutSuffix(x.view[i].(string), "?")
			shown = append(shown, name)
			switch {
			case schema.Properties[name] == nil:
				t.Errorf("%s has no member %s", x.schema, name)
			case optional && slices.Contains(schema.Required, name):
				t.Errorf("%s requires %s, which the view may leave out", x.schema, name)
			case !optional && x.more == "" && !slices.Contains(schema.Required, name):
				t.Errorf("%s does not require %s, which the view always has", x.schema, name)
			}
		}
		for name := range schema.Properties {
			if !slices.Contains(shown, name) {
				t.Errorf("the view of %s has no member %s", x.schema, name)
			}
		}
	}
}

// An open period has the states of an intent, and that of one whose last decline is final.
func TestViews_States(t *testing.T) {
	states := spectest.New(t).Doc.Components.Schemas["OpenPeriod"].Value.Properties["state"].Value.Enum
	for _, state := range []processor.State{processor.Opened, processor.Succeeded, processor.Declined, processor.RequiresAction,
		processor.Processing, processor.Canceled, billing.Failing} {
		if !slices.Contains(states, any(string(state))) {
			t.Errorf("OpenPeriod has no state %s", state)
		}
	}
}

// Each noun of package view's golden file, with all members and with the fewest, fits its schema, with
// everything that the noun contains. Texts are not compared, because the file has made-up ones.
func TestNouns(t *testing.T) {
	spec := spectest.New(t)
	_ = spec.Doc.WalkSchemas(func(_ string, x *openapi3.SchemaRef) error {
		v := x.Value
		v.Enum, v.Format, v.Pattern, v.Min, v.Max, v.MaxItems, v.MaxLength = nil, "", "", nil, nil, nil, nil
		return nil
	})
	text, err := os.ReadFile("../view/testdata/nouns.json")
	if err != nil {
		t.Fatal(err)
	}
	var nouns map[string][]any
	if err := json.Unmarshal(text, &nouns); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"due_payment": "Due", "due_reminder": "Due", "reversal": "Refund", "message": "Delivery", "event_row": "Event",
		"pending": "Plan", "open": "OpenPeriod"}
	commands := []string{"audit", "changed", "moved", "plan_change", "setting_change", "upgraded", "written_off"} // only commands print these
	for noun, all := range nouns {
		name := other[noun]
		if name == "" {
			for part := range strings.SplitSeq(noun, "_") {
				name += strings.ToUpper(part[:1]) + part[1:]
			}
		}
		schema := spec.Doc.Components.Schemas[name]
		if schema == nil && !slices.Contains(commands, noun) {
			t.Errorf("openapi.json has no schema %s", name)
		}
		if schema == nil || noun == "settings" {
			continue
		}
		for i, v := range all {
			if none, _ := v.(map[string]any); len(none) == 0 { // the noun is absent
				continue
			}
			if err := schema.Value.VisitJSON(v, openapi3.MultiErrors()); err != nil {
				t.Errorf("%s %d: %v", noun, i, err)
			}
		}
	}
}
