// Package replaced compares a restored store with the store that the backup has replaced, and that was
// kept: what was mailed since the backup, and what people changed. It does not change either.
package replaced

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Comparison is the comparison of a restored store with the kept one.
type Comparison struct {
	now, old *billing.Records
	meta     billing.Meta
	waiting  map[string]bool // ids of the kept store's undelivered mail
}

// Open returns the comparison, or an error unless the kept store is another state of the same store.
func Open(ctx context.Context, now, old *billing.Records) (*Comparison, error) {
	c := &Comparison{now: now, old: old, waiting: map[string]bool{}}
	was, err := old.Meta(ctx)
	if err == nil {
		c.meta, err = now.Meta(ctx)
	}
	if err == nil && was.Installation != c.meta.Installation {
		err = fmt.Errorf("it is of another installation, %s: %w", was.Installation, billing.ErrState)
	}
	if err != nil {
		return nil, err
	}
	o := outbox.New(old.Store, old.Tables.Outbox, old.Now, nil, nil)
	for _, q := range []outbox.Queue{outbox.Mail, outbox.Held} {
		for f, err := range o.On(q).Waiting(ctx) {
			if err != nil {
				return nil, err
			}
			if f.Kind != outbox.KindSum {
				c.waiting[f.ID] = true
			}
		}
	}
	return c, nil
}

// Fate tells what becomes of a held mail. One that the kept store has not sent is released, one that it
// has sent is dropped, and one of which it does not tell stays held.
func (c *Comparison) Fate(ctx context.Context, f outbox.Effect) (outbox.Fate, error) {
	if c.waiting[f.ID] {
		return outbox.Release, nil
	}
	n := billing.Name{Account: f.Data[outbox.DataAccount], ID: f.Data[outbox.DataSubscription]}
	old, err := c.old.Subscription(ctx, n)
	if err != nil {
		return outbox.Keep, ignoreUnreadable(err)
	}
	now, err := c.now.Subscription(ctx, n)
	if err != nil {
		return outbox.Keep, ignoreUnreadable(err)
	}
	inBackup := f.Created.Before(c.meta.Restored)
	happened := inBackup && old.Version >= now.Version // the kept store goes on from the backup
	switch f.Kind {
	case outbox.KindReceipt:
		period, err := strconv.Atoi(f.Data[outbox.DataPeriod])
		if err != nil {
			return outbox.Keep, nil
		}
		_, err = c.old.RecordOf(ctx, old.Name, period)
		if billing.IgnoreNotFound(err) != nil {
			return outbox.Keep, ignoreUnreadable(err)
		}
		happened = old.Period > period && err != nil
	case outbox.KindCancelled:
		happened = old.Status == billing.CanceledSub
	default:
		inBackup = true // the kept store has no record of it
	}
	switch {
	case happened:
		return outbox.Drop, nil
	case inBackup:
		return outbox.Keep, nil
	}
	return outbox.Release, nil
}

func ignoreUnreadable(err error) error {
	if errors.As(err, new(*billing.IllegibleError)) {
		return nil
	}
	return billing.IgnoreNotFound(err)
}

// A Change is what a person has changed since the backup.
type Change struct {
	Name billing.Name // of the subscription; ID "": of the account
	What string       // in the kept store
	Redo string       // the command to do it again, after duesday; "": it says how itself
}

