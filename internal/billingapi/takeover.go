package billingapi

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/takeover"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// takeovers lists the processor's subscriptions, with what each becomes.
func (s *server) takeovers(w http.ResponseWriter, r *web.Request) error {
	return web.List(r.Server, w, r, web.ListOptions[takeover.Entry]{Names: []string{"subscription", "customer", "sku"},
		Open: func(values url.Values, after string) (iter.Seq2[takeover.Entry, error], error) {
			e, err := s.Engine.Fresh(r.Context())
			if err != nil {
				return nil, err
			}
			v, err := takeover.New(e)
			if err != nil {
				return nil, err
			}
			return v.Plan(r.Context(), takeover.Filter{ID: values.Get("subscription"), Customer: values.Get("customer"), SKU: values.Get("sku"), After: after}), nil
		},
		Place: func(e takeover.Entry) string { return e.Theirs.ID },
		View:  func(e takeover.Entry) any { return view.Takeover(e) }})
}

// startTakeover takes over one of the processor's subscriptions. A repeated request continues it.
func (s *server) startTakeover(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Subscription string `json:"subscription"`
	}
	x := form{[]error{r.Read(&f), billing.CheckID("subscription", f.Subscription)}}
	if err := x.err(); err != nil {
		return err
	}
	return s.once(w, r, post{status: http.StatusOK, asked: f, resumes: true, do: func(ctx context.Context, e *engine.Engine) (any, error) {
		v, err := takeover.New(e)
		if err != nil {
			return nil, err
		}
		for found, err := range v.Plan(ctx, takeover.Filter{ID: f.Subscription}) {
			if err != nil {
				return nil, err
			}
			if found.Stays == "" {
				err = call.Store(ctx, e.Store)
			}
			if found.Stays == "" && err == nil {
				found, err = v.Take(ctx, found)
			}
			if err == nil && found.Stays != "" {
				err = fmt.Errorf("subscription %s stays at the processor: %s: %w", found.Theirs.ID, found.Stays, billing.ErrState)
			}
			return view.Takeover(found), err
		}
		return nil, fmt.Errorf("the processor has no subscription %s that has not ended: %w", f.Subscription, billing.ErrState)
	}})
}

// undoTakeover hands a held subscription back. A repeated request continues that.
func (s *server) undoTakeover(w http.ResponseWriter, r *web.Request) error {
	var f struct{}
	if err := r.Read(&f); err != nil {
		return err
	}
	n := nameOf(r)
	return s.once(w, r, post{status: http.StatusOK, object: pathOf(n), asked: f, resumes: true, do: func(ctx context.Context, e *engine.Engine) (any, error) {
		v, err := takeover.New(e)
		if err == nil {
			err = call.Store(ctx, e.Store)
		}
		if err != nil {
			return nil, err
		}
		sub, err := v.Undo(ctx, n)
		return showSubscription(w, sub, err)
	}})
}
