package tracking

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// The kinds of rows in the inbox, and the name of the id in their data.
const (
	pendingEvent    = "event"    // an event undecided so far
	pendingCharge   = "charge"   // an event about a payment intent of billing's
	pendingRefresh  = "refresh"  // <account>/<subscription> or <account>/<payment>/<dispute>: its state has to be fetched
	pendingPurchase = "purchase" // a purchase was begun: its objects have to be fetched
	pendingEndedBy  = "ended-by" // Options.EndedBy was changed: subscriptions are looked at
	pendingRelease  = "release"  // a Stripe account was registered: its quarantined events are released
	pendingID       = "id"
)

const (
	workers = 16 // of the inbox, and of the actions
	// settleWait gives the run behind a payment the time to settle it itself.
	settleWait = 10 * time.Second
	// releaseWait gives Register the time to release the quarantined events itself.
	releaseWait = 30 * time.Second
	// claimFor is longer than any automation takes.
	claimFor = 2 * time.Minute
	// forceTries is the number of tries after which the end of a split payment counts as cancelled.
	forceTries = 5
	lastTry    = 9 // tries before an effect's last: the schedule of package outbox
)

// pending writes a row of the inbox, due after the wait.
func (b *base) pending(kind, id string, wait time.Duration) store.Write {
	now := b.now()
	return outbox.Write(b.o.Tables.Outbox.Name, outbox.Effect{Queue: outbox.Inbox, ID: kind + "/" + id, Kind: kind,
		Due: now.Add(wait), Created: now, Data: map[string]string{pendingID: id}})
}

// ask writes the outbox's row for an action of the purchase.
func (b *base) ask(p *Purchase, action Action) store.Write {
	asked := p.effect(action).Asked
	due := asked
	if action == ActionUnsubscribe {
		due = due.Add(b.o.UnsubscribeAfter)
	}
	return outbox.Write(b.o.Tables.Outbox.Name, outbox.Effect{Queue: outbox.Actions, ID: string(action) + "/" + p.ID,
		Kind: string(action), Created: asked, Due: due, Data: map[string]string{pendingID: p.ID}})
}

// A deliver does the work of one row.
type deliver func(context.Context, outbox.Effect) error

// Deliver implements outbox.Deliverer.
func (d deliver) Deliver(ctx context.Context, e outbox.Effect) error { return d(ctx, e) }

// queue is the outbox of one queue. Of several processes each claims its rows.
func (b *base) queue(l outbox.Queue, d deliver) *outbox.Outbox {
	o := outbox.New(b.o.Store, b.o.Tables.Outbox, b.now, d, nil).On(l)
	if b.o.Shared {
		o = o.Claiming(claimFor)
	}
	return o
}
