// Package portal makes and checks the passes to the customer's page: the signed links, the page's
// cookie, and its forms.
//
// It does not listen or send mail, and decides nothing about payments.
package portal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sealed"
	"github.com/duesday/duesday/internal/store"
)

const (
	Path = "/l/"     // begins the path of a link; the token follows
	Hour = time.Hour // for how long a link works that a person or a program requests
)

// A Purpose is what a pass can be used for.
type Purpose string

// The purposes.
const (
	Page    Purpose = "page"    // a link, which is exchanged for a Session
	Card    Purpose = "card"    // a link to the processor's page for a new card
	Session Purpose = "session" // a cookie
	Form    Purpose = "form"    // a hidden field, which binds a form to its account
)

// A Pass lets its holder do something about one account until it expires, or until the account's
// passes are revoked.
type Pass struct {
	Purpose Purpose   `json:"p"`
	Account string    `json:"a"`
	Of      string    `json:"o,omitempty"` // of a Card, the subscription that gets it, or "" for the account; of a Form, random
	Expires time.Time `json:"x"`
	Epoch   int64     `json:"e,omitempty"` // how often the account's passes had been revoked
}

// Passes makes and checks the passes of a store. The tokens are sealed, because an account's id may
// be personal.
type Passes struct {
	base string // "": the page is off
	key  sealed.Key
}

// NewPasses returns the passes of the store with the link key, as its settings are.
func NewPasses(s *settings.Settings, linkKey string) *Passes {
	p := &Passes{key: sealed.NewKey(linkKey, "customer's page")}
	if s.Portal == settings.On && s.Links() && linkKey != "" {
		p.base = s.PublicURL
	}
	return p
}

// Token returns the pass as text.
func (p *Passes) Token(x Pass) string {
	text, _ := json.Marshal(x) // a struct of texts, a number and a time
	return p.key.Seal(string(text))
}

// Open returns the pass of a token, or store.ErrNotFound if this store has not made the token for one
// of the purposes, or the page is off. The pass may have expired, and its account may be unknown.
func (p *Passes) Open(token string, purposes ...Purpose) (x Pass, err error) {
	text, ok := p.key.Open(token)
	if !ok || p.base == "" || json.Unmarshal([]byte(text), &x) != nil || !slices.Contains(purposes, x.Purpose) {
		return Pass{}, store.ErrNotFound
	}
	return x, nil
}

// Holder returns the pass's account, and whether the pass has expired. It returns store.ErrNotFound
// if the account is unknown or erased, or the pass was revoked.
func (x *Pass) Holder(ctx context.Context, r *billing.Records) (a *billing.Account, expired bool, err error) {
	a, err = r.Account(ctx, x.Account)
	if err == nil && (a.Erased() != "" || epochOf(a) != x.Epoch) {
		err = store.ErrNotFound
	}
	return a, !r.Now().Before(x.Expires), err
}

func epochOf(a *billing.Account) int64 { return a.Raw.Int(schema.LinkEpoch) }

// NewLink returns a link for the pass's purpose, Page or Card, which works for the time. It is shown
// and mailed, but never stored or logged. With revoke, all links and sessions of the account that
// were made before end first. NewLink returns billing.ErrState if the page is off, and
// billing.ErrErased for an erased account.
func NewLink(ctx context.Context, r *billing.Records, x Pass, lasts time.Duration, revoke bool) (l processor.CardLink, err error) {
	s, err := settings.Read(ctx, r)
	if err != nil {
		return l, err
	}
	p := NewPasses(&s, r.Opened.LinkKey)
	a, err := r.Account(ctx, x.Account)
	switch {
	case p.base == "":
		return l, fmt.Errorf("the customer's page is off, and the setting portal=on turns it on: %w", billing.ErrState)
	case err == nil && a.Erased() != "":
		err = billing.ErrErased
	case err == nil && revoke:
		a, err = raise(ctx, r, x.Account)
	}
	if err != nil {
		return l, fmt.Errorf("account %s: %w", x.Account, err)
	}
	x.Expires, x.Epoch = r.Now().Add(lasts), epochOf(a)
	return processor.CardLink{URL: p.base + Path + p.Token(x), Expires: x.Expires}, nil
}

// Mailed returns a link for the pass's purpose that works for the setting link-days, or the zero
// CardLink if mail has no links to the page, or the account is unknown or erased.
func Mailed(ctx context.Context, r *billing.Records, x Pass) (processor.CardLink, error) {
	s, err := settings.Read(ctx, r)
	if err != nil || s.Portal != settings.On || s.PortalMail != settings.On || billing.CheckID("account", x.Account) != nil {
		return processor.CardLink{}, err
	}
	l, err := NewLink(ctx, r, x, time.Duration(s.LinkDays)*24*time.Hour, false)
	if errors.Is(err, billing.ErrErased) || errors.Is(err, store.ErrNotFound) {
		return processor.CardLink{}, nil
	}
	return l, err
}

// raise raises the account's epoch, once for the context's call.
func raise(ctx context.Context, r *billing.Records, id string) (*billing.Account, error) {
	row, err := call.Begin(ctx, r.Store, nil)
	if err = cmp.Or(err, r.MayChange(ctx)); err != nil {
		return nil, err
	}
	epoch := int64(0)
	return account.Edit(ctx, r, id, func(a *billing.Account) error {
		if epoch = cmp.Or(epoch, epochOf(a)+1); row != nil || epochOf(a) >= epoch { // it was raised before
			return billing.ErrUnchanged
		}
		a.Raw = a.Raw.Clone()
		a.Raw.Set(schema.LinkEpoch, store.Int(epoch))
		return nil
	})
}
