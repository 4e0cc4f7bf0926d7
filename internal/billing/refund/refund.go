// Package refund refunds charges, and records the refunds and disputes that the processor reports. It
// does not charge: package engine does.
//
// Each file calls only the files listed before it:
//
//   - decide.go: the protocol and its decisions
//   - look.go: asks the processor, records the answer, and continues a refund
//   - refund.go: accepts a refund request, and finds its charge
//   - collect.go: the job that collects refunds and disputes
package refund

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// An Order is an operator's request for a refund.
type Order struct {
	billing.Name
	Period int
	Amount money.Amount           // zero: the rest
	Reason processor.RefundReason // "": none
	Charge string                 // the processor's reference, if the period's receipt has expired; else ""
}

// A Service refunds charges, and records the reversals that others created.
type Service struct {
	*billing.Records
	proc   processor.Charger
	notice Notice
}

// A Notice returns the writes that go with a change of a record: the customer's mail of a refund, and
// the money for the sums. was is nil for a new record.
type Notice func(ctx context.Context, was, becomes *billing.ReversalRecord) ([]store.Write, error)

// New returns the service over the records. Refunds need a proc that is a processor.Refunder.
func New(r *billing.Records, proc processor.Charger, n Notice) *Service { return &Service{r, proc, n} }

// ErrNoRefunds means that the processor does not support refunds.
var ErrNoRefunds = errors.New("this processor cannot refund")

// Refund gives back all or a part of a period's charge, and records it. The same order again is the
// same refund: it goes on where the first was cut off, and repeated reports that it had been
// answered before. The record may come with an error: it is failed if the processor has refused the
// refund (ErrState), and requested if the answer was lost (the processor's error).
func (s *Service) Refund(ctx context.Context, o Order) (r *billing.ReversalRecord, repeated bool, err error) {
	if err := errors.Join(billing.CheckKey(ctx), o.Check()); err != nil {
		return nil, false, err
	}
	if _, ok := s.proc.(processor.Refunder); !ok {
		return nil, false, ErrNoRefunds
	}
	sub, err := s.Subscription(ctx, o.Name)
	if err != nil {
		return nil, false, err
	}
	o.Name = sub.Name
	asked := billing.KeyedRequest{Name: o.Name, Kind: billing.KeyedRefund, Period: o.Period, Amount: o.Amount}
	before, err := s.Keyed(ctx, &asked)
	if err != nil {
		return nil, false, err
	}
	if before != nil {
		o.Amount = before.Amount
	}
	charge, err := s.chargeOf(ctx, sub, o)
	if err != nil {
		return nil, false, err
	}
	t := &task{trigger: byOrder, Name: o.Name, id: s.IDOf(charge.Ref, o.Amount, call.KeyOf(ctx)), charge: charge.Ref}
	t.create = func(now recorded) (*billing.ReversalRecord, error) {
		r := &billing.ReversalRecord{Name: o.Name, ReversalID: t.id, Kind: processor.Refunded, Period: o.Period,
			Generation: charge.Tag.Generation, Charge: charge.Ref, State: processor.ReversalRequested,
			Reason: string(o.Reason), Created: s.Now()}
		r.Amount, err = o.fit(charge, now)
		return r, err
	}
	asked.Fix(ctx)
	r, err = s.carryOn(ctx, t)
	if errors.As(err, new(*call.RepeatedError)) { // another process was faster
		return s.Refund(ctx, o)
	}
	return r, r != nil && standingOf(r) != requested && t.sent == 0, err
}

// Check returns a FieldError for each wrong field as one error, or nil.
func (o *Order) Check() error {
	var all []error
	if o.Period < 0 {
		all = append(all, billing.Invalid("period", "must be 0 or more, as receipt list prints it"))
	}
	if !o.Amount.IsZero() {
		all = append(all, price.CheckAmount(o.Amount, o.Amount.Currency()))
	}
	if o.Reason != "" && o.Reason != processor.Duplicate && o.Reason != processor.Fraudulent &&
		o.Reason != processor.RequestedByCustomer {
		all = append(all, billing.Invalid("reason", fmt.Sprintf("must be %s, %s or %s", processor.Duplicate, processor.Fraudulent,
			processor.RequestedByCustomer)))
	}
	return errors.Join(append(all, billing.CheckText("charge", o.Charge, billing.MaxID))...)
}

// IDOf returns the ID of the refund of a charge, which is the same for the same order under the same key,
// also under none. A zero amount stands for the rest, which changes.
func (s *Service) IDOf(charge string, ordered money.Amount, key string) string {
	amount := "rest"
	if !ordered.IsZero() {
		amount = ordered.Decimal() + " " + ordered.Currency().Code()
	}
	return billing.RefundIDPrefix + billing.Hash("refund", s.Opened.Installation, charge, amount, key)
}

