package importing_test

import (
	"context"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/importing"
)

// TestJudge compares rows with a store that contains the good row and an ended subscription.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		what, row string
		update    bool
		rejected  []string // parts of the errors, one for each
		notes     []string
		sum       importing.Summary
	}{
		{"the same", good, false, nil, nil, importing.Summary{Existing: 1}},
		{"another amount", with("amount", "8.00"), false, nil, []string{"2 1/1 amount 9.00 -> 8.00"}, importing.Summary{Differing: 1}},
		{"another amount, to update", with("amount", "8.00"), true, nil, []string{"amount"}, importing.Summary{Updated: 1}},
		{"another currency, to update", with("currency", "USD"), true, nil, []string{"(not changed: "}, importing.Summary{Differing: 1}},
		{"an empty cell", with("payment_method", ""), true, nil, nil, importing.Summary{Existing: 1}},
		{"facts of the account", with("email", "eve@example.com", "name", "Ada", "locale", "de", "time_zone", "Europe/Berlin"), true, nil,
			[]string{"email", "time_zone", "name", "locale"}, importing.Summary{Updated: 1}},
		{"another customer", with("customer", "cus_2"), true, nil, []string{"customer"}, importing.Summary{Differing: 1}},
		{"a new one of the account", with("subscription", "2"), false, nil, nil, importing.Summary{Created: 1}},
		{"a new one with another email", with("subscription", "2", "email", "eve@example.com"), false, []string{"2 email: "}, nil,
			importing.Summary{Bad: 1}},
		{"a new one with another email, to update", with("subscription", "2", "email", "eve@example.com"), true, nil, []string{"email"},
			importing.Summary{Created: 1, Updated: 1}},
		{"a new one in another currency", with("subscription", "2", "currency", "USD"), false, nil, nil, importing.Summary{Created: 1}},
		{"a token of another kind", with("account", "2", "payment_method", "visa"), false, nil,
			[]string{"2 2/1 payment_method visa is a token that no processor knows"}, importing.Summary{Created: 1}},
		{"a fallback of another kind", with("account", "2", "fallback", "visa"), false, nil, []string{"fallback visa is a token"},
			importing.Summary{Created: 1}},
		{"due", with("account", "2", "payment_day", "10", "next_payment_date", "2026-03-10"), false, nil, nil, importing.Summary{Created: 1, Due: 1}},
		{"overdue", with("account", "2", "next_payment_date", "2026-01-31"), false, []string{"2 next_payment_date: 2 periods are due from 2026-01-31 on"},
			nil, importing.Summary{Bad: 1, Overdue: 1}},
	} {
		e, dir := newEngine(), t.TempDir()
		must(run(dir, book1(good), e, nil))
		o, err := run(dir, book1(c.row), e, func(m *importing.Import) { m.DryRun, m.SkipBad, m.Update = true, true, c.update })
		if c.sum.Rows = 1; err != nil || o.Sum != c.sum {
			t.Errorf("%s: %+v, %v; must be %+v", c.what, o.Sum, err, c.sum)
		}
		contains(t, c.what, o.rejected, c.rejected...)
		contains(t, c.what, o.notes, c.notes...)
	}
}

// TestJudge_Tokens checks the warnings about payment methods that the configured processor does not
// know.
func TestJudge_Tokens(t *testing.T) {
	for _, c := range []struct {
		token                 string
		sandbox, test, liveOK bool
	}{
		{"pm_card_visa", true, true, false}, {"pm_sandbox_flaky", true, false, false}, {"pm_1PabcDEF23", true, true, true},
		{"card_1PabcDEF23", true, true, true}, {"tok_visa", false, false, false}, {"Visa", false, false, false},
	} {
		for i, known := range []bool{c.sandbox, c.test, c.liveOK} {
			o, err := run(t.TempDir(), book1(with("payment_method", c.token)), newEngine(), func(m *importing.Import) { m.Stripe, m.Live = i > 0, i == 2 })
			if err != nil || (len(o.notes) == 0) != known {
				t.Errorf("%s with %s: %q, %v", c.token, []string{"a sandbox", "a test key", "a live key"}[i], o.notes, err)
			}
		}
	}
	for customer, known := range map[string]bool{"cus_NffrFeUfNV2Hib": true, "4711": false} {
		o, err := run(t.TempDir(), book1(with("customer", customer)), newEngine(), func(m *importing.Import) { m.Stripe = true })
		if err != nil || (len(o.notes) == 0) != known {
			t.Errorf("customer %s: %q, %v", customer, o.notes, err)
		}
	}
}

// TestJudge_Ended checks that an import does not change a canceled subscription.
func TestJudge_Ended(t *testing.T) {
	e, dir := newEngine(), t.TempDir()
	must(run(dir, book1(good), e, nil))
	must(e.Cancel(context.Background(), billing.Name{Account: "1", ID: "1"}, false))
	for _, update := range []bool{false, true} {
		o, err := run(dir, book1(with("amount", "8.00")), e, func(m *importing.Import) { m.Update = update })
		if sum := (importing.Summary{Rows: 1, Ended: 1}); err != nil || o.Sum != sum {
			t.Errorf("update %v: %+v, %v", update, o.Sum, err)
		}
	}
}
