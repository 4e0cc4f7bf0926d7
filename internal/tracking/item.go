package tracking

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// stampLayout is that of the published tables: UTC, sorts as text as it does in time.
const stampLayout = "2006-01-02 15:04:05.000"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// parseStamp returns zero for what is no stamp.
func parseStamp(text string) time.Time {
	t, err := time.Parse(stampLayout, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// A writer makes an item of what is not zero.
type writer struct{ it store.Item }

func (w *writer) text(name, value string) {
	if value != "" {
		w.it.Set(name, store.S(value))
	}
}

func (w *writer) time(name string, t time.Time) {
	if !t.IsZero() {
		w.it.Set(name, store.S(stamp(t)))
	}
}

func (w *writer) number(name string, n int64) {
	if n != 0 {
		w.it.Set(name, store.Int(n))
	}
}

func (w *writer) yes(name string, b bool) {
	if b {
		w.it.Set(name, store.Bool(true))
	}
}

func (w *writer) history(list []Change) {
	if len(list) == 0 {
		return
	}
	values := make([]store.Value, len(list))
	for i, c := range list {
		var of writer
		of.time(schema.EffectAt, c.At)
		of.text(schema.EffectEvent, c.Event)
		of.text(schema.EffectWhat, c.What)
		values[i] = store.M(of.it)
	}
	w.it.Set(schema.TrackedHistory, store.L(values...))
}

func historyOf(it store.Item) (list []Change) {
	for _, v := range it.Get(schema.TrackedHistory).List() {
		of := v.Map()
		list = append(list, Change{At: parseStamp(of.Str(schema.EffectAt)), What: of.Str(schema.EffectWhat), Event: of.Str(schema.EffectEvent)})
	}
	return list
}

// maxHistory is how many changes of one object are kept: the first, and the latest.
const maxHistory = 100

func remember(list []Change, c Change) []Change {
	if len(list) >= maxHistory {
		list = slices.Delete(slices.Clone(list), maxHistory/2, maxHistory/2+1)
	}
	return append(list, c)
}

// head writes what the published tables have in common.
func (w *writer) head(id, stripeAccount, account string, created, updated time.Time, version int64) {
	w.text(schema.TrackedID, id)
	w.text(schema.TrackedStripeAccount, stripeAccount)
	w.text(schema.TrackedAccount, account)
	w.time(schema.TrackedCreated, created)
	w.time(schema.TrackedUpdated, updated)
	w.number(schema.TrackedVersion, version)
}

func (p *Purchase) item() (store.Item, error) {
	var w writer
	w.head(p.ID, p.StripeAccount, p.Account, p.Created, p.Updated, p.version)
	w.it.Set(schema.TrackedFulfilled, store.Bool(p.Fulfilled))
	w.text(schema.TrackedKind, string(p.Kind))
	w.text(schema.TrackedCustomer, p.Customer)
	w.text(schema.TrackedProblem, p.Problem)
	w.text(schema.TrackedKeyHash, p.keyHash)
	if p.keyHash != "" {
		order, err := json.Marshal(p.Order)
		if err != nil {
			return nil, fmt.Errorf("purchase %s: %w", p.ID, err)
		}
		w.text(schema.TrackedOrder, string(order))
	}
	w.effect(schema.TrackedFulfilment, p.Fulfilment)
	w.effect(schema.TrackedUnsubscribe, p.Unsubscribe)
	if len(p.Automations) > 0 {
		values := make([]store.Value, len(p.Automations))
		for i, d := range p.Automations {
			var of writer
			of.text(schema.EffectAction, string(d.Action))
			of.time(schema.EffectAt, d.At)
			of.text(schema.EffectAutomation, d.Automation)
			values[i] = store.M(of.it)
		}
		w.it.Set(schema.TrackedAutomations, store.L(values...))
	}
	if len(p.Courses) > 0 {
		var courses store.Item
		for _, id := range slices.Sorted(maps.Keys(p.Courses)) {
			var of writer
			of.text(schema.TrackedEnding, string(p.Courses[id].Ending))
			of.text(schema.TrackedSchedule, p.Courses[id].Schedule)
			of.text(schema.TrackedStatus, string(p.Courses[id].Status))
			courses.Set(id, store.M(of.it))
		}
		w.it.Set(schema.TrackedCourses, store.M(courses))
	}
	w.history(p.History)
	return w.it, nil
}

func (w *writer) effect(name string, e Effect) {
	if e.State == NotAsked {
		return
	}
	var of writer
	of.time(schema.EffectAsked, e.Asked)
	of.time(schema.EffectDone, e.Done)
	of.text(schema.TrackedReason, e.Reason)
	of.text(schema.EffectState, string(e.State))
	w.it.Set(name, store.M(of.it))
}

func effectOf(it store.Item, name string) Effect {
	of := it.Get(name).Map()
	return Effect{State: EffectState(of.Str(schema.EffectState)), Reason: of.Str(schema.TrackedReason),
		Asked: parseStamp(of.Str(schema.EffectAsked)), Done: parseStamp(of.Str(schema.EffectDone))}
}

func purchaseOf(it store.Item) (*Purchase, error) {
	p := &Purchase{ID: it.Str(schema.TrackedID), Account: it.Str(schema.TrackedAccount), StripeAccount: it.Str(schema.TrackedStripeAccount),
		Kind: Kind(it.Str(schema.TrackedKind)), Created: parseStamp(it.Str(schema.TrackedCreated)), Updated: parseStamp(it.Str(schema.TrackedUpdated)),
		Fulfilled: it.Get(schema.TrackedFulfilled).Bool(), Customer: it.Str(schema.TrackedCustomer), Problem: it.Str(schema.TrackedProblem),
		Fulfilment: effectOf(it, schema.TrackedFulfilment), Unsubscribe: effectOf(it, schema.TrackedUnsubscribe),
		History: historyOf(it), keyHash: it.Str(schema.TrackedKeyHash), version: it.Int(schema.TrackedVersion)}
	if order := it.Str(schema.TrackedOrder); order != "" {
		if err := json.Unmarshal([]byte(order), &p.Order); err != nil {
			return nil, fmt.Errorf("purchase %s: its order cannot be read: %w: %w", p.ID, errPoison, err)
		}
	}
	for _, v := range it.Get(schema.TrackedAutomations).List() {
		of := v.Map()
		p.Automations = append(p.Automations, Done{Automation: of.Str(schema.EffectAutomation), Action: Action(of.Str(schema.EffectAction)), At: parseStamp(of.Str(schema.EffectAt))})
	}
	for _, a := range it.Get(schema.TrackedCourses).Map() {
		of := a.Value.Map()
		if p.Courses == nil {
			p.Courses = map[string]Course{}
		}
		p.Courses[a.Name] = Course{Status: SubscriptionStatus(of.Str(schema.TrackedStatus)), Ending: Ending(of.Str(schema.TrackedEnding)), Schedule: of.Str(schema.TrackedSchedule)}
	}
	return p, nil
}

func (p *Payment) item() store.Item {
	var w writer
	w.head(p.ID, p.StripeAccount, p.Account, p.Created, p.Updated, p.version)
	w.text(schema.TrackedPurchase, p.Purchase)
	w.text(schema.TrackedStatus, string(p.Status))
	w.number(schema.TrackedAmount, p.Amount)
	w.text(schema.TrackedCurrency, p.Currency)
	w.text(schema.TrackedInvoice, p.Invoice)
	w.text(schema.TrackedSubscription, p.Subscription)
	w.number(schema.TrackedToldRefunded, p.told)
	if len(p.Codes) > 0 {
		values := make([]store.Value, len(p.Codes))
		for i, code := range p.Codes {
			values[i] = store.S(code)
		}
		w.it.Set(schema.TrackedCode, store.L(values...))
	}
	parts := func(name string, ids []string, part func(id string) (int64, string)) {
		if len(ids) == 0 {
			return
		}
		var all store.Item
		for _, id := range ids {
			amount, status := part(id)
			all.Set(id, store.M(store.NewItem(store.Attribute{Name: schema.TrackedAmount, Value: store.Int(amount)},
				store.Attribute{Name: schema.TrackedStatus, Value: store.S(status)})))
		}
		w.it.Set(name, store.M(all))
	}
	parts(schema.TrackedRefunds, slices.Sorted(maps.Keys(p.Refunds)), func(id string) (int64, string) { return p.Refunds[id].Amount, p.Refunds[id].Status })
	parts(schema.TrackedDisputes, slices.Sorted(maps.Keys(p.Disputes)), func(id string) (int64, string) { return p.Disputes[id].Amount, p.Disputes[id].Status })
	w.history(p.History)
	return w.it
}

func paymentOf(it store.Item) *Payment {
	p := &Payment{ID: it.Str(schema.TrackedID), StripeAccount: it.Str(schema.TrackedStripeAccount), Account: it.Str(schema.TrackedAccount),
		Purchase: it.Str(schema.TrackedPurchase), Created: parseStamp(it.Str(schema.TrackedCreated)), Updated: parseStamp(it.Str(schema.TrackedUpdated)),
		Status: PaymentStatus(it.Str(schema.TrackedStatus)), Amount: it.Int(schema.TrackedAmount), Currency: it.Str(schema.TrackedCurrency),
		Invoice: it.Str(schema.TrackedInvoice), Subscription: it.Str(schema.TrackedSubscription), History: historyOf(it),
		told: it.Int(schema.TrackedToldRefunded), version: it.Int(schema.TrackedVersion)}
	for _, v := range it.Get(schema.TrackedCode).List() {
		p.Codes = append(p.Codes, v.Str())
	}
	for _, a := range it.Get(schema.TrackedRefunds).Map() {
		if p.Refunds == nil {
			p.Refunds = map[string]Refund{}
		}
		p.Refunds[a.Name] = Refund{ID: a.Name, Amount: a.Value.Map().Int(schema.TrackedAmount), Status: a.Value.Map().Str(schema.TrackedStatus)}
	}
	for _, a := range it.Get(schema.TrackedDisputes).Map() {
		if p.Disputes == nil {
			p.Disputes = map[string]Dispute{}
		}
		p.Disputes[a.Name] = Dispute{ID: a.Name, Amount: a.Value.Map().Int(schema.TrackedAmount), Status: a.Value.Map().Str(schema.TrackedStatus)}
	}
	mergeRefunds(p, Object{}) // Refunded follows from what is stored
	return p
}

func (s *Subscription) item() store.Item {
	var w writer
	w.head(s.ID, s.StripeAccount, s.Account, s.Created, s.Updated, s.version)
	w.text(schema.TrackedPurchase, s.Purchase)
	w.text(schema.TrackedStatus, string(s.Status))
	w.text(schema.TrackedDetail, s.Detail)
	w.text(schema.TrackedEnding, string(s.Ending))
	w.text(schema.TrackedSchedule, s.Schedule)
	w.text(schema.TrackedScheduleSays, s.scheduleStatus)
	w.yes(schema.TrackedOver, s.over)
	w.yes(schema.TrackedExpired, s.expired)
	w.yes(schema.TrackedSoft, s.soft)
	w.yes(schema.TrackedActivated, s.activated)
	w.yes(schema.TrackedAsking, s.asking)
	w.history(s.History)
	return w.it
}

func subscriptionOf(it store.Item) *Subscription {
	return &Subscription{ID: it.Str(schema.TrackedID), StripeAccount: it.Str(schema.TrackedStripeAccount), Account: it.Str(schema.TrackedAccount),
		Purchase: it.Str(schema.TrackedPurchase), Created: parseStamp(it.Str(schema.TrackedCreated)), Updated: parseStamp(it.Str(schema.TrackedUpdated)),
		Status: SubscriptionStatus(it.Str(schema.TrackedStatus)), Detail: it.Str(schema.TrackedDetail), Ending: Ending(it.Str(schema.TrackedEnding)),
		Schedule: it.Str(schema.TrackedSchedule), History: historyOf(it), scheduleStatus: it.Str(schema.TrackedScheduleSays),
		over: it.Get(schema.TrackedOver).Bool(), expired: it.Get(schema.TrackedExpired).Bool(), soft: it.Get(schema.TrackedSoft).Bool(),
		activated: it.Get(schema.TrackedActivated).Bool(), asking: it.Get(schema.TrackedAsking).Bool(), version: it.Int(schema.TrackedVersion)}
}