// fit returns the amount to give back, if the rest of the charge is enough for it.
func (o *Order) fit(charge processor.Intent, now recorded) (money.Amount, error) {
	if now.account == nil {
		return money.Amount{}, fmt.Errorf("account %s has no item in the store; create it with account create: %w",
			o.Account, billing.ErrState)
	}
	left, gone := charge.Amount.Minor(), ""
	for _, r := range now.reversals {
		if r.Charge != charge.Ref || !r.Counts() || r.Amount.Currency() != charge.Amount.Currency() {
			continue
		}
		left -= r.Amount.Minor()
		gone += fmt.Sprintf("; %s %s of %s is %s", r.Kind, r.ReversalID, r.Amount, r.State)
		if r.State == processor.ReversalRequested {
			gone += "; to continue it, repeat the command"
		}
	}
	rest := money.New(max(0, left), charge.Amount.Currency())
	switch {
	case o.Amount.IsZero() && rest.IsZero():
		return rest, fmt.Errorf("subscription %s: nothing is left of the %s of period %d%s: %w", o.Name, charge.Amount,
			o.Period, gone, billing.ErrState)
	case o.Amount.IsZero():
		return rest, nil
	case o.Amount.Currency() != rest.Currency():
		return rest, billing.Invalid("amount", "must be in "+rest.Currency().Code()+", the currency of the charge")
	case o.Amount.Minor() > rest.Minor():
		return rest, billing.Invalid("amount", fmt.Sprintf("must be at most %s, which is left of %s (got %s)%s", rest,
			charge.Amount, o.Amount, gone))
	}
	return o.Amount, nil
}

// chargeOf finds the charge of the order's period, as the processor shows it. Its reference is
// the order's, the receipt's, or the subscription's last one.
func (s *Service) chargeOf(ctx context.Context, sub *billing.Subscription, o Order) (processor.Intent, error) {
	if o.Period >= sub.Period {
		return processor.Intent{}, fmt.Errorf("subscription %s: period %d is not paid: %w", sub.Name, o.Period,
			billing.ErrState)
	}
	ref, err := s.receiptRef(ctx, sub, o)
	if err != nil {
		return processor.Intent{}, err
	}
	ref = cmp.Or(o.Charge, ref)
	missing := fmt.Errorf("subscription %s: period %d has no receipt of a charge: "+
		"the receipt was imported, the period did not end paid, or the receipt has expired; "+
		"if it has expired, name the processor's charge with --charge: %w", sub.Name, o.Period, billing.ErrState)
	guessed := ref == ""
	if guessed {
		ref = sub.LastCharge
	}
	if ref == "" {
		return processor.Intent{}, missing
	}
	in, err := processor.Ask(ctx, func() (processor.Intent, error) { return s.proc.Lookup(ctx, ref) })
	switch {
	case guessed && (errors.Is(err, processor.ErrNoIntent) || err == nil && in.Tag.Period != o.Period):
		return processor.Intent{}, missing
	case err != nil:
		return processor.Intent{}, fmt.Errorf("subscription %s: charge %s cannot be looked up: %w", sub.Name, ref, err)
	}
	return in, s.checkCharge(sub, o, ref, in)
}

// receiptRef returns the reference of the charge by the period's receipt, "" if there is none.
func (s *Service) receiptRef(ctx context.Context, sub *billing.Subscription, o Order) (ref string, err error) {
	manual := false
	for r, err := range s.GetReceiptsByAccount(ctx, sub.Account) {
		switch {
		case err != nil:
			return "", err
		case r.ID != sub.ID || r.Period != o.Period || r.Kind == billing.Imported, // an imported one may lack its period
			r.Kind == billing.Overpayment:
		case r.Kind == billing.External:
			manual = true
		default:
			ref = cmp.Or(ref, r.Charge)
		}
	}
	if manual && ref == "" && o.Charge == "" {
		return "", fmt.Errorf("subscription %s: period %d has a manual payment; return the money the way it was paid: %w",
			sub.Name, o.Period, billing.ErrState)
	}
	return ref, nil
}

// checkCharge returns an error unless the intent is of the order's period and has succeeded.
func (s *Service) checkCharge(sub *billing.Subscription, o Order, ref string, in processor.Intent) error {
	of := in.Tag
	ours := of.Installation == "" || of.Installation == s.Opened.Installation
	switch {
	case !ours || of.Account != sub.Account || of.Subscription != sub.ID || of.Period != o.Period:
		return billing.Invalid("charge", fmt.Sprintf("%s does not belong to period %d of subscription %s", ref, o.Period, sub.Name))
	case in.State != processor.Succeeded:
		return fmt.Errorf("subscription %s: charge %s is %s at the processor, so nothing can be refunded: %w", sub.Name, ref,
			in.State, billing.ErrState)
	}
	return nil
}
