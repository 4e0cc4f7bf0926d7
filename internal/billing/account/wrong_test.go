package account_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/field"
)

// names reports whether one of the joined errors names the field.
func names(err error, name string) bool {
	if e, ok := errors.AsType[*field.Error](err); ok && e.Field == name {
		return true
	}
	all, ok := err.(interface{ Unwrap() []error })
	return ok && slices.ContainsFunc(all.Unwrap(), func(err error) bool { return names(err, name) })
}

// TestWrongFields: a request that is refused names each of its wrong fields.
func TestWrongFields(t *testing.T) {
	wrong, day, s := "\x00", -1, billing.Subscription{}
	_, created := account.Create(t.Context(), nil, "a/b", billing.Account{Email: "x", TimeZone: "y", Locale: "Z"})
	_, updated := account.Update(t.Context(), nil, "a", account.Change{Email: &wrong, Name: &wrong})
	for _, c := range []struct {
		err  error
		want []string
	}{
		{created, []string{"account", "email", "time_zone", "locale"}},
		{updated, []string{"email", "name"}},
		{(&billing.Attachment{Customer: "a b", Method: "c d", Fee: &day}).Check(), []string{"customer", "payment_method", "fee"}},
		{s.ChangeTerms(billing.Change{SKU: &wrong, Address: &wrong, ReminderDays: &day}, billing.OldestDate()),
			[]string{"sku", "address", "reminder_days"}},
	} {
		for _, name := range c.want {
			if !names(c.err, name) {
				t.Errorf("%v does not name %s", c.err, name)
			}
		}
	}
}
