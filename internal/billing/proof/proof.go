// Package proof collects all that is known of one period of a subscription, in the store and at the
// processor, and concludes why there was at most one charge. It does not change either.
package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
)

// A State tells how far a period has come.
type State string

// The states, beside the endings of unpaid periods.
const (
	Paid     State = "paid"
	Open     State = "open"    // its intent is bound
	Waiting  State = "waiting" // the next one, not opened yet
	Unwanted State = "ended"   // the subscription is cancelled or completed before it
	Lost     State = "unknown" // it is past, and the store has neither receipt nor record of it
)

// A Proof is what is known of one period.
type Proof struct {
	billing.Name
	SKU           string // what the period is for; that of the Name is the key's
	Period        int
	State         State
	Due           civil.Date // zero: the calendar has changed since, and no record tells
	ReminderDay   civil.Date // by the calendar; zero: none
	Reminded      time.Time  // zero: not, or a later reminder has taken its place
	OpenPeriod    *billing.OpenPeriod
	Ended         *billing.EndedPeriod
	Receipts      []*billing.Receipt
	Imported      []*billing.Receipt // came with the data, from this period's time
	Reversals     []*billing.ReversalRecord
	Intents       []Intent
	Since         time.Time // the processor listed its successful intents from then on
	Expired       bool      // there was a receipt, which has expired
	ReceiptMonths int       // for which the period's receipt is kept; 0: for ever

	Why   string // one sentence: why there was at most one charge, or that there were more
	Alarm bool   // the processor and the store contradict each other, or there was more than one charge

	sub *billing.Subscription
}

// An Intent is a payment intent of the period as the processor shows it now.
type Intent struct {
	billing.Intent
	Role      string             // in the store: bound, retired, cancelled, settled; listed: the store does not name it
	Missing   bool               // the processor does not know it
	Reversals []billing.Reversal // of a successful one
}

// listMargin is how long before its due date a period's intent may have been opened: a run may have
// had a later --date.
const listMargin = 40

// AheadError reports a period after the next one.
type AheadError struct {
	billing.Name
	Period, Next int
	Due, NextDue civil.Date
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("period %d of %s is ahead: it is due on %s, and nothing is known of it; the next is period %d, due on %s",
		e.Period, e.Name, e.Due, e.Next, e.NextDue)
}

