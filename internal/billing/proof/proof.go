// Package proof collects all records of one subscription period from the store and the processor, as
// evidence that the period was charged at most once. It does not change either.
package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/kept"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// A State is the state of a period.
type State string

// The states, beside the endings of unpaid periods.
const (
	Paid     State = "paid"
	Reversed State = "reversed" // it was paid by a charge, whose whole amount the customer has back
	Open     State = "open"     // its intent is bound
	Waiting  State = "waiting"  // the next one, not opened yet
	Unwanted State = "ended"    // the subscription is cancelled or completed before it
	Lost     State = "unknown"  // it is past, and the store has neither receipt nor record of it
)

// A Proof holds everything that the store and the processor know about one period.
type Proof struct {
	billing.Name
	SKU           string // what the period is for, not the key's; "": its receipt has expired
	Period        int
	State         State
	Due           civil.Date // zero: the calendar has changed since, and no record tells
	ReminderDay   civil.Date // by the calendar; zero: none
	Reminded      time.Time  // zero: not, or a later reminder has taken its place
	OpenPeriod    *billing.OpenPeriod
	Ended         *billing.EndedPeriod
	Attempts      []billing.Attempt // declined ones that are stored; those of a paid period are not
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
	processor.Intent
	Role      string               // in the store: bound, retired, cancelled, settled; listed: the store does not name it
	Missing   bool                 // the processor does not know it
	Reversals []processor.Reversal // of a successful one
}

// listMargin is how long before its due date an intent may have been opened: by a later --date.
const listMargin = 40