// Changes calls each for every change, and for every subscription whose reminder the kept store has sent.
func (c *Comparison) Changes(ctx context.Context, each func(Change), reminded func(*billing.Subscription) error) error {
	for it, err := range c.old.Store.Scan(ctx, store.Scan{Table: c.old.Table}) {
		if err != nil {
			return err
		}
		key := billing.KeyOf(it)
		n, isSub := billing.NameOf(key)
		switch {
		case key == billing.SettingsKey:
			err = c.settings(ctx, it, each)
		case key.SK == billing.AccountSK:
			if old, wrong := billing.DecodeAccount(it); wrong != nil {
				each(Change{billing.Name{Account: strings.TrimPrefix(key.PK, "ACC#")}, "it cannot be read in the store that was replaced", ""})
			} else {
				err = c.account(ctx, old, each)
			}
		case isSub:
			if old, wrong := billing.DecodeSubscription(it); wrong != nil {
				each(Change{n, "it cannot be read in the store that was replaced", ""})
			} else if err = c.subscription(ctx, old, each); err == nil {
				err = billing.IgnoreNotFound(reminded(old))
			}
		case strings.HasPrefix(key.SK, billing.RecPrefix):
			err = c.receipt(ctx, it, each)
		case strings.HasPrefix(key.SK, billing.PerPrefix):
			err = c.period(ctx, it, each)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Comparison) settings(ctx context.Context, it store.Item, each func(Change)) error {
	now, err := c.now.Store.Get(ctx, c.now.Table, billing.SettingsKey)
	if err == nil && !now.Get(schema.Data).Equal(it.Get(schema.Data)) {
		each(Change{billing.Name{}, "the settings were changed", "settings show --history"})
	}
	return billing.IgnoreNotFound(err)
}

// A redo gathers what was changed and the flags that change it again.
type redo struct{ what, flags []string }

func (r *redo) note(changed bool, what, flag, value string) {
	if changed {
		r.what = append(r.what, what+" "+value)
		r.flags = append(r.flags, "--"+flag+" "+quote(value))
	}
}

func (r *redo) tell(n billing.Name, command string, each func(Change)) {
	if len(r.what) > 0 {
		each(Change{n, strings.Join(r.what, ", "), command + " " + strings.Join(r.flags, " ")})
	}
}

// quote returns the text as one word of a shell.
func quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=@%+,", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func (c *Comparison) account(ctx context.Context, old *billing.Account, each func(Change)) error {
	n := billing.Name{Account: old.ID}
	now, err := c.now.Account(ctx, old.ID)
	if errors.Is(err, store.ErrNotFound) {
		each(Change{n, "it was created", "account create " + old.ID + " --email " + quote(old.Email)})
		return nil
	} else if err != nil {
		return err
	}
	var r, card redo
	r.note(now.Email != old.Email, "address", "email", old.Email)
	r.note(now.TimeZone != old.TimeZone, "time zone", "time-zone", old.TimeZone)
	r.note(now.Locale != old.Locale, "language", "locale", old.Locale)
	card.note(now.Method != old.Method, "payment method", "payment-method", secret.MaskMethod(old.Method))
	card.note(now.Fallback != old.Fallback, "fallback", "fallback", cmp.Or(secret.MaskMethod(old.Fallback), "none"))
	card.note(now.Payer.Customer != old.Payer.Customer, "customer", "customer", old.Payer.Customer)
	card.note(now.Payer.At != old.Payer.At, "Stripe account", "connected", old.Payer.At)
	r.tell(n, "account update "+old.ID, each)
	card.tell(n, "account attach "+old.ID, each)
	return nil
}

func (c *Comparison) subscription(ctx context.Context, old *billing.Subscription, each func(Change)) error {
	n, name := old.Name, old.Account+"/"+old.ID
	now, err := c.now.Subscription(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		each(Change{n, "it was created, and is " + string(old.Status), "subscription show " + name})
		return nil
	} else if err != nil {
		return ignoreUnreadable(err)
	}
	tell := func(what, redo string) { each(Change{n, what, "subscription " + redo}) }
	cancelled := old.Status == billing.CanceledSub || old.Requested == billing.RequestCancel
	switch {
	case now.Over():
	case cancelled:
		tell("it was cancelled", "cancel "+name)
		return nil
	case old.Status == billing.Paused && now.Status != billing.Paused, old.Requested == billing.RequestPause:
		tell("it was paused", "pause "+name)
	case old.Status == billing.Active && (now.Status == billing.Paused || now.Status == billing.PastDue):
		tell("it was resumed", "resume "+name)
	case old.CancelAtEnd && !now.CancelAtEnd:
		tell("it was cancelled at the end of its period", "cancel "+name+" --at-period-end")
	case now.CancelAtEnd && !old.CancelAtEnd:
		tell("its cancellation was taken back", "resume "+name)
	}
	plan, was := billing.Plan{SKU: old.SKU, Amount: old.Amount}, billing.Plan{SKU: now.SKU, Amount: now.Amount}
	if old.Pending != nil {
		plan = *old.Pending
	}
	if now.Pending != nil {
		was = *now.Pending
	}
	var r redo
	r.note(was.SKU != plan.SKU, "SKU", "sku", plan.SKU)
	r.note(was.Amount != plan.Amount, "amount", "amount", plan.Amount.Decimal())
	r.note(was.From != plan.From && !plan.From.IsZero(), "from", "from", plan.From.String())
	r.note(now.PaymentDay != old.PaymentDay, "payment day", "payment-day", strconv.Itoa(old.PaymentDay))
	r.note(now.Method != old.Method, "payment method", "payment-method", secret.MaskMethod(old.Method))
	r.note(now.ReminderDays != old.ReminderDays, "reminder days", "reminder-days", strconv.Itoa(old.ReminderDays))
	r.note(now.Address != old.Address, "postal address", "address", old.Address)
	r.tell(n, "subscription update "+name, each)
	return nil
}

// receipt tells of a manual payment that the restored store does not have.
func (c *Comparison) receipt(ctx context.Context, it store.Item, each func(Change)) error {
	r, err := billing.DecodeReceipt(it)
	if err != nil || r.Kind != billing.External {
		return nil
	}
	_, err = c.now.Store.Get(ctx, c.now.Table, billing.KeyOf(it))
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	kept, err := c.now.ReceiptsOf(ctx, r.Name, r.Period)
	if err == nil && len(kept) == 0 {
		redo := fmt.Sprintf("receipt create %s/%s --period %d --amount %s --date %s", r.Account, r.ID, r.Period, r.Amount.Decimal(),
			r.Processed.Format("2006-01-02"))
		if r.Charge != "" {
			redo += " --note " + quote(r.Charge)
		}
		each(Change{r.Name, fmt.Sprintf("period %d was paid outside, %s", r.Period, r.Amount), redo})
	}
	return err
}

// period tells of a period that a person skipped, and that the restored store may charge.
func (c *Comparison) period(ctx context.Context, it store.Item, each func(Change)) error {
	p, err := billing.DecodePeriod(it)
	if err != nil || p.Ending != billing.EndSkipped {
		return nil
	}
	now, err := c.now.Subscription(ctx, p.Name)
	if err == nil && now.Period <= p.Period {
		each(Change{p.Name, fmt.Sprintf("period %d was skipped", p.Period), "subscription skip " + p.Account + "/" + p.ID})
	}
	return ignoreUnreadable(err)
}
