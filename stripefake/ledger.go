package stripefake

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// An Entry is one charge, refund or dispute in the ledger.
type Entry struct {
	Type     string            `json:"type"` // charge, refund or dispute
	ID       string            `json:"id"`   // ch_…, re_…, du_…
	Account  string            `json:"account"`
	Live     bool              `json:"livemode"`
	Intent   string            `json:"payment_intent,omitempty"`
	Charge   string            `json:"charge"`
	Amount   int64             `json:"amount"` // in Stripe's minor units of the currency
	Currency string            `json:"currency"`
	Status   string            `json:"status"`             // the refund's or dispute's status; succeeded for a charge
	Metadata map[string]string `json:"metadata,omitempty"` // of the payment intent, overridden by the charge's, then by the refund's or dispute's
	At       time.Time         `json:"at"`                 // in UTC, truncated to seconds; on the customer's test clock if it has one
}

// Ledger returns an iterator over the successful charges, the refunds and the disputes of all accounts
// in both modes, oldest first.
func (f *Fake) Ledger() iter.Seq[Entry] {
	return func(yield func(Entry) bool) { slices.Values(f.entries())(yield) }
}

func (f *Fake) entries() []Entry {
	var list []Entry
	f.api.EachSpace(func(s *api.Space) {
		for _, ch := range s.All("charge") {
			if ch.Str("status") == "succeeded" && ch.Yes("captured") {
				list = append(list, entryOf(s, "charge", ch, ch))
			}
		}
		for _, kindName := range []string{"refund", "dispute"} {
			for _, o := range s.All(kindName) {
				list = append(list, entryOf(s, kindName, o, s.Get("charge", o.Str("charge"))))
			}
		}
	})
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(numberOf(a.ID), numberOf(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// numberOf returns the tail of an id, which has the order of creation.
func numberOf(id string) string { return id[max(0, len(id)-10):] }

func entryOf(s *api.Space, typ string, o, charge shape.Object) Entry {
	e := Entry{Type: typ, ID: o.ID(), Account: s.Account, Live: s.Live, Charge: o.Str("charge"),
		Intent: o.Str("payment_intent"), Amount: o.Num("amount"), Currency: o.Str("currency"), Status: o.Str("status"),
		At: time.Unix(shape.MadeAt(o), 0).UTC(), Metadata: map[string]string{}}
	if typ == "charge" {
		e.Charge = o.ID()
		if _, there := o["amount_captured"]; there {
			e.Amount = o.Num("amount_captured")
		}
	}
	e.Intent = cmp.Or(e.Intent, charge.Str("payment_intent"))
	for _, from := range []shape.Object{s.Get("payment_intent", e.Intent), charge, o} {
		for name := range from.Sub("metadata") {
			e.Metadata[name] = from.Sub("metadata").Str(name)
		}
	}
	return e
}
