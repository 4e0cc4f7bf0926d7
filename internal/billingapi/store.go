package billingapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

const (
	reportDays = 30  // the default of report --days
	yearOfDays = 366 // most days of expected charges
)

// report scans the store, as the command does.
func (s *server) report(w http.ResponseWriter, r *web.Request) error {
	values, err := r.Values("from", "to", "days")
	if err != nil {
		return err
	}
	var x form
	month := func(name string) (d civil.Date) {
		if text := values.Get(name); text != "" {
			if d, err = civil.Parse(text + "-01"); err != nil || d.Year() < 1970 || d.After(s.Engine.Today().AddDays(yearOfDays)) {
				x.add(billing.Invalid(name, "must be a month such as 2026-01, not before 1970 and at most a year ahead"))
			}
		}
		return d
	}
	q := report.Query{From: month("from"), To: month("to"), Days: reportDays, Progress: func(int64) {}}
	if text := values.Get("days"); text != "" {
		if q.Days, err = strconv.Atoi(text); err != nil || q.Days < 1 || q.Days > yearOfDays {
			x.add(billing.Invalid("days", fmt.Sprintf("must be 1 to %d", yearOfDays)))
		}
	}
	if q.From.After(s.Engine.Today().AddDays(1)) || !q.To.IsZero() && q.From.After(q.To) {
		x.add(billing.Invalid("from", "must be a month that has begun, and not after to"))
	}
	e, err := s.Engine.Fresh(r.Context())
	if err = cmp.Or(x.err(), err); err != nil {
		return err
	}
	made, err := e.Report(r.Context(), q)
	if err != nil {
		return err
	}
	return show(w, view.Report(made), nil)
}

func (s *server) status(w http.ResponseWriter, r *web.Request) error {
	checks := s.Look(r.Context())
	return show(w, view.Object{"ok", len(status.Alarms(checks)) == 0, "checks", view.List(checks, view.Check)}, nil)
}

func (s *server) charging(w http.ResponseWriter, r *web.Request) error {
	meta, err := s.Engine.Meta(r.Context())
	return show(w, view.Charging(meta.Charging, meta.Reason, "", meta.Switched), err)
}

func (s *server) setCharging(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Charging *bool  `json:"charging"`
		Reason   string `json:"reason"`
		Accept   string `json:"accept_other_installation"`
	}
	err := r.Read(&f)
	switch {
	case err != nil:
		return err
	case f.Charging == nil:
		return billing.Invalid("charging", "must be true or false")
	case f.Accept != "" && !*f.Charging:
		return billing.Invalid("accept_other_installation", "needs charging to be true")
	}
	if err = billing.CheckText("reason", f.Reason, billing.MaxText); err == nil && f.Accept != "" {
		err = s.Engine.Charging().Accept(r.Context(), f.Accept)
	}
	if err == nil {
		err = s.Engine.SetCharging(r.Context(), *f.Charging, f.Reason)
	}
	return show(w, view.Charging(*f.Charging, f.Reason, f.Accept, call.Of(r.Context()).Actor), err)
}

func (s *server) settings(w http.ResponseWriter, r *web.Request) error {
	now, err := settings.Read(r.Context(), s.Engine.Records)
	tag(w, now.Version)
	return show(w, view.Settings(&now), err)
}

// setSettings takes settings in the form in which they are shown, and products as a list.
func (s *server) setSettings(w http.ResponseWriter, r *web.Request) error {
	f := map[string]any{}
	if err := r.Read(&f); err != nil {
		return err
	}
	if len(f) == 0 {
		return errNothing
	}
	now, err := settings.Change(r.Context(), s.Engine.Records, func(now *settings.Settings) error {
		var x form
		for name, value := range f {
			if err := set(now, name, value); err != nil {
				x.add(err)
			}
		}
		return x.err()
	})
	tag(w, now.Version)
	return show(w, view.Settings(&now), err)
}

// set changes one setting. Its error names the field as the request does.
func set(to *settings.Settings, name string, value any) (err error) {
	setting := strings.ReplaceAll(name, "_", "-")
	list, isList := value.([]any)
	switch {
	case name == "products" && isList:
		for _, one := range list {
			product, _ := one.(map[string]any)
			sku, isSKU := product["sku"].(string)
			text, isName := product["name"].(string)
			if !isSKU || !isName || len(product) != 2 {
				return billing.Invalid(name, "must be a list of objects with sku and name")
			}
			err = cmp.Or(err, to.NameProduct(sku, text))
		}
	case !slices.Contains(settings.Names(), setting):
		return billing.Invalid(name, "is not a setting")
	case isList:
		parts := make([]string, len(list))
		for i, part := range list {
			parts[i] = fmt.Sprint(part)
		}
		err = to.Set(setting, strings.Join(parts, ","))
	default:
		err = to.Set(setting, fmt.Sprint(value))
	}
	if e, ok := errors.AsType[*field.Error](err); ok {
		return billing.Invalid(name, e.Problem)
	}
	return err
}

// createKey shows the key's text once. A repetition gets the key without it.
func (s *server) createKey(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Name     string    `json:"name"`
		Scope    key.Scope `json:"scope"`
		Merchant string    `json:"merchant"`
		Expires  time.Time `json:"expires"`
	}
	if err := r.Read(&f); err != nil {
		return err
	}
	return s.once(w, r, post{status: http.StatusCreated, asked: f,
		do: func(ctx context.Context, _ *engine.Engine) (any, error) {
			k := key.Key{Name: f.Name, Scope: f.Scope, Merchant: f.Merchant, Expires: f.Expires}
			text, err := s.Keys.Create(ctx, &k)
			return append(view.Key(&k), "key", text.Reveal()), err
		}})
}

func (s *server) findKey(ctx context.Context, id string) (any, error) {
	for k, err := range s.Keys.All(ctx) {
		if err != nil || k.ID == id {
			return view.Key(k), err
		}
	}
	return nil, web.ErrNotFound
}

func (s *server) keys(w http.ResponseWriter, r *web.Request) error {
	return web.List(r.Server, w, r, web.ListOptions[*key.Key]{Names: []string{keyParameter}, Place: func(k *key.Key) string { return k.ID },
		View: func(k *key.Key) any { return view.Key(k) },
		Open: func(values url.Values, after string) (iter.Seq2[*key.Key, error], error) {
			of, err := s.keyed(r, values)
			return func(yield func(*key.Key, error) bool) {
				for k, err := range s.Keys.All(r.Context()) {
					if (err != nil || k.ID > after && (of == nil || of.Object == "keys/"+k.ID)) && !yield(k, err) {
						return
					}
				}
			}, err
		}})
}

// revokeKey takes the key's ID only, because several keys may have a name.
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