// Of returns the proof of the period. months is for how many months receipts are kept whose
// subscription does not tell. If the subscription changes meanwhile, Of begins again.
func Of(ctx context.Context, r *billing.Records, proc processor.Charger, n billing.Name, period, months int) (*Proof, error) {
	if period < 0 {
		return nil, billing.Invalid("period", "must be 0 or more, as receipt list prints it")
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
	return nil, fmt.Errorf("subscription %s keeps changing: %w", n, billing.ErrState)
}

// read reads the store.
func (p *Proof) read(ctx context.Context, r *billing.Records) (err error) {
	if p.sub, err = r.Subscription(ctx, p.Name); err != nil {
		return err
	}
	s := p.sub
	p.Name = s.Name
	if months, known := kept.Months(s.Kept, p.Period); known {
		p.ReceiptMonths = months
	}
	due, dueErr := s.Schedule().Due(p.Period)
	if next, err := s.Schedule().Due(s.Period); err == nil && p.Period > s.Period {
		return fmt.Errorf("period %d of %s is in the future: it is due on %s; the next period is %d, "+
			"due on %s", p.Period, s.Name, due, s.Period, next)
	}
	for x, err := range r.GetEndedPeriods(ctx, s.Name) {
		if err != nil {
			return err
		}
		if x.Period == p.Period {
			p.Ended, p.SKU, due, p.Attempts = x, x.SKU, x.Due, x.Attempts
		}
	}
	if o := s.Open; o != nil && o.Period == p.Period {
		p.OpenPeriod, p.SKU, due, p.Attempts = o, s.SKUOf(o), o.Due, o.Attempts
	}
	until, _ := s.Schedule().Due(p.Period + 1) // zero: nothing is before it
	for x, err := range r.GetReceiptsByAccount(ctx, s.Account) {
		day := civil.Of(x.Processed)
		switch {
		case err != nil:
			return err
		case x.Kind == billing.Imported && (x.ID == s.ID || x.ID == "" && x.Name.SKU == s.Name.SKU):
			if x.Due == due || dueErr == nil && !day.Before(due) && day.Before(until) {
				p.Imported = append(p.Imported, x)
			}
		case x.Kind != billing.Imported && x.ID == s.ID && x.Period == p.Period:
			p.Receipts, p.SKU, due = append(p.Receipts, x), x.SKU, x.Due
		}
	}
	all, err := processor.Gather(r.GetReversalsByAccount(ctx, s.Account))
	p.Reversals = slices.DeleteFunc(all, func(x *billing.ReversalRecord) bool {
		return x.ID != s.ID || x.Period != p.Period
	})
	if p.Due = due; p.SKU == "" && p.Period >= s.Period {
		p.SKU, _ = s.PlanOn(p.Period, due)
	}
	if s.ReminderDays > 0 {
		p.ReminderDay = due.AddDays(-s.ReminderDays)
		day := civil.Of(s.LastReminder)
		if !s.LastReminder.Equal(s.Created) && !day.Before(p.ReminderDay) && !day.After(due) {
			p.Reminded = s.LastReminder
		}
	}
	return err
}

// ask looks up every intent that the store names, and those of the period in the processor's list.
func (p *Proof) ask(ctx context.Context, r *billing.Records, proc processor.Charger) error {
	var named []Intent
	name := func(role string, refs ...string) {
		for _, ref := range refs {
			if ref != "" && !slices.ContainsFunc(named, func(x Intent) bool { return x.Ref == ref }) {
				named = append(named, Intent{Intent: processor.Intent{Ref: ref}, Role: role})
			}
		}
	}
	for _, x := range p.kind(billing.Charged) {
		name("settled", x.Charge)
	}
	if o := p.OpenPeriod; o != nil {
		name("bound", o.Ref)
		name("retired", o.Retired...)
	}
	if p.Ended != nil {
		name("canceled", p.Ended.Ref)
	}
	for _, x := range p.Reversals {
		name("refunded", x.Charge)
	}
	if len(named) == 0 && p.Period == p.sub.Period-1 {
		name("last settled", p.sub.LastCharge)
	}
	found, err := p.list(ctx, r, proc)
	if err != nil {
		return err
	}
	name("listed", found...)
	for _, x := range named {
		in, err := processor.Ask(ctx, func() (processor.Intent, error) { return proc.Lookup(ctx, x.Ref) })
		switch {
		case errors.Is(err, processor.ErrNoIntent):
			x.Missing = true
		case err != nil:
			return fmt.Errorf("looking up payment intent %s: %w", x.Ref, err)
		case in.Tag.Period != p.Period: // the last charge was another period's
			continue
		default:
			x.Intent = in
		}
		if refunder, ok := proc.(processor.Refunder); ok && x.State == processor.Succeeded {
			if x.Reversals, err = refunder.ReversalsOf(ctx, x.Ref); err != nil {
				return fmt.Errorf("asking for the refunds of %s: %w", x.Ref, err)
			}
		}
		p.Intents = append(p.Intents, x)
	}
	return nil
}

// list returns the period's intents in the processor's list of the customer, or of everybody.
func (p *Proof) list(ctx context.Context, r *billing.Records, proc processor.Charger) (refs []string, err error) {
	a, err := r.Account(ctx, p.Account)
	if billing.IgnoreNotFound(err) != nil {
		return nil, err
	}
	scope := make([]processor.Payer, 1)
	if a != nil {
		scope[0] = a.Payer
	}
	if o := p.OpenPeriod; o != nil && !o.Payer.Same(scope[0]) {
		scope = append(scope, o.Payer)
	}
	p.Since = p.sub.Created.Add(-time.Hour) // clocks differ
	if from := p.Due.AddDays(-listMargin).In(time.UTC); from.After(p.Since) {
		p.Since = from
	}
	for _, payer := range scope {
		all, err := processor.AskAll(ctx, proc.List, processor.ListRequest{At: payer.At, Customer: payer.Customer, Since: p.Since})
		if err != nil {
			return nil, fmt.Errorf("listing the processor's payment intents: %w", err)
		}
		for _, in := range all {
			if in.Tag.Installation == r.Opened.Installation && billing.TaggedName(in.Tag) == p.Name && in.Tag.Period == p.Period {
				refs = append(refs, in.Ref)
			}
		}
	}
	return refs, nil
}

// kind returns the period's receipts of the kind.
func (p *Proof) kind(k billing.ReceiptKind) (list []*billing.Receipt) {
	return slices.DeleteFunc(slices.Clone(p.Receipts), func(r *billing.Receipt) bool { return r.Kind != k })
}
