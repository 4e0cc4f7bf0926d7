package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// ids returns the event IDs that the query yields, in order.
func (d *desk) ids(q tracking.EventQuery) (list []string) {
	d.Helper()
	for e, err := range d.service.Events(d.Context(), q) {
		if err != nil {
			d.Fatal(err)
		}
		list = append(list, e.ID)
	}
	return list
}

// TestEvents lists events by account, by subscription and over all accounts, across day boundaries.
func TestEvents(t *testing.T) {
	d := newDesk(t, func(o *tracking.Options) { o.Decode = exact })
	if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
		t.Fatal(err)
	}
	midnight := shopStart.Truncate(24 * time.Hour)
	at := map[string]time.Time{"evt_a": midnight.Add(-24 * time.Hour), "evt_b": midnight.Add(-time.Millisecond),
		"evt_c": midnight, "evt_d": midnight.Add(time.Millisecond),
		"evt_e": midnight.Add(24*time.Hour - time.Millisecond), "evt_f": midnight.Add(24 * time.Hour)}
	for id, when := range at {
		account := shopAt
		if id == "evt_d" {
			account = otherAt
		}
		exactly = when
		sub := ""
		if id == "evt_b" || id == "evt_c" || id == "evt_d" {
			sub = "sub_1"
		}
		v, err := d.service.Ingest(t.Context(),
			message(id, "customer.subscription.updated", account, object(tracking.KindSubscription, sub, "active", "", "")),
			webhook(true))
		if err != nil || v.Status != tracking.Ignored {
			t.Fatalf("%+v, %v", v, err)
		}
		it, err := d.mem.Get(t.Context(), tables.Tracking.Events.Name, store.Key{PK: id})
		if err != nil || it.Str("timestamp") != it.Str("date")+" "+it.Str("time") ||
			it.Int("expiration") != max(when.Unix(), shopStart.Unix())+int64(30*day/time.Second) {
			t.Errorf("%s: %v, %v", id, it, err)
		}
	}
	all := []string{"evt_a", "evt_b", "evt_c", "evt_d", "evt_e", "evt_f"}
	for name, c := range map[string]struct {
		q    tracking.EventQuery
		want []string
	}{
		"all":         {tracking.EventQuery{}, all},
		"a day":       {tracking.EventQuery{From: midnight, To: midnight.Add(24 * time.Hour)}, all[2:5]},
		"to midnight": {tracking.EventQuery{To: midnight}, all[:2]},
		"from before": {tracking.EventQuery{From: midnight.Add(-time.Millisecond)}, all[1:]},
		"around midnight": {tracking.EventQuery{From: midnight.Add(-time.Millisecond),
			To: midnight.Add(time.Millisecond)}, all[1:3]},
		"an instant": {tracking.EventQuery{From: midnight, To: midnight.Add(time.Millisecond)}, all[2:3]},
		"none":       {tracking.EventQuery{From: midnight, To: midnight}, nil},
		"backwards":  {tracking.EventQuery{From: midnight.Add(time.Hour), To: midnight}, nil},
		"three days": {tracking.EventQuery{From: midnight.Add(-24 * time.Hour), To: midnight.Add(25 * time.Hour)},
			all},
		"in another zone": {tracking.EventQuery{From: midnight.In(time.FixedZone("west", -8*3600))}, all[2:]},
		"limited":         {tracking.EventQuery{Limit: 3}, all[:3]},
		"limited to more": {tracking.EventQuery{Limit: 30}, all},
		"of an account": {tracking.EventQuery{StripeAccount: shopAt},
			[]string{"evt_a", "evt_b", "evt_c", "evt_e", "evt_f"}},
		"of the other": {tracking.EventQuery{StripeAccount: otherAt}, all[3:4]},
		"of an account's day": {tracking.EventQuery{StripeAccount: shopAt, From: midnight, To: midnight.Add(24 * time.Hour)},
			[]string{"evt_c", "evt_e"}},
		"account, limited": {tracking.EventQuery{StripeAccount: shopAt, From: midnight.Add(-time.Millisecond), Limit: 2},
			all[1:3]},
		"of a subscription": {tracking.EventQuery{Subscription: "sub_1"}, all[1:4]},
		"before midnight":   {tracking.EventQuery{Subscription: "sub_1", To: midnight}, all[1:2]},
		"of none":           {tracking.EventQuery{StripeAccount: "acct_none"}, nil},
		"whole":             {tracking.EventQuery{Whole: true, From: midnight}, all[2:]},
	} {
		if got := d.ids(c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	for e, err := range d.service.Events(t.Context(), tracking.EventQuery{Whole: true}) {
		if err != nil || e.Type != "customer.subscription.updated" || e.StripeAccount == "" || !e.At.Equal(at[e.ID]) {
			t.Errorf("whole: %+v, %v", e, err)
		}
	}
	for e, err := range d.service.Events(t.Context(), tracking.EventQuery{StripeAccount: shopAt, Details: true}) {
		if err != nil || e.Status != tracking.Ignored || e.Reason == "" || e.Source != tracking.FromWebhook {
			t.Errorf("with details: %+v, %v", e, err)
		}
	}
	for e, err := range d.service.Events(t.Context(), tracking.EventQuery{Subscription: "sub_1"}) {
		if err != nil || e.Type == "" || e.StripeAccount == "" || !e.At.Equal(at[e.ID]) || e.Subscription != "sub_1" {
			t.Errorf("by subscription: %+v, %v", e, err)
		}
	}
}

// TestEvents_After checks that pages of any size add up to the whole list if each page starts after
// the last row of the previous one, even if many events have the same time.
func TestEvents_After(t *testing.T) {
	d := newDesk(t, func(o *tracking.Options) { o.Decode = exact })
	accounts := []string{"acct_second", shopAt, otherAt}
	for _, at := range accounts[:2] {
		if _, err := d.service.Register(t.Context(), shopAccount, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
		t.Fatal(err)
	}
	midnight := shopStart.Truncate(24 * time.Hour)
	for i := range 60 {
		exactly = midnight.Add(time.Duration(i/20-1) * time.Hour) // 20 events of each of three hours, around midnight
		v, err := d.service.Ingest(t.Context(), message(fmt.Sprint("evt_", (i*37)%60), "customer.subscription.updated",
			accounts[i%3], object(tracking.KindSubscription, "sub_1", "active", "", "")), webhook(true))
		if err != nil || v.Status != tracking.Ignored {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	for name, c := range map[string]struct {
		q tracking.EventQuery
		n int
	}{
		"all":               {tracking.EventQuery{Whole: true}, 60},
		"of an account":     {tracking.EventQuery{StripeAccount: shopAt}, 20},
		"of a subscription": {tracking.EventQuery{Subscription: "sub_1"}, 60},
		"of some hours":     {tracking.EventQuery{StripeAccount: shopAt, From: midnight, To: midnight.Add(time.Hour)}, 6},
		"of one hour":       {tracking.EventQuery{From: midnight, To: midnight.Add(time.Hour)}, 20},
	} {
		want := d.ids(c.q)
		if len(want) != c.n {
			t.Fatalf("%s: %d events, want %d", name, len(want), c.n)
		}
		backwards := slices.Clone(want)
		slices.Reverse(backwards)
		for _, size := range []int{1, 7, 20, -7, -20} { // below zero: newest first
			var got []string
			q, want := c.q, want
			if q.Limit = size; size < 0 {
				q.Limit, q.Newest, want = -size, true, backwards
			}
			for more := true; more; {
				more = false
				for e, err := range d.service.Events(t.Context(), q) {
					if err != nil {
						t.Fatal(err)
					}
					got, more, q.After = append(got, e.ID), true, e.Mark()
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, in pages of %d: got %v, want %v", name, size, got, want)
			}
		}
	}
}

// TestEvents_WalksFewDays checks that Events does not read every day between the years 1 and 9999.
func TestEvents_WalksFewDays(t *testing.T) {
	d := newDesk(t)
	spy := &queries{Store: d.mem}
	s := d.another(func(o *tracking.Options) { o.Store = spy }).service
	for _, q := range []tracking.EventQuery{{To: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
		{From: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}, {From: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{From: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), To: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}} {
		spy.n = 0
		for range s.Events(t.Context(), q) {
		}
		if spy.n > 440 {
			t.Errorf("%+v: %d days were read", q, spy.n)
		}
	}
}

// queries counts a store's queries.
type queries struct {
	store.Store
	n int
}

func (q *queries) Query(ctx context.Context, of store.Query) iter.Seq2[store.Item, error] {
	q.n++
	return q.Store.Query(ctx, of)
}

// exactly is when the events that exact decodes were published: to the millisecond, which none
// of Stripe's is.
var exactly time.Time

func exact(body []byte) (tracking.Event, error) {
	e, err := decode(body)
	e.Created = exactly
	return e, err
}

// TestLists checks that lists are sorted newest first and only contain the merchant's own rows.
func TestLists(t *testing.T) {
	d := newDesk(t)
	if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 5 {
		d.clock = d.clock.Add(time.Second)
		o := legacy()
		o.Merchant, o.Key = shopAccount, fmt.Sprint(i)
		c, err := d.service.CreatePurchase(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		want = slices.Insert(want, 0, c.Purchase.ID)
		d.takes(message(fmt.Sprint("evt_", i), "payment_intent.created", shopAt,
			object(tracking.KindPayment, fmt.Sprint("pi_", i), "requires_payment_method", c.Purchase.ID, tracking.Legacy,
				thing{"created": d.clock.Unix()})), tracking.Applied)
	}
	d.takes(paid("evt_b", otherAt, bPurchase), tracking.Applied)
	var purchases, payments []string
	for p, err := range d.service.Purchases(t.Context(), shopAccount, tracking.Mark{}) {
		if err != nil || p.Order.Amount != 1500 {
			t.Fatalf("%+v, %v", p, err)
		}
		purchases = append(purchases, p.ID)
	}
	for p, err := range d.service.Payments(t.Context(), shopAccount, tracking.Mark{}) {
		if err != nil {
			t.Fatal(err)
		}
		payments = append(payments, p.ID)
	}
	if !slices.Equal(purchases, want) || !slices.Equal(payments, []string{"pi_4", "pi_3", "pi_2", "pi_1", "pi_0"}) {
		t.Errorf("got %v and %v, want %v", purchases, payments, want)
	}
	purchases, payments = pages(t, func(m tracking.Mark) iter.Seq2[*tracking.Purchase, error] {
		return d.service.Purchases(t.Context(), shopAccount, m)
	}, func(p *tracking.Purchase) string { return p.ID }), pages(t, func(m tracking.Mark) iter.Seq2[*tracking.Payment, error] {
		return d.service.Payments(t.Context(), shopAccount, m)
	}, func(p *tracking.Payment) string { return p.ID })
	if !slices.Equal(purchases, want) || len(payments) != 5 || payments[4] != "pi_0" {
		t.Errorf("one by one: got %v and %v, want %v", purchases, payments, want)
	}
	for _, id := range []string{"", "pi_9", "ch_1"} {
		if _, err := d.service.Payment(t.Context(), shopAt, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("payment %q: %v", id, err)
		}
	}
	for _, id := range []string{"", "1", "pi_1", "0198f2c0-1111-7222-8333-000000000000"} {
		if _, err := d.service.Purchase(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("purchase %q: %v", id, err)
		}
	}
	// It stops when it is told to, and tells what goes wrong.
	for range d.service.Purchases(t.Context(), shopAccount, tracking.Mark{}) {
		break
	}
	d.stage.Store = down(d.mem)
	for _, err := range d.service.Events(t.Context(), tracking.EventQuery{}) {
		if err == nil {
			t.Error("a store that is down lists events")
		}
	}
	for _, err := range d.service.Waiting(t.Context()) {
		if err == nil {
			t.Error("a store that is down says what waits")
		}
	}
}

// pages reads a list one row at a time, each time after the previous row's mark.
func pages[T interface{ Mark() tracking.Mark }](t *testing.T, list func(tracking.Mark) iter.Seq2[T, error],
	id func(T) string) (ids []string) {
	t.Helper()
	var after tracking.Mark
	for n := -1; n < len(ids); {
		n = len(ids)
		for v, err := range list(after) {
			if err != nil {
				t.Fatal(err)
			}
			ids, after = append(ids, id(v)), v.Mark()
			break
		}
	}
	return ids
}
