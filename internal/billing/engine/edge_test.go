package engine_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/adoption"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/shop"
	"github.com/duesday/duesday/internal/test/storetest"
)

// due is a foreign subscription of account f1 that falls due today.
func foreignDue(changes ...any) store.Item {
	day := time.Now().UTC().Format(time.DateOnly)
	return foreign("f1", "s1", append([]any{"PaymentDay", day[8:], "NextPaymentDate", day, "NextReminderDate",
		store.Value{}}, changes...)...)
}

// adopting opens an engine that may take over what other tools have written, and does.
func adopting(s *shop.Shop, items ...store.Item) (*engine.Engine, *adoption.Report) {
	s.Helper()
	for _, it := range items {
		if err := s.Mem.Commit(s.Context(), store.Put(s.Tables.RecurringPayments.Name, it)); err != nil {
			s.Fatal(err)
		}
	}
	e := s.Engine(s.Mem, s.Box)
	r, err := adoption.Adopt(s.Context(), e.Records, adoption.Options{Methods: map[string]string{"f1": "pm_card_visa"}})
	if err != nil {
		s.Fatal(err)
	}
	return e, r
}

// TestATableWithoutItsMETAIsNoStore: items that were copied without META are not charged as a
// new installation's, which the processor's successes would say nothing to.
func TestATableWithoutItsMETAIsNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 10)
		if _, err := job.Payments(t.Context(), s.Engine(s.Mem, s.Box), job.Options{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		torn, err := memstore.Open(s.Tables.All(), time.Now)
		mustNot(t, err)
		for it, err := range s.Mem.Scan(t.Context(), store.Scan{Table: s.Tables.RecurringPayments.Name}) {
			mustNot(t, err)
			if it.Str(schema.PK) != "META" {
				mustNot(t, torn.Commit(t.Context(), store.Put(s.Tables.RecurringPayments.Name, it)))
			}
		}
		for _, making := range []billing.Making{billing.MakeNew, billing.MakeNever, billing.MakeAdopted} {
			_, err := engine.Open(t.Context(), engine.Options{Store: torn, Tables: s.Tables, Now: time.Now, Making: making})
			if !errors.Is(err, billing.ErrNoStore) || !errors.Is(err, store.ErrMissing) {
				t.Errorf("making %d: %v", making, err)
			}
		}
		if _, err := torn.Get(t.Context(), s.Tables.RecurringPayments.Name,
			store.Key{PK: "META", SK: "META"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("META was made: %v", err)
		}
		empty, err := memstore.Open(s.Tables.All(), time.Now)
		mustNot(t, err)
		if _, err := engine.Open(t.Context(),
			engine.Options{Store: empty, Tables: s.Tables, Now: time.Now, Making: billing.MakeNever}); !errors.Is(err,
			billing.ErrNoStore) {
			t.Errorf("an empty table: %v", err)
		}
	})
}

// TestAnotherToolBetweenReadAndBind: an item that Duesday has never written carries no version.
// What its own tool does to it meanwhile counts all the same.
func TestAnotherToolBetweenReadAndBind(t *testing.T) {
	for what, change := range map[string]func(it store.Item) store.Write{
		"deletes it": func(it store.Item) store.Write {
			return store.Delete("duesday-recurring-payments", store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)})
		},
		"charges it and moves the date": func(it store.Item) store.Write {
			it.Set(schema.NextPaymentDate, store.S("2000-02-01"))
			return store.Put("duesday-recurring-payments", it)
		},
		"changes the amount": func(it store.Item) store.Write {
			it.Set(schema.PaymentAmount, store.S("1.00"))
			return store.Put("duesday-recurring-payments", it)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := shop.New(t, 1, 0)
			it := foreignDue()
			adopting(s, it)
			f := storetest.NewFaulty(s.Mem)
			var once sync.Once
			f.Hook = func(op storetest.Operation, phase storetest.Phase) error {
				if op.Kind == storetest.Commit && phase == storetest.Before &&
					strings.HasPrefix(op.Writes[0].Item.Str(schema.SK), "SUB#") {
					once.Do(func() { mustNot(t, s.Mem.Commit(t.Context(), change(it.Clone()))) })
				}
				return nil
			}
			if _, err := job.Payments(t.Context(), s.Engine(f, s.Box), job.Options{Workers: 1}); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			for e := range s.Box.Entries() {
				if e.State == processor.Succeeded && e.Amount.Decimal() != "1.00" {
					t.Errorf("charged %s although another tool %s", e.Amount, what)
				}
			}
			if _, err := s.Mem.Get(t.Context(), s.Tables.RecurringPayments.Name,
				store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)}); (err != nil) != (what == "deletes it") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// TestArrearsOfOthersAreParked: what other tools have left unpaid for long is not charged
