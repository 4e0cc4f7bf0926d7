package tracking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// A ConnectedAccount is a registered Stripe account whose events Duesday follows. Its merchant
// never changes.
type ConnectedAccount struct {
	StripeAccount string        `json:"stripe_account"`
	Merchant      string        `json:"account"`       // UUID
	Own           bool          `json:"own,omitempty"` // the account that owns our key; it is not a connected account
	Created       time.Time     `json:"created"`
	Updated       time.Time     `json:"last_updated"`
	Status        AccountStatus `json:"status"`
	Polled        PollState     `json:"polled"`

	version int64
}

// An AccountStatus reports whether a Stripe account grants us access.
type AccountStatus string

// The statuses of a connected account.
const (
	Connected    AccountStatus = "connected"
	Disconnected AccountStatus = "disconnected"
)

// A PollState records the poller's progress on one account.
type PollState struct {
	Through time.Time `json:"verified_through,omitzero"` // every event created before this time is stored
	Checked time.Time `json:"checked,omitzero"`          // last round, or zero; a failed round only updates it within the same day
	Next    time.Time `json:"next,omitzero"`             // time of the next scheduled round
	Quiet   int       `json:"quiet,omitempty"`           // consecutive rounds without a new event
	Swept   time.Time `json:"swept,omitzero"`            // time of the last sweep
	Error   string    `json:"error,omitempty"`           // why the last round failed
	Thin    bool      `json:"thin,omitempty"`            // the account has sent a thin event; never reset
}

func (a *ConnectedAccount) fields(c *codec) {
	if !c.reads {
		c.it.Set(schema.PK, store.S(accountRows))
	}
	text(c, schema.SK, &a.StripeAccount)
	text(c, schema.TrackedAccount, &a.Merchant)
	c.time(schema.TrackedCreated, &a.Created)
	c.time(schema.TrackedUpdated, &a.Updated)
	text(c, schema.TrackedStatus, &a.Status)
	c.version(&a.version)
	c.part(schema.TrackedPolled, func(c *codec) {
		c.time(schema.PollThrough, &a.Polled.Through)
		c.time(schema.PollChecked, &a.Polled.Checked)
		c.time(schema.PollNext, &a.Polled.Next)
		number(c, schema.PollQuiet, &a.Polled.Quiet)
		c.time(schema.PollSwept, &a.Polled.Swept)
		text(c, schema.PollError, &a.Polled.Error)
		c.flag(schema.PollThin, &a.Polled.Thin)
	})
}

func accountKey(stripeAccount string) store.Key { return store.Key{PK: accountRows, SK: stripeAccount} }

// A registry maps the followed Stripe accounts to their merchants.
type registry struct {
	*rows
	merchants sync.Map // merchant by registered Stripe account
	thin      sync.Map // registered Stripe accounts that have sent a thin event
}

// CheckStripeAccount returns a FieldError unless the text can be the ID of a Stripe account.
func CheckStripeAccount(id string) error {
	if !isID(id, "acct_") {
		return field.Wrong("stripe_account", "must be a Stripe account ID, such as acct_1A2b3C")
	}
	return nil
}

// Register assigns the Stripe account to the merchant, so that Duesday follows its events, and
// releases its quarantined events. Repeated calls change nothing. Register returns a FieldError for
// an invalid id, ErrOther if the account belongs to another merchant, and ErrDisconnected if Stripe
// denies access to the account.
func (r *registry) Register(ctx context.Context, merchant, stripeAccount string) (*ConnectedAccount, error) {
	merchant, err := checkUUID("account", merchant)
	if err != nil {
		return nil, err
	}
	if err := CheckStripeAccount(stripeAccount); err != nil {
		return nil, err
	}
	if stripeAccount != r.o.Own {
		if err := r.o.Finder.Connected(ctx, stripeAccount); err != nil {
			return nil, fmt.Errorf("the Stripe account %s: %w", stripeAccount, err)
		}
	}
	now := r.now()
	a := &ConnectedAccount{StripeAccount: stripeAccount, Merchant: merchant, Own: stripeAccount == r.o.Own,
		Created: now, Updated: now, Status: Connected}
	sells := store.Put(r.accounts, registryRow(merchantRows, merchant, attribute(schema.TrackedStripeAccount, stripeAccount)))
	// The inbox releases the quarantined events if this process dies first.
	err = r.commit(ctx, put(r.accounts, a.fields, now), sells, r.pending(pendingRelease, stripeAccount, releaseWait))
	if store.Retryable(err) {
		there, reading := r.ConnectedAccount(ctx, stripeAccount)
		switch {
		case reading != nil:
			// Reading only says "unregistered" again, which is not why Register failed.
			return nil, fmt.Errorf("%w; reading the Stripe account back: %v", err, reading)
		case there.Merchant != merchant:
			return nil, fmt.Errorf("the Stripe account %s already belongs to merchant %s: %w", stripeAccount, there.Merchant, ErrOther)
		}
		if a, err = r.connection(ctx, stripeAccount, Connected); err == nil {
			err = r.commit(ctx, sells) // new purchases of the merchant use this account from now on
		}
	}
	if err != nil {
		return nil, err
	}
	return a, r.release(ctx, stripeAccount)
}

// release moves the account's quarantined events to the inbox. Callers may repeat it.
func (r *registry) release(ctx context.Context, stripeAccount string) error {
	for it, err := range r.o.Store.Query(ctx, store.Query{Table: r.accounts, Partition: quarantineRows, Prefix: stripeAccount + "#"}) {
		if err != nil {
			return err
		}
		key := store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)}
		err := r.commit(ctx, r.pending(pendingEvent, key.SK[len(stripeAccount)+1:], 0), store.Delete(r.accounts, key))
		if err != nil && !errors.Is(err, store.ErrConflict) { // another call has already moved it
			return err
		}
	}
	return nil
}

