// Package cause derives events from billing's commits. It compares each changed item with its old version,
// and reads the records that the commit adds.
//
// It does not decide what a commit does, and sends nothing.
package cause

import (
	"context"
	"reflect"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Of makes the records' commits write effects for endpoints.
func Of(r *billing.Records, d *delivery.Service) {
	c := &causes{r, d}
	r.Beside = append(r.Beside, c.beside)
	r.Reversed = c.reversed
	r.RunEnded = c.runEnded
	r.Numbered = c.numbered
}

type causes struct {
	records *billing.Records
	to      *delivery.Service
}

// beside is a billing.Beside. It decodes nothing if there are no endpoints.
func (c *causes) beside(ctx context.Context, was, now store.Item, others []store.Write) ([]store.Write, error) {
	key := billing.KeyOf(now)
	if _, ok := billing.NameOf(key); !ok {
		return nil, nil
	}
	if there, err := c.to.Any(ctx); err != nil || !there {
		return nil, err
	}
	s, err := billing.DecodeSubscription(now)
	if err != nil {
		return nil, nil // an item that another tool damaged must not stop its own repair
	}
	var before *billing.Subscription
	if len(was) > 0 {
		if before, err = billing.DecodeSubscription(was); err != nil {
			return nil, nil
		}
	}
	older, err := numbering.Older(ctx, c.records) // its drains do not tell of receipts
	if err != nil {
		return nil, err
	}
	events := append(c.ofSubscription(before, s), c.ofRecords(s, others, older)...)
	return c.to.Effect(ctx, key.PK+"/"+key.SK+"/"+strconv.FormatInt(s.Version, 10), events...)
}

// of returns an event with the subscription's IDs and the pairs.
func of(kind string, s *billing.Subscription, pairs ...any) delivery.Event {
	data := map[string]any{"account": s.Account, "subscription": s.ID, "sku": s.SKU, "version": s.Version}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i].(string)] = pairs[i+1]
	}
	return delivery.Event{Type: kind, Data: data}
}

// byStatus contains the event for a change to each status that has its own event.
var byStatus = map[billing.Status]string{billing.Paused: "subscription.paused", billing.PastDue: "subscription.past_due",
	billing.CanceledSub: "subscription.canceled", billing.Completed: "subscription.completed"}

// ofSubscription returns the events that follow from the item's change.
func (c *causes) ofSubscription(was, s *billing.Subscription) (events []delivery.Event) {
	if was == nil {
		return []delivery.Event{of("subscription.created", s)}
	}
	kind, known := byStatus[s.Status]
	switch {
	case s.Takeover != nil && s.Takeover.Stage == billing.TakeoverUndoing: // the customer continues at the processor
	case was.Status != s.Status && known:
		events = append(events, of(kind, s))
	case s.Status == billing.Active && (was.Status == billing.Paused || was.Status == billing.PastDue):
		events = append(events, of("subscription.resumed", s))
	}
	ended := s.Status == billing.CanceledSub || s.Status == billing.Completed
	upgrade := s.Upgrade != nil && !reflect.DeepEqual(was.Upgrade, s.Upgrade) // requested, paid or ended
	if !ended && (upgrade || !reflect.DeepEqual(terms(was), terms(s))) {
		events = append(events, of("subscription.updated", s))
	}
	if s.Status == billing.ParkedState && was.Status != s.Status {
		events = append(events, of("period.parked", s, "period", s.Period))
	}
	if o, before := s.Open, was.Open; o != nil && o.State == processor.RequiresAction &&
		(before == nil || before.State != o.State || before.Period != o.Period || before.Attempt != o.Attempt || before.Ref != o.Ref) {
		events = append(events, of("period.action_required", s, "period", o.Period))
	}
	if !s.LastReminder.Equal(was.LastReminder) {
		events = append(events, of("reminder.due", s, "period", s.Period))
	}
	return events
}

