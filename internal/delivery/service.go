package delivery

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Options configures a Service. Log may be nil.
type Options struct {
	Store  store.Store
	Tables schema.Tables
	Now    func() time.Time                   // the store's clock
	Days   func(context.Context) (int, error) // how long messages are kept after their last attempt
	Log    *slog.Logger
}

// A Service manages a store's endpoints and messages. It is safe for concurrent use.
type Service struct {
	o     Options
	table string // recurring payments table
	rows  *outbox.Outbox

	mu   sync.Mutex
	list []*Endpoint // guarded by mu; its elements do not change
	days int         // from Options.Days, if there is an endpoint
	read time.Time   // when both were read; zero: never
}

const (
	fresh   = 5 * time.Second  // how long a process uses the endpoints that it has read
	margin  = 5 * time.Second  // for commits in progress and different clocks
	overlap = 24 * time.Hour   // how long a replaced secret still signs messages
	claim   = 30 * time.Second // how long a process holds a row; longer than an attempt

	daysUnread = 30 // for which messages are kept if the setting cannot be read
)

// New returns a Service.
func New(o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Service{o: o, table: o.Tables.RecurringPayments.Name}
	s.rows = outbox.New(o.Store, o.Tables.Outbox, s.now, nil, nil).On(outbox.Deliveries).Claiming(claim)
	return s
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

// All yields the endpoints, which the caller must not change. One that cannot be read is paused. An error ends the
// sequence.
func (s *Service) All(ctx context.Context) iter.Seq2[*Endpoint, error] {
	return func(yield func(*Endpoint, error) bool) {
		for it, err := range s.o.Store.Query(ctx, store.Query{Table: s.table, Partition: endpointsPK}) {
			if err != nil {
				yield(nil, fmt.Errorf("read the endpoints: %w", err))
				return
			}
			e, err := decodeEndpoint(it)
			if err != nil { // it must not stop charges or the other endpoints
				s.o.Log.WarnContext(ctx, "an endpoint receives nothing", "error", err)
				e.Paused, e.Reason = s.now(), ReasonUnreadable
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// within returns the endpoints as they were at most age ago.
func (s *Service) within(ctx context.Context, age time.Duration) ([]*Endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if is := now.Sub(s.read); !s.read.IsZero() && is >= 0 && is < age {
		return s.list, nil
	}
	var list []*Endpoint
	for e, err := range s.All(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if len(list) > 0 {
		days, err := s.o.Days(ctx)
		if err != nil { // it must not stop charges
			s.o.Log.WarnContext(ctx, "the setting for how long messages are kept cannot be read", "error", err)
		}
		s.days = cmp.Or(days, s.days, daysUnread)
	}
	s.list, s.read = list, now
	return list, nil
}

// kept returns the number of days for which messages are kept.
func (s *Service) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.days
}

// forget makes the next call of within read the endpoints again.
func (s *Service) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = time.Time{}
}

// Any reports whether the store had an endpoint within the last five seconds.
func (s *Service) Any(ctx context.Context) (bool, error) {
	list, err := s.within(ctx, fresh)
	return len(list) > 0, err
}

// Due reports whether a message may be due, as outbox.Outbox.AnyDue does. It takes 16 requests, or one if
// there are no endpoints.
func (s *Service) Due(ctx context.Context) (bool, error) {
	s.mu.Lock()
	known := len(s.list) > 0
	s.mu.Unlock()
	if !known {
		if there, err := s.Any(ctx); err != nil || !there {
			return false, err
		}
	}
	return s.rows.AnyDue(ctx)
}

// Create creates an endpoint for the types, or for all if types is empty. The endpoint receives every event
// after from. Callers must show its Secret now, because only Create and Rotate do. For an invalid field,
// Create returns a field.Error.
func (s *Service) Create(ctx context.Context, url string, types []string) (e *Endpoint, from time.Time, err error) {
	now := s.now()
	e = &Endpoint{ID: "ep_" + strings.ToLower(rand.Text()[:16]), URL: url, Types: types, Created: now, Secret: newSecret(), Version: 1}
	if err = e.Check(); err != nil {
		return nil, from, err
	}
	list, err := s.within(ctx, 0)
	if err != nil {
		return nil, from, err
	}
	if len(list) >= MostEndpoints {
		return nil, from, fmt.Errorf("a store can have at most %d endpoints: %w", MostEndpoints, ErrState)
	}
	return e, now.Add(fresh + margin), s.commit(ctx, e, store.Absent())
}

// ErrState means that the request is not possible now.
var ErrState = errors.New("not possible now")

// Endpoint returns the endpoint, or store.ErrNotFound.
func (s *Service) Endpoint(ctx context.Context, id string) (*Endpoint, error) {
	it, err := s.o.Store.Get(ctx, s.table, endpointKey(id))
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", secret.Short(id), err)
	}
	return decodeEndpoint(it)
}

// A Change contains an endpoint's new values. A nil field stays unchanged.
type Change struct {
	URL    *string
	Types  *[]string
	Paused *bool
}

// Check returns an error that joins a field.Error for each invalid field.
func (c Change) Check() error {
	return (&Endpoint{URL: *cmp.Or(c.URL, new("http://localhost")), Types: *cmp.Or(c.Types, new([]string))}).Check()
}

// Update changes the endpoint. Resuming it also resets Failing.
func (s *Service) Update(ctx context.Context, id string, c Change) (*Endpoint, error) {
	return s.change(ctx, id, func(e *Endpoint) error {
		e.URL, e.Types = *cmp.Or(c.URL, &e.URL), *cmp.Or(c.Types, &e.Types)
		switch {
		case c.Paused == nil:
		case !*c.Paused:
			e.Paused, e.Reason, e.Failing = time.Time{}, "", time.Time{}
		case e.Paused.IsZero():
			e.Paused, e.Reason = s.now(), ReasonRequested
		}
		return e.Check()
	})
}

// Rotate gives the endpoint a new secret. For a day, the replaced one also signs messages. During that day,
// another Rotate returns ErrState, unless now is true, which ends the old secrets at once.
func (s *Service) Rotate(ctx context.Context, id string, now bool) (*Endpoint, error) {
	return s.change(ctx, id, func(e *Endpoint) error {
		at := s.now()
		switch {
		case now:
			e.Previous, e.Until = secret.Text{}, time.Time{}
		case e.Until.After(at):
			return fmt.Errorf("endpoint %s: its secret was replaced already, and the previous one signs messages until %s: %w", e.ID,
				stamp(e.Until), ErrState)
		default:
			e.Previous, e.Until = e.Secret, at.Add(overlap)
		}
		e.Secret = newSecret()
		return nil
	})
}

// errSame is returned by a change that changes nothing.
var errSame = errors.New("nothing changes")

// change reads the endpoint, calls do to change it, and commits it.
func (s *Service) change(ctx context.Context, id string, do func(*Endpoint) error) (e *Endpoint, err error) {
	err = store.Retry(ctx, "endpoint "+id, func() error {
		if e, err = s.Endpoint(ctx, id); err != nil {
			return err
		}
		same := store.AttributeEquals(schema.Version, store.Int(e.Version))
		if err = cmp.Or(call.Check(ctx, e.item()), do(e)); err != nil {
			return err
		}
		e.Version++
		return s.commit(ctx, e, same)
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return e, err
}

// commit puts the endpoint. If the reply is lost, commit checks whether the put has succeeded, because a
// stored secret must be shown.
func (s *Service) commit(ctx context.Context, e *Endpoint, same store.Condition) error {
	defer s.forget()
	call.Creates(ctx, "endpoints/"+e.ID)
	it := e.item()
	err := call.Commit(ctx, s.o.Store, store.Put(s.table, it, same))
	if errors.Is(err, store.ErrUnknown) {
		if now, gerr := s.o.Store.Get(ctx, s.table, endpointKey(e.ID)); gerr == nil && now.Equal(it) {
			err = nil
		}
	}
	return err
}

// Delete deletes the endpoint. Its waiting messages are not sent.
func (s *Service) Delete(ctx context.Context, id string) error {
	defer s.forget()
	e, err := s.Endpoint(ctx, id)
	if e == nil {
		return err
	}
	if err = call.Check(ctx, e.item()); err != nil {
		return err
	}
	return call.Commit(ctx, s.o.Store, store.Delete(s.table, endpointKey(id)))
}
