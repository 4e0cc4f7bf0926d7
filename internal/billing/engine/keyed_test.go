package engine_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An operation is a request that changes something.
type operation struct {
	name  string
	setUp func(*testing.T) (*world, billing.Name)
	do    func(context.Context, *process, billing.Name) error
	undo  func(context.Context, *process, billing.Name) error // what somebody may do afterwards; nil: nothing
	reads bool                                                // a repeated request only reads the object
	steps bool                                                // a lost answer may take one more commit
}

func operations() []operation {
	on := func(at string, change ...func(*billing.NewSubscription)) func(*testing.T) (*world, billing.Name) {
		return func(*testing.T) (*world, billing.Name) {
			w := newWorld(at, planted{})
			return w, w.create(one("2024-01-31", change...))
		}
	}
	plain, due := on("2024-01-20T09:00"), on("2024-02-10T09:00")
	open := func(*testing.T) (*world, billing.Name) {
		w, n := on("2024-01-31T09:00", method("pm_card_visa_chargeDeclined"))(nil)
		w.start().run(civil.Date{})
		return w, n
	}
	parked := func(*testing.T) (*world, billing.Name) {
		w, n := on("2024-01-31T09:00", method(""))(nil)
		w.start().run(civil.Date{})
		_, err := w.start().Attach(context.Background(), n.Account, billing.Attachment{Method: "pm_card_visa"})
		if s := w.sub(n); err != nil || s.Status != billing.Active {
			panic(w.describe(n))
		}
		return w, n
	}
	paused := func(t *testing.T) (*world, billing.Name) {
		w, n := plain(t)
		_, err := w.start().Pause(t.Context(), n)
		mustNot(t, err)
		w.goTo(date("2024-05-10"))
		return w, n
	}
	request := func(do func(*engine.Engine, context.Context, billing.Name) (*billing.Subscription, error)) func(context.Context, *process, billing.Name) error {
		return func(ctx context.Context, p *process, n billing.Name) error {
			_, err := do(p.Engine, ctx, n)
			return err
		}
	}
	pause, resume := request((*engine.Engine).Pause), request((*engine.Engine).Resume)
	update := func(c billing.Change) func(context.Context, *process, billing.Name) error {
		return request(func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			return e.UpdateSubscription(ctx, n, c)
		})
	}
	attach := func(ctx context.Context, p *process, n billing.Name) error {
		_, err := p.Attach(ctx, n.Account, billing.Attachment{Method: "pm_card_visa"})
		return err
	}
	return []operation{
		{name: "create a subscription and its account", setUp: plain, reads: true,
			do: func(ctx context.Context, p *process, _ billing.Name) error {
				_, err := p.CreateSubscription(ctx, one("2024-02-29", of("a2")))
				return err
			}},
		{name: "create a subscription", setUp: plain, reads: true, do: func(ctx context.Context, p *process, _ billing.Name) error {
			n := one("2024-02-29")
			n.ID = "s2"
			_, err := p.CreateSubscription(ctx, n)
			return err
		}},
		{name: "create an account", setUp: plain, reads: true, do: func(ctx context.Context, p *process, _ billing.Name) error {
			_, err := account.Create(ctx, p.Records, "a2", billing.Account{Email: "bob@example.com"})
			return err
		}},
		{name: "update an account", setUp: plain, do: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.SetEmail(ctx, n.Account, "new@example.com")
			return err
		}, undo: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.SetEmail(ctx, n.Account, "newer@example.com")
			return err
		}},
		{name: "attach", setUp: open, do: attach},
		{name: "attach the same method again", do: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.Attach(ctx, n.Account, billing.Attachment{Method: lostCard})
			return err
		}, setUp: func(t *testing.T) (*world, billing.Name) {
			w := newWorld("2024-01-31T09:00", planted{})
			n := w.create(one("2024-01-31", method("")))
			w.attach(t, billing.Attachment{Method: lostCard})
			w.start().run(civil.Date{})
			w.pass(time.Hour)
			if s := w.sub(n); s.Status != billing.PastDue {
				t.Fatal(w.describe(n))
			}
			return w, n
		}},
		{name: "attach what is attached", setUp: parked, do: attach},
		{name: "card link", setUp: func(t *testing.T) (*world, billing.Name) {
			w, _ := newPurse("2024-01-20T09:00")
			return w, w.create(one("2024-01-31", method("")))
		}, do: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.Cards().CardLink(ctx, n.Account, "")
			return err
		}},
		{name: "pause", setUp: plain, do: pause, undo: resume},
		{name: "pause an open period", setUp: open, do: pause, undo: resume},
		{name: "cancel", setUp: due, do: request(func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			return e.Cancel(ctx, n, false)
		})},
		{name: "cancel an open period", setUp: open, do: request(func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			return e.Cancel(ctx, n, false)
		})},
		{name: "cancel at the end", setUp: plain, undo: resume,
			do: request(func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
				return e.Cancel(ctx, n, true)
			})},
		{name: "skip until", setUp: due, do: request(func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			return e.SkipUntil(ctx, n, date("2024-02-11"))
		})},
		{name: "skip until, with an open period", setUp: open, do: request(func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			return e.SkipUntil(ctx, n, date("2024-02-01"))
		})},
		{name: "skip nothing", setUp: plain, do: request(func(e *engine.Engine, ctx context.Context, n billing.Name) (*billing.Subscription, error) {
			return e.SkipUntil(ctx, n, date("2024-01-20"))
		})},
		{name: "resume", setUp: paused, do: resume, undo: pause},
		{name: "resume in several commits", do: resume, undo: pause, setUp: func(t *testing.T) (*world, billing.Name) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-26", func(n *billing.NewSubscription) {
				n.Interval, n.PaymentDay = civil.Interval{N: 1, Unit: civil.Week}, 5
			}))
			_, err := w.start().Pause(t.Context(), n)
			mustNot(t, err)
			w.goTo(date("2027-05-10"))
			return w, n
		}},
		{name: "amount", setUp: plain, do: update(billing.Change{Amount: new(usd(1999))}), undo: update(billing.Change{Amount: new(usd(2999))})},
		{name: "plan", setUp: plain, do: update(billing.Change{SKU: new("silver"), From: date("2024-03-01")}),
			undo: update(billing.Change{SKU: new("bronze"), From: date("2024-03-01")})},
		{name: "method", setUp: open, do: update(billing.Change{Method: new("pm_card_visa")})},
		{name: "charge a past period", do: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{})
			return err
		}, setUp: func(t *testing.T) (*world, billing.Name) {
			w, n := failed(t)
			w.newMethod(n, "pm_card_visa_chargeDeclined")
			return w, n
		}},
		{name: "charge the next period", setUp: due, do: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{})
			return err
		}},
		{name: "charge the next period, declined", setUp: on("2024-02-10T09:00", method("pm_card_visa_chargeDeclined")),
			do: func(ctx context.Context, p *process, n billing.Name) error {
				_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{})
				return err
			}},
		{name: "charge the next period, declined for good", setUp: on("2024-02-10T09:00", method(lostCard)),
			do: func(ctx context.Context, p *process, n billing.Name) error {
				_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{})
				return err
			}},
		{name: "charge the next period, undecided", setUp: on("2024-02-10T09:00", method("pm_sandbox_processing")),
			do: func(ctx context.Context, p *process, n billing.Name) error {
				_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{})
				return err
			}},
		{name: "charge before the retry day", setUp: open, steps: true,
			do: func(ctx context.Context, p *process, n billing.Name) error {
				_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{})
				return err
			}},
		{name: "charge the next period, awaited", setUp: on("2024-02-10T09:00", method("pm_card_authenticationRequired")),
			do: func(ctx context.Context, p *process, n billing.Name) error {
				_, err := p.ChargePeriod(ctx, n, engine.PeriodCharge{})
				return err
			}},
		{name: "charge the parked period", do: func(ctx context.Context, p *process, n billing.Name) error {
			_, _, err := p.ChargeParked(ctx, n)
			return err
		}, setUp: func(t *testing.T) (*world, billing.Name) {
			w := newWorld("2024-01-20T09:00", planted{})
			n := w.create(one("2024-01-31"))
			w.goTo(date("2025-03-05"))
			w.start().run(civil.Date{})
			if s := w.sub(n); s.Status != billing.ParkedState {
				t.Fatal(w.describe(n))
			}
			return w, n
		}},
		{name: "receipt", setUp: due, do: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.CreateReceipt(ctx, n, engine.ManualPayment{Note: "cash"})
			return err
		}},
		{name: "receipt of an open period", setUp: open, do: func(ctx context.Context, p *process, n billing.Name) error {
			_, err := p.CreateReceipt(ctx, n, engine.ManualPayment{Note: "cash"})
			return err
		}},
		{name: "refund", setUp: func(*testing.T) (*world, billing.Name) { return charged(planted{}) },
			do: func(ctx context.Context, p *process, n billing.Name) error {
				_, _, err := p.Refunds().Refund(ctx, refund.Order{Name: n, Amount: usd(500)})
				return err
			}},
		{name: "refund the rest", setUp: func(*testing.T) (*world, billing.Name) { return charged(planted{}) },
			do: func(ctx context.Context, p *process, n billing.Name) error {
				_, _, err := p.Refunds().Refund(ctx, refund.Order{Name: n})
				return err
			}},
		{name: "create an API key", setUp: plain, reads: true, do: func(ctx context.Context, p *process, _ billing.Name) error {
			_, err := ring(p).Create(ctx, &key.Key{Name: "shop", Scope: key.Read})
			return err
		}},
		{name: "revoke an API key", reads: true, do: func(ctx context.Context, p *process, _ billing.Name) error {
			_, err := ring(p).Revoke(ctx, "shop")
			return err
		}, setUp: func(t *testing.T) (*world, billing.Name) {
			w, n := plain(t)
			_, err := ring(w.start()).Create(t.Context(), &key.Key{Name: "shop", Scope: key.Read})
			mustNot(t, err)
			return w, n
		}},
		{name: "charging off", setUp: plain, reads: true,
			do: func(ctx context.Context, p *process, _ billing.Name) error { return p.SetCharging(ctx, false, "audit") }},
		{name: "settings", setUp: plain, reads: true, do: func(ctx context.Context, p *process, _ billing.Name) error {
			_, err := settings.Change(ctx, p.Records, func(s *settings.Settings) error { s.ReceiptMonths++; return nil })
			return err
		}},
		{name: "replay", reads: true, do: func(ctx context.Context, p *process, _ billing.Name) error {
			return outbox.New(p.Store, p.w.tables.Outbox, p.w.now, nil, nil).Replay(ctx, "mail 1")
		}, setUp: func(t *testing.T) (*world, billing.Name) {
			w, n := plain(t)
			mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.Outbox.Name, store.NewItem(
				store.Attribute{Name: w.tables.Outbox.PartitionKey, Value: store.S("OUT#DEAD")},
				store.Attribute{Name: w.tables.Outbox.SortKey, Value: store.S("2024-01-01T00:00:00.000Z#mail 1")},
				store.Attribute{Name: schema.Kind, Value: store.S("receipt")}))))
			return w, n
		}},
	}
}

