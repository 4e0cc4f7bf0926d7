package tracking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A ConnectedAccount is a Stripe account whose events are followed. Its merchant never changes.
type ConnectedAccount struct {
	StripeAccount string        `json:"stripe_account"`
	Merchant      string        `json:"account"`       // UUID
	Own           bool          `json:"own,omitempty"` // the account of our key, which is connected to nobody
	Created       time.Time     `json:"created"`
	Updated       time.Time     `json:"last_updated"`
	Status        AccountStatus `json:"status"`
	Polled        PollState     `json:"polled"`

	version int64
}

// An AccountStatus says whether a Stripe account gives us access.
type AccountStatus string

// The statuses of a connected account.
const (
	Connected    AccountStatus = "connected"
	Disconnected AccountStatus = "disconnected"
)

// A PollState is how far the poller is with an account.
type PollState struct {
	Through time.Time `json:"verified_through,omitzero"` // every event before it is stored here; exclusive
	Checked time.Time `json:"checked,omitzero"`          // the last round; a failed round moves it within its day only; zero: none yet
	Next    time.Time `json:"next,omitzero"`             // the next round, unless a person asks sooner
	Quiet   int       `json:"quiet,omitempty"`           // rounds in a row without a new event
	Swept   time.Time `json:"swept,omitzero"`            // the last comparison of the objects
	Error   string    `json:"error,omitempty"`           // why the last round failed
	Thin    bool      `json:"thin,omitempty"`            // it has sent a thin event, before Checked; never taken back
}

// The registry's partitions. Rows of quarantined events have the sort key <account>#<event>.
const (
	accountRows    = "ACCOUNT"
	merchantRows   = "CUSTOMER"
	quarantineRows = "QUARANTINE"
	ownRow         = "OWN"
	endedByRow     = "ENDED_BY" // of ownRow: the Options.EndedBy that subscriptions were looked at for
)

func accountKey(stripeAccount string) store.Key { return store.Key{PK: accountRows, SK: stripeAccount} }

// registryRow is a row of the registry with more attributes than its key.
func registryRow(pk, sk string, more ...store.Attribute) store.Item {
	it := store.NewItem(more...)
	it.Set(schema.PK, store.S(pk))
	it.Set(schema.SK, store.S(sk))
	return it
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

func (s *Service) accountOf(it store.Item) *ConnectedAccount {
	a := from(it, (*ConnectedAccount).fields)
	a.Own = a.StripeAccount == s.o.Own
	return a
}

// Register records the Stripe account as the merchant's, to follow its events, and releases its
// quarantined events. Repeating it changes nothing. It returns a FieldError for an invalid id,
// ErrOther if another merchant has the account, and ErrDisconnected if Stripe refuses access to it.
func (s *Service) Register(ctx context.Context, merchant, stripeAccount string) (*ConnectedAccount, error) {
	merchant, err := checkUUID("account", merchant)
	if err != nil {
		return nil, err
	}
	if !isID(stripeAccount, "acct_") {
		return nil, field.Wrong("stripe_account", "must be a Stripe account ID, such as acct_1A2b3C")
	}
	if stripeAccount != s.o.Own {
		if err := s.o.Finder.Connected(ctx, stripeAccount); err != nil {
			return nil, fmt.Errorf("the Stripe account %s: %w", stripeAccount, err)
		}
	}
	now := s.now()
	a := &ConnectedAccount{StripeAccount: stripeAccount, Merchant: merchant, Own: stripeAccount == s.o.Own,
		Created: now, Updated: now, Status: Connected}
	sells := store.Put(s.registry, registryRow(merchantRows, merchant,
		store.Attribute{Name: schema.TrackedStripeAccount, Value: store.S(stripeAccount)}))
	// The inbox releases the quarantined events if this process dies before it has done so.
	err = s.commit(ctx, put(s.registry, a.fields, now), sells, s.pending(pendingRelease, stripeAccount, releaseWait))
	if store.Retryable(err) {
		there, reading := s.ConnectedAccount(ctx, stripeAccount)
		switch {
		case reading != nil:
			return nil, errors.Join(err, reading)
		case there.Merchant != merchant:
			return nil, fmt.Errorf("the Stripe account %s already belongs to merchant %s: %w", stripeAccount, there.Merchant, ErrOther)
		}
		if a, err = s.connection(ctx, stripeAccount, Connected); err == nil {
			err = s.commit(ctx, sells) // the merchant's purchases are made there from now on
		}
	}
	if err != nil {
		return nil, err
	}
	return a, s.release(ctx, stripeAccount)
}

// release moves the quarantined events of the account into the inbox. It may be repeated.
func (s *Service) release(ctx context.Context, stripeAccount string) error {
	for it, err := range s.o.Store.Query(ctx, store.Query{Table: s.registry, Partition: quarantineRows,
		Prefix: stripeAccount + "#"}) {
		if err != nil {
			return err
		}
		key := store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)}
		err := s.commit(ctx, s.pending(pendingEvent, key.SK[len(stripeAccount)+1:], 0), store.Delete(s.registry, key))
		if err != nil && !errors.Is(err, store.ErrConflict) { // another call was faster
			return err
		}
	}
	s.nudge()
	return nil
}

