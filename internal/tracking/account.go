package tracking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A ConnectedAccount is a Stripe account whose events are followed, and the customer account
// that it is of. It is of that one for good.
type ConnectedAccount struct {
	StripeAccount string        `json:"stripe_account"`
	Account       string        `json:"account"`       // UUID
	Own           bool          `json:"own,omitempty"` // it is that of our key, and connected to nobody
	Created       time.Time     `json:"created"`
	Updated       time.Time     `json:"last_updated"`
	Status        AccountStatus `json:"status"`
	Polled        PollState     `json:"polled"`

	version int64
}

// An AccountStatus says whether a Stripe account lets us in.
type AccountStatus string

// The statuses of a connected account.
const (
	Connected    AccountStatus = "connected"
	Disconnected AccountStatus = "disconnected"
)

// A PollState is how far the poller is with an account.
type PollState struct {
	Through time.Time `json:"verified_through,omitzero"` // every event before it is stored here; exclusive
	Checked time.Time `json:"checked,omitzero"`          // when it was asked last; a round that failed does not move it into another day
	Next    time.Time `json:"next,omitzero"`             // not before it, unless somebody wants it
	Quiet   int       `json:"quiet,omitempty"`           // rounds in a row in which nothing had happened
	Swept   time.Time `json:"swept,omitzero"`            // when its objects were compared last
	Error   string    `json:"error,omitempty"`           // why the last round did not get through
}

// The registry's partitions. Rows of quarantined events wait under <account>#<event>.
const (
	accountRows    = "ACCOUNT"
	customerRows   = "CUSTOMER"
	quarantineRows = "QUARANTINE"
	ownRow         = "OWN"
)

func accountKey(stripeAccount string) store.Key { return store.Key{PK: accountRows, SK: stripeAccount} }

func (a *ConnectedAccount) item() store.Item {
	var polled, w writer
	polled.time(schema.PollThrough, a.Polled.Through)
	polled.time(schema.PollChecked, a.Polled.Checked)
	polled.time(schema.PollNext, a.Polled.Next)
	polled.number(schema.PollQuiet, int64(a.Polled.Quiet))
	polled.time(schema.PollSwept, a.Polled.Swept)
	polled.text(schema.PollError, a.Polled.Error)
	w.text(schema.PK, accountRows)
	w.text(schema.SK, a.StripeAccount)
	w.text(schema.TrackedAccount, a.Account)
	w.time(schema.TrackedCreated, a.Created)
	w.time(schema.TrackedUpdated, a.Updated)
	w.text(schema.TrackedStatus, string(a.Status))
	w.number(schema.TrackedVersion, a.version)
	if len(polled.it) > 0 {
		w.it.Set(schema.TrackedPolled, store.M(polled.it))
	}
	return w.it
}

func (s *Service) accountOfItem(it store.Item) *ConnectedAccount {
	p := it.Get(schema.TrackedPolled).Map()
	return &ConnectedAccount{StripeAccount: it.Str(schema.SK), Account: it.Str(schema.TrackedAccount), Own: it.Str(schema.SK) == s.o.Own,
		Created: parseStamp(it.Str(schema.TrackedCreated)), Updated: parseStamp(it.Str(schema.TrackedUpdated)),
		Status: AccountStatus(it.Str(schema.TrackedStatus)), version: it.Int(schema.TrackedVersion),
		Polled: PollState{Through: parseStamp(p.Str(schema.PollThrough)), Checked: parseStamp(p.Str(schema.PollChecked)),
			Next: parseStamp(p.Str(schema.PollNext)), Quiet: int(p.Int(schema.PollQuiet)), Swept: parseStamp(p.Str(schema.PollSwept)), Error: p.Str(schema.PollError)}}
}

// Register has the events of the Stripe account followed, as those of the customer account,
// and drives again what was quarantined meanwhile. To register it again changes nothing. Errors:
// a FieldError, ErrOther where it is registered for another customer account, ErrDisconnected.
func (s *Service) Register(ctx context.Context, account, stripeAccount string) (*ConnectedAccount, error) {
	account, err := checkUUID("account", account)
	if err != nil {
		return nil, err
	}
	if !isID(stripeAccount, "acct_") {
		return nil, &FieldError{"stripe_account", "want the id of a Stripe account, such as acct_1A2b3C"}
	}
	if stripeAccount != s.o.Own {
		if err := s.o.Finder.Connected(ctx, stripeAccount); err != nil {
			return nil, fmt.Errorf("account %s: %w", stripeAccount, err)
		}
	}
	now := s.now()
	a := &ConnectedAccount{StripeAccount: stripeAccount, Account: account, Own: stripeAccount == s.o.Own, Created: now, Updated: now, Status: Connected, version: 1}
	of := store.NewItem(store.Attribute{Name: schema.PK, Value: store.S(customerRows)}, store.Attribute{Name: schema.SK, Value: store.S(account)},
		store.Attribute{Name: schema.TrackedStripeAccount, Value: store.S(stripeAccount)})
	// The inbox releases what was quarantined if this process does not come to it.
	err = s.commit(ctx, store.Put(s.registry, a.item(), store.Absent()), store.Put(s.registry, of), s.pending(pendingRelease, stripeAccount, releaseWait))
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
		there, reading := s.ConnectedAccount(ctx, stripeAccount)
		switch {
		case reading != nil:
			return nil, errors.Join(err, reading)
		case there.Account != account:
			return nil, fmt.Errorf("account %s is registered for customer account %s: %w", stripeAccount, there.Account, ErrOther)
		}
		if a, err = s.connection(ctx, stripeAccount, Connected); err == nil {
			err = s.commit(ctx, store.Put(s.registry, of)) // its purchases are made there from now on
		}
	}
	if err != nil {
		return nil, err
	}
	return a, s.release(ctx, stripeAccount)
}

