package tracking_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

func TestRegister_Refuses(t *testing.T) {
	d := newDesk(t)
	d.stub.connected["acct_gone"] = fmt.Errorf("not ours: %w", tracking.ErrDisconnected)
	d.stub.connected["acct_slow"] = errors.New("no answer")
	before := d.state()
	for _, c := range []struct {
		account, at, field string
		err                error
	}{
		{"", otherAt, "account", nil},
		{"12", otherAt, "account", nil},
		{"{" + otherAccount + "}", otherAt, "account", nil},
		{"urn:uuid:" + otherAccount, otherAt, "account", nil},
		{strings.ReplaceAll(otherAccount, "-", ""), otherAt, "account", nil},
		{otherAccount[:35] + "g", otherAt, "account", nil},
		{otherAccount + " ", otherAt, "account", nil},
		{otherAccount, "", "stripe_account", nil},
		{otherAccount, "acct_", "stripe_account", nil},
		{otherAccount, "cus_1", "stripe_account", nil},
		{otherAccount, "acct_1/../2", "stripe_account", nil},
		{otherAccount, "acct_1#2", "stripe_account", nil},
		{otherAccount, "acct_" + strings.Repeat("1", 600), "stripe_account", nil},
		{otherAccount, shopAt, "", tracking.ErrOther},
		{otherAccount, "acct_gone", "", tracking.ErrDisconnected},
		{otherAccount, "acct_slow", "", d.stub.connected["acct_slow"]},
	} {
		_, err := d.service.Register(t.Context(), c.account, c.at)
		if f, ok := errors.AsType[*tracking.FieldError](err); ok && f.Field == c.field {
			continue
		}
		if c.field != "" || !errors.Is(err, c.err) {
			t.Errorf("%q, %.30q: got %v", c.account, c.at, err)
		}
	}
	if after := d.state(); after != before {
		t.Errorf("something was stored:\n%s\nbefore:\n%s", after, before)
	}
}

