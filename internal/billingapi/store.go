package billingapi

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

const (
	reportDays = 30  // the default of report --days
	yearOfDays = 366 // maximum of report --days
)

// report scans the store, as the command does, one request at a time.
func (s *server) report(w http.ResponseWriter, r *web.Request) error {
	values, err := r.Values("from", "to", "days")
	x := form{[]error{err}}
	month := func(name string) (d civil.Date) {
		if text := values.Get(name); text != "" {
			if d, err = civil.Parse(text + "-01"); err != nil || d.Year() < 1970 || d.After(s.Engine.Today().AddDays(yearOfDays)) {
				x.add(billing.Invalid(name, "must be a month such as 2026-01, from 1970 to at most a year ahead"))
			}
		}
		return d
	}
	q := report.Query{From: month("from"), To: month("to"), Days: x.days("days", values.Get("days"), 1, reportDays), Progress: func(int64) {}}
	if q.From.After(s.Engine.Today().AddDays(1)) || !q.To.IsZero() && q.From.After(q.To) {
		x.add(billing.Invalid("from", "must be a month that has begun, and must not be after to"))
	}
	return s.scan(w, r, x.err(), func(e *engine.Engine) (view.Object, error) {
		made, err := e.Report(r.Context(), q)
		if err != nil {
			return nil, err
		}
		return view.Report(made), nil
	})
}

// payouts compares the receipts with payouts, as the command does.
func (s *server) payouts(w http.ResponseWriter, r *web.Request) error {
	values, err := r.Values("from", "until", "settled")
	x := form{[]error{err}}
	q := payout.Query{From: x.date("from", values.Get("from")), Until: x.date("until", values.Get("until")),
		Days: x.days("settled", values.Get("settled"), 0, payout.Settled)}
	if q.From.IsZero() {
		x.add(billing.Invalid("from", "is missing"))
	} else if !q.Until.IsZero() && q.Until.Before(q.From) {
		x.add(billing.Invalid("until", "must not be before from"))
	}
	return s.scan(w, r, x.err(), func(e *engine.Engine) (view.Object, error) {
		made, err := payout.Make(r.Context(), e.Records, e.Charging().Processor, q)
		if err != nil {
			return nil, err
		}
		return view.Payouts(made), nil
	})
}

// scan sends a report, unless the request is wrong. There is one at a time, because it reads the whole store.
func (s *server) scan(w http.ResponseWriter, r *web.Request, wrong error, report func(*engine.Engine) (view.Object, error)) error {
	e, err := s.Engine.Fresh(r.Context())
	if err = cmp.Or(wrong, err); err != nil {
		return err
	}
	if !s.reporting.CompareAndSwap(false, true) {
		return errReporting
	}
	defer s.reporting.Store(false)
	made, err := report(e)
	return show(w, made, err)
}

func (s *server) status(w http.ResponseWriter, r *web.Request) error {
	checks := s.Look(r.Context())
	return show(w, view.Object{"ok", len(status.Alarms(checks)) == 0, "as_of?", status.LookedAt(checks), "checks", view.List(checks, view.Check)}, nil)
}

func (s *server) charging(w http.ResponseWriter, r *web.Request) error {
	meta, err := s.Engine.Meta(r.Context())
	return show(w, view.Charging(meta.Charging, meta.Reason, "", meta.Switched), err)
}

func (s *server) setCharging(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Charging *bool  `json:"charging" decides:"accept_other_installation"`
		Reason   string `json:"reason"`
		Accept   string `json:"accept_other_installation" field:"installation" empty:"no"`
	}
	x := form{[]error{r.Read(&f), billing.CheckText("reason", f.Reason, billing.MaxText)}}
	if f.Charging == nil {
		x.add(billing.Invalid("charging", "must be true or false"))
	} else if f.Accept != "" && !*f.Charging {
		x.add(billing.Invalid("accept_other_installation", "requires charging to be true"))
	}
	err := x.err()
	if err == nil && f.Accept != "" {
		err = s.Engine.Charging().Accept(r.Context(), f.Accept)
	}
	if err == nil {
		err = s.Engine.SetCharging(r.Context(), *f.Charging, f.Reason)
	}
	if err != nil {
		return err
	}
	return show(w, view.Charging(*f.Charging, f.Reason, f.Accept, call.Of(r.Context()).Actor), nil)
}

// createKey shows the key's text only in the first response.
func (s *server) createKey(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Name     string    `json:"name"`
		Scope    key.Scope `json:"scope"`
		Merchant string    `json:"merchant" empty:"no"`
		Expires  time.Time `json:"expires_at" field:"expires"`
	}
	err := r.Read(&f)
	k := key.Key{Name: f.Name, Scope: f.Scope, Merchant: f.Merchant, Expires: f.Expires}
	if err != nil {
		return errors.Join(err, k.Check(s.Engine.Now()))
	}
	return s.once(w, r, post{status: http.StatusCreated, asked: f,
		do: func(ctx context.Context, _ *engine.Engine) (any, error) {
			text, err := s.Keys.Create(ctx, &k)
			return append(view.Key(&k), "key", text.Reveal()), err
		}})
}

func (s *server) keys(w http.ResponseWriter, r *web.Request) error {
	return finder[key.Key]{view: view.Key, path: func(k *key.Key) string { return "keys/" + k.ID },
		place: func(k *key.Key) string { return k.ID },
		find: func(_ url.Values, after string) (iter.Seq2[*key.Key, error], error) {
			return sequence.Filter(s.Keys.All(r.Context()), func(k *key.Key) bool { return k.ID > after }), nil
		}}.send(s, w, r)
}

// revokeKey accepts only the key's ID, because several keys can have the same name.
func (s *server) revokeKey(w http.ResponseWriter, r *web.Request) error {
	id := r.PathValue("key")
	k, err := (*key.Key)(nil), error(web.ErrNotFound)
	if strings.HasPrefix(id, key.IDPrefix) {
		k, err = s.Keys.Revoke(r.Context(), id)
	}
	if _, unknown := errors.AsType[*field.Error](err); unknown {
		err = web.ErrNotFound
	}
	if err != nil {
		return err
	}
	return show(w, view.Key(k), nil)
}
