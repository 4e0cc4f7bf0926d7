// Package recipient provides what the delivery of a mail needs to know about its customer: the
// language, the name, the card link, the overdue periods, and whether the mail is still wanted.
//
// It does not send mail, and decides nothing about charges.
package recipient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Directory looks up the customers who receive a store's mail.
type Directory struct {
	*wallet.Cards

	// CardURL is the merchant's own page on which a customer enters a card. It contains {account}
	// and {subscription}. An empty CardURL selects the processor's page.
	CardURL string
	// NoLinks is true if the processor has no pages for customers. Mail is then sent without links.
	NoLinks bool
}

// Holder returns the current locale and customer name of the effect's account, or empty strings if
// the account does not exist. The caller asks right before the delivery. Holder also returns
// outbox.ErrPermanent if a mail server has permanently refused the effect's address.
func (d *Directory) Holder(ctx context.Context, f outbox.Effect) (locale, name string, err error) {
	a, err := d.Account(ctx, f.Data[outbox.DataAccount])
	if _, wrong := errors.AsType[*billing.FieldError](err); wrong {
		return "", "", nil // no account has such an id
	}
	if err != nil {
		return "", "", billing.IgnoreNotFound(err)
	}
	if b := a.Bounced; b.Email != "" && b.Email == f.Data[outbox.DataEmail] {
		return a.Locale, a.Name, fmt.Errorf("%w: the mail server permanently refused the address of account %s on %s (%s); "+
			"to set another, use account update --email", outbox.ErrPermanent, a.ID, b.At.UTC().Format(time.DateOnly), b.Code)
	}
	return a.Locale, a.Name, nil
}

// errNumber is returned while the receipt of a mail has no number, but a waiting row gets it one.
var errNumber = errors.New("the mail waits for the number of its receipt")