// ConnectedAccount returns the registered Stripe account, or ErrUnregistered.
func (s *Service) ConnectedAccount(ctx context.Context, stripeAccount string) (*ConnectedAccount, error) {
	if !isID(stripeAccount, "acct_") {
		return nil, fmt.Errorf("the Stripe account %q: %w", stripeAccount, ErrUnregistered)
	}
	it, err := s.o.Store.Get(ctx, s.registry, accountKey(stripeAccount))
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("the Stripe account %s: %w", stripeAccount, ErrUnregistered)
	}
	if err != nil {
		return nil, err
	}
	return s.accountOf(it), nil
}

// ConnectedAccounts yields all registered accounts, by their id.
func (s *Service) ConnectedAccounts(ctx context.Context) iter.Seq2[*ConnectedAccount, error] {
	return read(s.o.Store.Query(ctx, store.Query{Table: s.registry, Partition: accountRows}),
		func(it store.Item) (*ConnectedAccount, error) { return s.accountOf(it), nil })
}

// Accounts is ConnectedAccounts without a Service. Own is not known.
func Accounts(ctx context.Context, s store.Store, t schema.Tables) iter.Seq2[*ConnectedAccount, error] {
	return read(s.Query(ctx, store.Query{Table: t.Tracking.Registry.Name, Partition: accountRows}),
		func(it store.Item) (*ConnectedAccount, error) { return from(it, (*ConnectedAccount).fields), nil })
}

// merchantOf returns the merchant of a Stripe account, which it reads once, or ErrUnregistered.
func (s *Service) merchantOf(ctx context.Context, stripeAccount string) (string, error) {
	if merchant, known := s.merchants.Load(stripeAccount); known {
		return merchant.(string), nil
	}
	a, err := s.ConnectedAccount(ctx, stripeAccount)
	if err != nil {
		return "", err
	}
	s.merchants.Store(stripeAccount, a.Merchant)
	return a.Merchant, nil
}

// stripeAccountOf returns the Stripe account at which a merchant sells now.
func (s *Service) stripeAccountOf(ctx context.Context, merchant string) (string, error) {
	it, err := s.o.Store.Get(ctx, s.registry, store.Key{PK: merchantRows, SK: merchant})
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("merchant %s has no Stripe account in this store: %w", merchant, ErrUnregistered)
	}
	return it.Str(schema.TrackedStripeAccount), err
}

// SavePoll records how far the poller is with the account. Through never moves back.
func (s *Service) SavePoll(ctx context.Context, stripeAccount string, p PollState) error {
	_, err := s.changeAccount(ctx, stripeAccount, func(a *ConnectedAccount) bool {
		if p.Through.Before(a.Polled.Through) {
			p.Through = a.Polled.Through
		}
		if a.Polled.Thin && !p.Thin { // noted after that round had begun
			p.Thin, p.Checked = true, time.Time{}
		}
		reconnected := a.Status == Disconnected && p.Error == "" && p.Checked.After(a.Updated)
		if reconnected { // Stripe listed its events after it had disconnected
			a.Status, a.Updated = Connected, s.now()
		}
		changed := a.Polled != p || reconnected
		a.Polled = p
		return changed
	})
	return err
}

func (s *Service) connection(ctx context.Context, stripeAccount string, status AccountStatus,
) (*ConnectedAccount, error) {
	return s.changeAccount(ctx, stripeAccount, func(a *ConnectedAccount) bool {
		wakes := status == Connected && !a.Polled.Next.IsZero()
		if wakes { // the poller may wait because the account refused it
			a.Polled.Next, a.Polled.Quiet = time.Time{}, 0
		}
		if a.Status != status {
			a.Status, a.Updated = status, s.now()
			return true
		}
		return wakes
	})
}

func (s *Service) changeAccount(ctx context.Context, stripeAccount string,
	change func(*ConnectedAccount) bool) (a *ConnectedAccount, err error) {
	err = store.Retry(ctx, "account "+stripeAccount, func() error {
		if a, err = s.ConnectedAccount(ctx, stripeAccount); err != nil || !change(a) {
			return err
		}
		return s.commit(ctx, put(s.registry, a.fields, s.now()))
	})
	return a, err
}

// quarantine lists an event of an unregistered account, if the account still is unregistered.
func (s *Service) quarantine(stripeAccount, event string) []store.Write {
	return []store.Write{store.Put(s.registry, registryRow(quarantineRows, stripeAccount+"#"+event)),
		store.Check(s.registry, accountKey(stripeAccount), store.Absent())}
}

// pending writes a row of the inbox, due after the wait.
func (s *Service) pending(kind, id string, wait time.Duration) store.Write {
	now := s.now()
	return outbox.Write(s.o.Tables.Outbox.Name, outbox.Effect{Queue: outbox.Inbox, ID: kind + "/" + id, Kind: kind,
		Due: now.Add(wait), Created: now, Data: map[string]string{pendingID: id}})
}
