package billingapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// An action changes one subscription.
type action = func(ctx context.Context, e *engine.Engine, n billing.Name) (*billing.Subscription, error)

// act sends the changed subscription, with 202 if the subscription stores the request and waits for the
// processor. A repeated request continues if shows reports that the subscription still stores it.
func (s *server) act(w http.ResponseWriter, r *web.Request, asked any, shows func(*billing.Subscription) bool, do action) error {
	n := nameOf(r)
	return s.once(w, r, post{status: http.StatusOK, object: pathOf(n), asked: asked, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			now, err := e.Subscription(ctx, n)
			if err != nil {
				return nil, err
			}
			repeats := call.Of(ctx).Repeats() != nil
			if repeats && !shows(now) {
				return showSubscription(w, now, nil)
			}
			sub, err := do(ctx, e, n)
			if err != nil && (repeats || call.Of(ctx).Stored()) {
				e.Log.WarnContext(ctx, "a requested change is not finished yet", "subscription", n.String(), "error", err)
				now, rerr := e.Subscription(ctx, n)
				if v, err := showSubscription(w, now, rerr); err == nil {
					return accepted{v}, nil
				}
			}
			v, err := showSubscription(w, sub, err)
			if err != nil || sub.Status != billing.CanceledSub {
				return v, err
			}
			list, sum, err := e.WrittenOff(ctx, sub.Name)
			if len(list) > 0 {
				v = append(v.(view.Object), view.WrittenOff(list, sum)...)
			}
			return v, err
		}})
}

func requests(request billing.Request) func(*billing.Subscription) bool {
	return func(sub *billing.Subscription) bool { return sub.Requested == request }
}

// bare handles a request without fields, which the subscription then shows as the given one.
func (s *server) bare(request billing.Request, do func(*engine.Engine, context.Context, billing.Name) (*billing.Subscription, error)) web.Handler {
	return func(w http.ResponseWriter, r *web.Request) error {
		var f struct{}
		if err := r.Read(&f); err != nil {
			return err
		}
		return s.act(w, r, f, requests(request), func(ctx context.Context, e *engine.Engine, n billing.Name) (*billing.Subscription, error) {
			return do(e, ctx, n)
		})
	}
}

func (s *server) cancel(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		AtPeriodEnd bool `json:"at_period_end"`
		Collect     bool `json:"collect"`
	}
	err := r.Read(&f)
	switch {
	case err != nil:
		return err
	case f.AtPeriodEnd && f.Collect:
		return billing.Invalid("collect", "cannot be combined with at_period_end, which charges overdue periods anyway")
	case f.Collect && !r.Key.Scope.Includes(key.Charge):
		return errCollect
	}
	collects := f.Collect
	shows := func(sub *billing.Subscription) bool {
		collects = f.Collect && sub.CancelAtEnd && sub.Requested == billing.RequestNone && !sub.Over()
		return collects || sub.Requested == billing.RequestCancel
	}
	return s.act(w, r, f, shows, func(ctx context.Context, e *engine.Engine, n billing.Name) (sub *billing.Subscription, err error) {
		if collects {
			_, sub, err = e.CancelCollecting(ctx, n)
			return sub, err
		}
		return e.Cancel(ctx, n, f.AtPeriodEnd)
	})
}

// skip skips the parked period, or all periods that are due before the day until.
func (s *server) skip(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Until string `json:"until" empty:"no"`
	}
	var x form
	err := r.Read(&f)
	until := x.date("until", f.Until)
	if err = errors.Join(err, x.err()); err != nil {
		return err
	}
	return s.act(w, r, f, requests(billing.RequestSkip),
		func(ctx context.Context, e *engine.Engine, n billing.Name) (*billing.Subscription, error) {
			if until.IsZero() {
				return e.SkipParked(ctx, n)
			}
			return e.SkipUntil(ctx, n, until)
		})
}

