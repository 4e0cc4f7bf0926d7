package tracking_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// A view is the relevant part of a store's content.
type view struct {
	key           [sha256.Size]byte // of all of it but times, versions, reasons and histories
	fulfil        tracking.EffectState
	unsubscribe   tracking.EffectState
	fulfilled     bool
	kind          tracking.Kind
	courses       []string
	subscriptions map[string]store.Item
	payments      map[string]store.Item
	events        map[string]tracking.EventStatus
	rows          []row
	wrong         []string // what must not be, whatever has happened
	problem       string
	bill          bool // an invoice without a subscription was told of, which may be paid
}

// A row is an outbox row.
type row struct {
	key  store.Key
	lane outbox.Queue
	id   string
	due  time.Time
	dead bool
	told bool // it has failed before
}

// untold lists the attributes that do not make two stores different: times, row versions, and texts
// for people.
var untold = map[string]bool{
	schema.TrackedVersion: true, schema.TrackedHistory: true, schema.TrackedCreated: true, schema.TrackedUpdated: true,
	schema.TrackedReceived: true,
	schema.TrackedApplied:  true, schema.TrackedBody: true, schema.TrackedReason: true, schema.EffectAsked: true,
	schema.EffectDone: true, schema.EffectAt: true,
	schema.TrackedExpiration: true, schema.CreatedDate: true, schema.LastError: true, schema.TrackedDate: true,
	schema.TrackedTime: true, schema.TrackedTimestamp: true,
	schema.TrackedSource: true, schema.DeadDate: true, schema.TrackedPolled: true,
}

// see reads a store. If keyed is set, it also computes the view's key.
func see(s store.Store, purchase string, keyed bool) (*view, error) {
	v := &view{subscriptions: map[string]store.Item{}, payments: map[string]store.Item{},
		events: map[string]tracking.EventStatus{}}
	var lines []string
	for _, t := range used {
		for it, err := range s.Scan(context.Background(), store.Scan{Table: t.Name}) {
			if err != nil {
				return nil, err
			}
			if t.Name == tables.Outbox.Name {
				r := rowOf(it)
				v.rows = append(v.rows, r)
				it.Set(schema.SK, store.S(r.id)) // a scan's item is ours
			} else {
				v.take(t.Name, it, purchase)
			}
			if keyed {
				lines = append(lines, string(written([]byte(t.Name), it)))
			}
		}
	}
	if keyed {
		slices.Sort(lines)
		v.key = sha256.Sum256([]byte(strings.Join(lines, "\n")))
	}
	v.check(purchase)
	return v, nil
}

func rowOf(it store.Item) row {
	r := row{key: store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)}, told: it.Has(schema.Tries)}
	due, id, _ := strings.Cut(r.key.SK, "#")
	r.due, _ = time.Parse("2006-01-02T15:04:05.000Z", due)
	r.id, r.lane, r.dead = id, laneOf(r.key), strings.HasSuffix(r.key.PK, "#DEAD")
	return r
}

func (v *view) take(table string, it store.Item, purchase string) {
	t := tables.Tracking
	of := it.Str(schema.TrackedPurchase)
	switch table {
	case t.Events.Name:
		if !it.Has(schema.TrackedType) {
			return // it stands for an event that has not come, or marks a foreign payment
		}
		status := tracking.EventStatus(it.Str(schema.TrackedStatus))
		v.events[it.Str(schema.TrackedID)] = status
		v.bill = v.bill || status == tracking.Applied && it.Str(schema.TrackedSubscription) == "" &&
			strings.HasPrefix(it.Str(schema.TrackedType), "invoice.")
	case t.Purchases.Name:
		of = it.Str(schema.TrackedID)
		v.kind, v.problem = tracking.Kind(it.Str(schema.TrackedKind)), it.Str(schema.TrackedProblem)
		v.fulfilled = it.Get(schema.TrackedFulfilled).Bool()
		v.fulfil = tracking.EffectState(it.Get(schema.TrackedFulfilment).Map().Str(schema.EffectState))
		v.unsubscribe = tracking.EffectState(it.Get(schema.TrackedUnsubscribe).Map().Str(schema.EffectState))
		for _, c := range it.Get(schema.TrackedCourses).Map() {
			v.courses = append(v.courses, c.Value.Map().Str(schema.TrackedStatus)+" "+c.Value.Map().Str(schema.TrackedEnding))
		}
	case t.Payments.Name:
		v.payments[it.Str(schema.TrackedID)] = it
	case t.Subscriptions.Name:
		v.subscriptions[it.Str(schema.TrackedID)] = it
	}
	if table != t.Events.Name && table != t.Registry.Name && of != purchase {
		v.wrong = append(v.wrong, fmt.Sprintf("%s has a row of purchase %q", table, of))
	}
}

