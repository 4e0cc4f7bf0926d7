package tracking

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Options configure a Service. Decode, Finder and Seller may be nil if no call needs them.
type Options struct {
	Store        store.Store
	Tables       schema.Tables
	Installation string           // of the store: objects tagged with another id are not ours
	Own          string           // acct_… of our key
	Live         bool             // the mode of our key; events of the other mode are refused
	Now          func() time.Time // nil: time.Now
	Log          *slog.Logger     // nil: nothing is logged
	Decode       Decode           // needed by Ingest, DrainInbox and Rebuild
	Finder       Finder           // needed by DrainInbox and Register
	Seller       Seller           // needed by CreatePurchase and DrainInbox
	Settler      Settler          // takes events about billing's own payment intents; nil: they are ignored
	Shared       bool             // several processes may use the store: each claims a job before doing it
	// EndedBy lists the statuses of a Stripe subscription, of unpaid, paused and past_due, at
	// which it ends for the buyer. The others are only shown.
	EndedBy []string
	// UnsubscribeAfter is how long an unsubscribe may be withdrawn by another subscription; 0: not at all.
	UnsubscribeAfter time.Duration
	// Automations do the actions of purchases. An action without one is logged, and done.
	Automations []Automation
}

var (
	// ErrUnregistered: no such Stripe account is registered.
	ErrUnregistered = errors.New("the Stripe account is not registered")
	// ErrOther: the key or the Stripe account was used before, for another order or merchant.
	ErrOther = errors.New("already used for another order or merchant")
	// ErrStripeKey: Stripe refuses our key, or it lacks a permission. The request was not carried out.
	ErrStripeKey = errors.New("the key of this installation is refused by Stripe")
	// ErrOtherStripe: the store follows another Stripe account, or the other mode.
	ErrOtherStripe = errors.New("this store belongs to another Stripe account or mode")
)

// A FieldError says which field of an order or a registration is wrong, and how.
type FieldError = field.Error

// A base has what Open was given, and the store's salt.
type base struct {
	o                Options
	events, accounts string        // names of tables
	salt             string        // of the ids of purchases
	wake             chan struct{} // holds one when something was put into the inbox or the actions
}

// Pinned returns the Stripe account and mode of the store's first opening, or
// store.ErrNotFound. It serves a start while Stripe does not answer.
func Pinned(ctx context.Context, s store.Store, t schema.Tables) (own string, live bool, err error) {
	it, err := s.Get(ctx, t.Tracking.Registry.Name, store.Key{PK: ownRow, SK: ownRow})
	return it.Str(schema.TrackedStripeAccount), it.Get(schema.TrackedLive).Bool(), err
}

// pin holds the store to the Stripe account and mode it was opened with first.
func (b *base) pin(ctx context.Context) error {
	key := store.Key{PK: ownRow, SK: ownRow}
	return store.Retry(ctx, "tracking: the registry", func() error {
		it, err := b.o.Store.Get(ctx, b.accounts, key)
		own, live := it.Str(schema.TrackedStripeAccount), it.Get(schema.TrackedLive).Bool()
		switch {
		case err == nil && (own != b.o.Own || live != b.o.Live):
			return fmt.Errorf("%w: it was first opened with %s (%s), but the key belongs to %s (%s)", ErrOtherStripe, own, mode(live),
				b.o.Own, mode(b.o.Live))
		case err == nil:
			b.salt = it.Str(schema.TrackedSalt)
			return nil
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		b.salt = rand.Text()
		it = registryRow(ownRow, ownRow, attribute(schema.TrackedStripeAccount, b.o.Own), attribute(schema.TrackedSalt, b.salt))
		it.Set(schema.TrackedLive, store.Bool(b.o.Live))
		return b.commit(ctx, store.Put(b.accounts, it, store.Absent()))
	})
}

// CursorKey returns the key that encrypts the cursors of lists of this store, in every process.
func (b *base) CursorKey() [32]byte { return sha256.Sum256([]byte("cursor " + b.salt)) }

func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// now is the clock, in the stored resolution.
func (b *base) now() time.Time { return b.o.Now().UTC().Truncate(time.Millisecond) }

// commit commits the writes, and wakes the worker if one of them puts a row into the outbox.
func (b *base) commit(ctx context.Context, writes ...store.Write) error {
	err := b.o.Store.Commit(ctx, writes...)
	if err == nil && slices.ContainsFunc(writes, func(w store.Write) bool {
		return w.Op == store.OpPut && w.Table == b.o.Tables.Outbox.Name
	}) {
		b.nudge()
	}
	return err
}

// Wake holds one element when something was put into the inbox or the actions by this Service.
func (b *base) Wake() <-chan struct{} { return b.wake }

func (b *base) nudge() {
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
}

// The registry's partitions. Rows of quarantined events have the sort key <account>#<event>.
const (
	accountRows    = "ACCOUNT"
	merchantRows   = "CUSTOMER"
	quarantineRows = "QUARANTINE"
	ownRow         = "OWN"
	endedByRow     = "ENDED_BY" // of ownRow: the Options.EndedBy that subscriptions were looked at for
)

// registryRow is a row of the registry with more attributes than its key.
func registryRow(pk, sk string, more ...store.Attribute) store.Item {
	it := store.NewItem(more...)
	it.Set(schema.PK, store.S(pk))
	it.Set(schema.SK, store.S(sk))
	return it
}

func attribute(name, text string) store.Attribute {
	return store.Attribute{Name: name, Value: store.S(text)}
}

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
	return b.row(outbox.Inbox, kind, id, now, now.Add(wait))
}

func (b *base) row(q outbox.Queue, kind, id string, created, due time.Time) store.Write {
	return outbox.Write(b.o.Tables.Outbox.Name, outbox.Effect{Queue: q, ID: kind + "/" + id, Kind: kind, Due: due,
		Created: created, Data: map[string]string{pendingID: id}})
}

// ask writes the outbox's row for an action of the purchase.
func (b *base) ask(p *Purchase, action Action) store.Write {
	asked := p.effect(action).Asked
	due := asked
	if action == ActionUnsubscribe {
		due = due.Add(b.o.UnsubscribeAfter)
	}
	return b.row(outbox.Actions, string(action), p.ID, asked, due)
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
