package billingapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

func showAccount(w http.ResponseWriter, a *billing.Account, err error, own ...billing.Name) (any, error) {
	if err != nil {
		return nil, err
	}
	tag(w, a.Version)
	return append(view.Account(a), "keep_own_method?", view.Names(own)), nil
}

func (s *server) createAccount(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		ID       string `json:"id" field:"account"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		TimeZone string `json:"time_zone"`
		Locale   string `json:"locale"`
		party.Details
	}
	err := r.Read(&f)
	given := billing.Account{Email: f.Email, Name: f.Name, Details: f.Details, TimeZone: f.TimeZone, Locale: f.Locale}
	if err != nil {
		return errors.Join(err, account.Check(f.ID, given))
	}
	return s.once(w, r, post{status: http.StatusCreated, object: "accounts/" + f.ID, asked: f,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			a, err := account.Create(ctx, e.Records, f.ID, given)
			return showAccount(w, a, err)
		}})
}

// getAccount also asks the processor for the card if the parameter card is true.
func (s *server) getAccount(w http.ResponseWriter, r *web.Request) error {
	values, err := r.Values("card")
	if card := values.Get("card"); card != "" && card != "true" && card != "false" {
		err = errors.Join(err, billing.Invalid("card", "must be true or false"))
	}
	if err != nil {
		return err
	}
	a, err := s.Engine.Account(r.Context(), r.PathValue("account"))
	if err != nil {
		return err
	}
	v := view.Account(a)
	if values.Get("card") == "true" {
		card, err := s.Engine.Cards().AccountCard(r.Context(), a.ID)
		if billing.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			v = append(v, "card", view.Card(&card))
		}
	}
	tag(w, a.Version)
	return show(w, v, nil)
}

func (s *server) updateAccount(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Email  *string `json:"email"`
		Locale *string `json:"locale"`
		Name   *string `json:"name"`
		party.Change
		TimeZone *string `json:"time_zone"`
	}
	err := r.Read(&f)
	c := account.Change{Email: f.Email, Locale: f.Locale, Name: f.Name, Details: f.Change, TimeZone: f.TimeZone}
	if err != nil {
		return errors.Join(err, c.Check())
	}
	if c == (account.Change{}) {
		return errNothing
	}
	a, err := account.Update(r.Context(), s.Engine.Records, r.PathValue("account"), c)
	v, err := showAccount(w, a, err)
	return show(w, v, err)
}

func (s *server) attach(w http.ResponseWriter, r *web.Request) error {
	id := r.PathValue("account")
	var f struct {
		Customer  string  `json:"customer"`
		Fallback  *string `json:"fallback_payment_method" field:"fallback"` // "" removes it
		Method    string  `json:"payment_method" decides:"customer"`
		Connected *string `json:"connected_account" field:"connected"`
		Fee       *int    `json:"application_fee" field:"fee"` // hundredths of a percent
	}
	err := r.Read(&f)
	given := billing.Attachment(f)
	if err != nil {
		return errors.Join(err, given.Check())
	}
	return s.once(w, r, post{status: http.StatusOK, object: "accounts/" + id, asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			a, err := e.Attach(ctx, id, given)
			var own []billing.Name
			if err == nil && a.Method != "" {
				own, err = e.KeepOwn(ctx, id)
			}
			return showAccount(w, a, err, own...)
		}})
}

// cardLink creates a link. A repeated request gets the same link while the processor remembers the key.
func (s *server) cardLink(w http.ResponseWriter, r *web.Request) error {
	id := r.PathValue("account")
	var f struct {
		Subscription string `json:"subscription"`
	}
	err := r.Read(&f)
	if f.Subscription != "" {
		err = errors.Join(err, billing.CheckID("subscription", f.Subscription))
	}
	if err != nil {
		return err
	}
	return s.once(w, r, post{status: http.StatusOK, object: "accounts/" + id, asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			l, err := e.Cards().CardLink(ctx, id, f.Subscription)
			var own []billing.Name
			if err == nil && f.Subscription == "" {
				own, err = e.KeepOwn(ctx, id)
			}
			return view.CardLink(id, f.Subscription, l, own), err
		}})
}

// portalLink creates a link to the customer's page. A repeated request gets another link.
func (s *server) portalLink(w http.ResponseWriter, r *web.Request) error {
	id := r.PathValue("account")
	var f struct {
		Revoke bool `json:"revoke"`
	}
	if err := r.Read(&f); err != nil {
		return err
	}
	return s.once(w, r, post{status: http.StatusOK, object: "accounts/" + id, asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			l, err := portal.NewLink(ctx, e.Records, portal.Pass{Purpose: portal.Page, Account: id}, portal.Hour, f.Revoke)
			return view.PortalLink(id, l), err
		}})
}