// written appends the item without the untold attributes.
func written(b []byte, it store.Item) []byte {
	for _, a := range it {
		if !untold[a.Name] {
			b = append(append(b, '|'), a.Name...)
			b = writtenValue(append(b, '='), a.Value)
		}
	}
	return b
}

func writtenValue(b []byte, v store.Value) []byte {
	switch v.Kind() {
	case store.KindMap:
		return append(written(append(b, '{'), v.Map()), '}')
	case store.KindList:
		for _, e := range v.List() {
			b = append(writtenValue(b, e), ',')
		}
		return b
	case store.KindBool:
		return strconv.AppendBool(b, v.Bool())
	}
	return append(append(append(b, v.Str()...), v.Num()...), v.Raw()...)
}

var effectRank = map[tracking.EffectState]int{tracking.NotAsked: 0, tracking.Waits: 1, tracking.Asked: 2,
	tracking.Begun: 3, tracking.DoneWith: 4}

// is counts the subscriptions with this state.
func (v *view) is(status tracking.SubscriptionStatus) (n int) {
	for _, s := range v.subscriptions {
		if s.Str(schema.TrackedStatus) == string(status) {
			n++
		}
	}
	return n
}

// paid reports whether a payment is paid. It does not count a partial payment of an invoice,
// because the invoice reports when it is paid.
func (v *view) paid() bool {
	for _, p := range v.payments {
		if p.Str(schema.TrackedStatus) == string(tracking.PaymentPaid) && !p.Get(schema.TrackedAttached).Bool() {
			return true
		}
	}
	return false
}

// courseOf counts the subscription states so far that begin with the prefix: active, or "terminated
// canceled".
func (v *view) courseOf(prefix string) (n int) {
	for _, c := range v.courses {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// ends reports whether the end of all subscriptions requires an unsubscribe.
func (v *view) ends() bool {
	over := v.courseOf("terminated")
	return over > 0 && over == len(v.courses) && v.courseOf("terminated completed") == 0
}

// idle reports whether the work of the row is done and never returns.
func (v *view) idle(r row) bool {
	event, is := strings.CutPrefix(r.id, "event/")
	switch {
	case r.lane == outbox.Inbox:
		return is && v.events[event].Final()
	case strings.HasPrefix(r.id, "fulfil/"):
		return v.fulfil == tracking.DoneWith
	}
	return v.unsubscribe == tracking.DoneWith
}

func (v *view) waits(lane outbox.Queue, id string) bool {
	return slices.ContainsFunc(v.rows, func(r row) bool { return r.lane == lane && r.id == id && !r.dead })
}

// check reports content that a store must never hold.
func (v *view) check(purchase string) {
	must := func(ok bool, text string, args ...any) {
		if !ok {
			v.wrong = append(v.wrong, fmt.Sprintf(text, args...))
		}
	}
	recurs := v.kind == tracking.Subscribe || v.kind == tracking.SplitPayment
	asked := v.fulfil != tracking.NotAsked
	must(asked || v.courseOf("active") == 0, "a subscription is active, and no fulfilment was asked for")
	must(asked || recurs || !v.paid(), "it is paid, and no fulfilment was asked for")
	must(asked || v.unsubscribe == tracking.NotAsked, "unsubscribe was asked for, and fulfilment was not")
	must(v.unsubscribe == tracking.NotAsked || v.unsubscribe == tracking.Waits ||
		v.fulfil == tracking.DoneWith, "unsubscribe goes before the fulfilment is done")
	must(v.fulfilled == (v.fulfil == tracking.DoneWith), "fulfilled is %v, and the fulfilment %q", v.fulfilled, v.fulfil)
	must(v.unsubscribe != tracking.DoneWith || v.courseOf("active") == 0 ||
		v.problem != "", "the buyer was unsubscribed and has an active subscription, and nobody is told")
	must(!v.ends() || !asked || v.unsubscribe != tracking.NotAsked,
		"all subscriptions have ended, and no unsubscribe was asked for")
	must(v.fulfil != tracking.Asked || v.waits(outbox.Actions, "fulfil/"+purchase),
		"the fulfilment that was asked for is lost")
	must(v.unsubscribe != tracking.Asked && v.unsubscribe != tracking.Begun ||
		v.waits(outbox.Actions, "unsubscribe/"+purchase), "the unsubscribe that was asked for is lost")
	for id, status := range v.events {
		must(status.Final() || status == tracking.Received, "event %s is %s", id, status)
		must(status != tracking.Received || v.waits(outbox.Inbox, "event/"+id),
			"event %s is received, and nobody works on it", id)
		must(status != tracking.Refused, "event %s was refused", id)
	}
	for _, r := range v.rows {
		must(!r.dead, "%s was given up", r.id)
	}
	for id := range v.subscriptions {
		must(!strings.HasPrefix(id, "sub_sched_"), "a row of %s stays beside its subscription", id)
	}
}

// after looks for what no step may do. alone: it was one step and not two, of two processes. billed: a
// look at Stripe shows that the invoice is paid.
func (v *view) after(before *view, alone, billed bool) (wrong []string) {
	must := func(ok bool, text string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(text, args...))
		}
	}
	must(effectRank[v.fulfil] >= effectRank[before.fulfil], "the fulfilment goes from %q to %q", before.fulfil, v.fulfil)
	withdrawn := v.unsubscribe == tracking.NotAsked && effectRank[before.unsubscribe] < effectRank[tracking.Begun] &&
		!v.ends()
	must(withdrawn || effectRank[v.unsubscribe] >= effectRank[before.unsubscribe], "the unsubscribe goes from %q to %q",
		before.unsubscribe, v.unsubscribe)
	if alone && before.fulfil == tracking.NotAsked && v.fulfil != tracking.NotAsked {
		recurs := v.kind == tracking.Subscribe || v.kind == tracking.SplitPayment
		must(v.is(tracking.SubscriptionActive) > 0 || v.courseOf("terminated completed") > 0 || !recurs &&
			(v.paid() || v.bill || billed), "a fulfilment is asked for, and nothing is active or paid")
	}
	for id, s := range before.subscriptions {
		was, is := s.Str(schema.TrackedStatus), v.subscriptions[id].Str(schema.TrackedStatus)
		must(was != "terminated" || is == was, "subscription %s was terminated and is %q", id, is)
		must(was != "active" || is != "new", "subscription %s was active and is %q", id, is)
	}
	for id, p := range before.payments {
		was, is := p.Str(schema.TrackedStatus), v.payments[id].Str(schema.TrackedStatus)
		must(was != "paid" || is == was, "payment %s was paid and is %q", id, is)
		must(was != "failed" || is != "new", "payment %s had failed and is %q", id, is)
	}
	for id, was := range before.events {
		must(!was.Final() || v.events[id] == was, "event %s was %s and is %q", id, was, v.events[id])
	}
	return wrong
}

