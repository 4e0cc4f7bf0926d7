package billingapi

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

func (s *server) deliveryRoutes() []web.Route {
	return []web.Route{
		route(key.Admin, "createEndpoint", "POST /v1/endpoints", s.createEndpoint),
		route(key.Admin, "listEndpoints", "GET /v1/endpoints", s.endpoints),
		route(key.Admin, "getEndpoint", "GET /v1/endpoints/{endpoint}", s.endpoint),
		route(key.Admin, "updateEndpoint", "PATCH /v1/endpoints/{endpoint}", s.updateEndpoint),
		route(key.Admin, "deleteEndpoint", "DELETE /v1/endpoints/{endpoint}", s.deleteEndpoint),
		route(key.Admin, "rotateEndpoint", "POST /v1/endpoints/{endpoint}/rotate", s.rotateEndpoint),
		route(key.Admin, "listDeliveries", "GET /v1/deliveries", s.deliveries),
		route(key.Admin, "getDelivery", "GET /v1/deliveries/{delivery}", s.delivery),
		route(key.Admin, "replayDeliveries", "POST /v1/deliveries/replay", s.replay),
	}
}

func showEndpoint(w http.ResponseWriter, e *delivery.Endpoint, err error, more ...any) (any, error) {
	if err != nil {
		return nil, err
	}
	tag(w, e.Version)
	return append(view.Endpoint(e), more...), nil
}

// createEndpoint shows the secret only in the first response.
func (s *server) createEndpoint(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		URL   string   `json:"url"`
		Types []string `json:"types"`
	}
	if err := r.Read(&f); err != nil {
		return errors.Join(err, (&delivery.Endpoint{URL: f.URL, Types: f.Types}).Check())
	}
	return s.once(w, r, post{status: http.StatusCreated, asked: f,
		do: func(ctx context.Context, _ *engine.Engine) (any, error) {
			e, from, err := s.Messages.Create(ctx, f.URL, f.Types)
			if err != nil {
				return nil, err
			}
			return showEndpoint(w, e, nil, "secret", e.Secret.Reveal(), "from", from)
		}})
}

func (s *server) endpoints(w http.ResponseWriter, r *web.Request) error {
	return finder[delivery.Endpoint]{view: view.Endpoint, path: func(e *delivery.Endpoint) string { return "endpoints/" + e.ID },
		place: func(e *delivery.Endpoint) string { return e.ID },
		find: func(_ url.Values, after string) (iter.Seq2[*delivery.Endpoint, error], error) {
			var list []*delivery.Endpoint
			for e, err := range s.Messages.All(r.Context()) {
				if err != nil {
					return nil, err
				}
				if e.ID > after {
					list = append(list, e)
				}
			}
			return sequence.Of(list), s.Messages.Examine(r.Context(), list...)
		}}.send(s, w, r)
}

func (s *server) endpoint(w http.ResponseWriter, r *web.Request) error {
	e, err := s.Messages.Endpoint(r.Context(), r.PathValue("endpoint"))
	if err == nil {
		err = s.Messages.Examine(r.Context(), e)
	}
	v, err := showEndpoint(w, e, err)
	return show(w, v, err)
}

func (s *server) updateEndpoint(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		URL    *string   `json:"url"`
		Types  *[]string `json:"types"`
		Paused *bool     `json:"paused"`
	}
	if err := r.Read(&f); err != nil {
		return errors.Join(err, delivery.Change(f).Check())
	}
	if delivery.Change(f) == (delivery.Change{}) {
		return errNothing
	}
	e, err := s.Messages.Update(r.Context(), r.PathValue("endpoint"), delivery.Change(f))
	v, err := showEndpoint(w, e, err)
	return show(w, v, err)
}

