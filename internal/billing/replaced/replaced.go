// Package replaced compares a store restored from a backup with the store that it replaced, and finds
// the mail sent and the changes made since the backup. It does not change either store.
package replaced

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Comparison is the comparison of a restored store with the kept one.
type Comparison struct {
	now, old *billing.Records
	meta     billing.Meta
	mailed   Mailed
	waiting  map[string]bool // the kept store's undelivered mail: ids, and what they are about
}

// Open returns the comparison, or an error unless the kept store is another state of the same store.
func Open(ctx context.Context, now, old *billing.Records, mailed Mailed) (*Comparison, error) {
	c := &Comparison{now: now, old: old, mailed: mailed, waiting: map[string]bool{}}
	was, err := old.Meta(ctx)
	if err == nil {
		c.meta, err = now.Meta(ctx)
	}
	if err == nil && was.Installation != c.meta.Installation {
		err = fmt.Errorf("it belongs to another installation, %s: %w", was.Installation, billing.ErrState)
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
				c.waiting[about(f.Data[outbox.DataAccount], f.Data[outbox.DataSubscription], f.Topic())] = true
				day := f.ID[strings.LastIndexByte(f.ID, '/')+1:] // of a mail that asks again
				c.waiting[about(f.Data[outbox.DataAccount], f.Data[outbox.DataSubscription], day)] = true
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
	case happened, f.In(now.Mailed):
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

// Of names what was changed.
func (x Change) Of() string {
	if x.Name.ID != "" {
		return x.Name.Account + "/" + x.Name.ID
	}
	return cmp.Or(x.Name.Account, "the store")
}

// Changes calls each for every change, and notes the mail that the kept store has sent.
func (c *Comparison) Changes(ctx context.Context, each func(Change)) error {
	for it, err := range c.old.Store.Scan(ctx, store.Scan{Table: c.old.Table}) {
		if err != nil {
			return err
		}
		key := billing.KeyOf(it)
		n, isSub := billing.NameOf(key)
		switch {
		case key == settings.Key:
			err = c.settings(ctx, each)
		case key.SK == billing.AccountSK:
			if old, wrong := billing.DecodeAccount(it); wrong != nil {
				each(Change{billing.Name{Account: strings.TrimPrefix(key.PK, "ACC#")}, "the replaced store has it, but it cannot be read", ""})
			} else {
				err = c.account(ctx, old, each)
			}
		case isSub:
			if old, wrong := billing.DecodeSubscription(it); wrong != nil {
				each(Change{n, "the replaced store has it, but it cannot be read", ""})
			} else {
				err = c.subscription(ctx, old, each)
			}
		case strings.HasPrefix(key.SK, billing.RecPrefix):
			err = c.receipt(ctx, it, each)
		case strings.HasPrefix(key.SK, billing.PerPrefix):
			err = c.period(ctx, it, each)
		case billing.IsReversal(it):
			err = c.reversal(ctx, it)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Comparison) settings(ctx context.Context, each func(Change)) error {
	old, err := settings.Read(ctx, c.old)
	if err != nil {
		each(Change{billing.Name{}, "the settings in the replaced store cannot be read", ""})
		return nil
	}
	now, err := settings.Read(ctx, c.now)
	if errors.As(err, new(*billing.IllegibleError)) {
		err = nil // what is wrong has its default
	}
	var what, set []string
	for _, name := range old.Names() {
		if text := old.Text(name); now.Text(name) != text {
			what, set = append(what, name), append(set, quote(name+"="+text))
		}
	}
	if len(what) > 0 {
		each(Change{billing.Name{}, "settings: " + strings.Join(what, ", "), "settings set " + strings.Join(set, " ")})
	}
	return err
}

// A redo gathers what was changed and the flags that change it again.
type redo struct{ what, flags []string }

func (r *redo) note(changed bool, what, flag, value string) {
	if changed {
		r.what = append(r.what, what+" "+value)
		r.flags = append(r.flags, "--"+flag+" "+quote(value))
	}
}

// terms notes the discount and the tax.
func (r *redo) terms(now, old price.Terms, next int) {
	r.discount(now.Discount, old.Discount, next)
	r.tax(now.Tax, old.Tax)
}

// discount notes the discount of the old store, for its periods from the next one on.
func (r *redo) discount(now, old price.Discount, next int) {
	if now == old {
		return
	}
	r.note(true, "discount", "discount", cmp.Or(old.String(), "none"))
	if left := old.From + old.Periods - max(old.From, next); old.Periods > 0 {
		r.note(true, "for", "discount-periods", strconv.Itoa(max(1, left)))
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
	var r, card redo
	command := "account update "
	now, err := c.now.Account(ctx, old.ID)
	if errors.Is(err, store.ErrNotFound) {
		r.what, command, now = []string{"it was created"}, "account create ", &billing.Account{TimeZone: "UTC", Raw: old.Raw}
	} else if err != nil {
		return ignoreUnreadable(err)
	}
	if old.Erased() != "" {
		if now.Erased() == "" {
			each(Change{n, "its person's data was erased", "account erase " + old.ID + " --confirm " + old.ID})
		}
		return nil
	}
	r.note(now.Email != old.Email, "address", "email", old.Email)
	r.note(now.TimeZone != old.TimeZone, "time zone", "time-zone", old.TimeZone)
	r.note(now.Name != old.Name, "name", "name", old.Name)
	r.note(now.Locale != old.Locale, "language", "locale", old.Locale)
	is, was := now.Details.Fields(), old.Details.Fields()
	for i, name := range party.Names {
		r.note(*is[i] != *was[i], strings.ReplaceAll(name, "_", " "), strings.ReplaceAll(name, "_", "-"), *was[i])
	}
	card.note(now.Method != old.Method, "payment method", "payment-method", secret.MaskMethod(old.Method))
	card.note(now.Fallback != old.Fallback, "fallback", "fallback", cmp.Or(secret.MaskMethod(old.Fallback), "none"))
	card.note(now.Payer.Customer != old.Payer.Customer, "customer", "customer", old.Payer.Customer)
	card.note(now.Payer.At != old.Payer.At, "Stripe account", "connected", old.Payer.At)
	card.note(now.Payer.Fee != old.Payer.Fee, "fee", "fee", fmt.Sprintf("%d.%02d", old.Payer.Fee/100, old.Payer.Fee%100))
	r.tell(n, command+old.ID, each)
	card.tell(n, "account attach "+old.ID, each)
	c.others(n, old.Raw, now.Raw, accountFlags, each)
	return nil
}

// What is compared by name, or changed by runs alone. A difference of any other attribute is told by its
// name: a person or another tool has made it. Values are not told: they may be secret.
var (
	accountFlags = []string{schema.BillingDetails, schema.Email, schema.Name, schema.TimeZone, schema.Locale, schema.PaymentMethod, schema.Fallback, schema.Customer,
		schema.ProcessorAccount, schema.ApplicationFee,
		schema.CreatedDate, schema.EmailBounced, schema.FanOut, schema.MethodDate, schema.Version}
	subscriptionFlags = []string{schema.SKU, schema.PaymentAmount, schema.Pending, schema.PriceTerms, schema.PaymentDay, schema.PaymentMethod,
		schema.CollectionMethod, schema.ReminderDays, schema.DefaultAddress, schema.Status, schema.Requested, schema.CancelAtEnd,
		schema.SkipUntil, schema.Manual, schema.Collect, schema.Email, schema.TimeZone, // copies of the account's
		schema.AgendaDate, schema.AlteredDate, schema.AnchorPeriod, schema.CancelDate, schema.CardTold, schema.CreatedDate,
		schema.DueBefore, schema.Kept, schema.LastCharge, schema.LastPaymentDate, schema.LastReminderDate, schema.Mailed, schema.NextPaymentDate,
		schema.NextReminderDate, schema.OpenPeriod, schema.Paid, schema.Parked, schema.PausedDate, schema.Period,
		schema.RequestedDate, schema.Takeover, schema.ToldDate, schema.Upgrade, schema.Version}
)

func (c *Comparison) others(n billing.Name, old, now store.Item, but []string, each func(Change)) {
	old, now = flat(old), flat(now)
	for _, a := range slices.Concat(old, now) {
		if !slices.Contains(but, a.Name) && !old.Get(a.Name).Equal(now.Get(a.Name)) {
			each(Change{n, "attribute " + secret.MaskCards(a.Name) + " was changed", ""})
			but = append(slices.Clone(but), a.Name)
		}
	}
}

// flat returns the item with the members of its PaymentDetails.
func flat(it store.Item) store.Item {
	it = it.Clone()
	details := it.Get(schema.PaymentDetails).Map()
	for it.Remove(schema.PaymentDetails); len(details) > 0; details = details[1:] {
		it.Set(details[0].Name, details[0].Value)
	}
	return it
}

func (c *Comparison) subscription(ctx context.Context, old *billing.Subscription, each func(Change)) error {
	n, name := old.Name, old.Account+"/"+old.ID
	now, err := c.now.Subscription(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		each(Change{n, "it was created, and is " + string(old.Status), ""})
		if old.Held() { // a created one would charge beside the processor's
			c.held(old, each)
		} else if !old.Over() && old.AnchorPeriod == 0 { // the dates of its first periods are known
			each(Change{n, "to create it again", creation(old)})
		}
		return nil
	} else if err != nil {
		return ignoreUnreadable(err)
	}
	if !old.Raw.Equal(now.Raw) {
		if err := c.ofSubscription(ctx, old); err != nil {
			return err
		}
	}
	tell := func(what, redo string) { each(Change{n, what, "subscription " + redo}) }
	cancelled := old.Status == billing.CanceledSub || old.Requested == billing.RequestCancel
	switch {
	case now.Over():
	case handedBack(old) && !handedBack(now): // a cancellation would end it at the processor, too
		each(Change{n, "it was handed back to the processor", "takeover undo " + name})
		return nil
	case cancelled:
		tell("it was canceled", "cancel "+name)
		return nil
	case old.Status == billing.Paused && now.Status != billing.Paused, old.Requested == billing.RequestPause:
		tell("it was paused", "pause "+name)
	case old.Status == billing.Active && (now.Status == billing.Paused || now.Status == billing.PastDue):
		tell("it was resumed", "resume "+name)
	case old.CancelAtEnd && !now.CancelAtEnd:
		tell("it was canceled at the end of its period", "cancel "+name+" --at-period-end")
	case now.CancelAtEnd && !old.CancelAtEnd:
		tell("its cancellation was revoked", "resume "+name)
	case old.Requested == billing.RequestSkip && old.Period == now.Period && old.SkipUntil.IsZero():
		tell(fmt.Sprintf("a skip of period %d was requested", old.Period), "skip "+name)
	case old.Requested == billing.RequestSkip && old.SkipUntil != now.SkipUntil:
		tell("a skip until "+old.SkipUntil.String()+" was requested", "skip "+name+" --until "+old.SkipUntil.String())
	}
	if m := old.Manual; m != nil && now.Manual == nil && m.Period >= now.Period {
		each(Change{n, fmt.Sprintf("period %d had a manual payment of %s", m.Period, m.Amount), redoReceipt(n, m.Period, m.Amount, m.Processed, m.Note)})
	}
	requested(old, now, tell)
	plan := *cmp.Or(old.Pending, &billing.Plan{SKU: old.SKU, Amount: old.Amount})
	was := *cmp.Or(now.Pending, &billing.Plan{SKU: now.SKU, Amount: now.Amount})
	var r redo
	r.note(was.SKU != plan.SKU, "SKU", "sku", plan.SKU)
	r.note(was.Amount != plan.Amount, "amount", "amount", plan.Amount.Decimal())
	count := func(s *billing.Subscription, p billing.Plan) int { return cmp.Or(p.Quantity, s.Terms.Count()) }
	r.note(count(now, was) != count(old, plan), "quantity", "quantity", strconv.Itoa(count(old, plan)))
	r.note(was.From != plan.From && !plan.From.IsZero(), "from", "from", plan.From.String())
	r.note(now.PaymentDay != old.PaymentDay, "payment day", "payment-day", strconv.Itoa(old.PaymentDay))
	r.note(now.Method != old.Method, "payment method", "payment-method", secret.MaskMethod(old.Method))
	r.note(now.Collection != old.Collection, "collection", "collection", string(old.Collection))
	r.note(now.ReminderDays != old.ReminderDays, "reminder days", "reminder-days", strconv.Itoa(old.ReminderDays))
	r.note(now.Address != old.Address, "postal address", "address", old.Address)
	r.terms(now.Terms, old.Terms, now.Period)
	r.tell(n, "subscription update "+name, each)
	but := subscriptionFlags
	if now.PaymentDay != old.PaymentDay {
		but = append(slices.Clone(but), schema.Anchor)
	}
	c.others(n, old.Raw, now.Raw, but, each)
	return nil
}

// held tells how a held subscription is taken over again. A start takes over one that was canceled, too, because
// the processor cannot show that.
func (c *Comparison) held(old *billing.Subscription, each func(Change)) {
	name := old.Account + "/" + old.ID
	if !old.Over() {
		each(Change{old.Name, "to take it over again", "takeover start --where subscription=" + old.Takeover.From})
	}
	switch {
	case old.Over() || old.Requested == billing.RequestCancel:
		each(Change{old.Name, "it was canceled; if it is taken over again, cancel it", "subscription cancel " + name})
	case old.CancelAtEnd:
		each(Change{old.Name, "it was canceled at the end of its period", "subscription cancel " + name + " --at-period-end"})
	}
}

// handedBack reports whether an undo has canceled the subscription, so that the processor's continues.
func handedBack(s *billing.Subscription) bool {
	return s.Takeover != nil && (s.Takeover.Stage == billing.TakeoverUndoing || s.Takeover.Stage == billing.TakeoverUndone)
}

// requested tells of the collection of a past period, and of an upgrade that waited, unless the restored store has one
// or has ended its period.
func requested(old, now *billing.Subscription, tell func(what, redo string)) {
	if old.Collect > 0 && now.Collect != old.Collect {
		tell(fmt.Sprintf("the collection of period %d was requested", old.Collect-1),
			fmt.Sprintf("charge %s/%s --period %d", old.Account, old.ID, old.Collect-1))
	}
	if u := old.Upgrade; old.Upgrading() && !now.Upgrading() && now.Period <= u.Period {
		tell(fmt.Sprintf("an upgrade for period %d was requested", u.Period),
			fmt.Sprintf("update %s/%s --now --sku %s --amount %s", old.Account, old.ID, u.SKU, u.Amount.Decimal()))
	}
}

// tax notes another rate, mode or note. The country is the account's.
func (r *redo) tax(now, old price.Tax) {
	now.Country = old.Country
	if rate := old.Rate.String(); old.Mode != price.Untaxed {
		r.note(now != old, "tax rate", "tax-rate", rate)
	} else {
		r.note(now != old, "tax rate", "tax-rate", "none")
	}
	r.note(now != old && old.Mode != price.Untaxed, "tax", "tax", string(old.Mode))
	r.note(now != old && old.Note != "", "tax note", "tax-note", old.Note)
}

// creation is the command that makes the subscription again, with its first due date.
func creation(s *billing.Subscription) string {
	var r redo
	r.note(true, "", "sku", s.Name.SKU)
	r.note(true, "", "amount", s.Amount.Decimal())
	r.note(true, "", "currency", s.Amount.Currency().Code())
	r.note(s.Terms.Count() != 1, "", "quantity", strconv.Itoa(s.Terms.Count()))
	r.terms(price.Terms{}, s.Terms, 0)
	r.note(true, "", "payment-day", strconv.Itoa(s.PaymentDay))
	r.note(true, "", "next-payment-date", s.Anchor.String())
	r.note(s.Interval != billing.Monthly, "", "interval", s.Interval.String())
	r.note(s.Method != "", "", "payment-method", secret.MaskMethod(s.Method))
	r.note(s.Collection == billing.ByWire, "", "collection", string(s.Collection))
	r.note(s.ReminderDays != billing.DefaultReminderDays, "", "reminder-days", strconv.Itoa(s.ReminderDays))
	r.note(s.Installments > 0, "", "installments", strconv.Itoa(s.Installments))
	r.note(s.Address != "", "", "address", s.Address)
	return "subscription create " + s.Account + "/" + s.ID + " " + strings.Join(r.flags, " ")
}

func redoReceipt(n billing.Name, period int, amount money.Amount, at time.Time, note string) string {
	redo := fmt.Sprintf("receipt create %s/%s --period %d --amount %s --date %s", n.Account, n.ID, period, amount.Decimal(),
		at.Format("2006-01-02"))
	if note != "" {
		redo += " --note " + quote(note)
	}
	return redo
}

// receipt tells of a manual payment that the restored store does not have, and of a receipt whose price differs: an
// adopted charge has the price that the backup's terms say, if that is its amount.
func (c *Comparison) receipt(ctx context.Context, it store.Item, each func(Change)) error {
	r, err := billing.DecodeReceipt(it)
	if err != nil {
		return nil
	}
	now, err := c.now.Store.Get(ctx, c.now.Table, billing.KeyOf(it))
	if err == nil && !now.Get(schema.Price).Equal(it.Get(schema.Price)) {
		each(Change{r.Name, fmt.Sprintf("the receipt of period %d had another discount or tax than the restored store's", r.Period), ""})
	}
	if !errors.Is(err, store.ErrNotFound) || r.Kind != billing.External {
		return billing.IgnoreNotFound(err)
	}
	kept, err := c.now.ReceiptsOf(ctx, r.Name, r.Period)
	if err == nil && len(kept) == 0 {
		err = c.note(ctx, r.Name, civil.Date{}, "", outbox.Topic(outbox.KindReceipt, r.Period, r.Amount.Decimal()+" "+r.Charge))
		each(Change{r.Name, fmt.Sprintf("period %d had a manual payment of %s", r.Period, r.Amount),
			redoReceipt(r.Name, r.Period, r.Amount, r.Processed, r.Charge)})
	}
	return err
}

// period tells of a period that a person skipped, and notes the mail about one that ended: the
// restored store may charge them.
func (c *Comparison) period(ctx context.Context, it store.Item, each func(Change)) error {
	p, err := billing.DecodePeriod(it)
	if err != nil {
		return nil
	}
	now, err := c.now.Subscription(ctx, p.Name)
	if err != nil || now.Period > p.Period {
		return ignoreUnreadable(err)
	}
	if p.Ending == billing.EndSkipped {
		each(Change{p.Name, fmt.Sprintf("period %d was skipped", p.Period), "subscription skip " + p.Account + "/" + p.ID})
	}
	return c.ofPeriod(ctx, p)
}
