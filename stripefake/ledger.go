package stripefake

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// An Entry is one movement of money, or a claim to one, at the fake.
type Entry struct {
	Type     string            `json:"type"` // charge, refund or dispute
	ID       string            `json:"id"`   // ch_…, re_…, du_…
	Account  string            `json:"account"`
	Live     bool              `json:"livemode"`
	Intent   string            `json:"payment_intent,omitempty"`
	Charge   string            `json:"charge"`
	Amount   int64             `json:"amount"` // in the currency's minor unit, as Stripe counts it
	Currency string            `json:"currency"`
	Status   string            `json:"status"`             // of the refund or the dispute; succeeded of a charge
	Metadata map[string]string `json:"metadata,omitempty"` // of a charge, and its payment intent's where it has none of that name
	At       time.Time         `json:"at"`                 // UTC, by the fake's clock, in whole seconds
}

// Ledger returns every charge that succeeded, every refund and every dispute, of all accounts
// in both modes, by time and then in the order in which they were made.
func (f *Fake) Ledger() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range f.entries() {
			if !yield(e) {
				return
			}
		}
	}
}

func (f *Fake) entries() []Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Entry
	for _, s := range f.spaces {
		for _, ch := range s.all("charge") {
			if ch.str("status") == "succeeded" && ch.yes("captured") {
				list = append(list, s.entry("charge", ch, ch))
			}
		}
		for _, kindName := range []string{"refund", "dispute"} {
			for _, o := range s.all(kindName) {
				list = append(list, s.entry(kindName, o, s.get("charge", o.str("charge"))))
			}
		}
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(numberOf(a.ID), numberOf(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// numberOf returns the tail of an id, by which ids are in the order in which they were made.
func numberOf(id string) string {
	const least = 10
	if len(id) < least {
		return id
	}
	return id[len(id)-least:]
}

func (s *space) entry(typ string, o, charge object) Entry {
	e := Entry{
		Type: typ, ID: o.id(), Account: s.account, Live: s.live, Charge: o.str("charge"), Intent: o.str("payment_intent"),
		Amount: o.num("amount"), Currency: o.str("currency"), Status: o.str("status"), At: time.Unix(madeAt(o), 0).UTC(), Metadata: map[string]string{},
	}
	if typ == "charge" {
		e.Charge = o.id()
		if _, there := o["amount_captured"]; there {
			e.Amount = o.num("amount_captured")
		}
	}
	if e.Intent == "" {
		e.Intent = charge.str("payment_intent")
	}
	for _, from := range []object{s.get("payment_intent", e.Intent), charge, o} {
		for name := range from.sub("metadata") {
			e.Metadata[name] = from.sub("metadata").str(name)
		}
	}
	return e
}