// NumberOf returns the number of the receipt or refund that the mail is about, or "" if it has none. The caller
// asks right before the delivery. NumberOf returns an error while the number is still to be given.
func (d *Directory) NumberOf(ctx context.Context, f outbox.Effect) (string, error) {
	if f.Kind != outbox.KindReceipt && f.Kind != outbox.KindRefund {
		return "", nil
	}
	for _, key := range f.Numbered {
		it, err := d.Store.Get(ctx, d.Table, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
		r, err := billing.DecodeReceipt(it)
		if f.Kind == outbox.KindReceipt && (err != nil || r.Number(d.Opened.Installation) != f.Data[outbox.DataReceipt]) {
			continue // it is gone, or the other receipt of a period that was paid twice
		}
		if number := it.Str(schema.Number); number != "" {
			return number, nil
		}
		if on, err := numbering.Gives(ctx, d.Records); err != nil || !on {
			return "", err
		}
		for e, err := range outbox.New(d.Store, d.Tables.Outbox, d.Now, nil, nil).Uncounted(ctx) {
			if err != nil {
				return "", err
			}
			if slices.Contains(e.Numbered, key) {
				return "", errNumber
			}
		}
	}
	return "", nil
}

// NoteBounce marks the effect's address as bounced in its account, so that the account receives no
// more mail at that address. The next change of the account's address removes the mark.
func (d *Directory) NoteBounce(ctx context.Context, f outbox.Effect, code string) error {
	_, err := account.Edit(ctx, d.Records, f.Data[outbox.DataAccount], func(a *billing.Account) error {
		email := f.Data[outbox.DataEmail]
		if a.Bounced.Email == email || a.Email != email && !a.Mixed { // the account has another address by now
			return billing.ErrUnchanged
		}
		a.Bounced = billing.Bounce{Email: email, Code: code, At: d.Now()}
		return nil
	})
	return billing.IgnoreNotFound(err)
}

// StillWanted reports whether to deliver an effect. The caller asks right before the delivery.
// StillWanted drops a reminder if its period has been paid, paused or cancelled, or is now due on
// another day. It drops an authentication request if the payment no longer waits for the customer.
// It drops a card expiry notice if Duesday will not charge the subscription again, and a price
// change notice if the change was withdrawn.
func (d *Directory) StillWanted(ctx context.Context, f outbox.Effect) (bool, error) {
	asks := f.Kind == outbox.KindActionRequired && f.Data[outbox.DataRef] != ""
	switch f.Kind {
	case outbox.KindReminder, outbox.KindCardExpires, outbox.KindPriceChange, outbox.KindPaymentRequest:
	default:
		if !asks {
			return true, nil
		}
	}
	s, err := d.Load(ctx, nameIn(f))
	if err != nil {
		return false, billing.IgnoreNotFound(err)
	}
	switch f.Kind {
	case outbox.KindCardExpires:
		return !s.Over() && !s.CancelAtEnd && s.Requested != billing.RequestCancel, nil
	case outbox.KindPriceChange:
		return stillSays(s, f), nil
	case outbox.KindActionRequired:
		return s.Open != nil && s.Open.Ref == f.Data[outbox.DataRef] && s.Open.State == processor.RequiresAction, nil
	}
	due, err := s.Due()
	waits := s.Status == billing.Active && s.NextOpen() == nil && !s.CancelAtEnd
	switch {
	case f.Kind == outbox.KindPaymentRequest:
		waits = s.Open.ByWire() && s.Requested == billing.RequestNone
	case s.Status == billing.ParkedState:
		waits = s.Parked == billing.NoMethod && f.Data[outbox.DataNoMethod] != ""
	}
	if err != nil || !waits {
		return false, err
	}
	return strconv.Itoa(s.Period) == f.Data[outbox.DataPeriod] && due.String() == f.Data[outbox.DataDueDate], nil
}

// stillSays reports whether the subscription still has the plan that the notice announces.
func stillSays(s *billing.Subscription, f outbox.Effect) bool {
	day, err := civil.Parse(f.Data[outbox.DataDueDate])
	period, _ := strconv.Atoi(f.Data[outbox.DataPeriod])
	sku, amount := s.PlanOn(period, day)
	return err == nil && !s.Over() && !s.CancelAtEnd && sku == f.Data[outbox.DataSKU] &&
		amount.Decimal() == f.Data[outbox.DataAmount]
}

// Arrears returns the mail data about the periods that a cancellation has written off. Arrears
// reads them when the mail is delivered, because one commit may not write off all of them.
func (d *Directory) Arrears(ctx context.Context, f outbox.Effect) (map[string]string, error) {
	if f.Kind != outbox.KindCancelled {
		return nil, nil
	}
	list, sum, err := d.WrittenOff(ctx, nameIn(f))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var text []string
	for _, p := range list {
		text = append(text, p.Due.String(), p.Amount.Decimal())
	}
	return map[string]string{outbox.DataArrears: strings.Join(text, " "), outbox.DataArrearsSum: sum.Decimal()}, nil
}

// nameIn returns the name of the effect's subscription.
func nameIn(f outbox.Effect) billing.Name {
	return billing.Name{Account: f.Data[outbox.DataAccount], ID: f.Data[outbox.DataSubscription],
		SKU: cmp.Or(f.Data[outbox.DataKeySKU], f.Data[outbox.DataSKU])}
}

// Link returns the link with which the customer of the effect's mail authenticates a payment or
// enters a card, or the zero CardLink if the mail has none. The link is a short-lived secret, so
// Link creates it when the mail is delivered and never stores it. After an error, the caller should
// try again later.
func (d *Directory) Link(ctx context.Context, f outbox.Effect) (processor.CardLink, error) {
	link, err := d.link(ctx, f, true)
	if err != nil && wallet.Passing(err) {
		return processor.CardLink{}, fmt.Errorf("the mail has no card link yet: %w", err)
	}
	if err != nil {
		d.Log.WarnContext(ctx, "an email is sent without its card link", "effect", f.ID, "error", err)
		return processor.CardLink{}, nil
	}
	return link, nil
}

// placeholder stands for a link of the processor, where nobody is to follow it.
const placeholder = "https://link.invalid/made-at-delivery"

// Placeholder returns what stands for the mail's link when its text is shown to an operator, or "" if the mail
// has no link. The processor is not asked. Only a link to the merchant's own page is the real one.
func (d *Directory) Placeholder(ctx context.Context, f outbox.Effect) string {
	link, _ := d.link(ctx, f, false) // without it, the text is still worth showing
	return link.URL
}

// link returns the link for the effect's mail, or the zero CardLink if the mail needs none. Unless ask is
// true, a placeholder stands for a link that the processor would make.
func (d *Directory) link(ctx context.Context, f outbox.Effect, ask bool) (processor.CardLink, error) {
	switch f.Kind {
	case outbox.KindActionRequired:
		if d.Processor == nil || f.Data[outbox.DataRef] == "" {
			return processor.CardLink{}, nil
		}
		if !ask {
			return processor.CardLink{URL: placeholder}, nil
		}
		in, err := d.Processor.Lookup(ctx, f.Data[outbox.DataRef])
		return processor.CardLink{URL: in.Link}, err
	case outbox.KindDeclined, outbox.KindFailed, outbox.KindCardExpires:
		if f.Data[outbox.DataPayBy] != "" {
			return processor.CardLink{}, nil
		}
	case outbox.KindReminder:
		if f.Data[outbox.DataCardExpired] == "" && f.Data[outbox.DataNoMethod] == "" {
			return processor.CardLink{}, nil
		}
	default:
		return processor.CardLink{}, nil
	}
	account, subscription := f.Data[outbox.DataAccount], f.Data[outbox.DataSubscription]
	if d.CardURL != "" {
		ids := strings.NewReplacer("{account}", url.QueryEscape(account), "{subscription}", url.QueryEscape(subscription))
		return processor.CardLink{URL: ids.Replace(d.CardURL)}, nil
	}
	if _, ok := d.Processor.(processor.Wallet); !ok || d.NoLinks {
		return processor.CardLink{}, nil
	}
	s, err := d.Load(ctx, nameIn(f))
	if err != nil || s.Over() {
		return processor.CardLink{}, billing.IgnoreNotFound(err)
	}
	if !ask {
		return processor.CardLink{URL: placeholder}, nil
	}
	if s.Method == "" {
		subscription = "" // the account's card is charged
	}
	if l, err := portal.Mailed(ctx, d.Records, portal.Pass{Purpose: portal.Card, Account: account, Of: subscription}); err != nil || l.URL != "" {
		return l, err // it makes the processor's page when it is used
	}
	return d.CardLink(ctx, account, subscription)
}

// PageLink returns the link to the customer's page for the effect's mail, or "" if mail has none.
func (d *Directory) PageLink(ctx context.Context, f outbox.Effect) (string, error) {
	l, err := portal.Mailed(ctx, d.Records, portal.Pass{Purpose: portal.Page, Account: f.Data[outbox.DataAccount]})
	return l.URL, err
}