func TestRegister(t *testing.T) {
	d := newDesk(t)
	first, err := d.service.ConnectedAccount(t.Context(), shopAt)
	if err != nil {
		t.Fatal(err)
	}
	d.clock = d.clock.Add(time.Hour)
	again, err := d.service.Register(t.Context(), strings.ToUpper(shopAccount), shopAt)
	if err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("registered twice: got %+v, %v, want %+v", again, err, first)
	}
	if first.Merchant != shopAccount || first.Own || first.Status != tracking.Connected ||
		!first.Created.Equal(shopStart) {
		t.Errorf("got %+v", first)
	}
	d.stub.asked = nil
	own, err := d.service.Register(t.Context(), otherAccount, stripefake.DefaultAccount)
	if err != nil || !own.Own || len(d.stub.asked) > 0 {
		t.Errorf("our own: %+v, %v; asked: %v", own, err, d.stub.asked)
	}
	var list []string
	for a, err := range d.service.ConnectedAccounts(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(a.StripeAccount, a.Own))
	}
	if want := []string{stripefake.DefaultAccount + "true", shopAt + "false"}; !slices.Equal(list, want) &&
		!slices.Equal(list, []string{want[1], want[0]}) {
		t.Errorf("got %v, want %v", list, want)
	}
	for _, id := range []string{"acct_none", "", "shop", "acct_1#2"} {
		if _, err := d.service.ConnectedAccount(t.Context(), id); !errors.Is(err, tracking.ErrUnregistered) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestRegister_Moves checks that a merchant sells through the Stripe account it was last registered
// with, and that earlier purchases stay with the account that sold them.
func TestRegister_Moves(t *testing.T) {
	d := newDesk(t)
	at := func(key string) string {
		t.Helper()
		o := legacy()
		o.Merchant, o.Key = shopAccount, key
		c, err := d.service.CreatePurchase(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return c.Purchase.StripeAccount
	}
	register := func(id string) {
		t.Helper()
		if _, err := d.service.Register(t.Context(), shopAccount, id); err != nil {
			t.Fatal(err)
		}
	}
	got := []string{at("1")}
	register(otherAt)
	got = append(got, at("2"), at("1"))
	register(shopAt)
	got = append(got, at("3"), at("2"))
	if want := []string{shopAt, otherAt, shopAt, shopAt, otherAt}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// quarantined returns a desk with events of an unregistered account.
func quarantined(t testing.TB) *desk {
	d := newDesk(t)
	d.takes(paid("evt_1", otherAt, bPurchase), tracking.Quarantined)
	d.takes(message("evt_2", "customer.subscription.created", otherAt,
		object(tracking.KindSubscription, "sub_1", "active", "", "")), tracking.Quarantined)
	d.takes(message("evt_3", "account.application.deauthorized", otherAt, thing{"id": "ca_1", "object": "application"}),
		tracking.Quarantined)
	return d
}

// driven checks that each event of a desk that was quarantined was processed once.
func (d *desk) driven(name string) {
	d.Helper()
	d.clock = d.clock.Add(time.Minute)
	d.drain() // releases
	d.drain()
	d.deliver()
	for id, want := range map[string]tracking.EventStatus{"evt_1": tracking.Applied, "evt_2": tracking.Ignored,
		"evt_3": tracking.Applied} {
		if e := d.event(id); e.Status != want || id == "evt_1" && e.Merchant != otherAccount {
			d.Errorf("%s: %s is %s (%s) of %q, want it %s", name, id, e.Status, e.Reason, e.Merchant, want)
		}
	}
	if jobs := d.robot.jobs(); !slices.Equal(jobs, []string{"fulfil/" + bPurchase}) {
		d.Errorf("%s: jobs %v", name, jobs)
	}
	for e, err := range d.service.Waiting(d.Context()) {
		d.Errorf("%s: %v waits, %v", name, e, err)
	}
	d.waits(0, 0, 0)
}

func TestQuarantine(t *testing.T) {
	d := quarantined(t)
	var waiting []string
	for e, err := range d.service.Waiting(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, e.ID+" "+string(e.Status))
	}
	if want := []string{"evt_1 quarantined", "evt_2 quarantined", "evt_3 quarantined"}; !slices.Equal(waiting, want) {
		t.Errorf("got %v, want %v", waiting, want)
	}
	var rest []string
	for e, err := range d.service.Quarantined(t.Context(), tracking.Mark{StripeAccount: otherAt, ID: "evt_1"}) {
		if err != nil {
			t.Fatal(err)
		}
		rest = append(rest, e.ID)
	}
	if !slices.Equal(rest, []string{"evt_2", "evt_3"}) {
		t.Errorf("after the first one: %v", rest)
	}
	if got := d.items(tables.Tracking.Purchases.Name); len(got) > 0 {
		t.Errorf("stored before it was registered: %v", got)
	}
	if v, err := d.service.Replay(t.Context(), "evt_1"); err != nil || v.Status != tracking.Quarantined {
		t.Errorf("replayed while it is not registered: %+v, %v", v, err)
	}
	d.clock = d.clock.Add(40 * 24 * time.Hour) // they stay longer than events are kept
	if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
		t.Fatal(err)
	}
	d.clock = d.clock.Add(time.Minute)
	d.drain()
	d.drain()
	d.deliver()
	if jobs := d.robot.jobs(); !slices.Equal(jobs, []string{"fulfil/" + bPurchase}) {
		t.Errorf("jobs %v", jobs)
	}
	d.waits(0, 0, 0)
}

// TestRegister_Crashes checks that a repeated Register and the inbox complete a registration,
// whatever fault hits any of its commits.
func TestRegister_Crashes(t *testing.T) {
	lost := errors.New("the line is dead")
	for name, fault := range map[string]func(at int, phase storetest.Phase) (storetest.Hook, func() bool){
		"dies": dying,
		"unknown": func(at int, p storetest.Phase) (storetest.Hook, func() bool) {
			return failing(at, p, store.ErrUnknown, storetest.Commit)
		},
		"fails": func(at int, p storetest.Phase) (storetest.Hook, func() bool) {
			return failing(at, p, lost, storetest.Commit, storetest.Get, storetest.Query)
		},
	} {
		alone := false
		for at, more := 1, true; more; at++ {
			for _, phase := range []storetest.Phase{storetest.Before, storetest.Before, storetest.After, storetest.After} {
				alone = !alone
				d := quarantined(t)
				hook, met := fault(at, phase)
				var err error
				d.during(hook, func() { _, err = d.service.Register(t.Context(), otherAccount, otherAt) })
				if more = met(); !more {
					break
				}
				if errors.Is(err, tracking.ErrUnregistered) {
					t.Errorf("%s at %d: Register calls an account that it could not store unregistered: %v", name, at, err)
				}
				// Whoever registered it tries again, unless all that is left is the inbox's.
				if _, there := d.service.ConnectedAccount(t.Context(), otherAt); err != nil && (there != nil || !alone) {
					if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
						t.Fatalf("%s at %d: again: %v", name, at, err)
					}
				}
				d.driven(fmt.Sprint(name, " at ", at, " phase ", phase))
			}
			if at > 1 && !more && at < 4 {
				t.Errorf("%s: only %d operations", name, at-1)
			}
		}
	}
}