// release hands to the inbox what was quarantined of the account. It may be repeated.
func (s *Service) release(ctx context.Context, stripeAccount string) error {
	for it, err := range s.o.Store.Query(ctx, store.Query{Table: s.registry, Partition: quarantineRows, Prefix: stripeAccount + "#"}) {
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

// ConnectedAccount returns the Stripe account as it is registered, or ErrUnregistered.
func (s *Service) ConnectedAccount(ctx context.Context, stripeAccount string) (*ConnectedAccount, error) {
	if !isID(stripeAccount, "acct_") {
		return nil, fmt.Errorf("account %q: %w", stripeAccount, ErrUnregistered)
	}
	it, err := s.o.Store.Get(ctx, s.registry, accountKey(stripeAccount))
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("account %s: %w", stripeAccount, ErrUnregistered)
	}
	if err != nil {
		return nil, err
	}
	return s.accountOfItem(it), nil
}

// ConnectedAccounts yields all that are registered, by their id.
func (s *Service) ConnectedAccounts(ctx context.Context) iter.Seq2[*ConnectedAccount, error] {
	return func(yield func(*ConnectedAccount, error) bool) {
		for it, err := range s.o.Store.Query(ctx, store.Query{Table: s.registry, Partition: accountRows}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(s.accountOfItem(it), nil) {
				return
			}
		}
	}
}

// customerOf returns the customer account of a Stripe account, or ErrUnregistered. What it has
// found once it does not read again: it is that for good.
func (s *Service) customerOf(ctx context.Context, stripeAccount string) (string, error) {
	s.mu.Lock()
	account, known := s.accounts[stripeAccount]
	s.mu.Unlock()
	if known {
		return account, nil
	}
	a, err := s.ConnectedAccount(ctx, stripeAccount)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts[stripeAccount] = a.Account
	return a.Account, nil
}

// stripeAccountOf returns the Stripe account at which a customer account sells now.
func (s *Service) stripeAccountOf(ctx context.Context, account string) (string, error) {
	it, err := s.o.Store.Get(ctx, s.registry, store.Key{PK: customerRows, SK: account})
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("customer account %s has no Stripe account here: %w", account, ErrUnregistered)
	}
	return it.Str(schema.TrackedStripeAccount), err
}

// SavePoll records how far the poller is with the account. What is verified is never taken back.
func (s *Service) SavePoll(ctx context.Context, stripeAccount string, p PollState) error {
	_, err := s.changeAccount(ctx, stripeAccount, func(a *ConnectedAccount) bool {
		if p.Through.Before(a.Polled.Through) {
			p.Through = a.Polled.Through
		}
		back := a.Status == Disconnected && p.Error == "" && p.Checked.After(a.Updated)
		if back { // it was listed after it had let go of us
			a.Status, a.Updated = Connected, s.now()
		}
		changed := a.Polled != p || back
		a.Polled = p
		return changed
	})
	return err
}

// connection records whether the account lets us in.
func (s *Service) connection(ctx context.Context, stripeAccount string, status AccountStatus) (*ConnectedAccount, error) {
	return s.changeAccount(ctx, stripeAccount, func(a *ConnectedAccount) bool {
		if a.Status == status {
			return false
		}
		a.Status, a.Updated = status, s.now()
		return true
	})
}

func (s *Service) changeAccount(ctx context.Context, stripeAccount string, change func(*ConnectedAccount) bool) (*ConnectedAccount, error) {
	for range maxTries {
		a, err := s.ConnectedAccount(ctx, stripeAccount)
		if err != nil || !change(a) {
			return a, err
		}
		before := a.version
		a.version++
		err = s.commit(ctx, store.Put(s.registry, a.item(), store.AttributeEquals(schema.TrackedVersion, store.Int(before))))
		if err == nil || !again(err) {
			return a, err
		}
	}
	return nil, fmt.Errorf("account %s: overtaken by others %d times", stripeAccount, maxTries)
}

// quarantine is the row by which the events of an account that is not registered are found, and
// the check that it still is not.
func (s *Service) quarantine(stripeAccount, event string) []store.Write {
	row := store.NewItem(store.Attribute{Name: schema.PK, Value: store.S(quarantineRows)},
		store.Attribute{Name: schema.SK, Value: store.S(stripeAccount + "#" + event)})
	return []store.Write{store.Put(s.registry, row), store.Check(s.registry, accountKey(stripeAccount), store.Absent())}
}

// pending is the inbox's row for what has to be dealt with later.
func (s *Service) pending(kind, id string, wait time.Duration) store.Write {
	now := s.now()
	return outbox.Write(s.o.Tables.Outbox.Name, outbox.Effect{Lane: outbox.Inbox, ID: kind + "/" + id, Kind: kind, Due: now.Add(wait), Created: now,
		Data: map[string]string{pendingID: id}})
}
