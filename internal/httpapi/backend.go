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

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// A Backend registers merchants, retries jobs, and finds the purchase of an idempotency key.
type Backend interface {
	Register(ctx context.Context, merchant, stripeAccount string) (*tracking.ConnectedAccount, error)
	ConnectedAccount(ctx context.Context, stripeAccount string) (*tracking.ConnectedAccount, error)
	Jobs(ctx context.Context) iter.Seq2[tracking.WaitingJob, error]
	ReplayJob(ctx context.Context, id string) error
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

// retryJob makes a dead job due again.
func (s *server) retryJob(w http.ResponseWriter, r *web.Request) error {
	if r.ContentLength != 0 { // the body is optional
		if err := r.Read(&struct{}{}); err != nil {
			return err
		}
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