// charge charges one period now: the one in the path or body, or the next one to collect. The key's row
// contains the period, so a repeated request charges the same one.
func (s *server) charge(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Period *int   `json:"period"`
		Reopen string `json:"reopen"`
	}
	err := errors.Join(r.Read(&f), billing.CheckText("reopen", f.Reopen, billing.MaxText))
	if text := r.PathValue("period"); text != "" {
		period, ok := periodOf(text)
		switch {
		case !ok:
			return web.ErrNotFound
		case f.Period != nil:
			err = errors.Join(err, billing.Invalid("period", "must not repeat the period in the path"))
		}
		f.Period = &period
	} else if f.Period != nil && *f.Period < 0 {
		err = errors.Join(err, billing.Invalid("period", "must be 0 or more"))
	}
	if err != nil {
		return err
	}
	n := nameOf(r)
	return s.once(w, r, post{status: http.StatusOK, object: pathOf(n), asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			sub, err := e.Subscription(ctx, n)
			if err != nil {
				return nil, err
			}
			c := engine.PeriodCharge{Period: sub.AtHand(), Reopen: f.Reopen}
			if f.Period != nil {
				c.Period = *f.Period
			} else if row := call.Of(ctx).Repeats(); row != nil {
				before, err := billing.DecodeKeyed(row.Item)
				if err != nil {
					return nil, err
				}
				c.Period = before.Period
			}
			a, err := e.ChargePeriod(ctx, n, c)
			if err != nil && !(a.Repeated && errors.Is(err, charging.ErrOff)) { // the request is stored and waits
				return nil, err
			}
			tag(w, a.Subscription.Version)
			return view.Charged(a, e.Opened.Installation), nil
		}})
}

// periods lists the subscription's periods that ended unpaid, and the parked one.
func (s *server) periods(w http.ResponseWriter, r *web.Request) error {
	var ending billing.Ending
	return list[billing.EndedPeriod]{names: []string{"ending"}, decode: billing.DecodePeriod, view: view.Period,
		keep: func(p *billing.EndedPeriod) bool { return ending == "" || p.Ending == ending },
		open: func(values url.Values) (string, string, error) {
			switch ending = billing.Ending(values.Get("ending")); ending {
			case "", billing.EndFailed, billing.EndVoid, billing.EndSkipped, billing.EndParked:
			default:
				return "", "", billing.Invalid("ending", "must be failed, void, skipped or parked")
			}
			sub, err := s.Engine.Subscription(r.Context(), nameOf(r))
			if err != nil {
				return "", "", err
			}
			return sub.Account, billing.PerPrefix + sub.ID + "#SKU#" + sub.Name.SKU + "#", nil
		}}.send(s, w, r)
}

// period shows an open, ended or next period with its receipts.
func (s *server) period(w http.ResponseWriter, r *web.Request) error {
	ctx := r.Context()
	period, ok := periodOf(r.PathValue("period"))
	sub, err := s.Engine.Subscription(ctx, nameOf(r))
	if err != nil || !ok {
		return cmp.Or(err, error(web.ErrNotFound))
	}
	ended, err := s.Engine.RecordOf(ctx, sub.Name, period)
	if billing.IgnoreNotFound(err) != nil {
		return err
	}
	receipts, err := s.Engine.ReceiptsOf(ctx, sub.Name, period)
	v := view.Object{"account", sub.Account, "subscription", sub.ID, "period", period}
	switch open := sub.Open; {
	case open != nil && open.Period == period:
		v = append(v, "state", "open", "open", view.Open(open))
	case ended != nil:
		v = append(v, "state", ended.Ending, "ended", view.Period(ended))
	case len(receipts) > 0 || period < sub.Period:
		v = append(v, "state", "paid")
	case period == sub.Period:
		v = append(v, "state", "next", "due_date?", view.DueOf(sub))
	default:
		return web.ErrNotFound
	}
	return show(w, append(v, "receipts", view.Receipts(receipts, s.Engine.Opened.Installation)), err)
}

func (s *server) proof(w http.ResponseWriter, r *web.Request) error {
	period, ok := periodOf(r.PathValue("period"))
	e, err := s.Engine.Fresh(r.Context())
	if err != nil {
		return err
	}
	sub, err := e.Subscription(r.Context(), nameOf(r))
	if err != nil || !ok || period > sub.Period {
		return cmp.Or(err, error(web.ErrNotFound))
	}
	x, err := e.Prove(r.Context(), nameOf(r), period)
	if err != nil {
		return err
	}
	return show(w, view.Proof(x, e.Opened.Installation), nil)
}
