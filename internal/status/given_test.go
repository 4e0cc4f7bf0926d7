package status_test

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
)

func parseDate(begun time.Time) (civil.Date, error) { return civil.Parse(begun.Format(time.DateOnly)) }

// A broken store answers nothing.
type broken struct{ store.Store }

var errGone = errors.New("the disk is gone")

func (broken) Get(context.Context, string, store.Key) (store.Item, error) { return nil, errGone }
func (broken) Query(context.Context, store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) { yield(nil, errGone) }
}

// refusing never delivers.
type refusing struct{}

func (refusing) Deliver(context.Context, outbox.Effect) error { return outbox.ErrPermanent }

func (w *world) claim(by string) func() {
	_, release, err := w.store.Claim(w.t.Context(), status.ClaimName, by)
	if err != nil {
		w.t.Fatal(err)
	}
	return release
}

func (w *world) set(name, text string) {
	if _, err := w.engine.ChangeSettings(w.t.Context(), func(s *billing.Settings) error { return s.Set(name, text) }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) charging(reason string) {
	if err := w.engine.SetCharging(w.t.Context(), false, reason); err != nil {
		w.t.Fatal(err)
	}
}

// account is one of Stripe's, in the form in which package tracking stores it.
func (w *world) account(id string, through time.Time, failed string) {
	registry := w.tables.Tracking.Registry.Name
	own := store.NewItem(store.Attribute{Name: schema.TrackedStripeAccount, Value: store.S("acct_own")})
	own.Set(schema.PK, store.S("OWN"))
	own.Set(schema.SK, store.S("OWN"))
	polled := store.NewItem(store.Attribute{Name: schema.PollThrough, Value: store.S(through.Format("2006-01-02 15:04:05.000"))},
		store.Attribute{Name: schema.PollError, Value: store.S(failed)})
	it := store.NewItem(store.Attribute{Name: schema.TrackedPolled, Value: store.M(polled)},
		store.Attribute{Name: schema.TrackedStatus, Value: store.S("connected")})
	it.Set(schema.PK, store.S("ACCOUNT"))
	it.Set(schema.SK, store.S(id))
	w.commit(store.Put(registry, own), store.Put(registry, it))
}

// signed notes a signature so long ago.
func (w *world) signed(good bool, ago time.Duration) {
	if w.in.Endpoints == nil {
		w.in.Endpoints = new(status.Endpoints)
	}
	w.in.Endpoints.Note("/hooks/stripe", good, w.now.Add(-ago))
}

func (w *world) ahead(d time.Duration, known bool) {
	w.in.Offset = func() (time.Duration, bool) { return d, known }
}

func (w *world) disk(free, size uint64) {
	w.in.Disk = func(string) (uint64, uint64, error) { return free, size, nil }
}

// A hanging store answers when its caller gives up.
type hanging struct{ store.Store }

func (hanging) Get(ctx context.Context, _ string, _ store.Key) (store.Item, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
