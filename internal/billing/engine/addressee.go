package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/outbox"
)

// Locale returns the locale of the effect's account, as it is right before the delivery; "" if it has
// none. It returns outbox.ErrPermanent if a mail server has refused the effect's address for good.
func (e *Engine) Locale(ctx context.Context, f outbox.Effect) (string, error) {
	a, err := e.Account(ctx, f.Data[outbox.DataAccount])
	if _, wrong := errors.AsType[*billing.FieldError](err); wrong {
		return "", nil // no account has such an id
	}
	if err != nil {
		return "", billing.IgnoreNotFound(err)
	}
	if b := a.Bounced; b.Email != "" && b.Email == f.Data[outbox.DataEmail] {
		return "", fmt.Errorf("%w: the mail server refused the address of account %s for good on %s (%s); "+
			"account update --email gives it another", outbox.ErrPermanent, a.ID, b.At.UTC().Format(time.DateOnly), b.Code)
	}
	return a.Locale, nil
}

// NoteBounce marks the effect's address at its account: no mail is sent to it any more. The mark goes
// with the next change of the account's address.
func (e *Engine) NoteBounce(ctx context.Context, f outbox.Effect, code string) error {
	_, err := e.ChangeAccount(ctx, f.Data[outbox.DataAccount], func(a *billing.Account) error {
		email := f.Data[outbox.DataEmail]
		if a.Bounced.Email == email || a.Email != email && !a.Mixed { // it has another one by now
			return billing.ErrUnchanged
		}
		a.Bounced = billing.Bounce{Email: email, Code: code, At: e.Now()}
		return nil
	})
	return billing.IgnoreNotFound(err)
}