// terms returns the fields that a person or program sets.
func terms(s *billing.Subscription) []any {
	return []any{s.SKU, s.Amount, s.Terms, s.PaymentDay, s.Method, s.Collection, s.Email, s.Address, s.Interval, s.TimeZone, s.ReminderDays,
		s.Installments, s.CancelAtEnd, s.Pending, s.SkipUntil}
}

// ofRecords returns the events that follow from the commit's receipts and period records. A receipt's own event
// follows only if receipts is true; see numbered.
func (c *causes) ofRecords(s *billing.Subscription, others []store.Write, receipts bool) (events []delivery.Event) {
	for _, w := range others {
		sk := billing.KeyOf(w.Item).SK
		switch {
		case w.Op != store.OpPut || w.Table != c.records.Table:
		case strings.HasPrefix(sk, billing.RecPrefix):
			r, err := billing.DecodeReceipt(w.Item)
			if err != nil || r.Kind == billing.Imported {
				continue
			}
			ids := []any{"period", r.Period, "receipt", r.Number(c.records.Opened.Installation)}
			if r.Kind != billing.Overpayment {
				events = append(events, of("period.paid", s, ids...))
			}
			if receipts {
				events = append(events, of("receipt.created", s, ids...))
			}
		case strings.HasPrefix(sk, billing.PerPrefix):
			if p, err := billing.DecodePeriod(w.Item); err == nil && p.Ending == billing.EndFailed {
				events = append(events, of("period.failed", s, "period", p.Period))
			}
		}
	}
	return events
}

// reversed returns the effect of a changed refund or dispute. was is nil for a new one.
func (c *causes) reversed(ctx context.Context, was, r *billing.ReversalRecord) ([]store.Write, error) {
	noun, last := "refund", map[processor.ReversalState]string{processor.ReversalSucceeded: "succeeded",
		processor.ReversalFailed: "failed", processor.ReversalCanceled: "canceled"}
	if r.Kind == processor.Disputed {
		noun, last[processor.ReversalSucceeded], last[processor.ReversalFailed] = "dispute", "lost", "won"
	}
	data := map[string]any{"account": r.Account, "subscription": r.ID, "sku": r.SKU, "period": r.Period, noun: r.ReversalID,
		"state": string(r.State), "version": r.Version()}
	var events []delivery.Event
	if was == nil {
		events = append(events, delivery.Event{Type: noun + ".created", Data: data})
	}
	if kind := last[r.State]; kind != "" && (was == nil || was.State != r.State) {
		events = append(events, delivery.Event{Type: noun + "." + kind, Data: data})
	} else if was != nil {
		events = append(events, delivery.Event{Type: noun + ".updated", Data: data})
	}
	return c.to.Effect(ctx, r.Key().PK+"/"+r.Key().SK+"/"+string(r.State), events...)
}

// numbered returns the effect of the receipts that a drain counts, with their numbers.
func (c *causes) numbered(ctx context.Context, objects []store.Item) ([]store.Write, error) {
	var events []delivery.Event
	for _, it := range objects {
		if r, err := billing.DecodeReceipt(it); err == nil && strings.HasPrefix(billing.KeyOf(it).SK, billing.RecPrefix) {
			data := map[string]any{"account": r.Account, "subscription": r.ID, "sku": r.SKU, "period": r.Period,
				"receipt": r.Number(c.records.Opened.Installation)}
			if r.InSeries != "" {
				data["number"] = r.InSeries
			}
			events = append(events, delivery.Event{Type: "receipt.created", Data: data})
		}
	}
	return c.to.Effect(ctx, "receipts/"+billing.KeyOf(objects[0]).PK+"/"+billing.KeyOf(objects[0]).SK, events...)
}

// runEnded returns the effect of a run's end.
func (c *causes) runEnded(ctx context.Context, r *billing.Run) ([]store.Write, error) {
	return c.to.Effect(ctx, "run/"+string(r.Kind)+"/"+r.ID, delivery.Event{Type: "run.finished",
		Data: map[string]any{"run": r.PathID(), "kind": string(r.Kind), "completed": r.Completed}})
}
