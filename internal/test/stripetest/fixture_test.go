package stripetest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixtures returns stripe-mock's sample of every object, as JSON.
func fixtures(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	Load(t)
	dir, err := module()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "embedded", "openapi", "fixtures3.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Resources map[string]json.RawMessage `json:"resources"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all.Resources
}

func checkAs(spec *Spec, value any, schema string) []string {
	c := &checker{spec: spec, whole: map[string]bool{}, ids: map[string]bool{}}
	c.check(value, spec.schemas[schema], "")
	return c.problems
}

// outdated is what is wrong with the fixtures by their own specification: fields of former
// versions, objects that are not public any more, and two made-up currencies.
func outdated() map[string][]string {
	const (
		unknown = " is unknown to Stripe"
		none    = "none"
		money   = `field returned_details.transaction.currency is "currency", no currency in lower case`
	)
	return map[string][]string{
		"account": {
			"field settings.payments.statement_descriptor_prefix_kana" + unknown,
			"field settings.payments.statement_descriptor_prefix_kanji" + unknown,
		},
		"billing.alert_triggered": {none},
		"charge":                  {"field source" + unknown},
		"entitlements.active_entitlement_summary": {none},
		"event":                               {"field data.object.aggregate_usage" + unknown},
		"financial_connections.authorization": {none},
		"invoice":                             {"field subscription" + unknown},
		"item":                                {"field price.recurring.trial_period_days" + unknown},
		"payment_intent":                      {"field source" + unknown},
		"payment_source": {
			"field settings.payments.statement_descriptor_prefix_kana" + unknown,
			"field settings.payments.statement_descriptor_prefix_kanji" + unknown,
		},
		"price":           {"field recurring.trial_period_days" + unknown},
		"product":         {"field type" + unknown},
		"reserve.hold":    {none},
		"reserve.plan":    {none},
		"reserve.release": {none},
		"sigma.sigma_api_query": {
			"field created_via" + unknown, "field error" + unknown, "field result" + unknown, "field status" + unknown,
		},
		"subscription": {
			"field items.data[].plan" + unknown,
			"field items.data[].price.recurring.trial_period_days" + unknown,
			"field pending_update.cancel_at_period_end" + unknown,
		},
		"subscription_item":          {"field plan" + unknown, "field price.recurring.trial_period_days" + unknown},
		"subscription_schedule":      {"field phases[].items[].plan" + unknown},
		"terminal.refund":            {"field object" + unknown},
		"treasury.outbound_payment":  {money},
		"treasury.outbound_transfer": {money},
	}
}

// TestFixturesAreAccepted: all that stripe-mock answers with, but for what is known to be
// out of date.
func TestFixturesAreAccepted(t *testing.T) {
	spec := Load(t)
	all := fixtures(t)
	if len(all) < 100 {
		t.Errorf("%d fixtures only", len(all))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		got := []string{"none"}
		if spec.schemas[name] != nil {
			c := &checker{}
			value, ok := c.decode(all[name])
			if !ok {
				t.Fatal(c.problems)
			}
			got = checkAs(spec, value, name)
		}
		if want := outdated()[name]; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestAnyChangeIsSeen spoils every value of the samples of what Duesday uses, one after the
// other, gives each object a field too much, and leaves each required field out.
func TestAnyChangeIsSeen(t *testing.T) {
	spec := Load(t)
	all := fixtures(t)
	for _, name := range []string{
		"account", "balance_transaction", "charge", "checkout.session", "customer", "dispute", "event", "invoice",
		"invoiceitem",
		"payment_intent", "payment_method", "price", "product", "refund", "setup_intent", "subscription",
		"subscription_schedule",
		"test_helpers.test_clock", "webhook_endpoint",
	} {
		c := &checker{}
		value, ok := c.decode(all[name])
		if !ok {
			t.Fatal(c.problems)
		}
		for _, problem := range outdated()[name] {
			drop(value, strings.Fields(problem)[1])
		}
		changes := 0
		for path := range spoil(value, name) {
			changes++
			if len(checkAs(spec, value, name)) == 0 {
				t.Errorf("nobody sees %s", path)
			}
		}
		object := value.(map[string]any)
		for _, field := range spec.schemas[name].Required {
			old := object[field]
			delete(object, field)
			if got := checkAs(spec, value, name); !slices.Contains(got, "field "+field+" is missing") {
				t.Errorf("%s without %s: got %q", name, field, got)
			}
			object[field] = old
		}
		if got := checkAs(spec, value, name); changes <= len(object) || len(got) > 0 {
			t.Errorf("%s: after %d changes, all of them taken back: %q", name, changes, got)
		}
	}
}

// drop removes a field: "items.data[].plan".
func drop(value any, path string) {
	name, rest, deeper := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	object := value.(map[string]any)
	switch {
	case !deeper:
		delete(object, name)
	case list:
		for _, element := range object[name].([]any) {
			drop(element, rest)
		}
	default:
		drop(object[name], rest)
	}
}

// nested is a value that nothing in Stripe's API may have.
func nested() any { return []any{[]any{}} }

// spoil makes one change after the other below value, and takes each back before the next.
func spoil(value any, at string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				old := value[name]
				if !spoilInside(old, at+"."+name, yield) {
					return
				}
				value[name] = nested()
				if !yield(at + "." + name + " = [[]]") {
					return
				}
				value[name] = old
			}
			if strings.HasSuffix(at, "metadata") {
				return // anything may be in it
			}
			value["invented"] = "by us"
			more := yield(at + ".invented")
			delete(value, "invented")
			if !more {
				return
			}
		case []any:
			for i, old := range value {
				if !spoilInside(old, at+"[]", yield) {
					return
				}
				value[i] = nested()
				if !yield(at + "[] = [[]]") {
					return
				}
				value[i] = old
			}
		}
	}
}

func spoilInside(value any, at string, yield func(string) bool) bool {
	for change := range spoil(value, at) {
		if !yield(change) {
			return false
		}
	}
	return true
}
