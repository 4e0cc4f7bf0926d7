package tracking

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Options configure a Service. Decode, Finder and Seller may be nil if no call needs them.
type Options struct {
	Store        store.Store
	Tables       schema.Tables
	Installation string           // ID of this store; objects tagged with another ID are not ours
	Own          string           // acct_…, the account that our key belongs to
	Live         bool             // whether our key is for live mode; events from the other mode are refused
	Now          func() time.Time // nil: time.Now
	Log          *slog.Logger     // nil: nothing is logged
	Decode       Decode           // needed by Ingest, DrainInbox and Rebuild
	Finder       Finder           // needed by DrainInbox and Register
	Seller       Seller           // needed by CreatePurchase and DrainInbox
	Settler      Settler          // receives events about billing's payment intents; nil: Duesday ignores them
	Shared       bool             // several processes may use the store, so each claims a job before running it
	// EndedBy lists the Stripe statuses, among unpaid, paused and past_due, that end a subscription
	// for the buyer. Duesday only displays the statuses not listed.
	EndedBy []string
	// UnsubscribeAfter delays each unsubscribe. Until then another subscription can withdraw it.
	// Zero means no delay.
	UnsubscribeAfter time.Duration
	// Automations carry out the actions of purchases. If none accepts an action, Duesday logs it
	// and marks it done.
	Automations []Automation
	// Erases reports whether an event's body is about a person who was erased. It is then not stored. nil: none is.
	Erases func(ctx context.Context, stripeAccount string, body []byte) (bool, error)
	// Told returns writes for the commit that marks an action as done; nil: none.
	Told func(context.Context, Action, *Purchase) ([]store.Write, error)
}

var (
	// ErrUnregistered is returned if the Stripe account is not registered.
	ErrUnregistered = errors.New("the Stripe account is not registered")
	// ErrOther is returned if another order or merchant already uses the key or Stripe account.
	ErrOther = errors.New("already used for another order or merchant")
	// ErrStripeKey is returned if Stripe rejects our key or the key lacks a permission. Stripe did
	// not carry out the request.
	ErrStripeKey = errors.New("the key of this installation is refused by Stripe")
	// ErrOtherStripe is returned if the store belongs to another Stripe account or mode.
	ErrOtherStripe = errors.New("this store belongs to another Stripe account or mode")
)

// A FieldError names the invalid field of an order or registration and describes the problem.
type FieldError = field.Error

// A base holds the options passed to Open and the store's salt.
type base struct {
	o                Options
	events, accounts string        // table names
	salt             string        // salt for purchase IDs
	wake             chan struct{} // holds an element when the inbox or actions queue has new work
}

// Pinned returns the Stripe account and mode with which the store was first opened, or
// store.ErrNotFound. Callers use it to start while Stripe does not answer.
func Pinned(ctx context.Context, s store.Store, t schema.Tables) (own string, live bool, err error) {
	it, err := s.Get(ctx, t.Tracking.Registry.Name, store.Key{PK: ownRow, SK: ownRow})
	return it.Str(schema.TrackedStripeAccount), it.Get(schema.TrackedLive).Bool(), err
}

// pin ensures that the store is only used with the Stripe account and mode of its first opening.
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

// CursorKey returns the encryption key for list cursors. Every process on this store gets the same
// key.
func (b *base) CursorKey() [32]byte { return sha256.Sum256([]byte("cursor " + b.salt)) }

func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// now returns the current time, truncated to the resolution that the store keeps.
func (b *base) now() time.Time { return b.o.Now().UTC().Truncate(time.Millisecond) }

// commit applies the writes and wakes the worker if one of them adds an outbox row.
func (b *base) commit(ctx context.Context, writes ...store.Write) error {
	err := call.Commit(ctx, b.o.Store, writes...)
	if err == nil && slices.ContainsFunc(writes, func(w store.Write) bool {
		return w.Op == store.OpPut && w.Table == b.o.Tables.Outbox.Name
	}) {
		b.nudge()
	}
	return err
}

// Wake returns a channel that holds an element after this Service adds work to the inbox or actions
// queue.
func (b *base) Wake() <-chan struct{} { return b.wake }

func (b *base) nudge() {
	select {
	case b.wake <- struct{}{}:
	default: // the worker has already been notified
	}
}

// These are the partitions of the registry. The sort key of a quarantined event is
// <account>#<event>.
const (
	accountRows    = "ACCOUNT"
	merchantRows   = "CUSTOMER"
	quarantineRows = "QUARANTINE"
	ownRow         = "OWN"
	endedByRow     = "ENDED_BY" // sort key under ownRow of the Options.EndedBy last applied
)