// TestRegister_Races delivers an event at every moment of its account's registration, and registers
// the account at every moment of the event's processing.
func TestRegister_Races(t *testing.T) {
	for at, more := 1, true; more; at++ {
		d := newDesk(t)
		n, came := 0, false
		second := d.another()
		d.during(func(storetest.Operation, storetest.Phase) error {
			if n++; n == at {
				came = true
				if _, err := second.service.Ingest(t.Context(), paid("evt_1", otherAt, bPurchase), webhook(true)); err != nil {
					t.Error(err)
				}
			}
			return nil
		}, func() {
			if _, err := d.service.Register(t.Context(), otherAccount, otherAt); err != nil {
				t.Error(err)
			}
		})
		if more = came; !more {
			if at < 4 {
				t.Errorf("only %d moments", at)
			}
			break
		}
		d.clock = d.clock.Add(time.Minute)
		d.drain()
		d.drain()
		d.is("evt_1", tracking.Applied)
	}
	for at, more := 1, true; more; at++ {
		d := newDesk(t)
		n, came := 0, false
		second := d.another()
		d.during(func(storetest.Operation, storetest.Phase) error {
			if n++; n == at {
				came = true
				if _, err := second.service.Register(t.Context(), otherAccount, otherAt); err != nil {
					t.Error(err)
				}
				second.clock = second.clock.Add(time.Minute)
				if _, err := second.service.DrainInbox(t.Context()); err != nil { // it releases what there is
					t.Error(err)
				}
			}
			return nil
		}, func() { d.take(paid("evt_1", otherAt, bPurchase)) })
		if more = came; !more {
			if at < 4 {
				t.Errorf("only %d moments", at)
			}
			break
		}
		d.clock = d.clock.Add(time.Minute)
		d.drain()
		d.drain()
		d.is("evt_1", tracking.Applied)
	}
}

// TestConnection checks that Stripe's own answer decides between two contradicting events, in
// whatever order they arrive.
func TestConnection(t *testing.T) {
	gone, back := "account.application.deauthorized", "account.application.authorized"
	for _, order := range [][]string{{gone, back}, {back, gone}, {gone}, {gone, gone}} {
		for want, answer := range map[tracking.AccountStatus]error{tracking.Connected: nil,
			tracking.Disconnected: tracking.ErrDisconnected} {
			d := newDesk(t)
			d.stub.connected[shopAt] = answer
			for i, typ := range order {
				d.takes(message(fmt.Sprint("evt_", i), typ, shopAt, thing{"id": "ca_1", "object": "application"}),
					tracking.Received)
			}
			d.stub.down = errors.New("no answer")
			if r := d.drain(); r.Failed != len(order) {
				t.Errorf("%v while Stripe does not answer: %+v", order, r)
			}
			d.stub.down = nil
			d.clock = d.clock.Add(time.Minute)
			d.drain()
			a, err := d.service.ConnectedAccount(t.Context(), shopAt)
			if err != nil || a.Status != want || a.Merchant != shopAccount {
				t.Errorf("%v, %s: got %+v, %v", order, want, a, err)
			}
			for i := range order {
				d.is(fmt.Sprint("evt_", i), tracking.Applied)
			}
			if said := strings.Contains(d.said.String(), shopAt); said != (answer != nil) {
				t.Errorf("logged: %s", d.said)
			}
			// It comes back by being registered again.
			d.stub.connected[shopAt] = nil
			if a, err := d.service.Register(t.Context(), shopAccount, shopAt); err != nil || a.Status != tracking.Connected {
				t.Errorf("registered again: %+v, %v", a, err)
			}
		}
	}
}

// TestConnection_WakesThePoller checks that the event that restores access wakes the poller. One
// refusal makes the poller back off, even if the account was never marked as disconnected.
func TestConnection_WakesThePoller(t *testing.T) {
	d := newDesk(t)
	asleep := tracking.PollState{Error: "refused", Quiet: 6, Next: d.clock.Add(6 * time.Hour)}
	if err := d.service.SavePoll(t.Context(), shopAt, asleep); err != nil {
		t.Fatal(err)
	}
	d.stub.connected[shopAt] = nil
	d.takes(message("evt_1", "account.application.authorized", shopAt, thing{"id": "ca_1", "object": "application"}),
		tracking.Received)
	d.drain()
	a, err := d.service.ConnectedAccount(t.Context(), shopAt)
	if err != nil || a.Polled.Next.After(d.clock) || a.Polled.Quiet != 0 {
		t.Errorf("got %+v, %v; want it due at once", a, err)
	}
}

// TestSavePoll checks that SavePoll never moves Through back and never changes the account's other
// fields.
func TestSavePoll(t *testing.T) {
	d := newDesk(t)
	at := func(n int) time.Time { return shopStart.Add(time.Duration(n) * time.Hour) }
	want := tracking.PollState{Through: at(5), Checked: at(6), Next: at(7), Quiet: 3, Swept: at(1), Error: "no"}
	for _, p := range []tracking.PollState{want,
		{Through: at(2), Checked: at(6), Next: at(7), Quiet: 3, Swept: at(1), Error: "no"}} {
		if err := d.service.SavePoll(t.Context(), shopAt, p); err != nil {
			t.Fatal(err)
		}
	}
	a, err := d.service.ConnectedAccount(t.Context(), shopAt)
	if err != nil || a.Polled != want || a.Merchant != shopAccount || a.Status != tracking.Connected {
		t.Errorf("got %+v, %v, want polled %+v", a, err, want)
	}
	if err := d.service.SavePoll(t.Context(), "acct_none", want); !errors.Is(err, tracking.ErrUnregistered) {
		t.Errorf("of none: %v", err)
	}
}
