package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// atCommit calls before ahead of a commit, and loses the answer of as many commits as lost says. At 0
// commits left, the process is gone.
type atCommit struct {
	store.Store
	before func()
	lost   int
	left   int
}

var errGone = errors.New("the process is gone")

func (s *atCommit) Commit(ctx context.Context, writes ...store.Write) error {
	if s.left--; s.left < 0 {
		return errGone
	}
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	err := s.Store.Commit(ctx, writes...)
	if s.lost--; err == nil && s.lost >= 0 {
		return store.ErrUnknown
	}
	return err
}

// TestDetails_OtherTools: a change of some details keeps the others, what another tool has in the map and beside
// it, and what that tool or another process writes while the change is being committed. Lost answers and a
// process that ends between its commits lose nothing either, once the change is repeated.
func TestDetails_OtherTools(t *testing.T) {
	for lost := range 3 {
		for left := range 4 {
			w := newWorld("2024-02-20T09:00", planted{})
			w.create(one("2024-02-25"))
			table, key := w.tables.RecurringPayments.Name, billing.AccountKey("a1")
			var details party.Change
			details.Company, details.Address.City = new("Ada Ltd"), new("Leeds")
			_, err := account.Update(t.Context(), w.start().Records, "a1", account.Change{Details: details})
			mustNot(t, err)
			it, err := w.spy.mem.Get(t.Context(), table, key)
			mustNot(t, err)
			members := it.Get(schema.BillingDetails).Map().Clone()
			members.Set("crm", store.S("7"))
			mustNot(t, w.spy.mem.Commit(t.Context(), store.Update(table, key,
				store.NewItem(store.Attribute{Name: schema.BillingDetails, Value: store.M(members)}), nil)))

			r := w.start().Records
			r.Store = &atCommit{Store: r.Store, lost: lost, left: left, before: func() {
				mustNot(t, w.spy.mem.Commit(t.Context(), store.Update(table, key,
					store.NewItem(store.Attribute{Name: "Segment", Value: store.S("gold")}), nil)))
				_, err := account.Update(t.Context(), w.start().Records, "a1", account.Change{Name: new("Ada")})
				mustNot(t, err)
			}}
			change := account.Change{Details: party.Change{TaxID: new("GB123456789")}}
			change.Details.Address.Country, change.Details.Address.City = new("GB"), new("")
			if _, err = account.Update(t.Context(), r, "a1", change); err != nil {
				_, err = account.Update(t.Context(), w.start().Records, "a1", change)
			}
			mustNot(t, err)
			a, err := w.start().Records.Account(t.Context(), "a1")
			mustNot(t, err)
			want := party.Details{Company: "Ada Ltd", TaxID: "GB123456789"}
			want.Address.Country = "GB"
			if a.Details != want || a.Copying || a.Raw.Get(schema.BillingDetails).Map().Str("crm") != "7" ||
				left > 0 && (a.Name != "Ada" || a.Raw.Str("Segment") != "gold") {
				t.Errorf("%d lost, %d commits: %+v of %v", lost, left, a.Details, a.Raw)
			}
			w.report(t)
		}
	}
}

// TestDetails_AnotherForm: an attribute that is not a map is another tool's. It stays until details are given, and
// it stops no charge.
func TestDetails_AnotherForm(t *testing.T) {
	w := newWorld("2024-02-20T09:00", planted{})
	n := w.create(one("2024-02-20"))
	table, key := w.tables.RecurringPayments.Name, billing.AccountKey("a1")
	mustNot(t, w.spy.mem.Commit(t.Context(), store.Update(table, key,
		store.NewItem(store.Attribute{Name: schema.BillingDetails, Value: store.S("see CRM")}), nil)))
	a, err := account.Update(t.Context(), w.start().Records, "a1", account.Change{Name: new("Ada")})
	mustNot(t, err)
	equal(t, []string{a.Raw.Str(schema.BillingDetails)}, []string{"see CRM"})
	w.daily("2024-02-21")
	equal(t, w.paidOn(n), []string{"2024-02-20"})
	a, err = account.Update(t.Context(), w.start().Records, "a1", account.Change{Details: party.Change{Company: new("Ada Ltd")}})
	mustNot(t, err)
	equal(t, []string{a.Raw.Get(schema.BillingDetails).Map().Str("company")}, []string{"Ada Ltd"})
	w.report(t)
}