// before a person has looked, as the report of the adoption says.
func TestArrearsOfOthersAreParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 0)
		e, r := adopting(s, foreignDue(schema.PaymentDay, "1", schema.NextPaymentDate, "1998-01-01"))
		if r.Arrears != 1 {
			t.Errorf("the report: %+v", r)
		}
		run, err := job.Payments(t.Context(), e, job.Options{Workers: 1})
		if err != nil || run.Counts[engine.OutcomeParked] != 1 || run.Due() != 1 {
			t.Errorf("the run: %+v, %v", run, err)
		}
		if n := len(s.Charged()); n > 0 {
			t.Errorf("%d periods were charged", n)
		}
		s.WantAllCharged(0)
	})
}

// TestAShardThatIsNotThere is reported by adoption and by the audit: no job would find the row.
func TestAShardThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 0)
		e, r := adopting(s, foreignDue(schema.NextPaymentDate, time.Now().UTC().Format(time.DateOnly)+"#07"))
		if len(r.NotIndexed) != 1 {
			t.Errorf("the report: %+v", r)
		}
		if a, err := e.Verify(t.Context()); err != nil || a.OK {
			t.Errorf("the audit: %+v, %v", a, err)
		}
	})
}

// TestAForeignTTLWithAFraction expires nothing, and stands in nobody's way.
func TestAForeignTTLWithAFraction(t *testing.T) {
	half, err := store.Number("1500000000.5")
	mustNot(t, err)
	w := newWorld("2023-06-30T09:00", planted{})
	w.write(foreign("1", "1", "NextReminderDate", store.Value{}))
	w.adopt(t, map[string]string{"1": "pm_card_visa"})
	s := w.sub(billing.Name{Account: "1", ID: "1"})
	if got := engine.WithRaw(s, schema.TTL, half); got.Has(schema.TTL) {
		t.Errorf("it would be written with %v", got.Get(schema.TTL))
	}
	if got := engine.WithRaw(s, schema.TTL, store.Int(1_900_000_000)); !got.Has(schema.TTL) {
		t.Error("a whole one was lost")
	}
}

// TestALateSettlingIsCounted: the answer of SETTLE is lost, and it lands a moment later, when
// it has been looked for already.
func TestALateSettlingIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop.New(t, 1, 1)
		f := storetest.NewFaulty(s.Mem)
		var late []store.Write
		f.Hook = func(op storetest.Operation, phase storetest.Phase) error {
			settles := false
			for _, w := range op.Writes {
				settles = settles || strings.HasPrefix(w.Item.Str(schema.SK), "REC#")
			}
			switch {
			case !settles || phase != storetest.Before:
			case late == nil:
				late = op.Writes
				return store.ErrUnknown
			default:
				mustNot(t, s.Mem.Commit(t.Context(), late...))
			}
			return nil
		}
		r, err := job.Payments(t.Context(), s.Engine(f, s.Box), job.Options{Workers: 1})
		if err != nil || r.Counts[engine.OutcomePaid] != 1 {
			t.Errorf("%+v, %v; want one paid", r, err)
		}
		s.WantAllCharged(1)
	})
}

// TestNobodyIsChargedWithoutAnOutbox: a charge that cannot be settled is not taken.
func TestNobodyIsChargedWithoutAnOutbox(t *testing.T) {
	s := &service{t: t, endpoint: dynamotest.Endpoint(t)}
	w := newWorld("2024-01-31T09:00", planted{engine: s.engine(1)})
	defer s.drop()
	w.create(one("2024-01-31"))
	s.dropTable(w.tables.Outbox)
	if _, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1}); !errors.Is(err, store.ErrMissing) {
		t.Errorf("the run: %v", err)
	}
	if lines := w.ledger(); len(lines) > 0 {
		t.Errorf("the processor was asked: %+v", lines)
	}
}
