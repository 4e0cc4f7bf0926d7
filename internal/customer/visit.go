package customer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

const (
	pagePath   = "/account"
	cardPath   = pagePath + "/card"
	cookieName = "duesday_account"
	visitTime  = 30 * time.Minute
)

// A visitor is a request by the holder of a pass.
type visitor struct {
	*Handler
	*rules
	request *http.Request
	account *billing.Account
	pass    portal.Pass
}

// actions do what the forms ask for, by the forms' paths, to a subscription or without one to the account.
// They return the address to go to, or "" for the page.
var actions = map[string]func(v *visitor, ctx context.Context, s *billing.Subscription) (to string, err error){cardPath: (*visitor).card,
	pagePath + "/cancel": (*visitor).cancel, pagePath + "/authenticate": (*visitor).authenticate}

// visit answers a request with a link or a cookie. Mail scanners follow links, so the GET of a link
// only shows a button. Its POST exchanges the link for a cookie, or leads to a page for a new card.
func (h *Handler) visit(r *http.Request, now *rules, post bool, token string, purposes ...portal.Purpose) (reply, error) {
	p, err := now.passes.Open(token, purposes...)
	if err != nil {
		return reply{}, err
	}
	a, expired, err := p.Holder(r.Context(), h.records)
	v := &visitor{h, now, r, a, p}
	switch {
	case err != nil:
		return reply{}, err
	case expired:
		return v.notice(http.StatusGone, "expired")
	case !post:
		return v.page(r.Context())
	case p.Purpose == portal.Card:
		return v.act(cardPath, p.Of)
	case p.Purpose == portal.Session:
		return v.act(r.URL.Path, r.PostForm.Get("subscription"))
	}
	p.Purpose, p.Expires = portal.Session, h.records.Now().Add(visitTime)
	return reply{status: http.StatusSeeOther, to: pagePath, cookie: &http.Cookie{Name: cookieName, Value: now.passes.Token(p), Path: pagePath,
		MaxAge: int(visitTime.Seconds()), Secure: strings.HasPrefix(now.PublicURL, "https:"), HttpOnly: true, SameSite: http.SameSiteLaxMode}}, nil
}

// form returns the hidden field of a new form.
func (v *visitor) form() string {
	p := v.pass
	p.Purpose, p.Of = portal.Form, rand.Text()
	return v.passes.Token(p)
}

// act does the action of the path at most once for each form that was shown.
func (v *visitor) act(path, subscription string) (reply, error) {
	form, err := v.passes.Open(v.request.PostForm.Get("form"), portal.Form)
	if err != nil || form.Account != v.account.ID {
		return reply{}, refusal(http.StatusForbidden)
	}
	var s *billing.Subscription
	if subscription != "" && billing.CheckID("subscription", subscription) != nil {
		return reply{}, store.ErrNotFound
	} else if subscription != "" {
		if s, err = v.records.Subscription(v.request.Context(), billing.Name{Account: v.account.ID, ID: subscription}); err != nil {
			return reply{}, err
		}
	}
	c := call.Call{Actor: "customer", Key: path + " " + form.Of + " " + subscription, Object: "accounts/" + v.account.ID, Table: v.records.Table,
		Now: v.records.Now, Reason: secret.MaskCards(locale.Clean(v.request.PostForm.Get("reason")))}
	to, err := actions[path](v, call.With(v.request.Context(), new(c)), s)
	if errors.As(err, new(*call.RepeatedError)) { // another process was faster: this continues its call
		to, err = actions[path](v, call.With(v.request.Context(), new(c)), s)
	}
	for _, refused := range [...]error{billing.ErrState, billing.ErrErased, processor.ErrNoWallet, processor.ErrInvalid} {
		if errors.Is(err, refused) {
			v.log.WarnContext(v.request.Context(), "a customer's request was refused", "account", v.account.ID, "error", err)
			return v.notice(http.StatusConflict, "refused")
		}
	}
	return reply{status: http.StatusSeeOther, to: cmp.Or(to, pagePath)}, err
}

// cancel ends the subscription with its period.
func (v *visitor) cancel(ctx context.Context, s *billing.Subscription) (string, error) {
	if s == nil || v.PortalCancel != settings.On {
		return "", store.ErrNotFound
	}
	_, err := v.billing.Cancel(ctx, s.Name, true)
	return "", err
}

// authenticate leads to the page on which the bank asks to confirm the open payment.
func (v *visitor) authenticate(ctx context.Context, s *billing.Subscription) (string, error) {
	if s == nil || !awaits(s) {
		return "", nil // the page shows the subscription as it is now
	}
	in, err := v.billing.Cards().Processor.Lookup(ctx, s.Open.Ref)
	if err == nil && in.State == processor.RequiresAction && in.Link == "" {
		err = billing.ErrState // the next payment run makes a page
	}
	return in.Link, err
}

// card stores what the customer agrees to, and leads to the processor's page for a new card.
func (v *visitor) card(ctx context.Context, s *billing.Subscription) (string, error) {
	id := ""
	if s != nil {
		id = s.ID
	}
	paid, err := v.paidBy(ctx, id)
	if err != nil {
		return "", err
	}
	row, err := call.Begin(ctx, v.records.Store, nil)
	if err == nil && row == nil {
		if v.request.PostForm.Get("agreed") != v.newPage("card", "").agreement(paid...).Digest() { // a price has changed
			return strings.TrimSuffix(v.request.URL.Path, "/card"), nil // show it, on the account's or the link's page
		}
		var entries []*history.Entry
		for _, c := range paid {
			entries = append(entries, c.consent())
		}
		err = history.Agree(ctx, v.records, entries)
	}
	if err != nil {
		return "", err
	}
	l, err := v.billing.Cards().CardLink(ctx, v.account.ID, id)
	return l.URL, err
}