func (s *server) deleteEndpoint(w http.ResponseWriter, r *web.Request) error {
	err := s.Messages.Delete(r.Context(), r.PathValue("endpoint"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// rotateEndpoint shows the new secret only in the first response.
func (s *server) rotateEndpoint(w http.ResponseWriter, r *web.Request) error {
	id := r.PathValue("endpoint")
	var f struct {
		Now bool `json:"now"`
	}
	if err := r.Read(&f); err != nil {
		return err
	}
	return s.once(w, r, post{status: http.StatusOK, object: "endpoints/" + id, asked: f,
		do: func(ctx context.Context, _ *engine.Engine) (any, error) {
			e, err := s.Messages.Rotate(ctx, id, f.Now)
			if err != nil {
				return nil, err
			}
			return showEndpoint(w, e, nil, "secret", e.Secret.Reveal())
		}})
}

func (s *server) deliveries(w http.ResponseWriter, r *web.Request) error {
	var state string
	return web.List(r.Server, w, r, web.ListOptions[*delivery.Message]{Names: []string{"endpoint", "state"},
		Place: func(m *delivery.Message) string { return m.Place }, View: func(m *delivery.Message) any { return view.Message(m) },
		Open: func(values url.Values, after string) (iter.Seq2[*delivery.Message, error], error) {
			f := delivery.Filter{Endpoint: values.Get("endpoint")}
			switch state = values.Get("state"); state {
			case "", delivery.Delivered, delivery.Failed:
				f.Brief = state
			case delivery.Waiting:
				f.State = state // waiting rows are in the outbox
			default:
				return nil, billing.Invalid("state", "must be waiting, delivered or failed")
			}
			return s.Messages.Messages(r.Context(), f, after), nil
		},
		Keep: func(m *delivery.Message) bool { return state == "" || m.State == state }})
}

// delivery sends one message. Its endpoint and the time of its event spare the request the others.
func (s *server) delivery(w http.ResponseWriter, r *web.Request) error {
	values, err := r.Values("endpoint", "created_at")
	f := delivery.Filter{ID: r.PathValue("delivery"), Endpoint: values.Get("endpoint")}
	if text := values.Get("created_at"); text != "" {
		at, wrong := time.Parse(time.RFC3339, text)
		if wrong != nil {
			err = errors.Join(err, billing.Invalid("created_at", "must be the delivery's created_at"))
		}
		f.From, f.Until = at, at.Add(time.Millisecond)
	}
	if err != nil {
		return err
	}
	for m, err := range s.Messages.Messages(r.Context(), f, "") {
		if err != nil {
			return err
		}
		return show(w, view.Message(m), nil)
	}
	return web.ErrNotFound
}

// replay sends messages again. A repeated request continues an interrupted replay. It only selects messages that ended
// before the first request, because it could send others a third time.
func (s *server) replay(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		ID       string    `json:"id"`
		Endpoint string    `json:"endpoint"`
		State    string    `json:"state" decides:"id" empty:"no"`
		From     time.Time `json:"from" decides:"id until"`
		Until    time.Time `json:"until"`
	}
	x := form{[]error{r.Read(&f)}}
	if f.ID == "" && f.From.IsZero() && f.State == "" {
		x.add(billing.Invalid("id", "is missing: a replay needs id, from or state"))
	}
	if !slices.Contains([]string{"", delivery.Delivered, delivery.Failed}, f.State) {
		x.add(billing.Invalid("state", "must be delivered or failed"))
	}
	if !f.Until.IsZero() && !f.Until.After(f.From) {
		x.add(billing.Invalid("until", "must be after from"))
	}
	if err := x.err(); err != nil {
		return err
	}
	m := delivery.Filter{ID: f.ID, Endpoint: f.Endpoint, State: f.State, From: f.From, Until: f.Until}
	return s.once(w, r, post{status: http.StatusOK, object: "deliveries", asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			if row := call.Of(ctx).Repeats(); row != nil && f.ID != "" { // its only commit has succeeded
				m = delivery.Filter{From: e.Now().AddDate(1, 0, 0)} // no message
			} else if row != nil {
				m.Ended = row.Created
			}
			n, reaches, err := s.Messages.Replay(ctx, m)
			return view.Object{"replayed", n, "reaches", reaches}, err
		}})
}