// registryRow returns a registry row with the given key and attributes.
func registryRow(pk, sk string, more ...store.Attribute) store.Item {
	it := store.NewItem(more...)
	it.Set(schema.PK, store.S(pk))
	it.Set(schema.SK, store.S(sk))
	return it
}

func attribute(name, text string) store.Attribute {
	return store.Attribute{Name: name, Value: store.S(text)}
}

// These are the kinds of inbox rows. A row keeps its ID in its data under pendingID.
const (
	pendingEvent    = "event"    // an event to decide
	pendingCharge   = "charge"   // an event about one of billing's payment intents
	pendingRefresh  = "refresh"  // a state to fetch: <account>/<subscription> or <account>/<payment>/<dispute>
	pendingPurchase = "purchase" // a purchase in creation whose Stripe objects must be found
	pendingEndedBy  = "ended-by" // a change of Options.EndedBy to apply to stored subscriptions
	pendingRelease  = "release"  // a newly registered Stripe account whose quarantined events must be released
	pendingID       = "id"
)

const (
	workers = 16 // concurrent workers per queue
	// settleWait is how long the inbox waits for the billing run to settle its own payment.
	settleWait = 10 * time.Second
	// releaseWait is how long the inbox waits for Register to release the quarantined events.
	releaseWait = 30 * time.Second
	// claimFor is how long a process claims a job. No automation takes longer.
	claimFor = 2 * time.Minute
	// forceTries is the number of attempts after which the inbox treats a split payment with an
	// unknown end as cancelled.
	forceTries = 5
	lastTry    = 9 // attempts before an effect's last, as scheduled by package outbox
)

// pending returns the write that adds an inbox row, due after the wait.
func (b *base) pending(kind, id string, wait time.Duration) store.Write {
	now := b.now()
	return b.row(outbox.Inbox, kind, id, now, now.Add(wait))
}

func (b *base) row(q outbox.Queue, kind, id string, created, due time.Time) store.Write {
	return outbox.Write(b.o.Tables.Outbox.Name, outbox.Effect{Queue: q, ID: kind + "/" + id, Kind: kind, Due: due,
		Created: created, Data: map[string]string{pendingID: id}})
}

// ask returns the write that adds an outbox row for an action of the purchase.
func (b *base) ask(p *Purchase, action Action) store.Write {
	asked := p.effect(action).Asked
	due := asked
	if action == ActionUnsubscribe {
		due = due.Add(b.o.UnsubscribeAfter)
	}
	return b.row(outbox.Actions, string(action), p.ID, asked, due)
}

// A deliver is a function that processes one outbox row.
type deliver func(context.Context, outbox.Effect) error

// Deliver implements outbox.Deliverer.
func (d deliver) Deliver(ctx context.Context, e outbox.Effect) error { return d(ctx, e) }

// queue returns the outbox for one queue. If several processes share the store, each claims a row
// before processing it.
func (b *base) queue(l outbox.Queue, d deliver) *outbox.Outbox {
	o := outbox.New(b.o.Store, b.o.Tables.Outbox, b.now, d, nil).On(l)
	if b.o.Shared {
		o = o.Claiming(claimFor)
	}
	return o
}

// A Service ingests events, applies them and delivers their effects. Its embedded parts provide the
// methods. The rows and registry parts read, intake ingests events, shop creates purchases, and
// inbox and actions process waiting work. A Service is safe for concurrent use, and several
// processes may use the same store.
type Service struct {
	*rows
	*registry
	*intake
	*shop
	*inbox
	*actions
}

// Open returns a Service on a store. A store belongs to the Stripe account and mode with which it
// was first opened, so test and live data never mix.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for _, status := range o.EndedBy {
		if status != "unpaid" && status != "paused" && status != "past_due" {
			return nil, field.Wrong("ended_by", "must contain only unpaid, paused or past_due")
		}
	}
	if !isID(o.Own, "acct_") || o.Installation == "" {
		return nil, fmt.Errorf("tracking: the key's Stripe account and the store's installation must be set "+
			"(got %q and %q)", o.Own, o.Installation)
	}
	r := &rows{&base{o: o, events: o.Tables.Tracking.Events.Name, accounts: o.Tables.Tracking.Registry.Name,
		wake: make(chan struct{}, 1)}}
	in := &intake{registry: &registry{rows: r}, seed: maphash.MakeSeed()}
	for i := range in.asking {
		in.asking[i] = make(chan struct{}, 1)
	}
	s := &shop{in}
	return &Service{r, in.registry, in, s, &inbox{in, s}, &actions{r}}, r.pin(ctx)
}

// takerAt returns the installation whose billing may continue the account's subscriptions: this one, in its own account.
func (b *base) takerAt(at string) string {
	if at != b.o.Own {
		return ""
	}
	return b.o.Installation
}
