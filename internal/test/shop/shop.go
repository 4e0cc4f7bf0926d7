// Package shop has a store with due subscriptions and a processor, which several engines share in a test.
// It does not inject faults: tests wrap the store and the processor that they hand to an engine.
package shop

import (
	"fmt"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A Shop is a shared store and a processor, for several engines. It is made inside a
// synctest bubble, whose clock is everybody's.
type Shop struct {
	*testing.T
	Mem    *memstore.Store
	Tables schema.Tables
	Box    *sandbox.Sandbox
	Due    civil.Date
	shards int
}

// New returns a shop whose store has so many shards a date, and so many subscriptions due today.
func New(t *testing.T, shards, subscriptions int) *Shop {
	t.Helper()
	s := &Shop{T: t, Tables: schema.New(schema.DefaultPrefix), Due: civil.Of(time.Now().UTC()), shards: shards}
	var err error
	if s.Mem, err = memstore.Open(s.Tables.All(), time.Now); err != nil {
		t.Fatal(err)
	}
	if s.Box, err = sandbox.Open("", sandbox.Options{Now: time.Now, Latency: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	e := s.Engine(s.Mem, s.Box)
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	for i := range subscriptions {
		if _, err := e.CreateSubscription(t.Context(),
			billing.NewSubscription{Account: fmt.Sprint("a", i), Email: "a@example.com", ID: "s", SKU: "k",
				Amount: money.New(999, usd), PaymentDay: s.Due.Day(), Method: "pm_card_visa", ReminderDays: 7,
				NextPayment: s.Due}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Engine returns another engine of the shop.
func (s *Shop) Engine(st store.Store, p processor.Charger) *engine.Engine {
	s.Helper()
	e, err := engine.Open(s.Context(),
		engine.Options{Store: st, Tables: s.Tables, Processor: p, Now: time.Now, Config: engine.DefaultConfig(),
			Shards: s.shards, Lease: engine.DefaultLease, Making: billing.MakeAdopted})
	if err != nil {
		s.Fatal(err)
	}
	return e
}

// Charged returns the successes by subscription, and fails for a second one.
func (s *Shop) Charged() map[string]int {
	s.Helper()
	n := map[string]int{}
	for e := range s.Box.Entries() {
		if e.State == processor.Succeeded {
			name := fmt.Sprint(e.Tag.Account, "/", e.Tag.Subscription, " ", e.Tag.Period)
			if n[name]++; n[name] > 1 {
				s.Errorf("%s was charged %d times", name, n[name])
			}
		}
	}
	return n
}

// WantAllCharged fails the test unless so many periods were charged, and the audit is clean.
func (s *Shop) WantAllCharged(want int) {
	s.Helper()
	if got := len(s.Charged()); got != want {
		s.Errorf("%d were charged, want %d", got, want)
	}
	audit, err := s.Engine(s.Mem, s.Box).Verify(s.Context())
	if err != nil || !audit.OK {
		s.Errorf("the audit: %+v, %v", audit.Problems, err)
	}
}

// Leases returns the partitions under a lease.
func (s *Shop) Leases() []string {
	s.Helper()
	var held []string
	for it, err := range s.Mem.Query(s.Context(),
		store.Query{Table: s.Tables.RecurringPayments.Name, Partition: "LEASE#payments"}) {
		if err != nil {
			s.Fatal(err)
		}
		held = append(held, it.Str(schema.SK))
	}
	return held
}
