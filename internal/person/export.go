// Package person finds what a store has of one person, exports it, and erases it.
//
// It does not reach the processor, backups, or what was sent to other systems.
package person

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// A Data is everything that a store has of one person. Items contains every item as stored, also
// the items that another tool has made unreadable.
type Data struct {
	Installation  string // of the store, for receipts
	Account       *billing.Account
	Subscriptions []*billing.Subscription
	Periods       []*billing.EndedPeriod
	Receipts      []*billing.Receipt
	Reversals     []*billing.ReversalRecord
	History       []*history.Entry
	Mail          []*maillog.Mail // of the last days, and what waits
	Requests      []Request
	Purchases     []*tracking.Purchase
	Events        []*tracking.Event
	Items         []Item
}

// An Item is an item about the person.
type Item struct {
	Table *store.Table
	store.Item
}

// A Request is a request that had an idempotency key.
type Request struct {
	Object, Actor, Note string
	Created             time.Time
}

// Export returns what the store has of the account's person. It scans four tables.
func Export(ctx context.Context, r *billing.Records, account string) (*Data, error) {
	s, a, err := of(ctx, r, account)
	if err != nil {
		return nil, err
	}
	d := &Data{Installation: r.Opened.Installation, Account: a}
	for it, err := range s.items(ctx) {
		if err != nil {
			return nil, err
		}
		d.Items = append(d.Items, it)
		d.add(&it, &r.Tables)
	}
	return d, nil
}

// add decodes the item. An unreadable item is only in Items.
func (d *Data) add(it *Item, t *schema.Tables) {
	switch it.Table.Name {
	case t.Outbox.Name:
		m, _ := maillog.Decode(it.Item) // with the readable attributes
		d.Mail = append(d.Mail, m)
		return
	case t.Tracking.Purchases.Name:
		keep(&d.Purchases, it, tracking.DecodePurchase)
		return
	case t.Tracking.Events.Name:
		keep(&d.Events, it, tracking.DecodeEvent)
		return
	}
	switch kindOf(it.Item) {
	case billing.SubPrefix:
		keep(&d.Subscriptions, it, billing.DecodeSubscription)
	case billing.PerPrefix:
		keep(&d.Periods, it, billing.DecodePeriod)
	case billing.RecPrefix:
		keep(&d.Receipts, it, billing.DecodeReceipt)
	case billing.RefPrefix:
		keep(&d.Reversals, it, billing.DecodeReversal)
	case maillog.Prefix:
		m, _ := maillog.Decode(it.Item)
		d.Mail = append(d.Mail, m)
	case history.Prefix:
		keep(&d.History, it, history.Decode)
	case billing.KeyPrefix:
		d.Requests = append(d.Requests, Request{Object: it.Str(schema.Object), Actor: it.Str(schema.Actor), Note: it.Str(schema.Note),
			Created: billing.ParseStamp(it.Str(schema.CreatedDate))})
	}
}

func keep[T any](list *[]*T, it *Item, decode func(store.Item) (*T, error)) {
	if v, err := decode(it.Item); err == nil {
		*list = append(*list, v)
	}
}