// outcome returns the final result that people see.
func (v *view) outcome() (payments, subscriptions []string) {
	for _, p := range v.payments {
		payments = append(payments, paymentText(p))
	}
	for _, s := range v.subscriptions {
		text := s.Str(schema.TrackedStatus) + " " + s.Str(schema.TrackedDetail)
		if e := s.Str(schema.TrackedEnding); e != "" {
			text += " (" + e + ")"
		}
		if s.Has(schema.TrackedSchedule) {
			text += " scheduled"
		}
		if s.Has(schema.TrackedCancelAt) && s.Str(schema.TrackedStatus) == "active" {
			text += ", to be cancelled"
		}
		subscriptions = append(subscriptions, text)
	}
	slices.Sort(payments)
	slices.Sort(subscriptions)
	return payments, subscriptions
}

func paymentText(p store.Item) string {
	parts := []string{fmt.Sprintf("%s %d %s", p.Str(schema.TrackedStatus), p.Int(schema.TrackedAmount),
		p.Str(schema.TrackedCurrency))}
	if p.Has(schema.TrackedInvoice) {
		parts = append(parts, "invoiced")
	}
	if p.Has(schema.TrackedSubscription) {
		parts = append(parts, "of a subscription")
	}
	for _, code := range p.Get(schema.TrackedCode).List() {
		parts = append(parts, "declined "+code.Str())
	}
	if refunds := p.Get(schema.TrackedRefunds).Map(); len(refunds) > 0 {
		var sum int64
		var states []string
		for _, r := range refunds {
			status := r.Value.Map().Str(schema.TrackedStatus)
			if status != "failed" && status != "canceled" {
				sum += r.Value.Map().Int(schema.TrackedAmount)
			}
			states = append(states, status)
		}
		slices.Sort(states)
		parts = append(parts, fmt.Sprintf("refunded %d: %s", sum, strings.Join(states, " ")))
	}
	for _, d := range p.Get(schema.TrackedDisputes).Map() {
		parts = append(parts, "disputed "+d.Value.Map().Str(schema.TrackedStatus))
	}
	return strings.Join(parts, ", ")
}
