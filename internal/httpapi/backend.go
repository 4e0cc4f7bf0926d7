package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// A Replayer makes dead jobs due again, and applies stored events now.
type Replayer interface {
	ReplayJob(ctx context.Context, id string) error
	Replay(ctx context.Context, event string) (tracking.Verdict, error)
}

// A Backend registers merchants, replays jobs and events, and finds the purchase of an idempotency key.
type Backend interface {
	Replayer
	Register(ctx context.Context, merchant, stripeAccount string) (*tracking.ConnectedAccount, error)
	ConnectedAccount(ctx context.Context, stripeAccount string) (*tracking.ConnectedAccount, error)
	Jobs(ctx context.Context) iter.Seq2[tracking.WaitingJob, error]
	PurchaseOf(ctx context.Context, merchant, key string) (*tracking.Purchase, error)
}

// createMerchant registers a Stripe account. Without an ID, it derives the merchant's UUID from the account,
// so a repeated request registers the same merchant.
func (s *server) createMerchant(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		StripeAccount string `json:"stripe_account"`
		ID            string `json:"id"`
	}
	err := r.Read(&f)
	id := f.ID
	if id == "" {
		b := sha256.Sum256([]byte("merchant " + f.StripeAccount))
		b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
		id = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
	}
	if !tracking.IsUUID(id) {
		err = errors.Join(err, field.Wrong("id", "must be a UUID"))
	}
	if err = errors.Join(err, tracking.CheckStripeAccount(f.StripeAccount)); err != nil {
		return err
	}
	register := func(ctx context.Context) (any, error) {
		a, err := s.o.Backend.Register(ctx, id, f.StripeAccount)
		if err != nil {
			return nil, err
		}
		return view.Merchant(a), nil
	}
	return r.Server.Once(w, r, web.Change{Object: "merchants/" + f.StripeAccount, Asked: f,
		Do: func(ctx context.Context) (int, any, error) {
			v, err := register(ctx)
			return http.StatusCreated, v, err
		},
		Again: func(ctx context.Context, _ *call.Row) (any, error) { return register(ctx) }})
}

// importMerchant imports what runs in a registered Stripe account. A repeated request imports again, which changes
// nothing that is imported.
func (s *server) importMerchant(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Plan   bool `json:"dry_run"`
		Fulfil bool `json:"fulfil_active"`
	}
	if r.ContentLength != 0 {
		if err := r.Read(&f); err != nil {
			return err
		}
	}
	account := r.PathValue("stripe_account")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // it may take minutes
	do := func(ctx context.Context) (any, error) {
		v, err := s.o.Import(ctx, account, f.Plan, f.Fulfil)
		if errors.Is(err, tracking.ErrUnregistered) {
			err = web.ErrNotFound
		}
		return v, err
	}
	return r.Server.Once(w, r, web.Change{Object: "merchants/" + account, Asked: f,
		Do: func(ctx context.Context) (int, any, error) {
			v, err := do(ctx)
			return http.StatusOK, v, err
		},
		Again: func(ctx context.Context, _ *call.Row) (any, error) { return do(ctx) }})
}

func markJob(j tracking.WaitingJob) tracking.Mark { return tracking.Mark{ID: j.ID} }

func viewJob(j tracking.WaitingJob) view.Object {
	j.Error = secret.Clean(j.Error)
	return view.Job(j)
}

// jobs yields the unfinished jobs by ID, because the queue's order changes.
func (s *server) jobs(q *question) (of rows[tracking.WaitingJob], err error) {
	var all []tracking.WaitingJob
	for j, err := range s.o.Backend.Jobs(q.ctx) {
		if err != nil {
			return of, err
		}
		if j.ID > q.after.ID {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b tracking.WaitingJob) int { return cmp.Compare(a.ID, b.ID) })
	of.all = sequence.Of(all)
	return of, nil
}

// noBody reads the body, which is optional and has no fields.
func noBody(r *web.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	return r.Read(&struct{}{})
}

// retryJob makes a dead job due again.
func (s *server) retryJob(w http.ResponseWriter, r *web.Request) error {
	if err := noBody(r); err != nil {
		return err
	}
	id := r.PathValue("job")
	show := func(ctx context.Context) (any, error) {
		for j, err := range s.o.Backend.Jobs(ctx) {
			if err != nil || j.ID == id {
				return viewJob(j), err
			}
		}
		action, purchase, _ := strings.Cut(id, "/")
		return view.Object{"id", id, "action", action, "purchase", purchase}, nil // the job has succeeded meanwhile
	}
	return r.Server.Once(w, r, web.Change{Object: "jobs/" + id,
		Do: func(ctx context.Context) (int, any, error) {
			if err := s.o.Backend.ReplayJob(ctx, id); err != nil {
				return 0, nil, err
			}
			v, err := show(ctx)
			return http.StatusOK, v, err
		},
		Again: func(ctx context.Context, _ *call.Row) (any, error) { return show(ctx) }})
}

// replayEvent applies a stored event now. A repeated request also replays an event that is not applied yet, because that
// has the effect of one replay.
func (s *server) replayEvent(w http.ResponseWriter, r *web.Request) error {
	if err := noBody(r); err != nil {
		return err
	}
	id := r.PathValue("event")
	show := func(ctx context.Context, replays bool) (any, error) {
		e, err := s.o.Record.Event(ctx, id)
		if err == nil && (replays || !e.Status.Final()) {
			if _, err = s.o.Backend.Replay(ctx, id); err == nil {
				e, err = s.o.Record.Event(ctx, id)
			}
		}
		if err != nil {
			return nil, err
		}
		return view.Event(e), nil
	}
	return r.Server.Once(w, r, web.Change{Object: "events/" + id,
		Do: func(ctx context.Context) (int, any, error) {
			v, err := show(ctx, true)
			return http.StatusOK, v, err
		},
		Again: func(ctx context.Context, _ *call.Row) (any, error) { return show(ctx, false) }})
}