func ring(p *process) *key.Ring {
	return key.New(key.Options{Store: p.Store, Table: p.Table, Now: p.w.now})
}

// ask does what web.Server.Once does: it looks for the key's row, and then asks for the operation or for its
// repetition.
func (o *operation) ask(p *process, n billing.Name, hash string) error {
	ctx := p.w.keyed(context.Background(), "k")
	c := call.Of(ctx)
	c.Hash, c.Object, c.Actor = hash, "accounts/"+n.Account, "key shop"
	row, err := c.Find(ctx, p.Store)
	switch {
	case err == nil && row.Hash != hash:
		return &call.RepeatedError{Row: row}
	case err == nil && o.reads:
		return nil
	case billing.IgnoreNotFound(err) != nil:
		return err
	}
	if err = o.do(ctx, p, n); err == nil || c.Stored() || c.Repeats() != nil {
		return err
	}
	if _, ferr := c.Find(ctx, p.Store); ferr == nil { // another process was faster
		return o.ask(p, n, hash)
	}
	return err
}

// stored is everything that is stored about customers, keys, settings and mail, without what is random, and how
// often each item was written.
func (w *world) stored(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, table := range []*store.Table{&w.tables.RecurringPayments, &w.tables.Outbox} {
		for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: table.Name}) {
			mustNot(t, err)
			k := table.KeyOf(it)
			switch {
			case strings.HasPrefix(k.PK, "UNPAID#"): // the run's ID is random
				lines = append(lines, "UNPAID "+k.SK+" "+it.Str(schema.State))
			case strings.HasPrefix(k.PK, "RUN#"), k.PK == "KEYS", strings.HasPrefix(k.SK, "CHANGE#"):
				lines = append(lines, k.PK+" "+it.Str(schema.Name)+" "+it.Str(schema.RevokedDate))
			case strings.HasPrefix(k.PK, "KEY#"):
				lines = append(lines, k.PK)
			case k.PK == "META":
				lines = append(lines, fmt.Sprint("charging ", it.Get(schema.Charging).Bool()))
			case strings.HasPrefix(k.SK, history.Prefix):
				it = it.Clone()
				it.Remove(schema.SK)
				lines = append(lines, "history:"+written(it))
			case table == &w.tables.Outbox:
				lines = append(lines, fmt.Sprint(it.Str(schema.Kind), " dead ", strings.HasSuffix(k.PK, "#DEAD")))
			default:
				lines = append(lines, random.ReplaceAllString(written(it), "$1"))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// versions are the versions of items.
var versions = regexp.MustCompile(` Version=[^ ]* [^ ]* [^ ]* [^ ]*`)

// random is the random part of the references of intents and refunds.
var random = regexp.MustCompile(`((?:pi|re|ch)_sandbox_|rf_)[0-9a-z]{8,}`)

// written is the item as text.
func written(it store.Item) string {
	var b strings.Builder
	for _, a := range it {
		fmt.Fprintf(&b, " %s=", a.Name)
		switch v := a.Value; v.Kind() {
		case store.KindMap:
			fmt.Fprintf(&b, "{%s }", written(v.Map()))
		case store.KindList:
			for _, v := range v.List() {
				fmt.Fprintf(&b, "[%s]", written(store.NewItem(store.Attribute{Name: "", Value: v})))
			}
		case store.KindString:
			b.WriteString(v.Str())
		default:
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}

// TestKeyed_CrashAtEveryPoint: the process dies, or an answer is lost, before or after each commit and call
// of each request. The same key brings the request to the same end as without the fault, and does nothing
// after it, also when somebody has undone its effect. Another request under the key is refused.
func TestKeyed_CrashAtEveryPoint(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			w, n := o.setUp(t)
			mustNot(t, o.ask(w.start(), n, "h"))
			want, points := w.stored(t), 0
			for _, crash := range []bool{true, false} {
				for point := 1; ; point++ {
					w, n := o.setUp(t)
					p := w.start(fault{point, crash})
					_ = o.ask(p, n, "h")
					if !p.faults.struck() {
						break
					}
					points++
					at := fmt.Sprintf("crash %t at point %d", crash, point)
					for range 3 {
						if err := o.ask(w.start(), n, "h"); err != nil {
							t.Fatalf("%s: %v", at, err)
						}
						if got := w.stored(t); got != want && !(o.steps && versions.ReplaceAllString(got, "") == versions.ReplaceAllString(want, "")) {
							t.Fatalf("%s:\n%s\nwithout it:\n%s", at, got, want)
						}
					}
					_, repeated := errors.AsType[*call.RepeatedError](o.ask(w.start(), n, "other"))
					if !repeated || len(w.spy.keys) != 1 {
						t.Errorf("%s: another request: %t, keys %v", at, repeated, w.spy.keys)
					}
					if o.undo != nil {
						mustNot(t, o.undo(t.Context(), w.start(), n))
						undone := w.stored(t)
						if err := o.ask(w.start(), n, "h"); err != nil || w.stored(t) != undone {
							t.Fatalf("%s: %v, and undone, it did it again:\n%s\nnot\n%s", at, err, w.stored(t), undone)
						}
					}
				}
			}
			if points < 2 {
				t.Errorf("only %d points", points)
			}
		})
	}
}

// TestKeyed_Twins: two processes get one request at once. It is done once, and both have its end.
func TestKeyed_Twins(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			w, n := o.setUp(t)
			mustNot(t, o.ask(w.start(), n, "h"))
			want := w.stored(t)
			for seed := range uint64(20) {
				w, n := o.setUp(t)
				w.twins = true
				var threads []func(func())
				for range 2 {
					p := w.start()
					threads = append(threads, func(edge func()) {
						p.edge = edge
						if err := o.ask(p, n, "h"); err != nil && !errors.Is(err, billing.ErrState) {
							t.Errorf("seed %d: %v", seed, err)
						}
					})
				}
				interleave(seeded(seed), threads)
				mustNot(t, o.ask(w.start(), n, "h"))
				if got := w.stored(t); got != want {
					t.Fatalf("seed %d:\n%s\nalone:\n%s", seed, got, want)
				}
			}
		})
	}
}