func (r *registry) accountOf(it store.Item) *ConnectedAccount {
	a := from(it, (*ConnectedAccount).fields)
	a.Own = a.StripeAccount == r.o.Own
	return a
}

// ConnectedAccount returns the registered Stripe account, or ErrUnregistered.
func (r *registry) ConnectedAccount(ctx context.Context, stripeAccount string) (*ConnectedAccount, error) {
	if !isID(stripeAccount, "acct_") {
		return nil, fmt.Errorf("the Stripe account %q: %w", stripeAccount, ErrUnregistered)
	}
	it, err := r.o.Store.Get(ctx, r.accounts, accountKey(stripeAccount))
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("the Stripe account %s: %w", stripeAccount, ErrUnregistered)
	}
	if err != nil {
		return nil, err
	}
	return r.accountOf(it), nil
}

// ConnectedAccounts yields all registered accounts, ordered by ID.
func (r *registry) ConnectedAccounts(ctx context.Context) iter.Seq2[*ConnectedAccount, error] {
	return sequence.Map(r.o.Store.Query(ctx, store.Query{Table: r.accounts, Partition: accountRows}),
		func(it store.Item) (*ConnectedAccount, error) { return r.accountOf(it), nil })
}

// Accounts yields the same accounts as ConnectedAccounts without needing a Service. It does not set
// Own.
func Accounts(ctx context.Context, s store.Store, t schema.Tables) iter.Seq2[*ConnectedAccount, error] {
	return sequence.Map(s.Query(ctx, store.Query{Table: t.Tracking.Registry.Name, Partition: accountRows}),
		func(it store.Item) (*ConnectedAccount, error) { return from(it, (*ConnectedAccount).fields), nil })
}

// merchantOf returns the merchant of a Stripe account, or ErrUnregistered. It caches the answer.
func (r *registry) merchantOf(ctx context.Context, stripeAccount string) (string, error) {
	if merchant, known := r.merchants.Load(stripeAccount); known {
		return merchant.(string), nil
	}
	a, err := r.ConnectedAccount(ctx, stripeAccount)
	if err != nil {
		return "", err
	}
	r.merchants.Store(stripeAccount, a.Merchant)
	return a.Merchant, nil
}

// stripeAccountOf returns the merchant's current Stripe account.
func (r *registry) stripeAccountOf(ctx context.Context, merchant string) (string, error) {
	it, err := r.o.Store.Get(ctx, r.accounts, store.Key{PK: merchantRows, SK: merchant})
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("merchant %s has no Stripe account in this store: %w", merchant, ErrUnregistered)
	}
	return it.Str(schema.TrackedStripeAccount), err
}

// SavePoll stores the poller's progress on the account. Through never moves back.
func (r *registry) SavePoll(ctx context.Context, stripeAccount string, p PollState) error {
	_, err := r.changeAccount(ctx, stripeAccount, func(a *ConnectedAccount) bool {
		if p.Through.Before(a.Polled.Through) {
			p.Through = a.Polled.Through
		}
		if a.Polled.Thin && !p.Thin { // noteThin set it while the round was running
			p.Thin, p.Checked = true, time.Time{}
		}
		reconnected := a.Status == Disconnected && p.Error == "" && p.Checked.After(a.Updated)
		if reconnected { // Stripe listed its events after the account had disconnected
			a.Status, a.Updated = Connected, r.now()
		}
		changed := a.Polled != p || reconnected
		a.Polled = p
		return changed
	})
	return err
}

// connection stores whether the account grants access.
func (r *registry) connection(ctx context.Context, stripeAccount string, status AccountStatus) (*ConnectedAccount, error) {
	return r.changeAccount(ctx, stripeAccount, func(a *ConnectedAccount) bool {
		wakes := status == Connected && !a.Polled.Next.IsZero()
		if wakes { // the poller may be backing off because the account refused access
			a.Polled.Next, a.Polled.Quiet = time.Time{}, 0
		}
		if a.Status != status {
			a.Status, a.Updated = status, r.now()
			return true
		}
		return wakes
	})
}

func (r *registry) changeAccount(ctx context.Context, stripeAccount string,
	change func(*ConnectedAccount) bool) (a *ConnectedAccount, err error) {
	err = store.Retry(ctx, "account "+stripeAccount, func() error {
		if a, err = r.ConnectedAccount(ctx, stripeAccount); err != nil || !change(a) {
			return err
		}
		return r.commit(ctx, put(r.accounts, a.fields, r.now()))
	})
	return a, err
}

// noteThin marks the account the first time it sends a thin event, before that event is stored. The
// poller then lists the account's thin events too. Its next round lists them from the beginning,
// because earlier ones may be lost.
func (r *registry) noteThin(ctx context.Context, e *Event, status EventStatus) error {
	if e.ToldType == "" || status == Refused {
		return nil
	}
	if _, known := r.thin.Load(e.StripeAccount); known {
		return nil
	}
	_, err := r.changeAccount(ctx, e.StripeAccount, func(a *ConnectedAccount) bool {
		if a.Polled.Thin {
			return false
		}
		a.Polled.Thin, a.Polled.Checked = true, time.Time{}
		return true
	})
	if errors.Is(err, ErrUnregistered) { // the event is marked when the quarantine releases it
		return nil
	}
	if err == nil {
		r.thin.Store(e.StripeAccount, true)
	}
	return err
}