// Of returns the proof of the period. months is for how many months receipts are kept whose
// subscription does not tell. If the subscription changes meanwhile, Of begins again.
func Of(ctx context.Context, r *billing.Records, proc billing.Processor, n billing.Name, period, months int) (*Proof, error) {
	if period < 0 {
		return nil, billing.Invalid("period", "want 0 or more, as receipt list shows it")
	}
	for range 5 {
		p := &Proof{Name: n, Period: period, ReceiptMonths: months}
		if err := p.read(ctx, r); err != nil {
			return nil, err
		}
		if err := p.ask(ctx, r, proc); err != nil {
			return nil, err
		}
		now, err := r.Load(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		if now.Version == p.sub.Version {
			p.conclude(r.Now())
			return p, nil
		}
	}
	return nil, fmt.Errorf("subscription %s changes all the time: %w", n, billing.ErrState)
}

// read reads the store.
func (p *Proof) read(ctx context.Context, r *billing.Records) (err error) {
	if p.sub, err = r.Subscription(ctx, p.Name); err != nil {
		return err
	}
	s := p.sub
	p.Name = s.Name
	if months, known := billing.KeptMonths(s.Kept, p.Period); known {
		p.ReceiptMonths = months
	}
	due, dueErr := s.Schedule().Due(p.Period)
	if next, err := s.Schedule().Due(s.Period); err == nil && p.Period > s.Period {
		return &AheadError{p.Name, p.Period, s.Period, due, next}
	}
	for x, err := range r.GetEndedPeriods(ctx, s.Name) {
		if err != nil {
			return err
		}
		if x.Period == p.Period {
			p.Ended, p.SKU, due = x, x.SKU, x.Due
		}
	}
	if o := s.Open; o != nil && o.Period == p.Period {
		p.OpenPeriod, p.SKU, due = o, s.SKUOf(o), o.Due
	}
	until, untilErr := s.Schedule().Due(p.Period + 1)
	for x, err := range r.GetReceiptsByAccount(ctx, s.Account) {
		day := civil.Of(x.Processed)
		switch {
		case err != nil:
			return err
		case x.Kind == billing.Imported && (x.ID == s.ID || x.ID == "" && x.SKU == s.SKU):
			if x.Due == due || dueErr == nil && untilErr == nil && !day.Before(due) && day.Before(until) {
				p.Imported = append(p.Imported, x)
			}
		case x.Kind != billing.Imported && x.ID == s.ID && x.Period == p.Period:
			p.Receipts, p.SKU, due = append(p.Receipts, x), x.SKU, x.Due
		}
	}
	for x, err := range r.GetReversalsByAccount(ctx, s.Account) {
		if err != nil {
			return err
		}
		if x.ID == s.ID && x.Period == p.Period {
			p.Reversals = append(p.Reversals, x)
		}
	}
	if p.Due = due; p.SKU == "" {
		p.SKU, _ = s.PlanOn(due)
	}
	p.remind()
	return nil
}

// remind tells the reminder's day, and when it was written if it was the latest one.
func (p *Proof) remind() {
	if s := p.sub; !p.Due.IsZero() && s.ReminderDays > 0 {
		p.ReminderDay = p.Due.AddDays(-s.ReminderDays)
		day := civil.Of(s.LastReminder)
		if !s.LastReminder.Equal(s.Created) && !day.Before(p.ReminderDay) && !day.After(p.Due) {
			p.Reminded = s.LastReminder
		}
	}
}

// ask looks up every intent that the store names, and finds others of the period in the processor's
// list.
func (p *Proof) ask(ctx context.Context, r *billing.Records, proc billing.Processor) error {
	roles := map[string]string{}
	var refs []string
	name := func(ref, role string) {
		if ref != "" && roles[ref] == "" {
			roles[ref] = role
			refs = append(refs, ref)
		}
	}
	for _, x := range p.Receipts {
		if x.Kind == billing.Charged {
			name(x.Charge, "settled")
		}
	}
	if o := p.OpenPeriod; o != nil {
		name(o.Ref, "bound")
		for _, ref := range o.Retired {
			name(ref, "retired")
		}
	}
	if p.Ended != nil {
		name(p.Ended.Ref, "cancelled")
	}
	for _, x := range p.Reversals {
		name(x.Charge, "refunded")
	}
	if len(refs) == 0 && p.Period == p.sub.Period-1 {
		name(p.sub.LastCharge, "last settled")
	}
	if err := p.list(ctx, r, proc, func(ref string) { name(ref, "listed") }); err != nil {
		return err
	}
	for _, ref := range refs {
		in, err := billing.Ask(ctx, func() (billing.Intent, error) { return proc.Lookup(ctx, ref) })
		x := Intent{Intent: in, Role: roles[ref], Missing: errors.Is(err, billing.ErrNoIntent)}
		switch {
		case x.Missing:
			x.Ref = ref
		case err != nil:
			return fmt.Errorf("looking up payment intent %s: %w", ref, err)
		case in.Tag.Period != p.Period: // the last charge was another period's
			continue
		}
		if refunder, ok := proc.(billing.Refunder); ok && x.State == billing.Succeeded {
			if x.Reversals, err = refunder.ReversalsOf(ctx, ref); err != nil {
				return fmt.Errorf("asking for the refunds of %s: %w", ref, err)
			}
		}
		p.Intents = append(p.Intents, x)
	}
	return nil
}

// list names the intents of the period in the processor's list of the account's customer, or of
// everybody if there is none.
func (p *Proof) list(ctx context.Context, r *billing.Records, proc billing.Processor, found func(ref string)) error {
	a, err := r.Account(ctx, p.Account)
	if billing.IgnoreNotFound(err) != nil {
		return err
	}
	var payer billing.Payer
	if a != nil {
		payer = a.Payer
	}
	scope := []billing.Payer{payer}
	if o := p.OpenPeriod; o != nil && !o.Payer.Same(payer) {
		scope = append(scope, o.Payer)
	}
	if p.Since = p.sub.Created.Add(-time.Hour); !p.Due.IsZero() { // clocks differ
		if from := p.Due.AddDays(-listMargin).In(time.UTC); from.After(p.Since) {
			p.Since = from
		}
	}
	for _, payer := range scope {
		all, err := billing.AskAll(ctx, proc.List, billing.ListRequest{At: payer.At, Customer: payer.Customer, Since: p.Since})
		if err != nil {
			return fmt.Errorf("listing the processor's payment intents: %w", err)
		}
		for _, in := range all {
			if in.Tag.Installation == r.Opened.Installation && in.Tag.Name() == p.Name && in.Tag.Period == p.Period {
				found(in.Ref)
			}
		}
	}
	return nil
}

// charges returns the successful intents, and the number of those with an attempt that may still
// succeed. One that was only opened moves no money: only a bound intent is confirmed.
func (p *Proof) charges() (succeeded []Intent, live int) {
	for _, x := range p.Intents {
		switch x.State {
		case billing.Succeeded:
			succeeded = append(succeeded, x)
		case billing.Declined, billing.Processing, billing.RequiresAction:
			live++
		}
	}
	return succeeded, live
}

// kind returns the period's receipts of the kind.
func (p *Proof) kind(k billing.ReceiptKind) (list []*billing.Receipt) {
	return slices.DeleteFunc(slices.Clone(p.Receipts), func(r *billing.Receipt) bool { return r.Kind != k })
}
