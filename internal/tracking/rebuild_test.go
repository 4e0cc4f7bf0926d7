package tracking_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

func (d *desk) rebuilt() *tracking.Rebuilt {
	d.Helper()
	step := tracking.RebuildSteps{Read: func() {}, Folded: func(int, int) {}}
	list, err := d.service.Rebuild(d.Context(), []string{shopAt}, step)
	if err != nil {
		d.Fatal(err)
	}
	return list[0]
}

// plant changes one attribute of an item without using the service.
func (d *desk) plant(table string, key store.Key, name, value string) {
	d.Helper()
	set := store.NewItem(store.Attribute{Name: name, Value: store.S(value)})
	if err := d.mem.Commit(d.Context(), store.Update(table, key, set, nil)); err != nil {
		d.Fatal(err)
	}
}

func TestRebuild(t *testing.T) {
	d := newDesk(t)
	if _, err := d.service.Rebuild(t.Context(), []string{"acct_none"}, tracking.RebuildSteps{}); !errors.Is(err, tracking.ErrUnregistered) {
		t.Errorf("of none: %v", err)
	}
	pi := func(id, status string) thing {
		return object(tracking.KindPayment, id, status, aPurchase, tracking.Legacy)
	}
	sub := func(id, status string) thing {
		return object(tracking.KindSubscription, id, status, bPurchase, tracking.Subscribe)
	}
	d.takes(message("evt_1", "payment_intent.succeeded", shopAt, pi("pi_1", "succeeded")), tracking.Applied)
	d.takes(message("evt_2", "payment_intent.created", shopAt, pi("pi_1", "requires_payment_method")), tracking.Applied)
	d.takes(message("evt_3", "customer.subscription.created", shopAt, sub("sub_1", "active")), tracking.Applied)
	d.takes(message("evt_4", "customer.subscription.deleted", shopAt, sub("sub_1", "canceled")), tracking.Applied)
	d.takes(message("evt_5", "payment_intent.payment_failed", shopAt, pi("pi_2", "requires_payment_method")),
		tracking.Applied) // its beginning was not told
	d.takes(message("evt_6", "customer.subscription.created", shopAt,
		object(tracking.KindSubscription, "sub_9", "active", "", "")), tracking.Ignored)
	d.takes(paid("evt_7", shopAt, aPurchase, thing{"livemode": true}), tracking.Refused)
	before := d.state()
	if r := d.rebuilt(); r.Compared != 2 || r.Partial != 1 || r.Events != 6 || len(r.Differences) != 0 {
		t.Errorf("got %+v", r)
	}
	if after := d.state(); after != before {
		t.Error("it has changed something")
	}
	for _, c := range []struct {
		table, attribute, wrong string
		key                     store.Key
		want                    tracking.Difference
	}{
		{tables.Tracking.Payments.Name, schema.TrackedStatus, "new", store.Key{PK: shopAt, SK: "pi_1"},
			tracking.Difference{ID: "pi_1", Stored: "new", Folded: "paid"}},
		{tables.Tracking.Payments.Name, schema.TrackedStatus, "failed", store.Key{PK: shopAt, SK: "pi_1"},
			tracking.Difference{ID: "pi_1", Stored: "failed", Folded: "paid"}},
		{tables.Tracking.Subscriptions.Name, schema.TrackedEnding, "completed", store.Key{PK: shopAt, SK: "sub_1"},
			tracking.Difference{ID: "sub_1", Stored: "terminated: completed", Folded: "terminated: canceled"}},
		{tables.Tracking.Subscriptions.Name, schema.TrackedStatus, "new", store.Key{PK: shopAt, SK: "sub_1"},
			tracking.Difference{ID: "sub_1", Stored: "new: canceled", Folded: "terminated: canceled"}},
	} {
		mem := d.mem.Snapshot()
		d.plant(c.table, c.key, c.attribute, c.wrong)
		if r := d.rebuilt(); !slices.Equal(r.Differences, []tracking.Difference{c.want}) {
			t.Errorf("%s: got %+v, want %+v", c.wrong, r, c.want)
		}
		it, err := mem.Get(t.Context(), c.table, c.key)
		if err != nil {
			t.Fatal(err)
		}
		d.plant(c.table, c.key, c.attribute, it.Str(c.attribute))
	}
	if err := d.mem.Commit(t.Context(), store.Delete(tables.Tracking.Events.Name, store.Key{PK: "evt_2"}),
		store.Delete(tables.Tracking.Events.Name, store.Key{PK: "evt_3"})); err != nil {
		t.Fatal(err)
	}
	if r := d.rebuilt(); r.Compared != 0 || r.Partial != 3 {
		t.Errorf("without the events of the beginning: %+v", r)
	}
}

// TestRebuild_ManyAccounts checks that Rebuild reads all accounts' events once, and that an ID only
// refers to an object of its own account.
func TestRebuild_ManyAccounts(t *testing.T) {
	d := newDesk(t)
	if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{shopAt, otherAt} {
		purchase := []string{aPurchase, bPurchase}[i]
		pi := object(tracking.KindPayment, "pi_1", "requires_payment_method", purchase, tracking.Legacy)
		d.takes(message(fmt.Sprint("evt_", 2*i), "payment_intent.created", at, pi), tracking.Applied)
		d.takes(message(fmt.Sprint("evt_", 2*i+1), "payment_intent.succeeded", at,
			object(tracking.KindPayment, "pi_1", "succeeded", purchase, tracking.Legacy)), tracking.Applied)
	}
	d.plant(tables.Tracking.Payments.Name, store.Key{PK: otherAt, SK: "pi_1"}, schema.TrackedStatus, "failed")
	for _, c := range []struct {
		of   []string
		want []int // differences
		read int
	}{{[]string{shopAt}, []int{0}, 2}, {[]string{otherAt}, []int{1}, 2}, {[]string{otherAt, shopAt}, []int{1, 0}, 4}} {
		read, folded := 0, 0
		list, err := d.service.Rebuild(t.Context(), c.of, tracking.RebuildSteps{Read: func() { read++ },
			Folded: func(done, all int) {
				if folded++; done != folded || all != c.read {
					t.Errorf("%d of %d are folded, want %d of %d", done, all, folded, c.read)
				}
			}})
		if err != nil || len(list) != len(c.want) || read != c.read || folded != c.read {
			t.Fatalf("%v: %d events are read, %d folded, %v", c.of, read, folded, err)
		}
		for i, r := range list {
			if r.StripeAccount != c.of[i] || r.Events != 2 || r.Compared != 1 || len(r.Differences) != c.want[i] {
				t.Errorf("%v: got %+v", c.of, r)
			}
		}
	}
}
