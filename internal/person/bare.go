package person

import (
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// personal contains billing's attributes with personal values. Parts of Charge, PaymentDetails and
// Reason are personal too, in the items that bare names.
var personal = []string{schema.Answer, schema.BillingDetails, schema.CardTold, schema.Email, schema.EmailBounced, schema.Fallback, schema.FanOut,
	schema.LastError, schema.Mailed, schema.Manual, schema.Name, schema.Note, schema.PaymentMethod}

// ours contains the names of billing's attributes, which all begin with a capital letter.
var ours = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range schema.Names() {
		all[name] = name < "a" && !slices.Contains(personal, name)
	}
	return all
}()

// bare returns the item of the recurring payments table without personal data, and without the
// attributes of other tools, which may be personal.
func bare(it store.Item) store.Item {
	var now store.Item
	for _, a := range it {
		if ours[a.Name] {
			now = append(now, a)
		}
	}
	switch kind := billing.ReceiptKind(it.Str(schema.Kind)); kindOf(it) {
	case billing.SubPrefix:
		if details := it.Get(schema.PaymentDetails).Map(); details != nil {
			now.Set(schema.PaymentDetails, store.M(store.NewItem(store.Attribute{Name: schema.Currency, Value: details.Get(schema.Currency)})))
		}
	case billing.RecPrefix:
		if kind == billing.External || kind == billing.Overpayment { // a note
			now.Remove(schema.Charge)
		}
	case maillog.Prefix:
		now = maillog.Bare(now)
	case job.UnpaidPrefix:
		now.Remove(schema.Reason)
	case billing.PerPrefix:
		if reason, _, is := strings.Cut(it.Str(schema.Reason), reopened); is {
			now.Set(schema.Reason, store.S(reason+strings.TrimSuffix(reopened, ": ")))
		}
	}
	return now
}

// reopened precedes the text that a person gave for charging a period again.
const reopened = "; reopened: "