// TestCardLink_Key: a repeated call asks for the same link under the same key at the processor, also in another
// process, and another call for another link.
func TestCardLink_Key(t *testing.T) {
	w, p := newPurse("2024-01-20T09:00")
	n := w.create(one("2024-01-31", method("")))
	for _, key := range []string{"a", "a", "b", "", ""} {
		_, err := w.start().Cards().CardLink(w.keyed(t.Context(), key), n.Account, "")
		mustNot(t, err)
	}
	keys := map[string]int{}
	for _, l := range p.links {
		keys[l.Key]++
	}
	if len(keys) != 4 || keys[p.links[0].Key] != 2 || p.links[0].Key != p.links[1].Key {
		t.Error(keys)
	}
}

// TestExpect: a request with a version changes the object only if it has that version, and knows its own commit
// again if the reply is lost.
func TestExpect(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for _, o := range operations() {
			if !slices.Contains([]string{"amount", "pause an open period", "update an account", "attach", "resume in several commits"}, o.name) {
				continue
			}
			w, n := o.setUp(t)
			expect := w.sub(n).Version
			if a, err := w.start().Account(t.Context(), n.Account); o.name == "attach" || o.name == "update an account" {
				mustNot(t, err)
				expect = a.Version
			}
			before := w.stored(t)
			for _, wrong := range []int64{expect + 1, expect + 2} {
				ctx := w.keyed(t.Context(), "")
				call.Of(ctx).Expect = wrong
				if err := o.do(ctx, w.start(), n); !errors.Is(err, call.ErrVersion) || w.stored(t) != before {
					t.Errorf("%s: version %d: %v", o.name, wrong, err)
				}
			}
			ctx, p := w.keyed(t.Context(), ""), w.start()
			if lost {
				p = w.start(fault{2, false})
			}
			call.Of(ctx).Expect = expect
			if err := o.do(ctx, p, n); err != nil || w.stored(t) == before {
				t.Errorf("%s: lost %t: %v", o.name, lost, err)
			}
		}
	}
}
