package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Records reads and writes billing's items in a store. It decides nothing about payments.
type Records struct {
	Store  store.Store
	Tables schema.Tables
	Table  string           // the recurring-payments table
	Now    func() time.Time // UTC, whole milliseconds
	Log    *slog.Logger
	Opened Meta // as the store was opened
	Shared bool // other processes may write to the store at the same time
}

// NewRecords returns the records of the store. A nil log discards.
func NewRecords(s store.Store, t schema.Tables, now func() time.Time, log *slog.Logger) *Records {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Records{Store: s, Tables: t, Table: t.RecurringPayments.Name, Log: log,
		Now: func() time.Time { return now().UTC().Truncate(time.Millisecond) }}
}

// Today returns the clock's day in UTC.
func (e *Records) Today() civil.Date { return civil.Of(e.Now()) }

// Load returns the subscription as it stands, store.ErrNotFound or ErrMoved.
func (e *Records) Load(ctx context.Context, n Name) (*Subscription, error) {
	it, err := e.Store.Get(ctx, e.Table, n.Key())
	if err != nil {
		return nil, err
	}
	s, err := DecodeSubscription(it)
	switch {
	case err != nil:
		return nil, &IllegibleError{Err: err}
	case s.Moved:
		return nil, fmt.Errorf("subscription %s was %w", n, ErrMoved)
	}
	return s, nil
}

// IgnoreNotFound returns nil for store.ErrNotFound, and any other error as it is.
func IgnoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// An IllegibleError tells of an unreadable item, written by another tool. Asking again changes
// nothing; other items are not affected.
type IllegibleError struct{ Err error }

func (e *IllegibleError) Error() string { return e.Err.Error() }
func (e *IllegibleError) Unwrap() error { return e.Err }

// Put commits the subscription if it is still as it was read, together with the other
// writes. After an error the caller must read it again.
func (e *Records) Put(ctx context.Context, s *Subscription, others ...store.Write) error {
	s.Shards = e.Opened.Shards
	w := s.write(e.Table)
	err := e.Store.Commit(ctx, append([]store.Write{w}, others...)...)
	if errors.Is(err, store.ErrUnknown) { // all or nothing: the item tells which
		if now, lerr := e.Load(ctx, s.Name); lerr == nil && now.Raw.Equal(w.Item) {
			err = nil
		}
	}
	if err == nil {
		s.Raw = w.Item
	}
	return err
}
